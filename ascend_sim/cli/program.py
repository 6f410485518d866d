"""Running a Python file as a program: its own main part launches kernels, and their runs are collected."""

from __future__ import annotations

import ast
import contextlib
import difflib
import enum
import importlib
import random
import runpy
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

import simpy

import isa
from ascend_sim.chip_file import is_file, nearest
from ascend_sim.cli.outcome import OtherRun, Outcome
from ascend_sim.cli.request import Request
from ascend_sim.config import load_chip
from ascend_sim.errors import AscendSimError, ConfigError, KernelError
from ascend_sim.lang.device import Device, exchange
from ascend_sim.launch import Sampled, sample_first
from ascend_sim.stand_in import standing_in

if TYPE_CHECKING:
    from ascend_sim.run import Run


def run_program(request: Request) -> Outcome:
    """Run the file and return the last of its launches, or the last one of `--kernel`.

    Inside it `import asc` is the simulator's. `--chip`, `--cores` and the other options of a launch hold
    for launches written `kernel[blocks](…)`; `--seed` seeds `random` and `numpy.random`. Raises
    `ConfigError` for a file that is not there, an option that only operators have, a program that
    launches nothing, an unknown kernel; what ends the program itself is in the outcome.
    """
    _refuse_operator_options(request)
    path = Path(request.target)
    if not is_file(path):
        raise ConfigError(f"no such file: {request.target}{_similar(path)}")
    code = _changed(path, request.sets)
    collector = _Collector(request.kernel)
    error: BaseException | None = None
    with _listening(collector), _launch_defaults(request), _as_main(path, request.arguments):
        _seed(request.seed)
        try:
            if code is not None:
                _run_code(code, path)
            else:
                runpy.run_path(str(path), run_name="__main__")
        except SystemExit as stop:
            error = _unless_good(stop)
        except Exception as raised:
            error = raised
    outcome = collector.outcome(error, request.target)
    outcome.notes += _ignored(request, outcome.run)
    return outcome


def sample_program(request: Request) -> Sampled:
    """Return the first launch of a file, or of its kernel `--kernel`, from a run that leaves out trips of its loops.

    The program ends there. Raises `ConfigError` for a program that does not come to such a launch.
    """
    outcomes: list[Outcome] = []
    found = sample_first(lambda: outcomes.append(run_program(request)), request.kernel)
    if found is not None:
        return found
    outcome = outcomes[0]
    known = [other.kernel for other in outcome.others]
    which = "" if request.kernel is None else f" {request.kernel!r}{nearest(request.kernel, known)}"
    ended = "" if outcome.error is None else f"; it ended with {describe(outcome.error)}"
    raise ConfigError(f"{request.target} launched no kernel{which} that could be sampled{ended}")


def constants_of(target: str) -> dict[str, Any]:
    """Return what a Python file gives names in capitals at its top level: a number, a text, None for a calculation.

    Raises `ConfigError` for a file that is not there or is no Python.
    """
    return {
        name: one.value.value if isinstance(one.value, ast.Constant) else None
        for name, one in _constants(_parse(Path(target))).items()
    }


def _parse(path: Path) -> ast.Module:
    if not is_file(path):
        raise ConfigError(f"no such file: {path}{_similar(path)}")
    try:
        return ast.parse(path.read_bytes(), str(path))
    except SyntaxError as error:
        raise ConfigError(f"{path}:{error.lineno}: {error.msg}") from error


class _Constant(NamedTuple):
    """What a file gives a name, and how to give it something else."""

    value: ast.expr
    replace: Callable[[ast.expr], None]


def _constants(tree: ast.Module) -> dict[str, _Constant]:
    """Return what a module gives names in capitals: one by one, or several (`M, N = 64, 128`)."""
    found: dict[str, _Constant] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            pairs = [(node.targets[0], node.value, partial(setattr, node, "value"))]
            target, value = node.targets[0], node.value
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                if len(target.elts) != len(value.elts):
                    continue
                pairs = [
                    (name, one, partial(value.elts.__setitem__, place))
                    for place, (name, one) in enumerate(zip(target.elts, value.elts, strict=True))
                ]
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            pairs = [(node.target, node.value, partial(setattr, node, "value"))]
        else:
            continue
        for name, given, replace in pairs:
            if (
                isinstance(name, ast.Name)
                and name.id.isupper()
                and isinstance(given, (ast.Constant, ast.UnaryOp, ast.BinOp))
            ):
                found[name.id] = _Constant(given, replace)
    return found


def _changed(path: Path, sets: dict[str, Any]) -> CodeType | None:
    """Return the file's code with other values for constants at its top level; None where all stay."""
    if not sets:
        return None
    tree = _parse(path)
    constants = _constants(tree)
    for name, value in sets.items():
        if name not in constants:
            known = ", ".join(constants) or "none"
            raise ConfigError(
                f"{path} has no constant {name!r}{nearest(name, constants)} (it has: {known}); --set replaces what a "
                "file gives a name in capitals at its top level"
            )
        one = constants[name]
        one.replace(ast.copy_location(ast.Constant(value), one.value))
    return compile(tree, str(path), "exec")


def _run_code(code: CodeType, path: Path) -> None:
    """Run a program's code as `runpy.run_path` would."""
    module = types.ModuleType("__main__")
    module.__file__ = str(path)
    before = sys.modules["__main__"]
    sys.modules["__main__"] = module
    try:
        exec(code, module.__dict__)
    finally:
        sys.modules["__main__"] = before


def _ignored(request: Request, run: Run | None) -> list[str]:
    """Return a note if the program's launch has settled something itself that an option asked otherwise."""
    if run is None:
        return []
    chip = load_chip(request.chip).name if request.chip is not None else None
    asked = {
        "--chip": (chip, run.chip.name),
        "--numerics": (request.numerics, run.options.get("numerics")),
        "--checks": (request.checks, run.options.get("checks")),
        "--l2": (request.l2, run.options.get("l2_start")),
        "--auto-sync": (request.auto_sync, run.options.get("auto_sync")),
        "--cores": (request.cores, run.options.get("cores")),
    }
    ignored = [option for option, (wanted, got) in asked.items() if wanted not in (None, got)]
    if not ignored:
        return []
    return [
        f"{', '.join(ignored)} had no effect: the program launches with its own choice. Options hold for "
        "launches that are written kernel[blocks](…)"
    ]


class _Collector:
    """Keeps the run to report, and of the others only what was found: logs are large."""

    def __init__(self, kernel: str | None) -> None:
        self.kernel = kernel
        self.chosen: Run | None = None
        self.others: list[OtherRun] = []
        self.names: list[str] = []

    def __call__(self, run: Run) -> None:
        self.names.append(run.op)
        if self.kernel is not None and run.op != self.kernel:
            self.others.append(OtherRun(run.op, run.findings))
            return
        if self.chosen is not None:
            self.others.append(OtherRun(self.chosen.op, self.chosen.findings))
        self.chosen = run

    def outcome(self, error: BaseException | None, target: str) -> Outcome:
        if error is None and not self.names:
            raise ConfigError(
                f"{target} launched no kernel; launch one in its main part, for example "
                "kernel[8](x, y, z), or import it in a test instead"
            )
        if error is None and self.chosen is None and self.kernel is not None:
            hint = nearest(self.kernel, self.names)
            names = ", ".join(dict.fromkeys(self.names))
            raise ConfigError(
                f"{target} launched no kernel {self.kernel!r}{hint} (it launched: {names})"
            )
        return Outcome(self.chosen, error, self.others)


def _refuse_operator_options(request: Request) -> None:
    given = ["--input"] if request.input_file is not None else []
    given += request.operator_options
    if given:
        raise ConfigError(
            f"{', '.join(given)}: an option for operators, and {request.target} is a Python file; give the "
            "program its own arguments after --"
        )


def _similar(path: Path) -> str:
    folder = path.parent
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    matches = difflib.get_close_matches(path.name, names, 1)
    return f"; did you mean {(folder / matches[0]).as_posix()!r}?" if matches else ""


def _seed(seed: int | None) -> None:
    if seed is None:
        return
    import numpy as np

    random.seed(seed)
    np.random.seed(seed)


def _unless_good(stop: SystemExit) -> BaseException | None:
    return None if stop.code in (None, 0) else ProgramExit(stop.code)


class ProgramExit(Exception):
    """The program ended itself with a status that is not 0."""

    def __init__(self, status: Any) -> None:
        super().__init__(status)
        self.status = status

    def __str__(self) -> str:
        return f"the program ended itself: sys.exit({self.status!r})"


@contextmanager
def _listening(collector: _Collector) -> Iterator[None]:
    listeners = importlib.import_module("ascend_sim.launch").on_run
    listeners.append(collector)
    try:
        yield
    finally:
        listeners.remove(collector)


@contextmanager
def _launch_defaults(request: Request) -> Iterator[None]:
    given = {
        "chip": request.chip,
        "numerics": request.numerics,
        "checks": request.checks,
        "l2": request.l2,
        "auto_sync": request.auto_sync,
        "physical_cores": request.cores,
    }
    options = importlib.import_module("ascend_sim.launch").defaults.options
    before = dict(options)
    options.update({name: value for name, value in given.items() if value is not None})
    device = exchange(Device())
    try:
        yield
    finally:
        options.clear()
        options.update(before)
        exchange(device)


@contextmanager
def _as_main(path: Path, arguments: list[str]) -> Iterator[None]:
    """Make the process look as if Python had been started on the file, with our `asc` as `asc`."""
    argv, search, known = sys.argv, list(sys.path), set(sys.modules)
    folder = path.resolve().parent
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(folder))
    try:
        with standing_in():
            yield
    finally:
        sys.argv, sys.path[:] = argv, search
        for name in set(sys.modules) - known:  # the program's own modules: their `asc` was ours
            file = getattr(sys.modules[name], "__file__", None)
            if file is not None and Path(file).resolve().parent == folder:
                del sys.modules[name]


def describe(error: BaseException) -> str:
    """Return an error for people: the simulator's message, or the user's own lines of a traceback."""
    if isinstance(error, ProgramExit):
        return str(error)
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if _of_the_user(frame.filename)
    ]
    if isinstance(error, AscendSimError):
        placed = isinstance(error, KernelError) and error.finding.file
        # Where in an operator's checks it was refused is no news to its user.
        others = (Path(isa.__file__).parent.parent / "ops", Path(contextlib.__file__).parent)
        frames = [frame for frame in frames if not _lies_in(frame.filename, others)]
        return (
            f"{error}\n  at {frames[-1].filename}:{frames[-1].lineno}"
            if frames and not placed
            else str(error)
        )
    lines = ["the program raised an exception:\n"] if frames else []
    lines += traceback.format_list(frames)
    lines += traceback.format_exception_only(type(error), error)
    if isinstance(error, SyntaxError) and not frames:
        lines.insert(0, "the program is no valid Python:\n")
    return "".join(lines).rstrip("\n") + _member_like(error)


def _member_like(error: BaseException) -> str:
    """Name the member of an enumeration that a misspelt one looks like: asc.HardEvent.MTE2_V and its kin."""
    if isinstance(error, AttributeError) and isinstance(error.obj, enum.EnumMeta):
        return f"; asc.{error.obj.__name__} has no such member{nearest(str(error.name), error.obj.__members__)}"
    return ""


def _of_the_user(file: str) -> bool:
    """Return whether a frame's file is neither the simulator's nor what runs the program."""
    if file.startswith("<"):
        return False
    packages = [
        Path(__file__).parent.parent,
        Path(isa.__file__).parent,
        Path(simpy.__file__).parent,
    ]
    launchers = (Path(runpy.__file__).resolve(), Path(enum.__file__).resolve())
    return Path(file).resolve() not in launchers and not _lies_in(file, packages)


def _lies_in(file: str, folders: Iterable[Path]) -> bool:
    """Return whether a file is in one of some folders, packages installed below them apart."""
    path = Path(file).resolve()
    return any(
        path.is_relative_to(folder.resolve())
        and "site-packages" not in path.relative_to(folder.resolve()).parts
        for folder in folders
    )
