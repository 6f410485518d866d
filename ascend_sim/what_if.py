"""What would help, and by how much: the run simulated again with one resource ideal, or two.

The kernel is not run again: what it issued is replayed. A gain is measured, not read off the critical path, whose
share stands beside it: what waits elsewhere takes the place of what is removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from ascend_sim.chip_file import nearest
from ascend_sim.errors import ConfigError, KernelError
from ascend_sim.ideals import IDEALS, Ideal
from ascend_sim.report.notebook import what_if_html

if TYPE_CHECKING:
    from ascend_sim.recording import Recording
    from ascend_sim.run import Run

_CANDIDATES = 5
_WORTH = 0.01
"""Pairs are tried among so many ideals, and told where they gain so much more of the run than each for itself."""


@dataclass(slots=True)
class Row:
    """One ideal, or two together: the cycles of the run with it, and what the critical path has of it.

    `estimated`: computed from the run's own times, not simulated. `path` is None where the critical path cannot show
    the resource.
    """

    ideals: tuple[str, ...]
    means: str
    cycles: int
    gain: int
    path: int | None
    estimated: bool = False


@dataclass(slots=True)
class WhatIf:
    """The rows with the largest gain first. `cycles` is the run as it is."""

    op: str
    cycles: int
    clock_mhz: float
    rows: list[Row]
    pairs: list[Row]
    """Pairs that gain more together than the two of them one by one."""

    def as_dict(self) -> dict[str, Any]:
        """Return the table as plain JSON."""
        return {
            "schema_version": 1,
            "op": self.op,
            "cycles": self.cycles,
            "clock_mhz": self.clock_mhz,
            "ideals": [_as_dict(row) for row in self.rows],
            "pairs": [_as_dict(row) for row in self.pairs],
        }

    def _repr_html_(self) -> str:
        """Show the table in a notebook."""
        return what_if_html(self.as_dict())


def _as_dict(row: Row) -> dict[str, Any]:
    return {
        "ideal": list(row.ideals),
        "means": row.means,
        "cycles": row.cycles,
        "gain": row.gain,
        "critical_path": row.path,
        "estimated": row.estimated,
    }


def what_if(run: Run, ideal: Iterable[str] | None = None, *, pairs: bool = True) -> WhatIf:
    """Return what the run gains with each of some resources ideal (all of `IDEALS` where None).

    With `pairs`, two at a time are tried among those that gain most, and told where they gain more together. `a+b` in
    `ideal` asks for a pair outright. Raises ConfigError for an ideal that there is not, UnsupportedError for a
    kernel that cannot be replayed (what it issues depends on what it computes).
    """
    asked = [_names(entry) for entry in ideal] if ideal is not None else _all(run)
    recording = run.recording()
    rows = [_row(run, recording, names) for names in asked]
    if ideal is None:
        rows += _balance(run)
    rows.sort(key=lambda row: (-row.gain, row.ideals))
    found = _pairs(run, recording, rows) if pairs and ideal is None else []
    return WhatIf(run.op, run.cycles, run.chip.clock_mhz, rows, found)


def _names(entry: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in entry.split("+"))
    for name in names:
        if name not in IDEALS:
            raise ConfigError(
                f"nothing is called {name!r} that could be ideal{nearest(name, IDEALS)} (there are: "
                f"{', '.join(IDEALS)}; two together: mte2+buffer)"
            )
    return names


def _all(run: Run) -> list[tuple[str, ...]]:
    """Return every ideal that can matter to this run: pipes that it uses, cores for blocks that wait."""
    used = {
        name
        for pipes in run.pipes.values()
        for name, entry in pipes.items()
        if entry["instructions"]
    }
    needs = {
        "mte1": "MTE1",
        "fixpipe": "FIX",
        "cube": "M",
        "vector": "V",
        "mte3": "MTE3",
        "mte2": "MTE2",
    }
    waves = any(len(core.blocks) > 1 for core in run.log.cores)
    return [
        (name,)
        for name in IDEALS
        if needs.get(name, "S") in used | {"S"} and (name != "cores" or waves)
    ]


def simulate(run: Run, recording: Recording, names: Sequence[str]) -> Run | None:
    """Return the run with some resources ideal; None where a replay with them cannot end."""
    chip, cores = run.chip, 1
    for name in names:
        one: Ideal = IDEALS[name]
        chip = one.chip(chip) if one.chip is not None else chip
        recording = one.recording(recording) if one.recording is not None else recording
        cores *= one.cores
    physical = run.options.get("cores")
    try:
        return recording.replay(
            chip,
            l2=run.options.get("l2_start", "cold"),
            physical_cores=None if physical is None else physical * cores,
        )
    except KernelError:
        return None


def _row(run: Run, recording: Recording, names: tuple[str, ...]) -> Row:
    again = simulate(run, recording, names)
    cycles = run.cycles if again is None else again.cycles
    means = "; ".join(IDEALS[name].means for name in names)
    return Row(names, means, cycles, run.cycles - cycles, _on_path(run, names))


def _on_path(run: Run, names: Iterable[str]) -> int | None:
    tests = [IDEALS[name].on_path for name in names]
    known = [test for test in tests if test is not None]
    if not known:
        return None
    total = 0
    for row in run.critical_path().rows():
        if any(test(row) for test in known):
            total += row["cycles"]
    return total


def _balance(run: Run) -> list[Row]:
    """Estimate what an even split of the work would gain: every core works as long as their mean."""
    cores = run.log.cores
    if len(cores) < 2:
        return []
    ends = [core.end for core in cores]
    gain = max(ends) - sum(core.end - core.start for core in cores) // len(cores)
    gain -= max(core.start for core in cores)
    means = "all cores work equally long (an estimate: their mean)"
    return [Row(("balance",), means, run.cycles - max(gain, 0), max(gain, 0), None, True)]


def _pairs(run: Run, recording: Recording, rows: Sequence[Row]) -> list[Row]:
    """Return the pairs that gain more together than one by one."""
    single = {row.ideals[0]: row.gain for row in rows if not row.estimated}
    names = [row.ideals[0] for row in rows if not row.estimated]
    # What gains nothing by itself may be what the best one runs into next.
    best = [name for name in names if name not in ("launch", "overhead")][: _CANDIDATES + 1]
    found = []
    for pair in combinations(best, 2):
        row = _row(run, recording, pair)
        if row.gain - sum(max(single[name], 0) for name in pair) >= _WORTH * run.cycles:
            found.append(row)
    return sorted(found, key=lambda row: (-row.gain, row.ideals))
