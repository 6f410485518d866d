from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ascend_sim.config import Chip, load_chip
from ascend_sim.launch import on_run
from ascend_sim.run import Run
from tests.exports import check_reports

ITEMS, RUNS = 600, 3
"""Whose reports are looked over beside a quick test: runs of so many items at most, so many of a test at most."""

looked: dict[str, int] = {"runs": 0, "all runs": 0, "items": 0}
"""How much was looked over, of how many runs."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switch that has the reports of all runs looked over, which takes about 90 us an item."""
    parser.addoption(
        "--every-run", action="store_true", help="look over all runs of quick tests, too"
    )


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand a worker's counts to the process that prints them."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["looked"] = looked


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add what a worker has counted."""
    for name, count in getattr(node, "workeroutput", {}).get("looked", {}).items():
        looked[name] += count


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell how many runs had their reports looked over."""
    if looked["all runs"]:
        terminalreporter.write_line(
            f"reports of {looked['runs']:,} of {looked['all runs']:,} runs looked over, {looked['items']:,} items"
        )


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout that the tests stand in."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def toy() -> Chip:
    """The chip of round numbers."""
    return load_chip("toy")


@pytest.fixture(autouse=True)
def reports_are_looked_over(request: pytest.FixtureRequest) -> Iterator[None]:
    """Look over ledger, bounds and traces of the runs that each test makes: all beside a slow one, else a few."""
    slow = request.node.get_closest_marker("slow") is not None
    every = slow or request.config.getoption("--every-run")
    mine = 0

    def look(run: Run) -> None:
        nonlocal mine
        looked["all runs"] += 1
        items = sum(len(core.items) for core in run.log.cores)
        if every or (mine < RUNS and items <= ITEMS):
            mine += 1
            check_reports(run)
            looked["runs"] += 1
            looked["items"] += items

    on_run.append(look)
    yield
    on_run.remove(look)
