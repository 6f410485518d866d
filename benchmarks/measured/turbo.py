"""Norm and quantisation to 16 levels of 512 numbers a token: one token an instruction, or up to twelve."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, sweep, time_launch, times

from ._kit import EVENTS, Buffers, hand_over, pieces, scale, then_barrier, window

WIDTH = 512
SLOT = 320  # bytes out of a token
LEVELS = 15
MOST = 12  # tokens an instruction
CORES = 40
SCALAR = asc.SelMode.VSEL_TENSOR_SCALAR_MODE
ROUND = asc.RoundMode.CAST_RINT
SMALL = (1, 32, 128, 512, 65536)  # tokens of the sweep


def quantise(latent, slots, tokens: int, batch: int):
    """Quantise a core's tokens, `batch` at a time; every buffer is single."""
    each = -(-tokens // asc.get_block_num())
    first = asc.get_block_idx() * each
    own = min(each, tokens - first)
    source, target = window(latent), window(slots)
    buffers = Buffers()
    x, y, index, one = (buffers.take(batch * WIDTH, asc.float32) for _ in range(4))
    half, packed = buffers.take(batch * WIDTH, asc.float16), buffers.take(batch * WIDTH, asc.int8)
    out, bits = buffers.take(batch * SLOT, asc.uint8), buffers.take(batch * WIDTH // 8, asc.uint8)
    sums, work = buffers.take(batch * 8, asc.float32), buffers.take(64, asc.float32)
    asc.duplicate(one, 1.0, batch * WIDTH)
    asc.set_flag(EVENTS.V_MTE2, 0)
    asc.set_flag(EVENTS.MTE3_V, 0)
    for start, b in pieces(max(own, 0), batch):
        n = b * WIDTH
        asc.wait_flag(EVENTS.V_MTE2, 0)
        asc.data_copy(x, source[(first + start) * WIDTH :], n)
        hand_over(EVENTS.MTE2_V)
        asc.wait_flag(EVENTS.MTE3_V, 0)
        then_barrier(asc.duplicate, out.reinterpret_cast(asc.uint16), 0, b * SLOT // 2)
        normalise(x, y, (sums, work), b)
        then_barrier(asc.duplicate, index, 0.0, n)
        for level in range(LEVELS):
            then_barrier(asc.compare_scalar, bits, x, level / LEVELS, asc.CMPMODE.GT, n)
            then_barrier(asc.select, y, bits, one, 0.0, SCALAR, n)
            then_barrier(asc.add, index, index, y, n)
        then_barrier(asc.compare_scalar, bits, index, LEVELS / 2, asc.CMPMODE.GT, n)
        then_barrier(asc.adds, y, index, -16.0, n)
        then_barrier(asc.select, y, bits, y, 0.0, SCALAR, n)
        then_barrier(asc.cast, half, y, ROUND, n)
        asc.set_flag(EVENTS.V_MTE2, 0)
        for token in range(b):
            # To 8 bits: there is no 4-bit type to cast to here, and the repeats are the same.
            asc.cast(packed[token * WIDTH :], half[token * WIDTH :], ROUND, WIDTH)
        hand_over(EVENTS.V_S)
        for token in range(b):
            out.set_value(token * SLOT + WIDTH // 2, 0)
            out.set_value(token * SLOT + WIDTH // 2 + 1, 0)
        hand_over(EVENTS.S_MTE3)
        asc.data_copy(target[(first + start) * SLOT :], out, b * SLOT)
        asc.set_flag(EVENTS.MTE3_V, 0)
    asc.wait_flag(EVENTS.V_MTE2, 0)
    asc.wait_flag(EVENTS.MTE3_V, 0)


def normalise(x, y, places, tokens: int):
    """Divide each token by its norm: sums by the vector unit, roots by the scalar unit."""
    sums, work = places
    then_barrier(asc.mul, y, x, x, tokens * WIDTH)
    for token in range(tokens):
        asc.reduce_sum(sums[token * 8 :], y[token * WIDTH :], work, WIDTH)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
    hand_over(EVENTS.V_S)
    for token in range(tokens):
        factor = 1.0 / math.sqrt(float(sums.get_value(token * 8)) + 1e-6)
        asc.muls(x[token * WIDTH :], x[token * WIDTH :], factor, WIDTH)
    asc.pipe_barrier(asc.PipeID.PIPE_V)


PART = 26 * CORES
"""Tokens that are simulated at most; the rest, which repeats the same, is in proportion."""


def quantised(record: Record, tokens: int, most: int) -> dict:
    """Return the times for a number of tokens, at most `most` of them an instruction."""
    cores, simulated = min(tokens, CORES), min(tokens, PART)
    batch = min(-(-tokens // cores), most)
    latent = np.zeros((simulated, WIDTH), np.float32)
    slots = np.zeros((simulated, SLOT), np.uint8)
    kernel = partial(quantise, tokens=simulated, batch=batch)
    run = time_launch(kernel, latent, slots, record=record, cores=cores, numerics="on")
    if simulated == tokens:
        return times(run)
    factor = -(-tokens // cores) / -(-simulated // cores)
    return scale(run, factor, factor) | {
        "simulated_part": f"{simulated} of {tokens} tokens, scaled"
    }


def simulate(record: Record) -> dict:
    if record.name == "small":
        return sweep(quantised(record, n, MOST) for n in record.measured.get("tokens", SMALL))
    return quantised(record, record.shape[0], record.params["batch"])
