"""Streams from GM to UB on all cores: footprints inside and beyond L2, around L2, sizes of a copy, stores beside."""

from __future__ import annotations

from functools import partial

import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, sweep, time_launch, times

from ._kit import hand_over, local, share, window

CORES = 48
REQUESTED = 469_800_000  # bytes
KIB = 1024
BURST = 32 * KIB


FLUSH = 6400 * BURST
"""Bytes written before: a little more than L2 holds, which then is full of them."""


def flush(scratch):
    """Write a core's part of a buffer as large as L2, as is done between the measured runs."""
    first, own = share(FLUSH // BURST, asc.get_block_idx(), asc.get_block_num())
    target, tile = window(scratch), local(0, BURST, scratch.dtype)
    for step in range(first, first + own):
        asc.data_copy(target[step * BURST :], tile, BURST)
    asc.pipe_barrier(asc.PipeID.PIPE_ALL)


def flush_us(record: Record, cores: int) -> float:
    """Return the time of the flush alone."""
    scratch = np.zeros(FLUSH, np.int8)
    return times(time_launch(flush, scratch, record=record, cores=cores))["aiv_max_us"]


def stream(x, scratch, footprint: int, requested: int, size: int, bypass: bool):
    """Flush; load a core's part of the footprint from beginning to end, again and again."""
    flush(scratch)
    first, own = share(footprint // size, asc.get_block_idx(), asc.get_block_num())
    _, number = share(requested // size, asc.get_block_idx(), asc.get_block_num())
    source = window(x, bypass=bypass)
    tile = local(0, size, x.dtype)
    for step in range(number):
        asc.data_copy(tile, source[(first + step % own) * size :], size)
        hand_over(asc.HardEvent.MTE2_S)


def mixed(x, loads: int, stores: int):
    """Load and store different parts of a buffer, each pipe at its own pace."""
    block, blocks = asc.get_block_idx(), asc.get_block_num()
    tensor = window(x)
    first, own = share(loads // BURST, block, blocks)
    begin, out = share(stores // BURST, block, blocks)
    read, written = local(0, BURST, x.dtype), local(BURST, BURST, x.dtype)
    for step in range(max(own, out)):
        if step < own:
            asc.data_copy(read, tensor[(first + step) * BURST :], BURST)
        if step < out:
            asc.data_copy(tensor[loads + (begin + step) * BURST :], written, BURST)


def rate(record: Record, footprint: int, size: int = BURST, bypass: bool = False, **more) -> dict:
    """Return the times of a stream and its GB/s."""
    requested = more.pop("requested", REQUESTED)
    kernel = partial(stream, footprint=footprint, requested=requested, size=size, bypass=bypass)
    x, scratch = np.zeros(footprint, np.int8), np.zeros(FLUSH, np.int8)
    cores = more.get("cores", CORES)
    result = times(time_launch(kernel, x, scratch, record=record, cores=cores))
    before = flush_us(record, cores)
    for name in ("task_us", "aiv_us", "aiv_max_us"):
        result[name] -= before
    result["mte3_us"] = 0.0
    return result | {"gbps": requested / result["aiv_max_us"] / 1000}


def both_ways(record: Record, key: str, unit: str, points: list[dict]) -> dict:
    """Return a sweep through L2 with the figures of the same one around L2 beside it."""
    cached = sweep(rate(record, **point) for point in points)
    around = sweep(rate(record, bypass=True, **point) for point in points)
    name = "aiv_max_us" if unit == "us" else "gbps"
    return cached | {f"cached_{unit}": cached[name], f"bypass_{unit}": around[name], key: key}


def simulate(record: Record) -> dict:
    name = record.name
    if name == "footprint":
        sizes = (8, 32, 128, 470)
        return both_ways(
            record, "footprint_mb", "gbps", [{"footprint": mb * 1_000_000} for mb in sizes]
        )
    if name == "redundancy":
        reads = (1.0, 1.5, 1.94)
        footprint = 469_762_048
        return both_ways(
            record,
            "reads",
            "us",
            [{"footprint": footprint, "requested": int(footprint * n)} for n in reads],
        )
    if name == "bypass_size":
        return sweep(rate(record, 470_000_000, kib * KIB, bypass=True) for kib in (8, 32))
    if name == "flat":
        descriptors = [rate(record, 470_000_000, kib * KIB) for kib in (8, 64)]
        counts = [rate(record, 470_000_000, cores=cores) for cores in (24, 48)]
        return sweep([*descriptors, *counts]) | {
            "descriptor_8_to_64kb_gbps": [point["gbps"] for point in descriptors],
            "block_dim_24_to_48_gbps": [point["gbps"] for point in counts],
            "gm_to_ub_48aiv_gbps": counts[1]["gbps"],
        }
    if name == "rw":
        return mixture(record)
    return sweep(rate(record, mib * 2**20) for mib in (72, 144, 288))


LOADED, STORED = 33_554_432, 4_194_304
"""Bytes loaded and stored: int32 in, half as many int8 out are 8 to 1, and together the 37.7 MB that are stated."""


def mixture(record: Record) -> dict:
    """Return the times of loads alone, stores alone, and both."""
    results = []
    for loads, stores in ((LOADED, 0), (0, STORED), (LOADED, STORED)):
        x = np.zeros(LOADED + STORED + BURST, np.int8)
        kernel = partial(mixed, loads=loads, stores=stores)
        results.append(times(time_launch(kernel, x, record=record, cores=CORES)))
    names = ("loads_us", "stores_us", "both_us")
    parts = {key: one["aiv_max_us"] for key, one in zip(names, results, strict=True)}
    return results[2] | parts
