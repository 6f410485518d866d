"""The library's rotary embedding of q and k: tables doubled and repeated by kernels of their own, then the rotation.

Two concatenations ([S, D/2] twice to [S, D]), two broadcasts (to [B, S, 1, D]), one rotation: their times add up.
"""

from __future__ import annotations

from functools import partial

import ml_dtypes
import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, sweep, time_launch, times, total

from ._kit import (
    EVENTS,
    Buffers,
    hand_over,
    load_rows,
    pieces,
    scale,
    share,
    store_rows,
    then_barrier,
    window,
)

TYPES = {"f16": np.float16, "f32": np.float32, "bf16": ml_dtypes.bfloat16}
SAME, ROUND = asc.RoundMode.CAST_NONE, asc.RoundMode.CAST_RINT
SHAPES = (
    (16, 512, 16, 128, "f16"), (7, 1021, 31, 64, "f32"), (31, 251, 7, 128, "bf16"), (16, 61, 16, 128, "f16"),
)  # fmt: skip
TILE = 8192
"""Elements of a tile of the concatenation and the broadcast."""
MOST = 4096
"""Tokens that are rotated at most; the rest is in proportion."""
ROOM = 4096
"""Elements of q or k of the tokens that are rotated at once."""


def concat(half, whole, rows: int, columns: int):
    """Put a matrix twice beside itself: load rows, store them into both halves."""
    first, own = share(rows, asc.get_block_idx(), asc.get_block_num())
    source, target = window(half), window(whole)
    buffers = Buffers()
    most = max(1, TILE // columns)
    tiles = [buffers.take(most * (columns + 16), half.dtype) for _ in range(2)]
    for slot in range(2):
        asc.set_flag(EVENTS.MTE3_MTE2, slot)
    for turn, (start, count) in enumerate(pieces(own, most)):
        slot, row = turn % 2, first + start
        asc.wait_flag(EVENTS.MTE3_MTE2, slot)
        load_rows(tiles[slot], source[row * columns :], count, columns, columns)
        hand_over(EVENTS.MTE2_MTE3, slot)
        for side in range(2):
            place = (2 * row + side) * columns
            store_rows(target[place:], tiles[slot], count, columns, 2 * columns)
        asc.set_flag(EVENTS.MTE3_MTE2, slot)
    for slot in range(2):
        asc.wait_flag(EVENTS.MTE3_MTE2, slot)


def broadcast(table, wide, count: int, times_: int):
    """Repeat an array: load a tile, store it for each repetition."""
    first, own = share(count, asc.get_block_idx(), asc.get_block_num())
    source, target = window(table), window(wide)
    buffers = Buffers()
    tiles = [buffers.take(TILE, table.dtype) for _ in range(2)]
    for slot in range(2):
        asc.set_flag(EVENTS.MTE3_MTE2, slot)
    for turn, (start, length) in enumerate(pieces(own, TILE)):
        slot, place = turn % 2, first + start
        asc.wait_flag(EVENTS.MTE3_MTE2, slot)
        load_rows(tiles[slot], source[place:], 1, length, length)
        hand_over(EVENTS.MTE2_MTE3, slot)
        for number in range(times_):
            store_rows(target[number * count + place :], tiles[slot], 1, length, length)
        asc.set_flag(EVENTS.MTE3_MTE2, slot)
    for slot in range(2):
        asc.wait_flag(EVENTS.MTE3_MTE2, slot)


class Rotation:
    """A vector core: some tokens at once, q and then k, computed in float32 where the type is bfloat16."""

    def __init__(self, heads: int, depth: int, tokens: int, dtype, buffers: Buffers) -> None:
        self.heads, self.depth, self.dtype = heads, depth, dtype
        room = tokens * heads * depth
        self.wide = dtype is asc.bfloat16
        kind = asc.float32 if self.wide else dtype
        self.data = buffers.take(room, dtype)
        self.cos, self.sin = (buffers.take(tokens * depth, dtype) for _ in range(2))
        self.value = buffers.take(room, kind) if self.wide else self.data
        self.left = buffers.take(room, kind)
        self.right = buffers.take(room, kind)
        self.tables = [buffers.take(tokens * depth, kind) for _ in range(2)] if self.wide else []
        self.lanes = 256 // kind.sizeof()

    def tables_of(self, tokens: int) -> None:
        """Have cosines and sines in the type that is computed in."""
        if not self.wide:
            self.tables = [self.cos, self.sin]
            return
        for table, loaded in zip(self.tables, (self.cos, self.sin), strict=True):
            then_barrier(asc.cast, table, loaded, SAME, tokens * self.depth)

    def rotate(self, tokens: int) -> None:
        """left = x cos + (second half, first half) (-sin, sin)."""
        heads, depth, half = self.heads, self.depth, self.depth // 2
        if self.wide:
            then_barrier(asc.cast, self.value, self.data, SAME, tokens * heads * depth)
        cos, sin = self.tables
        for token in range(tokens):
            at, row = token * heads * depth, token * depth
            self._by_heads(asc.mul, self.left[at:], self.value[at:], cos[row:], depth)
            self._by_heads(asc.mul, self.right[at:], self.value[at + half :], sin[row:], half)
            self._by_heads(
                asc.mul, self.right[at + half :], self.value[at:], sin[row + half :], half
            )
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        for token in range(tokens):
            at = token * heads * depth
            self._by_heads(asc.sub, self.left[at:], self.left[at:], self.right[at:], half, True)
            place = at + half
            self._by_heads(
                asc.add, self.left[place:], self.left[place:], self.right[place:], half, True
            )
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        if self.wide:
            then_barrier(asc.cast, self.data, self.left, ROUND, tokens * heads * depth)

    def _by_heads(self, instruction, dst, first, second, width: int, own: bool = False) -> None:
        """Combine all heads' columns with one row, or (own) with rows of their own; a repeat a head."""
        stride = self.depth * dst.dtype.sizeof() // 32
        params = asc.BinaryRepeatParams(1, 1, 1, stride, stride, stride if own else 0)
        for start, lanes in pieces(width, self.lanes):
            instruction(dst[start:], first[start:], second[start:], lanes, self.heads, params)

    @property
    def result(self):
        return self.data if self.wide else self.left


def rotate_all(q, k, cos, sin, q_out, k_out, tokens: int, heads: int, depth: int, most: int):
    """Rotate this core's tokens, q in one set of buffers, k in another with the same table."""
    first, own = share(tokens, asc.get_block_idx(), asc.get_block_num())
    buffers = Buffers()
    sets = [Rotation(heads, depth, most, q.dtype, buffers) for _ in range(2)]
    ways = [(window(q), window(q_out)), (window(k), window(k_out))]
    cos_gm, sin_gm = window(cos), window(sin)
    row, tables = heads * depth, sets[0]
    for slot in range(2):
        asc.set_flag(EVENTS.MTE3_MTE2, slot)
    asc.set_flag(EVENTS.V_MTE2, 2)
    for start, count in pieces(own, most):
        token, length = first + start, count * depth
        for slot, (work, (source, target)) in enumerate(zip(sets, ways, strict=True)):
            if slot == 0:
                asc.wait_flag(EVENTS.V_MTE2, 2)
                load_rows(tables.cos, cos_gm[token * depth :], 1, length, length)
                load_rows(tables.sin, sin_gm[token * depth :], 1, length, length)
            asc.wait_flag(EVENTS.MTE3_MTE2, slot)
            load_rows(work.data, source[token * row :], 1, count * row, count * row)
            hand_over(EVENTS.MTE2_V, slot)
            if slot == 0:
                tables.tables_of(count)
            work.tables = tables.tables
            work.rotate(count)
            hand_over(EVENTS.V_MTE3, slot)
            store_rows(target[token * row :], work.result, 1, count * row, count * row)
            asc.set_flag(EVENTS.MTE3_MTE2, slot)
        asc.set_flag(EVENTS.V_MTE2, 2)
    for slot in range(2):
        asc.wait_flag(EVENTS.MTE3_MTE2, slot)
    asc.wait_flag(EVENTS.V_MTE2, 2)


def embed(record: Record, batch: int, length: int, heads: int, depth: int, kind: str) -> dict:
    """Return the sums of the five kernels' times."""
    dtype, tokens = TYPES[kind], batch * length
    start = partial(time_launch, record=record, cores=record.cores)
    half, whole = np.zeros((length, depth // 2), dtype), np.zeros((length, depth), dtype)
    wide = np.zeros((batch, length, depth), dtype)
    tables = [
        (partial(concat, rows=length, columns=depth // 2), half, whole),
        (partial(broadcast, count=length * depth, times_=batch), whole, wide),
    ]
    runs = [start(kernel, *arrays) for kernel, *arrays in tables for _ in range(2)]
    few = min(tokens, MOST)
    q, k, q_out, k_out = (np.zeros((few, heads, depth), dtype) for _ in range(4))
    most = max(1, ROOM // (heads * depth))
    kernel = partial(rotate_all, tokens=few, heads=heads, depth=depth, most=most)
    run = start(kernel, q, k, wide, wide, q_out, k_out)
    rotation = times(run) if few == tokens else scale(run, tokens / few, tokens / few)
    result = total([*map(times, runs), rotation])
    if few < tokens:
        result["simulated_part"] = f"{few} of {tokens} tokens of the rotation, scaled"
    return result


def simulate(record: Record) -> dict:
    return sweep(embed(record, *row[:5]) for row in record.points() or SHAPES)
