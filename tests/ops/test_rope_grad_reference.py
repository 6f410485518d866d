"""The references against loops over single elements; comparison, coverage and data against hand-made cases."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_sim.errors import ConfigError
from ops.compare import Comparison
from ops.coverage import Region, regions, written_mask
from ops.data import load_npz, normal, uniform
from ops.rope_grad import reference
from ops.rope_grad.inputs import (
    NAMES,
    Shape,
    default_inputs,
    random_inputs,
    read_inputs,
    rope_tables,
)
from ops.tensor import TensorDesc

HALF = 64


def small_case(seq_lens: list[int], hidden: int, rows: int | None = None) -> list[np.ndarray]:
    shape = Shape(tuple(seq_lens), hidden, max(seq_lens), rows or sum(seq_lens))
    return random_inputs(shape.descs(), ["-100,100", "-100,100", "-2,2", "-2,2"], seed=3)


def element(
    gradient: np.ndarray, cos: np.ndarray, sin: np.ndarray, row: int, at: int, table: int
) -> np.float16:
    """One element as the device computes it, in scalar float16 steps."""
    column = at % 128
    if column < HALF:
        work = cos[table, column] + sin[table, column + HALF]
    else:
        work = cos[table, column] + sin[table, column - HALF] * np.float16(-1)
    assert work.dtype == np.float16
    return gradient[row, at] * work


def test_library_against_single_elements() -> None:
    seq_lens = [3, 1, 2]
    q, k, cos, sin = small_case(seq_lens, 256)
    results = reference.library(q, k, cos, sin, seq_lens)
    for gradient, result in zip((q, k), results, strict=True):
        row = 0
        for length in seq_lens:
            for table in range(length):
                expected = [element(gradient, cos, sin, row, at, table) for at in range(256)]
                np.testing.assert_array_equal(
                    result[row].view(np.uint16), np.array(expected).view(np.uint16)
                )
                row += 1


def test_adjoint_is_the_adjoint() -> None:
    """For a linear forward F and its adjoint A: <F x, g> = <x, A g>, for every pair of unit vectors."""
    rng = np.random.default_rng(5)
    cos, sin = rng.normal(size=(2, 1, 128)).astype(np.float16)

    def forward(x: np.ndarray) -> np.ndarray:
        rotated = np.concatenate([-x[:, HALF:], x[:, :HALF]], axis=1)
        return x * cos.astype(np.float64) + rotated * sin.astype(np.float64)

    jacobian = forward(np.eye(128))
    ones = np.eye(128, dtype=np.float16)
    tables = [np.repeat(table, 128, axis=0) for table in (cos, sin)]
    backward = reference.adjoint_rows(ones, *tables)
    np.testing.assert_allclose(backward, jacobian.T, rtol=0, atol=0)


def test_library_is_the_adjoint_where_both_halves_agree() -> None:
    q, k, cos, sin = small_case([4], 128)
    q[:, HALF:] = q[:, :HALF]
    library, _ = reference.library(q, k, cos, sin, [4])
    adjoint, _ = reference.adjoint(q, k, cos, sin, [4])
    np.testing.assert_allclose(library.astype(np.float64), adjoint, rtol=2e-3, atol=0.1)
    q[:, HALF:] = -q[:, :HALF]
    library, _ = reference.library(q, k, cos, sin, [4])
    adjoint, _ = reference.adjoint(q, k, cos, sin, [4])
    assert np.abs(library - adjoint).max() > 10


def test_each_sample_starts_at_row_0_of_the_tables() -> None:
    q, k, cos, sin = small_case([2, 2], 128)
    q[2:] = q[:2]
    result, _ = reference.library(q, k, cos, sin, [2, 2])
    np.testing.assert_array_equal(result[2:], result[:2])


def test_rows_of_no_sample_are_nan() -> None:
    q, k, cos, sin = small_case([2, 3], 128, rows=7)
    result, _ = reference.library(q, k, cos, sin, [2, 3])
    assert np.isnan(result[5:]).all()
    assert not np.isnan(result[:5]).any()


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=5),
    st.integers(0, 80),
    st.sampled_from([128, 2**15, 2**18]),
)
def test_pieces_cover_every_row_once(seq_lens: list[int], missing: int, hidden: int) -> None:
    rows = max(1, sum(seq_lens) - missing)
    table_of = {}
    for piece in reference.pieces(seq_lens, rows, hidden):
        for row, table in zip(
            range(piece.row, piece.row_end), range(rows)[piece.table_rows], strict=True
        ):
            assert row not in table_of
            table_of[row] = table
    expected = [table for length in seq_lens for table in range(length)][:rows]
    assert [table_of[row] for row in sorted(table_of)] == expected
    assert sorted(table_of) == list(range(len(expected)))


def test_nan_and_infinity_pass_through() -> None:
    q, k, cos, sin = small_case([3], 128)
    q[0, 0], q[1, 0], q[2, 0] = np.nan, np.inf, 65504
    cos[2, 0], sin[2, HALF] = 2, 2
    result, _ = reference.library(q, k, cos, sin, [3])
    assert np.isnan(result[0, 0])
    assert np.isinf(result[1, 0])
    assert np.isinf(result[2, 0])


# Comparison


def compare(result: list[float], wanted: list[float], **options: float) -> Comparison:
    comparison = Comparison(exact=not options, **options)
    comparison.add("x", 0, np.array([result], np.float16), np.array([wanted], np.float16))
    return comparison


def test_comparison_of_equal_values() -> None:
    values = [1.0, -0.5, np.nan, np.inf, -np.inf, 0.0]
    comparison = compare(values, values)
    assert comparison.as_dict() == {
        "max_abs_error": 0.0, "max_rel_error": 0.0, "mismatches": 0, "bit_exact": True,
    }  # fmt: skip
    assert comparison.compared == 6


def test_exact_comparison_counts_bits() -> None:
    comparison = compare([1.0, 0.0, np.nan, 5.0], [1.0009765625, -0.0, 2.0, np.inf])
    assert (comparison.mismatches, comparison.bit_exact) == (4, False)
    assert comparison.max_abs_error == 0.0009765625
    assert comparison.first_mismatch == ("x", 0, 0)


def test_comparison_within_tolerance() -> None:
    comparison = compare([1.0, 100.0, 100.0, 0.0, np.nan, np.inf], [1.0009765625, 100.0625, 102.0, 0.002, 0.0, np.inf],
                         rtol=1e-3, atol=1e-3)  # fmt: skip
    assert comparison.mismatches == 3
    assert not comparison.bit_exact
    assert comparison.max_abs_error == 2.0
    assert comparison.max_rel_error == 1.0
    assert comparison.first_mismatch == ("x", 0, 2)


def test_relative_error_of_tiny_values_is_bounded() -> None:
    comparison = compare([2.0**-24], [0.0], rtol=1e-3, atol=1e-3)
    assert (comparison.max_rel_error, comparison.mismatches) == (2.0**-10, 0)


def test_comparison_leaves_out_what_was_not_written() -> None:
    comparison = Comparison(exact=True)
    result, wanted = np.array([[1, np.nan, 3]], np.float16), np.array([[1, 2, 4]], np.float16)
    comparison.add("x", 7, result, wanted, np.array([[True, False, False]]))
    assert (comparison.mismatches, comparison.compared, comparison.bit_exact) == (0, 1, True)
    comparison.add("x", 8, result, wanted, np.array([[True, False, True]]))
    assert (comparison.mismatches, comparison.compared, comparison.first_mismatch) == (
        1,
        3,
        ("x", 8, 2),
    )


def test_comparison_with_wide_reference() -> None:
    comparison = Comparison(exact=False, rtol=1e-3, atol=1e-3)
    comparison.add("x", 0, np.array([[1, np.inf]], np.float16), np.array([[1.0001, 1e6]]))
    # 1.0001 rounds to the float16 1, and 1e6 to infinity: the best that float16 can do.
    assert comparison.bit_exact
    assert comparison.mismatches == 1


# Coverage


def test_regions_of_columns_and_rows() -> None:
    # A 6 x 8 tensor of 2-byte elements: columns 5-7 of rows 0-3 and the whole of rows 4-5 lack.
    ranges = [(row * 16 + 10, row * 16 + 16) for row in range(3)] + [(3 * 16 + 10, 6 * 16)]
    assert regions(ranges, 8, 2) == [Region(0, 4, 5, 8), Region(4, 6, 0, 8)]
    assert Region(0, 4, 5, 8).columns_text == "5-7"
    assert Region(4, 5, 0, 8).rows_text == "4"


@given(st.lists(st.booleans(), min_size=1, max_size=120), st.integers(1, 12))
@settings(max_examples=200)
def test_regions_against_single_elements(bits: list[bool], columns: int) -> None:
    written = np.array(bits[: len(bits) // columns * columns], bool).reshape(-1, columns)
    flat = np.concatenate([[True], written.ravel(), [True]]).astype(int)
    starts, ends = np.flatnonzero(np.diff(flat) == -1), np.flatnonzero(np.diff(flat) == 1)
    found = regions(
        [(2 * int(a), 2 * int(b)) for a, b in zip(starts, ends, strict=True)], columns, 2
    )
    mask = written_mask(found, 0, len(written), columns)
    rebuilt = np.ones_like(written) if mask is None else mask
    np.testing.assert_array_equal(rebuilt, written)
    assert sum(region.size for region in found) == np.count_nonzero(~written)


def test_written_mask_of_a_window() -> None:
    missing = [Region(2, 5, 1, 2)]
    assert written_mask(missing, 0, 2, 3) is None
    mask = written_mask(missing, 4, 6, 3)
    assert mask is not None
    assert mask.tolist() == [[True, False, True], [True, True, True]]


# Data


def test_tables_are_the_real_ones() -> None:
    cos, sin = rope_tables(50, 128)
    for row, pair in ((0, 0), (1, 0), (49, 5), (49, 63)):
        angle = row / 10000.0 ** (2 * pair / 128)
        for column in (pair, pair + HALF):
            assert cos[row, column] == np.float16(np.cos(angle))
            assert sin[row, column] == np.float16(np.sin(angle))


def test_default_data_is_reproducible() -> None:
    shape = Shape((3, 2), 256, 4, 6)
    first, second, other = (default_inputs(shape, seed) for seed in (1, 1, 2))
    assert [array.shape for array in first] == [(6, 256), (6, 256), (4, 128), (4, 128)]
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first[0], other[0])
    assert not np.array_equal(first[0], first[1])


def test_normal_data_does_not_depend_on_the_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = normal((100, 33), "float16", np.random.default_rng(0))
    monkeypatch.setattr("ops.data.CHUNK_ELEMENTS", 77)
    pieces = normal((100, 33), "float16", np.random.default_rng(0))
    np.testing.assert_array_equal(whole, pieces)
    assert abs(float(whole.astype(np.float64).std()) - 1) < 0.05


def test_uniform_data() -> None:
    desc = TensorDesc("float16", "nd", (1000,))
    rng = np.random.default_rng(0)
    values = uniform(desc, "-100,100", rng)
    assert -100 <= values.min() < -90
    assert 90 < values.max() <= 100
    for bounds in ("nan", "-inf,inf", "nan,nan"):
        assert np.isnan(uniform(desc, bounds, rng)).all()
    assert set(uniform(TensorDesc("int8", "nd", (100,)), "0,3", rng)) <= {0, 1, 2}
    for bounds in ("low,high", "1", "1,2,3"):
        with pytest.raises(ConfigError, match="no range"):
            uniform(desc, bounds, rng)


def saved(folder: Path, **changes: np.ndarray | None) -> Path:
    arrays = dict(zip(NAMES, default_inputs(Shape((2,), 128, 2, 2), 0), strict=True))
    arrays = {name: array for name, array in (arrays | changes).items() if array is not None}
    np.savez(folder / "in.npz", **arrays)
    return folder / "in.npz"


def test_input_file(tmp_path: Path) -> None:
    arrays = read_inputs(saved(tmp_path))
    expected = default_inputs(Shape((2,), 128, 2, 2), 0)
    for a, b in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"cos": None}, "cos missing"),
        ({"coss": np.zeros(1)}, "did you mean 'cos'"),
        ({"sin": np.zeros((2, 128), np.float32)}, r"sin is float32; it must be float16"),
        ({"sin": np.zeros(128, np.float16)}, r"sin has 1 dims \[128\]; it must have 2"),
        ({"sin": np.zeros((3, 128), np.float16)}, r"sin is \[3, 128\] and cos is \[2, 128\]"),
    ],
)
def test_wrong_input_files(
    tmp_path: Path, changes: dict[str, np.ndarray | None], text: str
) -> None:
    with pytest.raises(ConfigError, match=text):
        read_inputs(saved(tmp_path, **changes))


def test_unreadable_input_files(tmp_path: Path) -> None:
    text = tmp_path / "text.npz"
    text.write_text("no arrays")
    single = tmp_path / "single.npy"
    np.save(single, np.zeros(3))
    for path in (text, single, tmp_path / "absent.npz"):
        with pytest.raises(ConfigError, match=path.name):
            load_npz(path, NAMES)
