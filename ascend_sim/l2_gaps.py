"""What L2 would hold if the trips that a sampled run leaves out had been made.

They would have filled sectors: all others are older by that many when they are through, and the oldest have left. They
would have used again what the trips before them used: that stays. They would have written: dirty sectors leave in
their turn. Which sectors these are shows when the loop is over: those that nobody has used, between some that were
used before the gap and some that were used behind it. How many they are shows then, too: trips differ, and those behind
a gap miss some of what the ones left out would have brought. All ages are put right by that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascend_sim.l2 import L2
    from isa.tensor import GmBuffer

Loop = tuple[int, int]
"""A loop that all cores go through: the phase, and how many loops a core began in it before."""
OVERLAP = 3
"""Trips that run at a time, at most: what is used again is used again within so many."""
TOGETHER = 64
"""Dirty sectors that leave at a time."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """Sectors until the first core began a trip: missed by moves, filled by all, and used at all, if counted."""

    missed: int
    fills: int
    used: int


@dataclass(frozen=True, slots=True)
class _Gap:
    """The fills before and behind the trips that were left out, those of a trip, and its sectors used before."""

    before: int
    behind: int
    trip: int
    again: int


class _Ghosts:
    """Dirty sectors of trips that were left out, by fills: those of trips before them, again and again."""

    def __init__(self, stamps: NDArray[np.int64], period: int, first: int, last: int) -> None:
        self.scratch = self
        self._stamps = np.sort(stamps)
        self._period = period
        self._last = last
        self._gone = self._until(first)

    def clean(self, _: Any, fresh: int) -> tuple[int, int]:
        """Let those leave that are not younger than `fresh`; return how many, and when others are to be looked at."""
        reached = min(fresh, self._last)
        gone = max(self._gone, self._until(reached))
        count, self._gone = gone - self._gone, gone
        return count, reached + 1 if reached < self._last else 0

    def _until(self, fill: int) -> int:
        """Return how many have stamps up to a fill, since long ago."""
        first = int(self._stamps[0])
        turns, at = divmod(fill - first, self._period)
        return turns * len(self._stamps) + int(self._stamps.searchsorted(first + at, "right"))

    def end(self) -> None:
        """Let no more of them leave: they have got names."""
        self._last = 0


class Gaps:
    """Keeps L2 as it would be, for all cores of a launch together: of those at one place, the first one counts."""

    def __init__(self, l2: L2, buffers: Sequence[GmBuffer]) -> None:
        self._l2 = l2
        self._buffers = buffers
        self._marks: dict[Loop, list[_Mark]] = {}
        self._gaps: dict[Loop, dict[int, _Gap]] = {}
        self._ghosts: list[_Ghosts] = []
        self._inside: Counter[Loop] = Counter()
        self._over: set[Loop] = set()
        self._full: dict[Loop, int] = {}  # the trip from which on dirty sectors leave

    def begin(self, loop: Loop) -> None:
        """Know that a core begins a loop."""
        self._inside[loop] += 1

    def trip(self, loop: Loop, position: int, trip: int, *, settled: bool) -> None:
        """Know that a core begins a trip; `position` counts those that are made.

        A gap goes by the trips from a `settled` one on.
        """
        marks = self._marks.setdefault(loop, [])
        if position == len(marks):
            marks.append(self._mark(count=settled))
            if self._l2.write_back_bytes:
                self._full.setdefault(loop, trip)

    def full_from(self, loop: Loop) -> float:
        """Return the trip from which on dirty sectors leave L2; infinity where none does."""
        return self._full.get(loop, inf)

    def leave_out(self, loop: Loop, position: int, left_out: range, settled: int) -> None:
        """Let L2 be as if trips had been made before the one at a position, going by those from `settled` on."""
        gaps = self._gaps.setdefault(loop, {})
        if position in gaps:
            return
        l2 = self._l2
        since, now = self._marks[loop][settled], self._mark(count=True)
        trip = max(1, (now.missed - since.missed) // (position - settled))
        old = max(since.fills, now.fills - l2.capacity)
        period = max(1, (now.fills - old) // trip - OVERLAP) * trip
        stamps = self._dirty(old, old + period)
        if loop not in self._full:
            oldest = self._dirty(0, now.fills - OVERLAP * trip)
            until = (
                (int(oldest.min()) + l2.capacity - now.fills) // trip + 1 if len(oldest) else inf
            )
            if until < len(left_out):
                self._full[loop] = left_out.start + max(0, int(until))
        again = max(0, trip - (now.used - since.used) // (position - settled))
        gaps[position] = self._pass(len(left_out), trip, again, since.fills)
        if len(stamps):
            first = max(now.fills, l2.fills - l2.capacity)
            ghosts = _Ghosts(stamps, period, first, l2.fills)
            self._ghosts.append(ghosts)
            l2.expect(first + 1, None, ghosts)

    def end(self, loop: Loop) -> None:
        """Know that a core has left a loop. Behind the last one L2 holds what the trips would have left there."""
        self._inside[loop] -= 1
        gaps = self._gaps.get(loop)
        if not gaps or self._inside[loop] or loop in self._over:
            return
        self._over.add(loop)
        for ghosts in self._ghosts:
            ghosts.end()
        buffers = [buffer for buffer in self._buffers if buffer.scratch is not None]
        positions = sorted(gaps)
        holes = [self._holes(buffer, [gaps[at] for at in positions]) for buffer in buffers]
        self._put_right(
            loop,
            [
                sum(int((right - left - 1).sum()) for left, right in (one[gap] for one in holes))
                for gap in range(len(gaps))
            ],
            buffers,
        )
        for buffer, found in zip(buffers, holes, strict=True):
            for position, (left, right) in zip(positions, found, strict=True):
                self._hold(buffer, gaps[position], left, right)

    def _mark(self, *, count: bool) -> _Mark:
        held = [buffer.scratch.used() for buffer in self._buffers if count and buffer.scratch]
        return _Mark(self._l2.miss_bytes // self._l2.sector, self._l2.fills, sum(held))

    def _dirty(self, since: int, until: int) -> NDArray[np.int64]:
        """Return the stamps of dirty sectors that were used last between two fills."""
        held = [buffer.scratch for buffer in self._buffers if buffer.scratch]
        return np.concatenate(
            [np.zeros(0, np.int64), *(one.dirty_between(since, until) for one in held)]
        )

    def _pass(self, trips: int, trip: int, again: int, since: int) -> _Gap:
        """Let trips fill so many sectors each. What was used since some fills stays as young as it is."""
        l2 = self._l2
        before, filled = l2.fills, trips * trip
        fresh = before + filled - l2.capacity
        later = fresh - max(since, before - l2.capacity)
        if later > 0:
            for buffer in self._buffers:
                if buffer.scratch:
                    buffer.scratch.keep(since, later, fresh)
        l2.pass_by(filled)
        return _Gap(before, l2.fills, trip, again * trips)

    def _holes(
        self, buffer: GmBuffer, gaps: Sequence[_Gap]
    ) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """Return for each gap the sectors on the left and right of those that nobody has used, between used ones."""
        stamps = self._l2.table(buffer).stamps
        used = np.flatnonzero(stamps)
        wide = np.diff(used) > 1
        left, right = used[:-1][wide], used[1:][wide]
        low, high = np.minimum(stamps[left], stamps[right]), np.maximum(stamps[left], stamps[right])
        found = []
        for gap, following in zip(gaps, [*gaps[1:], None], strict=True):
            late = OVERLAP * gap.trip  # what was begun before the gap is used behind it, too
            chosen = (low < gap.behind + late) & (high >= gap.behind)
            if following is not None:
                chosen &= high < following.behind
            found.append((left[chosen], right[chosen]))
        return found

    def _put_right(self, loop: Loop, filled: Sequence[int], buffers: Sequence[GmBuffer]) -> None:
        """Let all be as old as if the trips of a loop's gaps had filled what they would have filled.

        That is what nobody has used, and what they would have used again and missed.
        """
        gaps = self._gaps[loop]
        at, to = [0], [0]
        for position, count in zip(sorted(gaps), filled, strict=True):
            gap = gaps[position]
            before = to[-1] + gap.before - at[-1]
            at += [gap.before, gap.behind]
            to += [before, before + max(1, gap.again + count)]
        last = self._l2.fills + 1
        at.append(last)
        to.append(to[-1] + last - at[-2])

        def renamed(fills: Any) -> Any:
            return np.rint(np.interp(fills, at, to)).astype(np.int64)

        self._l2.rename(renamed, buffers)
        for marks in self._marks.values():
            marks[:] = [replace(mark, fills=int(renamed(mark.fills))) for mark in marks]
        for others in self._gaps.values():
            for position, gap in others.items():
                before, behind = renamed([gap.before, gap.behind]).tolist()
                others[position] = replace(gap, before=before, behind=behind)

    def _hold(self, buffer: GmBuffer, gap: _Gap, left: NDArray[Any], right: NDArray[Any]) -> None:
        """Hold the sectors that nobody has used, between some on the left and on the right of a gap's."""
        stamps = self._l2.table(buffer).stamps
        young = np.maximum(stamps[left], stamps[right]) > self._l2.fills - self._l2.capacity
        for start, end in zip(left[young].tolist(), right[young].tolist(), strict=True):
            length = end - start
            falling = _usual(stamps[end : end + length]) < _usual(
                stamps[max(0, start + 1 - length) : start + 1]
            )
            fills = (gap.behind, gap.before) if falling else (gap.before, gap.behind)
            self._held(buffer, start + 1, end, fills)

    def _held(self, buffer: GmBuffer, start: int, end: int, fills: tuple[int, int]) -> None:
        """Hold what has not left of some sectors that were filled one by one, between two fills."""
        l2 = self._l2
        table = l2.table(buffer)
        stamps = np.linspace(*fills, end - start + 2)[1:-1].astype(np.int64)
        fresh = np.flatnonzero(stamps > l2.fills - l2.capacity)
        if not len(fresh):
            return
        first, last = int(fresh[0]), int(fresh[-1]) + 1
        dirty = table.dirty[start - 1] or table.dirty[end]
        table.stamps[start + first : start + last] = stamps[first:last]
        if dirty:
            table.dirty[start + first : start + last] = True
            for at in range(first, last, TOGETHER):
                some = min(TOGETHER, last - at)
                l2.expect(int(stamps[at : at + some].max()), (start + at, 1, 1, some), buffer)


def _usual(stamps: NDArray[np.int64]) -> float:
    """Return the median of what has been used."""
    return float(np.median(stamps[stamps > 0]))
