"""Edits of the order between cores: flags that cores count for each other, and meetings of all."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from ascend_sim.cross_core import USER_IDS
from ascend_sim.doctor.loops import Visits, counter_of
from ascend_sim.doctor.parts import CallPart, FilePart, Remedy
from ascend_sim.doctor.source import Edit, Key, key_of
from ascend_sim.errors import Finding
from ascend_sim.trace import Item, Kind, Log
from isa.types import CoreKind, Pipe

if TYPE_CHECKING:
    from ascend_sim.stage import Data

SET, WAIT = "cross_core_set_flag", "cross_core_wait_flag"
MOVERS = (Pipe.MTE2, Pipe.MTE3, Pipe.FIX)
"""The pipes with which cores meet in GM."""
NEAR = 8
"""Places around a transfer that are tried for a set or a wait; further ones only where a loop begins or ends."""
ALL, PAIR, TOGETHER = 0, 1, 2
"""Modes of a set: all cores of its kind, the vector cores of an AI Core, from one kind to the other."""

PIPES = tuple(pipe.name for pipe in Pipe if pipe is not Pipe.S)
MOST_TOUCHES = 300
"""Accesses of a line that are looked at to tell which of two is meant to come first."""

Made = tuple[float, Remedy]
Line = tuple[str, int]
"""A file and a line of it."""
Access = tuple[str, int, str]
"""A file, a line of it, the pipe at work there."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A statement of a file and the pipe that it puts to work."""

    part: FilePart
    key: Key
    pipe: str

    def edit(self, how: str, text: str) -> Edit:
        """Return the edit that adds a text before or after it."""
        return Edit(self.part.source.file, self.key, how, text)

    def same(self, key: Key) -> Spot:
        """Return another statement of the file."""
        return replace(self, key=key)


@dataclass(frozen=True, slots=True)
class Touch:
    """An access to bytes of GM, from its first to its last cycle."""

    buffer: int
    low: int
    high: int
    start: int
    end: int

    def meets(self, other: Touch) -> bool:
        """Return whether two share bytes."""
        return self.buffer == other.buffer and self.low < other.high and other.low < self.high


class Between:
    """Makes up edits for findings about cores that share bytes or wait for each other. Costs as in `Remedies`."""

    def __init__(
        self, log: Log, part_of: Callable[[str], FilePart | None], before: Data | None = None
    ) -> None:
        self._log = log
        self._part_of = part_of
        self._before = before or {}
        self._visits = Visits(log)
        self._is_mix = len({core.kind for core in log.cores}) == len(CoreKind)

    def of_race(self, finding: Finding, others: Iterable[Finding]) -> Iterator[Made]:
        """Order two accesses: a flag from the first one's core to the second one's, in each way around their loops.

        Where the second one comes a trip after the first one, its core waits at the end of its trip.
        """
        ends = _ends_of(finding)
        if ends is None:
            return
        came, turned = ends, ends[::-1]
        kinds = [self._kinds(end[:2]) for end in ends]
        if kinds[0] & kinds[1]:
            yield from self._meetings(*came, kinds[0])
            return
        what = finding.code.rpartition("-")[2]
        if what == "war":
            raw = [_ends_of(one) for one in others if one.code == "race-blocks-raw"]
            meant = turned if turned in raw or self._is_early(*came) else came
            yield from self._pairs(*meant, 1.5)
            return
        yield from self._pairs(*came, 1.5)
        if what == "raw" and self._is_overrun(*came):
            yield from self._pairs(*turned, 3.0)

    def _pairs(self, first: Access, second: Access, cost: float) -> Iterator[Made]:
        """Raise a flag behind the first access or what is around it, wait before the second, or at its trip's end."""
        number, pipe = self._free_id, first[2]
        if number is None or pipe not in PIPES:
            return
        for far, spot in enumerate(self._around(*first[:2])):
            raised = spot.edit("after", self._set(spot.part, number, TOGETHER, pipe))
            for near, other in enumerate(self._around(*second[:2])):
                wait = self._wait(other.part, number)
                price = cost + (far + near) / 8
                yield price, (raised, other.edit("before", wait))
                body = other.part.source.body_of(other.key)
                if isinstance(other.part.source.owner_of(other.key), (ast.For, ast.While)):
                    end = other.same(key_of(body[-1])).edit("after", wait)
                    yield price + 1 / 16, (raised, end)

    def _is_early(self, read: Access, write: Access) -> bool:
        """Return whether the line that reads is meant to come after the one that writes, as far as a run can tell.

        Some bytes were read before that line had written them: nothing stood there, or what another line wrote, and
        nobody reads them afterwards.
        """
        writes = self._touches(write, "writes")
        everyone = [self._touches(None, role) for role in ("reads", "writes")]
        for one in self._touches(read, "reads"):
            met = [other for other in writes if one.meets(other)]
            if not met or any(other.end <= one.start for other in met):
                continue
            first = min(other.start for other in met)
            again = any(late.meets(other) and late.start >= first
                        for late in everyone[0] for other in met)  # fmt: skip
            filled = any(other.meets(one) and other.end <= one.start for other in everyone[1])
            data = self._before.get(one.buffer)
            empty = data is None or not data[one.low : one.high].any()
            if not again if filled else empty:
                return True
        return False

    def _is_overrun(self, write: Access, read: Access) -> bool:
        """Return whether bytes were written again before the line that reads them came to them."""
        writes, reads = self._touches(write, "writes"), self._touches(read, "reads")
        return any(
            one.meets(other) and one.end <= other.start
            and not any(late.meets(other) and one.start <= late.start <= other.start for late in reads)
            for one, other in pairwise(writes)
        )  # fmt: skip

    def _touches(self, access: Access | None, role: str) -> list[Touch]:
        """Return the first accesses to GM of a line, or of all lines, in the order of the cores' programs."""
        found = []
        for line, _, item in self._items():
            if access is None or line == access[:2]:
                for one in getattr(item.call, role, None) or ():
                    if one.buffer is not None and item.start >= 0:
                        touch = Touch(one.buffer.index, one.low, one.high, item.start, item.end)
                        found.append(touch)
            if len(found) >= (MOST_TOUCHES if access is not None else 10 * MOST_TOUCHES):
                break
        return found

    def _meetings(self, first: Access, second: Access, kinds: set[CoreKind]) -> Iterator[Made]:
        """Let cores of one kind set and wait at one place; only mix kernels have these flags."""
        number, pipe = self._free_id, first[2]
        if number is None or pipe not in PIPES or not self._is_mix:
            return
        for mode in (PAIR, ALL) if kinds == {CoreKind.AIV} else (ALL,):
            for how, line in (("after", first), ("before", second)):
                for far, spot in enumerate(self._around(*line[:2])):
                    text = f"{self._set(spot.part, number, mode, pipe)}\n{self._wait(spot.part, number)}"
                    yield 3.0 + (mode == ALL) / 4 + far / 8, (spot.edit(how, text),)

    def of_wait(
        self, part: FilePart, wait: CallPart, findings: Iterable[Finding]
    ) -> Iterator[Made]:
        """Give a wait that nothing ends its set: on the other kind of core, on its own, or one of another flag."""
        line = part.source.file, wait.key[0]
        mine = self._kinds(line)
        for spot, cost in self._spots(set(CoreKind) - mine or set(CoreKind), findings):
            text = self._set(spot.part, self._flag(spot.part, part, wait), TOGETHER, spot.pipe)
            cost += (spot.pipe == "MTE2") / 4
            yield from self._near(spot, text, "after", cost)
            yield from self._but_for_some(spot, text, None, cost)
        pipes = {pipe for uses in self._uses.values() for kind, pipe in uses if kind in mine}
        for pipe in sorted(pipes):
            for mode in (ALL, PAIR):
                text = self._set(part, wait.words[0], mode, pipe)
                yield 1.5, (Edit(part.source.file, wait.key, "before", text),)
        for other, call in self._calls(SET):
            yield from _renamed(other, call, self._flag(other, part, wait))
            yield from _renamed(part, wait, self._flag(part, other, call))

    def of_set(self, part: FilePart, call: CallPart, findings: Iterable[Finding]) -> Iterator[Made]:
        """Give a set that is left over a wait, on the cores that count it."""
        line = part.source.file, call.key[0]
        mine = self._kinds(line)
        if self._mode_of.get(line, TOGETHER) == TOGETHER:
            for spot, cost in self._spots(set(CoreKind) - mine or mine, findings):
                text = self._wait(spot.part, self._flag(spot.part, part, call))
                yield from self._near(spot, text, "before", cost)
                yield from self._but_for_some(spot, text, self._left(line), cost)
        else:
            text = self._wait(part, call.words[0])
            yield 1.0, (Edit(part.source.file, call.key, "after", text),)
        for other, wait in self._calls(WAIT):
            yield from _renamed(other, wait, self._flag(other, part, call))
            yield from _renamed(part, call, self._flag(part, other, wait))

    def of_meeting(
        self, part: FilePart, call: CallPart, findings: Iterable[Finding]
    ) -> Iterator[Made]:
        """Let cores that have no meeting of all come to one that others wait at."""
        mine = self._kinds((part.source.file, call.key[0]))
        for spot, cost in self._spots(set(CoreKind) - mine or mine, findings):
            text = f"{spot.part.prefix}sync_all({call.arguments})"
            for how, side in (("before", 0.0), ("after", 1 / 16)):
                for far, place in enumerate(self._around(spot.part.source.file, spot.key[0])):
                    yield cost + side + far / 8, (place.edit(how, text),)

    def _near(self, spot: Spot, text: str, how: str, cost: float) -> Iterator[Made]:
        """Try a statement beside a transfer and what is around it, and at the places near those."""
        for far, place in enumerate(self._around(spot.part.source.file, spot.key[0])):
            yield cost + far / 8, (place.edit(how, text),)
            for distance, gap in place.part.gaps(place.key, most=NEAR if far == 0 else NEAR // 2):
                wrong_side = (distance < 0) != (how == "before")
                price = cost + (far + abs(distance)) / 8 + (0.5 if wrong_side else 0.0)
                yield price, (replace(gap, text=text),)

    def _but_for_some(
        self, spot: Spot, text: str, left: dict[int, int] | None, cost: float
    ) -> Iterator[Made]:
        """Let the trips of the loops around a transfer wait but for the first ones, or set but for the last ones."""
        for far, place in enumerate(self._around(spot.part.source.file, spot.key[0])):
            source = place.part.source
            loop = source.owner_of(place.key)
            counted = counter_of(loop)
            if counted is None or not isinstance(loop, ast.For):
                continue
            counter, trips = counted
            if left is None:
                guards, how = [f"if {counter} + {number} < {trips}:" for number in (1, 2)], "after"
            else:
                first = self._visits.first_trips(source, loop, left)
                guards, how = [f"if {counter} >= {number}:" for number in first], "before"
            for near, guard in enumerate(guards):
                yield cost + far / 8 + near / 16 + 0.5, (place.edit(how, f"{guard}\n    {text}"),)

    def _left(self, line: Line) -> dict[int, int]:
        """Return by core how many of the flags that a line sets nobody has taken there, if each set counts there."""
        flags = [one for place, _, one in self._flags if place == line]
        sets = [one.core for one in flags]
        most = max(map(sets.count, set(sets)), default=0)
        numbers = {one.event_id for one in flags}
        waits = [
            one.core
            for _, _, one in self._flags
            if one.kind is Kind.WAIT_FLAG and one.event_id in numbers
        ]
        return {
            number: most - waits.count(number)
            for number, core in enumerate(self._log.cores)
            if core.kind not in self._kinds(line)
        }

    # ---- the program ------------------------------------------------------------------------

    def _around(self, file: str, line: int) -> Iterator[Spot]:
        """Yield a statement, what is around it in its function, then those of the calls that lead there."""
        frames = next(
            (one.frames for one in self._log.sites if one.frames[:1] and one.frames[0][:2] == (file, line)),
            (),
        )  # fmt: skip
        for name, number, _ in frames:
            part = self._part_of(name)
            key = part.source.at_line(number) if part is not None else None
            while part is not None and key is not None and part.source.function_of(key) is not None:
                yield Spot(part, key, "")
                owner = part.source.owner_of(key)
                inside = isinstance(owner, ast.stmt) and not isinstance(owner, ast.FunctionDef)
                key = key_of(owner) if inside else None  # type: ignore[arg-type]

    def _items(self) -> Iterator[tuple[Line, CoreKind, Item]]:
        sites = self._log.sites
        for core in self._log.cores:
            for item in core.items:
                for file, line, _ in sites[item.site].frames[:1]:
                    yield (file, line), core.kind, item

    @cached_property
    def _uses(self) -> dict[Line, set[tuple[CoreKind, str]]]:
        """The lines that move something to or from GM: which kinds of core come there, with which pipe."""
        found: dict[Line, set[tuple[CoreKind, str]]] = {}
        for line, kind, item in self._items():
            if item.kind is Kind.INSTRUCTION and item.pipe in MOVERS:
                found.setdefault(line, set()).add((kind, item.pipe.name))
        return found

    @cached_property
    def _flags(self) -> list[tuple[Line, CoreKind, Item]]:
        """All sets and waits of flags between cores that the run came to."""
        return [
            one for one in self._items()
            if one[2].kind in (Kind.SET_FLAG, Kind.WAIT_FLAG) and one[2].event is None
        ]  # fmt: skip

    @cached_property
    def _free_id(self) -> str | None:
        used = {item.event_id for _, _, item in self._flags}
        return next((str(number) for number in range(USER_IDS) if number not in used), None)

    @cached_property
    def _mode_of(self) -> dict[Line, int]:
        return {line: one.mode for line, _, one in self._flags if one.kind is Kind.SET_FLAG}

    def _kinds(self, line: Line) -> set[CoreKind]:
        """Return the kinds of core that come to a line."""
        found = {kind for kind, _ in self._uses.get(line, ())}
        return found | {kind for place, kind, _ in self._flags if place == line}

    def _spots(
        self, kinds: Iterable[CoreKind], findings: Iterable[Finding]
    ) -> Iterator[tuple[Spot, float]]:
        """Yield the transfers of some kinds of core and what an edit beside them costs: less where races are."""
        wanted = set(kinds)
        races = {end[:2] for one in findings for end in _ends_of(one) or ()}
        for (file, line), uses in sorted(self._uses.items(), key=lambda one: one[0]):
            part = self._part_of(file)
            key = part.source.at_line(line) if part is not None else None
            for kind, pipe in sorted(uses, key=str):
                if kind in wanted and part is not None and key is not None:
                    yield Spot(part, key, pipe), 0.5 if (file, line) in races else 1.0

    def _calls(self, name: str) -> Iterator[tuple[FilePart, CallPart]]:
        """Yield the calls of a name in the files that this run came to."""
        for file in sorted({line[0] for line, _, _ in self._flags}):
            part = self._part_of(file)
            for call in part.calls if part is not None else ():
                if call.name == name and call.words:
                    assert part is not None
                    yield part, call

    # ---- words ------------------------------------------------------------------------------

    def _flag(self, part: FilePart, owner: FilePart, call: CallPart) -> str:
        """Return how a file spells the flag of a call of another one: by its name where it knows it."""
        word = call.words[0]
        if part is owner or word.isdigit() or word in part.names:
            return word
        line = owner.source.file, call.key[0]
        return next((str(one.event_id) for place, _, one in self._flags if place == line), word)

    def _set(self, part: FilePart, flag: str, mode: int, pipe: str) -> str:
        word = next(
            (call.words[1] for other, call in self._calls(SET)
             if other is part and len(call.words) == 3 and self._mode_of.get((part.source.file, call.key[0])) == mode),
            str(mode),
        )  # fmt: skip
        return f"{part.prefix}{SET}({flag}, {word}, {part.pipes}.PIPE_{pipe})"

    def _wait(self, part: FilePart, flag: str) -> str:
        """Return the text of a wait, with what other waits of the file say beside the flag."""
        rest = next((call.words[1:] for other, call in self._calls(WAIT) if other is part), [])
        return f"{part.prefix}{WAIT}({', '.join([flag, *rest])})"


def _ends_of(finding: Finding) -> tuple[Access, Access] | None:
    """Return the earlier and the later access of a race between cores."""
    if not finding.code.startswith("race-blocks") or not finding.file or not finding.related:
        return None
    other = finding.related[0]
    earlier = other["file"], other["line"], other["pipe"]
    return earlier, (finding.file, finding.line, finding.pipe)


def _renamed(part: FilePart, call: CallPart, flag: str) -> Iterator[Made]:
    """Yield the edit that gives a call another flag."""
    if call.words and call.words[0] != flag:
        arguments = ", ".join([flag, *call.words[1:]])
        text = replace(call, arguments=arguments).text(call.name)
        yield 2.0, (Edit(part.source.file, call.key, "replace", text),)
