"""Arithmetic in float16 and float32: one rounding, bit by bit, on many random patterns.

The references: float64 where that is exact (sums and products of float16) or wide enough (quotients, roots), exact
fractions for a sample, numpy's own float16 operations for the bits of what is not a number.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import exact
import numpy as np
import pytest
from isa_kit import function, read, stream, ub, write

from isa import numerics
from isa.types import DType, Space, float16, float32, int16, int32

MILLION = 1_000_000
CHUNK = 50_000
H = exact.FORMATS["float16"]
EDGES = [
    0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x8400, 0x0401, 0x3BFF, 0x3C00, 0xBC00, 0x3C01, 0x3555,
    0x4200, 0x6400, 0x6800, 0x6BFF, 0x7800, 0x7BFE, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFE00, 0x7C01, 0xFDFF,
]  # fmt: skip


def patterns(seed: int, count: int = MILLION) -> tuple[Any, Any]:
    """Return pairs of float16 bit patterns: random ones, exponents close to each other, and all pairs of edges."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 1 << 16, count, np.uint16)
    b = rng.integers(0, 1 << 16, count, np.uint16)
    close = rng.integers(0, 2, count).astype(
        bool
    )  # without, most sums only return the larger operand
    near = (a & 0x7C00) + (b & 0x83FF) + rng.integers(-2, 3, count) * 0x400
    b = np.where(close, near, b).astype(np.uint16)
    pairs = np.array(list(itertools.product(EDGES, EDGES)), np.uint16)
    return np.concatenate([a, pairs[:, 0]]), np.concatenate([b, pairs[:, 1]])


def halves(bits: Any) -> Any:
    return np.asarray(bits, np.uint16).view(np.float16)


def compute(name: str, *sources: Any, dtype: DType = float16) -> Any:
    """Run an instruction on arrays of the dtype's bits, chunk by chunk through UB, and return the result's bits."""
    unsigned = f"u{dtype.size}"
    size = (len(sources) + 1) * CHUNK * dtype.size
    parts = []
    with stream(size=size + 64) as eager:
        pitch = -(-CHUNK * dtype.size // 32) * 32
        for first in range(0, len(sources[0]), CHUNK):
            chunk = [source[first : first + CHUNK] for source in sources]
            count = len(chunk[0])
            tensors = [ub(dtype, pitch * i, count) for i in range(len(sources) + 1)]
            for tensor, values in zip(tensors[1:], chunk, strict=True):
                write(eager, tensor, values.view(dtype.numpy))
            function(name)(*tensors, count)
            parts.append(read(eager, tensors[0]).view(unsigned))
    return np.concatenate(parts)


def same_bits(got: Any, expected: Any) -> None:
    """Assert equal float16 bits where numbers are expected, and NaN where NaN are."""
    nan = (expected & 0x7FFF) > 0x7C00
    assert np.array_equal((got & 0x7FFF) > 0x7C00, nan)
    wrong = np.flatnonzero((got != expected) & ~nan)
    assert len(wrong) == 0, f"{len(wrong)} differ, first {wrong[0]}"


WIDE: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(WIDE))
def test_float16_rounds_once(name: str) -> None:
    a, b = patterns(1)
    with np.errstate(all="ignore"):
        wide = WIDE[name](halves(a).astype(np.float64), halves(b).astype(np.float64))
        expected = wide.astype(np.float16).view(np.uint16)
        native = WIDE[name](halves(a), halves(b)).view(np.uint16)
    got = compute(name, a, b)
    same_bits(got, expected)
    assert np.array_equal(got, native)  # with the bits of NaN


@pytest.mark.parametrize("name", sorted(WIDE))
def test_float16_rounds_as_fractions_do(name: str) -> None:
    a, b = (bits[-6000:] for bits in patterns(2, 20_000))
    lane = getattr(exact, name)
    expected = [
        H.encode(lane(exact.decode(float16, int(x)), exact.decode(float16, int(y))))
        for x, y in zip(a, b, strict=True)
    ]
    same_bits(compute(name, a, b), np.array(expected, np.uint16))


@pytest.mark.parametrize("name", sorted(WIDE))
def test_large_and_small_arrays_give_the_same_bits(name: str) -> None:
    # Without NaN, so that large arrays take the way through float32.
    a, b = patterns(3, 200_000)
    with np.errstate(all="ignore"):
        finite = ~np.isnan(WIDE[name](halves(a), halves(b)))
        a, b = halves(a[finite]), halves(b[finite])
        large = numerics.once_rounded(WIDE[name], a, b)
        native = WIDE[name](a, b)
    assert len(large) > numerics.MANY
    assert np.array_equal(large.view(np.uint16), native.view(np.uint16))


@pytest.mark.parametrize(
    ("name", "reference"), [("max", np.maximum), ("min", np.minimum)], ids=["max", "min"]
)
@pytest.mark.parametrize("nan", [True, False], ids=["with NaN", "without NaN"])
def test_extremes_are_numpys_bits(name: str, reference: Any, nan: bool) -> None:
    a, b = patterns(4)
    if not nan:
        numbers = ((a & 0x7FFF) <= 0x7C00) & ((b & 0x7FFF) <= 0x7C00)
        a, b = a[numbers], b[numbers]
    expected = reference(halves(a), halves(b)).view(np.uint16)
    assert np.array_equal(compute(name, a, b), expected)
    few = slice(0, 1000)  # small arrays go another way
    assert np.array_equal(compute(name, a[few], b[few]), expected[few])


def test_square_roots_of_all_float16() -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    expected = [H.encode(exact.sqrt(exact.decode(float16, int(x)))) for x in bits]
    same_bits(compute("sqrt", bits), np.array(expected, np.uint16))


@pytest.mark.parametrize("name", ["exp", "ln", "rsqrt", "reciprocal", "abs", "relu"])
def test_unary_instructions_on_all_float16(name: str) -> None:
    lane = {"abs": exact.absolute}.get(name) or getattr(exact, name)
    step = 3 if name in ("abs", "relu", "reciprocal") else 7  # 60 decimal digits take their time
    bits = np.arange(0, 1 << 16, step, dtype=np.uint16)
    expected = np.array([H.encode(lane(exact.decode(float16, int(x)))) for x in bits], np.uint16)
    got = compute(name, bits)
    same_bits(got, expected)


def random_floats(seed: int, count: int) -> Any:
    """Return float32 bit patterns: any, and ones of moderate size."""
    rng = np.random.default_rng(seed)
    anything = rng.integers(0, 1 << 32, count // 2, np.uint32)
    moderate = (rng.standard_normal(count - count // 2) * 8).astype(np.float32).view(np.uint32)
    return np.concatenate([anything, moderate])


@pytest.mark.parametrize("name", ["exp", "ln", "sqrt", "rsqrt", "reciprocal"])
def test_unary_instructions_on_float32(name: str) -> None:
    bits = random_floats(5, 3000)
    fmt = exact.FORMATS["float32"]
    lane = getattr(exact, name)
    expected = [fmt.encode(lane(exact.decode(float32, int(x)))) for x in bits]
    got = compute(name, bits, dtype=float32)
    distances = [
        abs(exact.ordered(float32, int(x)) - exact.ordered(float32, y))
        for x, y in zip(got, expected, strict=True)
        if not exact.is_nan(exact.decode(float32, y))
    ]
    assert max(distances) <= (0 if name in ("sqrt", "reciprocal") else 1)
    assert np.mean(np.array(distances) > 0) < 1e-3  # float64 rounded once misses next to never


@pytest.mark.parametrize("name", sorted(WIDE))
def test_float32_rounds_once(name: str) -> None:
    a, b = random_floats(6, 8000), random_floats(7, 8000)
    fmt = exact.FORMATS["float32"]
    lane = getattr(exact, name)
    expected = np.array(
        [
            fmt.encode(lane(exact.decode(float32, int(x)), exact.decode(float32, int(y))))
            for x, y in zip(a, b, strict=True)
        ],
        np.uint32,
    )
    got = compute(name, a, b, dtype=float32)
    nan = (expected & 0x7FFFFFFF) > 0x7F800000
    assert np.array_equal((got & 0x7FFFFFFF) > 0x7F800000, nan)
    assert np.array_equal(got[~nan], expected[~nan])


# ---- fused multiply-add -------------------------------------------------------------------------


def _near_ties(dtype: DType, count: int, seed: int) -> Any:
    """Return (a, b, c) patterns whose a · b + c is close to half way between two values of the type.

    c is a value, a · b half of its last place and a little more, less, or nothing.
    """
    fmt = exact.FORMATS[dtype.name]
    rng = np.random.default_rng(seed)
    rows = []
    while len(rows) < count:
        c = fmt.decode(int(rng.integers(1, fmt.infinity)))
        half = Fraction(2) ** (math.floor(math.log2(c)) - fmt.mantissa - 1)
        a = Fraction(int(rng.integers(1 << fmt.mantissa, 2 << fmt.mantissa)))
        a *= Fraction(2) ** int(rng.integers(-fmt.mantissa - 6, 6 - fmt.mantissa))
        target = half * int(rng.choice([1, 1, 3, -1, -3]))
        b = fmt.decode(fmt.encode(target / a))
        if not exact.is_finite(b) or not b:
            continue
        signs = rng.integers(0, 2, 2)
        c = -c if signs[0] else c
        rows.append([fmt.encode(a), fmt.encode(b), fmt.encode(c)])
    return np.array(rows, f"u{dtype.size}").T


def _fma_cases(dtype: DType) -> tuple[Any, Any, Any]:
    unsigned = f"u{dtype.size}"
    rng = np.random.default_rng(8)
    anything = rng.integers(0, 1 << (8 * dtype.size), (3, 2000), unsigned)
    edges = EDGES if dtype is float16 else [
        0, 1 << 31, 1, 0x007FFFFF, 0x00800000, 0x3F800000, 0x3F800001, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000,
        0x7FC00000, 0x34000000, 0x33800000, 0x4B800000,
    ]  # fmt: skip
    picked = np.array(edges, unsigned)[rng.integers(0, len(edges), (3, 2000))]
    ties = _near_ties(dtype, 2000, 9)
    cases = np.concatenate([anything, picked, ties], axis=1)
    return cases[0], cases[1], cases[2]


@pytest.mark.parametrize("dtype", [float16, float32], ids=str)
@pytest.mark.parametrize("name", ["mul_add_dst", "fused_mul_add", "fused_mul_add_relu"])
def test_fused_multiply_add_rounds_once(name: str, dtype: DType) -> None:
    a, b, c = _fma_cases(dtype)
    fmt = exact.FORMATS[dtype.name]
    expected = []
    for x, y, z in zip(a, b, c, strict=True):
        value = fmt.encode(exact.fma(*(exact.decode(dtype, int(bits)) for bits in (x, y, z))))
        if name.endswith("relu"):
            value = fmt.encode(exact.relu(exact.decode(dtype, value)))
        expected.append(value)
    # dst · src0 + src1 for the fused forms, src0 · src1 + dst for the other
    dst, src0, src1 = (c, a, b) if name == "mul_add_dst" else (b, a, c)
    got = _with_dst(name, dtype, dst, src0, src1)
    for index, want in enumerate(expected):
        if exact.is_nan(exact.decode(dtype, want)):
            assert exact.is_nan(exact.decode(dtype, int(got[index])))
        else:
            assert int(got[index]) == want, (hex(a[index]), hex(b[index]), hex(c[index]))


def _with_dst(name: str, dtype: DType, dst: Any, *sources: Any) -> Any:
    count = len(dst)
    pitch = -(-count * dtype.size // 32) * 32
    with stream(size=pitch * 3 + 64) as eager:
        tensors = [ub(dtype, pitch * i, count) for i in range(len(sources) + 1)]
        for tensor, values in zip(tensors, (dst, *sources), strict=True):
            write(eager, tensor, values.view(dtype.numpy))
        function(name)(*tensors, count)
        return read(eager, tensors[0]).view(f"u{dtype.size}")


def test_axpy_rounds_once_and_once_only_into_float32() -> None:
    # float16 source and scalar, float32 destination: the product is exact, the sum rounds to float32.
    rng = np.random.default_rng(10)
    bits = rng.integers(0, 1 << 16, 2000, np.uint16)
    start = random_floats(11, 2000)
    scalar = 0.33325  # not a float16: rounds to one first
    a = exact.decode(float16, H.encode(Fraction(scalar)))
    fmt = exact.FORMATS["float32"]
    with stream(size=16384) as eager:
        src, dst = ub(float16, 0, 2000), ub(float32, 4096, 2000)
        write(eager, src, halves(bits))
        write(eager, dst, start.view(np.float32))
        function("axpy")(dst, src, scalar, 2000)
        got = read(eager, dst).view(np.uint32)
    for x, y, z in zip(bits, start, got, strict=True):
        want = fmt.encode(
            exact.fma(exact.decode(float16, int(x)), a, exact.decode(float32, int(y)))
        )
        if not exact.is_nan(exact.decode(float32, want)):
            assert int(z) == want


# ---- details that are a choice ------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [float16, float32], ids=str)
@pytest.mark.parametrize("count", [4, 4000], ids=["few", "many"])
def test_zeros_and_nan_of_the_rectifiers(dtype: DType, count: int) -> None:
    values = np.resize(np.array([-0.0, 0.0, np.nan, -np.inf], dtype.numpy), count)
    with stream(size=count * 8 + 64) as eager:
        src = ub(dtype, 0, count)
        dst = ub(dtype, -(-count * dtype.size // 32) * 32, count)
        write(eager, src, values)
        function("relu")(dst, src, count)
        rectified = read(eager, dst)[:4]
        function("leaky_relu")(dst, src, 0.5, count)
        leaky = read(eager, dst)[:4]
    assert not np.signbit(rectified[:2]).any()  # -0 becomes +0
    assert np.isnan(rectified[2])
    assert rectified[3] == 0
    assert np.array_equal(np.signbit(leaky[:2]), [True, False])  # -0 stays
    assert np.isnan(leaky[2])
    assert leaky[3] == -np.inf


@pytest.mark.parametrize("dtype", [int16, int32], ids=str)
def test_integers_wrap_around(dtype: DType) -> None:
    limits = np.iinfo(dtype.numpy)
    with stream() as eager:
        a, b, dst = (ub(dtype, 1024 * i, 3) for i in range(3))
        write(eager, a, [limits.max, limits.min, limits.min])
        write(eager, b, [1, 1, limits.min])
        for name, expected in {
            "add": [limits.min, limits.min + 1, 0],
            "sub": [limits.max - 1, limits.max, 0],
            "mul": [limits.max, limits.min, 0],
        }.items():
            function(name)(dst, a, b, 3)
            assert read(eager, dst).tolist() == expected


def test_a_scalar_rounds_once_to_the_element_type() -> None:
    # 1 + 2^-8 + 2^-40 is just above half way in bfloat16; through float32 it would round down.
    from isa.types import bfloat16

    with stream() as eager:
        dst = ub(bfloat16, 0, 16)
        function("duplicate")(dst, 1 + 2.0**-8 + 2.0**-40, 16)
        assert eager.memories[Space.UB][:2].view(np.uint16)[0] == 0x3F81
        function("duplicate")(dst, 1 + 2.0**-8, 16)  # the tie itself goes to even
        assert eager.memories[Space.UB][:2].view(np.uint16)[0] == 0x3F80
        half = ub(float16, 64, 16)
        function("duplicate")(half, 1 + 2.0**-11 + 2.0**-40, 16)
        assert read(eager, half).view(np.uint16)[0] == 0x3C01
