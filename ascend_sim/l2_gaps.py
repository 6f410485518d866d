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

    trip: int
    missed: int
    fills: int
    used: int


@dataclass(frozen=True, slots=True)
class _Gap:
    """The fills before and behind the trips that were left out, those of a trip, and its sectors used before.

    `kept`: what was used in the last so many fills before is as young behind.
    """

    before: int
    behind: int
    trip: int
    again: int
    kept: int


class _Ghosts:
    """Dirty sectors of trips that were left out, as many for each fill as the trips before them have left.

    They leave evenly. Those that were used last without a fill in between leave all at once (sums of a head that is
    through), but when they would is not known exactly: at the wrong time they hold up all cores together.
    """

    def __init__(self, dirty: int, fills: int, first: int, last: int) -> None:
        self.scratch = self
        self._dirty = dirty
        self._fills = fills
        self._last = last
        self._gone = self._until(first)

    def clean(self, _: Any, fresh: int) -> tuple[int, int]:
        """Let those leave that are not younger than `fresh`; return how many, and when others are to be looked at."""
        reached = min(fresh, self._last)
        gone = max(self._gone, self._until(reached))
        count, self._gone = gone - self._gone, gone
        return count, reached + 1 if reached < self._last else 0

    def _until(self, fill: int) -> int:
        return fill * self._dirty // self._fills

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
        self._first: dict[Loop, int] = {}  # the position of the first trip that counts
        self._full: dict[Loop, int] = {}  # the trip from which on dirty sectors leave

    def begin(self, loop: Loop) -> None:
        """Know that a core begins a loop."""
        self._inside[loop] += 1

    def trip(self, loop: Loop, position: int, trip: int, counted: bool) -> None:
        """Know that a core begins a trip; `position` counts those that are made.

        A gap goes by the trips since one of those that are `counted`.
        """
        marks = self._marks.setdefault(loop, [])
        if position == len(marks):
            marks.append(self._mark(trip, count=counted))
            if counted:
                self._first.setdefault(loop, position)
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
        marks = self._marks[loop]
        since, now = marks[settled], self._mark(left_out.start, count=True)
        missed, used = now.missed - since.missed, now.used - since.used
        again = max(0, missed - used) // (position - settled)
        first = marks[self._first[loop]]
        rate = again + (now.used - first.used + self._unused(loop)) / (now.trip - first.trip)
        trip = max(1, round(rate))
        old = max(marks[max(gaps)].fills if gaps else first.fills, now.fills - l2.capacity)
        period = max(1, (now.fills - old) // trip - OVERLAP) * trip
        dirty = self._even(old, old + period)
        if loop not in self._full:
            oldest = self._dirty(0, now.fills - OVERLAP * trip)
            until = (
                (int(oldest.min()) + l2.capacity - now.fills) // trip + 1 if len(oldest) else inf
            )
            if until < len(left_out):
                self._full[loop] = left_out.start + max(0, int(until))
        behind = first.fills + round(rate * (left_out.stop - first.trip))
        filled = max(behind - now.fills, len(left_out) * trip // 2)
        kept = self._pass(filled, max(since.fills, now.fills - OVERLAP * trip))
        gaps[position] = _Gap(now.fills, l2.fills, trip, again * len(left_out), kept)
        if dirty:
            gone = max(l2.fills - l2.capacity, now.fills - kept)
            ghosts = _Ghosts(dirty, period, gone, l2.fills - kept)
            self._ghosts.append(ghosts)
            l2.expect(gone + 1, None, ghosts)

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
        for position in positions:
            self._let_go(gaps[position], buffers)
        sides = self._sides(loop)
        holes = [_holes(self._l2.table(buffer).stamps, sides) for buffer in buffers]
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

    def _mark(self, trip: int, *, count: bool) -> _Mark:
        held = [buffer.scratch.used() for buffer in self._buffers if count and buffer.scratch]
        return _Mark(trip, self._l2.miss_bytes // self._l2.sector, self._l2.fills, sum(held))

    def _dirty(self, since: int, until: int) -> NDArray[np.int64]:
        """Return the stamps of dirty sectors that were used last between two fills."""
        held = [buffer.scratch for buffer in self._buffers if buffer.scratch]
        return np.concatenate(
            [np.zeros(0, np.int64), *(one.dirty_between(since, until) for one in held)]
        )

    def _even(self, since: int, until: int) -> int:
        """Let dirty sectors that were used last between two fills leave evenly, in their order; return how many.

        Many have been used last without a fill in between, and would leave all at once.
        """
        count = 0
        for buffer in self._buffers:
            if buffer.scratch is None:
                continue
            found = len(buffer.scratch.dirty_between(since, until))
            count += found
            if not found:
                continue
            table = self._l2.table(buffer)
            used = table.dirty & (table.stamps > since) & (table.stamps <= until)
            sectors = np.flatnonzero(used)
            sectors = sectors[np.argsort(table.stamps[sectors], kind="stable")]
            stamps = np.linspace(since, until, found + 1)[1:].astype(np.int64)
            table.stamps[sectors] = stamps
            for at in range(0, found, TOGETHER):
                some = slice(at, at + TOGETHER)
                self._l2.expect(int(stamps[some][-1]), sectors[some], buffer)
        return count

    def _pass(self, filled: int, since: int) -> int:
        """Let so many sectors be filled. What was used since some fills stays as young as it is, if it would leave.

        Return by how many fills that is younger than what is filled: it changes places with the last of that.
        """
        l2 = self._l2
        before = l2.fills
        kept = before - since if before + filled - l2.capacity > since else 0
        if kept:
            for buffer in self._buffers:
                if buffer.scratch:
                    buffer.scratch.keep(since, filled, since)
        l2.pass_by(filled)
        return kept

    def _let_go(self, gap: _Gap, buffers: Sequence[GmBuffer]) -> None:
        """Let what was kept young in a gap, and has not been used again behind it, be as old as it is."""
        for buffer in buffers:
            table = self._l2.table(buffer)
            idle = (table.stamps > gap.behind - gap.kept) & (table.stamps <= gap.behind)
            table.stamps[idle] -= gap.behind - gap.before
            table.dirty[idle & (table.stamps <= self._l2.fills - self._l2.capacity)] = False

    def _unused(self, loop: Loop) -> int:
        """Return how many sectors a loop's gaps so far have left unused, while it still runs.

        Cores may work far from each other: what lies between them has not been used yet, and is no hole. On one side of
        a hole are sectors that were used shortly before the gap.
        """
        marks, sides = self._marks[loop], self._sides(loop)
        count = 0
        for buffer in self._buffers if sides else ():
            if buffer.scratch is None:
                continue
            rows = buffer.scratch  # as long as these will do, they are faster than a table
            stamps = self._l2.table(buffer).stamps
            buffer.scratch = rows
            for position, (left, right) in zip(
                self._gaps[loop], _holes(stamps, sides), strict=True
            ):
                recent = np.minimum(stamps[left], stamps[right]) > marks[position - OVERLAP].fills
                count += int((right - left - 1)[recent].sum())
        return count

    def _sides(self, loop: Loop) -> list[tuple[int, int]]:
        """Return the fills behind each gap, and those until what was begun before it is over."""
        marks = self._marks[loop]
        return [
            (gap.behind, marks[min(position + OVERLAP, len(marks) - 1)].fills)
            for position, gap in self._gaps[loop].items()
        ]

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


def _holes(
    stamps: NDArray[np.int64], sides: Sequence[tuple[int, int]]
) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Return for each gap the sectors on the left and right of those that nobody has used, between used ones.

    What was begun before a gap is used behind it, too: `sides` has the fills behind each gap and until that is over.
    """
    used = np.flatnonzero(stamps)
    wide = np.diff(used) > 1
    left, right = used[:-1][wide], used[1:][wide]
    low, high = np.minimum(stamps[left], stamps[right]), np.maximum(stamps[left], stamps[right])
    found = []
    for (behind, late), following in zip(sides, [*sides[1:], None], strict=True):
        chosen = (low < late) & (high >= behind)
        if following is not None:
            chosen &= high < following[0]
        found.append((left[chosen], right[chosen]))
    return found


def _usual(stamps: NDArray[np.int64]) -> float:
    """Return the median of what has been used."""
    return float(np.median(stamps[stamps > 0]))
