"""RmsNorm: row by row with a sum that goes through the scalar unit, or several rows at once where they are short."""

from __future__ import annotations

import math
from functools import partial

import ml_dtypes
import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, time_launch, times

from ._kit import EVENTS, Buffers, hand_over, load_rows, pieces, store_rows, then_barrier, window

TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32}
ROUND = asc.RoundMode.CAST_RINT
SAME = asc.RoundMode.CAST_NONE
LANES = 64
KEPT = 64  # rows whose factors go out together


def fold(values, count: int):
    """Add halves onto each other down to one repeat, and sum that up."""
    power = 1 << (count.bit_length() - 1)
    if power != count:
        then_barrier(asc.add, values, values, values[power:], count - power)
    while power > LANES:
        power //= 2
        then_barrier(asc.add, values, values, values[power:], power)
    then_barrier(asc.whole_reduce_sum, values, values, LANES, 1, 1, 1, 8)


def one_by_one(x, gamma, y, factors, rows: int, columns: int):
    """Norm a core's rows one after the other; every buffer is single."""
    first, own = part(rows)
    source, target, out = window(x), window(y), window(factors)
    wide = x.dtype is asc.float32
    room = -(-columns // 16) * 16
    buffers = Buffers()
    row, scale, result = (buffers.take(room, x.dtype) for _ in range(3))
    value = row if wide else buffers.take(room, asc.float32)
    square = buffers.take(room, asc.float32)
    kept = buffers.take(KEPT, asc.float32)
    load_rows(scale, window(gamma), 1, columns, columns)
    asc.set_flag(EVENTS.V_MTE2, 0)
    asc.set_flag(EVENTS.MTE3_V, 0)
    for start, count in pieces(own, KEPT):
        for number in range(count):
            place = (first + start + number) * columns
            asc.wait_flag(EVENTS.V_MTE2, 0)
            load_rows(row, source[place:], 1, columns, columns)
            hand_over(EVENTS.MTE2_V)
            if not wide:
                then_barrier(asc.cast, value, row, SAME, columns)
                asc.set_flag(EVENTS.V_MTE2, 0)
            then_barrier(asc.mul, square, value, value, columns)
            fold(square, columns)
            hand_over(EVENTS.V_S)
            factor = 1 / math.sqrt(float(square.get_value(0)) / columns + 1e-6)
            kept.set_value(number, factor)
            hand_over(EVENTS.S_V)
            if wide:
                asc.wait_flag(EVENTS.MTE3_V, 0)
                then_barrier(asc.muls, result, value, factor, columns)
                asc.set_flag(EVENTS.V_MTE2, 0)
                then_barrier(asc.mul, result, result, scale, columns)
            else:
                then_barrier(asc.muls, value, value, factor, columns)
                then_barrier(asc.cast, square, scale, SAME, columns)
                then_barrier(asc.mul, value, value, square, columns)
                asc.wait_flag(EVENTS.MTE3_V, 0)
                then_barrier(asc.cast, result, value, ROUND, columns)
            hand_over(EVENTS.V_MTE3)
            store_rows(target[place:], result, 1, columns, columns)
            asc.set_flag(EVENTS.MTE3_V, 0)
        hand_over(EVENTS.S_MTE3)
        store_rows(out[first + start :], kept, 1, count, count)
        hand_over(EVENTS.MTE3_S)
    asc.wait_flag(EVENTS.V_MTE2, 0)
    asc.wait_flag(EVENTS.MTE3_V, 0)


def together(x, gamma, y, factors, rows: int, columns: int, most: int):
    """Norm up to `most` rows of a core at once, with the vector unit alone; every buffer is single."""
    first, own = part(rows)
    source, target, out = window(x), window(y), window(factors)
    wide = x.dtype is asc.float32
    room = -(-columns // 16) * 16
    buffers = Buffers()
    block, result = (buffers.take(most * room, x.dtype) for _ in range(2))
    value = block if wide else buffers.take(most * room, asc.float32)
    square = result if wide else buffers.take(most * room, asc.float32)
    scale = buffers.take(room, asc.float32)
    narrow = scale if wide else buffers.take(room, x.dtype)
    sums = buffers.take(-(-most // 8) * 8, asc.float32)
    ones = buffers.take(-(-most // 8) * 8, asc.float32)
    spread = buffers.take(-(-most // 8) * 64, asc.float32)
    load_rows(narrow, window(gamma), 1, columns, columns)
    hand_over(EVENTS.MTE2_V)
    if not wide:
        then_barrier(asc.cast, scale, narrow, SAME, columns)
    asc.set_flag(EVENTS.V_MTE2, 0)
    asc.set_flag(EVENTS.MTE3_V, 0)
    for start, count in pieces(own, most):
        place, total = (first + start) * columns, count * room
        asc.wait_flag(EVENTS.V_MTE2, 0)
        load_rows(block, source[place:], count, columns, columns)
        hand_over(EVENTS.MTE2_V)
        if not wide:
            then_barrier(asc.cast, value, block, SAME, total)
            asc.set_flag(EVENTS.V_MTE2, 0)
        asc.wait_flag(EVENTS.MTE3_V, 0)
        then_barrier(asc.mul, square, value, value, total)
        for row in range(count):
            fold(square[row * room :], columns)
            then_barrier(asc.adds, sums[row // 8 * 8 :], square[row * room // 8 * 8 :], 0.0, 8)
        then_barrier(asc.muls, sums, sums, 1 / columns, count)
        then_barrier(asc.adds, sums, sums, 1e-6, count)
        then_barrier(asc.sqrt, sums, sums, count)
        then_barrier(asc.duplicate, ones, 1.0, count)
        then_barrier(asc.div, sums, ones, sums, count)
        hand_over(EVENTS.V_MTE3)
        store_rows(out[first + start :], sums, 1, count, count)
        then_barrier(asc.brcb, spread, sums, -(-count // 8), asc.BrcbRepeatParams(1, 8))
        over_rows(asc.mul, square, value, spread, count, room, 0)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        if wide:
            asc.set_flag(EVENTS.V_MTE2, 0)
        for row in range(count):
            asc.mul(square[row * room :], square[row * room :], scale, columns)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        if not wide:
            then_barrier(asc.cast, result, square, ROUND, total)
        hand_over(EVENTS.V_MTE3)
        store_rows(target[place:], result, count, columns, columns)
        asc.set_flag(EVENTS.MTE3_V, 0)
    asc.wait_flag(EVENTS.V_MTE2, 0)
    asc.wait_flag(EVENTS.MTE3_V, 0)


def over_rows(instruction, dst, src, spread, rows: int, room: int, stride: int):
    """Combine each row with its block of eight equal values: an instruction a row, one more for a row's tail."""
    params = asc.BinaryRepeatParams(1, 1, 0, 8, 8, stride)
    repeats, tail = divmod(room, LANES)
    for row in range(rows):
        at = row * room
        factor = spread[row * 8 :]
        if repeats:
            instruction(dst[at:], src[at:], factor, LANES, repeats, params)
        if tail:
            at += repeats * LANES
            instruction(dst[at:], src[at:], factor, tail, 1, params)


def part(rows: int) -> tuple[int, int]:
    """Return first row and number of rows of a core."""
    each = -(-rows // asc.get_block_num())
    first = asc.get_block_idx() * each
    return first, max(0, min(each, rows - first))


def simulate(record: Record) -> dict:
    params = record.params
    rows, columns = params["rows"], params["cols"]
    dtype = TYPES[record.dtype]
    kernel = partial(one_by_one, rows=rows, columns=columns)
    if params["path"].startswith("MERGE"):
        room = -(-columns // 16) * 16
        most = params.get("rows_per_pass", (196608 - 1024) // (16 * room + 260))
        kernel = partial(together, rows=rows, columns=columns, most=most)
    x, y = np.zeros((rows, columns), dtype), np.zeros((rows, columns), dtype)
    gamma, factors = np.zeros(columns, dtype), np.zeros(rows, np.float32)
    return times(
        time_launch(kernel, x, gamma, y, factors, record=record, cores=record.cores, numerics="on")
    )
