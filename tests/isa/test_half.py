"""Conversions of 16-bit floats: the same bits whichever way they go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from isa import half
from isa.types import DType, bfloat16, float16

PATTERNS = np.arange(65536, dtype=np.uint16)
SETS = (
    "graniteamx",
    "sapphireamx",
    "sapphire",
    "turin",
    "genoa",
    "icelake",
    "skylake",
    "alder",
    "haswell",
)
"""Instruction sets by which the library chooses its code, the newest first."""


@pytest.fixture(params=["all", "older", "oldest", "none"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """One of the ways: all of the host's instructions, without the newest, without any, without the library."""
    if request.param == "none":
        monkeypatch.setattr(half, "numkong", None)
    elif half.numkong is None:
        pytest.skip("no NumKong on this machine")
    there = half.numkong.get_capabilities() if half.numkong is not None else {}
    names = {"older": SETS[:6], "oldest": SETS}.get(request.param, ())
    off = [name for name in names if there.get(name)]
    for name in off:
        half.numkong.disable_capability(name)
    yield request.param
    for name in off:
        half.numkong.enable_capability(name)


def float32_samples() -> np.ndarray[Any, np.dtype[np.float32]]:
    """All classes of float32: random patterns, subnormal ones, and all ties and neighbours of ties of both types."""
    random = np.random.default_rng(3)
    patterns = random.integers(0, 1 << 32, 1 << 18, dtype=np.uint32)
    small = random.integers(0, 1 << 23, 1 << 14, dtype=np.uint32)
    halves = PATTERNS.view(np.float16).astype(np.float32).view(np.uint32)
    shorts = PATTERNS.astype(np.uint32) << 16
    around = [base + np.uint32(step) for base, tie in ((halves, 0x1000), (shorts, 0x8000))
              for step in (0, tie - 1, tie, tie + 1)]  # fmt: skip
    tiny = np.ldexp(random.integers(-4096, 4096, 1 << 14).astype(np.float32), -35).view(np.uint32)
    return np.concatenate([patterns, small, small | 1 << 31, tiny, *around]).view(np.float32)


@pytest.mark.parametrize("dtype", [float16, bfloat16])
def test_every_16_bit_value_is_widened_exactly(way: str, dtype: DType) -> None:
    values = PATTERNS.view(dtype.numpy)
    with np.errstate(all="ignore"):
        expected = values.astype(np.float32)
    wide = half.widen(values)
    nan = np.isnan(expected)
    assert np.array_equal(np.isnan(wide), nan)
    assert np.array_equal(wide.view(np.uint32)[~nan], expected.view(np.uint32)[~nan])


@pytest.mark.parametrize("dtype", [float16, bfloat16])
def test_float32_is_rounded_to_nearest_even(way: str, dtype: DType) -> None:
    values = float32_samples()
    with np.errstate(all="ignore"):
        expected = values.astype(dtype.numpy).view(np.uint16)
        finite = values[~np.isnan(values)]
        assert np.array_equal(
            half.narrow(finite, dtype).view(np.uint16), finite.astype(dtype.numpy).view(np.uint16)
        )
        assert np.array_equal(half.narrow(values, dtype).view(np.uint16), expected)


@pytest.mark.parametrize("dtype", [float16, bfloat16])
@pytest.mark.parametrize("size", [0, 1, 47, 48, 300])
def test_any_size_and_any_strides(way: str, dtype: DType, size: int) -> None:
    values = np.random.default_rng(4).normal(size=(3, 2 * size)).astype(np.float32)
    short = values.astype(dtype.numpy)
    every_second, read_only = short[:, ::2], short[:, :size]
    read_only.flags.writeable = False
    for some in (short, every_second, read_only, short.reshape(3, 2, size)):
        wide = half.widen(some)
        assert wide.dtype == np.float32
        assert np.array_equal(wide, some.astype(np.float32))
        again = half.narrow(wide, dtype)
        assert again.dtype == dtype.numpy
        assert np.array_equal(again.view(np.uint16), np.ascontiguousarray(some).view(np.uint16))
    turned = half.narrow(values[:, ::-2], dtype)
    assert np.array_equal(turned, values[:, ::-2].astype(dtype.numpy))
