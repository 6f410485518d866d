"""What a sweep shows: table, heat map in the terminal, CSV. Plots are in `plots`."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ascend_sim.tuning.space import Point, Space, Value
from ascend_sim.tuning.sweeps import Result

if TYPE_CHECKING:
    from ascend_sim.tuning.tuner import Tuned
    from ascend_sim.tuning.why import Comparison

SIGNS = {
    "does not fit": "no fit", "refused": "refused", "fault": "fault", "finding": "finding", "deadlock": "hangs",
    "error": "error", "crash": "crash", "pruned": "pruned",
}  # fmt: skip
"""What a heat map shows in place of a time."""
MAX_TABLE = 60
MAX_PANELS = 12
MAX_ACROSS = 12
_LESS = 0.01
"""By so much less that the best point writes than others it is told."""

_SHADES = ("black on green", "black on cyan", "black on yellow", "white on magenta", "white on red")


def print_tuned(tuned: Tuned, comparisons: Sequence[Comparison], console: Console) -> None:
    """Print the Pareto set, what was tried, the best point and why it is the best."""
    result = tuned.result
    console.print("Pareto set of time, UB bytes and cores:", soft_wrap=True)
    console.print(_table(result.space, tuned.pareto()))
    _print_heat_maps(result, console)
    _print_failures(result.rows, result.space, console)
    console.print(
        f"{tuned.simulations} simulations for {len(result.space)} points "
        f"({100 * tuned.simulations / len(result.space):.0f} %)",
        soft_wrap=True,
    )
    best = tuned.best
    if best is None:
        console.print("nothing went through")
        return
    console.print(
        f"best: {point_text(best, result.space)}: {best['time_us']:,.2f} us, {best['cycles']:,} cycles, "
        f"{best['cycles'] / best['bound_cycles']:.2f} of its lower bound ({best['limit']})",
        soft_wrap=True,
    )
    _print_doubt(result, best, console)
    for comparison in comparisons:
        console.print(f"  {comparison.text}", soft_wrap=True, highlight=False)


def print_sweep(result: Result, console: Console, *, full: bool = False) -> None:
    """Print the table, a heat map where two names vary, what failed and why, and the best point."""
    rows = result.rows
    shown = rows if full or len(rows) <= MAX_TABLE else _fastest(rows)
    console.print(_table(result.space, shown))
    if len(shown) < len(rows):
        console.print(
            f"the fastest {len(shown)} of {len(rows)} points; all are in the CSV file",
            soft_wrap=True,
        )
    _print_heat_maps(result, console)
    _print_failures(rows, result.space, console)
    best = result.best()
    if best is not None:
        console.print(
            f"best: {point_text(best, result.space)}: {best['time_us']:,.2f} us, {best['cycles']:,} cycles",
            soft_wrap=True,
        )
        _print_doubt(result, best, console)


def _print_doubt(result: Result, best: Mapping[str, Any], console: Console) -> None:
    """Say so where the best point writes less to GM than others that differ from it in constants only."""
    options = [name for name in result.space.axes if name != name.upper()]
    most = max(
        row["gm_write"]
        for row in result.rows
        if row["status"] == "ok" and all(row[name] == best[name] for name in options)
    )
    if best["gm_write"] < (1 - _LESS) * most:
        console.print(
            f"  it writes {best['gm_write']:,} bytes to GM, other points up to {most:,}: is all of the work done? "
            "Runs for the time alone do not look at results; `run` with these values does",
            soft_wrap=True,
            highlight=False,
        )


def _fastest(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    good = [row for row in rows if row["time_us"] is not None]
    return sorted(good, key=lambda row: row["time_us"])[:MAX_TABLE]


def point_text(row: Mapping[str, Any], space: Space) -> str:
    """Return a point's parameters as they are given to --set."""
    return " ".join(f"{name}={row[name]}" for name in space.axes)


def _table(space: Space, rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in space.axes:
        table.add_column(name, justify="right")
    for name in ("time us", "cycles", "of bound", "limit", "UB bytes"):
        table.add_column(name, justify="left" if name == "limit" else "right")
    table.add_column("result")
    for row in rows:
        time, bound = row["time_us"], row["bound_cycles"]
        table.add_row(
            *(str(row[name]) for name in space.axes),
            "-" if time is None else f"{time:,.2f}",
            "-" if time is None else f"{row['cycles']:,}",
            "-" if time is None or not bound else f"{row['cycles'] / bound:.2f}",
            row["limit"] or "-",
            "-" if row["ub_bytes"] is None else f"{row['ub_bytes']:,}",
            row["status"],
        )
    return table


Grid = tuple[str, str, list[Value], list[Value], dict[tuple[Value, Value], dict[str, Any]]]
"""Names of x and y, their values, and the row at each (x, y)."""


def panels(result: Result) -> list[tuple[str, Grid]]:
    """Return the heat maps of a sweep: the two names with the most values, a panel for each setting of the others."""
    varying = result.space.varying
    if len(varying) < 2:
        return []
    axes = result.space.axes
    by_size = sorted(varying, key=lambda name: (-_spread(axes[name]), varying.index(name)))
    x, y = by_size[:2]
    others = [name for name in varying if name not in (x, y)]
    found = []
    for setting in product(*(axes[name] for name in others)):
        fixed = dict(zip(others, setting, strict=True))
        cells = {
            (row[x], row[y]): row
            for row in result.rows
            if all(row[name] == value for name, value in fixed.items())
        }
        title = ", ".join(f"{name}={value}" for name, value in fixed.items())
        found.append((title, (x, y, list(axes[x]), list(axes[y]), cells)))
    return found[:MAX_PANELS]


def _spread(values: Sequence[Value]) -> int:
    """Return how many values there are; numbers come before names."""
    return len(values) if all(isinstance(value, (int, float)) for value in values) else 1


def _print_heat_maps(result: Result, console: Console) -> None:
    for title, grid in panels(result):
        if len(grid[2]) > MAX_ACROSS:
            grid = _turned(grid)
        if len(grid[2]) > MAX_ACROSS:
            return  # too wide for a terminal; the pictures have it
        where = f"; {title}" if title else ""
        console.print(f"\ntime in us: {grid[0]} across, {grid[1]} down{where}", soft_wrap=True)
        console.print(_heat_map(grid))


def _turned(grid: Grid) -> Grid:
    x, y, xs, ys, cells = grid
    return y, x, ys, xs, {(down, across): row for (across, down), row in cells.items()}


def _heat_map(grid: Grid) -> Table:
    _, y, xs, ys, cells = grid
    table = Table(box=None, pad_edge=False)
    table.add_column(y, justify="right")
    for value in xs:
        table.add_column(str(value), justify="right")
    times = [row["time_us"] for row in cells.values() if row["status"] == "ok"]
    low, high = min(times, default=0), max(times, default=0)
    for down in ys:
        table.add_row(str(down), *(_cell(cells.get((across, down)), low, high) for across in xs))
    return table


def _cell(row: Mapping[str, Any] | None, low: float, high: float) -> Text:
    if row is None:
        return Text("")
    if row["status"] != "ok":
        return Text(SIGNS[row["status"]], style="dim")
    share = (row["time_us"] - low) / (high - low) if high > low else 0.0
    style = _SHADES[min(int(share * len(_SHADES)), len(_SHADES) - 1)]
    return Text(f"{row['time_us']:,.1f}", style=style)


def _print_failures(rows: Sequence[Mapping[str, Any]], space: Space, console: Console) -> None:
    counts = Counter(row["status"] for row in rows)
    told = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    what = "point" if len(rows) == 1 else "points"
    console.print(f"{len(rows)} {what}: {told}", soft_wrap=True)
    for status in counts:
        if status != "ok":
            first = next(row for row in rows if row["status"] == status)
            text = f"  {status}, first at {point_text(first, space)}: {first['reason']}"
            console.print(text, highlight=False, markup=False, soft_wrap=True)


def write_csv(result: Result, path: Path) -> None:
    """Write all rows with all columns. The time that the host took is left out."""
    columns = [name for name in result.columns if name != "seconds"]
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        for row in result.rows:
            writer.writerow([row[name] for name in columns])


def point_of(row: Mapping[str, Any], space: Space) -> Point:
    """Return the parameters of a row."""
    return {name: row[name] for name in space.axes}
