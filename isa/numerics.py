"""Numbers as the storage types hold them: one rounding an instruction, nearest even.

float16 sums, differences, products, quotients and square roots are correctly rounded by numpy itself, so
they are used as they are. Transcendental functions go through float64 and round once: numpy's own float16
versions depend on the host's processor in the last bit. bfloat16 has no arithmetic on the 910B.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isa.types import DType, RoundMode, bfloat16, float16, float32

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array = Any

_WIDE16: NDArray[np.float32] = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
"""float32 value of every float16 bit pattern: the table look-up is faster than numpy's cast."""


def widen(values: Array) -> Array:
    """Return float16 or bfloat16 values as float32, exactly; other types unchanged."""
    if values.dtype == np.float16:
        return np.take(_WIDE16, values.view(np.uint16), mode="clip")
    if values.dtype == bfloat16.numpy:
        return values.astype(np.float32)
    return values


def through_float64(function: Any) -> Any:
    """Return `function` computed in float64 and rounded once to the operand's type."""

    def rounded(values: Array) -> Array:
        return function(values.astype(np.float64)).astype(values.dtype)

    return rounded


def maximum(a: Array, b: Array) -> Array:
    """Return the larger of two arrays, numpy's `maximum` bit for bit (NaN wins, first operand on ties)."""
    if a.dtype != np.float16:
        return np.maximum(a, b)
    wide = widen(a)
    return np.where((wide >= widen(b)) | (wide != wide), a.view(np.uint16), b.view(np.uint16)).view(np.float16)


def minimum(a: Array, b: Array) -> Array:
    """Return the smaller of two arrays, numpy's `minimum` bit for bit (NaN wins, first operand on ties)."""
    if a.dtype != np.float16:
        return np.minimum(a, b)
    wide = widen(a)
    return np.where((wide <= widen(b)) | (wide != wide), a.view(np.uint16), b.view(np.uint16)).view(np.float16)


def fused_multiply_add(a: Array, b: Array, c: Array, dtype: DType) -> Array:
    """Return a · b + c rounded once to `dtype` (float16 or float32).

    The product of two such values is exact in float64. The sum is rounded to odd there, so that the final rounding
    is the only one that shows.
    """
    product = a.astype(np.float64) * b.astype(np.float64)
    addend = c.astype(np.float64)
    total = product + addend
    rest = total - product
    error = (product - (total - rest)) + (addend - rest)
    bits = total.view(np.int64) if total.ndim else np.array(total).view(np.int64)
    inexact = (error != 0) & np.isfinite(total) & ((bits & 1) == 0)
    if np.any(inexact):
        toward = np.where(error > 0, np.inf, -np.inf)
        total = np.where(inexact, np.nextafter(total, toward), total)
    return total.astype(dtype.numpy)


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
    nearest = values.astype(np.float32).astype(dtype.numpy) if dtype is bfloat16 else values.astype(dtype.numpy)
    wide = nearest.astype(np.float64)
    too_far = np.abs(wide) > np.abs(values)
    bits = nearest.view(np.uint16)
    return np.where(too_far, bits - np.uint16(1), bits).astype(np.uint16).view(dtype.numpy)


def narrow(values: Array, dtype: DType, mode: RoundMode) -> Array:
    """Round float32 values to float16 or bfloat16 in the given mode; overflow gives infinity.

    NONE and RINT are nearest even. ODD truncates and sets the last bit where that was inexact.
    """
    if mode in (RoundMode.CAST_NONE, RoundMode.CAST_RINT):
        return values.astype(dtype.numpy)
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
    if np.issubdtype(values.dtype, np.integer):
        return np.clip(values, limits.min, limits.max).astype(dtype.numpy)
    exact = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    rounded = round_to_integral(exact, mode)
    high = float(limits.max)
    inside = np.clip(rounded, float(limits.min), high if high <= 2**53 else 0.0 + 2.0**62)
    result = inside.astype(dtype.numpy)
    if high > 2**53:  # int64: the largest value has no exact float64
        result = np.where(rounded >= 2.0**63, limits.max, np.clip(rounded, -(2.0**63), 2.0**63 - 1024).astype(np.int64))
    return result


def cast(values: Array, target: DType, mode: RoundMode) -> Array:
    """Convert to another type as the vector unit does: integers saturate, 16-bit floats keep infinities.

    Integer to float32 and float16 rounds in the given mode; float32 to float32 rounds to whole numbers.
    """
    source = values.dtype
    if not target.is_float:
        return to_integer(values if source.kind in "iu" else widen(values), target, mode)
    if source.kind in "iu":
        return _integer_to_float(values, target, mode)
    if target is float32:
        if source == np.float32:
            return round_to_integral(values.astype(np.float64), mode).astype(np.float32)
        return widen(values).copy()
    return narrow(widen(values), target, mode)


def _integer_to_float(values: Array, target: DType, mode: RoundMode) -> Array:
    if target is float16:
        return narrow(values.astype(np.float32), target, mode)  # only 8- and 16-bit sources: exact in float32
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
    return np.where(negative, -rounded, rounded).astype(np.float32)
