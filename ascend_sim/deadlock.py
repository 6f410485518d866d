"""What a deadlock is told as: who waits where and for what, how many sets there were, and who waits for each other.

Units are the pipes and the scalar unit (S) of each core. A unit that waits points at those whose next step would end
its wait; going from one to the next leads to a ring, or to a unit that waits for something that nobody will do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ascend_sim.cross_core import ANSWERS
from ascend_sim.errors import Finding
from ascend_sim.mailbox import MAIL_KEY
from ascend_sim.messages import place
from ascend_sim.program import Program
from ascend_sim.scalar_items import POLLS
from ascend_sim.soft_flags import SOFT
from ascend_sim.trace import Item, Kind, Site, Step
from ascend_sim.unit_flags import FINISH, is_flagged
from isa.access import GM_PLACE
from isa.types import Pipe, Space

if TYPE_CHECKING:
    from ascend_sim.core import Core
    from ascend_sim.session import Session

Unit = tuple[int, Pipe]
"""A core's index and a pipe of it."""
SHOWN = 6
"""Cores or blocks that one message names one by one."""


@dataclass(slots=True)
class Wait:
    """A unit that cannot go on: at which item, in words, and which units it waits for."""

    core: Core
    item: Item
    text: str
    targets: list[Unit] = field(default_factory=list)
    ahead: bool = False  # the set that is missing stands behind the wait in the program

    @property
    def unit(self) -> Unit:
        """Who waits."""
        return self.core.index, self.item.pipe

    @property
    def name(self) -> str:
        """The unit in messages."""
        return f"{self.core.name}.{self.item.pipe.name}"


def report(session: Session, now: int) -> tuple[str, Finding]:
    """Return the message of a deadlock and its finding."""
    waits = [
        wait
        for core in session.cores
        if core.program is not None
        for wait in _Reader(session, core).waits()
    ]
    ring = _ring(waits)
    lines = [f"deadlock at cycle {now}: nothing can move any more", *_lines(waits)]
    if ring:
        names = [wait.name for wait in ring]
        lines.append(f"  they wait for each other: {' -> '.join([*names, names[0]])}{_hint(ring)}")
    finding = Finding("DEADLOCK", "deadlock", "\n".join(lines), struck=True)
    finding.related = [
        {
            "file": site.file,
            "line": site.line,
            "pipe": wait.item.pipe.name,
            "instruction": wait.item.name,
        }
        for wait in waits
        for site in [session.sites[wait.item.site]]
    ]
    first = _first(waits, ring)
    if first is not None:
        site = session.sites[first.item.site]
        finding.file, finding.line = site.file, site.line
        finding.core, finding.pipe = first.core.name, first.item.pipe.name
    return finding.message, finding


def _lines(waits: list[Wait]) -> list[str]:
    """Return one line for each wait; cores that wait for the same in the same place share one."""
    groups: dict[tuple[Pipe, int, str], list[Wait]] = {}
    for wait in waits:
        groups.setdefault((wait.item.pipe, wait.item.site, wait.text), []).append(wait)
    lines = []
    for mine in groups.values():
        more = f" (and {len(mine) - 1} more: {_some([wait.core.name for wait in mine[1:]])})"
        lines.append(f"  {mine[0].name:<16} {mine[0].text}{more if len(mine) > 1 else ''}")
    return lines


def _some(names: list[str]) -> str:
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _ring(waits: list[Wait]) -> list[Wait]:
    """Return waits each of which waits for the next one, and the last one for the first; none where there are none."""
    by_unit = {wait.unit: wait for wait in waits}
    done: set[Unit] = set()
    for start in by_unit:
        path: list[Unit] = []
        stack: list[tuple[Unit, int]] = [(start, 0)]
        while stack:
            unit, depth = stack.pop()
            done.update(path[depth:])
            del path[depth:]
            if unit in path:
                return [by_unit[one] for one in path[path.index(unit) :]]
            if unit in by_unit and unit not in done:
                path.append(unit)
                stack += [(one, len(path)) for one in reversed(by_unit[unit].targets)]
        done.update(path)
    return []


def _first(waits: list[Wait], ring: list[Wait]) -> Wait | None:
    """Return the wait to blame: one that nobody can end, else the earliest of the ring, else the earliest at all."""
    units = {wait.unit for wait in waits}
    alone = [wait for wait in waits if not any(unit in units for unit in wait.targets)]
    for candidates in (alone, ring, waits):
        if candidates:
            core = min(wait.core.index for wait in candidates)
            return min(
                (wait for wait in candidates if wait.core.index == core),
                key=lambda wait: wait.item.index,
            )
    return None


def _hint(ring: list[Wait]) -> str:
    """Say what usually helps, where each of a ring waits for a first set that comes behind a wait."""
    flags = [
        wait for wait in ring if wait.item.kind is Kind.WAIT_FLAG and wait.item.event is not None
    ]
    if len(flags) == len(ring) > 1:
        missing = next((wait.item for wait in flags if wait.ahead), flags[0].item)
        assert missing.event is not None
        return (
            f". A flag that a loop waits for before it is set in the same loop needs one set before the loop, here "
            f"set_flag({missing.event.name}, {missing.event_id}), and one wait behind it"
        )
    return ""


class _Reader:
    """Finds what one core's units wait for."""

    def __init__(self, session: Session, core: Core) -> None:
        self._session = session
        self._core = core
        self._sites = session.sites
        first = core.log.firsts[-1] if core.log.firsts else 0
        self._items = core.log.items[max(first - core.log.spilled, 0) :]

    def waits(self) -> Iterable[Wait]:
        """Yield the waits of the core's units, the scalar unit's last."""
        core = self._core
        for pipe in core.pipes.values():
            if pipe.blocked is not None:
                yield self._wait(pipe.blocked)
        program = core.program
        if program is not None and program.polls >= POLLS:
            yield self._poll(program)
        elif core.waiting_flag is not None:
            yield self._wait(core.waiting_flag)
        elif core.taken < len(core.items):
            yield self._scalar(core.items[core.taken])

    def _poll(self, program: Program) -> Wait:
        """Return what a core waits for that reads one word of GM over and over."""
        core = self._core
        site, _, low, value = program.polled
        step = Step(Pipe.S, Kind.INSTRUCTION, "get_value", site)
        item = Item(step, core.index, self._items[-1].index)
        name = next(
            (one.call.access.name for one in reversed(self._items) if one.site == site), "GM"
        )
        text = (
            f"reads {name} byte {low} at {place(self._sites[site])} over and over: it stays {value}, and nobody who "
            f"still runs can change it"
        )
        if core.dcache.reused(program.polled[1] - GM_PLACE, low):
            text += ". The value comes from the data cache: data_cache_clean_and_invalid belongs into the loop"
        return Wait(core, item, text)

    def _at(self, item: Item) -> str:
        return place(self._sites[item.site])

    def _scalar(self, item: Item) -> Wait:
        """Return what the scalar unit waits for that is not at a flag."""
        core = self._core
        full = core.waiting_for
        if full is not None:
            text = f"cannot issue {item.name} ({self._at(item)}): the queue of {full.pipe.name} is full"
            wait = Wait(core, _on_scalar(item), text, [(core.index, full.pipe)])
            return wait
        busy = [(core.index, pipe) for pipe, queue in core.pipes.items() if not queue.idle]
        if item.name == "end":
            text = "has reached the kernel's end and waits for the pipes above"
        else:
            text = f"waits in {item.name} ({self._at(item)}) for the pipes above"
        return Wait(core, item, text, busy)

    def _wait(self, item: Item) -> Wait:
        if item.flag == MAIL_KEY:
            text = f"waits at {self._at(item)} for a message: {_silent(self._core)}"
            vectors = self._core.cross.vector_cores(self._core)
            return Wait(self._core, item, text, [(other.index, Pipe.S) for other in vectors])
        if item.kind is Kind.WAIT_FLAG and item.mode == SOFT:
            return self._soft(item)
        if item.kind is Kind.WAIT_FLAG and item.event is None:
            return self._cross(item)
        if item.kind is Kind.INSTRUCTION and is_flagged(item):
            return self._unit_flag(item)
        if item.kind is Kind.WAIT_FLAG:
            return self._flag(item)
        return Wait(self._core, item, f"waits in {item.name} ({self._at(item)})")

    # ---- flags inside the core --------------------------------------------------------------

    def _flag(self, item: Item) -> Wait:
        assert item.event is not None
        same = [
            other for other in self._items if other.event is not None and other.flag == item.flag
        ]
        sets = [other for other in same if other.kind is Kind.SET_FLAG]
        number = sum(other.kind is Kind.WAIT_FLAG and other.index <= item.index for other in same)
        fired = sum(other.end >= 0 for other in sets)
        text = (
            f"waits at {self._at(item)} for {item.event.name} id {item.event_id}: this is wait number {number}, the "
            f"flag was set {fired} time{'s' if fired != 1 else ''}"
        )
        others = {
            f"{o.event.name} id {o.event_id}" for o in same if o.event not in (None, item.event)
        }
        if others:
            text += f", which is {' and '.join(sorted(others))} too (event_ids is 'source')"
        pending = [other for other in sets if other.end < 0]
        if pending:
            behind = pending[0].pipe if pending[0].issue >= 0 else Pipe.S
            text += f"; the next set is at {self._at(pending[0])}, queued behind what waits"
            later = pending[0].index > item.index
            return Wait(self._core, item, text, [(self._core.index, behind)], later)
        near = self._nearest(item)
        if near is not None:
            text += f"; {near}"
        else:
            text += f"; nothing sets it: add set_flag({item.event.name}, {item.event_id}) before this wait"
        stopped = [(self._core.index, Pipe.S)] if self._scalar_stands() else []
        return Wait(self._core, item, text, stopped)

    def _scalar_stands(self) -> bool:
        """Return whether the kernel's program may still do something, and is held up."""
        core = self._core
        return core.waiting_flag is not None or (
            core.taken < len(core.items)
            and all(item.name != "end" for item in core.items[core.taken :])
        )

    def _nearest(self, item: Item) -> str | None:
        """Return a set that nobody waits for and that is likest to the one that is missing."""
        assert item.event is not None
        left = [token[1] for flag in self._core.flags.values() for token in flag.tokens]
        for other in reversed([set_item for set_item in self._items if set_item in left]):
            if other.event is item.event:
                return f"a set of id {other.event_id} is at {self._at(other)}"
        for other in reversed(left):
            assert other.event is not None
            if other.event_id == item.event_id:
                return f"nobody waits for the set of {other.event.name} id {other.event_id} at {self._at(other)}"
        return None

    # ---- unit flags -------------------------------------------------------------------------

    def _unit_flag(self, item: Item) -> Wait:
        """Say which units of L0C an Mmad or a Fixpipe waits for, and which instruction should have changed them."""
        core = self._core
        assert core.unit_flags is not None
        ranges, filled_by = core.unit_flags.missing(item)
        low, high = ranges[0]
        filling = item.pipe is Pipe.M
        text = (
            f"{item.name} waits at {self._at(item)} for L0C[{low}:{high}] to become {'free' if filling else 'full'} "
            f"(unit flag)"
        )
        if filled_by is not None:
            text += f"; mmad at {self._at(filled_by)} left it full"
        partner, pipe = ("fixpipe", Pipe.FIX) if filling else ("mmad", Pipe.M)
        others = [
            other
            for other in self._items
            if other.pipe is pipe and other.name == partner and _touches_units(other, low, high)
        ]
        late = [other for other in others if other.start < 0 and other.call.unit_flag == FINISH]
        if late:
            text += f"; the {partner} with unit_flag 3 at {self._at(late[0])} is queued behind what waits"
            behind = pipe if late[0].issue >= 0 else Pipe.S
            return Wait(core, item, text, [(core.index, behind)])
        text += f"; no {partner} with unit_flag 3 follows"
        without = [other for other in others if other.call.unit_flag != FINISH]
        if without:
            near = without[-1]
            text += f": {partner} at {self._at(near)} has unit_flag {near.call.unit_flag}"
        return Wait(core, item, text)

    # ---- other cores ------------------------------------------------------------------------

    def _cross(self, item: Item) -> Wait:
        """Say which cores have not set a flag between cores, and where they stand."""
        core, flag_id = self._core, item.event_id
        number = sum(
            other.kind is Kind.WAIT_FLAG
            and other.event is None
            and other.flag == item.flag
            and other.mode != SOFT
            and other.index <= item.index
            for other in (*core.log.between, *core.log.items)
        )
        name = "sync_all" if 11 <= flag_id <= 14 else f"cross-core flag {flag_id}"
        if flag_id >= ANSWERS:
            name = "the answer to a message"
        text = f"waits at {self._at(item)} for {name}"
        rounds = core.cross.rounds_for(core, flag_id)
        behind: list[Core] = []
        parts = []
        for mode, counts in rounds:
            late = [other for other, count in counts if count < number]
            if not late:
                continue
            behind += late
            come = len(counts) - len(late)
            says = f"mode {mode}: {come} of {len(counts)} have set"
            if name == "sync_all":
                says = f"{come} of {len(counts)} cores have come"
            names = _some([f"{other.name} ({_where(other, self._sites)})" for other in late])
            parts.append(f"{says}, missing: {names}")
        if number > 1 or name != "sync_all":
            text += f", wait number {number}"
        waiting = self._session.not_started()
        if waiting and any(mode == 0 for mode, _ in rounds):
            parts.append(
                f"blocks {waiting[0]} to {waiting[-1]} have not started: no core is free for them. Launch as many "
                f"blocks as there are cores at most"
            )
        text += f": {'; '.join(parts) or self._other_flags(flag_id)}"
        return Wait(core, item, text, [self._standing(other, flag_id) for other in behind])

    def _standing(self, core: Core, flag_id: int) -> Unit:
        """Return the unit of a core that its next set of a flag waits for."""
        for item in core.log.items:
            if (
                item.kind is Kind.SET_FLAG
                and item.event is None
                and item.event_id == flag_id
                and item.end < 0
                and item.issue >= 0
            ):
                return core.index, item.pipe
        return core.index, Pipe.S

    def _other_flags(self, flag_id: int) -> str:
        """Say that nobody sets a flag, and which other one has come and was not taken."""
        for flag in self._core.cross_flags.values():
            for _, setter in flag.tokens:
                if setter.event_id != flag_id:
                    return (
                        f"nobody sets it; flag {setter.event_id} has come (set at {self._at(setter)}) and nobody "
                        f"waits for it"
                    )
        return "nobody sets it any more"

    def _soft(self, item: Item) -> Wait:
        text, blocks = self._core.cross.soft.missing(item.flag)
        targets = []
        running = set()
        for other in self._session.cores:
            program = other.program
            if program is not None and program.number in blocks:
                targets.append((other.index, Pipe.S))
                running.add(program.number)
        waiting = set(self._session.not_started()) & set(blocks)
        ended = sorted(set(blocks) - running - waiting)
        if ended:
            text += (
                f". {_some([str(one) for one in ended])} ended without it: every block has to call {item.name}, also "
                f"one with nothing to do"
            )
        if waiting:
            text += (
                f". Blocks {min(waiting)} to {max(waiting)} have not started: no core is free for them. Launch as many "
                f"blocks as there are cores at most"
            )
        return Wait(self._core, item, f"{item.name} waits at {self._at(item)} for {text}", targets)


def _on_scalar(item: Item) -> Item:
    """Return an item that the scalar unit cannot issue as one of its own."""
    step = Step(Pipe.S, item.kind, item.name, item.site)
    return Item(step, item.core, item.index, item.call)


def _touches_units(item: Item, low: int, high: int) -> bool:
    if not item.call.writes:
        return False
    access = item.call.writes[0] if item.pipe is Pipe.M else item.call.reads[0]
    return access.space is Space.L0C and access.low < high and low < access.high


def _where(core: Core, sites: list[Site]) -> str:
    """Say what a core does that has not set a flag."""
    if core.program is None:
        return "has ended"
    if core.waiting_flag is not None:
        return f"waits at {place(sites[core.waiting_flag.site])}"
    return "held up"


def _silent(core: Core) -> str:
    """Say what the vector cores of a cube core are doing instead of sending a message."""
    texts = []
    for other in core.cross.vector_cores(core):
        done = other.program is None
        texts.append(f"{other.name} {'has ended without one' if done else 'has not sent one'}")
    return "; ".join(texts) + (
        ". Every vector core of a block calls register_matmul where its cube core does"
    )
