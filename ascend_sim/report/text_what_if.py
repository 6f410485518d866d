"""The table of `what-if`, on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

_BAR = 20


def print_what_if(found: Mapping[str, Any], console: Console) -> None:
    """Print what each ideal gains, as a share of the run, beside its share of the critical path."""
    cycles = found["cycles"]
    time = cycles / found["clock_mhz"]
    head = Text(f"{found['op']}: ", style="bold")
    head.append(f"{cycles:,} cycles, {time:,.3f} us", style="default")
    console.print(head)
    console.print()
    _print("With one resource ideal", found["ideals"], cycles, console)
    if found["pairs"]:
        _print("Together they gain more than one by one", found["pairs"], cycles, console)


def _print(title: str, rows: list[Mapping[str, Any]], cycles: int, console: Console) -> None:
    table = Table(box=None, padding=(0, 1), pad_edge=False, title=title, title_justify="left")
    table.title_style = "bold"
    table.add_column("  Ideal", no_wrap=True)
    table.add_column("Gain", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("On the path", justify="right", no_wrap=True)
    table.add_column("Cycles", justify="right", no_wrap=True)
    table.add_column("Meaning")
    for row in rows:
        share = row["gain"] / cycles if cycles else 0.0
        bar = "█" if not console.options.ascii_only else "#"
        path = row["critical_path"]
        table.add_row(
            f"  {'+'.join(row['ideal'])}",
            Text(f"{100 * share:.1f} %", style="green" if share >= 0.005 else "default"),
            Text(bar * max(round(_BAR * share), 0), style="green"),
            "" if path is None else f"{100 * path / cycles:.1f} %",
            f"{row['cycles']:,}",
            row["means"],
        )
    console.print(table)
    console.print()
