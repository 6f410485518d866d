"""The command `check`: a run with all checks, and what more can be asked of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from ascend_sim.adversary import Adversary
from ascend_sim.blame import watch
from ascend_sim.cli.outcome import Outcome
from ascend_sim.cli.request import Request
from ascend_sim.cli.show import report_check
from ascend_sim.doctor.search import Doctor
from ascend_sim.errors import ConfigError
from ascend_sim.interval import rehearse
from ascend_sim.npz import read_npz
from ascend_sim.run import Run
from ascend_sim.stage import Rehearsal, rehearsing


def checked(
    request: Request,
    simulate: Callable[[Request], Outcome],
    *,
    adversary: int | None,
    doctor: bool,
    coverage: bool,
    blame: bool,
    reference: Path | None,
) -> int:
    """Simulate with all checks, print what they find, return the exit code.

    With `adversary` each launch is performed again under so many hostile timings, with `doctor` one whose
    synchronisation is wrong is performed again with edits, and `coverage` shows what was read and written. With `blame`
    each launch is performed again to see where its numbers go wrong, beside a `reference` of its outputs (a file of
    arrays by the names of parameters) if there is one. Raises `ConfigError` where there are no numbers or checks to
    compare, and for a reference that no launch has such arguments for.
    """
    hostile = Adversary(adversary, request.seed or 0) if adversary is not None else None
    if hostile is not None:
        _refuse(request)
    blamer = _blamer(request, reference) if blame or reference is not None else None
    if coverage and request.checks == "off":
        raise ConfigError("--coverage tells what the checks noted: leave out --checks off")
    listeners = [Doctor().rehearse] if doctor and request.checks != "off" else []
    if blamer is not None:
        listeners.append(blamer.rehearse)
    if hostile is not None:
        listeners.append(hostile.rehearse)
    with rehearsing(*listeners):
        outcome = simulate(request)
    if blamer is not None:
        blamer.check_used()
    code = report_check(outcome)
    if coverage and outcome.run is not None:
        print_coverage(outcome.run)
    if hostile is not None and hostile.launches:
        print(hostile.verdict())
    return code


def _refuse(request: Request) -> None:
    for option, value in (("--numerics", request.numerics), ("--checks", request.checks)):
        if value == "off":
            raise ConfigError(f"--adversary compares results and findings: leave out {option} off")


class _Blamer:
    """Looks at the numbers of each launch, and adds what it sees to the run's findings."""

    def __init__(self, reference: Mapping[str, Any], file: Path | None) -> None:
        self._reference = reference
        self._file = file
        self._used: set[str] = set()

    def rehearse(self, rehearsal: Rehearsal) -> None:
        """Perform a launch again under watch, with those references that it has arguments for."""
        names = rehearsal.stage.asked.addresses
        mine = {name: array for name, array in self._reference.items() if name in names}
        self._used.update(mine)
        rehearsal.run.findings += watch(rehearsal, reference=mine).findings

    def check_used(self) -> None:
        """Raise `ConfigError` for a reference that was compared with nothing."""
        unused = [name for name in self._reference if name not in self._used]
        if unused:
            raise ConfigError(
                f"--reference {self._file} has {', '.join(unused)}: no launch has an argument of that name"
            )


def _blamer(request: Request, file: Path | None) -> _Blamer:
    if request.numerics == "off":
        raise ConfigError("--blame and --reference look at numbers: leave out --numerics off")
    return _Blamer(read_npz(file) if file is not None else {}, file)


def both_ends(asked: bool) -> AbstractContextManager[None]:
    """Let each launch's run say its time at the ends of the figures' ranges, if that is asked for."""
    return rehearsing(*([rehearse] if asked else []))


def print_coverage(run: Run) -> None:
    """Print what a run did to each tensor in GM, and which core did what."""
    for one in run.touched():
        address = one.read.address
        shape = " x ".join(map(str, address.shape))
        print(f"{one.name}, {shape} of {address.dtype.name}")
        lines = [("read", one.read), ("written", one.written), ("written twice", one.written_twice)]
        if one.read.text:
            lines.append(("never read", one.never_read))
        if one.written.text:
            lines.append(("never written", one.never_written))
        for what, part in lines:
            if part.text:
                print(f"  {what:<14} {part.text} ({part.elements:,} elements)")
        if not one.read.text and not one.written.text:
            print("  not touched")
        for core, (read, written) in one.by_core.items():
            done = [
                f"{verb} {part.text}"
                for verb, part in (("reads", read), ("writes", written))
                if part.text
            ]
            print(f"    {core:<12} {', '.join(done)}")
