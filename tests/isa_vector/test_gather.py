"""create_vec_index, brcb, gather, gatherb and gather_mask, one element at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_sim import asc
from isa.faults import IsaFault
from isa.types import DType
from tests.isa_vector.kit import (
    DST,
    SRC,
    TMP,
    WORDS,
    Bench,
    lane_address,
    lanes_of,
    local,
    masks,
    seeds,
    whole,
)

INDEX_TYPES = [asc.int16, asc.float16, asc.int32, asc.float32]


def counted(first: Any, number: int, dtype: DType) -> Any:
    """first + number as the type holds it."""
    if dtype.is_float():
        return dtype.numpy.type(float(dtype.numpy.type(first)) + number)
    bits = 8 * dtype.size
    value = (int(first) + number) % (1 << bits)
    return dtype.numpy.type(value - (1 << bits) if value >= 1 << bits - 1 else value)


@pytest.mark.parametrize("dtype", INDEX_TYPES)
@pytest.mark.parametrize(("first", "count"), [(0, 1), (-3, 65), (7, 4096), (32760, 100), (1, 0)])
def test_index_count(dtype: DType, first: int, count: int) -> None:
    bench = Bench(1, dtype)
    bench.run(asc.create_vec_index, whole(DST, dtype), first, count)
    for i in range(count):
        bench.write(DST + i * dtype.size, counted(first, i, dtype), dtype)
    bench.check()


@settings(max_examples=50, deadline=None)
@given(seeds(), st.sampled_from(INDEX_TYPES), st.integers(-9, 9), st.integers(0, 5), st.data())
def test_index_repeats(seed: int, dtype: DType, first: int, repeat: int, data: Any) -> None:
    bench = Bench(seed, dtype)
    lanes = 256 // dtype.size
    mask = data.draw(masks(lanes))
    block, step = data.draw(st.tuples(st.integers(1, 3), st.integers(22, 24)))
    bench.run(asc.create_vec_index, whole(DST, dtype), first, mask, repeat, block, step)
    for r in range(repeat):
        for lane, active in enumerate(lanes_of(mask, lanes)):
            if active:
                at = lane_address(DST, r, lane, dtype, block, step)
                bench.write(at, counted(first, r * lanes + lane, dtype), dtype)
    bench.check()


@settings(max_examples=60, deadline=None)
@given(
    seeds(), st.sampled_from(WORDS), st.integers(0, 6), st.integers(1, 4), st.integers(29, 40)
)  # fmt: skip
def test_brcb(seed: int, dtype: DType, repeat: int, block: int, step: int) -> None:
    bench = Bench(seed, dtype)
    bench.run(
        asc.brcb, whole(DST, dtype), whole(SRC, dtype), repeat, asc.BrcbRepeatParams(block, step)
    )
    for r in range(repeat):
        for k in range(8):
            value = bench.read(SRC + (8 * r + k) * dtype.size, dtype)
            for e in range(32 // dtype.size):
                at = DST + 32 * (r * step + k * block) + e * dtype.size
                bench.write_bits(at, value, dtype)
    bench.check()


def place_offsets(bench: Bench, count: int, dtype: DType, base: int = 0, unit: int = 0) -> Any:
    """Random legal byte offsets at TMP into the 16 KiB at SRC."""
    unit = unit or dtype.size
    offsets = bench.rng.integers(0, (16384 - base) // unit, count) * unit
    bench.put(TMP, offsets.astype(np.uint32))
    return offsets


@pytest.mark.parametrize("dtype", WORDS)
@pytest.mark.parametrize(("count", "base"), [(1, 0), (64, 32), (300, 8), (2000, 4)])
def test_gather_count(dtype: DType, count: int, base: int) -> None:
    bench = Bench(count, dtype)
    offsets = place_offsets(bench, count, dtype, base)
    bench.run(
        asc.gather, whole(DST, dtype), whole(SRC, dtype), local(TMP, count, asc.uint32), base, count
    )
    for i, offset in enumerate(offsets):
        value = bench.read(SRC + base + int(offset), dtype)
        bench.write_bits(DST + i * dtype.size, value, dtype)
    bench.check()


@settings(max_examples=60, deadline=None)
@given(
    seeds(), st.sampled_from(WORDS), st.integers(0, 5), st.integers(8, 12), st.data(), st.booleans()
)  # fmt: skip
def test_gather_repeats(
    seed: int, dtype: DType, repeat: int, step: int, data: Any, counter: bool
) -> None:
    bench = Bench(seed, dtype)
    lanes = 256 // dtype.size
    mask = data.draw(st.integers(0, 5 * lanes) if counter else masks(lanes))
    place_offsets(bench, 5 * lanes, dtype)
    if not counter:  # what inactive lanes hold does not matter
        for lane, active in enumerate(lanes_of(mask, lanes)):
            for r in range(0 if active else 5):
                bench.put(TMP + 4 * (r * lanes + lane), np.array([0xFFFFFFF1], np.uint32))
    offsets = whole(TMP, asc.uint32)
    with bench.stream:
        if counter:
            asc.set_mask_count()
        asc.gather(whole(DST, dtype), whole(SRC, dtype), offsets, 0, mask, repeat, step)
    for r in range(-(-mask // lanes) if counter else repeat):
        for lane in range(lanes):
            active = r * lanes + lane < mask if counter else lanes_of(mask, lanes)[lane]
            if active:
                offset = int(bench.read(TMP + 4 * (r * lanes + lane), asc.uint32))
                value = bench.read(SRC + offset, dtype)
                bench.write_bits(lane_address(DST, r, lane, dtype, 1, step), value, dtype)
    bench.check()


@settings(max_examples=40, deadline=None)
@given(
    seeds(),
    st.sampled_from([asc.uint16, asc.uint32]),
    st.integers(0, 6),
    st.integers(0, 3),
    st.integers(22, 30),
)
def test_gatherb(seed: int, dtype: DType, repeat: int, block: int, step: int) -> None:
    bench = Bench(seed, dtype)
    offsets = place_offsets(bench, 8 * repeat, dtype, unit=32)
    params = asc.GatherRepeatParams(block, step)
    bench.run(
        asc.gatherb, whole(DST, dtype), whole(SRC, dtype), whole(TMP, asc.uint32), repeat, params
    )
    for r in range(repeat):
        for k in range(8):
            for byte in range(32):
                at = DST + 32 * (r * step + k * (block or 1)) + byte
                bench.want[at] = bench.want[SRC + int(offsets[8 * r + k]) + byte]
    bench.check()


PATTERN_STARTS = {1: (0, 2), 2: (1, 2), 3: (0, 4), 4: (1, 4), 5: (2, 4), 6: (3, 4), 7: (0, 1)}


@settings(max_examples=60, deadline=None)
@given(
    seeds(),
    st.sampled_from(WORDS),
    st.integers(0, 7),
    st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 12), st.integers(0, 2)),
    st.integers(0, 200),
)
def test_gather_mask(seed: int, dtype: DType, pattern: int, shape: Any, number: int) -> None:
    """Pattern 0 here is the user's; number 0 is normal mode."""
    bench = Bench(seed, dtype)
    repeat, block, step, bits_step = shape
    lanes = number or 256 // dtype.size
    src1: Any = pattern or whole(TMP, asc.uint16 if dtype.size == 2 else asc.uint32)
    params = asc.GatherMaskParams(block, repeat, step, bits_step)
    kept = bench.run(
        asc.gather_mask, whole(DST, dtype), whole(SRC, dtype), src1, number > 0, number, params
    )
    found = 0
    for r in range(repeat):
        for lane in range(lanes):
            if pattern:
                first, every = PATTERN_STARTS[pattern]
                marked = lane % every == first
            else:
                byte = TMP + r * bits_step * 32 + lane // 8
                marked = bool(bench.want[byte] >> (lane % 8) & 1)
            if marked:
                value = bench.read(lane_address(SRC, r, lane, dtype, block, step), dtype)
                bench.write_bits(DST + found * dtype.size, value, dtype)
                found += 1
    bench.check()
    assert kept == found
    with bench.stream:
        if repeat:
            assert asc.get_gather_mask_remain_count() == found


def test_gather_mask_leaves_the_mask_register_all_ones() -> None:
    bench = Bench(1)
    with bench.stream:
        asc.set_mask_count()
        asc.gather_mask(
            whole(DST, asc.float32), whole(SRC, asc.float32), 1, True, 9, asc.GatherMaskParams()
        )
    assert bench.stream.registers.key() == ((1 << 64) - 1, (1 << 64) - 1, False)


def test_gather_mask_in_place() -> None:
    bench, other = Bench(2), Bench(2)
    params = asc.GatherMaskParams(1, 4, 8, 0)
    bench.run(
        asc.gather_mask, whole(SRC, asc.float32), whole(SRC, asc.float32), 2, False, 0, params
    )
    other.run(
        asc.gather_mask, whole(DST, asc.float32), whole(SRC, asc.float32), 2, False, 0, params
    )
    np.testing.assert_array_equal(bench.ub[:512], other.ub[DST : DST + 512])


def test_work_counts_repeats_of_256_bytes() -> None:
    bench = Bench(3)
    place_offsets(bench, 1000, asc.float32)
    place = (whole(DST, asc.float32), whole(SRC, asc.float32))
    with bench.stream:
        asc.gather(*place, whole(TMP, asc.uint32), 0, 1000)
        asc.gather_mask(*place, 7, True, 100, asc.GatherMaskParams(1, 3, 13, 0))
        asc.brcb(*place, 5, asc.BrcbRepeatParams())
    assert [call.work for call in bench.stream.issued] == [16, 6, 5]


A, D = local(SRC, 1024), local(DST, 1024)
O = local(TMP, 1024, asc.uint32)  # noqa: E741


@pytest.mark.parametrize(
    ("first", "code", "part", "span"),
    [
        (4096, "gather-out-of-bounds", "number 0 is 4096 bytes, so that it reads UB bytes 4096 to 4100", (4096, 4100)),
        (0xFFFFFFFC, "gather-out-of-bounds", "src UB[0:4096] has 4096 bytes", (0xFFFFFFFC, 0x100000000)),
        (6, "gather-offset", "not a multiple of 4. Offsets count bytes: multiply an element's index by 4", (6, 10)),
    ],
)  # fmt: skip
def test_offsets_are_checked_when_they_are_known(
    first: int, code: str, part: str, span: tuple[int, int]
) -> None:
    bench = Bench(4)
    bench.put(TMP, np.array([first], np.uint32))
    with bench.stream, pytest.raises(IsaFault) as caught:
        asc.gather(D, A, O, 0, 1)
    assert (caught.value.code, caught.value.byte_range) == (code, span)
    assert caught.value.tensor == "UB[0:4096]"
    assert part in caught.value.message
    bench.check()


@pytest.mark.parametrize("offset", [4096, 4080])
def test_gatherb_offsets_are_checked(offset: int) -> None:
    bench = Bench(5)
    bench.put(TMP, np.full(8, offset, np.uint32))
    u = [t.reinterpret_cast(asc.uint32) for t in (D, A)]
    with bench.stream, pytest.raises(IsaFault, match="gatherb: offset number 0"):
        asc.gatherb(*u, O, 1, asc.GatherRepeatParams())


def test_a_pattern_that_keeps_more_than_dst_holds() -> None:
    bench = Bench(6)
    bench.put(TMP, np.full(8, 0xFF, np.uint8))
    with bench.stream, pytest.raises(IsaFault, match=r"keeps 64 elements, dst .* has room for 16"):
        asc.gather_mask(local(DST, 16), A, O, False, 0, asc.GatherMaskParams())


P = asc.GatherMaskParams
I16 = local(SRC, 64, asc.int16)


@pytest.mark.parametrize(
    ("call", "code", "part"),
    [
        (lambda: asc.gather(D, A, A, 0, 8), "dtype-not-supported", "is float32, the 910B takes uint32"),
        (lambda: asc.gather(D, D[512:], O, 0, 600), "operand-overlap", "must not write into what it reads"),
        (lambda: asc.gather(D, A, O, 0), "form", "takes count, or mask"),
        (lambda: asc.gather(D, A, O, 0, 64, 2, 0), "dst-rep-stride-zero", "at least 1"),
        (lambda: asc.gather(D, A, O, -4, 8), "src-base-limit", "src_base is -4"),
        (lambda: asc.gather(D, A, O, 0, 1025), "tensor-out-of-bounds", "4 bytes too many"),
        (lambda: asc.gatherb(D, A, O, 1, asc.GatherRepeatParams()), "dtype-not-supported", "takes uint16, uint32"),
        (lambda: asc.brcb(D, A, 1, asc.GatherRepeatParams()), "wrong-params", "must be BrcbRepeatParams"),
        (lambda: asc.brcb(D, A, 2, asc.BrcbRepeatParams(0, 8)), "dst-blk-stride-zero", "at least 1"),
        (lambda: asc.brcb(D, A, 2, asc.BrcbRepeatParams(1, 0)), "dst-rep-stride-zero", "at least 1"),
        (lambda: asc.brcb(A, A, 1, asc.BrcbRepeatParams()), "operand-overlap", "reads what"),
        (lambda: asc.brcb(D, A[3:], 1, asc.BrcbRepeatParams()), "misaligned-operand", "12 past a 32-byte border"),
        (lambda: asc.create_vec_index(D, "a", 8), "not-a-number", "scalar must be a number"),
        (lambda: asc.create_vec_index(local(DST, 64, asc.int16), 40000, 8), "scalar-range", "does not fit int16"),
        (lambda: asc.create_vec_index(D, 0, 64, 2), "form", "dst_blk_stride and dst_rep_stride"),
        (lambda: asc.gather_mask(D, A, 8, False, 0, P()), "src1-pattern-limit", "allowed is 1 to 7"),
        (lambda: asc.gather_mask(D, A, 1, True, 0, P()), "mask-limit", "mask is 0"),
        (lambda: asc.gather_mask(D, A, I16, False, 0, P()), "dtype-not-supported", "takes uint32"),
        (lambda: asc.gather_mask(D, A, 1, 1, 0, P()), "not-a-flag", "reduce_mode must be True or False"),
        (lambda: asc.gather_mask(D, A, 1, True, 10**9, P(1, 2)), "memory-out-of-bounds", "mask counts the elements"),
        (lambda: asc.gather_mask(D, A, 7, False, 0, P(1, 17, 8)), "tensor-out-of-bounds", "256 bytes too many"),
        (lambda: asc.gather_mask(A[64:], A, 7, False, 0, P(1, 2, 8)), "operand-overlap", "an earlier one wrote"),
    ],
)  # fmt: skip
def test_messages(call: Any, code: str, part: str) -> None:
    with Bench(0).stream, pytest.raises(IsaFault) as caught:
        call()
    assert caught.value.code == code
    assert part in caught.value.message
