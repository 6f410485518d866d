"""What the tests of vector instructions share: a UB of known bytes, and element-by-element access to it.

Oracles work on a copy of UB one element at a time with numpy scalars; a test compares all of UB, so that a stray
write shows as well as a wrong value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

from ascend_sim import asc
from isa.stream import EagerStream
from isa.types import DType, Space

UB_BYTES = 65536
SRC, SRC1, DST, TMP = 0, 16384, 32768, 49152
"""Four places of 16 KiB each."""
FLOATS = [asc.float16, asc.float32]
WORDS = [
    asc.int16, asc.uint16, asc.float16, asc.bfloat16, asc.int32, asc.uint32, asc.float32,
]  # fmt: skip


def local(address: int, count: int, dtype: DType = asc.float32) -> asc.LocalTensor:
    """A tensor at a fixed UB address, `count` elements."""
    return asc.LocalTensor(dtype, asc.TPosition.VECCALC, address, count)


def whole(address: int, dtype: DType) -> asc.LocalTensor:
    """A tensor of 16 KiB."""
    return local(address, 16384 // dtype.size, dtype)


def values(rng: np.random.Generator, count: int, dtype: DType, *, special: bool = False) -> Any:
    """Random elements with ties and zeros of both signs; with `special` infinities and NaN as well."""
    if not dtype.is_float():
        info = np.iinfo(dtype.numpy)
        found = rng.integers(info.min, info.max, count, dtype.numpy, endpoint=True)
        return np.where(rng.random(count) < 0.3, rng.integers(0, 5, count), found).astype(
            dtype.numpy
        )
    found = np.round(rng.standard_normal(count) * 8) / rng.choice([1, 2, 8, 1000], count)
    found = np.where(rng.random(count) < 0.1, rng.choice([0.0, -0.0], count), found)
    if special:
        odd = rng.choice([np.inf, -np.inf, np.nan, 60000.0], count)
        found = np.where(rng.random(count) < 0.05, odd, found)
    return found.astype(dtype.numpy)


class Bench:
    """An eager stream whose UB holds random elements of a type, and the oracle's copy of it."""

    def __init__(
        self, seed: int, dtype: DType = asc.float32, *, special: bool = False, size: int = UB_BYTES
    ) -> None:
        self.rng = np.random.default_rng(seed)
        self.stream = EagerStream({Space.UB: size})
        self.ub = self.stream.memories[Space.UB]
        self.ub[:] = values(self.rng, size // dtype.size, dtype, special=special).view(np.uint8)
        self.want = self.ub.copy()

    def put(self, address: int, data: Any) -> None:
        """Place an array in UB."""
        raw = np.ascontiguousarray(data).view(np.uint8).ravel()
        self.ub[address : address + raw.size] = raw
        self.want[address : address + raw.size] = raw

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call an instruction on the stream."""
        with self.stream:
            return function(*args, **kwargs)

    def read(self, address: int, dtype: DType) -> Any:
        """One element of the oracle's memory."""
        return self.want[address : address + dtype.size].view(dtype.numpy)[0]

    def read_first(self, address: int, dtype: DType) -> Any:
        """One element as it was before the instruction (the stream's memory before it ran)."""
        return self.before[address : address + dtype.size].view(dtype.numpy)[0]

    def freeze(self) -> None:
        """Remember UB as it is."""
        self.before = self.want.copy()

    def write(self, address: int, value: Any, dtype: DType) -> None:
        """Write one element of the oracle's memory."""
        self.want[address : address + dtype.size] = (
            np.array([value]).astype(dtype.numpy).view(np.uint8)
        )

    def write_bits(self, address: int, value: Any, dtype: DType) -> None:
        """Write one element whose bits must not change on the way (NaN)."""
        self.want[address : address + dtype.size] = np.array([value], dtype.numpy).view(np.uint8)

    def check(self) -> None:
        """All of UB is as the oracle says."""
        different = np.flatnonzero(self.ub != self.want)
        assert different.size == 0, f"UB differs first at byte {different[0]} of {different.size}"


def lanes_of(mask: Any, count: int) -> list[bool]:
    """Which lanes a mask argument means, bit by bit."""
    if isinstance(mask, int):
        return [lane < mask for lane in range(count)]
    return [bool(mask[lane // 64] >> (lane % 64) & 1) for lane in range(count)]


def lane_address(
    base: int, repeat: int, lane: int, dtype: DType, block_stride: int, repeat_stride: int
) -> int:
    """The address generator of one operand, as the manual writes it."""
    per_block = 32 // dtype.size
    block, element = divmod(lane, per_block)
    return base + 32 * (repeat * repeat_stride + block * block_stride) + element * dtype.size


def masks(count: int) -> st.SearchStrategy[Any]:
    """A number of leading lanes, or words of bits."""
    words = 2 if count == 128 else 1
    word = st.integers(0, (1 << 64) - 1)
    return st.one_of(st.integers(1, count), st.lists(word, min_size=words, max_size=words))


def seeds() -> st.SearchStrategy[int]:
    """Seeds of UB's contents."""
    return st.integers(0, 2**16)


def same_value(a: Any, b: Any) -> bool:
    """Equal as values: NaN equals NaN, -0 equals 0."""
    wide_a, wide_b = float(a), float(b)
    return wide_a == wide_b or (math.isnan(wide_a) and math.isnan(wide_b))


def junk() -> Iterator[Any]:
    """Arguments that make no sense."""
    yield from (
        None, -1, 1.5, "x", [], [1, 2, 3], (), True, 10**9, 10**30, float("nan"), object(), np.float32(3), 1 << 64,
        local(8, 64), local(0, 0), local(0, 4096, asc.int64), local(UB_BYTES - 32, 8), local(1 << 20, 64),
        asc.LocalTensor(asc.float32, asc.TPosition.A1, 0, 64), asc.GlobalTensor(), asc.BinaryRepeatParams(),
    )  # fmt: skip


BF16 = ml_dtypes.bfloat16
