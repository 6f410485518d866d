"""Circular functions of pyasc's `asc.adv` and their inverses, element by element.

Calling form and temporaries are those of `ascend_sim.adv.elementary`. Angles are taken to [−π/2, π/2] by subtracting
whole multiples of π, which is given in four parts of few bits, so that the products are exact up to |x| = 65504;
errors are absolute there.
"""

from __future__ import annotations

import math

from ascend_sim.adv.lanes import Lanes, rounds
from isa.tensor import LocalTensor
from isa.types import RoundMode
from isa.vector.params import CMPMODE

_PI = (3.140625, 9.67025756835937500e-4, 6.27711415290832520e-7, 1.21542012565534208e-10)
"""π in four parts: 8, 9 and 10 bits, and the rest."""
_SIN = (1.0, -0.166666666, 0.00833333071, -0.000198408315, 2.75239039e-06, -2.38671663e-08)
"""sin(r) / r in r², |r| ≤ π/2."""
_ASIN = (0.999999996, 0.166667904, 0.0749442421, 0.0455515285, 0.0238512903, 0.0426478304)
"""asin(s) / s in s², s ≤ 1/2."""
_ATAN = (0.999999998, -0.333332836, 0.19998266, -0.142619323, 0.109420266, -0.083773037, 0.0575519018, -0.0308043984,
         0.0107268378, -0.00175390648)  # fmt: skip
"""atan(a) / a in a², a ≤ 1."""


def _reduce(
    lanes: Lanes, x: LocalTensor, turns: LocalTensor, room: LocalTensor, shift: float
) -> LocalTensor:
    """x = x − (k − shift) π with the whole k that makes it smallest; turns = 1 where k is even, −1 where it is odd."""
    lanes.muls(turns, x, 1.0 / math.pi)
    if shift:
        lanes.adds(turns, turns, shift)
    lanes.whole(turns, turns, RoundMode.CAST_RINT)
    multiple = turns
    if shift:
        multiple = lanes.adds(lanes.new(), turns, -shift)
    for part in _PI:
        lanes.sub(x, x, lanes.muls(room, multiple, part))
    if shift:
        lanes.free(multiple)
    lanes.muls(turns, turns, 0.5)
    lanes.sub(turns, turns, lanes.whole(room, turns, RoundMode.CAST_FLOOR))
    return lanes.adds(turns, lanes.muls(turns, turns, -4.0), 1.0)


def _odd(
    lanes: Lanes,
    dst: LocalTensor,
    r: LocalTensor,
    room: LocalTensor,
    coefficients: tuple[float, ...],
) -> LocalTensor:
    """dst = r · P(r²)."""
    lanes.mul(room, r, r)
    return lanes.mul(dst, lanes.polynomial(dst, room, coefficients), r)


def sin(
    dst: LocalTensor,
    src: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = sine. Absolute error 3e-7 in float32, |x| ≤ 65504."""
    for lanes, (x,), store in rounds("sin", dst, [src], count, temp_buffer, 3):
        turns, room, result = lanes.new(), lanes.new(), lanes.new()
        _reduce(lanes, x, turns, room, 0.0)
        store(lanes.mul(result, _odd(lanes, result, x, room, _SIN), turns))
        lanes.free(turns, room, result)


def cos(
    dst: LocalTensor,
    src: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = cosine, as ± sin(x + π/2 − kπ). Absolute error 3e-7 in float32, 1e-6 from |x| = 1000 to 65504."""
    for lanes, (x,), store in rounds("cos", dst, [src], count, temp_buffer, 4):
        turns, room, result = lanes.new(), lanes.new(), lanes.new()
        _reduce(lanes, x, turns, room, 0.5)
        store(lanes.mul(result, _odd(lanes, result, x, room, _SIN), turns))
        lanes.free(turns, room, result)


def tan(
    dst: LocalTensor,
    src: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = tangent: sin r / sin(π/2 − |r|). Relative error 2e-6 in float32 away from the poles, |x| ≤ 65504."""
    for lanes, (x,), store in rounds("tan", dst, [src], count, temp_buffer, 3):
        turns, room, result = lanes.new(), lanes.new(), lanes.new()
        _reduce(lanes, x, turns, room, 0.0)
        lanes.muls(turns, lanes.abs(turns, x), -1.0)
        for part in _PI:
            lanes.adds(turns, turns, part / 2)
        _odd(lanes, result, turns, room, _SIN)
        _odd(lanes, turns, x, room, _SIN)
        store(lanes.div(result, turns, result))
        lanes.free(turns, room, result)


def _half_angle(lanes: Lanes, x: LocalTensor, dst: LocalTensor, room: LocalTensor) -> LocalTensor:
    """dst = asin(√z) with z the smaller of x² and (1 − |x|) / 2; x = |x|."""
    lanes.abs(x, x)
    lanes.adds(room, lanes.muls(room, x, -0.5), 0.5)
    lanes.min(room, room, lanes.mul(dst, x, x))
    root = lanes.new()
    lanes.mul(dst, lanes.polynomial(dst, room, _ASIN), lanes.sqrt(root, room))
    lanes.free(root)
    return dst


def asin(
    dst: LocalTensor,
    src: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = arc sine: a polynomial up to 1/2, π/2 − 2 asin √((1 − |x|) / 2) above. Relative error 1e-6 in float32."""
    for lanes, (x,), store in rounds("asin", dst, [src], count, temp_buffer, 4):
        sign, result, room = lanes.sign(lanes.new(), x), lanes.new(), lanes.new()
        _half_angle(lanes, x, result, room)
        lanes.adds(room, lanes.muls(room, result, -2.0), math.pi / 2)
        lanes.where(result, x, CMPMODE.LE, 0.5, result, room)
        store(lanes.mul(result, result, sign))
        lanes.free(sign, result, room)


def acos(
    dst: LocalTensor,
    src: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = arc cosine: π/2 − asin x up to 1/2, 2 asin √((1 − x) / 2) above. Relative error 1e-6 in float32."""
    for lanes, (x,), store in rounds("acos", dst, [src], count, temp_buffer, 5):
        sign, result, room = lanes.sign(lanes.new(), x), lanes.new(), lanes.new()
        _half_angle(lanes, x, result, room)
        # near 0: π/2 − s asin; beyond 1/2: 2 asin, or π less that for a negative x
        lanes.muls(room, lanes.mul(room, result, sign), 2.0)
        far = lanes.new()
        lanes.adds(far, lanes.muls(far, sign, -math.pi / 2), math.pi / 2)
        lanes.add(far, far, room)
        lanes.adds(room, lanes.muls(room, room, -0.5), math.pi / 2)
        store(lanes.where(result, x, CMPMODE.LE, 0.5, room, far))
        lanes.free(sign, result, room, far)


def atan(
    dst: LocalTensor,
    src: LocalTensor,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    is_reuse_source: bool = False,
) -> None:
    """dst = arc tangent: a polynomial up to 1, π/2 − atan(1 / |x|) above. Relative error 1e-6 in float32."""
    for lanes, (x,), store in rounds("atan", dst, [src], count, temp_buffer, 4):
        sign, result, room = lanes.sign(lanes.new(), x), lanes.new(), lanes.new()
        small = lanes.new()
        lanes.abs(x, x)
        lanes.at_least(room, x, 1.0)
        lanes.div(small, lanes.fill(small, 1.0), room)
        lanes.min(small, small, lanes.where(result, x, CMPMODE.LE, 1.0, x, small))
        _odd(lanes, result, small, room, _ATAN)
        lanes.adds(room, lanes.muls(room, result, -1.0), math.pi / 2)
        lanes.where(result, x, CMPMODE.LE, 1.0, result, room)
        store(lanes.mul(result, result, sign))
        lanes.free(sign, result, room, small)
