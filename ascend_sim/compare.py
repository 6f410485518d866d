"""Comparison of a kernel's result with a reference, and what its differences look like.

A report says first what makes a comparison senseless (shapes, types, nothing to compare), then how many elements
differ and in what pattern, then what is known to look like that: a factor, a rounding of ties, a step function next
to its step, another order of rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ascend_sim.errors import Finding
from ascend_sim.patterns import Mask, constant_ratio, pattern_of

Array = NDArray[Any]
NEAR_ULP = 4
"""Units in the last place up to which two numbers count as the same for a step function."""
_SHOWN = 4
_BITS = {2: 10, 4: 23, 8: 52}


@dataclass(slots=True)
class Report:
    """What a comparison found: no `findings` where the result is the reference, within the tolerance.

    `compared` and `non_finite` count elements, those of either side that are no finite numbers; `pattern` says where
    the mismatches are; `hints` what they look like.
    """

    name: str
    compared: int = 0
    mismatches: int = 0
    non_finite: int = 0
    max_abs_error: float = 0.0
    max_ulp: float = 0.0
    pattern: str = ""
    hints: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; a remark (INFO) is nothing wrong."""
        return all(finding.kind == "INFO" for finding in self.findings)

    def __str__(self) -> str:
        if not self.findings:
            return f"{self.name}: {self.compared} elements compared, {self.non_finite} of them not finite, all equal"
        return "\n".join(finding.message for finding in self.findings)


def compare(
    result: Any,
    reference: Any,
    *,
    name: str = "result",
    rtol: float = 0.0,
    atol: float = 0.0,
    nan_equal: bool = False,
    unrounded: Any = None,
    argument: tuple[Any, Any] | None = None,
    factors: Mapping[str, float] | None = None,
    models: Mapping[str, Any] | None = None,
) -> Report:
    """Compare a result with a reference of the same shape and type, element by element.

    An element is right where |result - reference| is at most `atol + rtol * |reference|`, or both are the same
    infinity; NaN is right for NaN only with `nan_equal`. What helps to name the differences: `unrounded`, the numbers
    before a rounding; `argument`, what a step function (floor, round, a comparison) was given, as (the kernel's, the
    reference's); `factors`, numbers by name that may be missing or applied twice; `models`, other references by name.

    The findings are NUMERIC (`shape-differs`, `type-differs`, `nothing-compared`, `mismatch`), or INFO
    (`discontinuous`) where all differences are steps next to a step.
    """
    given, wanted = np.asarray(result), np.asarray(reference)
    report = Report(name)
    senseless = _senseless(given, wanted, name)
    if senseless is not None:
        report.findings.append(Finding(*senseless, tensor=name))
        return report
    wrong = _wrong(given, wanted, rtol, atol, nan_equal, report)
    report.mismatches = int(np.count_nonzero(wrong))
    if not report.mismatches:
        return report
    report.pattern = pattern_of(wrong)
    apart = NEAR_ULP + 1.0
    if argument is not None:
        apart = _distance(wrong, *map(np.asarray, argument))
    if apart <= NEAR_ULP:
        text = (
            f"{name}: {report.mismatches} of {report.compared} elements differ, and each comes from a number within "
            f"{apart:.0f} ulp of the reference's: a discontinuous operation next to its step. Compare what it was "
            f"given, not what it made of it"
        )
        report.findings.append(Finding("INFO", "discontinuous", text, tensor=name))
        return report
    report.hints = [
        *_factor_hints(given, wanted, factors or {}),
        *_tie_hints(given, wanted, wrong, unrounded),
        *_model_hints(given, models or {}),
    ]
    report.findings.append(
        Finding("NUMERIC", "mismatch", _text(report, given, wanted, wrong), tensor=name)
    )
    return report


def _senseless(given: Array, wanted: Array, name: str) -> tuple[str, str, str] | None:
    """Return kind, code and message where there is no use in comparing elements."""
    if given.shape != wanted.shape:
        hint = (
            ". The elements are as many: the host gave the output another shape"
            if given.size == wanted.size
            else ""
        )
        return (
            "NUMERIC",
            "shape-differs",
            f"{name}: shape {list(given.shape)} vs {list(wanted.shape)}{hint}",
        )
    if wanted.dtype not in (given.dtype, np.float64):
        return (
            "NUMERIC",
            "type-differs",
            f"{name}: dtype {given.dtype} vs {wanted.dtype}. Give the output the reference's type, or the reference "
            f"as float64 with a tolerance",
        )
    if given.size == 0:
        return (
            "NUMERIC",
            "nothing-compared",
            f"{name}: no element was compared: the tensors are empty",
        )
    return None


def _wrong(
    given: Array, wanted: Array, rtol: float, atol: float, nan_equal: bool, report: Report
) -> Mask:
    """Return which elements are wrong, and note the counts and the largest errors."""
    report.compared = given.size
    left, right = given.astype(np.float64), wanted.astype(np.float64)
    finite = np.isfinite(left) & np.isfinite(right)
    report.non_finite = int(np.count_nonzero(~finite))
    with np.errstate(invalid="ignore"):
        error = np.abs(left - right)
        wrong: Mask = np.where(finite, error > atol + rtol * np.abs(right), left != right)
    if nan_equal:
        wrong &= ~(np.isnan(left) & np.isnan(right))
    error[~finite] = 0.0
    report.max_abs_error = float(error.max())
    if given.dtype.kind not in "iub":
        report.max_ulp = float((error / _spacing(right, given.dtype.itemsize, finite)).max())
    return wrong


def _spacing(values: Array, size: int, finite: Mask) -> Array:
    """Return the distance of neighbouring numbers of a floating type of `size` bytes near some values."""
    exponents = np.frexp(np.where(finite, values, 1.0))[1] - 1
    spacing: Array = np.ldexp(1.0, np.maximum(exponents - _BITS.get(size, 23), -1074))
    return spacing


def _distance(wrong: Mask, given: Array, wanted: Array) -> float:
    """Return how many ulp what the wrong elements were made of is apart at most; infinity beside NaN and infinities."""
    left, right = given.astype(np.float64), wanted.astype(np.float64)
    finite = np.isfinite(left) & np.isfinite(right)
    with np.errstate(invalid="ignore"):
        apart = np.abs(left - right) / _spacing(right, given.dtype.itemsize, finite)
    return float(np.where(finite, apart, np.inf)[wrong].max())


def _factor_hints(given: Array, wanted: Array, factors: Mapping[str, float]) -> list[str]:
    ratio = constant_ratio(given.astype(np.float64), wanted.astype(np.float64))
    if ratio is None or abs(ratio - 1) < 1e-3:
        return []
    hints = [
        f"every element is {ratio:.4g} of the reference: a factor is missing, or there is one too many"
    ]
    for name, value in factors.items():
        if abs(ratio - value) <= 1e-3 * abs(value):
            hints.append(f"that is {name} ({value:.4g}), applied once more than in the reference")
        elif abs(ratio * value - 1) <= 1e-3:
            hints.append(f"that is 1 / {name} ({value:.4g}), which the result lacks")
    return hints


def _tie_hints(given: Array, wanted: Array, wrong: Mask, unrounded: Any) -> list[str]:
    """Say that all differences are halves that the two sides round apart."""
    if unrounded is None:
        return []
    exact = np.asarray(unrounded, np.float64)
    left, right = given.astype(np.float64), wanted.astype(np.float64)
    halves = (left + right == 2 * exact)[wrong]
    if not halves.all():
        return []
    away = np.abs(left) > np.abs(exact)
    result = "half away from zero" if away[wrong].all() else "some other way"
    return [
        f"all of them ties, numbers halfway between two results: the result rounds {result}, the reference rounds ties "
        f"to even (CAST_RINT)"
    ]


def _model_hints(given: Array, models: Mapping[str, Any]) -> list[str]:
    """Say which of some models the result is equal to, and which it is not."""
    same = [name for name, values in models.items() if np.array_equal(given, np.asarray(values))]
    others = [name for name in models if name not in same]
    if not models:
        return []
    names = " or ".join(f"'{one}'" for one in others)
    told = f"equal to the model '{same[0]}'" if same else "equal to none of the models"
    return [f"the result is {told}" + (f", not to {names}" if others else "")]


def _text(report: Report, given: Array, wanted: Array, wrong: Mask) -> str:
    places = np.argwhere(wrong)[:_SHOWN]
    shown = "; ".join(
        f"element {_index(place)}: reference {_number(wanted[tuple(place)])}, result {_number(given[tuple(place)])}"
        for place in places
    )
    ulp = f" ({report.max_ulp:.3g} ulp)" if report.max_ulp else ""
    lines = [
        f"{report.name}: {report.mismatches} of {report.compared} elements differ, {report.pattern}; largest error "
        f"{report.max_abs_error:.6g}{ulp}, {report.non_finite} not finite",
        f"  {shown}",
        *(f"  {hint}" for hint in report.hints),
    ]
    return "\n".join(lines)


def _index(place: Array) -> str:
    return str(int(place[0])) if len(place) == 1 else f"[{', '.join(str(int(i)) for i in place)}]"


def _number(value: Any) -> str:
    number = float(value)
    return "NaN" if np.isnan(number) else f"{number:.8g}"
