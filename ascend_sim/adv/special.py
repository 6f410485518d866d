"""Error functions and gamma functions of pyasc's `asc.adv`, element by element.

Calling form and temporaries are those of `ascend_sim.adv.elementary`.
"""

from __future__ import annotations

import math

from ascend_sim.adv.lanes import Lanes, rounds
from isa.tensor import LocalTensor
from isa.types import RoundMode
from isa.vector.params import CMPMODE

_ERF = (
    1.12837917,
    -0.376126384,
    0.112837783,
    -0.0268647425,
    0.00521668998,
    -0.000835536654,
    9.46126256e-05,
)
"""erf(x) / x in x², |x| ≤ 0.75."""
_ERFC = (4.59336588e-08, 0.282094859, 0.282063982, 0.247427997, 0.170581206, 0.117689783, -0.137545104, 0.296595911,
         -0.678346135, 0.683102584, -0.325822839, 0.0621624277)  # fmt: skip
"""erfc(x) · exp(x²) in 2 / (2 + x), 1/2 ≤ x ≤ 10.2."""
_NEAR = 0.75
_FAR = 10.1
"""erfc of more is 0 in float32."""
_SHIFT = 8
"""Gamma functions go by asymptotic series from here on, and by recurrence below."""
_SIN_PI = (
    3.14159265,
    -5.16771278,
    2.55016404,
    -0.599264528,
    0.0821458866,
    -0.00737043093,
    0.000466302805,
)
"""sin(πr) / r in r²: π − π³/3! r² + …, |r| ≤ 1/2."""


def _tail(
    lanes: Lanes, dst: LocalTensor, x: LocalTensor, a: LocalTensor, b: LocalTensor
) -> LocalTensor:
    """dst = erfc(x) for x between 1/2 and 10.1. e to the −x² in two factors, so that the first exponent is exact."""
    lanes.muls(a, lanes.whole(a, lanes.muls(a, x, 16.0), RoundMode.CAST_RINT), 1 / 16)
    lanes.sub(b, x, a)
    lanes.add(dst, x, a)
    lanes.mul(b, b, dst)
    lanes.exp(b, lanes.muls(b, b, -1.0))
    lanes.mul(a, a, a)
    lanes.exp(a, lanes.muls(a, a, -1.0))
    lanes.mul(b, b, a)
    lanes.adds(a, x, 2.0)
    lanes.div(a, lanes.fill(dst, 2.0), a)
    lanes.polynomial(dst, a, _ERFC)
    return lanes.mul(dst, dst, b)


def erf(
    dst: LocalTensor,
    src: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = error function: a polynomial up to 0.75, ± (1 − erfc |x|) above. Relative error 4e-7 in float32."""
    for lanes, (x,), store in rounds("erf", dst, [src], count, temp_buffer, 5):
        size, tail, a, b = lanes.new(), lanes.new(), lanes.new(), lanes.new()
        _tail(lanes, tail, lanes.clamp(size, lanes.abs(size, x), 0.5, _FAR), a, b)
        lanes.adds(tail, lanes.muls(tail, tail, -1.0), 1.0)
        lanes.mul(tail, tail, lanes.sign(a, x))
        lanes.at_most(a, lanes.mul(a, x, x), _NEAR * _NEAR)
        lanes.mul(b, lanes.polynomial(b, a, _ERF), x)
        store(lanes.where(tail, size, CMPMODE.LE, _NEAR, b, tail))
        lanes.free(size, tail, a, b)


def erfc(
    dst: LocalTensor,
    src: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = 1 − erf(x), without cancellation above 0.75. Relative error 1e-6 in float32, x ≤ 9; below 0 absolute."""
    for lanes, (x,), store in rounds("erfc", dst, [src], count, temp_buffer, 5):
        size, tail, a, b = lanes.new(), lanes.new(), lanes.new(), lanes.new()
        _tail(lanes, tail, lanes.clamp(size, lanes.abs(size, x), 0.5, _FAR), a, b)
        lanes.where(a, size, CMPMODE.GE, _FAR, lanes.fill(a, 0.0), tail)
        lanes.adds(tail, lanes.muls(tail, a, -1.0), 2.0)
        lanes.where(tail, x, CMPMODE.LT, 0.0, tail, a)
        lanes.at_most(a, lanes.mul(a, x, x), _NEAR * _NEAR)
        lanes.mul(b, lanes.polynomial(b, a, _ERF), x)
        lanes.adds(b, lanes.muls(b, b, -1.0), 1.0)
        store(lanes.where(tail, size, CMPMODE.LE, _NEAR, b, tail))
        lanes.free(size, tail, a, b)


def _sin_pi(lanes: Lanes, dst: LocalTensor, x: LocalTensor, room: LocalTensor) -> LocalTensor:
    """dst = |sin(πx)|."""
    lanes.sub(dst, x, lanes.whole(dst, x, RoundMode.CAST_RINT))
    square, value = lanes.new(), lanes.new()
    lanes.mul(square, dst, dst)
    lanes.polynomial(value, square, _SIN_PI)
    lanes.mul(dst, dst, value)
    lanes.free(square, value)
    return lanes.abs(dst, dst)


def lgamma(
    dst: LocalTensor,
    src: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = ln |Γ(x)|: Stirling's series at x + 8 less ln x(x+1)…(x+7), by reflection below 1/2.

    Error 4e-6 of the larger of the result and 1 in float32, −20 ≤ x ≤ 1e5, away from the poles.
    """
    for lanes, (x,), store in rounds("lgamma", dst, [src], count, temp_buffer, 6):
        y, product, series, room = lanes.new(), lanes.new(), lanes.new(), lanes.new()
        lanes.adds(y, lanes.muls(y, x, -1.0), 1.0)
        lanes.where(y, x, CMPMODE.LT, 0.5, y, x)
        small = lanes.at_most(room, y, float(_SHIFT))
        lanes.muls(product, small, 1.0)
        for step in range(1, _SHIFT):
            lanes.mul(product, product, lanes.adds(series, small, float(step)))
        lanes.ln(product, product)
        lanes.where(product, y, CMPMODE.LT, float(_SHIFT), product, lanes.fill(series, 0.0))
        lanes.adds(series, y, float(_SHIFT))
        lanes.where(series, y, CMPMODE.LT, float(_SHIFT), series, y)
        _stirling(lanes, y, series, room)
        lanes.sub(y, y, product)
        _sin_pi(lanes, product, x, room)
        lanes.muls(product, lanes.ln(product, product), -1.0)
        lanes.adds(product, product, math.log(math.pi))
        lanes.sub(product, product, y)
        store(lanes.where(y, x, CMPMODE.LT, 0.5, product, y))
        lanes.free(y, product, series, room)


def _stirling(lanes: Lanes, dst: LocalTensor, z: LocalTensor, room: LocalTensor) -> LocalTensor:
    """dst = (z − 1/2) ln z − z + ln(2π) / 2 + 1/12z − 1/360z³ for z ≥ 8."""
    lanes.div(room, lanes.fill(room, 1.0), z)
    square = lanes.mul(lanes.new(), room, room)
    lanes.mul(room, room, lanes.polynomial(dst, square, (1 / 12, -1 / 360, 1 / 1260)))
    lanes.ln(square, z)
    lanes.adds(dst, z, -0.5)
    # ln z − 1 first: the two large terms nearly cancel
    lanes.mul(dst, dst, lanes.adds(square, square, -1.0))
    lanes.adds(dst, dst, 0.5 * math.log(2 * math.pi) - 0.5)
    lanes.free(square)
    return lanes.add(dst, dst, room)


def digamma(
    dst: LocalTensor,
    src: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = derivative of ln Γ(x): the asymptotic series at x + 8 less 1/x + … + 1/(x+7), by reflection below 1/2.

    Error 2e-6 of the larger of the result and 1 in float32, −20 ≤ x ≤ 1e5, away from the poles.
    """
    for lanes, (x,), store in rounds("digamma", dst, [src], count, temp_buffer, 6):
        y, total, room, other = lanes.new(), lanes.new(), lanes.new(), lanes.new()
        lanes.adds(y, lanes.muls(y, x, -1.0), 1.0)
        lanes.where(y, x, CMPMODE.LT, 0.5, y, x)
        lanes.fill(total, 0.0)
        one = lanes.fill(lanes.new(), 1.0)
        for step in range(_SHIFT):
            lanes.div(room, one, lanes.adds(room, y, float(step)))
            lanes.sub(total, total, room)
        lanes.adds(y, y, float(_SHIFT))
        lanes.div(room, one, y)
        lanes.mul(other, room, room)
        lanes.polynomial(one, other, (-1 / 12, 1 / 120, -1 / 252))
        lanes.mul(one, one, other)
        lanes.add(total, total, one)
        lanes.add(total, total, lanes.muls(room, room, -0.5))
        lanes.add(total, total, lanes.ln(y, y))
        _cot_pi(lanes, y, x, room, other, one)
        lanes.sub(y, total, lanes.muls(y, y, math.pi))
        store(lanes.where(y, x, CMPMODE.LT, 0.5, y, total))
        lanes.free(y, total, room, other, one)


def _cot_pi(
    lanes: Lanes,
    dst: LocalTensor,
    x: LocalTensor,
    r: LocalTensor,
    square: LocalTensor,
    value: LocalTensor,
) -> LocalTensor:
    """dst = cot(πx): cos(πr) / sin(πr), the cosine as a sine of 1/2 − |r|."""
    lanes.sub(r, x, lanes.whole(r, x, RoundMode.CAST_RINT))
    lanes.adds(dst, lanes.muls(dst, lanes.abs(dst, r), -1.0), 0.5)
    lanes.mul(square, dst, dst)
    lanes.mul(dst, dst, lanes.polynomial(value, square, _SIN_PI))
    lanes.mul(square, r, r)
    lanes.mul(r, r, lanes.polynomial(value, square, _SIN_PI))
    return lanes.div(dst, dst, r)
