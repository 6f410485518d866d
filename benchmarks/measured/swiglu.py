"""silu(first half) * second half of each row: tiles in turn, strided copies, a chain of vector instructions."""

from __future__ import annotations

from functools import partial

import ml_dtypes
import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, time_launch, times

from ._kit import EVENTS, Buffers, load_rows, pieces, store_rows, then_barrier, window

TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32}
ROUND = asc.RoundMode.CAST_RINT
SAME = asc.RoundMode.CAST_NONE


def swiglu(x, y, shape: tuple[int, int], tile: tuple[int, int]):
    """Take every tile whose number is the core's, counted round the cores; two buffers for each operand."""
    rows, half = shape
    source, target = window(x), window(y)
    wide = x.dtype is asc.float32
    room = tile[0] * tile[1]
    buffers = Buffers()
    slots = [[buffers.take(room, x.dtype) for _ in range(2)] for _ in range(3)]
    temporary = [buffers.take(room, asc.float32) for _ in range(1 if wide else 2)]
    for slot in range(2):
        asc.set_flag(EVENTS.V_MTE2, slot)
        asc.set_flag(EVENTS.MTE3_V, slot)
    tiles = [(r, c) for r in pieces(rows, tile[0]) for c in pieces(half, tile[1])]
    own = tiles[asc.get_block_idx() :: asc.get_block_num()]
    for step, ((row, high), (column, across)) in enumerate(own):
        slot = step % 2
        a, b, out = (buffer[slot] for buffer in slots)
        place = row * 2 * half + column
        asc.wait_flag(EVENTS.V_MTE2, slot)
        load_rows(a, source[place:], high, across, 2 * half)
        load_rows(b, source[place + half :], high, across, 2 * half)
        asc.set_flag(EVENTS.MTE2_V, slot)
        asc.wait_flag(EVENTS.MTE2_V, slot)
        asc.wait_flag(EVENTS.MTE3_V, slot)
        count = high * -(-across * x.dtype.sizeof() // 32) * 32 // x.dtype.sizeof()
        (chain_wide if wide else chain_narrow)(a, b, out, temporary, count)
        asc.set_flag(EVENTS.V_MTE2, slot)
        asc.set_flag(EVENTS.V_MTE3, slot)
        asc.wait_flag(EVENTS.V_MTE3, slot)
        store_rows(target[row * half + column :], out, high, across, half)
        asc.set_flag(EVENTS.MTE3_V, slot)
    for slot in range(2):
        asc.wait_flag(EVENTS.V_MTE2, slot)
        asc.wait_flag(EVENTS.MTE3_V, slot)


def chain_narrow(a, b, out, temporary, count: int):
    """Compute in float32 what comes in 16 bits."""
    value, sigma = temporary
    then_barrier(asc.cast, value, a, SAME, count)
    then_barrier(asc.muls, sigma, value, -1.0, count)
    then_barrier(asc.exp, sigma, sigma, count)
    then_barrier(asc.adds, sigma, sigma, 1.0, count)
    then_barrier(asc.div, value, value, sigma, count)
    then_barrier(asc.cast, sigma, b, SAME, count)
    then_barrier(asc.mul, value, value, sigma, count)
    then_barrier(asc.cast, out, value, ROUND, count)


def chain_wide(a, b, out, temporary, count: int):
    """Compute with float32 operands."""
    (sigma,) = temporary
    then_barrier(asc.muls, sigma, a, -1.0, count)
    then_barrier(asc.exp, sigma, sigma, count)
    then_barrier(asc.adds, sigma, sigma, 1.0, count)
    then_barrier(asc.div, out, a, sigma, count)
    then_barrier(asc.mul, out, out, b, count)


def simulate(record: Record) -> dict:
    rows, width = record.shape
    dtype = TYPES[record.dtype]
    kernel = partial(swiglu, shape=(rows, width // 2), tile=tuple(record.params["tile"]))
    x, y = np.zeros((rows, width), dtype), np.zeros((rows, width // 2), dtype)
    return times(time_launch(kernel, x, y, record=record, cores=record.cores))
