"""Numbers as bit patterns, with exact arithmetic: the reference that the instruction set is held against.

Nothing here uses numpy's or ml_dtypes' arithmetic or casts. A value is a `Fraction`, an infinity or NaN, or -0.0 for
the negative zero; an integer type's value is an `int`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from typing import Any

from isa.types import DType, RoundMode

Value = Any


@dataclass(frozen=True)
class Format:
    """A binary floating format: `exponent` and `mantissa` bits beside the sign."""

    exponent: int
    mantissa: int

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent) - 1) << self.mantissa

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    def decode(self, pattern: int) -> Value:
        """Return the value of a bit pattern."""
        negative = bool(pattern & self.sign)
        magnitude = pattern & (self.sign - 1)
        exponent, mantissa = magnitude >> self.mantissa, magnitude & ((1 << self.mantissa) - 1)
        if magnitude >= self.infinity:
            return math.nan if mantissa else -math.inf if negative else math.inf
        if exponent:
            mantissa += 1 << self.mantissa
        power = max(exponent, 1) - self.bias - self.mantissa
        value = Fraction(mantissa) * Fraction(2) ** power
        if not value:
            return -0.0 if negative else Fraction(0)
        return -value if negative else value

    def encode(self, value: Value, mode: RoundMode = RoundMode.CAST_RINT) -> int:
        """Return the bit pattern of a value, rounded in a mode; a NaN gives the quiet one."""
        if isinstance(value, float):
            if math.isnan(value):
                return self.infinity | 1 << (self.mantissa - 1)
            if math.isinf(value):
                return self.infinity | (self.sign if value < 0 else 0)
            if value == 0:
                return self.sign if math.copysign(1, value) < 0 else 0
            value = Fraction(value)
        value = Fraction(value)
        if not value:
            return 0
        negative, magnitude = value < 0, abs(value)
        power = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
        if magnitude < Fraction(2) ** power:
            power -= 1
        power = max(power, 1 - self.bias) - self.mantissa  # of the last place
        units, rest = divmod(magnitude / Fraction(2) ** power, 1)
        units += _step(int(units), rest, mode, negative=negative)
        biased = (
            power + self.mantissa + self.bias
        )  # as if normal; a carry into the exponent is right
        pattern = ((biased - 1) << self.mantissa) + int(units)
        if pattern >= self.infinity:
            grows = {
                RoundMode.CAST_TRUNC: False,
                RoundMode.CAST_ODD: False,
                RoundMode.CAST_FLOOR: negative,
                RoundMode.CAST_CEIL: not negative,
            }.get(mode, True)
            pattern = self.infinity if grows else self.infinity - 1
        return pattern | (self.sign if negative else 0)


def _step(units: int, rest: Fraction, mode: RoundMode, *, negative: bool) -> int:
    """Return 1 where the magnitude rounds up from `units`, with `rest` of the last place left over."""
    half = Fraction(1, 2)
    if not rest or mode is RoundMode.CAST_TRUNC:
        return 0
    if mode is RoundMode.CAST_FLOOR:
        return int(negative)
    if mode is RoundMode.CAST_CEIL:
        return int(not negative)
    if mode is RoundMode.CAST_ODD:
        return int(units % 2 == 0)
    if mode is RoundMode.CAST_ROUND:
        return int(rest >= half)
    return int(rest > half or (rest == half and units % 2 == 1))


FORMATS = {"float16": Format(5, 10), "bfloat16": Format(8, 7), "float32": Format(8, 23)}


def bits_of(dtype: DType) -> int:
    """Return the width of a type."""
    return 8 * dtype.size


@cache
def decode(dtype: DType, pattern: int) -> Value:
    """Return the value of a bit pattern of any storage type."""
    if dtype.name in FORMATS:
        return FORMATS[dtype.name].decode(pattern)
    if dtype.is_signed() and pattern >> (bits_of(dtype) - 1):
        return pattern - (1 << bits_of(dtype))
    return pattern


def encode(dtype: DType, value: Value, mode: RoundMode = RoundMode.CAST_RINT) -> int:
    """Return the bit pattern of a value in any storage type: floats round, integers wrap around."""
    if dtype.name in FORMATS:
        return FORMATS[dtype.name].encode(value, mode)
    return int(value) & ((1 << bits_of(dtype)) - 1)


def is_nan(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)


def is_finite(value: Value) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def sign(value: Value) -> int:
    """Return -1 or 1; the sign of a zero counts."""
    return int(math.copysign(1, value)) if isinstance(value, float) else -1 if value < 0 else 1


def add(a: Value, b: Value) -> Value:
    """Return a + b: an exact zero is positive unless both are negative zeros."""
    if not (is_finite(a) and is_finite(b)):
        return float(a if not is_finite(a) else 0) + float(b if not is_finite(b) else 0)
    if not a and not b and sign(a) < 0 and sign(b) < 0:
        return -0.0
    return Fraction(a) + Fraction(b)


def negate(a: Value) -> Value:
    if isinstance(a, float):
        return -a
    return -a if a else -0.0


def sub(a: Value, b: Value) -> Value:
    return add(a, negate(b))


def mul(a: Value, b: Value) -> Value:
    negative = sign(a) != sign(b)
    if is_nan(a) or is_nan(b):
        return math.nan
    if not (is_finite(a) and is_finite(b)):
        if not a or not b:
            return math.nan
        return -math.inf if negative else math.inf
    product = Fraction(a) * Fraction(b)
    return product if product or not negative else -0.0


def div(a: Value, b: Value) -> Value:
    negative = sign(a) != sign(b)
    if is_nan(a) or is_nan(b) or (not is_finite(a) and not is_finite(b)) or (not a and not b):
        return math.nan
    if not is_finite(a) or not b:
        return -math.inf if negative else math.inf
    if not is_finite(b) or not a:
        return -0.0 if negative else Fraction(0)
    return Fraction(a) / Fraction(b)


def fma(a: Value, b: Value, c: Value) -> Value:
    return add(mul(a, b), c)


def maximum(a: Value, b: Value) -> Value:
    """Return the larger; NaN wins, the first stays on a tie."""
    if is_nan(a) or is_nan(b):
        return math.nan
    return a if a >= b else b


def minimum(a: Value, b: Value) -> Value:
    """Return the smaller; NaN wins, the first stays on a tie."""
    if is_nan(a) or is_nan(b):
        return math.nan
    return a if a <= b else b


def relu(a: Value) -> Value:
    """Return max(a, 0): no negative zero, NaN stays."""
    if is_nan(a):
        return a
    return a if a > 0 else Fraction(0)


_DECIMAL = Context(prec=60, Emax=10**9, Emin=-(10**9))


def _decimal(value: Fraction) -> Decimal:
    return _DECIMAL.divide(Decimal(value.numerator), Decimal(value.denominator))


def exp(a: Value) -> Value:
    if not is_finite(a):
        return a if is_nan(a) or a > 0 else Fraction(0)
    if a > 200:
        return math.inf
    return Fraction(_DECIMAL.exp(_decimal(Fraction(max(a, -200)))))


def ln(a: Value) -> Value:
    if is_nan(a) or a < 0:
        return math.nan
    if not a:
        return -math.inf
    return a if not is_finite(a) else Fraction(_DECIMAL.ln(_decimal(a)))


def sqrt(a: Value) -> Value:
    if is_nan(a) or a < 0:
        return math.nan
    if not a or not is_finite(a):
        return a
    return Fraction(_DECIMAL.sqrt(_decimal(a)))


def reciprocal(a: Value) -> Value:
    return div(Fraction(1), a)


def rsqrt(a: Value) -> Value:
    root = sqrt(a)
    return reciprocal(root)


def absolute(a: Value) -> Value:
    return negate(a) if not is_nan(a) and sign(a) < 0 else a


def to_whole(value: Value, mode: RoundMode) -> Value:
    """Return a value rounded to a whole number; zeros keep the sign of what they come from."""
    if not is_finite(value) or not value:
        return value
    magnitude = abs(value)
    units, rest = divmod(magnitude, 1)
    units += _step(int(units), Fraction(rest), mode, negative=value < 0)
    if not units:
        return -0.0 if value < 0 else Fraction(0)
    return -units if value < 0 else units


def cast(value: Value, source: DType, target: DType, mode: RoundMode) -> int:
    """Return the target's bit pattern of a converted value: integers saturate, NaN becomes 0 there."""
    if target.name in FORMATS:
        if source.name == target.name:
            value = to_whole(value, mode)
        return encode(target, value, mode)
    if is_nan(value):
        return 0
    bits = bits_of(target)
    low, high = (
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if target.is_signed() else (0, (1 << bits) - 1)
    )
    if not is_finite(value):
        return encode(target, high if value > 0 else low)
    whole = to_whole(Fraction(value), mode)
    return encode(target, max(low, min(high, int(whole))))


Operation = Callable[..., Value]


def ordered(dtype: DType, pattern: int) -> int:
    """Return an integer that counts a floating type's values in order, for distances in last places."""
    fmt = FORMATS[dtype.name]
    magnitude = pattern & (fmt.sign - 1)
    return -magnitude if pattern & fmt.sign else magnitude
