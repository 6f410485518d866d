"""One point of a sweep: from a target and its parameters to a row of results.

A point never raises: what goes wrong is the row's `status` and `reason`. `status` is one of

* `ok`
* `does not fit`: a memory of the chip is too small
* `refused`: host side, tiling or an option does not take these values
* `fault`: an address, an alignment or a parameter of an instruction is wrong
* `finding`: it ran, and a check found something
* `deadlock`
* `error`: the program's own exception
* `crash`: the process that ran it died
* `pruned`: the tuner did not simulate it, because its lower bound is above the best time
"""

from __future__ import annotations

import importlib
import io
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ascend_sim.cli.request import CHOICES, Request
from ascend_sim.errors import (
    AscendSimError,
    ConfigError,
    DeadlockError,
    HostError,
    KernelError,
    UnsupportedError,
)
from ascend_sim.tuning.space import Point, Space, Value, check_names

if TYPE_CHECKING:
    from ascend_sim.cli.outcome import Outcome
    from ascend_sim.recorder import Asked, Recordings
    from ascend_sim.run import Run

RUN_OPTIONS = ("chip", "cores", "seed", "numerics", "checks", "l2", "auto-sync")
"""Options of a run that can be varied as well."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """What all points of a sweep share: the target and the options that are fixed.

    `fixed` has names as the points have them: options of a run (`chip`, `l2`, …), options of the operator (`seq`),
    constants (`BUFFER_NUM`).
    """

    target: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    kernel: str | None = None
    arguments: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self) | {"fixed": dict(self.fixed), "arguments": list(self.arguments)}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Task:
        """Return the task of plain data."""
        return cls(
            plain["target"], dict(plain["fixed"]), plain["kernel"], tuple(plain["arguments"])
        )

    def request(self, point: Mapping[str, Any]) -> Request:
        """Return the run that a point asks for: timing only, unless it says otherwise."""
        values = {"numerics": "off", "checks": "off", **self.fixed, **point}
        options = {name: values.pop(name) for name in RUN_OPTIONS if name in values}
        given = {name: str(value) for name, value in values.items() if not _is_constant(name)}
        sets = {name: value for name, value in values.items() if _is_constant(name)}
        sync = options.get("auto-sync")
        return Request(
            target=self.target,
            chip=_text(options.get("chip")),
            sets=sets,
            seed=options.get("seed"),
            cores=options.get("cores"),
            numerics=_text(options.get("numerics")),
            checks=_text(options.get("checks")),
            l2=_text(options.get("l2")),
            auto_sync=None if sync is None else sync == "on",
            kernel=self.kernel,
            operator_options={f"--{name}": value for name, value in given.items()},
            arguments=list(self.arguments),
        )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _is_constant(name: str) -> bool:
    """Return whether a name is a constant's: those are in capitals, options are not."""
    return name == name.upper()


def known_names(task: Task) -> list[str]:
    """Return what of a target can be varied. Raises `ConfigError` for a target that there is not."""
    if task.request({}).is_file:
        from ascend_sim.cli.program import constants_of  # noqa: PLC0415  loads what runs programs

        return [*constants_of(task.target), *RUN_OPTIONS]
    from ascend_sim.cli.operators import parameters_of  # noqa: PLC0415  loads the operators

    return [*parameters_of(task.target), *RUN_OPTIONS]


def check_task(task: Task, space: Space) -> None:
    """Raise `ConfigError` for a target, name, chip or choice that does not exist."""
    from ascend_sim.cli.request import check_chip, choose  # noqa: PLC0415  beside its use

    known = known_names(task)
    owner = task.target
    check_names(space, known, owner)
    check_names(Space({name: (value,) for name, value in task.fixed.items()}), known, owner)
    for name in space.axes:
        if name in task.fixed:
            raise ConfigError(
                f"{name} is fixed at {task.fixed[name]!r} and varied too: drop one of the two"
            )
    for name, values in [*space.axes.items(), *((n, (v,)) for n, v in task.fixed.items())]:
        for value in values:
            if name == "chip":
                check_chip(str(value))
            elif f"--{name}" in CHOICES:
                choose(f"--{name}", str(value))


def default_point(task: Task, space: Space) -> Point:
    """Return the point of a space that is nearest to what a run without any of its names would use."""
    defaults: dict[str, Any] = {"chip": "ascend910b1"}
    if task.request({}).is_file:
        from ascend_sim.cli.program import constants_of  # noqa: PLC0415  loads what runs programs

        defaults |= constants_of(task.target)
    else:
        from ascend_sim.cli.operators import defaults_of  # noqa: PLC0415  loads the operators

        defaults |= defaults_of(task.target)
    return {
        name: _nearest(defaults.get(name, values[0]), values) for name, values in space.axes.items()
    }


def _nearest(wanted: Any, values: Sequence[Value]) -> Value:
    numbers = [value for value in values if isinstance(value, (int, float))]
    if wanted in values or len(numbers) < len(values) or not isinstance(wanted, (int, float)):
        return wanted if wanted in values else values[0]
    return min(numbers, key=lambda value: abs(value - wanted))


def new_recordings() -> Recordings:
    """Return an empty place for the recordings of launches."""
    from ascend_sim.recorder import Recordings  # noqa: PLC0415  the machine is loaded when it is needed

    return Recordings()


Front = Sequence[Mapping[str, float]]
"""Points that are known, by the columns that are to be small."""


def evaluate(
    task: Task, point: Point, recordings: Recordings | None = None, front: Front | None = None
) -> Row:
    """Run a point and return its row; never raises for what it does.

    A launch for its time only is recorded and replayed, with a recording of `recordings` where they have its kernel.
    With `front` it is not simulated where its lower bound is above a point of the front in all of its columns: the
    status is `pruned` then. `simulated` says whether it came to a simulation.
    """
    started = time.perf_counter()
    request = task.request(point)
    pruner = Pruner(front) if front is not None else None
    substitute = (pruner or recordings or new_recordings()).launch
    try:
        with replacing(substitute):
            row = _row(_simulate(request))
    except Pruned as pruned:
        row = pruned.row
    except AscendSimError as error:
        row = {"status": "refused", "reason": str(error)}
    except Exception as error:  # a program's own, or a bug: it is this point's result
        row = {"status": "error", "reason": f"{type(error).__name__}: {error}"}
    row["simulated"] = int(pruner is None or pruner.simulated)
    row["seconds"] = round(time.perf_counter() - started, 3)
    return row


def run_point(task: Task, point: Point) -> Run | None:
    """Return the run of a point; None where it does not go through. What a program prints goes nowhere."""
    try:
        with redirect_stdout(io.StringIO()):
            outcome = _simulate(task.request(point))
    except AscendSimError:
        return None
    return outcome.run if outcome.error is None else None


class Pruned(BaseException):
    """Ends a launch that need not be simulated; no kernel and no operator catches it."""

    def __init__(self, row: Row) -> None:
        super().__init__(row)
        self.row = row


class Pruner:
    """Records launches, and ends those whose lower bound says that they cannot be better than a known point."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self.simulated = False

    def launch(self, asked: Asked) -> Run | None:
        """Return the replayed run of a launch; None where it has to run live. Raises `Pruned`."""
        from ascend_sim.roofline import lower_bound  # noqa: PLC0415  loads the machine

        if not asked.timing_only:
            self.simulated = True
            return None
        try:
            recording = asked.record()
        except UnsupportedError:
            self.simulated = True
            return None
        chip, places = asked.chip, asked.physical_cores
        bound, limit = lower_bound(recording, chip, l2=asked.l2, physical_cores=places)
        seats = len({(part.kind, part.sub_block) for part in recording.parts})
        mine = {
            "time_us": chip.us(bound),
            "ub_bytes": recording.reserved.get("UB", 0),
            "cores": min(places, recording.blocks) * seats,
        }
        for known in self._front:
            if all(mine[column] > value for column, value in known.items()):
                reason = (
                    f"its lower bound of {bound:,} cycles ({limit}) is above the best known time"
                )
                raise Pruned(
                    {
                        "status": "pruned", "reason": reason, "bound_cycles": bound, "limit": limit,
                        "chip": chip.name, "chip_revision": chip.revision,
                        "ub_bytes": mine["ub_bytes"], "cores": mine["cores"],
                    }
                )  # fmt: skip
        self.simulated = True
        return recording.replay(chip, l2=asked.l2, physical_cores=places)


@contextmanager
def replacing(substitute: Callable[[Asked], Run | None] | None) -> Iterator[None]:
    """Let launches be replaced by what `substitute` returns; None leaves them as they are."""
    substitutes = importlib.import_module("ascend_sim.launch").substitutes
    if substitute is None:
        yield
        return
    substitutes.append(substitute)
    try:
        yield
    finally:
        substitutes.remove(substitute)


def _simulate(request: Request) -> Outcome:
    if request.is_file:
        from ascend_sim.cli.program import run_program  # noqa: PLC0415  loads what runs programs

        return run_program(request)
    from ascend_sim.cli.operators import run_operator  # noqa: PLC0415  loads the operators

    return run_operator(request)


def _row(outcome: Outcome) -> Row:
    status, reason = judge(outcome)
    row: Row = {"status": status, "reason": reason}
    run = outcome.run
    if run is not None:
        row |= {"chip": run.chip.name, "chip_revision": run.chip.revision}
        if status in ("ok", "finding"):
            row |= measures(run)
    return row


def measures(run: Run) -> Row:
    """Return what a row says of a run that went through. A replayed run is not asked for its records."""
    recording = run.origin.recording if run.origin is not None else None
    if recording is not None:
        from ascend_sim.roofline import gm_bytes, lower_bound  # noqa: PLC0415  loads the machine

        l2, places = run.options["l2_start"], run.options["cores"]
        bound, limit = lower_bound(recording, run.chip, l2=l2, physical_cores=places)
        seats = len({(part.kind, part.sub_block) for part in recording.parts})
        cores = min(places, recording.blocks) * seats
        read, written = gm_bytes(recording)
    else:
        summary = run.summary
        read, written = (summary["bytes"][name] for name in ("gm_read", "gm_write"))
        bound, limit = summary["bound"]["lower_bound_cycles"], summary["bound"]["limit"]
        cores = len(run.log.cores)
    return {
        "cycles": run.cycles,
        "time_us": round(run.time_us, 3),
        "blocks": run.blocks,
        "cores": cores,
        "bound_cycles": bound,
        "limit": limit,
        "ub_bytes": run.origin.reserved.get("UB", 0) if run.origin is not None else 0,
        "gm_read": read,
        "gm_write": written,
        "l2_hit_bytes": run.memory["l2_hit_bytes"],
        "l2_miss_bytes": run.memory["l2_miss_bytes"],
        "write_back_bytes": run.memory["write_back_bytes"],
    }


def judge(outcome: Outcome) -> tuple[str, str]:
    """Return the status of an outcome, and the reason where that is not `ok`."""
    error = outcome.error
    if error is None:
        found = [
            finding
            for finding in (outcome.run.findings if outcome.run is not None else [])
            if finding.kind not in ("INFO", "PERF")
        ]
        if not found:
            return "ok", ""
        first = found[0]
        more = f" (and {len(found) - 1} more findings)" if len(found) > 1 else ""
        return "finding", f"{first.kind} {first.code}: {_line(first.message)}{more}"
    if isinstance(error, DeadlockError):
        return "deadlock", _line(str(error), 3)
    if isinstance(error, HostError):
        return "refused", _line(str(error))
    if isinstance(error, KernelError):
        kind = error.finding.kind
        if kind == "CAPACITY":
            lines = error.finding.message.splitlines()
            told = dict.fromkeys((lines[0], lines[-1].strip()))
            return "does not fit", ". ".join(
                line[:1].upper() + line[1:] if place else line for place, line in enumerate(told)
            )
        place = f" at {error.finding.file}:{error.finding.line}" if error.finding.file else ""
        return "fault", f"{kind} {error.finding.code}{place}: {_line(error.finding.message)}"
    if isinstance(error, AscendSimError):
        return "refused", _line(str(error))
    return "error", f"{type(error).__name__}: {_line(str(error))}"


def _line(text: str, lines: int = 1) -> str:
    return " ".join(part.strip() for part in text.splitlines()[:lines])
