"""Element-wise functions of pyasc's `asc.adv`: exponentials and logarithms, hyperbolic ones, rounding, powers.

All take (dst, src, count=None, temp_buffer=None, is_reuse_source=False): float16 or float32 in UB, `dst` apart from
`src`; without a count, all of `src`. Without a `temp_buffer` they use UB that the TPipe has not handed out.
`is_reuse_source` is accepted; the source is never changed. Accuracies are against float64
(`tests/adv/test_math.py`); polynomials were fitted in float64 to the least largest relative error.
"""

from __future__ import annotations

import math
from typing import Any

from ascend_sim.adv.lanes import Lanes, check_operands, pieces, rounds
from ascend_sim.lang.queues import program
from isa.tensor import LocalTensor
from isa.types import Pipe, RoundMode, float16, float32, int16, uint16
from isa.vector import arithmetic as va
from isa.vector.fill import cast
from isa.vector.params import CMPMODE

_SINH = (1.0, 0.166666664, 0.00833335259, 0.000198358124, 2.81852394e-06)
"""sinh(x) / x in x², |x| ≤ 1."""
_TANH = (1.0, -0.333333297, 0.133331828, -0.0539446977, 0.0216918208, -0.00815911281, 0.00212850688)
"""tanh(x) / x in x², |x| ≤ 0.625."""
_LN2 = math.log(2.0)


def exp(
    dst: LocalTensor,
    src: LocalTensor,
    count: int,
    taylor_expand_level: int,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = e to the src. With a `taylor_expand_level` the fraction goes through that many terms of Taylor's series.

    Relative error 3e-7 in float32 without the series.
    """
    level = int(taylor_expand_level)
    for lanes, (x,), store in rounds("exp", dst, [src], count, temp_buffer, 2):
        result = lanes.new()
        if level <= 0:
            store(lanes.exp(result, x))
        else:
            terms = [1.0 / math.factorial(power) for power in range(level + 1)]
            floor = lanes.whole(lanes.new(), x, RoundMode.CAST_FLOOR)
            lanes.sub(x, x, floor)
            lanes.polynomial(result, x, terms)
            lanes.exp(floor, floor)
            store(lanes.mul(result, result, floor))
            lanes.free(floor)
        lanes.free(result)


def log(
    dst: LocalTensor,
    src: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = natural logarithm of src, by the instruction `ln`."""
    count = check_operands("log", dst, [src], count, (float16, float32))
    if count:
        va.ln(dst, src, count)
        program().pipe_barrier(Pipe.V)


def _whole(
    name: str, mode: RoundMode, dst: LocalTensor, src: LocalTensor, count: Any, given: Any
) -> None:
    if getattr(src, "dtype", None) is float32:
        count = check_operands(name, dst, [src], count, (float32,))
        if count:
            cast(dst, src, mode, count)
            program().pipe_barrier(Pipe.V)
        return
    for lanes, (x,), store in rounds(name, dst, [src], count, given, 1):
        result = lanes.new()
        store(lanes.whole(result, x, mode))
        lanes.free(result)


def ceil(
    dst: LocalTensor,
    src: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = the smallest whole number that is not below src. Exact."""
    _whole("ceil", RoundMode.CAST_CEIL, dst, src, count, temp_buffer)


def floor(
    dst: LocalTensor,
    src: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = the largest whole number that is not above src. Exact."""
    _whole("floor", RoundMode.CAST_FLOOR, dst, src, count, temp_buffer)


def round(
    dst: LocalTensor,
    src: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = the whole number that is nearest to src, the even one of two. Exact."""
    _whole("round", RoundMode.CAST_RINT, dst, src, count, temp_buffer)


def trunc(
    dst: LocalTensor,
    src: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = src without its fraction. Exact."""
    _whole("trunc", RoundMode.CAST_TRUNC, dst, src, count, temp_buffer)


def frac(
    dst: LocalTensor,
    src: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = the fraction of src, with its sign. Exact."""
    for lanes, (x,), store in rounds("frac", dst, [src], count, temp_buffer, 1):
        whole = lanes.whole(lanes.new(), x, RoundMode.CAST_TRUNC)
        store(lanes.sub(whole, x, whole))
        lanes.free(whole)


def sign(
    dst: LocalTensor,
    src: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = −1, 0 or 1. Exact."""
    for lanes, (x,), store in rounds("sign", dst, [src], count, temp_buffer, 1):
        result = lanes.sign(lanes.new(), x)
        store(result)
        lanes.free(result)


def sinh(
    dst: LocalTensor,
    src: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = hyperbolic sine: a polynomial up to 1, (eˣ − e⁻ˣ) / 2 above. Relative error 1e-6 in float32, |x| ≤ 10."""
    for lanes, (x,), store in rounds("sinh", dst, [src], count, temp_buffer, 3):
        up, down, near = lanes.new(), lanes.new(), lanes.new()
        lanes.exp(up, lanes.adds(up, x, -_LN2))
        lanes.exp(down, lanes.adds(down, lanes.muls(down, x, -1.0), -_LN2))
        lanes.sub(up, up, down)
        lanes.mul(down, x, x)
        lanes.polynomial(near, lanes.at_most(down, down, 1.0), _SINH)
        lanes.mul(near, near, x)
        lanes.abs(down, x)
        store(lanes.where(up, down, CMPMODE.LE, 1.0, near, up))
        lanes.free(up, down, near)


def cosh(
    dst: LocalTensor,
    src: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = hyperbolic cosine, (eˣ + e⁻ˣ) / 2. Relative error 1e-6 in float32, |x| ≤ 10."""
    for lanes, (x,), store in rounds("cosh", dst, [src], count, temp_buffer, 2):
        up, down = lanes.new(), lanes.new()
        lanes.exp(up, lanes.adds(up, x, -_LN2))
        lanes.exp(down, lanes.adds(down, lanes.muls(down, x, -1.0), -_LN2))
        store(lanes.add(up, up, down))
        lanes.free(up, down)


def tanh(
    dst: LocalTensor,
    src: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = hyperbolic tangent: a polynomial up to 0.625, 1 − 2 / (e²ˣ + 1) above. Relative error 3e-7 in float32."""
    for lanes, (x,), store in rounds("tanh", dst, [src], count, temp_buffer, 3):
        far, near, size = lanes.new(), lanes.new(), lanes.new()
        lanes.clamp(far, x, -9.1, 9.1)
        lanes.exp(far, lanes.muls(far, far, 2.0))
        lanes.adds(far, far, 1.0)
        lanes.div(far, lanes.fill(near, -2.0), far)
        lanes.adds(far, far, 1.0)
        lanes.at_most(size, lanes.mul(size, x, x), 0.390625)
        lanes.mul(near, lanes.polynomial(near, size, _TANH), x)
        store(lanes.where(far, lanes.abs(size, x), CMPMODE.LE, 0.625, near, far))
        lanes.free(far, near, size)


def log1p(lanes: Lanes, dst: LocalTensor, u: LocalTensor, one: LocalTensor) -> LocalTensor:
    """dst = ln(1 + u) for u ≥ 0, exact where u is small. Uses `one` as room; `u` stays."""
    lanes.adds(one, u, 1.0)
    lanes.ln(dst, one)
    lanes.mul(dst, dst, u)
    lanes.adds(one, one, -1.0)
    lanes.at_least(one, one, 1e-30)  # no division by zero where u vanishes beside 1
    lanes.div(dst, dst, one)
    lanes.mul(one, u, u)
    lanes.muls(one, one, -0.5)
    lanes.add(one, one, u)
    return lanes.where(dst, u, CMPMODE.LT, 1e-4, one, dst)


def asinh(
    dst: LocalTensor,
    src: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = inverse hyperbolic sine, ± ln(1 + u) with u = |x| + x² / (1 + √(x² + 1)). Relative error 1e-6."""
    for lanes, (x,), store in rounds("asinh", dst, [src], count, temp_buffer, 3):
        u, root, room = lanes.new(), lanes.new(), lanes.new()
        lanes.mul(u, x, x)
        lanes.adds(root, lanes.sqrt(root, lanes.adds(root, u, 1.0)), 1.0)
        lanes.div(u, u, root)
        lanes.add(u, u, lanes.abs(root, x))
        log1p(lanes, root, u, room)
        store(lanes.mul(root, root, lanes.sign(room, x)))
        lanes.free(u, root, room)


def acosh(
    dst: LocalTensor,
    src: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = inverse hyperbolic cosine of x ≥ 1: ln(1 + u), u = y + √(y (x + 1)), y = x − 1. Relative error 1e-6."""
    for lanes, (x,), store in rounds("acosh", dst, [src], count, temp_buffer, 3):
        u, root, room = lanes.new(), lanes.new(), lanes.new()
        lanes.adds(u, x, -1.0)
        lanes.mul(root, lanes.adds(root, x, 1.0), u)
        lanes.add(u, u, lanes.sqrt(root, root))
        store(log1p(lanes, root, u, room))
        lanes.free(u, root, room)


def atanh(
    dst: LocalTensor,
    src: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = inverse hyperbolic tangent, ± ln(1 + 2a / (1 − a)) / 2 with a = |x|. Relative error 1e-6, |x| < 1."""
    for lanes, (x,), store in rounds("atanh", dst, [src], count, temp_buffer, 3):
        u, result, room = lanes.new(), lanes.new(), lanes.new()
        lanes.abs(u, x)
        lanes.adds(room, lanes.muls(room, u, -1.0), 1.0)
        lanes.div(u, lanes.muls(u, u, 2.0), room)
        log1p(lanes, result, u, room)
        lanes.muls(result, result, 0.5)
        store(lanes.mul(result, result, lanes.sign(room, x)))
        lanes.free(u, result, room)


def power(
    dst: LocalTensor,
    src0: LocalTensor,
    src1: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = src0 to the src1: e to the src1 · ln |src0|, with the sign that whole exponents give.

    Relative error 1e-5 in float32 while the result is between 1e-30 and 1e30. A negative base with a fraction in the
    exponent gives NaN. Whole number types are refused.
    """
    for lanes, (x, y), store in rounds("power", dst, [src0, src1], count, temp_buffer, 4):
        size, turned, room = lanes.new(), lanes.new(), lanes.new()
        lanes.ln(size, lanes.abs(size, x))
        lanes.exp(size, lanes.mul(size, size, y))
        lanes.muls(turned, y, 0.5)  # half a turn for odd exponents
        lanes.sub(turned, turned, lanes.whole(room, turned, RoundMode.CAST_FLOOR))
        lanes.adds(turned, lanes.muls(turned, turned, -4.0), 1.0)
        lanes.mul(turned, turned, size)
        lanes.sub(room, y, lanes.whole(room, y, RoundMode.CAST_FLOOR))
        _nowhere(lanes, turned, room, x)
        lanes.where(size, x, CMPMODE.LT, 0.0, turned, size)
        store(lanes.where(size, y, CMPMODE.EQ, 0.0, lanes.fill(room, 1.0), size))
        lanes.free(size, turned, room)


def _nowhere(lanes: Lanes, dst: LocalTensor, fraction: LocalTensor, x: LocalTensor) -> None:
    """dst = dst where there is no fraction, else what √x makes of a negative x."""
    one = lanes.fill(lanes.new(), 1.0)
    lanes.where(fraction, fraction, CMPMODE.EQ, 0.0, one, x)
    lanes.mul(dst, dst, lanes.sqrt(fraction, fraction))
    lanes.free(one)


def xor(
    dst: LocalTensor,
    src0: LocalTensor,
    src1: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = src0 ^ src1 for int16 and uint16: (a | b) & ~(a & b). Exact."""
    count = check_operands("xor", dst, [src0, src1], count, (int16, uint16))
    for first, size, (room,) in pieces("xor", count, dst.dtype, temp_buffer):
        to, a, b = dst[first:], src0[first:], src1[first:]
        va.bitwise_and(room, a, b, size)
        va.bitwise_or(to, a, b, size)
        program().pipe_barrier(Pipe.V)
        va.bitwise_not(room, room, size)
        program().pipe_barrier(Pipe.V)
        va.bitwise_and(to, to, room, size)
        program().pipe_barrier(Pipe.V)


def axpy(
    dst: LocalTensor,
    src: LocalTensor,
    scalar: float,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = dst + src · scalar: a product and a sum, each rounded once. src may be float16 where dst is float32.

    With float16 and float32 the product is one of float32, as the vendor's mixed form.
    """
    mixed = getattr(dst, "dtype", None) is float32 and getattr(src, "dtype", None) is float16
    kinds = (float16,) if mixed else (float16, float32)
    count = check_operands("axpy", src if mixed else dst, [] if mixed else [src], count, kinds)
    if mixed and count == 0:
        count = src.get_size()
    for first, size, (room,) in pieces("axpy", count, dst.dtype, temp_buffer):
        if mixed:
            cast(room, src[first:], RoundMode.CAST_NONE, size)
            program().pipe_barrier(Pipe.V)
            va.muls(room, room, scalar, size)
        else:
            va.muls(room, src[first:], scalar, size)
        program().pipe_barrier(Pipe.V)
        va.add(dst[first:], dst[first:], room, size)
        program().pipe_barrier(Pipe.V)
