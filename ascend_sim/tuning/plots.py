"""Pictures of a sweep: heat maps and lines, as PNG (matplotlib) and as HTML (Plotly, one offline file)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ascend_sim.tuning.space import Value
from ascend_sim.tuning.sweeps import Result
from ascend_sim.tuning.tables import SIGNS, Grid, panels

_SERIES_MAX = 16


def write_plots(result: Result, folder: Path) -> list[str]:
    """Write what can be drawn and return the files' names; what needs a library that is not there is left out."""
    written: list[str] = []
    grids = panels(result)
    series = lines(result)
    if find_spec("matplotlib") is not None:
        if grids:
            _heat_png(result, grids, folder / "heatmap.png")
            written.append("heatmap.png")
        if series:
            _lines_png(result, series, folder / "lines.png")
            written.append("lines.png")
    if find_spec("plotly") is not None and (grids or series):
        _html(result, grids, series, folder / "sweep.html")
        written.append("sweep.html")
    return written


Series = tuple[str, list[Value], list[float | None]]
"""A line: its name, x values, times (None where the point did not go through)."""


def lines(result: Result) -> list[Series]:
    """Return the times over the first varying name that has numbers, one line for each setting of the others."""
    x = x_name(result)
    if x is None:
        return []
    others = [name for name in result.space.varying if name != x]
    found: dict[str, Series] = {}
    for row in result.rows:
        title = ", ".join(f"{name}={row[name]}" for name in others)
        _, xs, ys = found.setdefault(title, (title, [], []))
        xs.append(row[x])
        ys.append(row["time_us"] if row["status"] == "ok" else None)
    return list(found.values())[:_SERIES_MAX]


def x_name(result: Result) -> str | None:
    """Return the name along the x axis of the line plot: of those with numbers the one with the most values."""
    axes = result.space.axes
    numeric = [
        name
        for name in result.space.varying
        if all(isinstance(value, (int, float)) for value in axes[name])
    ]
    return max(numeric, key=lambda name: len(axes[name]), default=None)


Times = list[list[float | None]]


def _matrix(grid: Grid) -> tuple[Times, list[list[str]]]:
    """Return times (None where a point failed) and what to write into the cells."""
    _, _, xs, ys, cells = grid
    times: Times = []
    texts = []
    for down in ys:
        found = [cells.get((across, down)) for across in xs]
        times.append([row["time_us"] if row and row["status"] == "ok" else None for row in found])
        texts.append([_text(row) for row in found])
    return times, texts


def _text(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    return _time(row["time_us"]) if row["status"] == "ok" else SIGNS[row["status"]]


def _time(time: float) -> str:
    """Return a time with three digits, or all that it has before its point: neighbours in a map differ by little."""
    return f"{time:,.{max(2 - int(math.log10(max(time, 1))), 0)}f}"


def _figure(width: float, height: float) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  of the extra `tune`
    from matplotlib.figure import Figure  # noqa: PLC0415  as above; pyplot would keep global state

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _heat_png(result: Result, grids: Sequence[tuple[str, Grid]], path: Path) -> None:
    columns = min(len(grids), 3)
    rows = -(-len(grids) // columns)
    widest = max(len(grid[2]) for _, grid in grids)
    tallest = max(len(grid[3]) for _, grid in grids)
    figure = _figure(columns * (2 + 0.62 * widest), rows * (1.4 + 0.42 * tallest))
    for number, (title, grid) in enumerate(grids):
        x, y, xs, ys, _ = grid
        times, texts = _matrix(grid)
        axes = figure.add_subplot(rows, columns, number + 1)
        image = axes.imshow([_numbers(line) for line in times], aspect="auto", cmap="viridis_r")
        axes.set_xticks(range(len(xs)), [str(value) for value in xs], rotation=45, ha="right")
        axes.set_yticks(range(len(ys)), [str(value) for value in ys])
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.set_title(title)  # which of several maps it is
        middle = _middle(times)
        for down, line in enumerate(texts):
            for across, text in enumerate(line):
                time = times[down][across]
                dark = time is not None and time > middle
                axes.text(
                    across, down, text, ha="center", va="center", fontsize=7,
                    color="0.4" if time is None else "white" if dark else "black",
                )  # fmt: skip
        figure.colorbar(image, ax=axes, label="time in us")
    figure.suptitle(f"{result.task.target}: simulated time")
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _numbers(times: Sequence[float | None]) -> list[float]:
    return [float("nan") if time is None else time for time in times]


def _middle(times: Times) -> float:
    flat = [time for line in times for time in line if time is not None]
    return (min(flat) + max(flat)) / 2 if flat else 0.0


def _lines_png(result: Result, series: Sequence[Series], path: Path) -> None:
    figure = _figure(8, 5)
    axes = figure.add_subplot()
    for title, xs, ys in series:
        axes.plot(xs, _numbers(ys), marker="o", label=title)
    axes.set_xlabel(x_name(result))
    axes.set_ylabel("time in us")
    highest = max((time for _, _, ys in series for time in ys if time is not None), default=1.0)
    axes.set_ylim(0, 1.06 * highest)
    axes.grid(alpha=0.3)
    if len(series) > 1:
        axes.legend(fontsize=8)
    axes.set_title(f"{result.task.target}: simulated time")
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _html(
    result: Result, grids: Sequence[tuple[str, Grid]], series: Sequence[Series], path: Path
) -> None:
    import plotly.graph_objects as go  # noqa: PLC0415  of the extra `tune`
    from plotly.io import to_html  # noqa: PLC0415  as above

    parts = []
    for title, grid in grids:
        x, y, xs, ys, _ = grid
        times, texts = _matrix(grid)
        figure = go.Figure(
            go.Heatmap(
                x=[str(value) for value in xs], y=[str(value) for value in ys],
                z=times, text=texts, texttemplate="%{text}", colorscale="Viridis", reversescale=True,
                colorbar={"title": "us"},
            )
        )  # fmt: skip
        figure.update_layout(title=title or "time in us", xaxis_title=x, yaxis_title=y)
        figure.update_xaxes(type="category")
        figure.update_yaxes(type="category")
        parts.append(figure)
    if series:
        figure = go.Figure(
            [go.Scatter(x=xs, y=ys, name=title, mode="lines+markers") for title, xs, ys in series]
        )
        figure.update_layout(
            title="time in us",
            xaxis_title=x_name(result),
            yaxis_title="us",
            yaxis_rangemode="tozero",
        )
        parts.append(figure)
    body = "\n".join(
        to_html(figure, full_html=False, include_plotlyjs=number == 0, div_id=f"plot{number}")
        for number, figure in enumerate(parts)
    )
    page = (
        '<!doctype html><html><head><meta charset="utf-8"><title>'
        f"{result.task.target}: sweep</title></head><body>\n<h1>{result.task.target}</h1>\n{body}\n</body></html>\n"
    )
    path.write_text(page, encoding="utf-8")
