"""The summary for people, on a terminal: what ran, how long, why so long, what is wrong, what to do.

Reads a summary (the dictionary that `summary.json` holds) and nothing else, so a saved run prints as a
live one. Without colour and at 80 columns it says the same: bars are made of letters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ascend_sim.errors import EXIT_CODE
from ascend_sim.trace import Cause

_LETTER = {
    Cause.MEMORY: "m",
    Cause.BANK_CONFLICT: "c",
    Cause.FLAG: "f",
    Cause.BUFFER: "b",
    Cause.BARRIER: "B",
    Cause.QUEUE_FULL: "q",
    Cause.SCALAR: "s",
    Cause.CROSS_CORE: "x",
    Cause.TAIL: "t",
    Cause.LAUNCH: "l",
}
_STYLE = {
    Cause.BUSY: "green",
    Cause.MEMORY: "blue",
    Cause.BANK_CONFLICT: "magenta",
    Cause.FLAG: "yellow",
    Cause.BUFFER: "dark_orange",
    Cause.BARRIER: "red",
    Cause.QUEUE_FULL: "bright_red",
    Cause.SCALAR: "cyan",
    Cause.CROSS_CORE: "bright_magenta",
    Cause.TAIL: "bright_black",
    Cause.LAUNCH: "bright_black",
    Cause.IDLE: "bright_black",
}
_MEANING = {
    Cause.BUSY: "busy",
    Cause.MEMORY: "memory",
    Cause.BANK_CONFLICT: "bank conflict",
    Cause.FLAG: "flag",
    Cause.BUFFER: "free buffer",
    Cause.BARRIER: "barrier",
    Cause.QUEUE_FULL: "queue full",
    Cause.SCALAR: "scalar: nothing issued",
    Cause.CROSS_CORE: "other core",
    Cause.TAIL: "tail: other cores run",
    Cause.LAUNCH: "launch",
    Cause.IDLE: "idle",
}
_BAR = 30
_MOST_FINDINGS = 10
_WIDE = 100
_WORTH_TELLING = 0.01
"""A part of the time below this is not mentioned."""

Pipes = Mapping[str, Mapping[str, Any]]


def print_summary(summary: Mapping[str, Any], console: Console, folder: Path | None = None) -> None:
    """Print a run's summary; `folder` is where its files are."""
    _print_head(summary, console)
    used = _print_pipes(summary, console)
    if used:
        _print_legend(used, console)
    _print_phases(summary, console)
    _print_explanation(summary.get("explanation", {}), console)
    print_findings(summary["findings"], console)
    for advice in summary["advice"]:
        console.print(_hanging("-> ", Text(advice)))
    if summary["advice"]:
        console.print()
    if folder is not None:
        files = (
            "report.html (a browser), trace.json (MindStudio Insight), trace.perfetto.json (ui.perfetto.dev), "
            "tables"
        )
        console.print(_hanging("Files: ", Text(f"{_shown(folder)}: {files}")))


def print_findings(findings: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print findings: what happened, where, what to change; those that fail a run first."""
    if not findings:
        return
    ordered = sorted(findings, key=lambda finding: EXIT_CODE.get(finding["kind"], 2) == 0)
    wrong = sum(EXIT_CODE.get(finding["kind"], 2) > 0 for finding in findings)
    remarks = len(findings) - wrong
    parts = [_count(wrong, "finding")] if wrong else []
    parts += [_count(remarks, "remark")] if remarks else []
    console.print(Text(" and ".join(parts), style="bold"))
    for finding in ordered[:_MOST_FINDINGS]:
        harmless = EXIT_CODE.get(finding["kind"], 2) == 0
        head = Text(
            f"{finding['kind']} {finding['code']}", style="cyan" if harmless else "bold red"
        )
        place = _place(finding)
        if place:
            head.append(f"  {place}", style="default")
        console.print(Padding(head, (0, 0, 0, 2)), soft_wrap=False)
        for line in finding["message"].splitlines():
            # A line that is too long goes on below its own beginning.
            text = line.lstrip()
            console.print(Padding(Text(text), (0, 0, 0, 4 + len(line) - len(text))))
        if finding.get("edit"):
            cure = Text(f"a run is clean with this edit: {finding['edit']}", style="green")
            console.print(Padding(cure, (0, 0, 0, 4)))
    if len(findings) > _MOST_FINDINGS:
        console.print(f"  and {len(findings) - _MOST_FINDINGS} more: see findings.json")
    console.print()


def _place(finding: Mapping[str, Any]) -> str:
    where = f"{finding['file']}:{finding['line']}" if finding["file"] else ""
    core = ".".join(part for part in (finding["core"], finding["pipe"]) if part)
    return ", ".join(part for part in (where, core) if part)


def _print_head(summary: Mapping[str, Any], console: Console) -> None:
    blocks = _count(summary["block_dim"], "block")
    title = Text(summary["op"] or "run", style="bold")
    title.append(f" on {summary['chip']}, {blocks}, L2 {summary['l2_start']}", style="default")
    console.print(title)
    rows = Table.grid(padding=(0, 2))
    rows.add_column(no_wrap=True)
    rows.add_column()
    for name, value in _facts(summary):
        rows.add_row(f"  {name}", Text(value))
    console.print(rows)
    console.print()


def _lowest(summary: Mapping[str, Any], bound: Mapping[str, Any]) -> str:
    us = summary["time_us"] * bound["lower_bound_cycles"] / max(summary["cycles"], 1)
    return f"not below {_microseconds(us)}"


def _facts(summary: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    cycles = summary["cycles"]
    launched = (
        0 < summary["launch_cycles"] <= cycles
    )  # a run that broke off may not have come so far
    launch = f", {summary['launch_cycles']:,} of them launch" if launched else ""
    yield "time", f"{_microseconds(summary['time_us'])} ({cycles:,} cycles{launch})"
    yield from _trust(summary)
    bound = summary["bound"]
    if bound["lower_bound_cycles"]:
        yield (
            "bound",
            f"{_lowest(summary, bound)} with this work in any order, set by {bound['limit']}: "
            f"the run takes {cycles / bound['lower_bound_cycles']:.2f} times that",
        )
    written = summary.get("as_written", bound)
    if written["limit"] == "dependences":
        times = cycles / written["lower_bound_cycles"]
        yield (
            "",
            f"{_lowest(summary, written)} as written, by its dependences: {times:.2f} times that",
        )
    moved = summary["bytes"]
    if moved["gm_read"] or moved["gm_write"]:
        yield (
            "GM",
            f"{_bytes(moved['gm_read'])} read, {_bytes(moved['gm_write'])} written"
            f"{_rate(moved['gm_read'] + moved['gm_write'], summary['time_us'])}",
        )
    yield from _overlap(summary["overlap"])
    yield from _numbers(summary["numerics"])


def _trust(summary: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield the time at the ends of the figures' ranges, and how much of it rests on figures of low confidence."""
    interval, trust = summary.get("interval"), summary.get("trust")
    if interval:
        us = summary["time_us"] / max(summary["cycles"], 1)
        ends = " to ".join(_microseconds(interval[end] * us) for end in ("low", "high"))
        yield (
            "range", f"{ends}, with the chip's figures at the ends of their ranges ({interval['how']})"
        )  # fmt: skip
    if trust and trust["low_share"] >= _WORTH_TELLING:
        keys = ", ".join(list(trust["low_keys"])[:3])
        yield (
            "trust", f"{trust['low_share'] * 100:.0f} % of the time rests on figures of low confidence: {keys}"
        )  # fmt: skip


def _overlap(overlap: Mapping[str, int]) -> Iterable[tuple[str, str]]:
    """Yield how far copy and compute overlap."""
    whole = sum(overlap.values())
    if overlap["one"] + overlap["several"] > 0:
        none, one, several = (
            f"{100 * overlap[name] / whole:.0f} %" for name in ("none", "one", "several")
        )
        yield (
            "overlap",
            f"several pipes occupied {several} of the cores' time, one alone {one}, none {none}",
        )


def _numbers(numerics: Mapping[str, Any] | None) -> Iterable[tuple[str, str]]:
    """Yield a line for each reference that the results were compared with."""
    if numerics is None:
        yield "numbers", "not compared"
        return
    references = {str(numerics.get("reference", "reference")): numerics}
    references |= {
        str(value.get("reference", name)): value
        for name, value in numerics.items()
        if isinstance(value, Mapping) and "mismatches" in value
    }
    for position, (name, figures) in enumerate(references.items()):
        yield "numbers" if position == 0 else "", f"{name}: {_verdict(figures)}"
    if numerics.get("not_written"):
        yield "", f"{numerics['not_written']:,} elements were never written, and not compared"


def _verdict(figures: Mapping[str, Any]) -> str:
    if figures.get("bit_exact"):
        return "bit-exact"
    mismatches = figures.get("mismatches", 0)
    error = f"by up to {_figure(figures.get('max_abs_error'))}"
    relative = f" (relative {_figure(figures.get('max_rel_error'))})"
    if not mismatches:
        return f"equal within tolerance, off {error}{relative}"
    return (
        f"{_count(mismatches, 'element')} differ{'s' if mismatches == 1 else ''}, {error}{relative}"
    )


def _print_pipes(summary: Mapping[str, Any], console: Console) -> set[Cause]:
    """Print a table for each kind of core: the mean of all, and the slowest where they differ."""
    used: set[Cause] = set()
    for kind, cores in _by_kind(summary["pipes"]).items():
        names = list(cores)
        if len(names) == 1:
            used |= _print_core(f"Pipes of {names[0]}", cores[names[0]], summary["cycles"], console)
            continue
        mean = _mean(list(cores.values()))
        used |= _print_core(
            f"Pipes of {kind}, mean of {len(names)} cores", mean, summary["cycles"], console
        )
        slowest = min(names, key=lambda name: _cause(cores[name]["S"], Cause.TAIL))
        if _cause(mean["S"], Cause.TAIL) >= 0.03 * summary["cycles"]:
            used |= _print_core(
                f"Pipes of {slowest}, the slowest", cores[slowest], summary["cycles"], console
            )
    return used


def _by_kind(pipes: Mapping[str, Pipes]) -> dict[str, dict[str, Pipes]]:
    kinds: dict[str, dict[str, Pipes]] = {}
    for name, core in pipes.items():
        kind = name.rpartition(".")[2].rstrip("0123456789")
        kinds.setdefault(kind, {})[name] = core
    return kinds


def _mean(cores: Sequence[Pipes]) -> dict[str, dict[str, Any]]:
    """Return the pipes of an average core."""
    result: dict[str, dict[str, Any]] = {}
    for pipe in cores[0]:
        entries = [core[pipe] for core in cores]
        causes: dict[str, float] = {}
        for entry in entries:
            for cause, cycles in entry["causes"].items():
                causes[cause] = causes.get(cause, 0.0) + cycles / len(cores)
        result[pipe] = {
            name: sum(entry[name] for entry in entries) / len(cores)
            for name in ("busy", "occupied", "instructions", "bytes")
        }
        result[pipe]["causes"] = causes
    return result


def _print_core(title: str, pipes: Pipes, cycles: int, console: Console) -> set[Cause]:
    wide = console.width >= _WIDE
    table = Table(box=None, padding=(0, 1), pad_edge=False, title=title, title_justify="left")
    table.title_style = "bold"
    table.add_column("  Pipe", no_wrap=True)
    table.add_column("Where its time went", no_wrap=True)
    table.add_column("Busy", justify="right", no_wrap=True)
    table.add_column("Waits mostly for")
    if wide:
        table.add_column("Instructions", justify="right", no_wrap=True)
        table.add_column("Moved", justify="right", no_wrap=True)
    used: set[Cause] = set()
    for name, entry in pipes.items():
        bar, causes = _bar(entry["causes"], cycles, ascii_only=console.options.ascii_only)
        used |= causes
        row: list[str | Text] = [f"  {name}", bar, _percent(entry["busy"], cycles)]
        row.append(_waits(entry["causes"], cycles))
        if wide:
            count = f"{entry['instructions']:,.0f}" if entry["instructions"] else ""
            row += [count, _bytes(entry["bytes"]) if entry["bytes"] else ""]
        table.add_row(*row)
    console.print(table)
    console.print()
    return used


def _bar(causes: Mapping[str, float], cycles: int, *, ascii_only: bool) -> tuple[Text, set[Cause]]:
    """Return a bar of `_BAR` letters: busy first, then what the pipe waited for, idle last."""
    bar, used = Text(), set()
    total, drawn = 0.0, 0
    for cause in Cause:
        total += causes.get(cause.value, 0)
        end = round(_BAR * total / cycles) if cycles else 0
        if end > drawn:
            bar.append(_sign(cause, ascii_only=ascii_only) * (end - drawn), style=_STYLE[cause])
            used.add(cause)
        drawn = max(drawn, end)
    return bar, used


def _sign(cause: Cause, *, ascii_only: bool) -> str:
    if cause is Cause.BUSY:
        return "#" if ascii_only else "█"
    if cause is Cause.IDLE:
        return "." if ascii_only else "·"
    return _LETTER[cause]


def _waits(causes: Mapping[str, float], cycles: int) -> str:
    """Return the two causes that cost most, and their shares; the launch is the same for all pipes."""
    waits = [
        (causes.get(cause.value, 0.0), cause.value)
        for cause in Cause
        if cause not in (Cause.BUSY, Cause.IDLE, Cause.LAUNCH)
    ]
    largest = sorted(waits, key=lambda wait: -wait[0])[:2]
    return ", ".join(
        f"{name} {_percent(share, cycles)}" for share, name in largest if share >= 0.005 * cycles
    )


def _print_legend(used: set[Cause], console: Console) -> None:
    """Say what the letters mean; an entry is never broken between two lines."""
    line = Text("  ")
    for cause in Cause:
        if cause not in used:
            continue
        sign = _sign(cause, ascii_only=console.options.ascii_only)
        entry = Text.assemble((sign, _STYLE[cause]), f" {_MEANING[cause]}")
        if line.cell_len > 2 and line.cell_len + entry.cell_len > console.width:
            line.rstrip()
            console.print(line)
            line = Text("  ")
        line.append_text(entry).append("   ")
    line.rstrip()
    console.print(line)
    console.print()


def _print_phases(summary: Mapping[str, Any], console: Console) -> None:
    if not summary["phases"]:
        return
    table = Table(box=None, padding=(0, 1), pad_edge=False, title="Phases", title_justify="left")
    table.title_style = "bold"
    table.add_column("  Phase")
    for name in ("Time", "Cycles", "Instructions", "GM read", "GM written"):
        table.add_column(name, justify="right", no_wrap=True)
    per_cycle = summary["time_us"] / max(summary["cycles"], 1)
    for name, phase in summary["phases"].items():
        instructions = sum(sum(pipes.values()) for pipes in phase["instructions"].values())
        table.add_row(
            f"  {name}", _microseconds(phase["cycles"] * per_cycle), f"{phase['cycles']:,}",
            f"{instructions:,}", _bytes(phase["bytes"]["gm_read"]), _bytes(phase["bytes"]["gm_write"]),
        )  # fmt: skip
    console.print(table)
    console.print()


def _print_explanation(explanation: Mapping[str, Sequence[str]], console: Console) -> None:
    """Print what an operator itself has to say about its run: lines under a title."""
    for title, lines in explanation.items():
        console.print(Text(title, style="bold"))
        for line in lines:
            console.print(_hanging("  ", Text(line)))
        console.print()


def _hanging(lead: str, text: Text) -> Table:
    grid = Table.grid()
    grid.add_column(no_wrap=True)
    grid.add_column()
    grid.add_row(lead, text)
    return grid


def _cause(pipe: Mapping[str, Any], cause: Cause) -> float:
    cycles: float = pipe["causes"].get(cause.value, 0)
    return cycles


def _percent(part: float, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "0 %"


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _figure(value: float | None) -> str:
    return "no finite number" if value is None else f"{value:.3g}"


def _microseconds(time: float) -> str:
    digits = 1 if time >= 1000 else 2 if time >= 100 else 3
    return f"{time:,.{digits}f} us"


def _bytes(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.3g} {unit}"


def _rate(size: int, time_us: float) -> str:
    if not time_us:
        return ""
    rate = size / time_us / 1000
    return (
        f", {rate:,.0f} GB/s over the whole run"
        if rate >= 100
        else f", {rate:.3g} GB/s over the whole run"
    )


def _shown(folder: Path) -> str:
    here = Path.cwd()
    return folder.relative_to(here).as_posix() if folder.is_relative_to(here) else str(folder)
