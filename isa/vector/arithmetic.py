"""Element-wise vector instructions: two sources, a source and a scalar, one source.

Each function is the instruction's meaning on numpy values of the storage type; one rounding an instruction.
Types are those that the basic API takes on the 910B. Integer results wrap around.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isa import numerics
from isa.half import widen
from isa.numerics import by_table, fused_multiply_add, once_rounded, through_float64
from isa.numerics import relu as relu_of
from isa.types import float16, float32, int16, int32, uint16, uint32
from isa.vector.checks import check_shift
from isa.vector.forms import binary, unary, with_scalar

Array = Any

_SUMS = (float16, int32, float32)
"""Types for which dst may be src1 with repeat stride 0, so that all repeats of src0 gather in one block."""
_TO_FLOAT32 = ((float16, float32),)

_EXP = through_float64(np.exp)
_LN = through_float64(np.log)
_SQRT = by_table(lambda values: np.sqrt(widen(values)).astype(values.dtype))
_APPROXIMATE = (
    "the hardware approximates (float16 worse than 1e-3, float32 worse than 1e-4), and the simulator computes exactly; "
    "where the last digits count, use {} instead"
)

_RSQRT = through_float64(lambda values: 1.0 / np.sqrt(values))


@binary(int16, float16, int32, float32, folds=_SUMS)
def add(a: Array, b: Array) -> Array:
    """dst = src0 + src1."""
    return once_rounded(np.add, a, b)


@binary(int16, float16, int32, float32, folds=_SUMS)
def sub(a: Array, b: Array) -> Array:
    """dst = src0 - src1."""
    return once_rounded(np.subtract, a, b)


@binary(int16, float16, int32, float32, folds=_SUMS)
def mul(a: Array, b: Array) -> Array:
    """dst = src0 · src1."""
    return once_rounded(np.multiply, a, b)


@binary(float16, float32)
def div(a: Array, b: Array) -> Array:
    """dst = src0 / src1, correctly rounded."""
    return once_rounded(np.divide, a, b)


@binary(int16, float16, int32, float32, folds=_SUMS)
def max(a: Array, b: Array) -> Array:
    """dst = the larger of src0 and src1; NaN if one of them is, src0 where they are equal."""
    return numerics.maximum(a, b)


@binary(int16, float16, int32, float32, folds=_SUMS)
def min(a: Array, b: Array) -> Array:
    """dst = the smaller of src0 and src1; NaN if one of them is, src0 where they are equal."""
    return numerics.minimum(a, b)


@binary(int16, uint16)
def bitwise_and(a: Array, b: Array) -> Array:
    """dst = src0 & src1, bit by bit."""
    return np.bitwise_and(a, b)


@binary(int16, uint16)
def bitwise_or(a: Array, b: Array) -> Array:
    """dst = src0 | src1, bit by bit."""
    return np.bitwise_or(a, b)


@binary(int16, float16, float32, folds=(float16, float32))
def add_relu(a: Array, b: Array) -> Array:
    """dst = max(src0 + src1, 0): the sum is rounded first; -0 becomes +0, NaN stays NaN."""
    return relu_of(once_rounded(np.add, a, b))


@binary(int16, float16, float32, folds=(float16, float32))
def sub_relu(a: Array, b: Array) -> Array:
    """dst = max(src0 - src1, 0): the difference is rounded first; -0 becomes +0, NaN stays NaN."""
    return relu_of(once_rounded(np.subtract, a, b))


@binary(float16, float32, reads_dst=True, widening=_TO_FLOAT32)
def mul_add_dst(a: Array, b: Array, dst: Array) -> Array:
    """dst = src0 · src1 + dst, rounded once."""
    return fused_multiply_add(a, b, dst)


@binary(float16, float32, reads_dst=True)
def fused_mul_add(a: Array, b: Array, dst: Array) -> Array:
    """dst = src0 · dst + src1, rounded once."""
    return fused_multiply_add(a, dst, b)


@binary(float16, float32, reads_dst=True)
def fused_mul_add_relu(a: Array, b: Array, dst: Array) -> Array:
    """dst = max(src0 · dst + src1, 0), rounded once; -0 becomes +0, NaN stays NaN."""
    return relu_of(fused_multiply_add(a, dst, b))


@with_scalar(int16, float16, int32, float32)
def adds(src: Array, scalar: Array) -> Array:
    """dst = src + scalar."""
    return once_rounded(np.add, src, scalar)


@with_scalar(int16, float16, int32, float32)
def muls(src: Array, scalar: Array) -> Array:
    """dst = src · scalar."""
    return once_rounded(np.multiply, src, scalar)


@with_scalar(int16, float16, int32, float32)
def maxs(src: Array, scalar: Array) -> Array:
    """dst = the larger of src and scalar; NaN if one of them is, src where they are equal."""
    return numerics.maximum(src, np.full_like(src, scalar))


@with_scalar(int16, float16, int32, float32)
def mins(src: Array, scalar: Array) -> Array:
    """dst = the smaller of src and scalar; NaN if one of them is, src where they are equal."""
    return numerics.minimum(src, np.full_like(src, scalar))


@with_scalar(float16, float32)
def leaky_relu(src: Array, scalar: Array) -> Array:
    """dst = src where src >= 0, else scalar · src: -0 stays -0, NaN stays NaN."""
    result = once_rounded(np.multiply, src, scalar)
    np.copyto(result, src, where=src >= 0)
    return result


@with_scalar(float16, float32, reads_dst=True, widening=_TO_FLOAT32)
def axpy(src: Array, scalar: Array, dst: Array) -> Array:
    """dst = scalar · src + dst, rounded once."""
    return fused_multiply_add(src, np.asarray(scalar), dst)


@with_scalar(int16, uint16, int32, uint32, check=check_shift)
def shift_left(src: Array, scalar: Array) -> Array:
    """dst = src shifted left by scalar bits, 0 to the type's width; what leaves at the top is lost."""
    return np.left_shift(src, scalar)


@unary(float16, float32)
def exp(src: Array) -> Array:
    """dst = e to the power src."""
    return _EXP(src)


@unary(float16, float32, undefined=lambda src: src <= 0)
def ln(src: Array) -> Array:
    """dst = natural logarithm of src: -infinity of 0, NaN below."""
    return _LN(src)


@unary(float16, float32)
def abs(src: Array) -> Array:
    """dst = magnitude of src."""
    return np.abs(src)


@unary(float16, float32, undefined=lambda src: src < 0)
def sqrt(src: Array) -> Array:
    """dst = square root of src, correctly rounded; NaN below 0."""
    return _SQRT(src)


@unary(
    float16,
    float32,
    undefined=lambda src: src <= 0,
    caution=_APPROXIMATE.format("sqrt and div"),
)
def rsqrt(src: Array) -> Array:
    """dst = 1 / square root of src. The hardware approximates (about 1e-3); computed exactly here."""
    return _RSQRT(src)


@unary(
    float16,
    float32,
    undefined=lambda src: src == 0,
    caution=_APPROXIMATE.format("div"),
)
def reciprocal(src: Array) -> Array:
    """dst = 1 / src. The hardware approximates (about 1e-3); computed exactly here."""
    return (1.0 / src.astype(np.float64)).astype(src.dtype)


@unary(float16, int32, float32)
def relu(src: Array) -> Array:
    """dst = max(src, 0): -0 becomes +0, NaN stays NaN."""
    return relu_of(src)


@unary(int16, uint16)
def bitwise_not(src: Array) -> Array:
    """dst = all bits of src inverted."""
    return np.bitwise_not(src)
