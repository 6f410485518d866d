"""Elementwise z = x + y over [8192, 8192] halfs: from one core and the scalar unit to 48 cores without conflicts."""

from __future__ import annotations

from functools import partial

import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, time_launch, times

ROWS = 8192
ROW = 8192  # elements
EVENTS = asc.HardEvent


def rows_of(block: int, blocks: int) -> tuple[int, int]:
    """Return first row and number of rows of a block: the first blocks have one more."""
    share, extra = divmod(ROWS, blocks)
    return block * share + min(block, extra), share + (block < extra)


def add_chunks(x, y, z, chunk: int, places: list[tuple[int, int, int]], bypass: bool):
    """Walk a core's range in chunks; `places` are the UB addresses of x, y and z, one triple a buffer."""
    first, rows = rows_of(asc.get_block_idx(), asc.get_block_num())
    total = rows * ROW
    x_gm, y_gm, z_gm = window(x, first, bypass), window(y, first, bypass), window(z, first, False)
    slots = [
        tuple(
            asc.LocalTensor(x.dtype, position, address, chunk)
            for position, address in zip(
                (asc.TPosition.VECIN, asc.TPosition.VECIN, asc.TPosition.VECOUT),
                triple,
                strict=True,
            )
        )
        for triple in places
    ]
    buffers = len(slots)
    for index in range(buffers):
        asc.set_flag(EVENTS.V_MTE2, index)
        asc.set_flag(EVENTS.MTE3_V, index)
    for step, start in enumerate(range(0, total, chunk)):
        index = step % buffers
        count = min(chunk, total - start)
        a, b, c = slots[index]
        asc.wait_flag(EVENTS.V_MTE2, index)
        asc.data_copy(a, x_gm[start:], count)
        asc.data_copy(b, y_gm[start:], count)
        asc.set_flag(EVENTS.MTE2_V, index)
        asc.wait_flag(EVENTS.MTE2_V, index)
        asc.wait_flag(EVENTS.MTE3_V, index)
        asc.add(c, a, b, count)
        asc.set_flag(EVENTS.V_MTE2, index)
        asc.set_flag(EVENTS.V_MTE3, index)
        asc.wait_flag(EVENTS.V_MTE3, index)
        asc.data_copy(z_gm[start:], c, count)
        asc.set_flag(EVENTS.MTE3_V, index)
    for index in range(buffers):
        asc.wait_flag(EVENTS.V_MTE2, index)
        asc.wait_flag(EVENTS.MTE3_V, index)


def window(address, first: int, bypass: bool):
    """Return the rows from `first` on as a tensor, read around L2 where asked."""
    tensor = asc.GlobalTensor()
    tensor.set_global_buffer(address + first * ROW)
    if bypass:
        tensor.set_l2_cache_hint(asc.CacheMode.CACHE_MODE_DISABLE)
    return tensor


def add_scalar(x, y, z, chunk: int, rows: int):
    """Add the same way with the scalar unit alone: two reads and one write of UB an element."""
    first, _ = rows_of(asc.get_block_idx(), asc.get_block_num())
    x_gm, y_gm, z_gm = (window(address, first, False) for address in (x, y, z))
    a, b, c = (
        asc.LocalTensor(x.dtype, asc.TPosition.VECCALC, place, chunk) for place in (0, 32768, 65536)
    )
    for start in range(0, rows * ROW, chunk):
        asc.data_copy(a, x_gm[start:], chunk)
        asc.data_copy(b, y_gm[start:], chunk)
        asc.set_flag(EVENTS.MTE2_S, 0)
        asc.wait_flag(EVENTS.MTE2_S, 0)
        for i in range(chunk):
            c.set_value(i, float(a.get_value(i)) + float(b.get_value(i)))
        asc.set_flag(EVENTS.S_MTE3, 0)
        asc.wait_flag(EVENTS.S_MTE3, 0)
        asc.data_copy(z_gm[start:], c, chunk)
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)


SINGLE = [(0, 32768, 65536)]
DOUBLE = [(0x0, 0x8000, 0x10000), (0x18000, 0x20000, 0x28000)]
CONFLICT_FREE = [(0, 32512, 131072), (65536, 98048, 163584)]


def simulate(record: Record) -> dict:
    x, y, z = (np.zeros((ROWS, ROW), np.float16) for _ in range(3))
    chunk = record.params["chunk_elems"]
    if record.params.get("vector") is False:
        return scalar_part(record, x, y, z, chunk)
    places = SINGLE if record.params["buffers"] == 1 else DOUBLE
    if record.params.get("bank_conflict_free"):
        places = CONFLICT_FREE
    bypass = bool(record.params.get("l2_bypass"))
    kernel = partial(add_chunks, chunk=chunk, places=places, bypass=bypass)
    return times(time_launch(kernel, x, y, z, record=record, cores=record.cores))


SCALAR_ROWS = 8
"""Rows of the scalar loop that are simulated; the rest is in proportion."""


def scalar_part(record: Record, x, y, z, chunk: int) -> dict:
    """Simulate a few rows of the one-core scalar loop and scale to all: in full it takes hours."""
    part = time_launch(
        add_scalar, x, y, z, chunk, SCALAR_ROWS, record=record, cores=record.cores, numerics="on"
    )
    launch_us = part.chip.us(part.log.launch_cycles)
    scale = ROWS / SCALAR_ROWS
    scaled = {key: value and value * scale for key, value in times(part).items()}
    scaled["task_us"] = (part.time_us - launch_us) * scale + launch_us
    return scaled | {"simulated_part": f"{SCALAR_ROWS} of {ROWS} rows, scaled"}
