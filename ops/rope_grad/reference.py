"""References of `rope_grad`: what the library's kernel computes, and what the true adjoint would be.

Both go through the samples in pieces of rows, so that large tensors need little memory. This module knows no
machine and no tiling.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ops.tensor import Array

if TYPE_CHECKING:
    from collections.abc import Callable

Float16 = NDArray[np.float16]
Float64 = NDArray[np.float64]

PIECE_ELEMENTS = 2**17


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows [row, row_end) of the gradients, which meet the table rows from `table_row` on."""

    row: int
    row_end: int
    table_row: int

    @property
    def rows(self) -> slice:
        """The rows of the gradients."""
        return slice(self.row, self.row_end)

    @property
    def table_rows(self) -> slice:
        """The rows of cos and sin."""
        return slice(self.table_row, self.table_row + self.row_end - self.row)


def pieces(seq_lens: Sequence[int], rows: int, hidden_size: int) -> Iterator[Piece]:
    """Yield the samples in pieces: each sample starts at row 0 of the tables; rows past `rows` are left out."""
    step = max(1, PIECE_ELEMENTS // max(hidden_size, 1))
    start = 0
    for length in seq_lens:
        end = min(start + length, rows)
        for row in range(start, end, step):
            yield Piece(row, min(row + step, end), row - start)
        start += length


def work_rows(cos: Float16, sin: Float16) -> Float16:
    """Return the factor of both gradients, float16, one rounding: cos + [right half of sin, -left half]."""
    half = cos.shape[1] // 2
    with np.errstate(invalid="ignore", over="ignore"):
        return np.concatenate(
            [cos[:, :half] + sin[:, half:], cos[:, half:] + -sin[:, :half]], axis=1
        )


def library_rows(gradient: Float16, work: Float16) -> Float16:
    """Return the library's result of some rows: every head times `work`, float16, one rounding."""
    heads = gradient.reshape(len(gradient), -1, work.shape[1])
    # A product of two float16 is exact in float32, so this rounds once.
    with np.errstate(invalid="ignore", over="ignore"):
        product = heads.astype(np.float32) * work[:, None, :].astype(np.float32)
        return product.astype(np.float16).reshape(gradient.shape)


def adjoint_rows(gradient: Float16, cos: Float16, sin: Float16) -> Float64:
    """Return the adjoint of `x * cos + rotate_half(x) * sin`, rotate_half([a, b]) = [-b, a], in float64."""
    half = cos.shape[1] // 2
    heads = gradient.reshape(len(gradient), -1, cos.shape[1]).astype(np.float64)
    left, right = heads[:, :, :half], heads[:, :, half:]
    c, s = cos[:, None, :].astype(np.float64), sin[:, None, :].astype(np.float64)
    result = np.empty_like(heads)
    with np.errstate(invalid="ignore", over="ignore"):
        result[:, :, :half] = left * c[:, :, :half] + right * s[:, :, half:]
        result[:, :, half:] = right * c[:, :, half:] - left * s[:, :, :half]
    return result.reshape(gradient.shape)


def library(
    q_embedded_grad: Float16,
    k_embedded_grad: Float16,
    cos: Float16,
    sin: Float16,
    seq_lens: Sequence[int],
) -> tuple[Float16, Float16]:
    """Return the whole `q_grad` and `k_grad` of the library, bit for bit; rows of no sample are NaN."""

    def rows(gradient: Float16, cos: Float16, sin: Float16) -> Float16:
        return library_rows(gradient, work_rows(cos, sin))

    return (
        _whole(rows, q_embedded_grad, cos, sin, seq_lens, np.float16),
        _whole(rows, k_embedded_grad, cos, sin, seq_lens, np.float16),
    )


def adjoint(
    q_embedded_grad: Float16,
    k_embedded_grad: Float16,
    cos: Float16,
    sin: Float16,
    seq_lens: Sequence[int],
) -> tuple[Float64, Float64]:
    """Return the whole true adjoint of RoPE in float64; rows of no sample are NaN."""
    return (
        _whole(adjoint_rows, q_embedded_grad, cos, sin, seq_lens, np.float64),
        _whole(adjoint_rows, k_embedded_grad, cos, sin, seq_lens, np.float64),
    )


def _whole(
    rows: Callable[[Float16, Float16, Float16], Array],
    gradient: Float16, cos: Float16, sin: Float16, seq_lens: Sequence[int], dtype: Any,
) -> Array:  # fmt: skip
    result = np.full(gradient.shape, np.nan, dtype)
    for piece in pieces(seq_lens, *gradient.shape):
        result[piece.rows] = rows(
            gradient[piece.rows], cos[piece.table_rows], sin[piece.table_rows]
        )
    return result
