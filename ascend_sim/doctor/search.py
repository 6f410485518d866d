"""The doctor: tries edits on a launch that went wrong, and tells of the first with which it is clean."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ascend_sim.doctor.parts import Remedy
from ascend_sim.doctor.remedies import Remedies
from ascend_sim.doctor.source import Edit, Key, Source, Workshop
from ascend_sim.errors import Finding, KernelError, UnsupportedError
from ascend_sim.messages import short

if TYPE_CHECKING:
    from ascend_sim.stage import Rehearsal, Trial

SYNC_KINDS = ("RACE", "DEADLOCK", "FLAG_BALANCE", "QUEUE", "COHERENCE")
MOST_TRIALS = 240
MOST_ITEMS = 2_000_000
"""How much is simulated for one launch at most."""
DEPTH = 3
"""Faults that are cured one after the other."""

Keys = frozenset[tuple[str, str, str, int]]


@dataclass(slots=True)
class Doctor:
    """Seeks edits for the synchronisation of each launch; append `rehearse` to `stage.rehearsals`."""

    trials: int = 0
    cures: list[Remedy] = field(default_factory=list)
    workshop: Workshop | None = None
    _known: dict[Keys, Remedy | None] = field(default_factory=dict)

    def rehearse(self, rehearsal: Rehearsal) -> None:
        """Look for an edit; with it in hand, tell it to the findings that it cures."""
        wrong = [finding for finding in rehearsal.run.findings if finding.kind in SYNC_KINDS]
        if not wrong:
            return
        workshop = self.workshop or Workshop()
        keys = _keys(wrong)
        if keys not in self._known:
            self._known[keys] = self._seek(rehearsal, workshop, wrong)
        cure = self._known[keys]
        if cure is None:
            return
        self.cures.append(cure)
        words = "; ".join(describe(edit, workshop) for edit in cure)
        for finding in wrong:
            finding.edit = words

    def _seek(
        self, rehearsal: Rehearsal, workshop: Workshop, wrong: list[Finding]
    ) -> Remedy | None:
        patient = _Patient(rehearsal, workshop)
        done: Remedy = ()
        for _ in range(DEPTH):
            best: tuple[int, Remedy, Trial] | None = None
            left = _keys(wrong)
            for remedy in Remedies(patient.log, workshop, rehearsal.before).of(wrong):
                if patient.exhausted:
                    break
                trial = patient.with_edits((*done, *remedy))
                if trial is None or _ended_otherwise(trial):
                    continue
                found = _keys([one for one in trial.findings if one.kind in SYNC_KINDS])
                if trial.error is None and not found and patient.as_before(trial):
                    self.trials += patient.trials
                    whole = (*done, *remedy)
                    return whole if patient.confirmed(whole) else None
                if found < left and (best is None or len(found) < best[0]):
                    best = len(found), remedy, trial
            if best is None or patient.exhausted:
                break
            done = (*done, *best[1])
            patient.log = best[2].run.log if best[2].run is not None else patient.log
            wrong = [one for one in best[2].findings if one.kind in SYNC_KINDS]
        self.trials += patient.trials
        return None


class _Patient:
    """A launch that edits are tried on, within a budget."""

    def __init__(self, rehearsal: Rehearsal, workshop: Workshop) -> None:
        self._rehearsal = rehearsal
        self._workshop = workshop
        self.log = rehearsal.run.log
        self.trials = 0
        self._items = 0
        self._timing_only = True  # as long as no kernel asks for a number
        self._other = {one.code for one in rehearsal.run.findings if one.kind not in SYNC_KINDS}

    @property
    def exhausted(self) -> bool:
        """Whether enough has been tried."""
        return self.trials >= MOST_TRIALS or self._items >= MOST_ITEMS

    def with_edits(self, remedy: Remedy, *, numbers: bool = False) -> Trial | None:
        """Run with edits; None where they cannot be made."""
        self.trials += 1
        changes: dict[str, Any] = {"checks": "collect"}
        if self._timing_only and not numbers:
            changes["numerics"] = False
        try:
            with self._workshop.with_edits(remedy):
                trial = self._rehearsal.again(**changes)
                if isinstance(trial.error, UnsupportedError) and self._timing_only:
                    self._timing_only = False
                    trial = self._rehearsal.again(checks="collect")
        except (ValueError, SyntaxError, KeyError):
            return None
        if trial.run is not None:
            self._items += sum(len(core.items) for core in trial.run.log.cores)
        return trial

    def as_before(self, trial: Trial) -> bool:
        """Return whether a trial has no findings of other kinds than those that were there."""
        return {one.code for one in trial.findings} <= self._other

    def confirmed(self, remedy: Remedy) -> bool:
        """Return whether a run with numbers is clean as well."""
        trial = self.with_edits(remedy, numbers=True)
        return (
            trial is not None
            and trial.error is None
            and not any(one.kind in SYNC_KINDS for one in trial.findings)
            and self.as_before(trial)
        )


def _ended_otherwise(trial: Trial) -> bool:
    """Return whether a run came to an early end by something else than synchronisation: it hides what would follow."""
    error = trial.error
    if isinstance(error, KernelError):
        return error.finding.kind not in SYNC_KINDS
    return error is not None


def _keys(findings: list[Finding]) -> Keys:
    return frozenset((one.kind, one.code, one.file, one.line) for one in findings)


_INDENT = re.compile(r"\n +")


def describe(edit: Edit, workshop: Workshop) -> str:
    """Return an edit in words: "add `asc.wait_flag(…)` before line 47 of add.py"."""
    source = workshop.source(edit.file)
    assert source is not None
    where = f"line {edit.line} of {short(edit.file)}"
    if edit.how == "after":
        where = _end(source, edit.at) + where
    new = " and ".join(f"`{line}`" for line in _INDENT.sub(" ", edit.text).splitlines())
    old = source.words(edit.at).splitlines()[0]
    if edit.how in ("before", "after"):
        return f"add {new} {edit.how} {where} (`{old}`)"
    if edit.how == "drop":
        return f"drop {where}: `{old}`"
    if edit.how == "replace":
        return f"change {where} from `{old}` to {new}"
    other = source.words(edit.other).splitlines()[0]
    if edit.how == "swap" and edit.line == edit.other[0]:
        first = ast.unparse(source.statements[edit.other])
        return f"swap the two statements of {where}: `{first}` first"
    if edit.how == "swap":
        return f"swap lines {edit.line} and {edit.other[0]} of {short(edit.file)}: `{other}` first"
    return (
        f"move {where} (`{old}`) behind {_end(source, edit.other)}line {edit.other[0]} (`{other}`)"
    )


def _end(source: Source, key: Key) -> str:
    """Return what is said before the line of a statement that others belong to, when its end is meant."""
    return "the end of what begins on " if hasattr(source.statements[key], "body") else ""
