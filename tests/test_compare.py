"""Comparisons: what counts as equal, which patterns are named, what differences look like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_sim import compare
from ascend_sim.patterns import pattern_of

Array = np.ndarray[Any, Any]


def marked(shape: tuple[int, ...], *places: Any) -> Array:
    mask = np.zeros(shape, bool)
    for place in places:
        mask[place] = True
    return mask


@pytest.mark.parametrize(
    ("mask", "text"),
    [
        (marked((4,)), "none"),
        (marked((4,), slice(None)), "all elements"),
        (np.arange(192) % 64 == 0, "index 0 of every 64"),
        (np.arange(192) % 64 >= 61, "indices 61 to 63 of every 64"),
        (marked((520,), slice(512, None)), "all from element 512 on"),
        (marked((520,), slice(3, 9)), "elements 3 to 8"),
        (marked((4, 8), (slice(None), slice(5, 8))), "columns 5 to 7 of every row"),
        (marked((4, 8), 2), "row 2"),
        (marked((8, 8), slice(1, None, 2)), "every second row from row 1"),
        (marked((4, 8), (1, 3), (2, 6)), "2 elements in 2 pieces between element 11 and 22"),
    ],
)
def test_patterns(mask: Array, text: str) -> None:
    assert pattern_of(mask) == text


@given(st.lists(st.integers(0, 40), min_size=1, unique=True), st.integers(41, 60))
def test_a_pattern_of_indices_is_exact(places: list[int], size: int) -> None:
    """What "index i of every n" says is what is marked."""
    mask = marked((size,), places)
    words = pattern_of(mask).split()
    if words[0] == "index":
        assert np.flatnonzero(mask).tolist() == list(range(int(words[1]), size, int(words[-1])))


def test_equal_within_the_tolerance() -> None:
    reference = np.array([1.0, -2.0, np.inf], np.float32)
    assert compare(reference, reference).ok
    assert not compare(reference * np.float32(1.001), reference).ok
    assert compare(reference * np.float32(1.001), reference, rtol=2e-3).ok
    assert compare(reference, reference.astype(np.float64)).ok


@pytest.mark.parametrize(
    ("result", "reference", "code"),
    [
        (np.zeros((8, 1)), np.zeros(8), "shape-differs"),
        (np.zeros(8, np.float16), np.zeros(8, np.float32), "type-differs"),
        (np.zeros(0), np.zeros(0), "nothing-compared"),
        (np.zeros(8), np.ones(8), "mismatch"),
        (np.array([np.nan]), np.array([np.nan]), "mismatch"),
    ],
)
def test_what_is_wrong(result: Array, reference: Array, code: str) -> None:
    (finding,) = compare(result, reference).findings
    assert (finding.kind, finding.code) == ("NUMERIC", code)


def test_nan_is_equal_to_nan_where_that_is_asked_for() -> None:
    report = compare([np.nan, 1.0], [np.nan, 1.0], nan_equal=True)
    assert (report.ok, report.compared, report.non_finite) == (True, 2, 1)


@given(st.floats(0.01, 100).filter(lambda factor: abs(factor - 1) > 0.01), st.integers(3, 50))
def test_a_factor_is_named(factor: float, count: int) -> None:
    reference = np.linspace(1, 2, count)
    (finding,) = compare(factor * reference, reference, factors={"scale": factor}).findings
    assert f"every element is {factor:.4g} of the reference" in finding.message
    assert f"that is scale ({factor:.4g}), applied once more" in finding.message


def test_no_factor_where_there_is_none() -> None:
    (finding,) = compare([1.0, 2.0, 4.0], [1.0, 2.0, 3.0]).findings
    assert "of the reference" not in finding.message


def test_differences_that_are_no_ties_are_not_called_so() -> None:
    (finding,) = compare([1, 3], [0, 2], unrounded=[0.5, 1.7]).findings
    assert "ties" not in finding.message


def test_a_step_far_from_the_numbers_is_a_mismatch() -> None:
    (finding,) = compare([0.0], [1.0], argument=([0.9], [1.0])).findings
    assert finding.code == "mismatch"
