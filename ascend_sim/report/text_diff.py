"""Two runs beside each other, on a terminal."""

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
    head = Text(f"{difference.names[1]}: ", style="bold")
    head.append(f"{before:,} -> {after:,} cycles, ", style="default")
    head.append(f"{after - before:+,}{share}", style=_style(after - before))
    console.print(head)
    console.print(f"{difference.time_us[0]:,.3f} -> {difference.time_us[1]:,.3f} us")
    console.print()
    _print("Critical path: adds up to the change", difference.path, console)
    _print("Pipes, mean of their cores: each pipe adds up to the change", difference.pipes, console)


def _style(change: float) -> str:
    return "red" if change > 0 else "green" if change < 0 else "default"


def _print(title: str, rows: Sequence[Row], console: Console) -> None:
    changed = [row for row in rows if round(row.change)]
    if not changed:
        return
    table = Table(box=None, padding=(0, 1), pad_edge=False, title=title, title_justify="left")
    table.title_style = "bold"
    table.add_column("  Pipe", no_wrap=True)
    table.add_column("Line", overflow="fold")
    table.add_column("Cause", no_wrap=True)
    for name in ("Before", "After", "Change"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in changed[:_MOST]:
        pipe, line, *cause = row.key
        table.add_row(
            f"  {pipe}", line, "/".join(part for part in cause if part), f"{row.before:,.0f}",
            f"{row.after:,.0f}", Text(f"{row.change:+,.0f}", style=_style(row.change)),
        )  # fmt: skip
    rest = changed[_MOST:]
    if rest:
        change = sum(row.change for row in rest)
        table.add_row("", f"{len(rest)} more", "", "", "", f"{change:+,.0f}")
    console.print(table)
    console.print()
