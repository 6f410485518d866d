"""Real problems of people who write kernels: each is scored, and none may score less than it has."""

from __future__ import annotations

from functools import cache

import pytest

from tests.user_cases import (  # noqa: F401  each enters its cases
    alignment,
    bounds,
    capacity,
    cross_core,
    deadlock,
    host,
    numerics,
    performance,
    queues,
    sync,
    tiling,
)
from tests.user_cases.kit import CASES, score

LESS: dict[str, int] = {}
"""Cases that do not get both points yet."""
NEEDED = 140


@cache
def points(name: str) -> tuple[int, list[str]]:
    """The points of a case."""
    return score(CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    found, lacks = points(name)
    assert found >= LESS.get(name, 2), "\n".join(lacks)


def test_all_cases_together(capsys: pytest.CaptureFixture[str]) -> None:
    total = {name: points(name)[0] for name in CASES}
    with capsys.disabled():
        print(f"\nuser cases: {sum(total.values())} of {2 * len(total)} points")
    assert len(total) == 74
    assert min(total.values()) >= 0
    assert sum(total.values()) >= NEEDED
