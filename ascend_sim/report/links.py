"""What each item of a core follows: in its pipe, in the scalar unit's order, in its queue's places.

The links say what could have decided a time; `critical_path` and `slack` ask which one did.
"""

from __future__ import annotations

import numpy as np

from ascend_sim.config import Chip
from ascend_sim.report.columns import Ints
from ascend_sim.report.ledger import CoreLedger
from ascend_sim.trace import Kind
from isa.types import Pipe


class Links:
    """The links of one core's items, by row; -1 where there is none.

    `before`: the item before it in its pipe; `landed`: the instruction before it in its pipe, whose result
    is the last to land; `place`: the item that left the place of the queue which this one came into;
    `block`: which of the core's blocks it belongs to; `done`: when the scalar unit was through with it;
    `free`: from when the scalar unit could turn to it. Items of different blocks are not linked.
    """

    def __init__(self, entry: CoreLedger, chip: Chip, cycles: int) -> None:
        """Make them for a run of so many cycles."""
        columns = entry.columns
        self._kind: type[np.int32 | np.int64] = np.int32 if cycles < 1 << 31 else np.int64
        # Copies: all cores' links are in memory together, their columns are not.
        self.pipe, self.kind = columns["pipe"].copy(), columns["kind"].copy()
        self.issue, self.head, self.start, self.end, self.began, self.moved = (
            self._narrow(columns[name])
            for name in ("issue", "head", "start", "end", "began", "moved")
        )
        # A set lets the pipe go on at once; its own times say when it took effect.
        self.accept = self._narrow(
            np.where(self.kind == Kind.SET_FLAG, self.head, columns["accept"])
        )
        # Loads that held their pipe until their bytes began to pass: those of another one were on the way.
        self.held = (self.accept == self.began) & (self.began > self.start)
        count = len(columns)
        self.block_starts = np.array(sorted(start for _, start, _ in entry.core.blocks), np.int64)
        begun = np.searchsorted(self.block_starts, self.issue, "right") - 1
        block = np.maximum.accumulate(np.maximum(begun, 0)) if count else begun
        self.block = self._narrow(block)
        self.before, self.landed, self.place = (np.full(count, -1, self._kind) for _ in range(3))
        for pipe, rows in entry.rows.items():
            if pipe is not Pipe.S and len(rows):
                self._link(rows, chip.queue_depth(pipe, entry.core.kind))
        own = self.pipe == Pipe.S
        self.done = np.where(own & (self.kind != Kind.SET_FLAG), self.end, self.issue)
        first = np.diff(self.block, prepend=-1) != 0
        begin = self.block_starts[self.block] if len(self.block_starts) else self.block * 0
        free = np.where(first, begin, np.roll(self.done, 1)) if count else self.done
        self.free = self._narrow(free)

    def _narrow(self, values: Ints) -> Ints:
        narrow: Ints = values.astype(self._kind)
        return narrow

    def _link(self, rows: Ints, depth: int) -> None:
        self.before[rows[1:]] = self._within_a_block(rows[1:], rows[:-1])
        self.place[rows[depth:]] = self._within_a_block(rows[depth:], rows[:-depth])
        last = np.maximum.accumulate(np.where(self.kind[rows] == Kind.INSTRUCTION, rows, -1))
        self.landed[rows[1:]] = self._within_a_block(rows[1:], last[:-1])

    def _within_a_block(self, rows: Ints, linked: Ints) -> Ints:
        same = self.block[rows] == self.block[np.maximum(linked, 0)]
        return np.where(same & (linked >= 0), linked, -1)

    def waited_for_place(self) -> Ints:
        """Return for each item from when the scalar unit could issue it: free, and a place in the queue free."""
        left = np.where(self.place >= 0, self.start[np.maximum(self.place, 0)], -1)
        return np.maximum(self.free, left)
