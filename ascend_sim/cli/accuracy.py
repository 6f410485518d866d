"""The table of simulated against published times."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ascend_sim.accuracy import families, load_cases
from ascend_sim.accuracy.campaign import run_cases
from ascend_sim.accuracy.card import save_result
from ascend_sim.accuracy.measure import PIPES
from ascend_sim.accuracy.score import shift


def show_accuracy(
    cases: Path | None, family: str | None, *, as_json: bool, save: Path | None = None
) -> int:
    """Run the records and print the errors; 1 where a record could not be simulated."""
    file = cases or families.folder() / "cases.yaml"
    loaded = load_cases(file)
    with Progress(
        console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True
    ) as bar:
        task = bar.add_task("records", total=None)

        def tell(done: int, total: int, name: str) -> None:
            bar.update(task, completed=done, total=total, description=name)

        result = run_cases(loaded, family=family, progress=tell)
    if save is not None:
        save_result(result, save)
    if as_json:
        print(json.dumps(result, indent=1))
    else:
        _print(result)
    return 1 if any("error" in row for row in result["records"]) else 0


def _print(result: Mapping[str, Any]) -> None:
    console = Console(markup=False, emoji=False)
    console.print(_records(result["records"]))
    if result["pairs"]:
        console.print(_pairs(result["pairs"]))
    console.print(_summary(result["summary"]))
    revisions = ", ".join(
        f"{name} revision {revision}" for name, revision in result["chips"].items()
    )
    console.print(
        f"Chips: {revisions}. ln is the natural logarithm of simulated over measured.",
        highlight=False,
    )


def _records(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("Record", "Grade", "Figure", "Measured", "Simulated", "ln", "Pipes: ln"):
        table.add_column(
            name, justify="right" if name in ("Measured", "Simulated", "ln") else "left"
        )
    for row in rows:
        if "error" in row:
            table.add_row(row["id"], row["grade"], "not simulated", "", "", "", row["error"])
            continue
        whole = row["whole"] or next(
            (key for key, value in row["simulated"].items() if value is not None), ""
        )
        ratio = row["ln_ratio"].get(row["whole"]) if row["whole"] else None
        pipes = "  ".join(
            f"{pipe[:-3]} {shift(row['ln_ratio'][pipe]):+.2f}"
            for pipe in PIPES
            if pipe in row["ln_ratio"]
        )
        table.add_row(
            row["id"], row["grade"], whole, _figure((row["measured"] or {}).get(whole)),
            _figure(row["simulated"].get(whole)), "" if ratio is None else f"{shift(ratio):+.3f}", pipes,
        )  # fmt: skip
    return table


def _pairs(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("Pair", "Grade", "Figure", "Gain measured", "simulated", "ln", "Sign"):
        table.add_column(
            name, justify="right" if "ain" in name or name in ("simulated", "ln") else "left"
        )
    words = {True: "right", False: "WRONG", None: ""}
    for row in rows:
        ratio = row["ln_ratio"]
        table.add_row(
            row["id"], row["grade"], row["metric"], _figure(row["measured"]), _figure(row["simulated"]),
            "" if ratio is None else f"{ratio:+.3f}", words[row["sign"]],
        )  # fmt: skip
    return table


def _summary(grades: Mapping[str, Any]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in (
        "Grade",
        "Records",
        "Whole: median",
        "9 in 10",
        "Pipes: median",
        "9 in 10",
        "Pairs: median",
        "Signs right",
    ):
        table.add_column(name, justify="left" if name == "Grade" else "right")
    for grade, part in grades.items():
        table.add_row(
            grade, str(part["records"]), _figure(part["whole"]["median"]), _figure(part["whole"]["p90"]),
            _figure(part["pipes"]["median"]), _figure(part["pipes"]["p90"]), _figure(part["pairs"]["median"]),
            f"{part['signs_right']} of {part['signs']}",
        )  # fmt: skip
    return table


def _figure(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, (list, tuple)):
        shown = [_figure(one) for one in value]
        return " ".join(shown if len(shown) <= 4 else [*shown[:2], "...", shown[-1]])
    return f"{value:.4g}" if isinstance(value, (int, float)) else str(value)
