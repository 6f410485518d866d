"""Rotary embedding as a compiler makes it: a loop over tokens, each loads its row of a table of cosines and sines.

The fused form splits a row into q, k and v and norms q and k first.
"""

from __future__ import annotations

import re
from functools import partial

import ml_dtypes
import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, sweep, time_launch, times

from ._kit import (
    EVENTS,
    Buffers,
    hand_over,
    load_rows,
    scale,
    share,
    store_rows,
    then_barrier,
    window,
)

BF16 = ml_dtypes.bfloat16
SAME, ROUND = asc.RoundMode.CAST_NONE, asc.RoundMode.CAST_RINT
TOKENS = (1, 32, 128, 1024, 4096)
"""Tokens where a record does not say which were measured."""
MOST = 1024
"""Tokens that are simulated at most; the rest is in proportion."""
SPREAD = asc.BrcbRepeatParams(1, 8)


def rope(x, table, y, tokens: int, heads: int, depth: int, width: int, normed: bool):
    """Rotate the first `heads` heads of this core's tokens, a token a turn; what is left of a row is copied."""
    first, own = share(tokens, asc.get_block_idx(), asc.get_block_num())
    source, lines, target = window(x), window(table), window(y)
    buffers = Buffers()
    n, half = heads * depth, depth // 2
    loaded = buffers.take(width, x.dtype)
    line = buffers.take(depth, table.dtype)
    value, left, right, square = (buffers.take(n, asc.float32) for _ in range(4))
    angle = buffers.take(depth, asc.float32)
    sums, spread = buffers.take(64, asc.float32), buffers.take(64 * 8, asc.float32)
    stride = depth // 8
    rows = asc.BinaryRepeatParams(1, 1, 1, stride, stride, 0)
    halves = asc.BinaryRepeatParams(1, 1, 1, stride, stride, stride)
    for token in range(first, first + own):
        load_rows(loaded, source[token * width :], 1, width, width)
        load_rows(line, lines[token * depth :], 1, depth, depth)
        hand_over(EVENTS.MTE2_V)
        then_barrier(asc.cast, value, loaded, SAME, n)
        then_barrier(asc.cast, angle, line, SAME, depth)
        if normed:
            then_barrier(asc.mul, square, value, value, n)
            for start in range(64, depth, 64):
                part = square[start:]
                then_barrier(asc.add, square, square, part, 64, heads, halves)
            then_barrier(asc.whole_reduce_sum, sums, square, 64, heads, 1, 1, stride)
            then_barrier(asc.muls, sums, sums, 1 / depth, heads)
            then_barrier(asc.adds, sums, sums, 1e-6, heads)
            then_barrier(asc.rsqrt, sums, sums, heads)
            then_barrier(asc.brcb, spread, sums, -(-heads // 8), SPREAD)
            over = asc.BinaryRepeatParams(1, 1, 0, stride, stride, 1)
            for start in range(0, depth, 64):
                then_barrier(asc.mul, value[start:], value[start:], spread, 64, heads, over)
        cos, sin = angle, angle[half:]
        asc.mul(left, value, cos, half, heads, rows)
        asc.mul(left[half:], value[half:], cos, half, heads, rows)
        asc.mul(right, value[half:], sin, half, heads, rows)
        then_barrier(asc.mul, right[half:], value, sin, half, heads, rows)
        asc.sub(left, left, right, half, heads, halves)
        then_barrier(asc.add, left[half:], left[half:], right[half:], half, heads, halves)
        then_barrier(asc.cast, loaded, left, ROUND, n)
        hand_over(EVENTS.V_MTE3)
        store_rows(target[token * width :], loaded, 1, width, width)
        hand_over(EVENTS.MTE3_MTE2)


def embedded(record: Record, tokens: int, heads: int, depth: int, width: int, normed: bool) -> dict:
    few, cores = min(tokens, MOST), min(tokens, record.cores)
    x, y = (np.zeros((few, width), BF16) for _ in range(2))
    table = np.zeros((few, depth), BF16)
    kernel = partial(rope, tokens=few, heads=heads, depth=depth, width=width, normed=normed)
    run = time_launch(kernel, x, table, y, record=record, cores=cores)
    if few == tokens:
        return times(run)
    return scale(run, tokens / few, tokens / few) | {
        "simulated_part": f"{few} of {tokens} tokens, scaled"
    }


def simulate(record: Record) -> dict:
    sizes = re.findall(r"\[T,(\d+)(?:,(\d+))?\]", str(record.shape))
    points = record.points("T", "tokens") or TOKENS
    if record.name == "fused":
        width, depth = int(sizes[0][0]), 128
        heads, normed = width // depth - 1, True  # the last head is v
    else:
        depth = int(sizes[0][1])
        heads, normed = sum(int(count) for count, _ in sizes), False
        width = heads * depth
    counts = [point[0] if isinstance(point, list) else point for point in points]
    return sweep(embedded(record, int(n), heads, depth, width, normed) for n in counts)
