"""The largest numbers of each row with their places: sorts of 32, merges of four lists, halves picked apart."""

from __future__ import annotations

from functools import partial

import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, time_launch, times

from ._kit import EVENTS, Buffers, hand_over, load_rows, share, store_rows, window

PITCH = 1280
"""Columns of a row in GM, of which the record's are valid."""
LIST = 32
WAYS = 4
RECORD = 8
"""Bytes of a record: a number and its place."""
TYPES = {"float16": np.float16, "float32": np.float32}
PERCENT = {
    "vec_pct": "vec_us",
    "scalar_pct": "scalar_us",
    "mte2_pct": "mte2_us",
    "mte3_pct": "mte3_us",
}
FIRST, SECOND = 1, 2  # patterns of gather_mask: of two elements the first, the second


class TopK:
    """A vector core: rows in two buffers; records go back and forth between two places."""

    def __init__(self, x, places, values, indices, columns: int, keep: int) -> None:
        self.columns, self.keep = columns, keep
        self.source, self.values, self.indices = window(x), window(values), window(indices)
        self.size = x.dtype.sizeof()
        buffers = Buffers()
        self.rows = [buffers.take(columns, x.dtype) for _ in range(2)]
        self.index = buffers.take(columns, asc.uint32)
        self.records = [buffers.take(columns * RECORD // self.size, x.dtype) for _ in range(2)]
        room = -(-keep // 64) * 64
        self.best = [buffers.take(room * (4 // self.size), x.dtype) for _ in range(2)]
        self.places = [buffers.take(room, asc.uint32) for _ in range(2)]
        load_rows(self.index, window(places), 1, columns, columns)
        hand_over(EVENTS.MTE2_V)
        for slot in range(2):
            asc.set_flag(EVENTS.V_MTE2, slot)
            asc.set_flag(EVENTS.MTE3_V, slot)

    def row(self, number: int, slot: int) -> None:
        """Sort one row and store its best."""
        asc.wait_flag(EVENTS.V_MTE2, slot)
        load_rows(self.rows[slot], self.source[number * PITCH :], 1, self.columns, PITCH)
        asc.set_flag(EVENTS.MTE2_V, slot)
        asc.wait_flag(EVENTS.MTE2_V, slot)
        now, other = self.records
        asc.sort32(now, self.rows[slot], self.index, self.columns // LIST)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.set_flag(EVENTS.V_MTE2, slot)
        length = LIST
        while length < self.columns:
            self._merge(now, other, length)
            now, other = other, now
            length *= WAYS
        asc.wait_flag(EVENTS.MTE3_V, slot)
        self._pick(now, slot)
        asc.set_flag(EVENTS.V_MTE3, slot)
        asc.wait_flag(EVENTS.V_MTE3, slot)
        store_rows(self.values[number * self.keep :], self.best[slot], 1, self.keep, self.keep)
        store_rows(self.indices[number * self.keep :], self.places[slot], 1, self.keep, self.keep)
        asc.set_flag(EVENTS.MTE3_V, slot)

    def _merge(self, source, target, length: int) -> None:
        """Merge lists of a length, four at a time; what is left over two or three at a time, or moved."""
        unit = length * RECORD // self.size
        count = -(-self.columns // length)
        full, rest = divmod(count, WAYS)
        for start, lists, repeats in ((0, WAYS, full), (full * WAYS, rest, bool(rest))):
            if not repeats:
                continue
            part, at = source[start * unit :], target[start * unit :]
            if lists == 1:
                asc.adds(
                    at.reinterpret_cast(asc.int32), part.reinterpret_cast(asc.int32), 0, 2 * length
                )
            else:
                parts = [part[min(i, lists - 1) * unit :] for i in range(WAYS)]
                lengths = [length if i < lists else 0 for i in range(WAYS)]
                info = asc.MrgSort4Info(lengths, False, (1 << lists) - 1, int(repeats))
                asc.mrg_sort(at, asc.MrgSortSrcList(source.dtype, *parts), info)
            asc.pipe_barrier(asc.PipeID.PIPE_V)

    def _pick(self, records, slot: int) -> None:
        """Part numbers and places: of two words a record the first and the second."""
        words = 2 * self.keep
        params = asc.GatherMaskParams(1, -(-words // 64), 8, 0)
        whole = records.reinterpret_cast(asc.uint32)
        best = self.best[slot].reinterpret_cast(asc.uint32)
        for part, pattern in ((best, FIRST), (self.places[slot], SECOND)):
            asc.gather_mask(part, whole, pattern, False, 64, params)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        if self.size == 2:
            halves = self.best[slot].reinterpret_cast(asc.uint16)
            params = asc.GatherMaskParams(1, -(-words // 128), 8, 0)
            asc.gather_mask(halves, halves, FIRST, False, 128, params)
            asc.pipe_barrier(asc.PipeID.PIPE_V)

    def end(self) -> None:
        for slot in range(2):
            asc.wait_flag(EVENTS.V_MTE2, slot)
            asc.wait_flag(EVENTS.MTE3_V, slot)


def top_k(x, places, values, indices, shape: tuple[int, int], keep: int):
    """Take this core's rows."""
    first, own = share(shape[0], asc.get_block_idx(), asc.get_block_num())
    work = TopK(x, places, values, indices, shape[1], keep)
    for row in range(own):
        work.row(first + row, row % 2)
    work.end()


def simulate(record: Record) -> dict:
    rows, columns = record.shape
    keep, dtype = record.params["topk"], TYPES[record.dtype]
    x, places = np.zeros((rows, PITCH), dtype), np.zeros(columns, np.uint32)
    values, indices = np.zeros((rows, keep), dtype), np.zeros((rows, keep), np.uint32)
    kernel = partial(top_k, shape=(rows, columns), keep=keep)
    result = times(
        time_launch(kernel, x, places, values, indices, record=record, cores=record.cores)
    )
    return result | {name: 100 * result[time] / result["task_us"] for name, time in PERCENT.items()}
