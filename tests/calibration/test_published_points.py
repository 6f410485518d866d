"""The published measurements that concern vector cores and GM, simulated; the table in docs/calibration.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.calibration.points import POINTS, Point, line

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "calibration.md"


def table() -> list[str]:
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    return [text for text in lines if text.startswith("| ") and text.endswith(" % |")]


@pytest.mark.parametrize(
    "point",
    [
        pytest.param(point, id=point.name, marks=[pytest.mark.slow] if point.slow else [])
        for point in POINTS
    ],
)
def test_point(point: Point) -> None:
    """Within the error of the timing sheet's own formula, and the table says what comes out."""
    value = point.simulate()
    assert abs(value / point.measured - 1) <= point.allowed
    assert line(point, value) in table()


def test_the_table_has_a_line_for_each_point_and_no_other() -> None:
    names = [text.split("|")[1].strip() for text in table()]
    assert names == [point.name for point in POINTS]
    assert len(set(names)) == len(names)


def test_only_documented_points_are_far_off() -> None:
    """What the simulator gets wrong by more than a tenth is talked about below the table."""
    text = DOCUMENT.read_text(encoding="utf-8")
    prose = text[text.index("## Where it is off") :]
    for row in table():
        name, error = row.split("|")[1].strip(), float(row.split("|")[6].strip(" %"))
        if abs(error) > 10:
            assert f"“{name}”" in prose
