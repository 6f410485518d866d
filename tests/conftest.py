from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ascend_sim.config import Chip, load_chip
from ascend_sim.launch import on_run
from ascend_sim.run import Run
from tests.exports import check_reports

ITEMS, RUNS = 600, 3
"""Which runs' reports are looked over beside any test: those of so many items at most, so many of a test at most."""

MORE_ITEMS, MORE_RUNS = 20_000, 10_000
"""And beside a slow test."""


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
    """Look over the ledger, bounds and traces of the runs that each test makes, as far as that is affordable."""
    slow = request.node.get_closest_marker("slow") is not None
    items, runs = (MORE_ITEMS, MORE_RUNS) if slow else (ITEMS, RUNS)
    looked = 0

    def look(run: Run) -> None:
        nonlocal looked
        if looked < runs and sum(len(core.items) for core in run.log.cores) <= items:
            looked += 1
            check_reports(run)

    on_run.append(look)
    yield
    on_run.remove(look)
