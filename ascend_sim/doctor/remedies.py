"""Edits that may cure what was found, the likeliest and smallest first. Nothing here knows whether they do."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ascend_sim.doctor.ahead import Ahead
from ascend_sim.doctor.between import SET, WAIT, Between
from ascend_sim.doctor.parts import PARTNER, QUEUE_CALLS, SYNC, CallPart, FilePart, Remedy
from ascend_sim.doctor.source import Edit, Key, Source, Workshop, key_of
from ascend_sim.errors import Finding
from ascend_sim.messages import APART
from ascend_sim.trace import Log
from isa.types import HardEvent

if TYPE_CHECKING:
    from ascend_sim.stage import Data

MOST_GAPS = 30
"""Places around a line that are tried for one statement."""
NEAR = 7
"""Lines of synchronisation from a place on up to which one is moved or dropped."""
RACES = ("race-raw", "race-war", "race-waw")


@dataclass(frozen=True, slots=True)
class Anchor:
    """A line that a finding is about: its file, its statement, the pipe at work there."""

    part: FilePart
    key: Key
    pipe: str

    @property
    def file(self) -> str:
        """The source file."""
        return self.part.source.file


class Remedies:
    """Makes up edits for the findings of a run."""

    def __init__(self, log: Log, workshop: Workshop, before: Data | None = None) -> None:
        self._log = log
        self._workshop = workshop
        self._parts: dict[str, FilePart] = {}
        self._between = Between(log, self._part, before)
        self._ahead = Ahead(log, self._part)
        self._made: list[tuple[float, Remedy]] = []

    def of(self, findings: Iterable[Finding]) -> list[Remedy]:
        """Return edits for the findings, the best first, each once."""
        self._made = []
        findings = list(findings)
        for finding in findings:
            anchors = self._anchors(finding)
            if not anchors:
                continue
            if finding.code in RACES:
                self._order(finding, anchors)
            if finding.code.startswith("race-blocks"):
                self._order_cores(finding, findings, anchors)
            if finding.kind == "QUEUE" or finding.code in ("alloc-spins-forever", "flag-left-set"):
                self._queues(anchors)
            for weight, anchor in enumerate(anchors):
                self._partners(anchor, findings, weight)
                self._changes(anchor, weight)
        self._made.sort(key=lambda one: one[0])
        return list(dict.fromkeys(remedy for _, remedy in self._made))

    def _make(self, cost: float, *edits: Edit) -> None:
        self._made.append((cost, edits))

    # ---- where ------------------------------------------------------------------------------

    def _part(self, file: str) -> FilePart | None:
        if file not in self._parts:
            source = self._workshop.source(file)
            if source is None:
                return None
            self._parts[file] = FilePart(source)
        return self._parts[file]

    def _anchors(self, finding: Finding) -> list[Anchor]:
        """Return the places of a finding, its own first, and those of their callers."""
        places = [(finding.file, finding.line, finding.pipe)]
        places += [(one["file"], one["line"], one["pipe"]) for one in finding.related]
        frames = [
            (file, line, pipe)
            for place, number, pipe in places
            for site in self._log.sites
            if site.frames and site.frames[0][:2] == (place, number)
            for file, line, _ in site.frames[1:]
        ]
        found = []
        for file, line, pipe in dict.fromkeys([*places, *frames]):
            part = self._part(file) if file else None
            key = part.source.at_line(line) if part is not None else None
            if part is not None and key is not None and part.source.function_of(key) is not None:
                found.append(Anchor(part, key, pipe))
        return found

    # ---- what -------------------------------------------------------------------------------

    def _order(self, finding: Finding, anchors: list[Anchor]) -> None:
        """Order two accesses of one core: a barrier, or a flag from the earlier one's pipe to the later one's."""
        if finding.code == "race-waw" and APART in finding.message:
            return  # in order, the later one would still destroy what the earlier one has written
        later, others = anchors[0], anchors[1:]
        earlier = others[0] if others else later
        part = later.part
        if later.pipe == earlier.pipe:
            barrier = part.barrier_of(later.pipe)
            self._make(0.5, Edit(later.file, later.key, "before", barrier))
            self._make(0.6, Edit(earlier.file, earlier.key, "after", barrier))
            self._insert(barrier, later, 3.0)
        event = f"{earlier.pipe}_{later.pipe}"
        if event in HardEvent.__members__ and later.pipe != earlier.pipe:
            number = part.free_id(event)
            raised, taken = part.set_of(event, number), part.wait_of(event, number)
            pair = f"{raised}\n{taken}"
            self._insert_partner_of_event(event, anchors)
            self._make(6.0, Edit(earlier.file, earlier.key, "after", pair))
            self._make(6.1, Edit(later.file, later.key, "before", pair))
            self._make(
                6.2,
                Edit(earlier.file, earlier.key, "after", raised),
                Edit(later.file, later.key, "before", taken),
            )
        everything = part.barrier_of("ALL")
        self._make(9.0, Edit(later.file, later.key, "before", everything))
        self._make(9.1, Edit(earlier.file, earlier.key, "after", everything))

    def _insert_partner_of_event(self, event: str, anchors: list[Anchor]) -> None:
        """Try the partners of the flags of an event that are there around the two places."""
        for anchor in anchors[:2]:
            for call in anchor.part.near(anchor.key):
                if call.name in PARTNER and f".{event}" in call.arguments:
                    self._insert(call.text(PARTNER[call.name]), anchor, 1.0)

    def _order_cores(
        self, finding: Finding, findings: list[Finding], anchors: list[Anchor]
    ) -> None:
        """Order accesses of two cores: an earlier set on the right pipe, a flag or a wait for one, a meeting of all."""
        earlier = anchors[1] if len(anchors) > 1 else anchors[0]
        for call in earlier.part.near(earlier.key):
            words = call.words
            if call.name == SET and len(words) == 3 and earlier.pipe:
                owner, named, _ = words[2].rpartition(".PIPE_")
                pipe = f"{owner if named else earlier.part.pipes}.PIPE_{earlier.pipe}"
                text = replace(call, arguments=", ".join([*words[:2], pipe])).text(call.name)
                self._make(0.9, Edit(earlier.file, call.key, "replace", text))
            if call.name == SET and self._is_next(earlier.part.source, call.key, earlier.key):
                self._make(0.95, Edit(earlier.file, call.key, "swap", other=earlier.key))
        self._made += self._between.of_race(finding, findings)
        for anchor in anchors[:2]:
            for everyone in ("", "is_aiv_only=False"):
                self._insert(f"{anchor.part.prefix}sync_all({everyone})", anchor, 5.0)

    @staticmethod
    def _is_next(source: Source, key: Key, other: Key) -> bool:
        """Return whether a statement stands right before another one."""
        body = [key_of(one) for one in source.body_of(key)]
        place = body.index(key) + 1
        return place < len(body) and body[place] == other

    def _partners(self, anchor: Anchor, findings: list[Finding], weight: int) -> None:
        """Let a set or a wait that something is found about have its partner, or go."""
        part, source = anchor.part, anchor.part.source
        call = self._call(source, anchor.key)
        if call is None:
            return
        if call.name in PARTNER:
            partner = PARTNER[call.name]
            before = call.name == "wait_flag"  # its set stands before it, mostly
            literal = call.arguments.rpartition(", ")[2].isdigit()
            outside = 0.0 if literal else 1.0  # what a loop calls its flag means little outside
            self._insert(call.text(partner), anchor, 0.0 + weight, before=before, outside=outside)
            for cost, edits in self._ahead.of(part, call):
                self._make(0.3 + weight + cost, *edits)
            for other in dict.fromkeys(
                one.arguments for one in part.near(anchor.key) if one.name == partner
            ):
                if other != call.arguments:
                    text = replace(call, arguments=other).text(call.name)
                    self._make(2.0 + weight, Edit(anchor.file, anchor.key, "replace", text))
            for one in part.near(anchor.key):
                if one.name == partner and one.arguments != call.arguments:
                    text = replace(one, arguments=call.arguments).text(partner)
                    self._make(2.5 + weight, Edit(anchor.file, one.key, "replace", text))
        elif call.name in (SET, WAIT, "sync_all"):
            between = self._between
            make = {SET: between.of_set, WAIT: between.of_wait}.get(call.name, between.of_meeting)
            self._made += ((cost + weight, edits) for cost, edits in make(part, call, findings))
        if call.name in SYNC:
            self._make(1.5 + weight, Edit(anchor.file, anchor.key, "drop"))

    def _changes(self, anchor: Anchor, weight: int) -> None:
        """Swap neighbours, move or drop synchronisation around a place."""
        part, source = anchor.part, anchor.part.source
        lines = [one.key for one in part.near(anchor.key)]
        here = bisect_left(lines, anchor.key)
        mine = self._call(source, anchor.key)
        for call in part.near(anchor.key):
            if call.name not in SYNC:
                continue
            distance = abs(lines.index(call.key) - here)
            if mine is not None and call.event == mine.event != "":
                distance = min(distance, NEAR)  # it may have taken what this one waits for
            if distance > NEAR:
                continue
            body = source.body_of(call.key)
            place = next(n for n, one in enumerate(body) if one is source.statements[call.key])
            for step in (-1, 1):
                if 0 <= place + step < len(body):
                    other = body[place + step]
                    pair = sorted([call.key, (other.lineno, other.col_offset)])
                    self._make(
                        1.2 + weight + distance / 4,
                        Edit(anchor.file, pair[0], "swap", other=pair[1]),
                    )
            self._make(4.0 + weight + distance / 4, Edit(anchor.file, call.key, "drop"))

    def _queues(self, anchors: list[Anchor]) -> None:
        """Complete the life of a queue's tensors (alloc, enque, deque, free), of those first that the finding names."""
        part, source = anchors[0].part, anchors[0].part.source
        lines = [one.part.source.words(one.key).splitlines()[0] for one in anchors]
        by_queue: dict[str, dict[str, list[CallPart]]] = {}
        for call in part.calls:
            if call.name in QUEUE_CALLS:
                by_queue.setdefault(call.of, {}).setdefault(call.name, []).append(call)
        named = {queue for queue in by_queue
                 if any(re.search(rf"\b{re.escape(queue)}\b", line) for line in lines)}  # fmt: skip
        for queue, calls in by_queue.items():
            cost = 1.5 if named and queue not in named else 0.0
            alloc, enque, deque, free = (calls.get(name, []) for name in QUEUE_CALLS)
            for one in alloc:
                text = f"{queue}.enque({one.target})"
                self._insert(text, self._at(part, one), 1.0 + cost)
                for other in deque:
                    self._make(0.8 + cost, Edit(source.file, other.key, "before", text))
            for one in deque or alloc:
                text = f"{queue}.free_tensor({one.target})"
                self._insert(text, self._at(part, one), 1.0 + cost)
                gone = [other for other in free if other.arguments == one.target]
                last = _last_use(source, one, {other.key for other in gone})
                self._make(0.8 + cost, Edit(source.file, last, "after", text))
                for other in gone:
                    words = source.words(other.key)
                    self._make(0.8 + cost, Edit(source.file, other.key, "move", words, last))
            for one in free:
                text = f"{one.arguments} = {queue}.deque({alloc[0].arguments if alloc else ''})"
                self._insert(text, self._at(part, one), 1.0 + cost, before=True)
                self._make(1.5 + cost, Edit(source.file, one.key, "drop"))
                self._moves(part, one, anchors[0], cost)
            for one in enque:
                text = (
                    f"{one.arguments} = {queue}.alloc_tensor({deque[0].arguments if deque else ''})"
                )
                self._insert(text, self._at(part, one), 1.0 + cost, before=True)
                self._moves(part, one, anchors[0], cost)
        self._depths(part)

    def _at(self, part: FilePart, call: CallPart) -> Anchor:
        return Anchor(part, call.key, "")

    def _moves(self, part: FilePart, call: CallPart, anchor: Anchor, more: float) -> None:
        """Move a call behind each of the later ones of its function."""
        for other in part.near(call.key):
            if other.key > call.key:
                cost = more + (1.0 if other.key == anchor.key else 2.0)
                words = part.source.words(call.key)
                self._make(cost, Edit(part.source.file, call.key, "move", words, other.key))

    def _depths(self, part: FilePart) -> None:
        """Give a queue one more place: its depth, or its buffers."""
        for key, statement in part.source.statements.items():
            if not isinstance(statement, (ast.Assign, ast.Expr)):
                continue
            call = call_or_none(statement)
            if call is None:
                continue
            name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            at = {"TQue": 1, "init_buffer": 1}.get(name)
            if at is None:
                continue
            given = [
                *call.args[at : at + 1],
                *(k.value for k in call.keywords if k.arg in ("depth", "num")),
            ]
            for number in given:
                if isinstance(number, ast.Constant) and isinstance(number.value, int):
                    kept = number.value
                    number.value = kept + 1
                    text = ast.unparse(statement)
                    number.value = kept
                    self._make(3.0, Edit(part.source.file, key, "replace", text))

    def _insert(
        self,
        text: str,
        anchor: Anchor,
        cost: float,
        *,
        before: bool | None = None,
        outside: float = 0.0,
    ) -> None:
        """Try a statement at the places around another, the near ones first; `outside` of its loop costs more."""
        source = anchor.part.source
        inside = source.loops_around(anchor.key)[:1]
        for distance, gap in anchor.part.gaps(anchor.key, most=MOST_GAPS):
            wrong_side = before is not None and before != (distance < 0)
            price = cost + (abs(distance) - 1) / 8 + (1.0 if wrong_side else 0.0)
            if outside and inside and inside[0] not in source.loops_around(gap.at):
                price += outside
            self._make(price, replace(gap, text=text))

    def _call(self, source: Source, key: Key) -> CallPart | None:
        part = self._part(source.file)
        assert part is not None
        return next((one for one in part.calls if one.key == key), None)


def call_or_none(statement: ast.Assign | ast.Expr) -> ast.Call | None:
    """Return the call that a statement is."""
    return statement.value if isinstance(statement.value, ast.Call) else None


def _last_use(source: Source, call: CallPart, passed: set[Key]) -> Key:
    """Return the last statement beside a call that uses its tensor before the name is given anew, some passed over."""
    last = call.key
    body = source.body_of(call.key)
    for statement in body[body.index(source.statements[call.key]) + 1 :]:
        names = [node for node in ast.walk(statement)
                 if isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) == call.target]  # fmt: skip
        if any(isinstance(node.ctx, ast.Store) for node in names):
            break
        if names and key_of(statement) not in passed:
            last = key_of(statement)
    return last
