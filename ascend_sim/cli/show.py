"""Printing outcomes: the summary to standard output, messages to standard error."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from threading import Timer

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ascend_sim.cli.outcome import Outcome
from ascend_sim.cli.program import describe
from ascend_sim.config import Chip
from ascend_sim.errors import ConfigError, KernelError, SimulatorBug, exit_code
from ascend_sim.report.folder import check_replaceable, write_json, write_run_folder
from ascend_sim.report.names import short_path
from ascend_sim.report.text import print_findings, print_summary
from ascend_sim.sampled import Estimate


def complain(message: str) -> None:
    """Print a message to standard error."""
    print(f"ascend-sim: {message}", file=sys.stderr)


def check_out(out: Path | None) -> None:
    """Refuse a place for the run folder before the work rather than after it."""
    if out is not None:
        check_replaceable(out)


@contextmanager
def working(*, quiet_output: bool, own_output: bool) -> Iterator[None]:
    """Run the work: on a terminal a clock appears after a second, unless the work has `own_output`.

    A program prints, or stops in a debugger, and a clock would run into that. With `quiet_output`
    standard output is kept for the result, and what the program prints goes to standard error.
    """
    progress = Progress(
        SpinnerColumn(), TextColumn("simulating"), TimeElapsedColumn(),
        console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False,
    )  # fmt: skip

    def begin() -> None:
        progress.add_task("")
        progress.start()

    timer = Timer(1.0, begin)
    timer.daemon = True
    if sys.stderr.isatty() and not own_output:
        timer.start()
    try:
        if quiet_output:
            with redirect_stdout(sys.stderr):
                yield
        else:
            yield
    finally:
        timer.cancel()
        if timer.ident is not None:
            timer.join()
        if progress.live.is_started:  # stopping one that never began would print an empty line
            progress.stop()


def report(outcome: Outcome, *, out: Path | None, as_json: bool, quiet: bool) -> int:
    """Print the outcome, write the run folder, return the exit code."""
    folder, code = None, outcome.code
    if outcome.run is not None:
        try:
            folder = write_run_folder(outcome.run, out)
        except ConfigError as error:
            complain(str(error))
            code = max(code, 1)
        if as_json:
            write_json(outcome.run.summary, sys.stdout)
        elif not quiet:
            print_summary(outcome.run.summary, Console(markup=False, emoji=False), folder)
    shown = outcome.run is not None and not (as_json or quiet)
    _print_error(outcome, shown=shown)
    if quiet or as_json:
        _print_findings(outcome)
    _mention_others(outcome)
    return code


def report_check(outcome: Outcome) -> int:
    """Print what `check` found, and nothing else."""
    run = outcome.run
    if run is not None:
        findings = run.summary["findings"]
        print_findings(findings, Console(markup=False, emoji=False))
        if not findings and outcome.error is None:
            print(f"{run.op}: no findings in {sum(len(c.items) for c in run.log.cores):,} items")
        for finding, reason in run.allowed:
            place = f"{short_path(finding.file)}:{finding.line}"
            print(f"allowed in the source: {finding.kind} {finding.code} at {place}: {reason}")
    _print_error(outcome, shown=run is not None)
    _mention_others(outcome)
    return outcome.code


def _around(outcome: Outcome, kernel: str) -> str:
    """Say which launches of a program came before the one that stopped it, and that none came after."""
    if not outcome.others:
        return ""
    good = [other.kernel for other in outcome.others if exit_code(other.findings) == 0]
    text = f". That was {kernel}, launch {len(outcome.others) + 1} of the program: what comes after it was not run"
    return text + (f", before it without findings: {', '.join(good)}" if good else "")


def _print_error(outcome: Outcome, *, shown: bool) -> None:
    """Say what ended the work, unless its message stands among the findings that were `shown`."""
    error = outcome.error
    if error is None:
        return
    if isinstance(error, KernelError):
        if not shown:
            complain(describe(error))
        elif outcome.run is not None:
            complain(
                f"stopped at cycle {outcome.run.cycles:,} by the {error.finding.kind} finding above"
                + _around(outcome, outcome.run.op)
            )
        return
    text = describe(error)
    if isinstance(error, SimulatorBug):
        text = f"a bug of the simulator, please report it: {text}"
    complain(text)


def _print_findings(outcome: Outcome) -> None:
    """Print the findings to standard error: standard output is not for them."""
    if outcome.run is None:
        return
    stopped = outcome.error.finding if isinstance(outcome.error, KernelError) else None
    for finding in outcome.run.findings:
        if finding is not stopped and finding.kind not in ("INFO", "PERF"):
            place = f" at {finding.file}:{finding.line}" if finding.file else ""
            complain(f"{finding.kind} {finding.code}{place}: {finding.message}")


def _mention_others(outcome: Outcome) -> None:
    """Say what else there is: notes, and other launches with what was found in them."""
    for note in outcome.notes:
        complain(note)
    if not outcome.others or outcome.run is None:
        return
    complain(
        f"{len(outcome.others) + 1} launches; reported is the last of {outcome.run.op} "
        "(--kernel NAME chooses another kernel)"
    )
    found = Counter(
        (other.kernel, finding.kind, finding.code, finding.message.partition("\n")[0])
        for other in outcome.others
        for finding in other.findings
        if finding.kind not in ("INFO", "PERF")
    )
    for (kernel, kind, code, first_line), launches in found.items():
        times = f" ({launches} times)" if launches > 1 else ""
        complain(f"also found in {kernel}{times}: {kind} {code}: {first_line}")


def report_estimate(op: str, found: Estimate, chip: Chip, *, as_json: bool) -> None:
    """Print what a whole takes that was estimated from parts: never without how far off it may be."""
    if as_json:
        plain = {
            "op": op,
            "chip": chip.name,
            "sampled": not found.exact,
            "cycles": found.cycles,
            "time_us": round(chip.us(found.cycles), 3),
            "error_cycles": found.error,
            "error_us": round(chip.us(found.error), 3),
            "simulated": [asdict(part) for part in found.parts],
            **_by_core(found),
        }
        write_json(plain, sys.stdout)
        return
    time = f"{chip.us(found.cycles):,.2f} us ({found.cycles:,} cycles)"
    if found.exact:
        print(
            f"{op} on {chip.name}: {time}, all of it simulated: nothing in it is long enough to leave parts out"
        )
        return
    print(
        f"{op} on {chip.name}, sampled: {time}, give or take {chip.us(found.error):,.2f} us ({found.error_share:.2%})"
    )
    for part in found.parts:
        print(f"  simulated {part.number:,} of {part.total:,} {part.what}")
    for what, cores in _by_core(found).items():
        for core, pipes in cores.items():
            print(f"  {what} of {core}: {', '.join(f'{pipe} {n:,}' for pipe, n in pipes.items())}")
    print("  the rest goes on at their rate. No findings, no numbers, no run folder")


def _by_core(found: Estimate) -> dict[str, dict[str, dict[str, int]]]:
    """Return counts as a run's summary has them."""
    plain: dict[str, dict[str, dict[str, int]]] = {}
    for (what, core, pipe), number in sorted(found.counts.items()):
        plain.setdefault(what, {}).setdefault(core, {})[pipe] = number
    return plain
