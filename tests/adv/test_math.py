"""The element-wise functions of asc.adv against float64, over their documented ranges, in both types and any rounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_sim import asc
from ascend_sim.errors import KernelError
from tests.adv.vectors import apply, run

adv = asc.adv


def _each(function: Callable[[float], float]) -> Callable[[Any], Any]:
    return lambda values: np.array([function(float(value)) for value in values])


def _digamma(x: float) -> float:
    """Derivative of math.lgamma by differences of fourth order: good to 1e-8."""
    h = 1e-3
    near, far = (
        math.lgamma(x + h) - math.lgamma(x - h),
        math.lgamma(x + 2 * h) - math.lgamma(x - 2 * h),
    )
    return (8 * near - far) / (12 * h)


RELATIVE, ABSOLUTE, MIXED = "relative", "absolute", "mixed"
"""What an error is compared with: the result, 1, or the larger of both."""

CASES = [
    ("exp", partial(adv.exp, taylor_expand_level=0), np.exp, -80, 80, RELATIVE, 3e-7),
    ("exp_series", partial(adv.exp, taylor_expand_level=10), np.exp, -20, 20, RELATIVE, 2e-6),
    ("log", adv.log, np.log, 1e-3, 1e3, MIXED, 1e-6),
    ("sinh", adv.sinh, np.sinh, -10, 10, RELATIVE, 1e-6),
    ("sinh_near", adv.sinh, np.sinh, -1e-2, 1e-2, RELATIVE, 1e-6),
    ("cosh", adv.cosh, np.cosh, -10, 10, RELATIVE, 1e-6),
    ("tanh", adv.tanh, np.tanh, -12, 12, RELATIVE, 3e-7),
    ("tanh_near", adv.tanh, np.tanh, -1e-3, 1e-3, RELATIVE, 3e-7),
    ("asinh", adv.asinh, np.arcsinh, -1e3, 1e3, RELATIVE, 1e-6),
    ("asinh_near", adv.asinh, np.arcsinh, -1e-2, 1e-2, RELATIVE, 1e-6),
    ("acosh", adv.acosh, np.arccosh, 1.001, 50, RELATIVE, 1e-6),
    ("atanh", adv.atanh, np.arctanh, -0.999, 0.999, RELATIVE, 1e-6),
    ("atanh_near", adv.atanh, np.arctanh, -1e-3, 1e-3, RELATIVE, 1e-6),
    ("sin", adv.sin, np.sin, -10, 10, ABSOLUTE, 3e-7),
    ("sin_far", adv.sin, np.sin, -65504, 65504, ABSOLUTE, 3e-7),
    ("cos", adv.cos, np.cos, -10, 10, ABSOLUTE, 3e-7),
    ("cos_far", adv.cos, np.cos, -65504, 65504, ABSOLUTE, 1e-6),
    ("tan", adv.tan, np.tan, -1.5, 1.5, RELATIVE, 2e-6),
    ("asin", adv.asin, np.arcsin, -1, 1, RELATIVE, 1e-6),
    ("acos", adv.acos, np.arccos, -1, 0.999, RELATIVE, 1e-6),
    ("atan", adv.atan, np.arctan, -50, 50, RELATIVE, 1e-6),
    ("atan_near", adv.atan, np.arctan, -1, 1, RELATIVE, 1e-6),
    ("erf", adv.erf, _each(math.erf), -5, 5, RELATIVE, 4e-7),
    ("erfc", adv.erfc, _each(math.erfc), 0, 9, RELATIVE, 1e-6),
    ("erfc_below", adv.erfc, _each(math.erfc), -5, 0, ABSOLUTE, 4e-7),
    ("lgamma", adv.lgamma, _each(math.lgamma), 0.01, 30, MIXED, 4e-6),
    ("lgamma_far", adv.lgamma, _each(math.lgamma), 30, 1e5, MIXED, 4e-6),
    ("lgamma_below", adv.lgamma, _each(math.lgamma), -9.9, -9.1, MIXED, 4e-6),
    ("digamma", adv.digamma, _each(_digamma), 0.1, 30, MIXED, 2e-6),
    ("digamma_below", adv.digamma, _each(_digamma), -9.9, -9.1, MIXED, 2e-6),
]
EXACT = [
    ("ceil", adv.ceil, np.ceil),
    ("floor", adv.floor, np.floor),
    ("round", adv.round, np.rint),
    ("trunc", adv.trunc, np.trunc),
    ("frac", adv.frac, lambda x: x - np.trunc(x)),
    ("sign", adv.sign, np.sign),
]


def _error(result: Any, expected: Any, compared: str) -> float:
    difference = np.abs(result.astype(np.float64) - expected)
    size = np.abs(expected)
    against = {RELATIVE: size, ABSOLUTE: np.ones_like(size), MIXED: np.maximum(size, 1)}[compared]
    return float(np.max(difference / np.maximum(against, 1e-30)))


@pytest.mark.parametrize(("function", "reference", "low", "high", "compared", "bound"),
                         [case[1:] for case in CASES], ids=[case[0] for case in CASES])  # fmt: skip
def test_float32_is_as_accurate_as_documented(
    function: Any, reference: Any, low: float, high: float, compared: str, bound: float
) -> None:
    x = np.linspace(low, high, 1504).astype(np.float32)
    assert _error(apply(function, x), reference(x.astype(np.float64)), compared) <= bound


@pytest.mark.parametrize(("function", "reference", "low", "high", "compared"),
                         [case[1:6] for case in CASES], ids=[case[0] for case in CASES])  # fmt: skip
def test_float16_is_the_rounded_result(
    function: Any, reference: Any, low: float, high: float, compared: str
) -> None:
    """Computed in float32 and rounded once: at most one in the last place away from the rounded true value."""
    low, high = max(low, -65504 if function is not adv.exp else -8), min(high, 60000)
    if function in (adv.sinh, adv.cosh) or getattr(function, "func", None) is adv.exp:
        low, high = -8, 8
    x = np.linspace(low, high, 512).astype(np.float16)
    with np.errstate(all="ignore"):
        expected = reference(x.astype(np.float64))
    result = apply(function, x).astype(np.float64)
    usual = np.isfinite(expected) & (np.abs(expected) < 65000)
    expected = np.where(usual, expected, 0)
    step = np.maximum(np.spacing(np.abs(expected).astype(np.float16)).astype(np.float64), 2.0**-24)
    assert np.max((np.abs(result - expected) / step)[usual]) <= 1.01
    assert usual.sum() > 50


@pytest.mark.parametrize(
    ("function", "reference"), [case[1:] for case in EXACT], ids=[case[0] for case in EXACT]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_rounding_and_signs_are_exact(function: Any, reference: Any, dtype: Any) -> None:
    special = [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 1e-7, -1e-7, 6e-8, 1000.25, -1000.75]
    if dtype is np.float32:
        special += [1e-45, -1e-45, 3e38, -3e38]
    x = np.resize(np.concatenate([np.linspace(-20, 20, 500), special]), 512).astype(dtype)
    assert np.array_equal(apply(function, x), reference(x))


def test_power_of_signs_and_zero() -> None:
    bases, exponents = np.meshgrid(
        np.array([-3.5, -2, -1, -0.5, 0, 0.5, 1, 2, 10], np.float32),
        np.array([-4, -3, -1, -0.5, 0, 0.5, 1, 2, 3, 8], np.float32),
    )
    x, y = np.resize(bases, 96), np.resize(exponents, 96)
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), y.astype(np.float64))
    result = apply(adv.power, x, y)
    assert np.array_equal(np.isnan(result), np.isnan(expected))
    assert np.array_equal(np.isinf(result), np.isinf(expected))
    usual = np.isfinite(expected)
    assert np.allclose(result[usual], expected[usual], rtol=1e-5, atol=0)


def test_power_over_its_range() -> None:
    random = np.random.default_rng(3)
    x = random.uniform(0.01, 20, 1024).astype(np.float32)
    y = random.uniform(-15, 15, 1024).astype(np.float32)
    assert np.allclose(apply(adv.power, x, y), np.power(x.astype(np.float64), y), rtol=1e-5, atol=0)


@pytest.mark.parametrize("dtype", [np.int16, np.uint16])
def test_xor(dtype: Any) -> None:
    random = np.random.default_rng(4)
    a, b = random.integers(0, 1 << 16, (2, 800)).astype(np.uint16).view(dtype)
    assert np.array_equal(apply(adv.xor, a, b), a ^ b)
    assert np.array_equal(apply(adv.xor, a, b, temporary=512), a ^ b)


@pytest.mark.parametrize(("kind", "source"), [("f4", "f4"), ("f2", "f2"), ("f4", "f2")])
def test_axpy_adds_a_rounded_product(kind: str, source: str) -> None:
    random = np.random.default_rng(5)
    x, y = random.normal(size=320).astype(source), random.normal(size=320).astype(kind)
    both = y.copy()

    def call(dst: Any, _: Any, src: Any, start: Any) -> None:
        asc.muls(dst, start, 1.0, 320)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        adv.axpy(dst, src, 1.5, 320)

    out = np.zeros_like(y)
    spare = np.zeros(16, np.float32)
    run(lambda dst, src, start: call(dst, spare, src, start), [out], [x, both])
    wide = x.astype(kind)
    assert np.array_equal(out, y + (wide * np.array(1.5, kind)))


@given(count=st.integers(1, 700), temporary=st.sampled_from([None, 3000, 5000, 20000]))
@settings(max_examples=25, deadline=None)
def test_any_count_in_any_rounds(count: int, temporary: int | None) -> None:
    """Elements behind the count stay as they are, and the rounds leave no trace in the result."""
    x = np.linspace(-4, 4, 704).astype(np.float32)
    result = apply(adv.tanh, x, count=count, temporary=temporary)
    assert _error(result[:count], np.tanh(x[:count].astype(np.float64)), RELATIVE) <= 3e-7
    assert not result[count:].any()


def test_a_temporary_that_is_too_small_is_told() -> None:
    x = np.zeros(64, np.float32)
    with pytest.raises(
        KernelError, match=r"tan: temp_buffer \S+ has 256 bytes, \d+ are needed at least"
    ):
        apply(adv.tan, x, temporary=256)


def test_operands_that_overlap_are_told() -> None:
    x = np.zeros(64, np.float32)
    with pytest.raises(KernelError, match="sin: dst buffer overlaps its source"):
        run(lambda dst, src: adv.sin(src, src, 64), [x.copy()], [x])


def test_types_are_told() -> None:
    x = np.zeros(64, np.int32)
    with pytest.raises(
        KernelError, match=r"cos: dst .* is int32; all operands have one type of float16, float32"
    ):
        apply(adv.cos, x)
