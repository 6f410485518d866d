"""Two runs beside each other, on a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ascend_sim.report.diff import Difference, Row

_MOST = 12


def print_diff(difference: Difference, console: Console) -> None:
    """Print what changed, the largest change first; every table adds up to the difference."""
    before, after = difference.cycles
    share = f" ({100 * (after - before) / before:+.2f} %)" if before else ""
    head = Text(f"{difference.title}: ", style="bold")
    head.append(f"{before:,} -> {after:,} cycles, ", style="default")
    head.append(f"{after - before:+,}{share}", style=_style(after - before))
    console.print(head)
    console.print(f"{difference.time_us[0]:,.3f} -> {difference.time_us[1]:,.3f} us")
    for note in difference.notes:
        console.print(Text(note, style="yellow" if not difference.same_kernel else ""))
    console.print()
    _print("Critical path: adds up to the change", difference.path, console, total=True)
    _print("Pipes, mean of their cores: each adds up to the change", difference.pipes, console)


def _style(change: float) -> str:
    return "red" if change > 0 else "green" if change < 0 else "default"


def _figures(rows: Sequence[Row]) -> list[Text]:
    before, after, change = (
        sum(getattr(row, name) for row in rows) for name in ("before", "after", "change")
    )
    style = _style(change) if len(rows) == 1 else ""
    return [Text(f"{before:,.0f}"), Text(f"{after:,.0f}"), Text(f"{change:+,.0f}", style=style)]


def _print(title: str, rows: Sequence[Row], console: Console, *, total: bool = False) -> None:
    changed = [row for row in rows if round(row.change)]
    if not changed:
        return
    console.print(Text(title, style="bold"))
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("  Pipe", no_wrap=True)
    lines = any(row.key[1] for row in changed)
    if lines:
        table.add_column("Line", overflow="fold")
    table.add_column("Cause", no_wrap=True)
    for name in ("Before", "After", "Change"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in changed[:_MOST]:
        pipe, line, *cause = row.key
        word = "/".join(part for part in cause if part)
        table.add_row(f"  {pipe}", *([line] if lines else []), word, *_figures([row]))
    if changed[_MOST:]:
        more = f"{len(changed) - _MOST} more"
        table.add_row("", *([more, ""] if lines else [more]), *_figures(changed[_MOST:]))
    if total:
        table.add_row("  all", *([""] if lines else []), "", *_figures(rows))
    console.print(table)
    console.print()


def markdown(difference: Difference, most: int = 15) -> str:
    """Return the difference as Markdown, for a pull request."""
    before, after = difference.cycles
    share = f" ({100 * (after - before) / before:+.2f} %)" if before else ""
    lines = [
        f"**{difference.title}**: {before:,} → {after:,} cycles, {after - before:+,}{share}; "
        f"{difference.time_us[0]:,.3f} → {difference.time_us[1]:,.3f} µs",
        "",
        *(line for note in difference.notes for line in (note, "")),
    ]
    for title, rows in (
        ("Critical path", difference.path), ("Pipes, mean of their cores", difference.pipes),
    ):  # fmt: skip
        changed = [row for row in rows if round(row.change)]
        if not changed:
            continue
        lines += [f"{title}", "", "| pipe | line | cause | before | after | change |"]
        lines += ["|---|---|---|---:|---:|---:|"]
        for row in changed[:most]:
            pipe, line, *cause = row.key
            word = "/".join(part for part in cause if part)
            lines.append(
                f"| {pipe} | {line} | {word} | {row.before:,.0f} | {row.after:,.0f} | {row.change:+,.0f} |"
            )
        if changed[most:]:
            figures = " | ".join(map(str, _figures(changed[most:])))
            lines.append(f"| | {len(changed) - most} more | | {figures} |")
        lines.append("")
    return "\n".join(lines)
