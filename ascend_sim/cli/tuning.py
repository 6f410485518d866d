"""The commands `sweep` and `tune`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from ascend_sim.cli.app import _exit, app
from ascend_sim.cli.commands import GIVEN, TargetCommand
from ascend_sim.cli.options import (
    Arguments,
    AutoSyncOption,
    ChecksOption,
    ChipOption,
    CoresOption,
    KernelOption,
    L2Option,
    NumericsOption,
    SeedOption,
    Target,
)

SpaceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "--space",
        metavar="NAME=RANGE",
        help="Values of a constant, an option (seq, chip, cores, l2, ...): v1,v2 or a:b:step or 2^a..2^b; "
        "semicolons between values that have commas. Repeatable.",
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option("--workers", metavar="N", min=1, help="Processes; default one a core."),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler", metavar="ADDRESS", help="Of a Dask scheduler whose workers do the work."
    ),
]


@app.command(cls=TargetCommand, short_help="Simulate every combination of values.")
def sweep(
    ctx: typer.Context,
    target: Target,
    arguments: Arguments = None,
    set_: SpaceOption = None,
    chip: ChipOption = None,
    seed: SeedOption = None,
    cores: CoresOption = None,
    numerics: NumericsOption = None,
    checks: ChecksOption = None,
    l2: L2Option = None,
    auto_sync: AutoSyncOption = None,
    kernel: KernelOption = None,
    workers: WorkersOption = None,
    scheduler: SchedulerOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Folder of the results; default sweeps/<op>-<digest>."
        ),
    ] = None,
    retry: Annotated[
        bool,
        typer.Option("--retry", help="Run again the points that crashed or failed by themselves."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the rows as JSON and nothing else.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no table.")] = False,
) -> None:
    """Simulate every combination of values, on all cores; the same command again goes on where it stopped.

    Points that fail are rows with their reason. Timing only, unless --numerics or --checks say otherwise.
    """

    def work() -> int:
        from rich.console import Console

        from ascend_sim.report.folder import write_json
        from ascend_sim.tuning.plots import write_plots
        from ascend_sim.tuning.space import read_space
        from ascend_sim.tuning.sweeps import run_sweep
        from ascend_sim.tuning.tables import print_sweep, write_csv
        from ascend_sim.tuning.task import Task

        task = Task(
            target,
            _fixed(
                ctx, chip=chip, seed=seed, cores=cores, numerics=numerics, checks=checks, l2=l2,
                auto_sync=auto_sync,
            ),
            kernel,
            tuple(arguments or ()),
        )  # fmt: skip
        with progress_bar("points") as progress:
            result = run_sweep(
                task, read_space(set_ or []), out=out, workers=workers, scheduler=scheduler,
                retry=retry, progress=progress,
            )  # fmt: skip
        write_csv(result, result.folder / "sweep.csv")
        files = ["sweep.sqlite", "sweep.csv", *write_plots(result, result.folder)]
        if as_json:
            rows = [{k: v for k, v in row.items() if k != "seconds"} for row in result.rows]
            write_json({"folder": str(result.folder), "rows": rows}, sys.stdout)
        elif not quiet:
            print_sweep(result, Console(markup=False, emoji=False))
            print(f"Files: {result.folder}: {', '.join(files)}")
        return 0 if result.best() is not None else 1

    _exit(work)


@app.command(
    cls=TargetCommand, short_help="Search a space for the best values, and say why they win."
)
def tune(
    ctx: typer.Context,
    target: Target,
    arguments: Arguments = None,
    space: SpaceOption = None,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget", metavar="N", help="Simulations at most; default 0.3 of the points."
        ),
    ] = None,
    objective: Annotated[
        str,
        typer.Option(
            "--objective",
            metavar="time,ub,cores",
            help="What to make small; the first one decides.",
        ),
    ] = "time",
    chip: ChipOption = None,
    seed: SeedOption = None,
    cores: CoresOption = None,
    numerics: NumericsOption = None,
    checks: ChecksOption = None,
    l2: L2Option = None,
    auto_sync: AutoSyncOption = None,
    kernel: KernelOption = None,
    workers: WorkersOption = None,
    scheduler: SchedulerOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Folder of the results; default sweeps/tune-<op>-<digest>."
        ),
    ] = None,
    retry: Annotated[
        bool,
        typer.Option("--retry", help="Run again the points that crashed or failed by themselves."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON and nothing else.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no table.")] = False,
) -> None:
    """Search the space for the best values with few simulations, and say why the winner wins.

    Points that do not fit, or whose lower bound is above the best time, are not simulated. The winner is written
    to best.yaml, for `run --config`.
    """

    def work() -> int:
        from rich.console import Console

        from ascend_sim.report.folder import write_json
        from ascend_sim.tuning.plots import write_plots
        from ascend_sim.tuning.space import read_space
        from ascend_sim.tuning.tables import print_tuned, write_csv
        from ascend_sim.tuning.task import Task
        from ascend_sim.tuning.tuner import tune_space
        from ascend_sim.tuning.why import compare, write_setting

        task = Task(
            target,
            _fixed(
                ctx, chip=chip, seed=seed, cores=cores, numerics=numerics, checks=checks, l2=l2,
                auto_sync=auto_sync,
            ),
            kernel,
            tuple(arguments or ()),
        )  # fmt: skip
        with progress_bar("simulations") as progress:
            tuned = tune_space(
                task, read_space(space or []), budget=budget, objectives=objective.split(","), out=out,
                workers=workers, scheduler=scheduler, seed=seed or 0, retry=retry, progress=progress,
            )  # fmt: skip
        result = tuned.result
        write_csv(result, result.folder / "sweep.csv")
        files = ["sweep.sqlite", "sweep.csv", *write_plots(result, result.folder)]
        comparisons = compare(tuned)
        if tuned.best is not None:
            write_setting(tuned, result.folder / "best.yaml")
            files.append("best.yaml")
        if as_json:
            write_json(
                {
                    "folder": str(result.folder),
                    "simulations": tuned.simulations,
                    "points": len(result.space),
                    "best": tuned.best,
                    "runner_up": tuned.runner_up,
                    "pareto": tuned.pareto(),
                    "why": [comparison.text for comparison in comparisons],
                },
                sys.stdout,
            )
        elif not quiet:
            print_tuned(tuned, comparisons, Console(markup=False, emoji=False))
            print(f"Files: {result.folder}: {', '.join(files)}")
        return 0 if tuned.best is not None else 1

    _exit(work)


def _fixed(ctx: Any, *, auto_sync: str | None, **options: Any) -> dict[str, Any]:
    """Return the options that were given, by the names that the points use."""
    given = {name.removeprefix("--"): value for name, value in ctx.meta.get(GIVEN, {}).items()}
    given |= {name: value for name, value in options.items() if value is not None}
    return given if auto_sync is None else {**given, "auto-sync": auto_sync}


@contextmanager
def progress_bar(what: str) -> Iterator[Any]:
    """Yield a function of (done, total) that moves a bar with the time left; on a terminal only."""
    from rich.console import Console
    from rich.progress import (  # fmt: skip
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"),
        TimeRemainingColumn(), console=Console(stderr=True), transient=True,
        disable=not sys.stderr.isatty(),
    )  # fmt: skip
    with bar:
        number = bar.add_task("", total=None)

        def move(done: int, total: int) -> None:
            bar.update(number, completed=done, total=total)

        yield move
