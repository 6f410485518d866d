"""The time of a run between the fast and the slow ends of what its chip's figures may be.

Where sources conflict, or a figure is an estimate, the chip file gives a range beside the value. Two further passes
take all figures at the ends that make runs fast, and at those that make them slow.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ascend_sim.config import Chip
from ascend_sim.errors import UnsupportedError

if TYPE_CHECKING:
    from ascend_sim.run import Run
    from ascend_sim.stage import Rehearsal


_MORE_IS_FASTER = ("port", "gbps", "window", "_sum_", "queue")
"""Parts of the names of rates, and of what may be in flight; all else is a cost."""


def ends(chip: Chip) -> tuple[Chip, Chip]:
    """Return the chip with every figure that has a range at its fast end, and with every one at its slow end."""
    return _at(chip, fast=True), _at(chip, fast=False)


def _at(chip: Chip, *, fast: bool) -> Chip:
    data = chip.model_dump(exclude={"sources"})
    for key, (low, high) in chip.ranges().items():
        *sections, name = key.split(".")
        place = data
        for section in sections:
            place = place[section]
        more = any(word in name for word in _MORE_IS_FASTER)
        place[name] = type(place[name])(high if fast == more else low)
    return Chip.model_validate(data | {"sources": chip.sources})


def interval(run: Run) -> dict[str, Any]:
    """Return `low` and `high`, the run's cycles at both ends, and `how` they were found: replayed.

    The run's own cycles lie between them or at an end: more speed in one place can cost time in another, so an end
    is never on the wrong side. Raises UnsupportedError where the kernel cannot be replayed.
    """
    recording = run.recording()
    options = run.options
    found = [
        recording.replay(
            chip, l2=options.get("l2_start", "cold"), physical_cores=options.get("cores")
        ).cycles
        for chip in ends(run.chip)
    ]
    return _between(run, found, "replayed")


def _between(run: Run, found: list[int], how: str) -> dict[str, Any]:
    return {
        "low": min(run.cycles, *found),
        "high": max(run.cycles, *found),
        "ranges": len(run.chip.ranges()),
        "how": how,
    }


def rehearse(rehearsal: Rehearsal) -> None:
    """Attach the interval to a launch's run: replayed, or launched twice again where a replay cannot tell.

    Append it to `stage.rehearsals`.
    """
    run = rehearsal.run
    if rehearsal.failure is not None:
        return
    try:
        run.extra["interval"] = interval(run)
        return
    except UnsupportedError:
        pass
    stage, found = rehearsal.stage, []
    asked = stage.asked
    for chip in ends(run.chip):
        stage.asked = replace(asked, chip=chip)
        trial = rehearsal.again(checks="off")
        if trial.run is not None and trial.error is None:
            found.append(trial.run.cycles)
    stage.asked = asked
    if found:
        run.extra["interval"] = _between(run, found, "launched again")
