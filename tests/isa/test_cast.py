"""Conversions: every 16-bit source in every mode, float32 and wider on edges and at random, against integer arithmetic.

Two references, neither of which uses a cast of numpy's: `exact.cast` with fractions, and for many values
`narrow_bits`, which works on sign, exponent and significand as integers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import exact
import numpy as np
import pytest
from isa_kit import read, stream, ub, write

from isa.faults import IsaFault
from isa.params import UnaryRepeatParams
from isa.types import (
    DTYPES,
    DType,
    RoundMode,
    bfloat16,
    float16,
    float32,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from isa.vector.dequantise import set_deq_scale
from isa.vector.fill import CAST_MODES, cast

NONE, RINT, FLOOR, CEIL, ROUND, TRUNC, ODD = RoundMode
INTEGRAL = {RINT, FLOOR, CEIL, ROUND, TRUNC}
TABLE = {
    (int8, float16): {NONE},
    (uint8, float16): {NONE},
    (int16, float16): INTEGRAL | {NONE},
    (int16, float32): {NONE},
    (float16, int8): INTEGRAL | {NONE},
    (float16, uint8): INTEGRAL | {NONE},
    (float16, int16): INTEGRAL,
    (float16, int32): INTEGRAL,
    (float16, float32): {NONE},
    (bfloat16, int32): INTEGRAL,
    (bfloat16, float32): {NONE},
    (int32, int16): {NONE},
    (int32, float32): INTEGRAL | {NONE},
    (int32, int64): {NONE},
    (int64, int32): {NONE},
    (int64, float32): INTEGRAL,
    (float32, int16): INTEGRAL,
    (float32, int32): INTEGRAL,
    (float32, int64): INTEGRAL,
    (float32, float16): INTEGRAL | {NONE, ODD},
    (float32, bfloat16): INTEGRAL,
    (float32, float32): INTEGRAL,
}
"""The specification's table of conversions; int4 and int32 to float16 (with a scale register, below) aside."""

WAYS = [
    (source, target, mode) for (source, target), modes in TABLE.items() for mode in sorted(modes)
]


def _id(way: Any) -> str:
    return "-".join(getattr(part, "name", str(part)) for part in way)


def convert(bits: Any, source: DType, target: DType, mode: RoundMode) -> Any:
    """Run the instruction on bit patterns and return bit patterns."""
    values = np.ascontiguousarray(bits, f"u{source.size}").view(source.numpy)
    count = len(values)
    pitch = -(-count * source.size // 32) * 32
    with stream(size=pitch + count * target.size + 32) as eager:
        src, dst = ub(source, 0, count), ub(target, pitch, count)
        write(eager, src, values)
        cast(dst, src, mode, count)
        return read(eager, dst).view(f"u{target.size}")


def reference(bits: Any, source: DType, target: DType, mode: RoundMode) -> Any:
    values = [
        exact.cast(exact.decode(source, int(pattern)), source, target, mode) for pattern in bits
    ]
    return np.array(values, f"u{target.size}")


def assert_same(got: Any, expected: Any, target: DType, bits: Any) -> None:
    """Compare bit patterns; NaN of any kind are alike."""
    wrong = got != expected
    if target.is_float():
        fmt = exact.FORMATS[target.name]
        magnitude = fmt.sign - 1
        wrong &= ~(((got & magnitude) > fmt.infinity) & ((expected & magnitude) > fmt.infinity))
    assert not wrong.any(), [
        (hex(bits[i]), hex(got[i]), hex(expected[i])) for i in np.flatnonzero(wrong)[:3]
    ]


def test_the_table() -> None:
    for pair, modes in CAST_MODES.items():
        if pair in TABLE:
            assert set(modes) == TABLE[pair], pair
    assert set(TABLE) <= set(CAST_MODES)
    assert set(CAST_MODES) - set(TABLE) == {(int32, float16)}


# ---- 16-bit and smaller sources, all of them ----------------------------------------------------


@pytest.mark.parametrize("way", [way for way in WAYS if way[0].size <= 2], ids=_id)
def test_every_narrow_source(way: tuple[DType, DType, RoundMode]) -> None:
    source, target, mode = way
    bits = np.arange(1 << (8 * source.size), dtype=f"u{source.size}")
    got = convert(bits, source, target, mode)
    if (source, target) == (float16, float32):
        expected = [
            struct.pack("<f", value) for (value,) in struct.iter_unpack("<e", bits.tobytes())
        ]
        fast = np.frombuffer(b"".join(expected), np.uint32)
    elif (source, target) == (bfloat16, float32):
        fast = bits.astype(np.uint32) << np.uint32(16)
    elif source.is_float():
        fast = _whole_bits(bits, source, target, mode)
    else:
        fast = _float_bits(bits.view(source.numpy).astype(np.int64), target, mode)
    assert_same(got, fast, target, bits)
    part = slice(
        None, None, 37 if source.size > 1 else 1
    )  # and a part of them by the slow reference
    assert_same(got[part], reference(bits[part], source, target, mode), target, bits[part])


def _float_bits(values: Any, target: DType, mode: RoundMode) -> Any:
    """Return small whole numbers as float bit patterns, by shifting significands."""
    fmt = exact.FORMATS[target.name]
    magnitude = np.abs(values)
    length = sum((magnitude >> k > 0).astype(np.int64) for k in range(17))
    place = np.maximum(length - 1 - fmt.mantissa, 1 - fmt.bias - fmt.mantissa)
    right, left = np.maximum(place, 0), np.clip(-place, 0, 40)
    units = (magnitude << left) >> right
    rest = magnitude & ((1 << right) - 1)
    units += _up(units, rest, (1 << right) >> 1, mode, values < 0)
    pattern = ((place + fmt.bias + fmt.mantissa - 1) << fmt.mantissa) + units
    pattern = np.where(magnitude > 0, pattern | np.where(values < 0, fmt.sign, 0), 0)
    return pattern.astype(f"u{target.size}")


def _whole_bits(bits: Any, source: DType, target: DType, mode: RoundMode) -> Any:
    """Return float bit patterns as saturated whole numbers, by shifting significands."""
    fmt = exact.FORMATS[source.name]
    wide = bits.astype(np.int64)
    negative = wide >= fmt.sign
    magnitude = wide & (fmt.sign - 1)
    exponent = magnitude >> fmt.mantissa
    significand = magnitude & ((1 << fmt.mantissa) - 1) | np.where(
        exponent > 0, 1 << fmt.mantissa, 0
    )
    shift = np.maximum(exponent, 1) - fmt.bias - fmt.mantissa  # the value is significand · 2^shift
    right = np.clip(-shift, 0, 40)
    units = (significand >> right) << np.clip(shift, 0, 24)
    rest = significand & ((1 << right) - 1)
    units += _up(units, rest, np.where(right > 0, 1 << np.maximum(right - 1, 0), 1), mode, negative)
    info = np.iinfo(target.numpy)
    top, bottom = int(info.max), int(info.min)
    huge = (shift > 24) | (magnitude == fmt.infinity)
    whole = np.where(negative, -units, units)
    whole = np.where(huge, np.where(negative, bottom, top), whole)
    whole = np.where(magnitude > fmt.infinity, 0, np.clip(whole, bottom, top))
    return whole.astype(target.numpy).view(f"u{target.size}")


def _up(units: Any, rest: Any, half: Any, mode: RoundMode, negative: Any) -> Any:
    """Return where a magnitude rounds up, `rest` of the last place (of which `half` is a half) left over."""
    inexact = rest > 0
    return {
        TRUNC: np.zeros_like(inexact),
        FLOOR: inexact & negative,
        CEIL: inexact & ~negative,
        ROUND: inexact & (rest >= half),
        ODD: inexact & (units % 2 == 0),
    }.get(mode, (rest > half) | ((rest == half) & inexact & (units % 2 == 1)))


# ---- float32 to 16 bits -------------------------------------------------------------------------


def narrow_bits(bits: Any, target: DType, mode: RoundMode) -> Any:
    """Return float32 bit patterns as float16 or bfloat16 ones, by shifting significands."""
    fmt = exact.FORMATS[target.name]
    wide = np.asarray(bits).astype(np.int64)
    negative = wide >= 1 << 31
    magnitude = wide & 0x7FFFFFFF
    exponent = magnitude >> 23
    significand = magnitude & 0x7FFFFF | np.where(exponent > 0, 1 << 23, 0)
    place = np.maximum(exponent, 1) - 127 - 23  # of the significand's last bit, as a power of two
    least = 1 - fmt.bias - fmt.mantissa  # of the target's smallest value
    new_place = np.maximum(place + 23 - fmt.mantissa, least)
    shift = np.minimum(new_place - place, 40)
    units = significand >> shift
    rest = significand & ((1 << shift) - 1)
    units += _up(units, rest, 1 << (shift - 1), mode, negative)
    pattern = ((new_place + fmt.bias + fmt.mantissa - 1) << fmt.mantissa) + units
    away = {TRUNC: False, ODD: False, FLOOR: negative, CEIL: ~negative}.get(mode, True)
    finite = exponent < 255
    pattern = np.where(
        (pattern >= fmt.infinity) & finite, fmt.infinity - 1 + np.asarray(away), pattern
    )
    pattern = np.where(finite, pattern, fmt.infinity + ((magnitude & 0x7FFFFF) > 0))
    return (pattern | np.where(negative, fmt.sign, 0)).astype(np.uint16)


def edges(target: DType) -> Any:
    """Return float32 patterns on, half way between, and next to the target's values, with both signs."""
    fmt = exact.FORMATS[target.name]
    rng = np.random.default_rng(12)
    chosen = [
        *range(40),
        *range((1 << fmt.mantissa) - 20, (1 << fmt.mantissa) + 20),
        *range((2 << fmt.mantissa) - 3, (2 << fmt.mantissa) + 3),
        *rng.integers(0, fmt.infinity, 2000).tolist(),
        *range(fmt.infinity - 40, fmt.infinity),
    ]
    wide = exact.FORMATS["float32"]
    patterns = set()
    for pattern in chosen:
        low = fmt.decode(pattern)
        high = fmt.decode(pattern + 1)
        if not exact.is_finite(high):
            high = 2 * low - fmt.decode(pattern - 1)  # where the next value would be
        for value in (low, (low + high) / 2, (low * 3 + high) / 4):
            at = wide.encode(value)
            patterns |= {at - 1, at, at + 1} if at else {at, at + 1}
    patterns |= {0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x7F800001, 1, 2, 0x007FFFFF, 0x00800000}
    positive = np.array(sorted(p for p in patterns if 0 <= p <= 0x7FFFFFFF), np.uint32)
    return np.concatenate([positive, positive | np.uint32(1 << 31)])


NARROWING = [way for way in WAYS if way[0] is float32 and way[1].size == 2 and way[1].is_float()]


@pytest.mark.parametrize("way", NARROWING, ids=_id)
def test_float32_to_16_bits_on_edges(way: tuple[DType, DType, RoundMode]) -> None:
    source, target, mode = way
    bits = edges(target)
    got = convert(bits, source, target, mode)
    assert_same(got, narrow_bits(bits, target, mode), target, bits)
    part = slice(None, None, 9)
    assert_same(got[part], reference(bits[part], source, target, mode), target, bits[part])


@pytest.mark.parametrize("way", NARROWING, ids=_id)
def test_float32_to_16_bits_at_random(way: tuple[DType, DType, RoundMode]) -> None:
    source, target, mode = way
    rng = np.random.default_rng(13)
    anything = rng.integers(0, 1 << 32, 500_000, np.uint32)
    moderate = (rng.standard_normal(500_000) * 100).astype(np.float32).view(np.uint32)
    for bits in (anything, moderate):  # the second without NaN
        assert_same(
            convert(bits, source, target, mode), narrow_bits(bits, target, mode), target, bits
        )


# ---- whole numbers ------------------------------------------------------------------------------


def whole_numbers(source: DType) -> Any:
    """Return bit patterns of wide integers: edges, powers of two and their neighbours, ties of 24 bits."""
    info = np.iinfo(source.numpy)
    rng = np.random.default_rng(14)
    values = {0, 1, -1, int(info.min), int(info.max), int(info.min) + 1, int(info.max) - 1}
    for power in range(1, 8 * source.size - 1):
        for step in (-1, 0, 1):
            values |= {(1 << power) + step, -(1 << power) + step}
        if power > 24:
            tie = (1 << power) + (1 << (power - 24))
            for base in (tie, tie + (1 << (power - 23))):
                values |= {base + step for step in (-1, 0, 1)} | {
                    -base + step for step in (-1, 0, 1)
                }
    values |= {int(v) for v in rng.integers(info.min, info.max, 1500, source.numpy)}
    for bits in range(3, 8 * source.size - 1):
        values |= {int(v) >> bits for v in rng.integers(info.min, info.max, 20, source.numpy)}
    inside = [value for value in sorted(values) if info.min <= value <= info.max]
    return np.array(inside, source.numpy).view(f"u{source.size}")


@pytest.mark.parametrize("way", [way for way in WAYS if way[0] in (int32, int64)], ids=_id)
def test_wide_integers(way: tuple[DType, DType, RoundMode]) -> None:
    source, target, mode = way
    bits = whole_numbers(source)
    assert_same(
        convert(bits, source, target, mode), reference(bits, source, target, mode), target, bits
    )


def float32_numbers() -> Any:
    """Return float32 patterns around whole numbers, halves and the limits of the integer types."""
    values: set[float] = {
        0.0,
        -0.0,
        0.49999997,
        0.5,
        0.50000006,
        1e-45,
        1e38,
        float("inf"),
        float("nan"),
    }
    for power in (7, 8, 15, 16, 22, 23, 24, 31, 32, 62, 63, 64):
        for step in (-1.5, -1, -0.5, 0, 0.5, 1, 1.5):
            values.add(float(2**power) + step)
    for whole in range(-6, 7):
        values |= {whole + part for part in (0, 0.25, 0.5, 0.75)}
    numbers = np.array([*values, *(-value for value in values)], np.float32)
    around = [
        numbers,
        np.nextafter(numbers, np.float32(np.inf)),
        np.nextafter(numbers, np.float32(-np.inf)),
    ]
    rng = np.random.default_rng(15)
    spread = (rng.standard_normal(800) * 10.0 ** rng.integers(-3, 20, 800)).astype(np.float32)
    with np.errstate(all="ignore"):
        return np.concatenate([*around, spread]).view(np.uint32)


@pytest.mark.parametrize(
    "way",
    [way for way in WAYS if way[0] is float32 and (not way[1].is_float() or way[1] is float32)],
    ids=_id,
)
def test_float32_to_whole_numbers(way: tuple[DType, DType, RoundMode]) -> None:
    source, target, mode = way
    bits = float32_numbers()
    assert_same(
        convert(bits, source, target, mode), reference(bits, source, target, mode), target, bits
    )


# ---- forms: types of unequal width share lanes --------------------------------------------------


def _forms() -> Iterator[Any]:
    for source, target in [
        (float16, float32),
        (float32, float16),
        (float16, int8),
        (int64, float32),
    ]:
        for mask in (1, 7, 9, 20, 33, 64, [0b1010011], [1 << 20, 0], [(1 << 63) | 1]):
            yield pytest.param(source, target, mask, id=f"{source}-{target}-{mask}")


@pytest.mark.parametrize(("source", "target", "mask"), list(_forms()))
def test_the_mask_counts_lanes_of_the_wider_type(source: DType, target: DType, mask: Any) -> None:
    lanes = 256 // max(source.size, target.size)
    mode = NONE if (source, target) != (int64, float32) else RINT
    if isinstance(mask, list) and lanes > 64 and len(mask) == 1:
        mask = [*mask, 1]
    blocks = {dtype: lanes * dtype.size // 32 for dtype in (source, target)}
    params = UnaryRepeatParams(1, 1, blocks[target], blocks[source])
    with stream(16) as eager:
        src, dst = ub(source, 0, 2 * lanes), ub(target, 4096, 2 * lanes)
        write(eager, src, np.arange(2 * lanes) % 100)
        before = read(eager, dst).view(f"u{target.size}")
        cast(dst, src, mode, mask, 2, params)
        after = read(eager, dst)
    word = mask if isinstance(mask, list) else [(1 << mask) - 1]
    bits = sum(part << (64 * place) for place, part in enumerate(word))
    for lane in range(2 * lanes):
        if bits >> (lane % lanes) & 1:
            assert after[lane] == lane % 100
        else:
            assert after.view(f"u{target.size}")[lane] == before[lane]


def test_narrowing_in_place_is_allowed_and_widening_is_not() -> None:
    with stream() as eager:
        wide, narrow = ub(float32, 0, 512), ub(float16, 0, 512)
        write(eager, wide, np.arange(512))
        cast(narrow, wide, NONE, 512)
        assert read(eager, narrow).tolist() == list(range(512))
        with pytest.raises(IsaFault, match=r"^cast: dst .* overlap"):
            cast(wide, narrow, NONE, 512)
        with pytest.raises(IsaFault, match=r"^cast: dst .* overlap"):
            cast(ub(float16, 64, 480), wide, NONE, 256)


# ---- refusals -----------------------------------------------------------------------------------


def test_other_pairs_and_modes_are_refused() -> None:
    known = {dtype for pair in CAST_MODES for dtype in pair}
    with stream():
        for source in DTYPES:
            for target in DTYPES:
                modes = CAST_MODES.get((source, target), ())
                for mode in set(RoundMode) - set(modes):
                    with pytest.raises(IsaFault) as caught:
                        cast(ub(target, 4096, 8), ub(source, 0, 8), mode, 8)
                    if not {source, target} <= known:
                        assert caught.value.code == "dtype-not-supported"
                    else:
                        assert caught.value.code == ("round-mode" if modes else "cast-pair")


# ---- int32 to float16, with the scale register --------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 0.5, -0.25, 3.0517578125e-05, 65504.0, 0.1])
def test_int32_to_float16_is_scaled_and_rounded_once(scale: float) -> None:
    rng = np.random.default_rng(7)
    widths = rng.integers(1, 31, 2048)
    values = (rng.integers(-(1 << 31), 1 << 31, 2048) >> (31 - widths)).astype(np.int32)
    values[:4] = 0, 1, -(1 << 31), (1 << 31) - 1
    with stream(size=32768) as eager:
        src, dst = ub(int32, 0, 2048), ub(float16, 16384, 2048)
        write(eager, src, values)
        set_deq_scale(scale)
        cast(dst, src, NONE, 2048)
        got = read(eager, dst).view(np.uint16)
    half = Fraction(float(np.float16(scale)))
    products = [exact.mul(Fraction(int(value)) or 0.0, half) for value in values]
    expected = [exact.encode(float16, product) for product in products]
    assert_same(got, np.array(expected, np.uint16), float16, values)


def test_a_new_scale_holds_for_the_same_operands() -> None:
    with stream() as eager:
        src, dst = ub(int32, 0, 64), ub(float16, 1024, 64)
        write(eager, src, np.arange(64))
        for scale in (1.0, 2.0):
            set_deq_scale(scale)
            cast(dst, src, NONE, 64)
            assert (read(eager, dst) == np.arange(64) * scale).all()


def test_int32_to_float16_needs_the_scale() -> None:
    with stream(), pytest.raises(IsaFault, match=r"call set_deq_scale\(scale\) before") as caught:
        cast(ub(float16, 1024, 64), ub(int32, 0, 64), NONE, 64)
    assert (caught.value.kind, caught.value.code) == ("ILLEGAL_PARAM", "deq-scale")
