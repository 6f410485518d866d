"""The layout conversions against the element formulas, one element at a time."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isa import cube_params, layout, types

SIZES = st.integers(1, 50)
KINDS = st.sampled_from([np.int8, np.float16, types.bfloat16.numpy, np.float32])


def _numbers(rows: int, columns: int, kind: np.dtype) -> np.ndarray:
    """A matrix without a zero, so that padding cannot pass for data."""
    return (np.arange(rows * columns) % 100 + 1).reshape(rows, columns).astype(kind)


def _up(size: int, unit: int) -> int:
    return (size + unit - 1) // unit * unit


def nz_offset(r: int, c: int, rows: int, columns: int, c0: int) -> int:
    return (c // c0) * (_up(rows, 16) * c0) + r * c0 + c % c0


def zz_offset(r: int, c: int, rows: int, columns: int, c0: int) -> int:
    return (r // 16) * (_up(columns, c0) * 16) + (c // c0) * (16 * c0) + (r % 16) * c0 + c % c0


def zn_offset(r: int, c: int, rows: int, columns: int, c0: int) -> int:
    return (r // c0) * (_up(columns, 16) * c0) + (c // 16) * (16 * c0) + (c % 16) * c0 + r % c0


CASES = {
    "nz": (layout.nd_to_nz, layout.nz_to_nd, nz_offset, lambda c0: (16, c0)),
    "zz": (layout.nd_to_zz, layout.zz_to_nd, zz_offset, lambda c0: (16, c0)),
    "zn": (layout.nd_to_zn, layout.zn_to_nd, zn_offset, lambda c0: (c0, 16)),
}


@pytest.mark.parametrize("name", CASES)
@given(rows=SIZES, columns=SIZES, kind=KINDS)
@settings(max_examples=40, deadline=None)
def test_each_element_stands_where_the_formula_says(
    name: str, rows: int, columns: int, kind: np.dtype
) -> None:
    forward, backward, offset, units = CASES[name]
    matrix = _numbers(rows, columns, kind)
    c0 = 32 // matrix.dtype.itemsize
    flat = forward(matrix)
    expected = np.zeros(_up(rows, units(c0)[0]) * _up(columns, units(c0)[1]), matrix.dtype)
    for r in range(rows):
        for c in range(columns):
            expected[offset(r, c, rows, columns, c0)] = matrix[r, c]
    assert np.array_equal(flat, expected)
    assert np.array_equal(backward(flat, rows, columns), matrix)


@given(rows=SIZES, columns=SIZES)
@settings(max_examples=20, deadline=None)
def test_results_in_l0c_have_sixteen_columns_a_group(rows: int, columns: int) -> None:
    matrix = _numbers(rows, columns, np.dtype(np.float32))
    flat = layout.nd_to_nz(matrix, c0=16)
    for r, c in ((0, 0), (rows - 1, columns - 1), (rows // 2, columns // 2)):
        assert flat[nz_offset(r, c, rows, columns, 16)] == matrix[r, c]
    assert np.array_equal(layout.nz_to_nd(flat, rows, columns, c0=16), matrix)


def test_what_is_no_matrix_is_refused() -> None:
    for convert in (layout.nd_to_nz, layout.nd_to_zz, layout.nd_to_zn):
        with pytest.raises(ValueError, match="takes a matrix"):
            convert(np.zeros(16, np.float16))
    for convert in (layout.nz_to_nd, layout.zz_to_nd, layout.zn_to_nd):
        with pytest.raises(ValueError, match="the layout has 256 elements, the array 255"):
            convert(np.zeros(255, np.float16), 16, 16)


def test_shapes_of_a_fractal() -> None:
    assert [layout.fractal_shape(t) for t in (types.int8, types.bfloat16, types.float32)] == [
        (16, 32), (16, 16), (16, 8),
    ]  # fmt: skip
    assert layout.c0_size(types.float16) == 16


@pytest.mark.parametrize("module", [layout, cube_params])
def test_examples_in_docstrings(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted > 0
    assert result.failed == 0
