"""Narrowing arithmetic and dequantisation, one element at a time in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
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
    SRC1,
    TMP,
    Bench,
    lane_address,
    lanes_of,
    local,
    masks,
    seeds,
    whole,
)

CASES = [
    ("mul_cast", asc.float16, asc.int8),
    ("mul_cast", asc.float16, asc.uint8),
    ("add_relu_cast", asc.float16, asc.int8),
    ("add_relu_cast", asc.int16, asc.int8),
    ("add_relu_cast", asc.float32, asc.float16),
    ("sub_relu_cast", asc.float16, asc.int8),
    ("sub_relu_cast", asc.int16, asc.int8),
    ("sub_relu_cast", asc.float32, asc.float16),
    ("add_deq_relu", asc.int32, asc.float16),
]
SCALE = 0.00390625 * 1.5


def to_int(value: Any, dtype: DType) -> int:
    """Nearest whole number, ties to even, saturated; NaN is 0."""
    if np.isnan(value):
        return 0
    info = np.iinfo(dtype.numpy)
    if np.isinf(value):
        return int(info.max if value > 0 else info.min)
    return min(max(round(Fraction(float(value))), int(info.min)), int(info.max))


def narrowed(name: str, a: Any, b: Any, target: DType) -> Any:
    with np.errstate(all="ignore"):
        if name == "add_deq_relu":
            return np.float16(max((int(a) + int(b)) * SCALE, 0.0))
        value = {"mul": lambda: a * b, "add": lambda: a + b, "sub": lambda: a - b}[name[:3]]()
        if name[:3] != "mul" and value <= 0:
            value = type(value)(0)
        return to_int(value, target) if not target.is_float() else np.float16(value)


@pytest.mark.parametrize(("name", "source", "target"), CASES)
@pytest.mark.parametrize("count", [1, 100, 1000])
def test_count(name: str, source: DType, target: DType, count: int) -> None:
    bench = Bench(count, source, special=True)
    if name == "add_deq_relu":
        for place in (SRC, SRC1):
            bench.put(place, bench.rng.integers(-(1 << 20), 1 << 20, 4096, np.int32))
    with bench.stream:
        asc.set_deq_scale(SCALE)
        function = getattr(asc, name)
        function(whole(DST, target), whole(SRC, source), whole(SRC1, source), count)
    for i in range(count):
        a, b = (bench.read(base + i * source.size, source) for base in (SRC, SRC1))
        bench.write_bits(DST + i * target.size, narrowed(name, a, b, target), target)
    same_numbers(bench, target)


def same_numbers(bench: Bench, dtype: DType) -> None:
    got, want = bench.ub.view(dtype.numpy), bench.want.view(dtype.numpy)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    assert same.all(), np.flatnonzero(~same)[:4]


@settings(max_examples=60, deadline=None)
@given(seeds(), st.sampled_from(CASES), st.integers(0, 5), st.data())
def test_repeats(seed: int, case: Any, repeat: int, data: Any) -> None:
    name, source, target = case
    bench = Bench(seed, source)
    if name == "add_deq_relu":
        for place in (SRC, SRC1):
            bench.put(place, bench.rng.integers(-(1 << 20), 1 << 20, 4096, np.int32))
    lanes = 256 // source.size
    mask = data.draw(masks(lanes))
    blocks = data.draw(st.tuples(st.integers(1, 3), st.integers(0, 3), st.integers(0, 3)))
    steps = data.draw(st.tuples(st.integers(22, 24), st.integers(0, 9), st.integers(0, 9)))
    with bench.stream:
        asc.set_deq_scale(SCALE)
        getattr(asc, name)(
            whole(DST, target),
            whole(SRC, source),
            whole(SRC1, source),
            mask,
            repeat,
            asc.BinaryRepeatParams(*blocks, *steps),
        )
    for r in range(repeat):
        for lane, active in enumerate(lanes_of(mask, lanes)):
            if active:
                at, a, b = (
                    lane_address(base, r, lane, dtype, block, step)
                    for base, dtype, block, step in zip(
                        (DST, SRC, SRC1), (target, source, source), blocks, steps, strict=True
                    )
                )
                value = narrowed(name, bench.read(a, source), bench.read(b, source), target)
                bench.write_bits(at, value, target)
    same_numbers(bench, target)


def dequantised(value: Any, scale: float, offset: int, signed: bool) -> int:
    """The byte of an int16."""
    product = np.float32(float(value) * float(np.float32(scale)))
    return to_int(float(product) + offset, asc.int8 if signed else asc.uint8) & 0xFF


SCALES = [0.25 * k - 1.5 for k in range(16)]
OFFSETS = [k * 32 - 256 for k in range(16)]
SIGNS = [k % 3 == 0 for k in range(16)]


@settings(max_examples=50, deadline=None)
@given(
    seeds(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.one_of(st.integers(1, 700), st.tuples(st.integers(0, 4), masks(128))),
    st.booleans(),
)  # fmt: skip
def test_cast_deq_bytes(
    seed: int, vector: bool, signed: bool, low: bool, form: Any, counter: bool
) -> None:
    """Sixteen int16 of a block go to one half of a block of bytes."""
    bench = Bench(seed, asc.int16)
    bench.put(SRC, bench.rng.integers(-400, 400, 8192, np.int16))
    target = asc.int8 if signed else asc.uint8
    vdeq = local(TMP, 16, asc.uint64)
    block, step = 1, 8
    with bench.stream:
        if vector:
            asc.set_deq_scale(vdeq, asc.VdeqInfo(SCALES, OFFSETS, SIGNS))
        else:
            asc.set_deq_scale(0.3, -17, signed)
        dst, src = whole(DST, target), whole(SRC, asc.int16)
        if isinstance(form, int):
            if counter:
                asc.set_mask_count()
                asc.cast_deq(dst, src, form, 0, asc.UnaryRepeatParams(), True, vector, low)
            else:
                asc.cast_deq(dst, src, form, is_vec_deq=vector, half_block=low)
            places = [divmod(i, 128) for i in range(form)]
        else:
            repeat, mask = form
            block, step = 2, 17
            asc.cast_deq(
                dst, src, mask, repeat, asc.UnaryRepeatParams(2, 1, 17, 8), True, vector, low
            )
            active = [lane for lane, on in enumerate(lanes_of(mask, 128)) if on]
            places = [(r, lane) for r in range(repeat) for lane in active]
    bench.want[TMP : TMP + 128] = bench.ub[TMP : TMP + 128]
    for r, lane in places:
        value = bench.read(lane_address(SRC, r, lane, asc.int16, 1, 8), asc.int16)
        at = DST + 32 * (r * step + lane // 16 * block) + lane % 16 + (0 if low else 16)
        j = lane % 16
        how = (SCALES[j], OFFSETS[j], SIGNS[j]) if vector else (0.3, -17, signed)
        bench.want[at] = dequantised(value, *how)
    bench.check()


@settings(max_examples=30, deadline=None)
@given(seeds(), st.integers(0, 300))
def test_cast_deq_half(seed: int, count: int) -> None:
    bench = Bench(seed, asc.int32)
    scale = float(np.float16(0.001))
    with bench.stream:
        asc.set_deq_scale(0.001)
        asc.cast_deq(whole(DST, asc.float16), whole(SRC, asc.int32), count)
    for i in range(count):
        with np.errstate(over="ignore"):
            value = np.float16(int(bench.read(SRC + 4 * i, asc.int32)) * scale)
        bench.write_bits(DST + 2 * i, value, asc.float16)
    bench.check()


A, B = local(SRC, 1024, asc.float16), local(SRC1, 1024, asc.float16)
D8, D16 = local(DST, 1024, asc.int8), local(DST, 1024, asc.float16)
S16, S32 = local(SRC, 1024, asc.int16), local(SRC, 1024, asc.int32)
V64 = local(TMP, 16, asc.uint64)
U8 = local(DST, 1024, asc.uint8)
FLAT = asc.UnaryRepeatParams(0, 1, 8, 8)
VDEQ = asc.VdeqInfo([1.0] * 16, [0] * 16, [True] * 16)


def one_scale_then(call: Any) -> Any:
    def both() -> None:
        asc.set_deq_scale(1.0, 0, True)
        call()

    return both


@pytest.mark.parametrize(
    ("call", "code", "part"),
    [
        (lambda: asc.mul_cast(D16, A, B, 8), "dtype-not-supported", "takes int8, uint8"),
        (lambda: asc.mul_cast(D8, A, S16, 8), "dtype-not-supported", "src1"),
        (lambda: asc.add_relu_cast(D16, A, B, 8), "cast-pair", "does not convert float16 to float16 here"),
        (lambda: asc.mul_cast(D8, A, B), "form", "needs count"),
        (lambda: asc.mul_cast(D8, A, B, 4, 4), "form", "needs repeat_params"),
        (lambda: asc.add_deq_relu(D16, S32, S32, 8), "deq-scale", "call set_deq_scale(scale) before"),
        (lambda: asc.cast_deq(D16, S32, 8), "deq-scale", "call set_deq_scale(scale) before"),
        (lambda: asc.cast_deq(D8, S16, 8), "deq-scale", "set_deq_scale(vdeq, vdeq_info)"),
        (lambda: asc.cast_deq(D8, S16, 8, is_vec_deq=False), "deq-scale", "set_deq_scale(scale, offset, sign_mode)"),
        (one_scale_then(lambda: asc.cast_deq(U8, S16, 8, is_vec_deq=False)), "sign-mode", "Set sign_mode to False"),
        (lambda: asc.cast_deq(D16, S16, 8), "cast-pair", "does not convert int16 to float16"),
        (one_scale_then(lambda: asc.cast_deq(D8, S16, 64, 2, FLAT, True, False)), "dst-blk-stride-zero", "at least 1"),
        (lambda: asc.set_deq_scale("x"), "not-a-number", "must be a number"),
        (lambda: asc.set_deq_scale(1.0, 300, True), "offset-limit", "nine bits"),
        (lambda: asc.set_deq_scale(1.0, 3, 1), "not-a-flag", "sign_mode must be True or False"),
        (lambda: asc.set_deq_scale(V64, asc.VdeqInfo([1.0], [0], [True])), "vdeq-length", "lists of 16"),
        (lambda: asc.set_deq_scale(A, VDEQ), "dtype-not-supported", "takes uint64"),
    ],
)  # fmt: skip
def test_messages(call: Any, code: str, part: str) -> None:
    with Bench(0).stream, pytest.raises(IsaFault) as caught:
        call()
    assert caught.value.code == code
    assert part in caught.value.message


@pytest.mark.parametrize(
    "name",
    [
        "abs_sub", "ands", "de_interleave", "divs", "exp_sub", "interleave", "mrg_sort4", "mull", "muls_cast", "neg",
        "ors", "prelu", "proposal_concat", "proposal_extract", "rp_sort16", "scatter", "subs", "truncate",
    ],
)  # fmt: skip
def test_refusals(name: str) -> None:
    with (
        Bench(0).stream,
        pytest.raises(IsaFault, match=f"{name} .*910B|{name} .*Atlas inference") as caught,
    ):
        getattr(asc, name)(D16, A, 3)
    assert caught.value.code == "not-on-910b"
    assert (
        ": Use " in caught.value.message
        or ": Compute " in caught.value.message
        or "Multiply" in caught.value.message
    )
