"""Running an operator of the library by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascend_sim.cli.outcome import Outcome
from ascend_sim.cli.request import Request
from ascend_sim.errors import AscendSimError, ConfigError, KernelError

if TYPE_CHECKING:
    from ascend_sim.config import Chip
    from ascend_sim.sampled import Estimate


def run_operator(request: Request) -> Outcome:
    """Run the operator that `request` names.

    Raises `ConfigError` for an unknown operator, option, constant or chip; what ends the run itself is
    in the outcome.
    """
    from ops import Context, find_operator

    spec = find_operator(request.target)
    if request.arguments:
        raise ConfigError(
            f"{spec.name} takes no further arguments, and got {' '.join(request.arguments)}"
        )
    if request.kernel is not None:
        raise ConfigError(f"--kernel chooses a kernel of a Python file; {spec.name} is an operator")
    context = Context(
        chip=request.chip,
        numerics=request.numerics or "on",
        checks=request.checks or "collect",
        tiling=request.sets,
        cores=request.cores,
        l2=request.l2 or "cold",
        auto_sync=request.auto_sync,
    )
    try:
        run = spec.run(request.operator_options, context, request.seed or 0, request.input_file)
    except KernelError as error:
        return Outcome(error.run, error)
    except ConfigError:
        raise
    except AscendSimError as error:
        return Outcome(None, error)
    return Outcome(run)


def operator_options() -> dict[str, str]:
    """Return every option that an operator has, as `--seq` and its placeholder."""
    from ops import list_operators

    return {
        f"--{option.name}": option.metavar for spec in list_operators() for option in spec.options
    }


def parameters_of(name: str) -> list[str]:
    """Return the constants and options of an operator. Raises `ConfigError` for an unknown one."""
    from ops import find_operator

    spec = find_operator(name)
    return [
        *(constant.name for constant in spec.constants),
        *(option.name for option in spec.options),
    ]


def defaults_of(name: str) -> dict[str, int]:
    """Return the constants of an operator with their defaults. Raises `ConfigError` for an unknown one."""
    from ops import find_operator

    return {constant.name: constant.default for constant in find_operator(name).constants}


def sample_operator(request: Request) -> tuple[Estimate, Chip]:
    """Return what an operator takes, estimated from parts of it, and the chip.

    Parts are smaller sizes where the operator says which, else its kernel leaves trips of its loops out. Raises
    `ConfigError` where numbers, checks or a file's sizes are asked for, and what a run raises.
    """
    from ascend_sim.config import load_chip
    from ascend_sim.launch import sample_first
    from ascend_sim.recorder import Recordings
    from ascend_sim.sampled import estimate
    from ascend_sim.tuning.task import replacing
    from ops import Context, find_operator

    spec = find_operator(request.target)
    if request.input_file is not None:
        raise ConfigError("--sampled makes its own sizes: leave out --input")
    chip = load_chip(request.chip or "ascend910b1")
    context = Context(
        chip=chip, numerics="off", checks="off", tiling=request.sets, cores=request.cores,
        l2=request.l2 or "cold", auto_sync=request.auto_sync,
    )  # fmt: skip
    options = spec.read_options(request.operator_options)
    if spec.scale is None:
        first = sample_first(lambda: spec.run(options, context))
        assert first is not None
        return first.estimate, chip
    scale = spec.scale(options)

    def measure(number: int) -> int:
        with replacing(Recordings().launch):
            return spec.run(scale.part(number), context).cycles

    return estimate(scale.total, scale.enough(chip), scale.size, measure, scale.unit), chip
