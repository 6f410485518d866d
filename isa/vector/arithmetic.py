"""Element-wise vector instructions: two sources, a source and a scalar, one source.

Each function is the instruction's meaning on numpy values of the storage type; one rounding an instruction.
Types are those that the basic API takes on the 910B.
"""

# ruff: noqa: A001  the instructions' names are the vendor's

from __future__ import annotations

from typing import Any

import numpy as np

from isa import numerics
from isa.types import float16, float32, int16, int32, uint16, uint32
from isa.vector.forms import binary, unary, with_scalar

Array = Any


@binary(int16, float16, int32, float32, accumulates=True)
def add(a: Array, b: Array) -> Array:
    """dst = src0 + src1."""
    return np.add(a, b)


@binary(int16, float16, int32, float32, accumulates=True)
def sub(a: Array, b: Array) -> Array:
    """dst = src0 - src1."""
    return np.subtract(a, b)


@binary(int16, float16, int32, float32, accumulates=True)
def mul(a: Array, b: Array) -> Array:
    """dst = src0 · src1."""
    return np.multiply(a, b)


@binary(float16, float32)
def div(a: Array, b: Array) -> Array:
    """dst = src0 / src1, correctly rounded."""
    return np.divide(a, b)


@binary(int16, float16, int32, float32, accumulates=True)
def max(a: Array, b: Array) -> Array:
    """dst = the larger of src0 and src1."""
    return numerics.maximum(a, b)


@binary(int16, float16, int32, float32, accumulates=True)
def min(a: Array, b: Array) -> Array:
    """dst = the smaller of src0 and src1."""
    return numerics.minimum(a, b)


@binary(int16, uint16)
def bitwise_and(a: Array, b: Array) -> Array:
    """dst = src0 & src1, bit by bit."""
    return np.bitwise_and(a, b)


@binary(int16, uint16)
def bitwise_or(a: Array, b: Array) -> Array:
    """dst = src0 | src1, bit by bit."""
    return np.bitwise_or(a, b)


@binary(int16, float16, float32, accumulates=True)
def add_relu(a: Array, b: Array) -> Array:
    """dst = max(src0 + src1, 0)."""
    return _relu(np.add(a, b))


@binary(int16, float16, float32, accumulates=True)
def sub_relu(a: Array, b: Array) -> Array:
    """dst = max(src0 - src1, 0)."""
    return _relu(np.subtract(a, b))


@binary(float16, float32, reads_dst=True)
def mul_add_dst(a: Array, b: Array, dst: Array) -> Array:
    """dst = src0 · src1 + dst, rounded once."""
    return _fma(a, b, dst)


@binary(float16, float32, reads_dst=True)
def fused_mul_add(a: Array, b: Array, dst: Array) -> Array:
    """dst = src0 · dst + src1, rounded once."""
    return _fma(a, dst, b)


@binary(float16, float32, reads_dst=True)
def fused_mul_add_relu(a: Array, b: Array, dst: Array) -> Array:
    """dst = max(src0 · dst + src1, 0), rounded once."""
    return _relu(_fma(a, dst, b))


def _fma(a: Array, b: Array, c: Array) -> Array:
    return numerics.fused_multiply_add(a, b, c, float16 if a.dtype == np.float16 else float32)


def _relu(values: Array) -> Array:
    # NaN stays NaN; -0 becomes +0
    return np.where(values > 0, values, np.where(np.isnan(values), values, 0)).astype(values.dtype)


@with_scalar(int16, float16, int32, float32)
def adds(src: Array, scalar: Array) -> Array:
    """dst = src + scalar."""
    return np.add(src, scalar)


@with_scalar(int16, float16, int32, float32)
def muls(src: Array, scalar: Array) -> Array:
    """dst = src · scalar."""
    return np.multiply(src, scalar)


@with_scalar(int16, float16, int32, float32)
def maxs(src: Array, scalar: Array) -> Array:
    """dst = the larger of src and scalar."""
    return numerics.maximum(src, np.full_like(src, scalar))


@with_scalar(int16, float16, int32, float32)
def mins(src: Array, scalar: Array) -> Array:
    """dst = the smaller of src and scalar."""
    return numerics.minimum(src, np.full_like(src, scalar))


@with_scalar(float16, float32)
def leaky_relu(src: Array, scalar: Array) -> Array:
    """dst = src where src >= 0, else scalar · src."""
    return np.where(src >= 0, src, np.multiply(src, scalar))


@with_scalar(float16, float32, reads_dst=True)
def axpy(src: Array, scalar: Array, dst: Array) -> Array:
    """dst = scalar · src + dst, rounded once."""
    return _fma(src, np.asarray(scalar), dst)


@with_scalar(int16, uint16, int32, uint32)
def shift_left(src: Array, scalar: Array) -> Array:
    """dst = src shifted left by scalar bits."""
    return np.left_shift(src, scalar)


@with_scalar(int16, uint16, int32, uint32)
def shift_right(src: Array, scalar: Array) -> Array:
    """dst = src shifted right by scalar bits: arithmetic for signed types, logical for unsigned ones."""
    return np.right_shift(src, scalar)


@unary(float16, float32)
def exp(src: Array) -> Array:
    """dst = e to the power src."""
    return numerics.through_float64(np.exp)(src)


@unary(float16, float32)
def ln(src: Array) -> Array:
    """dst = natural logarithm of src."""
    return numerics.through_float64(np.log)(src)


@unary(float16, float32)
def abs(src: Array) -> Array:
    """dst = magnitude of src."""
    return np.abs(src)


@unary(float16, float32)
def sqrt(src: Array) -> Array:
    """dst = square root of src, correctly rounded."""
    return np.sqrt(numerics.widen(src)).astype(src.dtype)


@unary(float16, float32)
def rsqrt(src: Array) -> Array:
    """dst = 1 / square root of src. The hardware approximates (about 1e-3); computed exactly here."""
    return (1.0 / np.sqrt(src.astype(np.float64))).astype(src.dtype)


@unary(float16, float32)
def reciprocal(src: Array) -> Array:
    """dst = 1 / src. The hardware approximates (about 1e-3); computed exactly here."""
    return (1.0 / src.astype(np.float64)).astype(src.dtype)


@unary(float16, int32, float32)
def relu(src: Array) -> Array:
    """dst = max(src, 0)."""
    return _relu(src)


@unary(int16, uint16)
def bitwise_not(src: Array) -> Array:
    """dst = all bits of src inverted."""
    return np.bitwise_not(src)
