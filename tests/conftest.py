from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ascend_sim.config import Chip, load_chip
from ascend_sim.launch import on_run
from ascend_sim.run import Run
from tests.exports import check_reports

SHORT = 600
"""Items of a run whose reports are cheap enough to be looked over beside any test."""


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout that the tests stand in."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def toy() -> Chip:
    """The chip of round numbers."""
    return load_chip("toy")


@pytest.fixture(autouse=True)
def reports_are_looked_over() -> Iterator[None]:
    """Look over the ledger, bounds and traces of the first short run that each test makes."""

    looked = False

    def look(run: Run) -> None:
        nonlocal looked
        if not looked and sum(len(core.items) for core in run.log.cores) <= SHORT:
            looked = True
            check_reports(run)

    on_run.append(look)
    yield
    on_run.remove(look)
