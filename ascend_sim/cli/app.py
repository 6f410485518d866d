"""The commands and their options. Each command imports what it needs when it runs, so that help is quick."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from ascend_sim.cli.commands import GIVEN, Commands, TargetCommand
from ascend_sim.cli.options import (
    AdversaryOption,
    Arguments,
    AutoSyncOption,
    BlameOption,
    ChecksOption,
    ChipOption,
    CoresOption,
    CoverageOption,
    DoctorOption,
    InputOption,
    KernelOption,
    L2Option,
    NumericsOption,
    ReferenceOption,
    SeedOption,
    SetOption,
    Target,
)
from ascend_sim.cli.outcome import Outcome
from ascend_sim.cli.request import Request, check_chip, choose, read_sets
from ascend_sim.compiled import is_compiled
from ascend_sim.errors import AscendSimError, ConfigError, SimulatorBug

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="A cycle-approximate simulator of the Ascend AI Core: numbers, time, the reason for every stall.",
)


@app.command(
    cls=TargetCommand, short_help="Simulate an operator or a Python file; print and save it all."
)
def run(
    ctx: typer.Context,
    target: Target,
    arguments: Arguments = None,
    chip: ChipOption = None,
    set_: SetOption = None,
    seed: SeedOption = None,
    cores: CoresOption = None,
    numerics: NumericsOption = None,
    checks: ChecksOption = None,
    l2: L2Option = None,
    auto_sync: AutoSyncOption = None,
    input_: InputOption = None,
    kernel: KernelOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="The run folder; default runs/<op>-<n>."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as JSON and nothing else.")
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="Settings that `tune` wrote; options given here win."
        ),
    ] = None,
    sampled: Annotated[
        bool,
        typer.Option(
            "--sampled",
            help="Large shapes: simulate parts of the work, estimate the whole, say how far off it may be.",
        ),
    ] = False,
    interval: Annotated[
        bool,
        typer.Option(
            "--interval",
            help="Two more passes: the time with the chip's figures at the ends of their ranges.",
        ),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print no summary; messages go to standard error.")
    ] = False,
) -> None:
    """Simulate an operator, or a Python file with kernels; print the summary, write the run folder.

    Operators have options of their own, such as --seq: `ascend-sim ops NAME` lists them.
    """
    from ascend_sim.cli.checking import both_ends
    from ascend_sim.cli.show import check_out, report, working

    def work() -> int:
        check_out(out)
        request = _request(
            ctx,
            target,
            arguments,
            chip,
            set_,
            seed,
            cores,
            numerics,
            checks,
            l2,
            auto_sync,
            input_,
            kernel,
        )
        if config is not None:
            from ascend_sim.cli.request import apply_config

            apply_config(request, config)
        if sampled:
            return _report_sampled(request, as_json=as_json)
        with working(quiet_output=as_json, own_output=request.is_file), both_ends(interval):
            outcome = _simulate(request)
        return report(outcome, out=out, as_json=as_json, quiet=quiet)

    _exit(work)


@app.command(cls=TargetCommand, short_help="Run all checks and print what they find.")
def check(
    ctx: typer.Context,
    target: Target,
    arguments: Arguments = None,
    chip: ChipOption = None,
    set_: SetOption = None,
    seed: SeedOption = None,
    cores: CoresOption = None,
    numerics: NumericsOption = None,
    checks: ChecksOption = None,
    l2: L2Option = None,
    auto_sync: AutoSyncOption = None,
    input_: InputOption = None,
    kernel: KernelOption = None,
    adversary: AdversaryOption = None,
    doctor: DoctorOption = None,
    coverage: CoverageOption = False,
    blame: BlameOption = False,
    reference: ReferenceOption = None,
) -> None:
    """Run all checks and print what they find, without a report; exit 2 on a finding."""
    from ascend_sim.cli.checking import checked
    from ascend_sim.cli.show import working

    def work() -> int:
        request = _request(
            ctx,
            target,
            arguments,
            chip,
            set_,
            seed,
            cores,
            numerics,
            checks,
            l2,
            auto_sync,
            input_,
            kernel,
        )
        with working(quiet_output=False, own_output=request.is_file):
            return checked(
                request,
                _simulate,
                adversary=adversary,
                doctor=choose("--doctor", doctor) != "off",
                coverage=coverage,
                blame=blame,
                reference=reference,
            )

    _exit(work)


@app.command(
    cls=TargetCommand, short_help="Translate a kernel to AscendC C++ with pyasc's front end."
)
def export(
    ctx: typer.Context,
    target: Annotated[
        str | None,
        typer.Argument(metavar="OP_OR_FILE", help="An operator's name, or a Python file."),
    ] = None,
    arguments: Arguments = None,
    chip: ChipOption = None,
    set_: SetOption = None,
    kernel: Annotated[
        str | None,
        typer.Option("--kernel", metavar="NAME", help="The kernel; default the first launched."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="F.cpp", help="The file; default standard output."),
    ] = None,
    python: Annotated[
        str | None,
        typer.Option("--python", metavar="PATH", help="A Python that has pyasc."),
    ] = None,
    setup: Annotated[
        bool, typer.Option("--setup", help="Make an environment for pyasc, once, from PyPI.")
    ] = False,
) -> None:
    """Translate a kernel to AscendC C++ with pyasc's front end, for the types that its launch has.

    pyasc runs in a Python of its own: --setup makes one, --python or the variable ASCEND_SIM_PYASC names one.
    """
    from ascend_sim.cli.exporting import export as translate
    from ascend_sim.cli.exporting import setup as set_up

    def work() -> int:
        if setup:
            code = set_up()
            if target is None:
                return code
        if target is None:
            raise ConfigError("export what? Name an operator or a Python file (or --setup alone)")
        request = _request(
            ctx, target, arguments, chip, set_, None, None, None, None, None, None, None, kernel
        )
        return translate(request, _simulate, out=out, python=python)

    _exit(work)


@app.command()
def chips(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Show every number of this chip and its source."),
    ] = None,
) -> None:
    """List the chips, or show one."""
    from ascend_sim.cli.listings import show_chip, show_chips

    _exit(lambda: show_chips() if name is None else show_chip(name))


@app.command(short_help="List the instructions, or show one and its price.")
def instructions(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="Show all about this one, by pyasc's or AscendC's name."
        ),
    ] = None,
    chip: ChipOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the instructions, or show one: meaning, pipe, operands, constraints, price, an example."""
    from ascend_sim.cli.instructions import show_instruction, show_instructions

    def work() -> int:
        if name is None:
            return show_instructions(as_json=as_json)
        return show_instruction(name, chip or "ascend910b1", as_json=as_json)

    _exit(work)


@app.command()
def ops(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Show this operator's options and constants."),
    ] = None,
) -> None:
    """List the operators, or show one."""
    from ascend_sim.cli.listings import show_operator, show_operators

    _exit(lambda: show_operators() if name is None else show_operator(name))


@app.command(short_help="Check a chip's YAML file.")
def validate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The YAML file of a chip.")],
) -> None:
    """Check a chip's YAML file: keys, values, a source for every number."""
    from ascend_sim.cli.listings import validate_chip

    _exit(lambda: validate_chip(file))


@app.command(short_help="Compare simulated with published times of the hardware.")
def accuracy(
    cases: Annotated[
        Path | None,
        typer.Option(
            "--cases", metavar="FILE", help="Published figures; default those that come along."
        ),
    ] = None,
    family: Annotated[
        str | None, typer.Option("--family", metavar="NAME", help="Only this family of kernels.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="FILE", help="Keep what docs/accuracy.md is made from."),
    ] = None,
) -> None:
    """Simulate kernels that were timed on the hardware and print measured against simulated time."""
    from ascend_sim.cli.accuracy import show_accuracy

    _exit(lambda: show_accuracy(cases, family, as_json=as_json, save=save))


def _show_version(wanted: bool) -> None:
    if wanted:
        try:
            number = version("ascend-sim")
        except PackageNotFoundError:
            number = "(not installed: running from its sources)"
        print(f"ascend-sim {number}, {'compiled' if is_compiled() else 'from source'}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


def _request(
    ctx: Any, target: str, arguments: list[str] | None, chip: str | None, sets: list[str] | None,
    seed: int | None, cores: int | None, numerics: str | None, checks: str | None, l2: str | None,
    auto_sync: str | None, input_file: Path | None, kernel: str | None,
) -> Request:  # fmt: skip
    sync = choose("--auto-sync", auto_sync)
    request = Request(
        target=target,
        chip=chip,
        sets=read_sets(sets or []),
        seed=seed,
        cores=cores,
        numerics=choose("--numerics", numerics),
        checks=choose("--checks", checks),
        l2=choose("--l2", l2),
        auto_sync=None if sync is None else sync == "on",
        input_file=input_file,
        kernel=kernel,
        operator_options=ctx.meta.get(GIVEN, {}),
        arguments=arguments or [],
    )
    check_chip(chip)
    return request


def _report_sampled(request: Request, *, as_json: bool) -> int:
    from ascend_sim.cli.operators import sample_operator
    from ascend_sim.cli.program import sample_program
    from ascend_sim.cli.show import report_estimate, working

    if request.numerics not in (None, "off") or request.checks not in (None, "off"):
        raise ConfigError("--sampled tells the time only: leave out --numerics and --checks")
    with working(quiet_output=as_json, own_output=request.is_file):
        if request.is_file:
            timing = replace(request, numerics="off", checks="off")
            sampled = sample_program(timing)
            found, chip, name = sampled.estimate, sampled.chip, sampled.label
        else:
            found, chip = sample_operator(request)
            name = request.target
    report_estimate(name, found, chip, as_json=as_json)
    return 0


def _simulate(request: Request) -> Outcome:
    if request.is_file:
        from ascend_sim.cli.program import run_program

        return run_program(request)
    from ascend_sim.cli.operators import run_operator

    return run_operator(request)


def _exit(work: Callable[[], int]) -> NoReturn:
    """Do the work of a command and exit with its code; the simulator's own errors are messages."""
    from ascend_sim.cli.show import complain

    try:
        code = work()
    except SimulatorBug as error:
        complain(f"a bug of the simulator, please report it: {error}")
        code = 1
    except AscendSimError as error:
        complain(str(error))
        code = 1
    except OSError as error:
        place = f"{error.filename}: " if error.filename is not None else ""
        complain(f"{place}{error.strerror or error}")
        code = 1
    raise typer.Exit(code)


# The commands of other modules join those above, and use what stands there.
from ascend_sim.cli import analysis as _analysis  # noqa: E402, F401
from ascend_sim.cli import tuning as _tuning  # noqa: E402, F401
