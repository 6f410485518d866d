"""Elementwise z = x + y over a matrix of halfs: from one core and the scalar unit to 48 cores without conflicts."""

from __future__ import annotations

from functools import partial

import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, time_launch, times

from ._kit import EVENTS, scale, share, window


def add_chunks(
    x, y, z, shape: tuple[int, int], chunk: int, places: list[tuple[int, int, int]], bypass: bool
):
    """Walk a core's rows in chunks; `places` are the UB addresses of x, y and z, one triple a buffer."""
    row, rows = share(shape[0], asc.get_block_idx(), asc.get_block_num())
    first, total = row * shape[1], rows * shape[1]
    x_gm, y_gm = window(x, first, bypass=bypass), window(y, first, bypass=bypass)
    z_gm = window(z, first)
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


def add_scalar(x, y, z, chunk: int, count: int):
    """Add the same way with the scalar unit alone: two reads and one write of UB an element."""
    first, _ = share(count, asc.get_block_idx(), asc.get_block_num())
    x_gm, y_gm, z_gm = (window(address, first) for address in (x, y, z))
    a, b, c = (
        asc.LocalTensor(x.dtype, asc.TPosition.VECCALC, place, chunk) for place in (0, 32768, 65536)
    )
    for start in range(0, count, chunk):
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
    shape, chunk = tuple(record.shape), record.params["chunk_elems"]
    x, y, z = (np.zeros(shape, np.float16) for _ in range(3))
    if record.params.get("vector") is False:
        return scalar_part(record, x, y, z, chunk)
    places = SINGLE if record.params["buffers"] == 1 else DOUBLE
    if record.params.get("bank_conflict_free"):
        places = CONFLICT_FREE
    bypass = bool(record.params.get("l2_bypass"))
    kernel = partial(add_chunks, shape=shape, chunk=chunk, places=places, bypass=bypass)
    return times(time_launch(kernel, x, y, z, record=record, cores=record.cores))


SCALAR_ROWS = 8
"""Rows of the scalar loop that are simulated; the rest is in proportion."""


def scalar_part(record: Record, x, y, z, chunk: int) -> dict:
    """Simulate a few rows of the one-core scalar loop and scale to all: in full it takes hours."""
    rows, columns = x.shape
    count = SCALAR_ROWS * columns
    run = time_launch(
        add_scalar, x, y, z, chunk, count, record=record, cores=record.cores, numerics="on"
    )
    return scale(run, rows / SCALAR_ROWS, rows / SCALAR_ROWS) | {
        "simulated_part": f"{SCALAR_ROWS} of {rows} rows, scaled"
    }
