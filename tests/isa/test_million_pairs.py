"""Half and bfloat16 arithmetic against whole numbers: a million pairs or triples each, every 16-bit value of the rest.

The reference writes a value as a whole number of the type's smallest steps, computes with Python's integers, and rounds
by shifting. No floating-point operation takes part in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import exact
import ml_dtypes
import numpy as np
import pytest
from isa_kit import function, read, stream, ub, write

import ascend_sim as sim
from ascend_sim import asc
from isa.types import DType, bfloat16, float16, int8

pytestmark = pytest.mark.slow

MILLION = 1_000_000
CHUNK = 32_768


class Format:
    """A 16-bit floating type: bits of its mantissa, and the exponent of its smallest step."""

    def __init__(self, mantissa: int, smallest: int) -> None:
        self.mantissa = mantissa
        self.smallest = smallest
        self.infinity = 0x7FFF ^ ((1 << mantissa) - 1)

    def steps(self, bits: int) -> int:
        """Return a finite value as a whole number of smallest steps."""
        magnitude, exponent = bits & ((1 << self.mantissa) - 1), (bits & 0x7FFF) >> self.mantissa
        if exponent:
            magnitude = (magnitude | 1 << self.mantissa) << (exponent - 1)
        return -magnitude if bits & 0x8000 else magnitude

    def round(self, value: int, unit: int) -> int:
        """Return the bits of `value` · 2^`unit`, rounded once to the nearest, ties to even; zero is positive."""
        sign, rest = (0x8000, -value) if value < 0 else (0, value)
        width = rest.bit_length() - 1 - self.mantissa  # bits below the last one that stays
        drop = max(width, self.smallest - unit)
        if drop <= 0:
            kept = rest << -drop
        else:
            kept, tail, half = rest >> drop, rest & ((1 << drop) - 1), 1 << (drop - 1)
            kept += tail > half or (tail == half and kept & 1)
        exponent = max(
            drop + unit - self.smallest, 0
        )  # steps of the kept number, above the smallest
        bits = kept + (exponent << self.mantissa)
        return sign | min(bits, self.infinity)


HALF = Format(10, -24)
BRAIN = Format(7, -133)


def test_the_reference_itself() -> None:
    """Against exact fractions, on edges and at random."""
    for fmt, dtype in ((HALF, float16), (BRAIN, bfloat16)):
        infinity = exact.FORMATS[dtype.name].infinity
        assert fmt.infinity == infinity
        for bits in (*range(0, infinity, 97), 1, infinity - 1):
            value = exact.decode(dtype, bits)
            assert fmt.steps(bits) * exact.Fraction(2) ** fmt.smallest == value
            assert fmt.round(fmt.steps(bits), fmt.smallest) == bits
            odd = 2 * fmt.steps(bits) + 1  # half way, or as near as the format gets
            want = exact.encode(dtype, odd * exact.Fraction(2) ** (fmt.smallest - 1))
            assert fmt.round(odd, fmt.smallest - 1) == want


def finite(rng: np.random.Generator, fmt: Format, count: int) -> Any:
    """Return bit patterns of finite values."""
    bits = rng.integers(0, fmt.infinity, count).astype(np.uint16)
    return bits | (rng.integers(0, 2, count) << 15).astype(np.uint16)


def near(rng: np.random.Generator, fmt: Format, bits: Any) -> Any:
    """Return values whose exponents are close to those of `bits`: sums and ties that matter."""
    shift = rng.integers(-fmt.mantissa - 3, fmt.mantissa + 4, len(bits)) << fmt.mantissa
    moved = np.clip((bits & 0x7FFF).astype(np.int64) + shift, 0, fmt.infinity - 1)
    noise = rng.integers(0, 1 << fmt.mantissa, len(bits))
    moved = np.clip(moved ^ noise * rng.integers(0, 2, len(bits)), 0, fmt.infinity - 1)
    return (moved | rng.integers(0, 2, len(bits)) << 15).astype(np.uint16)


def run(
    name: str, arrays: list[Any], *scalar: Any, dst: Any = None, target: DType = float16
) -> Any:
    """Run an instruction on bit patterns of float16, chunk by chunk, and return the result's bits."""
    parts = []
    pitch = CHUNK * 2
    with stream(size=pitch * 4) as eager:
        for first in range(0, len(arrays[0]), CHUNK):
            chunk = [array[first : first + CHUNK] for array in arrays]
            count = len(chunk[0])
            out = ub(target, 0, count)
            sources = [ub(float16, pitch * (i + 1), count) for i in range(len(chunk))]
            for tensor, bits in zip(sources, chunk, strict=True):
                write(eager, tensor, bits.view(np.float16))
            if dst is not None:
                write(eager, out, dst[first : first + count].view(np.float16))
            call: Callable[..., Any] = getattr(asc, name, None) or function(name)
            call(out, *sources, *scalar, count)
            parts.append(read(eager, out).view(f"u{target.size}"))
    return np.concatenate(parts)


def agree(got: Any, want: Any) -> None:
    """Assert equal bits; zeros may differ in sign, which other tests look at."""
    wrong = np.flatnonzero((got != want) & ~(((got | want) & 0x7FFF) == 0))
    assert len(wrong) == 0, (
        f"{len(wrong)} differ, first {wrong[0]}: {got[wrong[0]]:#x}, not {want[wrong[0]]:#x}"
    )


def steps_of(bits: Any, fmt: Format = HALF) -> list[int]:
    table = [fmt.steps(pattern) for pattern in range(1 << 16)]
    return [table[pattern] for pattern in bits.tolist()]


def _relu(bits: int) -> int:
    return 0 if bits & 0x8000 else bits


PAIRS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: HALF.round(a + b, -24),
    "sub": lambda a, b: HALF.round(a - b, -24),
    "mul": lambda a, b: HALF.round(a * b, -48),
    "add_relu": lambda a, b: _relu(HALF.round(a + b, -24)),
    "sub_relu": lambda a, b: _relu(HALF.round(a - b, -24)),
}


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_a_million_pairs(name: str) -> None:
    rng = np.random.default_rng(31)
    a = finite(rng, HALF, MILLION)
    b = np.where(rng.integers(0, 2, MILLION) == 1, near(rng, HALF, a), finite(rng, HALF, MILLION))
    lane = PAIRS[name]
    want = [lane(x, y) for x, y in zip(steps_of(a), steps_of(b), strict=True)]
    agree(run(name, [a, b]), np.array(want, np.uint16))


@pytest.mark.parametrize("name", ["mul_add_dst", "fused_mul_add", "fused_mul_add_relu", "axpy"])
def test_a_million_triples(name: str) -> None:
    rng = np.random.default_rng(32)
    a, c = finite(rng, HALF, MILLION), finite(rng, HALF, MILLION)
    scalar = 0.3330078125 if name == "axpy" else None
    if scalar is not None:
        b = np.full(MILLION, np.float16(scalar).view(np.uint16))
        c = np.where(rng.integers(0, 2, MILLION) == 1, near(rng, HALF, a), c).astype(np.uint16)
    else:  # a · b close to c
        with np.errstate(all="ignore"):
            wanted = near(rng, HALF, c).view(np.float16) / a.view(np.float16)
        b = np.where(np.isfinite(wanted), wanted.view(np.uint16), finite(rng, HALF, MILLION))
    exact_sums = (
        x * y + (z << 24) for x, y, z in zip(steps_of(a), steps_of(b), steps_of(c), strict=True)
    )
    want = [HALF.round(total, -48) for total in exact_sums]
    if name.endswith("relu"):
        want = [_relu(bits) for bits in want]
    if scalar is not None:
        got = run(name, [a], scalar, dst=c)
    elif name == "mul_add_dst":
        got = run(name, [a, b], dst=c)
    else:  # dst · src0 + src1
        got = run(name, [a, c], dst=b)
    agree(got, np.array(want, np.uint16))


SCALARS = [
    0.0,
    1.0,
    -1.0,
    0.333251953125,
    -2.5,
    65504.0,
    6e-8,
    1.0009765625,
    0.125,
    -6.1e-5,
    2049 / 2048,
    3.0,
]

WITH_SCALAR: dict[str, Callable[[int, int], int]] = {
    "adds": PAIRS["add"],
    "muls": PAIRS["mul"],
    "maxs": lambda a, s: HALF.round(max(a, s), -24),
    "mins": lambda a, s: HALF.round(min(a, s), -24),
    "leaky_relu": lambda a, s: HALF.round(a, -24) if a >= 0 else HALF.round(a * s, -48),
}


@pytest.mark.parametrize("name", sorted(WITH_SCALAR))
@pytest.mark.parametrize("scalar", SCALARS)
def test_every_half_with_a_scalar(name: str, scalar: float) -> None:
    bits = np.array([b for b in range(1 << 16) if (b & 0x7FFF) < 0x7C00], np.uint16)
    step = HALF.steps(int(np.float16(scalar).view(np.uint16)))
    want = [WITH_SCALAR[name](x, step) for x in steps_of(bits)]
    agree(run(name, [bits], scalar), np.array(want, np.uint16))


@pytest.mark.parametrize("name", ["exp", "ln", "rsqrt", "reciprocal", "abs", "relu"])
def test_every_half(name: str) -> None:
    lane = {"abs": exact.absolute}.get(name) or getattr(exact, name)
    bits = np.arange(1 << 16, dtype=np.uint16)
    want = [
        exact.encode(float16, lane(exact.decode(float16, pattern))) for pattern in range(1 << 16)
    ]
    got, expected = run(name, [bits]), np.array(want, np.uint16)
    nan = (expected & 0x7FFF) > 0x7C00
    assert np.array_equal((got & 0x7FFF) > 0x7C00, nan)
    assert np.array_equal(got[~nan], expected[~nan])


@pytest.mark.parametrize("name", ["mul_cast", "add_relu_cast", "sub_relu_cast"])
def test_a_million_pairs_into_int8(name: str) -> None:
    """The half result is rounded, then converted to the nearest integer, ties to even, saturated."""
    rng = np.random.default_rng(33)
    size = (
        rng.uniform(-9, 9, (2, MILLION))
        if name == "mul_cast"
        else rng.uniform(-90, 90, (2, MILLION))
    )
    a, b = size.astype(np.float16).view(np.uint16)
    lane = PAIRS[name.removesuffix("_cast")]
    want = []
    for x, y in zip(steps_of(a), steps_of(b), strict=True):
        steps = HALF.steps(lane(x, y))
        whole, rest = divmod(steps, 1 << 24)
        whole += rest > 1 << 23 or (rest == 1 << 23 and whole & 1)
        want.append(min(max(whole, -128), 127) & 0xFF)
    assert np.array_equal(run(name, [a, b], target=int8), np.array(want, np.uint8))


# ---- bfloat16: the only sums it has are those of stores ------------------------------------------


@asc.jit(auto_sync=False)
def add_into(x, z, tiles: int, tile: asc.ConstExpr[int]):
    x_gm, z_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    z_gm.set_global_buffer(z)
    local = asc.LocalTensor(x.dtype, asc.TPosition.VECIN, 0, tile)
    asc.set_atomic_add(z.dtype)
    for index in range(tiles):
        asc.data_copy(local, x_gm[index * tile :], tile)
        asc.set_flag(asc.HardEvent.MTE2_MTE3, 0)
        asc.wait_flag(asc.HardEvent.MTE2_MTE3, 0)
        asc.data_copy(z_gm[index * tile :], local, tile)
        asc.set_flag(asc.HardEvent.MTE3_MTE2, 0)
        asc.wait_flag(asc.HardEvent.MTE3_MTE2, 0)
    asc.set_atomic_none()


@pytest.mark.parametrize(
    ("fmt", "dtype"), [(HALF, np.float16), (BRAIN, ml_dtypes.bfloat16)], ids=["half", "bf16"]
)
def test_a_million_atomic_sums(fmt: Format, dtype: Any) -> None:
    rng = np.random.default_rng(34)
    tiles, tile = 31, 32_768
    count = tiles * tile
    a = finite(rng, fmt, count)
    b = np.where(rng.integers(0, 2, count) == 1, near(rng, fmt, a), finite(rng, fmt, count)).astype(
        np.uint16
    )
    z = b.copy().view(dtype)
    sim.launch(add_into, a.view(dtype), z, tiles, tile, chip="toy")
    sums = zip(steps_of(a, fmt), steps_of(b, fmt), strict=True)
    want = [fmt.round(x + y, fmt.smallest) for x, y in sums]
    agree(z.view(np.uint16), np.array(want, np.uint16))
    assert count >= MILLION
