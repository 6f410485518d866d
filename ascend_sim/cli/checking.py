"""The command `check`: a run with all checks, and what more can be asked of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ascend_sim.adversary import Adversary
from ascend_sim.cli.outcome import Outcome
from ascend_sim.cli.request import Request
from ascend_sim.cli.show import report_check
from ascend_sim.doctor.search import Doctor
from ascend_sim.errors import ConfigError
from ascend_sim.stage import Rehearsal, rehearsals


def checked(
    request: Request, simulate: Callable[[Request], Outcome], *, adversary: int | None, doctor: bool
) -> int:
    """Simulate with all checks, print what they find, return the exit code.

    With `adversary` each launch is performed again under so many hostile timings, with `doctor` one whose
    synchronisation is wrong is performed again with edits. Raises `ConfigError` where there are no numbers or checks
    to compare.
    """
    hostile = Adversary(adversary, request.seed or 0) if adversary is not None else None
    if hostile is not None:
        _refuse(request)
    listeners = [Doctor().rehearse] if doctor and request.checks != "off" else []
    if hostile is not None:
        listeners.append(hostile.rehearse)
    with _rehearsing(listeners):
        outcome = simulate(request)
    code = report_check(outcome)
    if hostile is not None and hostile.launches:
        print(hostile.verdict())
    return code


def _refuse(request: Request) -> None:
    for option, value in (("--numerics", request.numerics), ("--checks", request.checks)):
        if value == "off":
            raise ConfigError(f"--adversary compares results and findings: leave out {option} off")


@contextmanager
def _rehearsing(listeners: Sequence[Callable[[Rehearsal], None]]) -> Iterator[None]:
    rehearsals.extend(listeners)
    try:
        yield
    finally:
        for listener in listeners:
            rehearsals.remove(listener)
