"""The corpus: all mutants of all subjects, performed, and what came of each."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ascend_sim.doctor.search import SYNC_KINDS, Doctor
from ascend_sim.doctor.source import Edit, Workshop
from ascend_sim.errors import AscendSimError, Finding
from ascend_sim.hostile import Timing
from ascend_sim.stage import Data, Rehearsal, Trial
from ascend_sim.trace import Kind
from isa.types import Pipe
from tests.mutation.mutants import Mutant, mutants_of
from tests.mutation.ordered import Pair, unordered
from tests.mutation.subjects import ROOT, Subject

TIMINGS = 4
"""Hostile timings under which a mutant that nothing was found in must give what the kernel gives."""


@dataclass
class Verdict:
    """What came of a mutant: `how` is "finding", "error" (Python's), "numbers" (only they tell), "missed" or "same"."""

    mutant: Mutant
    subject: str
    how: str
    why: str = ""  # of "same": what proves it, "" where only hostile timings speak for it
    cause_right: bool | None = None
    code: str = ""
    cure: str | None = None  # "right", "wrong" or "none", of dropped and moved synchronisation
    edit: str = ""
    trials: int = 0

    @property
    def label(self) -> str:
        """Name the mutant as the list of equivalent ones does: its file, what was done, the statement."""
        return label_of(self.mutant)


def label_of(mutant: Mutant) -> str:
    """Return the name of a mutant, independent of line numbers: file, change, statement."""
    file = Path(mutant.edit.file)
    place = file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else file.name
    return f"{place} | {mutant.kind} | {mutant.words}"


@dataclass
class Case:
    """A subject with its kernel files' mutants, and what it gives unchanged."""

    subject: Subject
    workshop: Workshop = field(default_factory=Workshop)

    def __post_init__(self) -> None:
        base = self.subject.perform()
        assert base.run is not None and base.error is None
        self.base = base
        self.work = work_of(base)
        self.lines: dict[str, set[int]] = {}
        for site in base.run.log.sites:
            for file, line, _ in site.frames:
                self.lines.setdefault(file, set()).add(line)

    @property
    def items(self) -> int:
        """How much one run simulates."""
        assert self.base.run is not None
        return sum(len(core.items) for core in self.base.run.log.cores)

    def mutants(self) -> Iterator[Mutant]:
        """Yield the mutants of all files that the kernel comes from."""
        for file, lines in sorted(self.lines.items()):
            source = self.workshop.source(file)
            if source is not None:
                yield from mutants_of(source, lines)

    def perform(self, edits: tuple[Edit, ...], timing: Timing | None = None) -> Trial | None:
        """Run with edits; None where Python itself refuses them."""
        try:
            with self.workshop.with_edits(edits):
                return self.subject.perform(timing.machine({}) if timing is not None else None)
        except (SyntaxError, ValueError):
            return None

    def judge(self, mutant: Mutant, *, hostile: bool = True) -> Verdict:
        """Run a mutant and say what shows that it is one."""
        trial = self.perform((mutant.edit,))
        name = self.subject.name
        if trial is None or (
            trial.error is not None and not isinstance(trial.error, AscendSimError)
        ):
            return Verdict(mutant, name, "error")
        if trial.findings:
            first = first_finding(trial)
            cause = is_cause(first, mutant)
            return Verdict(mutant, name, "finding", cause_right=cause, code=first.code)
        if trial.error is not None:
            return Verdict(mutant, name, "error")
        if not same(self.base.data, trial.data):
            return Verdict(mutant, name, "numbers")
        assert trial.run is not None
        if self.work == work_of(trial):
            return Verdict(mutant, name, "same", "every pipe does the same in the same order")
        if mutant.family in ("address", "stride"):
            return Verdict(mutant, name, "same")
        if unordered(trial.run.log) <= self.open_pairs:
            return Verdict(mutant, name, "same", "all that the kernel orders is in order here too")
        for seed in range(TIMINGS if hostile else 0):
            late = self.perform((mutant.edit,), Timing(seed))
            if late is None or late.error is not None or not same(self.base.data, late.data):
                return Verdict(mutant, name, "missed")
        return Verdict(mutant, name, "same")

    @cached_property
    def open_pairs(self) -> set[Pair]:
        """The places that the kernel itself leaves unordered, as the brute force sees it."""
        assert self.base.run is not None
        return unordered(self.base.run.log)

    def cure(self, verdict: Verdict) -> None:
        """Let the doctor look at a mutant, and check what it says against the kernel as it was."""
        mutant = verdict.mutant
        trial = self.perform((mutant.edit,))
        assert trial is not None and trial.run is not None
        doctor = Doctor()
        rehearsal = Rehearsal(
            self.subject.rehearsal.stage, self.subject.rehearsal.before, trial.data, trial.run, None
        )
        workshop = Mutated(self.workshop, mutant.edit)
        doctor.workshop = workshop
        doctor.rehearse(rehearsal)
        verdict.trials = doctor.trials
        if not doctor.cures:
            verdict.cure = "none"
            return
        verdict.edit = next(f.edit for f in trial.run.findings if f.edit)
        with workshop.with_edits(doctor.cures[0]):
            cured = self.subject.perform()
        right = cured.error is None and not cured.findings and same(self.base.data, cured.data)
        verdict.cure = "right" if right else "wrong"


class Mutated(Workshop):
    """A workshop in whose source a mutation stands already, whichever files a trial edits."""

    def __init__(self, workshop: Workshop, edit: Edit) -> None:
        super().__init__()
        self._workshop, self._edit = workshop, edit
        for file, functions in workshop._functions.items():
            self._functions[file] = functions
        source = workshop.source(edit.file)
        assert source is not None
        self._sources[edit.file] = source.changed(edit)

    @contextmanager
    def with_edits(self, edits: tuple[Edit, ...]) -> Iterator[None]:
        """Let the functions run as mutated and edited."""
        elsewhere = all(edit.file != self._edit.file for edit in edits)
        with (
            self._workshop.with_edits((self._edit,) if elsewhere else ()),
            super().with_edits(edits),
        ):
            yield


def work_of(trial: Trial) -> list[Any]:
    """Return what each pipe of each core does, item by item, between two items of its scalar unit.

    A wait is known by the set that ends it, and that by the instructions before it, whatever the flag's number. Sets
    that follow one another have no order, nor have waits; a second barrier behind one counts for nothing. Launches with
    the same work are the same to every pipe: they differ in when the scalar unit issues it.
    """
    assert trial.run is not None
    found = []
    places: dict[int, tuple[int, int, int]] = {}
    for core in trial.run.log.cores:
        counts: dict[int, int] = {}
        for item in core.items:
            counts[item.pipe] = counts.get(item.pipe, 0) + (item.kind is Kind.INSTRUCTION)
            places[id(item)] = item.core, int(item.pipe), counts[item.pipe]
    for core in trial.run.log.cores:
        segments: list[dict[int, list[Any]]] = [{}]
        for item in core.items:
            segment = segments[-1]
            if item.pipe is Pipe.S:
                segments.append({})
                segment = segments[-1]
            mine = segment.setdefault(int(item.pipe), [])
            partner = places.get(id(item.partner), ()) if item.partner is not None else ()
            what: Any = item.name, partner
            if item.kind is Kind.INSTRUCTION:
                call = item.call
                accesses = (*getattr(call, "writes", ()), *getattr(call, "reads", ()))
                what = (item.name, call.detail(), [(one.low, one.high) for one in accesses])
            elif item.kind is Kind.SET_FLAG:
                number = item.event_id if item.event is None else 0
                what = item.name, (str(item.event), item.mode, number)
            elif item.kind is Kind.BARRIER and mine and mine[-1] == what:
                continue
            mine.append(what)
            place = len(mine) - 1
            commutes = item.kind in (Kind.SET_FLAG, Kind.WAIT_FLAG)
            while commutes and place and mine[place - 1][0] == what[0] and mine[place - 1] > what:
                mine[place - 1 : place + 1] = mine[place], mine[place - 1]
                place -= 1
        found.append(segments)
    return found


def first_finding(trial: Trial) -> Finding:
    """Return the finding that a user reads first: what ended the run, else the first of the list."""
    stopped = getattr(trial.error, "finding", None)
    return stopped if stopped is not None else trial.findings[0]


def same(first: Data, second: Data) -> bool:
    """Return whether GM holds the same bytes."""
    return all(np.array_equal(first[index], second[index]) for index in first)


_WORD = re.compile(r"\w+")


def is_cause(finding: Finding, mutant: Mutant) -> bool:
    """Return whether a finding leads to the mutated statement: by line, flag, pipe, queue or tensor."""
    line = mutant.edit.line
    lines = {finding.line, *(one["line"] for one in finding.related)}
    text = finding.message
    lines |= {int(number) for number in re.findall(r"\.py:(\d+)", text)}
    lines |= {int(number) for number in re.findall(r"line (\d+)", text)}
    if line in lines or (mutant.edit.how == "swap" and mutant.edit.other[0] in lines):
        return True
    words = mutant.words
    if finding.tensor and finding.tensor in words:
        return True
    if mutant.family == "flag":
        event = re.search(r"\b([A-Z0-9]+)_([A-Z0-9]+)\b", words.partition("Event")[2] or words)
        if event is None:
            return finding.kind in SYNC_KINDS
        pipes = event.group(0).split("_")
        return finding.kind in SYNC_KINDS and all(pipe in text for pipe in pipes)
    if mutant.family == "barrier":
        return finding.kind in ("RACE", "UNINIT", "COHERENCE")
    if mutant.family == "cross":
        return finding.kind in SYNC_KINDS and ("cross" in text or "block" in text or "core" in text)
    if mutant.family == "queue":
        queue = words.rpartition("=")[2].partition(".")[0].strip()
        return finding.kind in (*SYNC_KINDS, "UNINIT") and queue in text
    return any(word in text for word in _WORD.findall(words) if len(word) > 1)


def sample(label: str, share: int) -> bool:
    """Return whether a label belongs to a sample of one in `share`, the same each time."""
    return zlib.crc32(label.encode()) % share == 0
