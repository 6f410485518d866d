"""The results against both references: the library's own pass rule, and the kernel's order of rounding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ops.laser_attention_grad import reference
from ops.laser_attention_grad.problem import Problem
from ops.tensor import Array

RULE = 2.0**-7
"""The library's rule: every element within this, times max(1, |golden|). NaN and infinities count as 0."""

ULPS = 2
TERMS = 2.0**-20
"""Where the order of additions is not the kernel's: within 2 bfloat16 steps, or this times the terms' magnitudes."""

FLIPS = 2.0**-7, 1e-3
"""What other roundings of P and dS explain: sums of S that differ in their last bit turn a few of them to the next
bfloat16. Up to this times the terms' magnitudes, in up to this share of the elements."""

SMALLEST = 2.0**-126

OUTPUTS = ("query_grad", "key_grad", "value_grad")


@dataclass(slots=True)
class Distance:
    """How far results are from a reference. `first` is the first mismatch: tensor and index by heads."""

    reference: str
    max_abs_error: float = 0.0
    max_rel_error: float = 0.0
    mismatches: int = 0
    bit_exact: bool = True
    compared: int = 0
    first: tuple[str, tuple[int, ...]] | None = None
    unexplained: int = 0

    @property
    def is_wrong(self) -> bool:
        """Whether the mismatches are more than flips of single roundings."""
        return self.unexplained > 0 or self.mismatches > FLIPS[1] * self.compared

    def add(self, name: str, error: Array, wanted: Array, wrong: NDArray[np.bool_]) -> None:
        """Take a tensor's errors, what was wanted, and which elements are mismatches."""
        self.compared += error.size
        self.bit_exact &= not error.any()
        self.max_abs_error = max(self.max_abs_error, float(error.max(initial=0.0)))
        relative = error / np.maximum(np.abs(wanted), SMALLEST)
        self.max_rel_error = max(self.max_rel_error, float(relative.max(initial=0.0)))
        count = int(np.count_nonzero(wrong))
        if count and self.first is None:
            index = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
            self.first = (name, tuple(int(i) for i in index))
        self.mismatches += count

    def figures(self) -> dict[str, Any]:
        """Return the figures for a run's summary."""
        return {
            "reference": self.reference,
            "max_abs_error": self.max_abs_error,
            "max_rel_error": self.max_rel_error,
            "mismatches": self.mismatches,
            "bit_exact": self.bit_exact,
            "compared": self.compared,
        }


def to_library(problem: Problem, results: list[Array]) -> Distance:
    """Return the distance of bfloat16 results, by heads, to the library's golden ones, by its own rule."""
    distance = Distance("library")
    for name, result, golden in zip(
        OUTPUTS, results, reference.library(problem).arrays(), strict=True
    ):
        given, wanted = _finite(result.astype(np.float32)), _finite(golden)
        error = np.abs(given - wanted)
        distance.add(name, error, wanted, error > RULE * np.maximum(1, np.abs(wanted)))
    return distance


def to_kernel_order(
    problem: Problem, results: list[Array], *, exact: bool, one_core: bool
) -> Distance:
    """Return the distance to what the kernel computes.

    With `exact` numerics on one core bit for bit, on more up to the order of atomic additions; else up to that of all.
    """
    distance = Distance("kernel-order")
    expected = reference.kernel_order(problem, exact=exact).arrays()
    terms: tuple[Array, ...] | None = None
    bitwise = exact and one_core
    for position, (name, result, wanted) in enumerate(zip(OUTPUTS, results, expected, strict=True)):
        steps = np.abs(_ordered(result) - _ordered(wanted))
        wide = wanted.astype(np.float32)
        error = np.abs(_finite(result.astype(np.float32)) - _finite(wide))
        wrong = steps > (0 if bitwise else ULPS)
        if wrong.any() and not bitwise:
            if terms is None:
                terms = reference.magnitudes(problem).arrays()
            wrong &= ~(error <= TERMS * terms[position])
            far = wrong & ~(error <= FLIPS[0] * terms[position])
            distance.unexplained += int(np.count_nonzero(far))
        elif bitwise:
            distance.unexplained += int(np.count_nonzero(wrong))
        distance.add(name, error, wide, wrong)
    return distance


def _finite(values: Array) -> Array:
    return np.nan_to_num(values, copy=False, nan=0.0, posinf=0.0, neginf=0.0)


def _ordered(values: Array) -> NDArray[np.int32]:
    """Return bfloat16 values as integers of the same order, one apart where the values are neighbours."""
    bits = np.ascontiguousarray(values).view(np.uint16).astype(np.int32)
    return np.where(bits & 0x8000, 0x8000 - bits, bits)
