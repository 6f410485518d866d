"""Rotary embedding of interleaved pairs: a loop over batches whose loads wait for the store before."""

from __future__ import annotations

from functools import partial

import ml_dtypes
import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, time_launch, times

from ._kit import EVENTS, Buffers, hand_over, then_barrier, window

SPLIT_FROM = 16  # batches from which they, not the heads, are dealt to cores
EVEN, ODD = 1, 2  # patterns of gather_mask
SAME, ROUND = asc.RoundMode.CAST_NONE, asc.RoundMode.CAST_RINT


def rotate(x, cosine, sine, y, batches: int, all_heads: int, width: int):
    """Rotate a core's batches with all heads, or its head of all batches; every buffer is single."""
    block, blocks = asc.get_block_idx(), asc.get_block_num()
    if batches >= SPLIT_FROM:
        each, heads, head = -(-batches // blocks), all_heads, 0
        own = range(block * each, min(batches, (block + 1) * each))
    else:
        own, heads, head = range(batches), 1, block
    n = width * heads
    buffers = Buffers()
    cos_in, sin_in = (buffers.take(width, x.dtype) for _ in range(2))
    cos, sin = (buffers.take(width, asc.float32) for _ in range(2))
    data, even, odd, out = (buffers.take(n, x.dtype) for _ in range(4))
    real, imaginary = (buffers.take(n // 2, asc.float32) for _ in range(2))
    left, right = (buffers.take(n, asc.float32) for _ in range(2))
    source, target, cos_gm, sin_gm = window(x), window(y), window(cosine), window(sine)
    for batch in own:
        place = (batch * all_heads + head) * width
        for loaded, wide, gm in ((cos_in, cos, cos_gm), (sin_in, sin, sin_gm)):
            asc.data_copy(loaded, gm[batch * width :], width)
            hand_over(EVENTS.MTE2_V)
            asc.cast(wide, loaded, SAME, width)
        asc.data_copy(data, source[place:], n)
        hand_over(EVENTS.MTE2_V)
        params = asc.GatherMaskParams(1, -(-n // 128), 8, 0)
        whole = data.reinterpret_cast(asc.uint16)
        for half, pattern in ((even, EVEN), (odd, ODD)):
            part = half.reinterpret_cast(asc.uint16)
            asc.gather_mask(part, whole, pattern, True, min(n, 128), params)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.cast(real, even, SAME, n // 2)
        then_barrier(asc.cast, imaginary, odd, SAME, n // 2)
        by_rows(left, real, imaginary, cos, heads, width)
        then_barrier(asc.muls, imaginary, imaginary, -1.0, n // 2)
        by_rows(right, imaginary, real, sin, heads, width)
        then_barrier(asc.add, left, left, right, n)
        then_barrier(asc.cast, out, left, ROUND, n)
        hand_over(EVENTS.V_MTE3)
        asc.data_copy(target[place:], out, n)
        hand_over(EVENTS.MTE3_MTE2)  # the slots of cos and sin come back behind the store
        asc.pipe_barrier(asc.PipeID.PIPE_V)


def by_rows(dst, first, second, factor, heads: int, width: int):
    """Multiply the two halves of each head by the two halves of the factors."""
    half = width // 2
    params = asc.BinaryRepeatParams(1, 1, 1, width // 8, half // 8, 0)
    asc.mul(dst, first, factor, half, heads, params)
    asc.mul(dst[half:], second, factor[half:], half, heads, params)
    asc.pipe_barrier(asc.PipeID.PIPE_V)


def simulate(record: Record) -> dict:
    batches, heads, _, width = record.shape
    x, y = (np.zeros((batches, heads, width), ml_dtypes.bfloat16) for _ in range(2))
    cosine, sine = (np.zeros((batches, width), ml_dtypes.bfloat16) for _ in range(2))
    kernel = partial(rotate, batches=batches, all_heads=heads, width=width)
    return times(time_launch(kernel, x, cosine, sine, y, record=record, cores=record.cores))
