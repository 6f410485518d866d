"""Running an operator of the library by name."""

from __future__ import annotations

from ascend_sim.cli.outcome import Outcome
from ascend_sim.cli.request import Request
from ascend_sim.errors import AscendSimError, ConfigError, KernelError


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
