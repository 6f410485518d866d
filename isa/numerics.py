"""Numbers as the storage types hold them: one rounding an instruction, nearest even.

float16 sums, differences, products, quotients and square roots are correctly rounded by numpy itself; large arrays go
through float32, which gives the same bits sooner. Transcendental functions go through float64 and round once: numpy's
own float16 versions depend on the host's processor in the last bit. bfloat16 has no arithmetic on the 910B. Integer
sums and products wrap around.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from isa import half
from isa.half import has_fast_conversions, widen
from isa.types import DType, RoundMode, bfloat16, float16, float32

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array = Any

MANY = 2500
"""From about so many elements on, table look-ups are faster than numpy's own float16."""
_SOME = 400 if has_fast_conversions() else MANY
"""From about so many elements on, float32 between two conversions is faster than numpy's own float16."""

_HALVES = np.arange(65536, dtype=np.uint16).view(np.float16)


def is_number(value: object) -> bool:
    """Return whether a value is a real number: a Python or numpy integer or float, a bfloat16, no bool."""
    return not isinstance(value, bool) and (
        isinstance(value, (int, float, np.integer, np.floating))
        or type(value) is bfloat16.numpy.type
    )


def round_scalar(value: float, dtype: DType) -> Any:
    """Return a float64 rounded once, nearest even, to a floating type; overflow gives infinity."""
    with np.errstate(all="ignore"):
        if dtype is not bfloat16:
            return np.array(value).astype(dtype.numpy)[()]
        wide = np.float32(value)  # ml_dtypes goes through float32 too, but rounds to nearest there
        if math.isfinite(value) and float(wide) != value and wide.view(np.uint32) % 2 == 0:
            wide = np.nextafter(wide, np.float32(math.copysign(np.inf, value - float(wide))))
        return np.array(wide).astype(dtype.numpy)[()]


def once_rounded(function: Callable[..., Array], *values: Array) -> Array:
    """Return a sum, difference, product, quotient or root in the operands' type, rounded once.

    float32's 24 bits are enough for float16's 11 that rounding twice gives what rounding once does.
    """
    if values[0].dtype != np.float16 or values[0].size < _SOME:
        return function(*values)
    wide = function(*[widen(value) for value in values])
    if np.isnan(wide.max()):
        return function(*values)  # which of two NaN stays is numpy's choice
    return half.narrow(wide, float16)


def through_float64(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return `function` computed in float64 and rounded once to the operand's type."""
    return by_table(lambda values: function(values.astype(np.float64)).astype(values.dtype))


def by_table(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return `function` of one operand; large float16 arrays look its results up in a table of all of them."""

    @cache
    def table() -> Array:
        with np.errstate(all="ignore"):
            return function(_HALVES)

    def looked_up(values: Array) -> Array:
        if values.dtype != np.float16 or values.size < MANY:
            return function(values)
        return np.take(table(), values.view(np.uint16), mode="clip")

    return looked_up


def maximum(a: Array, b: Array) -> Array:
    """Return the larger of two arrays, numpy's `maximum` bit for bit (NaN wins, first operand on ties)."""
    if a.dtype != np.float16 or a.size < MANY:
        return np.maximum(a, b)
    return _extreme(np.maximum, a, b, first=0x8000, second=0)


def minimum(a: Array, b: Array) -> Array:
    """Return the smaller of two arrays, numpy's `minimum` bit for bit (NaN wins, first operand on ties)."""
    if a.dtype != np.float16 or a.size < MANY:
        return np.minimum(a, b)
    return _extreme(np.minimum, a, b, first=0, second=0x8000)


def _extreme(function: Any, a: Array, b: Array, *, first: int, second: int) -> Array:
    """Compare float16 as integers; `first`, `second`: the zeros of which that would take the second operand."""
    bits_a, bits_b = a.view(np.uint16), b.view(np.uint16)
    magnitude = np.uint16(0x7FFF)
    if np.any((bits_a & magnitude) > 0x7C00) or np.any((bits_b & magnitude) > 0x7C00):
        return function(a, b)
    result = _ordered(function(_ordered(bits_a.view(np.int16)), _ordered(bits_b.view(np.int16))))
    zeros = (bits_a == first) & (bits_b == second)
    if zeros.any():
        result[zeros] = np.uint16(first).view(np.int16)
    return result.view(np.float16)


def _ordered(bits: NDArray[np.int16]) -> NDArray[np.int16]:
    """Map float16 bits to integers of the same order, and back."""
    flip = bits >> np.int16(15)
    flip &= np.int16(0x7FFF)
    flip ^= bits
    return flip


def relu(values: Array) -> Array:
    """Return max(values, 0): -0 becomes +0, NaN stays NaN."""
    if values.dtype != np.float16:
        return np.maximum(values, 0) + values.dtype.type(0)
    bits = values.view(np.uint16)
    positive = np.maximum(bits.view(np.int16), 0).view(np.uint16)  # the sign bit makes it negative
    nan = bits > 0xFC00
    if nan.any():
        positive = np.where(nan, bits, positive)
    return positive.view(np.float16)


def fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """Return a · b + c in c's type (float16 or float32), rounded once.

    The product of two such values is exact in float64. With float16 throughout, the sum is as good as exact there:
    where it needs more than 53 bits, the product is far too small to matter. With float32 the sum is rounded
    to odd, so that the final rounding is the only one that shows.
    """
    product = widen(a).astype(np.float64) * widen(b).astype(np.float64)
    addend = widen(c).astype(np.float64)
    total = product + addend
    if c.dtype == np.float16:
        return total.astype(np.float16)
    rest = total - product
    error = (product - (total - rest)) + (addend - rest)
    inexact = (error != 0) & np.isfinite(total) & ((total.view(np.int64) & 1) == 0)
    if np.any(inexact):
        toward = np.where(error > 0, np.inf, -np.inf)
        total = np.where(inexact, np.nextafter(total, toward), total)
    return total.astype(c.dtype)


def round_to_integral(values: NDArray[np.float64], mode: RoundMode) -> NDArray[np.float64]:
    """Round to whole numbers. NONE and RINT: nearest, ties to even; ROUND: ties away from zero."""
    if mode in (RoundMode.CAST_NONE, RoundMode.CAST_RINT):
        return np.rint(values)
    if mode is RoundMode.CAST_FLOOR:
        return np.floor(values)
    if mode is RoundMode.CAST_CEIL:
        return np.ceil(values)
    if mode is RoundMode.CAST_TRUNC:
        return np.trunc(values)
    truncated = np.trunc(values)  # ROUND: the fraction is exact, so the comparison is too
    away = np.abs(values - truncated) >= 0.5
    return np.where(away, truncated + np.copysign(1.0, values), truncated)


def _narrow_toward_zero(values: NDArray[np.float64], dtype: DType) -> Array:
    """Return the 16-bit value nearest to zero's side of each float64; infinities and NaN stay."""
    nearest = (
        values.astype(np.float32).astype(dtype.numpy)
        if dtype is bfloat16
        else values.astype(dtype.numpy)
    )
    wide = nearest.astype(np.float64)
    too_far = np.abs(wide) > np.abs(values)
    bits = nearest.view(np.uint16)
    return np.where(too_far, bits - np.uint16(1), bits).astype(np.uint16).view(dtype.numpy)


def narrow(values: Array, dtype: DType, mode: RoundMode) -> Array:
    """Round float32 values to float16 or bfloat16 in the given mode; overflow gives infinity.

    NONE and RINT are nearest even. ODD truncates and sets the last bit where that was inexact.
    """
    if mode in (RoundMode.CAST_NONE, RoundMode.CAST_RINT):
        return half.narrow(values, dtype)
    exact = values.astype(np.float64)
    truncated = _narrow_toward_zero(exact, dtype)
    bits = truncated.view(np.uint16)
    inexact = np.isfinite(exact) & (truncated.astype(np.float64) != exact)
    negative = np.signbit(exact)
    if mode is RoundMode.CAST_TRUNC:
        step = np.zeros_like(inexact)
    elif mode is RoundMode.CAST_FLOOR:
        step = inexact & negative
    elif mode is RoundMode.CAST_CEIL:
        step = inexact & ~negative
    elif mode is RoundMode.CAST_ODD:
        return np.where(inexact, bits | np.uint16(1), bits).astype(np.uint16).view(dtype.numpy)
    else:  # ROUND: to the nearer neighbour, ties away from zero
        step = inexact & (np.abs(exact) >= _midpoint(bits, dtype))
    return np.where(step, bits + np.uint16(1), bits).astype(np.uint16).view(dtype.numpy)


def _midpoint(bits: NDArray[np.uint16], dtype: DType) -> NDArray[np.float64]:
    """Return the magnitude half way between each value and the next one away from zero."""
    magnitude = bits & np.uint16(0x7FFF)
    low = magnitude.view(dtype.numpy).astype(np.float64)
    high = (magnitude + np.uint16(1)).view(dtype.numpy).astype(np.float64)
    top = 65536.0 if dtype is float16 else 2.0**128  # past the largest finite value
    return (low + np.where(np.isinf(high), top, high)) / 2


def to_integer(values: Array, dtype: DType, mode: RoundMode) -> Array:
    """Round to a whole number in the given mode and saturate to an integer type; NaN gives 0."""
    limits = np.iinfo(dtype.numpy)
    if values.dtype.kind in "iu":
        own = np.iinfo(values.dtype)
        low, high = max(limits.min, own.min), min(limits.max, own.max)
        return np.clip(values, low, high).astype(dtype.numpy)
    exact = values.astype(np.float64)
    rounded = round_to_integral(np.where(np.isnan(exact), 0.0, exact), mode)
    last = np.nextafter(float(limits.max), 0.0) if dtype.size == 8 else float(limits.max)
    result = np.clip(rounded, float(limits.min), last).astype(dtype.numpy)
    if dtype.size == 8:  # its largest value has no exact float64
        result[rounded > last] = limits.max
    return result


def cast(values: Array, target: DType, mode: RoundMode) -> Array:
    """Convert to another type as the vector unit does: integers saturate, 16-bit floats keep infinities.

    Integer to float32 and float16 rounds in the given mode; float32 to float32 rounds to whole numbers.
    """
    source = values.dtype
    if not target.is_float():
        return to_integer(values if source.kind in "iu" else widen(values), target, mode)
    if source.kind in "iu":
        return _integer_to_float(values, target, mode)
    if target is float32:
        if source == np.float32:
            return round_to_integral(values.astype(np.float64), mode).astype(np.float32)
        wide = widen(values)
        return values.astype(np.float32) if wide.size and np.isnan(wide.max()) else wide
    return narrow(widen(values), target, mode)


def _integer_to_float(values: Array, target: DType, mode: RoundMode) -> Array:
    if target is float16:
        return narrow(
            values.astype(np.float32), target, mode
        )  # only 8- and 16-bit sources: exact in float32
    if values.dtype.itemsize <= 2 or mode in (RoundMode.CAST_NONE, RoundMode.CAST_RINT):
        return values.astype(np.float32)
    return _directed_float32(values.astype(np.int64), mode)


def _directed_float32(values: NDArray[np.int64], mode: RoundMode) -> NDArray[np.float32]:
    """Round whole numbers to 24 significant bits in a directed mode, in integer arithmetic."""
    negative = values < 0
    magnitude = np.where(negative, -values.astype(np.uint64), values.astype(np.uint64))
    length = np.frexp(magnitude.astype(np.float64))[1].astype(np.int64)
    length -= (length > 0) & (magnitude >> np.maximum(length - 1, 0).astype(np.uint64) == 0)
    shift = np.maximum(length - 24, 0).astype(np.uint64)
    kept = magnitude >> shift
    rest = magnitude - (kept << shift)
    if mode is RoundMode.CAST_FLOOR:
        up = negative & (rest > 0)
    elif mode is RoundMode.CAST_CEIL:
        up = ~negative & (rest > 0)
    elif mode is RoundMode.CAST_ROUND:
        up = (rest > 0) & (rest >= (np.uint64(1) << shift) >> np.uint64(1))
    else:
        up = np.zeros_like(negative)
    rounded = np.ldexp((kept + up).astype(np.float64), shift.astype(np.int64))
    signed: NDArray[np.float64] = np.where(negative, -rounded, rounded)
    return signed.astype(np.float32)
