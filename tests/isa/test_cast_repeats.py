"""Conversions in repeats: every pair and mode, masks as numbers and bits, strides, counter mode, element by element."""

from __future__ import annotations

from typing import Any

import exact
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from isa_kit import stream, ub

from isa.params import UnaryRepeatParams
from isa.sync import set_mask_count, set_mask_norm, set_vector_mask
from isa.types import DType, MaskMode, RoundMode, Space, float16, int32
from isa.vector.dequantise import set_deq_scale
from isa.vector.fill import CAST_MODES, cast

WAYS = [(source, target, mode) for (source, target), modes in CAST_MODES.items() for mode in modes]
SRC, DST, SIZE = 0, 32768, 65536
SPECIAL = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    127.5,
    255.5,
    65519.0,
    1e9,
    -1e9,
    3e38,
    float("inf"),
    float("-inf"),
]


def contents(seed: int, source: DType) -> Any:
    """Return a memory of random values of a type, with ties and limits among them."""
    rng = np.random.default_rng(seed)
    count = SIZE // source.size
    if not source.is_float():
        limits = np.iinfo(source.numpy)
        values = rng.integers(limits.min, limits.max, count, source.numpy, endpoint=True)
        small = rng.integers(0, 100, count)
        return np.where(rng.random(count) < 0.5, small, values).astype(source.numpy).view(np.uint8)
    values = np.round(rng.normal(0, 300, count) * 8) / rng.choice([1, 8, 16], count)
    values = np.where(rng.random(count) < 0.2, rng.choice(SPECIAL, count), values)
    with np.errstate(over="ignore"):
        return values.astype(source.numpy).view(np.uint8)


def converted(bits: int, source: DType, target: DType, mode: RoundMode) -> int:
    value = exact.decode(source, bits)
    if (source, target) == (int32, float16):
        return exact.encode(float16, exact.mul(exact.Fraction(value) or 0.0, exact.Fraction(1, 4)))
    return exact.cast(value, source, target, mode)


def element(memory: Any, at: int, dtype: DType) -> int:
    return int(memory[at : at + dtype.size].view(f"u{dtype.size}")[0])


def address(base: int, repeat: int, lane: int, dtype: DType, block: int, step: int) -> int:
    row, column = divmod(lane, 32 // dtype.size)
    return base + 32 * (repeat * step + row * block) + column * dtype.size


@given(
    way=st.sampled_from(WAYS),
    seed=st.integers(0, 1 << 16),
    repeat=st.integers(0, 4),
    blocks=st.tuples(st.integers(1, 3), st.integers(0, 3)),
    spare=st.integers(0, 4),
    src_step=st.integers(0, 12),
    data=st.data(),
)
@settings(max_examples=250, deadline=None)
def test_repeats(
    way: tuple[DType, DType, RoundMode],
    seed: int,
    repeat: int,
    blocks: tuple[int, int],
    spare: int,
    src_step: int,
    data: st.DataObject,
) -> None:
    source, target, mode = way
    lanes = 256 // max(source.size, target.size)
    form = data.draw(st.sampled_from(["number", "bits", "counter"]))
    if form == "number":
        mask: Any = data.draw(st.integers(1, lanes))
        active = [[lane < mask for lane in range(lanes)]] * repeat
    elif form == "bits":
        words = 2 if lanes > 64 else 1
        mask = data.draw(st.lists(st.integers(0, (1 << 64) - 1), min_size=words, max_size=words))
        number = sum(word << (64 * place) for place, word in enumerate(mask))
        active = [[bool(number >> lane & 1) for lane in range(lanes)]] * repeat
    else:  # the mask register counts elements, and repeats follow from that
        mask = data.draw(st.integers(0, 3 * lanes))
        rows = -(-mask // lanes)
        active = [[row * lanes + lane < mask for lane in range(lanes)] for row in range(rows)]
    dst_block, src_block = blocks
    dst_step = dst_block * (lanes * target.size // 32) + spare
    params = UnaryRepeatParams(dst_block, src_block, dst_step, src_step)
    with stream(size=SIZE) as eager:
        memory = eager.memories[Space.UB]
        memory[:] = contents(seed, source)
        before = memory.copy()
        if (source, target) == (int32, float16):
            set_deq_scale(0.25)
        dst = ub(target, DST, (SIZE - DST) // target.size)
        src = ub(source, SRC, DST // source.size)
        if form == "counter":
            set_mask_count()
            set_vector_mask(mask, dtype=source, mode=MaskMode.COUNTER)
            cast(dst, src, mode, 0, 1, params, False)
            set_mask_norm()
        else:
            cast(dst, src, mode, mask, repeat, params)
        after = memory.copy()
    want = before.copy()
    for row, choice in enumerate(active):
        for lane in range(lanes):
            if not choice[lane]:
                continue
            taken = element(before, address(SRC, row, lane, source, src_block, src_step), source)
            at = address(DST, row, lane, target, dst_block, dst_step)
            pattern = np.array([converted(taken, source, target, mode)]).astype(f"u{target.size}")
            want[at : at + target.size] = pattern.view(np.uint8)
    unsigned = f"u{target.size}"
    got, wanted = after.view(unsigned), want.view(unsigned)
    different = got != wanted
    if target.is_float():  # NaN of any kind are alike
        fmt = exact.FORMATS[target.name]
        nan = ((got & (fmt.sign - 1)) > fmt.infinity) & ((wanted & (fmt.sign - 1)) > fmt.infinity)
        different &= ~nan
    assert not different.any(), np.flatnonzero(different)[:3]
