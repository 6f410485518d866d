"""Unit flags: one bit for each 512 bytes of L0C, by which Mmad and Fixpipe hand results over without events.

An Mmad with unit flag waits until its units are free, and with 3 leaves them full; a Fixpipe waits until its units
are full, and with 3 leaves them free. With 2 both leave the bits as they are. Results become full one unit after the
other while the Mmad runs, so a Fixpipe may follow close behind it, and free in the same way while a Fixpipe reads them
(at its port's own rate: how many others share GM is not taken into account here).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ascend_sim.cost import cube_cycles, whole
from isa.cube_forms import CubeCall
from isa.types import Pipe, Space

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascend_sim.core import Core
    from ascend_sim.hazards import _Lane
    from ascend_sim.pipes import PipeQueue
    from ascend_sim.program import Program
    from ascend_sim.trace import Item
    from isa.instruction import Call

FINISH = 3
"""The value with which an instruction changes the bits of its units."""
_FRACTAL = 1024
"""Bytes of 16 × 16 results: the units of a fractal belong together, even where a tile ends inside one."""
_M, _FIX = Pipe.M, Pipe.FIX

Units = Any
"""An index of unit numbers: a slice where the tile has no gaps."""


class UnitMap:
    """Which units of L0C a call's tile takes; `granule` is the size of one in bytes."""

    def __init__(self, granule: int) -> None:
        self.granule = granule
        self._known: dict[Call, Units] = {}

    def of(self, call: Call) -> Units:
        """Return the units of an Mmad's result, or of what a Fixpipe reads."""
        template = call.template
        units = self._known.get(template)
        if units is None:
            units = self._known[template] = self._find(template)
        return units

    def _find(self, call: Call) -> Units:
        granule = self.granule
        if not call.writes:
            return slice(0, 0)
        if call.pipe is _M:
            access = call.writes[0]
            return slice(access.low // granule, -(-access.high // granule))
        access = call.reads[0]
        matrices, groups, rows, _ = access.shape
        first = access.base + np.add.outer(
            np.arange(matrices) * access.strides[0], np.arange(groups) * access.strides[1]
        )
        length = -(-rows * access.strides[2] // _FRACTAL) * _FRACTAL
        numbers = first.reshape(-1, 1) // granule + np.arange(-(-length // granule))
        units = np.unique(numbers)
        if units[-1] - units[0] + 1 == len(units):
            return slice(int(units[0]), int(units[-1]) + 1)
        return units


class UnitFlags:
    """The bits of one cube core and the cycles from which their present state is seen."""

    def __init__(self, core: Core, units: UnitMap) -> None:
        chip = core.chip
        self._core = core
        self._units = units
        self._latency = whole(chip.fixpipe.unit_flag_latency)
        self._issue, self._depth = whole(chip.cube.issue), whole(chip.cube.depth)
        count = -(-chip.memories[Space.L0C.name].bytes // units.granule)
        self._full: NDArray[np.bool_] = np.zeros(count, bool)
        self._seen: NDArray[np.int64] = np.zeros(count, np.int64)
        self._changed_by: NDArray[Any] = np.full(
            count, None, object
        )  # the last Mmad or Fixpipe that changed a unit
        self._read: NDArray[np.int64] = np.full(count, -1)  # when a Fixpipe has last read it
        self._ways: dict[Call, tuple[Any, Any]] = {}

    def clear(self) -> None:
        """Free all units at the start of a block."""
        self._full[:] = False
        self._seen[:] = 0
        self._read[:] = -1

    def start(self, pipe: PipeQueue, item: Item, head: int) -> int:
        """Return when an instruction may start that is at the head of its pipe from `head` on; -1: not known yet.

        It comes to its units one after the other, and starts so that each is in the right state when its turn comes.
        """
        units = self._units.of(item.call)
        full, seen = self._full[units], self._seen[units]
        if not len(full):
            return head
        if full.any() if pipe.pipe is _M else not full.all():
            return -1
        turns, _ = self._way(item, len(full))
        if seen.max() <= head + turns[0]:  # all have been seen when it comes to the first one
            return head
        earliest = seen - turns
        last = int(earliest.argmax())
        start = int(np.ceil(earliest[last]))
        if start <= head:
            return head
        item.partner = self._changed_by[units][last]
        return start

    def emptied(self, item: Item) -> int:
        """Return the cycle from which an Mmad's results may take the place of what Fixpipes read before.

        It may itself have begun earlier: it comes to its last units late.
        """
        return int(self._read[self._units.of(item.call)].max(initial=-1)) + 1

    def _way(self, item: Item, count: int) -> tuple[Any, Any]:
        """Return the cycles from an instruction's start to its turn at each unit, and until each change is seen."""
        template = item.call.template
        way = self._ways.get(template)
        if way is None:
            lead, step = self._pace(item, count)
            passed = lead + np.arange(1, count + 1) * step
            if item.pipe is _M:
                passed += self._depth
            changes = (np.ceil(passed) + self._latency).astype(np.int64)
            way = self._ways[template] = (lead + np.arange(count) * step, changes)
        return way

    def _pace(self, item: Item, count: int) -> tuple[int, float]:
        """Return the cycles before the first unit's turn and those for each unit."""
        call = item.call
        if item.pipe is _M:
            return self._issue, cube_cycles(call, self._core.chip) / count
        port = self._core.chip.fixpipe
        rate = port.l1_port if call.cost[1] == "l1" else port.gm_port
        return 0, call.bytes / (rate * count)

    def begun(self, pipe: PipeQueue, item: Item) -> None:
        """Change the bits of the units of an instruction that has started, where it is the one to do so."""
        if item.call.unit_flag != FINISH:
            return
        units = self._units.of(item.call)
        count = len(self._full[units])
        if not count:
            return
        _, changes = self._way(item, count)
        fills = pipe.pipe is _M
        self._changed_by[units] = item
        if not fills:
            self._read[units] = item.start
        self._full[units] = fills
        self._seen[units] = item.start + changes
        self._wake(_FIX if fills else _M)

    def _wake(self, which: Pipe) -> None:
        pipe = self._core.pipes[which]
        blocked = pipe.blocked
        if blocked is not None and blocked.start < 0 and is_flagged(blocked):
            pipe.blocked = None

    def left_full(self) -> Item | None:
        """Return an Mmad whose result no Fixpipe has freed, None where all are free."""
        full = np.flatnonzero(self._full)
        return self._changed_by[int(full[0])] if len(full) else None

    def missing(self, item: Item) -> tuple[list[tuple[int, int]], Item | None]:
        """Return the byte ranges of L0C that an instruction waits for, and the Mmad that filled the first of them."""
        numbers = np.arange(len(self._full))[self._units.of(item.call)]
        wrong = numbers[self._full[numbers] == (item.pipe is _M)]
        breaks = np.flatnonzero(np.diff(wrong) > 1) + 1
        granule = self._units.granule
        ranges = [
            (int(part[0]) * granule, (int(part[-1]) + 1) * granule)
            for part in np.split(wrong, breaks)
            if len(part)
        ]
        return ranges, self._changed_by[int(wrong[0])] if len(wrong) and item.pipe is _M else None


class UnitOrder:
    """The unit flags of L0C as the order sees them: which units are full, and what their last change tells."""

    def __init__(self, program: Program) -> None:
        self._map = program.session.units
        count = -(-program.core.memory_sizes[Space.L0C] // self._map.granule)
        self._full: NDArray[np.bool_] = np.zeros(count, bool)
        self._changed: NDArray[np.int64] = np.zeros(count, np.int64)  # by which Mmad or Fixpipe
        self._tokens: NDArray[Any] = np.full(count, None, object)  # what that one knew

    def may_start(self, pipe: Pipe, lane: _Lane, call: Call) -> bool:
        """Return whether an instruction's units are as it needs them; its pipe learns what that tells."""
        units = self._map.of(call)
        full = self._full[units]
        if not len(full):
            return True
        if full.any() if pipe is _M else not full.all():
            return False
        changed = self._changed[units]
        last = int(changed.argmax())
        token = self._tokens[units][last]
        if token is not None:
            lane.known[:] = map(max, lane.known, token)
            if pipe is _M:
                lane.freed = max(lane.freed, int(changed[last]))
        return True

    def finish(self, pipe: Pipe, lane: _Lane, call: Call) -> None:
        """Fill or free the units of an instruction that is the last one to need them.

        Full units say that the Mmad is through; free ones only that the Fixpipe has read them, not where its bytes are.
        """
        units = self._map.of(call)
        token = lane.known.copy()
        if pipe is _M:
            token[_M] = lane.count
        self._full[units] = pipe is _M
        self._changed[units] = lane.count
        box = np.empty((), object)  # else numpy would take the list for a row of values
        box[()] = token
        self._tokens[units] = box


def is_flagged(item: Item) -> bool:
    """Return whether an item is an Mmad or a Fixpipe with unit flag."""
    return type(item.call) is CubeCall and item.call.unit_flag != 0
