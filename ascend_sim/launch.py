"""Launch a kernel: check the arguments, run the machine, say what happened."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import isa
from ascend_sim.arguments import as_pyasc_passes, bind_arguments, check_kinds
from ascend_sim.chip_file import nearest
from ascend_sim.config import Chip, load_chip
from ascend_sim.errors import ConfigError, KernelError, host_error
from ascend_sim.l2 import STARTS
from ascend_sim.lang import device
from ascend_sim.lang.jit import JIT_OPTIONS, Kernel, check_options, is_constant
from ascend_sim.placement import KernelType, places
from ascend_sim.recorder import Asked
from ascend_sim.recording import Recording
from ascend_sim.run import Run
from ascend_sim.sampled import Estimate
from ascend_sim.stage import Rehearsal, Stage, kernel_frames, rehearsals
from isa.tensor import GlobalAddress

MAX_BLOCKS = 65535
log = logging.getLogger("ascend_sim")

on_run: list[Callable[[Run], None]] = []
"""Called with each run that ends, whole or cut short; the command line listens here."""

on_launch: list[Callable[[Any, tuple[Any, ...], int], None]] = []
"""Called with kernel, arguments and blocks before each run; what a listener raises ends the launch."""


substitutes: list[Callable[[Asked], Run | None]] = []
"""Asked for a run before a launch begins: the first that returns one stands for the launch. Sweeps replay here."""


@dataclass
class LaunchDefaults:
    """What a launch written as `kernel[blocks](…)` uses; the command line's options go in here."""

    options: dict[str, Any] = field(default_factory=dict)


defaults = LaunchDefaults()

_LIBRARY = (Path(isa.__file__).parent, Path(__file__).parent)


def launch(
    kernel: Callable[..., Any],
    *args: Any,
    cores: int = 1,
    chip: str | Path | Chip | None = None,
    numerics: str | None = None,
    checks: str | None = None,
    l2: str | None = None,
    auto_sync: bool | None = None,
    kernel_type: KernelType | str | None = None,
    physical_cores: int | None = None,
    names: list[str] | None = None,
    name: str | None = None,
    outputs: list[str] | None = None,
    memset: list[str] | None = None,
    overflow: str | None = None,
    event_ids: str | None = None,
    shuffle: int | None = None,
) -> Run:
    """Run a kernel on `cores` blocks and return what happened.

    numpy arrays (torch tensors where torch is installed) are tensors in GM and are written in place; numbers are
    scalars. `chip` is a name or a path, ascend910b1 where None. `numerics` "on", "exact" (matrix products in a
    fixed order of additions, see `isa.cube`) or "off" (time only); `checks` "collect", "error" (raise at the first
    finding) or "off"; `l2` "cold", "warm" or "dirty" at the launch; `auto_sync` None for what the kernel's jit says
    (off without one); `kernel_type` which cores a block starts (a vector core where None and the jit says nothing);
    `physical_cores` how many there are (the chip's where None); `names` and `name` what messages call arguments and
    kernel; `outputs` the arguments that the caller itself looks over for unwritten places; `memset` the arguments
    (outputs, workspace) that the launch sets to zero first, at no time here, as a library does for a kernel that
    asks for it; `overflow` "inf_nan", or "saturate" for the largest value and 0 where a conversion to float16 or
    bfloat16 gives an infinity or NaN; `event_ids` "pair" (a flag belongs to an event, a pair of pipes) or "source"
    (one flag for all events of a source pipe, as some toolchains have it; for the kernel's own flags). `shuffle` is a
    seed that scrambles the order of simultaneous events, which changes nothing.

    Raises HostError for bad arguments, ConfigError for a bad option or chip, KernelError for a kernel that
    cannot go on (with `.finding` and `.run`, the state so far), and whatever the kernel's own Python raises.
    """
    function = kernel.function if isinstance(kernel, Kernel) else kernel
    if not callable(function):
        raise host_error(
            "not-a-kernel", f"launch needs a kernel function, got {type(kernel).__name__}"
        )
    loaded = load_chip(_option("chip", chip, "ascend910b1"))
    numerics = _choice("numerics", _option("numerics", numerics, "on"), ("on", "off", "exact"))
    checks = _choice("checks", _option("checks", checks, "collect"), ("collect", "error", "off"))
    l2 = _choice("l2", _option("l2", l2, "cold"), STARTS)
    auto_sync = _option(
        "auto_sync", auto_sync, kernel.auto_sync if isinstance(kernel, Kernel) else False
    )
    overflow = _choice(
        "overflow", _option("overflow", overflow, "inf_nan"), ("inf_nan", "saturate")
    )
    ids = _choice("event_ids", _option("event_ids", event_ids, "pair"), ("pair", "source"))
    kind = _kernel_type(kernel, kernel_type)
    physical_cores = _option("physical_cores", physical_cores, places(kind, loaded))
    label = str(name or getattr(function, "__name__", "kernel"))
    _check_blocks(cores)
    _check_cores(physical_cores)
    parameters = names or _parameter_names(function, len(args))
    if names is None:
        check_kinds(_signature(function), args)
    arguments, addresses, arrays = bind_arguments(args, parameters)
    _set_to_zero(memset or [], addresses)
    for listener in on_launch:
        listener(kernel, args, int(cores))
    asked = Asked(
        function,
        label,
        loaded,
        int(cores),
        kind,
        physical_cores,
        l2,
        auto_sync,
        numerics == "off" and checks == "off" and shuffle is None,
        arguments,
        tuple(a for name_, a in zip(parameters, args, strict=False) if name_ not in addresses),
        addresses,
        _LIBRARY,
    )
    for substitute in substitutes:
        replaced = _on_the_kernels_lines(lambda: substitute(asked))  # noqa: B023  called at once
        if replaced is not None:
            for run_listener in on_run:
                run_listener(replaced)
            return replaced
    stage = Stage(
        asked,
        {
            "numerics": numerics != "off",
            "exact": numerics == "exact",
            "checks": checks,
            "auto_sync": auto_sync,
            "insert_sync": kernel.options.get("insert_sync")
            if isinstance(kernel, Kernel)
            else None,
            "saturate": overflow == "saturate",
            "ids_by_source": ids == "source",
            "shuffle": shuffle,
        },
        {
            "numerics": numerics, "checks": checks, "l2_start": l2, "auto_sync": auto_sync, "cores": physical_cores,
        },
        arrays,
        [*(outputs or []), *(memset or [])],
    )  # fmt: skip
    before = stage.data() if rehearsals else {}
    try:
        run = stage.perform()
        failure = None
    except KernelError as error:
        if error.run is None:  # the launch itself is wrong
            raise
        run, failure = error.run, error
    if rehearsals:
        after = stage.data()
        for rehearse in rehearsals:
            rehearse(Rehearsal(stage, before, after, run, failure))
        stage.restore(after)
    for run_listener in on_run if run is not None else ():
        run_listener(run)
    if failure is not None:
        raise failure
    return run


def record(kernel: Callable[..., Any], *args: Any, **options: Any) -> Recording:
    """Let a kernel issue without running it, and return what it issued: see `Recording`.

    Takes the arguments of `launch`. The recording can be replayed on every chip, with a cold or warm L2 and any
    number of physical cores, but holds for this number of blocks and these arguments.

    Raises what `launch` does, and UnsupportedError for a kernel whose instructions depend on what it computes, by
    the line that reads it. (Values that the host has put in GM and the kernel only reads are no such values.)
    """
    found: list[Recording] = []

    def take(asked: Asked) -> Run | None:
        found.append(asked.record())
        raise _Recorded

    substitutes.append(take)
    try:
        launch(kernel, *args, **{"numerics": "off", "checks": "off", **options})
    except _Recorded:
        return found[0]
    finally:
        substitutes.remove(take)
    raise AssertionError("a launch was not recorded")


def sample(kernel: Callable[..., Any], *args: Any, **options: Any) -> Estimate:
    """Return what a launch takes, from a run that leaves out trips of its loops: see `sim.trips` and `asc.range`.

    Takes the arguments of `launch`; numbers and checks are off. A kernel without long loops of that kind is simulated
    whole. Raises what `launch` does, and UnsupportedError for a kernel that hangs when trips are left out.
    """
    timing = {"numerics": "off", "checks": "off", **options}
    first = sample_first(lambda: launch(kernel, *args, **timing))
    assert first is not None
    return first.estimate


@dataclass(frozen=True, slots=True)
class Sampled:
    """A launch that was sampled: the kernel, the chip, the estimate."""

    label: str
    chip: Chip
    estimate: Estimate


def sample_first(work: Callable[[], Any], kernel: str | None = None) -> Sampled | None:
    """Sample the first launch of some work, or the first of a kernel of that name; the work ends there.

    None where there was none.
    """

    def take(asked: Asked) -> Run | None:
        if kernel in (None, asked.label):
            raise _Done(Sampled(asked.label, asked.chip, asked.sample()))
        return None

    substitutes.append(take)
    try:
        work()
    except _Done as done:
        return done.found
    finally:
        substitutes.remove(take)
    return None


class _Done(BaseException):
    """Ends all that leads to a launch that need not be run: no kernel, operator or program catches it."""

    def __init__(self, found: Sampled) -> None:
        super().__init__(found)
        self.found = found


class _Recorded(Exception):
    """Ends a launch that has been recorded."""


def _on_the_kernels_lines(work: Callable[[], Run | None]) -> Run | None:
    """Do the work; what it raises shows the kernel's own frames only."""
    try:
        with np.errstate(all="ignore"):
            return work()
    except _Recorded:
        raise
    except Exception as error:
        raise error.with_traceback(kernel_frames(error, _LIBRARY))  # noqa: B904  the kernel's own, on its own lines


def launch_from_program(
    kernel: Kernel, blocks: Any, args: tuple[Any, ...], keywords: dict[str, Any]
) -> Run:
    """Launch what a program wrote as `kernel[blocks, stream](…)`, with the options in `defaults`.

    Options of asc.jit among the keywords hold for this launch. Run-time numbers are passed as pyasc passes them.
    """
    options = {name: value for name, value in keywords.items() if name in JIT_OPTIONS}
    if options:
        check_options(options)
        kernel = Kernel(kernel.function, {**kernel.options, **options})
    signature = inspect.signature(kernel.function)
    try:
        bound = signature.bind(
            *args, **{name: value for name, value in keywords.items() if name not in JIT_OPTIONS}
        )
    except TypeError as error:
        names = ", ".join(signature.parameters) or "no arguments"
        raise host_error(
            "argument-number", f"{kernel.function.__name__} takes {names}: {error}"
        ) from None
    bound.apply_defaults()
    passed = []
    for name, value in bound.arguments.items():
        parameter = signature.parameters[name]
        values = value if parameter.kind is parameter.VAR_POSITIONAL else (value,)
        constant = is_constant(parameter.annotation)
        passed += [as_pyasc_passes(name, one, constant=constant) for one in values]
    run = launch(kernel, *passed, cores=blocks, **defaults.options)
    device.current().ticks += run.cycles
    if not on_run:
        _mention_findings(run)
    return run


def _mention_findings(run: Run) -> None:
    """Log a line where a program that nobody watches has wrong kernels: it may never look at the run."""
    found = [finding for finding in run.findings if finding.kind not in ("INFO", "PERF")]
    if not found:
        return
    first, count = found[0], len(found)
    place = f" at {first.file}:{first.line}" if first.file else ""
    log.warning(
        "ascend-sim: %s has %d finding%s, the first %s %s%s; `ascend-sim check` explains, run.findings has all",
        run.op,
        count,
        "" if count == 1 else "s",
        first.kind,
        first.code,
        place,
    )


def chosen(name: str, otherwise: Any) -> Any:
    """Return an option of launches: the command line's, else the program's (its platform), else the default."""
    if name == "chip" and name not in defaults.options:
        return device.chip_of_the_program() or otherwise
    return defaults.options.get(name, otherwise)


def _option(name: str, given: Any, otherwise: Any) -> Any:
    return chosen(name, otherwise) if given is None else given


def _choice(what: str, value: Any, allowed: tuple[str, ...]) -> str:
    if value in allowed:
        return str(value)
    raise ConfigError(
        f"{what} is {value!r}{nearest(str(value), allowed)} (allowed: {', '.join(allowed)})"
    )


def _check_blocks(blocks: Any) -> None:
    if isinstance(blocks, bool) or not isinstance(blocks, (int, np.integer)):
        raise host_error(
            "block-number", f"the number of blocks must be a whole number, got {blocks!r}"
        )
    if blocks == 0:
        raise host_error(
            "block-number", "0 blocks: nothing would run. With an empty input, skip the launch"
        )
    if not 1 <= blocks <= MAX_BLOCKS:
        raise host_error(
            "block-number",
            f"{blocks} blocks are asked, a launch takes 1 to {MAX_BLOCKS}. Let a loop inside the kernel do the rest",
        )


def _kernel_type(kernel: Any, given: KernelType | str | None) -> KernelType:
    """Return the type as given, else what the kernel's jit says, else a vector kernel.

    A kernel with a Matmul object is a mix kernel, or a cube-only one if its jit says so.
    """
    if given is None and isinstance(kernel, Kernel):
        given = kernel.options.get("kernel_type")
        if given is None and kernel.has_matmul:
            only = kernel.options.get("matmul_cube_only")
            given = KernelType.AIC_ONLY if only else KernelType.MIX_AIC_1_2
    if given is None:
        return KernelType.AIV_ONLY
    if isinstance(given, KernelType):
        return given
    names = [member.name for member in KernelType]
    name = str(getattr(given, "name", given))
    if name not in names:
        raise ConfigError(
            f"no kernel type {name!r}{nearest(name, names)} (types: {', '.join(names)})"
        )
    return KernelType[name]


def _check_cores(cores: Any) -> None:
    if isinstance(cores, bool) or not isinstance(cores, (int, np.integer)) or cores < 1:
        raise host_error(
            "core-number",
            f"the number of cores must be a whole number of at least 1, got {cores!r}",
        )


def _signature(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def _parameter_names(function: Callable[..., Any], count: int) -> list[str]:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return [f"argument{position}" for position in range(count)]
    names = list(signature.parameters)
    try:
        signature.bind(*range(count))
    except TypeError as error:
        raise host_error(
            "argument-number",
            f"{getattr(function, '__name__', 'the kernel')} takes {', '.join(names) or 'no arguments'}; {count} "
            f"arguments were given: {error}",
        ) from None
    return names + [f"argument{position}" for position in range(len(names), count)]


def _set_to_zero(names: list[str], addresses: dict[str, GlobalAddress]) -> None:
    for name in names:
        if name not in addresses:
            raise host_error(
                "memset",
                f"memset names {name}, which is no tensor argument{nearest(name, list(addresses))}",
            )
        address = addresses[name]
        address.buffer.data[address.offset : address.offset + address.length] = 0
