"""Why the winner of a search wins: its ledger beside the runner-up's and the default's. And its settings as a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ascend_sim.report.diff import Difference
from ascend_sim.run import Run
from ascend_sim.tuning.space import Point, Space
from ascend_sim.tuning.store import simulator_version
from ascend_sim.tuning.task import RUN_OPTIONS, Task, run_point
from ascend_sim.tuning.tuner import Tuned


@dataclass(frozen=True, slots=True)
class Comparison:
    """The winner beside another point: where the other one spends more."""

    title: str
    difference: Difference
    text: str


def compare(tuned: Tuned) -> list[Comparison]:
    """Return the winner beside the runner-up and beside what a run uses by default; runs them once more."""
    task, space = tuned.result.task, tuned.result.space
    if tuned.best is None:
        return []
    winner = run_point(task, _point(tuned.best, space))
    if winner is None:
        return []
    found = []
    others: list[tuple[str, Point]] = []
    if tuned.runner_up is not None:
        point = _point(tuned.runner_up, space)
        others.append((f"the runner-up ({_words(point)})", point))
    others.append(("the default", {}))
    for name, point in others:
        run = run_point(task, point)
        if run is not None:
            difference = run.diff(winner)
            found.append(Comparison(name, difference, _text(name, run, winner, difference)))
    return found


def _point(row: Mapping[str, Any], space: Space) -> Point:
    return {name: row[name] for name in space.axes}


def _words(point: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in point.items())


def _text(name: str, other: Run, winner: Run, difference: Difference) -> str:
    """Say in a sentence or two what the busiest pipe saves, by cause; the parts add up to the whole."""
    change = winner.cycles - other.cycles
    if other.chip.name != winner.chip.name:
        return (
            f"against {name}: {winner.time_us:,.2f} us on {winner.chip.name} instead of {other.time_us:,.2f} us on "
            f"{other.chip.name}"
        )
    if change == 0:
        return f"against {name}: as fast, {winner.cycles:,} cycles"
    pipe = _busiest(winner)
    causes: dict[str, float] = {}
    for row in difference.pipes:
        if row.key[0] == pipe:
            causes[row.key[2]] = causes.get(row.key[2], 0.0) + row.change
    parts = sorted(causes.items(), key=lambda part: -abs(part[1]))
    told = ", ".join(f"{cause} {cycles:+,.0f}" for cause, cycles in parts if round(cycles))
    share = 100 * change / other.cycles
    return (
        f"against {name}: {winner.cycles:,} cycles instead of {other.cycles:,} ({share:+.1f} %). In {pipe}, the pipe "
        f"with the most to do: {told}"
    )


def _busiest(run: Run) -> str:
    """Return the kind of pipe (`aiv.MTE2`) that is occupied for most of the time."""
    sums: dict[str, list[int]] = {}
    for core in run.log.cores:
        for pipe, entry in run.pipes[core.name].items():
            if pipe != "S":
                sums.setdefault(f"{core.kind.value}.{pipe}", []).append(entry["occupied"])
    means = {name: sum(values) / len(values) for name, values in sums.items()}
    return max(means, key=lambda name: means[name])


def write_setting(tuned: Tuned, path: Path) -> None:
    """Write the winner as a file for `ascend-sim run OP --config FILE`: options, constants, what they came to."""
    best = tuned.best
    assert best is not None
    path.write_text(
        yaml.safe_dump(
            setting(tuned.result.task, _point(best, tuned.result.space), best), sort_keys=False
        ),
        encoding="utf-8",
    )


def setting(task: Task, point: Point, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a point as plain data."""
    values = {**task.fixed, **point}
    constants = {name: value for name, value in values.items() if name == name.upper()}
    run = {name: value for name, value in values.items() if name in RUN_OPTIONS}
    options = {
        name: value for name, value in values.items() if name not in constants and name not in run
    }
    return {
        "target": task.target,
        "run": run,
        "options": options,
        "set": constants,
        "found": {
            "time_us": row["time_us"],
            "cycles": row["cycles"],
            "chip": row["chip"],
            "chip_revision": row["chip_revision"],
            "version": simulator_version(),
        },
    }
