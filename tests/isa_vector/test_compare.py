"""compare, compare_scalar, CMPMASK and select against oracles that look at one bit at a time."""

from __future__ import annotations

import operator
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
    FLOATS,
    SRC,
    SRC1,
    TMP,
    UB_BYTES,
    Bench,
    lane_address,
    lanes_of,
    local,
    masks,
    seeds,
    whole,
)

MODES = {
    asc.CMPMODE.LT: operator.lt,
    asc.CMPMODE.GT: operator.gt,
    asc.CMPMODE.EQ: operator.eq,
    asc.CMPMODE.LE: operator.le,
    asc.CMPMODE.GE: operator.ge,
    asc.CMPMODE.NE: operator.ne,
}
PAIRS = [(mode, dtype) for mode in MODES for dtype in FLOATS] + [(asc.CMPMODE.EQ, asc.int32)]
SPR, SCALAR, TENSOR = asc.SelMode


def set_bit(bench: Bench, base: int, index: int, bit: bool) -> None:
    byte = base + index // 8
    old = int(bench.want[byte])
    bench.want[byte] = old | 1 << index % 8 if bit else old & ~(1 << index % 8)


@pytest.mark.parametrize(("mode", "dtype"), PAIRS)
@pytest.mark.parametrize("scalar", [False, True])
def test_count(mode: asc.CMPMODE, dtype: DType, scalar: bool) -> None:
    bench = Bench(3, dtype, special=True)
    count = 3 * 256 // dtype.size
    if scalar:
        other = 2 if dtype is asc.int32 else 0.25
        bench.run(asc.compare_scalar, whole(DST, asc.uint8), whole(SRC, dtype), other, mode, count)
    else:
        bench.run(
            asc.compare, whole(DST, asc.int8), whole(SRC, dtype), whole(SRC1, dtype), mode, count
        )
    for i in range(count):
        a = bench.read(SRC + i * dtype.size, dtype)
        b = dtype.numpy.type(other) if scalar else bench.read(SRC1 + i * dtype.size, dtype)
        set_bit(bench, DST, i, bool(MODES[mode](a, b)))
    bench.check()


STRIDES = st.tuples(*[st.integers(0, 4)] * 2, *[st.integers(0, 12)] * 2)


@settings(max_examples=60, deadline=None)
@given(seeds(), st.sampled_from(PAIRS), st.integers(0, 5), STRIDES, st.booleans())
def test_repeats(seed: int, pair: Any, repeat: int, strides: tuple[int, ...], scalar: bool) -> None:
    mode, dtype = pair
    bench = Bench(seed, dtype, special=True)
    b0, b1, r0, r1 = strides
    dst, src0, src1 = whole(DST, asc.uint8), whole(SRC, dtype), whole(SRC1, dtype)
    if scalar:
        params: Any = asc.UnaryRepeatParams(1, b0, 8, r0)
        bench.run(asc.compare_scalar, dst, src0, 1, mode, 5, repeat, params)
    else:
        params = asc.BinaryRepeatParams(1, b0, b1, 8, r0, r1)
        bench.run(asc.compare, dst, src0, src1, mode, 5, repeat, params)
    lanes = 256 // dtype.size
    for r in range(repeat):
        for lane in range(lanes):  # the mask has no effect
            a = bench.read(lane_address(SRC, r, lane, dtype, b0, r0), dtype)
            b = bench.read(lane_address(SRC1, r, lane, dtype, b1, r1), dtype)
            b = dtype.numpy.type(1) if scalar else b
            set_bit(bench, DST, r * lanes + lane, bool(MODES[mode](a, b)))
    bench.check()


@settings(max_examples=40, deadline=None)
@given(seeds(), st.sampled_from(PAIRS), st.data())
def test_cmp_mask(seed: int, pair: Any, data: Any) -> None:
    mode, dtype = pair
    bench = Bench(seed, dtype, special=True)
    lanes = 256 // dtype.size
    mask = data.draw(masks(lanes))
    b0, b1 = data.draw(st.tuples(st.integers(0, 4), st.integers(0, 4)))
    start = bench.rng.integers(0, 256, 16, np.uint8)
    bench.put(TMP, start)
    with bench.stream:
        asc.set_cmp_mask(whole(TMP, dtype))
        asc.compare(
            whole(SRC, dtype), whole(SRC1, dtype), mode, mask, asc.BinaryRepeatParams(1, b0, b1)
        )
        asc.get_cmp_mask(whole(DST, asc.uint8)[16:])
    bench.want[DST + 16 : DST + 32] = start
    for lane, active in enumerate(lanes_of(mask, lanes)):
        if active:
            a = bench.read(lane_address(SRC, 0, lane, dtype, b0, 8), dtype)
            b = bench.read(lane_address(SRC1, 0, lane, dtype, b1, 8), dtype)
            set_bit(bench, DST + 16, lane, bool(MODES[mode](a, b)))
    bench.check()


def selected(bench: Bench, index: int, a: int, b: Any, dst: int, dtype: DType) -> None:
    """Oracle of one lane: bit `index` of the mask at TMP, sources by address or value."""
    bit = bench.want[TMP + index // 8] >> (index % 8) & 1
    other = b if not isinstance(b, int) else bench.read(b, dtype)
    bench.write_bits(dst, bench.read(a, dtype) if bit else other, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("mode", asc.SelMode)
@pytest.mark.parametrize("count", [1, 63, 64, 130, 257, 1000])
def test_select_count(dtype: DType, mode: asc.SelMode, count: int) -> None:
    bench = Bench(count, dtype, special=True)
    other: Any = 0.5 if mode is SCALAR else whole(SRC1, dtype)
    bench.run(
        asc.select, whole(DST, dtype), whole(TMP, asc.uint8), whole(SRC, dtype), other, mode, count
    )
    lanes = 256 // dtype.size
    for i in range(count):
        at = i * dtype.size
        b: Any = dtype.numpy.type(0.5) if mode is SCALAR else SRC1 + at
        selected(bench, i % lanes if mode is SPR else i, SRC + at, b, DST + at, dtype)
    bench.check()


@settings(max_examples=50, deadline=None)
@given(
    seeds(),
    st.sampled_from(FLOATS),
    st.sampled_from(list(asc.SelMode)),
    st.integers(0, 5),
    st.data(),
)
def test_select_repeats(seed: int, dtype: DType, mode: asc.SelMode, repeat: int, data: Any) -> None:
    bench = Bench(seed, dtype, special=True)
    lanes = 256 // dtype.size
    mask = data.draw(masks(lanes))
    blocks = data.draw(st.tuples(st.integers(1, 3), st.integers(0, 3), st.integers(0, 3)))
    steps = data.draw(st.tuples(st.integers(22, 30), st.integers(0, 12), st.integers(0, 12)))
    other: Any = -1.0 if mode is SCALAR else whole(SRC1, dtype)
    bench.run(
        asc.select,
        whole(DST, dtype),
        whole(TMP, asc.uint32),
        whole(SRC, dtype),
        other,
        sel_mode=mode,
        mask=mask,
        repeat_times=repeat,
        repeat_params=asc.BinaryRepeatParams(*blocks, *steps),
    )
    for r in range(repeat):
        for lane, active in enumerate(lanes_of(mask, lanes)):
            if active:
                places = [
                    lane_address(base, r, lane, dtype, block, step)
                    for base, block, step in zip((DST, SRC, SRC1), blocks, steps, strict=True)
                ]
                b: Any = dtype.numpy.type(-1) if mode is SCALAR else places[2]
                index = lane if mode is SPR else r * lanes + lane
                selected(bench, index, places[1], b, places[0], dtype)
    bench.check()


@pytest.mark.parametrize("dtype", FLOATS)
def test_select_by_register(dtype: DType) -> None:
    bench = Bench(5, dtype)
    lanes = 256 // dtype.size
    params = asc.BinaryRepeatParams()
    with bench.stream:
        asc.set_cmp_mask(whole(TMP, dtype))
        asc.set_vector_mask(0, (1 << 40) - 1)
        asc.select(
            whole(DST, dtype),
            whole(SRC, dtype),
            whole(SRC1, dtype),
            repeat_times=3,
            repeat_params=params,
            sel_mode=SPR,
        )
    for r in range(3):
        for lane in range(40):
            at = r * 256 + lane * dtype.size
            selected(bench, lane, SRC + at, SRC1 + at, DST + at, dtype)
    assert lanes > 40
    bench.check()


@pytest.mark.parametrize("dtype", FLOATS)
def test_select_scalar_from_register(dtype: DType) -> None:
    bench = Bench(6, dtype)
    bench.put(SRC1, np.full(16, 7.5, dtype.numpy))
    lanes = 256 // dtype.size
    with bench.stream:
        asc.set_cmp_mask(whole(SRC1, dtype))
        asc.select(
            whole(DST, dtype),
            whole(TMP, asc.uint8),
            whole(SRC, dtype),
            repeat_times=2,
            repeat_params=asc.BinaryRepeatParams(),
        )
    for i in range(2 * lanes):
        at = i * dtype.size
        selected(bench, i, SRC + at, dtype.numpy.type(7.5), DST + at, dtype)
    bench.check()


def test_select_leaves_its_mask_in_the_register() -> None:
    bench = Bench(7)
    with bench.stream:
        asc.select(local(DST, 64), whole(TMP, asc.uint8), local(SRC, 64), local(SRC1, 64), SPR, 64)
        asc.get_cmp_mask(local(DST + 512, 4))
    np.testing.assert_array_equal(bench.ub[DST + 512 : DST + 520], bench.ub[TMP : TMP + 8])


def test_count_form_leaves_the_mask_register_all_ones() -> None:
    bench = Bench(8)
    with bench.stream:
        asc.set_vector_mask(0, 5)
        asc.compare(whole(DST, asc.uint8), local(SRC, 64), local(SRC1, 64), asc.CMPMODE.LT, 64)
    assert bench.stream.registers.key() == ((1 << 64) - 1, (1 << 64) - 1, False)


def test_reserved_end_of_ub() -> None:
    bench = Bench(9)
    near = UB_BYTES - 8192
    with bench.stream:
        asc.select(local(near, 64), whole(SRC, asc.uint8), local(SRC1, 64), 0.0, SCALAR, 64)
        asc.select(local(near - 256, 64), whole(SRC, asc.uint8), local(SRC1, 64), 0.0, SCALAR, 64)
        asc.select(
            local(near, 64), whole(SRC, asc.uint8), local(SRC1, 64), local(SRC1, 64), SPR, 64
        )
    lints = [call.lint for call in bench.stream.issued]
    assert [lint and lint[:2] for lint in lints] == [("ALIAS", "select-reserved-ub"), None, None]


A, B = local(SRC, 1024), local(SRC1, 1024)
BITS = local(DST, 1024, asc.uint8)


@pytest.mark.parametrize(
    ("call", "code", "part"),
    [
        (lambda: asc.compare(BITS, A, B, asc.CMPMODE.LT, 100), "count-multiple", "Round count up to 128"),
        (
            lambda: asc.compare(BITS, local(0, 64, asc.int32), local(512, 64, asc.int32), asc.CMPMODE.LT, 64),
            "cmp-mode-dtype",
            "int32 for EQ only, got LT",
        ),
        (lambda: asc.compare(BITS, A, B, 9, 64), "not-a-mode", "must be a CMPMODE"),
        (lambda: asc.compare(A, A, B, asc.CMPMODE.LT, 64), "dtype-not-supported", "takes int8, uint8"),
        (lambda: asc.compare(BITS, A, B, asc.CMPMODE.LT, 2048), "tensor-out-of-bounds", "4096 bytes too many"),
        (
            lambda: asc.compare(local(SRC + 32, 64, asc.uint8), A, B, asc.CMPMODE.LT, 256),
            "operand-overlap",
            "start where src0 starts",
        ),
        (lambda: asc.compare(BITS, A, B, asc.CMPMODE.LT), "form", "needs count"),
        (lambda: asc.compare(BITS, A, B, asc.CMPMODE.LT, 64, 2), "form", "repeat_params"),
        (lambda: asc.get_cmp_mask(local(8, 64)), "misaligned-operand", "16-byte border"),
        (lambda: asc.get_cmp_mask(local(16, 2)), "tensor-out-of-bounds", "8 bytes too many"),
        (
            lambda: asc.select(A, local(SRC, 64, asc.uint8), A, B, TENSOR, 64),
            "operand-overlap",
            "overlaps sel_mask",
        ),
        (lambda: asc.select(A, BITS, A, A, SCALAR, 64), "not-a-number", "scalar must be a number"),
        (lambda: asc.select(A, BITS, A, 1.0, SPR, 64), "wrong-operand", "src1 must be a LocalTensor"),
        (lambda: asc.select(A, BITS, A, B, SPR), "form", "sel_mode and count"),
        (
            lambda: asc.select(A, A, B, repeat_times=1, repeat_params=asc.BinaryRepeatParams(), sel_mode=TENSOR),
            "sel-mode-register",
            "Pass sel_mask",
        ),
    ],
)  # fmt: skip
def test_messages(call: Any, code: str, part: str) -> None:
    with Bench(0).stream, pytest.raises(IsaFault) as caught:
        call()
    assert caught.value.code == code
    assert part in caught.value.message


def test_in_place_from_the_start_is_allowed() -> None:
    bench, other = Bench(11), Bench(11)
    bench.run(asc.compare, local(SRC, 64, asc.uint8), A, B, asc.CMPMODE.LT, 512)
    other.run(asc.compare, local(DST, 64, asc.uint8), A, B, asc.CMPMODE.LT, 512)
    np.testing.assert_array_equal(bench.ub[SRC : SRC + 64], other.ub[DST : DST + 64])


def test_operands_by_name() -> None:
    """Both forms of compare, whichever operands are named."""
    results = []
    for named in range(6):
        bench = Bench(12)
        with bench.stream:
            if named < 4:
                operands = [("dst", whole(DST, asc.uint8)), ("src0", A), ("src1", B)]
                given = [tensor for _, tensor in operands[:named]]
                asc.compare(*given, **dict(operands[named:]), cmp_mode=asc.CMPMODE.LE, count=64)
            else:
                given = [A][: named - 4]
                rest = {"src1": B} if given else {"src0": A, "src1": B}
                params = asc.BinaryRepeatParams()
                asc.compare(*given, **rest, cmp_mode=asc.CMPMODE.LE, mask=64, repeat_params=params)
                asc.get_cmp_mask(whole(DST, asc.uint8))
        results.append(bench.ub[DST : DST + 8].tobytes())
    assert len(set(results)) == 1
