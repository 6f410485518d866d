"""Trips of loops, some of which a sampled run leaves out: which ones, and what those that it makes tell.

A kernel says `for trip in asc.range(count)`, or `sim.trips(count, kind)` where its trips differ. In a run that is not
sampled both count, and nothing else. Python's own `range` is never sampled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from statistics import pstdev
from sys import _getframe
from typing import TYPE_CHECKING, Any

from ascend_sim.l2_gaps import Gaps
from ascend_sim.trace import Kind
from isa.types import CoreKind, Pipe

if TYPE_CHECKING:
    from ascend_sim.core import Core
    from ascend_sim.l2 import L2
    from ascend_sim.program import Program
    from ascend_sim.trace import CoreLog, Item
    from isa.tensor import GmBuffer

HEAD, MIDDLE, TAIL = 20, 14, 8
"""Trips that are simulated: at the beginning, half way from there to the end, and there.

Cores draw level in the first ones, and how far apart they are then is how far apart they stay in the gap behind.
"""
START, WARM, DRAIN = 12, 4, 2
"""Trips that do not count: at the start, behind a gap until L2 has what it needs, and at the end."""
FILLING = 2
"""Trips that do not count when dirty sectors begin to leave L2."""
EARLY = 4
"""Trips until what all of them use is in L2: what the others bring into it counts from then on."""
PERIOD = 2
"""Gaps are multiples of it, so that buffers that are used in turn stay in turn."""
WORTHWHILE = 1.3
"""So many times the trips that are simulated a loop must have, or all of them are."""
SHORT, MOST = 64, 4
"""Of loops whose trips have fewer items than SHORT, more trips are simulated: up to MOST times as many."""

DRAWING_LEVEL = 0.85
"""Cores draw level if between two of the trips before a gap they come so much closer to each other."""

Counts = Counter[tuple[str, str, str]]
"""Instructions and bytes: what, core, pipe."""
Features = Callable[[int], float | Sequence[float]]
"""What the time of a trip depends on, as numbers that it grows with."""


def chosen(count: int, scale: int = 1) -> list[int]:
    """Return the trips of `count` that are simulated, in order: all of them where few would be left out."""
    kept = scale * (HEAD + MIDDLE + TAIL)
    left = count - kept
    if count < WORTHWHILE * kept:
        return list(range(count))
    first = left // 2 // PERIOD * PERIOD
    second = (left - first) // PERIOD * PERIOD
    head = scale * HEAD + left - first - second
    middle = head + first
    tail = count - scale * TAIL
    return [*range(head), *range(middle, middle + scale * MIDDLE), *range(tail, count)]


@dataclass(slots=True)
class Stretch:
    """One loop on one core. `marks` has the item that was issued last before each trip, and before the loop's end.

    `counts` has what each trip issued, by the names of `tally`.
    """

    site: str
    ordinal: int
    core: int
    kind: CoreKind
    phase: int
    count: int
    scale: int
    features: Features | None
    trips: list[int] = field(default_factory=list)
    marks: list[Item | None] = field(default_factory=list)
    counts: list[Counts] = field(default_factory=list)
    settling: list[float] = field(default_factory=list)
    """By gap: what a trip leaves of the distances between cores; 1 where they do not draw level."""
    loop: tuple[int, int] = (0, 0)
    """The phase, and how many loops the core began in it before."""
    full_from: float = inf
    """The trip from which on dirty sectors leave L2."""

    @property
    def times(self) -> list[int]:
        """The cycles of the marks, when the run is over."""
        return [0 if mark is None else mark.issue for mark in self.marks]

    @property
    def gaps(self) -> list[int]:
        """Positions of the trips behind which others are left out."""
        return [i for i, (a, b) in enumerate(pairwise(self.trips)) if b != a + 1]

    @property
    def settled(self) -> int:
        """Position of the first trip since the last gap that counts."""
        gaps = self.gaps
        return gaps[-1] + 1 + WARM * self.scale if gaps else START * self.scale


class Sampler:
    """Decides for all cores of a launch which trips they make, and keeps what they tell."""

    def __init__(self, l2: L2, buffers: Sequence[GmBuffer], leading: CoreKind) -> None:
        self.stretches: list[Stretch] = []
        self.totals: Counts = Counter()
        self.left_early: set[str] = set()  # places of loops that do not run to their end
        self._l2 = Gaps(l2, buffers)
        self._leading = leading  # the cores that the others of an AI Core follow
        self._scales: dict[int, int] = {}  # by number of trips: cores that meet must choose alike
        self._inside: set[Program] = set()
        self._seen: Counter[tuple[int, str]] = Counter()
        self._cores: dict[tuple[str, int, CoreKind], list[Stretch]] = {}  # a loop on each core
        self._last: dict[int, Item] = {}  # what each core issued last before its log was emptied
        self._begun: Counter[tuple[int, int]] = Counter()  # loops, by core and phase

    def trips(self, program: Program, count: int, features: Features | None) -> Iterable[int]:
        """Return the trips that a core makes of a loop. Loops inside one that leaves some out make all of theirs."""
        if program in self._inside:
            return range(count)
        if len(chosen(count)) == count:
            return self._all(program, count)
        frame = _getframe(3)
        return self._walk(program, count, features, f"{frame.f_code.co_filename}:{frame.f_lineno}")

    def _all(self, program: Program, count: int) -> Iterator[int]:
        """Yield all trips, and count what each has issued."""
        for trip in range(count):
            yield trip
            self._take(program)

    def _walk(
        self, program: Program, count: int, features: Features | None, site: str
    ) -> Iterator[int]:
        core = program.core
        ordinal = self._seen[core.index, site]
        self._seen[core.index, site] += 1
        first = program.issued
        stretch = Stretch(site, ordinal, core.index, core.kind, program.phase, count, 1, features)
        self._take(program)
        self._cores.setdefault((site, ordinal, core.kind), []).append(stretch)
        self._inside.add(program)
        loop = program.phase, self._begun[core.index, program.phase]
        self._begun[core.index, program.phase] += 1
        self._l2.begin(loop)
        stretch.loop = loop
        before = -1
        try:
            for trip in self._chosen(stretch, program, first):
                position = len(stretch.trips)
                if trip != before + 1:
                    left_out = range(before + 1, trip)
                    _then(program, self._l2.leave_out, loop, position, left_out, stretch.settled)
                counted = position in (EARLY * stretch.scale, stretch.settled)
                _then(program, self._l2.trip, loop, position, trip, counted)
                stretch.trips.append(trip)
                stretch.marks.append(self._last.get(core.index))
                yield trip
                before = trip
                stretch.counts.append(self._take(program))
            stretch.marks.append(self._last.get(core.index))
            _then(program, self._l2.end, loop)
            if len(stretch.trips) < count:
                self.stretches.append(stretch)
        finally:
            self._inside.discard(program)
            if len(stretch.marks) == len(stretch.trips) and stretch.gaps:
                self.left_early.add(site)

    def _chosen(self, stretch: Stretch, program: Program, first: int) -> Iterator[int]:
        """Yield the trips; how many it takes is settled by the items of the first one."""
        yield 0
        count = stretch.count
        if count not in self._scales:
            items = max(program.issued - first, 1)
            self._scales[count] = min(max(SHORT // items, 1), MOST)
        stretch.scale = self._scales[count]
        yield from chosen(count, stretch.scale)[1:]

    def settle(self) -> None:
        """Let all loops know how those that lead drew level before their first gap, and when L2 was full."""
        stays = {
            (cores[0].phase, cores[0].ordinal): _stays(cores)
            for (_, _, kind), cores in self._cores.items()
            if kind is self._leading and cores[0].gaps
        }
        for stretch in self.stretches:
            stretch.full_from = self._l2.full_from(stretch.loop)
            first = stays.get((stretch.phase, stretch.ordinal), 1.0)
            stretch.settling = [first, *(1.0 for _ in stretch.gaps[1:])]

    def _take(self, program: Program) -> Counts:
        """Count what a core has issued since the last time, and forget all but its last item: logs are large."""
        log = program.core.log
        if log.items:
            self._last[program.core.index] = log.items[-1]
        found = counted(log)
        log.spilled += len(log.items)  # as if they had gone to disk
        log.items.clear()
        log.stalls.clear()
        self.totals += found
        return found


def _then(program: Program, do: Callable[..., None], *args: Any) -> None:
    """Do something when a core gets there: the kernel's Python is far ahead of it."""

    def now(_: Core) -> int:
        do(*args)
        return 0

    program.stand_still(now)


def _stays(cores: Sequence[Stretch]) -> float:
    """Return what each trip leaves of the distances between cores, 1 if they do not draw level.

    Cores start one after the other and share the memory system. Those behind often find it free and catch up, and
    then all want the same at the same time and are slower, until their distances are what chance makes them.
    """
    late = min(one.gaps[0] for one in cores)
    early = late // 2
    before, now = (pstdev(one.times[at] for one in cores) for at in (early, late))
    return float((now / before) ** (1 / (late - early))) if now < DRAWING_LEVEL * before else 1.0


def counted(log: CoreLog) -> Counts:
    """Return the instructions and bytes of a core's log by pipe, those of the scalar unit left out."""
    found: Counts = Counter()
    core = log.kind.value
    for step, times in Counter(item.step for item in log.items).items():
        if step.kind is Kind.INSTRUCTION and step.pipe is not Pipe.S:
            found["instructions", core, step.pipe.name] += times
            if step.bytes:
                found["bytes", core, step.pipe.name] += times * step.bytes
    return found


def trips_of(program: Any, count: int, features: Features | None = None) -> Iterable[int]:
    """Return the trips of a loop that a program makes: all, unless its run is sampled."""
    sampler = program.session.sampler
    return range(count) if sampler is None else sampler.trips(program, count, features)
