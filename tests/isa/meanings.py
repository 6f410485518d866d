"""What each vector instruction computes on one lane, in exact arithmetic; and which types it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import exact

from isa.types import (
    DType,
    bfloat16,
    float16,
    float32,
    int16,
    int32,
    uint16,
    uint32,
)

# The specification's letters.
S, US, INT, U = int16, uint16, int32, uint32
H, F, B = float16, float32, bfloat16


@dataclass(frozen=True)
class Meaning:
    """One instruction: `kind` is its calling form, `types` (sources, destination), `lane` works on values.

    `lane` gets the sources' values (a scalar last, then dst's where `reads_dst`). `tolerance` is in last places.
    """

    kind: str
    types: tuple[tuple[DType, DType], ...]
    lane: Callable[..., Any]
    reads_dst: bool = False
    accumulates: tuple[DType, ...] = ()
    tolerance: int = 0
    on_bits: bool = False


def _same(*types: DType) -> tuple[tuple[DType, DType], ...]:
    return tuple((dtype, dtype) for dtype in types)


def _leaky(x: Any, alpha: Any) -> Any:
    if exact.is_nan(x):
        return x
    return x if x >= 0 else exact.mul(x, alpha)


def _rounded_relu(operation: Callable[..., Any]) -> Callable[..., Any]:
    def lane(a: Any, b: Any) -> Any:
        return RoundThen(operation(a, b), exact.relu)

    return lane


@dataclass(frozen=True)
class RoundThen:
    """A value to be rounded to the destination's type before `then` is applied to it."""

    value: Any
    then: Callable[[Any], Any]


_SUMS = (H, INT, F)
_WIDE = ((H, F),)

MEANINGS: dict[str, Meaning] = {
    "add": Meaning("binary", _same(S, H, INT, F), exact.add, accumulates=_SUMS),
    "sub": Meaning("binary", _same(S, H, INT, F), exact.sub, accumulates=_SUMS),
    "mul": Meaning("binary", _same(S, H, INT, F), exact.mul, accumulates=_SUMS),
    "max": Meaning("binary", _same(S, H, INT, F), exact.maximum, accumulates=_SUMS),
    "min": Meaning("binary", _same(S, H, INT, F), exact.minimum, accumulates=_SUMS),
    "div": Meaning("binary", _same(H, F), exact.div),
    "bitwise_and": Meaning("binary", _same(S, US), lambda a, b: a & b),
    "bitwise_or": Meaning("binary", _same(S, US), lambda a, b: a | b),
    "add_relu": Meaning("binary", _same(S, H, F), _rounded_relu(exact.add), accumulates=(H, F)),
    "sub_relu": Meaning("binary", _same(S, H, F), _rounded_relu(exact.sub), accumulates=(H, F)),
    "mul_add_dst": Meaning("binary", _same(H, F) + _WIDE, exact.fma, reads_dst=True),
    "fused_mul_add": Meaning(
        "binary", _same(H, F), lambda a, b, d: exact.fma(a, d, b), reads_dst=True
    ),
    "fused_mul_add_relu": Meaning(
        "binary",
        _same(H, F),
        lambda a, b, d: RoundThen(exact.fma(a, d, b), exact.relu),
        reads_dst=True,
    ),
    "adds": Meaning("scalar", _same(S, H, INT, F), exact.add),
    "muls": Meaning("scalar", _same(S, H, INT, F), exact.mul),
    "maxs": Meaning("scalar", _same(S, H, INT, F), exact.maximum),
    "mins": Meaning("scalar", _same(S, H, INT, F), exact.minimum),
    "leaky_relu": Meaning("scalar", _same(H, F), _leaky),
    "axpy": Meaning(
        "scalar", _same(H, F) + _WIDE, lambda x, a, d: exact.fma(x, a, d), reads_dst=True
    ),
    "shift_left": Meaning("shift", _same(S, US, INT, U), lambda x, n: x << int(n)),
    "shift_right": Meaning("shift", _same(S, US, INT, U), lambda x, n: x >> int(n)),
    "exp": Meaning("unary", _same(H, F), exact.exp, tolerance=1),
    "ln": Meaning("unary", _same(H, F), exact.ln, tolerance=1),
    "abs": Meaning("unary", _same(H, F), exact.absolute),
    "sqrt": Meaning("unary", _same(H, F), exact.sqrt),
    "rsqrt": Meaning("unary", _same(H, F), exact.rsqrt, tolerance=1),
    "reciprocal": Meaning("unary", _same(H, F), exact.reciprocal),
    "relu": Meaning("unary", _same(H, INT, F), exact.relu),
    "bitwise_not": Meaning("unary", _same(S, US), lambda a: ~a),
    "duplicate": Meaning("fill", _same(S, US, H, B, INT, U, F), lambda scalar: scalar),
    "copy": Meaning("copy", _same(S, US, H, B, INT, U, F), lambda a: a, on_bits=True),
}
"""Everything but cast (its table is in the tests of it) and the data copies."""


def lane_bits(meaning: Meaning, source: DType, target: DType, *patterns: int) -> int:
    """Return the destination's bit pattern for the sources' (and dst's, last, where the instruction reads it)."""
    if meaning.on_bits:
        return patterns[0]
    types = [source] * len(patterns)
    if meaning.reads_dst:
        types[-1] = target
    values = [exact.decode(dtype, bits) for dtype, bits in zip(types, patterns, strict=True)]
    result = meaning.lane(*values)
    if isinstance(result, RoundThen):
        rounded = exact.encode(target, result.value)
        result = result.then(exact.decode(target, rounded))
    return exact.encode(target, result)
