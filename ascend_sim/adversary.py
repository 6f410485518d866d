"""Launches under hostile timings: does what comes out, or what is found, depend on when things happen?

Each launch is performed again under timings drawn from seeds (`hostile`). Where one makes a difference it is made as
small as it can be: the fewest places that are late, by the fewest cycles, that still change the result.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from ascend_sim.errors import Finding
from ascend_sim.hostile import Place, Timing
from ascend_sim.messages import short
from isa.types import DType

if TYPE_CHECKING:
    from ascend_sim.run import Run
    from ascend_sim.stage import Rehearsal, Trial
    from isa.tensor import GlobalAddress

_FLOAT = DType.Kind.Float
MOST_TRIALS = 80
"""Runs to make one timing smaller."""

_HOW = {
    "start": "begins {} cycles late",
    "end": "lands {} cycles late",
    "core": "{} starts {} cycles late",
    "issue": "the scalar unit of {} is slow",
}


@dataclass(slots=True)
class Adversary:
    """Performs each launch again under `rounds` hostile timings; append `rehearse` to `stage.rehearsals`.

    A difference becomes a finding of the launch. `timings` counts what was tried, `rounded` names the tensors that
    differed by no more than the order of atomic additions explains.
    """

    rounds: int
    seed: int = 0
    launches: int = 0
    timings: int = 0
    broken: int = 0
    rounded: set[str] = field(default_factory=set)

    def rehearse(self, rehearsal: Rehearsal) -> None:
        """Try the timings on a launch until one makes a difference."""
        self.launches += 1
        judge = _Judge(rehearsal)
        for number in range(self.rounds):
            timing = Timing(self.seed * 1_000_003 + number)
            self.timings += 1
            difference, delays = judge.under(timing)
            if difference:
                self.broken += 1
                timing, difference, delays = _smallest(judge, timing, difference, delays)
                rehearsal.run.findings.append(_finding(rehearsal.run, difference, delays))
                break
        self.rounded |= judge.rounded

    def verdict(self) -> str:
        """Say in one line what came of it."""
        text = f"{self.timings} hostile timings of {_times(self.launches, 'launch', 'launches')}: "
        if self.broken:
            return text + f"{_times(self.broken, 'launch depends', 'launches depend')} on timing"
        text += "results and findings are the same under each"
        if self.rounded:
            names = ", ".join(sorted(self.rounded))
            text += f" (but for the rounding of atomic additions, whose order is free: {names})"
        return text


def _times(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


class _Judge:
    """Performs a launch under a timing and says what differs from the launch as it was."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal
        self._found = _keys(rehearsal.run.findings)
        self._additions = _atomic_additions(rehearsal.run)
        self.rounded: set[str] = set()

    def under(self, timing: Timing) -> tuple[str, dict[Place, int]]:
        """Return what differs ("" where nothing does) and which places were late by how many cycles."""
        delays: dict[Place, int] = {}
        trial = self._rehearsal.again(timing.machine(delays))
        return self._difference(trial), delays

    def _difference(self, trial: Trial) -> str:
        error, failure = trial.error, self._rehearsal.failure
        if (error is None) != (failure is None):
            if error is None:
                return "the kernel comes to its end"
            code = getattr(getattr(error, "finding", None), "code", type(error).__name__)
            return f"the kernel does not come to its end ({code})"
        assert trial.run is not None or error is not None
        found = _keys(trial.run.findings if trial.run is not None else [])
        if failure is None:
            for key in sorted(found ^ self._found):
                there = "is found" if key in found else "is not found"
                return f"{key[0]} {key[1]}{f' at {key[2]}:{key[3]}' if key[2] else ''} {there}"
            for name, address in self._rehearsal.stage.asked.addresses.items():
                text = self._values(name, address, trial)
                if text:
                    return text
        return ""

    def _values(self, name: str, address: GlobalAddress, trial: Trial) -> str:
        """Return which elements of an argument differ."""
        index, low, high = address.buffer.index, address.offset, address.offset + address.length
        was = self._rehearsal.after[index][low:high]
        now = trial.data[index][low:high]
        if np.array_equal(was, now):
            return ""
        size = address.dtype.size
        count = len(was) // size * size
        differs = (was[:count] != now[:count]).reshape(-1, size).any(axis=1)
        if self._additions and _same_but_for_rounding(
            was[:count], now[:count], address.dtype, self._additions
        ):
            self.rounded.add(name)
            return ""
        first = int(differs.argmax())
        return f"{name} differs in {int(differs.sum()):,} of {len(differs):,} elements, the first of them {first:,}"


def _keys(findings: list[Finding]) -> set[tuple[str, str, str, int]]:
    return {
        (one.kind, one.code, short(one.file), one.line)
        for one in findings
        if one.kind not in ("INFO", "PERF")
    }


def _atomic_additions(run: Run) -> int:
    """Return how many stores of a run add floating-point numbers in GM: each may round differently."""
    return sum(
        1
        for core in run.log.cores
        for item in core.items
        if getattr(item.call, "atomic", None) == "add" and item.call.writes[0].dtype.kind is _FLOAT
    )


def _same_but_for_rounding(was: Any, now: Any, dtype: DType, additions: int) -> bool:
    """Return whether values differ by no more than so many roundings of the largest of them."""
    if dtype.kind is not _FLOAT:
        return False
    first, second = (values.view(dtype.numpy).astype(np.float64) for values in (was, now))
    if not (np.isfinite(first) == np.isfinite(second)).all():
        return False
    known = np.isfinite(first)
    largest = float(np.abs(first[known]).max(initial=0))
    bound = additions * largest * float(ml_dtypes.finfo(dtype.numpy).eps)  # type: ignore[no-untyped-call]
    return bool((np.abs(first[known] - second[known]) <= bound).all())


def _smallest(
    judge: _Judge, timing: Timing, difference: str, delays: dict[Place, int]
) -> tuple[Timing, str, dict[Place, int]]:
    """Leave away what is late without need, then shorten what is left."""
    trials = 0

    def better(other: Timing) -> bool:
        nonlocal timing, difference, delays, trials
        trials += 1
        text, late = judge.under(other)
        if text:
            timing, difference, delays = other, text, late
        return bool(text)

    places = sorted(delays)
    part = -(-len(places) // 2)
    while trials < MOST_TRIALS:
        first = 0
        while first < len(places) > 1:
            rest = [*places[:first], *places[first + part :]]
            if better(Timing(timing.seed, frozenset(rest))):
                places = rest
            else:
                first += part
        if part <= 1:
            break
        part = -(-part // 2)
    low, high = 0, max(delays.values(), default=0)
    while high - low > 1 and trials < MOST_TRIALS:
        middle = (low + high) // 2
        if better(Timing(timing.seed, frozenset(places), middle)):
            high = middle
        else:
            low = middle
    return timing, difference, delays


def _finding(run: Run, difference: str, delays: dict[Place, int]) -> Finding:
    lines = [_late(place, cycles) for place, cycles in sorted(delays.items())]
    places = [place for place in delays if place[0]]
    file, line, pipe, _ = min(places) if places else ("", 0, "", "")
    reason = (
        "the findings say what is not in order"
        if any(
            one.kind in ("RACE", "COHERENCE", "UNINIT", "DEADLOCK", "FLAG_BALANCE")
            for one in run.findings
        )
        else "something in the kernel depends on who comes first"
    )
    return Finding(
        "RACE",
        "depends-on-timing",
        f"under a legal timing {difference}: it is enough that\n  "
        + "\n  ".join(lines)
        + f"\n  {reason}",
        file,
        line,
        "",
        pipe,
        struck=True,
    )


def _late(place: Place, cycles: int) -> str:
    file, line, unit, what = place
    if what == "core":
        return _HOW[what].format(unit, cycles)
    if what == "issue":
        return _HOW[what].format(unit)
    return f"{unit} at {short(file)}:{line} {_HOW[what].format(cycles)}"
