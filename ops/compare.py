"""Comparison of results with a reference, piece by piece, so that large tensors need little memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ops.tensor import Array

SMALLEST_NORMAL = {2: 2.0**-14, 4: 2.0**-126}
"""Smallest normal number of float16 and float32: relative errors are not taken of anything smaller."""


@dataclass(slots=True)
class Comparison:
    """What has been compared so far.

    Two elements that are both NaN, or the same infinity, are equal. With `exact`, every element whose bits
    differ from the reference's is a mismatch; otherwise one is where |result - reference| is above
    `atol + rtol * |reference|`, or only one of them is a finite number. Errors are those of finite pairs.
    """

    exact: bool
    rtol: float = 0.0
    atol: float = 0.0
    max_abs_error: float = 0.0
    max_rel_error: float = 0.0
    mismatches: int = 0
    bit_exact: bool = True
    compared: int = 0
    first_mismatch: tuple[str, int, int] | None = None

    def add(
        self,
        name: str,
        first_row: int,
        result: Array,
        reference: Array,
        written: NDArray[np.bool_] | None = None,
    ) -> None:
        """Compare rows of tensor `name` from `first_row` on (2-d); `written` leaves elements out.

        `reference` has the result's type (needed with `exact`) or float64.
        """
        self.compared += result.size if written is None else int(np.count_nonzero(written))
        with np.errstate(over="ignore"):
            rounded = reference.astype(result.dtype, copy=False)
        same = _same_bits(result, rounded)
        if written is not None:
            same |= ~written
        if self.exact and same.all():
            return
        self.bit_exact &= bool(same.all())
        wrong = self._measure(result, reference, written)
        if self.exact:
            wrong = ~same
        count = int(np.count_nonzero(wrong))
        if count and self.first_mismatch is None:
            row, column = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
            self.first_mismatch = (name, first_row + int(row), int(column))
        self.mismatches += count

    def as_dict(self) -> dict[str, Any]:
        """Return the figures for a run's summary."""
        return {
            "max_abs_error": self.max_abs_error,
            "max_rel_error": self.max_rel_error,
            "mismatches": self.mismatches,
            "bit_exact": self.bit_exact,
        }

    def _measure(
        self, result: Array, reference: Array, written: NDArray[np.bool_] | None
    ) -> NDArray[np.bool_]:
        """Take the errors into account and return which elements are out of tolerance."""
        given = result.astype(np.float64)
        wanted = reference.astype(np.float64, copy=False)
        with np.errstate(invalid="ignore"):
            error = np.abs(given - wanted)
        finite = np.isfinite(error)
        size = np.abs(wanted)
        differs = ~finite & ~((given == wanted) | (np.isnan(given) & np.isnan(wanted)))
        if written is not None:
            finite &= written
            differs &= written
        error[~finite] = 0.0
        floor = SMALLEST_NORMAL[result.dtype.itemsize]
        with np.errstate(invalid="ignore"):
            relative = error / np.maximum(size, floor)
            wrong: NDArray[np.bool_] = differs | (error > self.atol + self.rtol * size)
        relative[~finite] = 0.0
        self.max_abs_error = max(self.max_abs_error, float(error.max(initial=0.0)))
        self.max_rel_error = max(self.max_rel_error, float(relative.max(initial=0.0)))
        return wrong


def _same_bits(result: Array, reference: Array) -> NDArray[np.bool_]:
    bits = np.dtype(f"u{result.dtype.itemsize}")
    same: NDArray[np.bool_] = result.view(bits) == reference.view(bits)
    if not same.all():
        same |= np.isnan(result) & np.isnan(reference)
    return same
