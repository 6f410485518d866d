"""Reductions against recursive oracles: the tree is walked one addition at a time, extremes one lane at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_sim import asc
from isa.faults import IsaFault
from isa.types import DType, Pipe
from tests.isa_vector.kit import (
    DST,
    FLOATS,
    SRC,
    TMP,
    Bench,
    lane_address,
    lanes_of,
    local,
    masks,
    same_value,
    seeds,
    whole,
)

ORDERS = list(asc.ReduceOrder)
VALUE_INDEX, INDEX_VALUE, ONLY_VALUE, ONLY_INDEX = ORDERS


def tree(found: list[Any]) -> Any:
    """Sum of a list whose length is a power of two; None is a lane that takes no part."""
    if len(found) == 1:
        return found[0]
    level = []
    for a, b in zip(found[0::2], found[1::2], strict=True):
        if a is None or b is None:
            level.append(b if a is None else a)
        else:
            with np.errstate(all="ignore"):
                level.append(a + b)
    return tree(level)


def extreme(found: list[Any], largest: bool) -> tuple[Any, int]:
    """The first NaN, or the first of the largest or smallest; None takes no part."""
    best: Any = None
    at = -1
    for lane, value in enumerate(found):
        if value is None or (best is not None and np.isnan(best)):
            continue
        better = best is None or np.isnan(value) or (value > best if largest else value < best)
        if better:
            best, at = value, lane
    return best, at


def repeat_lanes(
    bench: Bench, base: int, r: int, dtype: DType, active: list[bool], block: int, step: int
) -> list[Any]:
    """The values of one repeat before the instruction, None where the mask is 0."""
    return [
        bench.read_first(lane_address(base, r, lane, dtype, block, step), dtype) if on else None
        for lane, on in enumerate(active)
    ]


def check_values(bench: Bench, dtype: DType) -> None:
    """All of UB is as expected; NaN may have any bits."""
    got, want = bench.ub.view(dtype.numpy), bench.want.view(dtype.numpy)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    assert same.all(), np.flatnonzero(~same)[:5]


SHAPES = st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 12))  # repeats, strides


@settings(max_examples=50, deadline=None)
@given(seeds(), st.sampled_from(FLOATS), SHAPES, st.integers(1, 9), st.data(), st.booleans())
def test_whole_sum(
    seed: int, dtype: DType, shape: Any, stride: int, data: Any, other_name: bool
) -> None:
    bench = Bench(seed, dtype, special=True)
    repeat, block, step = shape
    lanes = 256 // dtype.size
    mask = data.draw(st.integers(1, lanes) if other_name else masks(lanes))
    start = DST + dtype.size * data.draw(st.integers(0, 5))  # results need no 32-byte border
    dst, src = local(start, 1000, dtype), whole(SRC, dtype)
    bench.freeze()
    if other_name:
        bench.run(asc.repeat_reduce_sum, dst, src, repeat, mask, 77, block, stride, step)
    else:
        bench.run(asc.whole_reduce_sum, dst, src, mask, repeat, stride, block, step)
    for r in range(repeat):
        total = tree(repeat_lanes(bench, SRC, r, dtype, lanes_of(mask, lanes), block, step))
        if total is not None:
            bench.write(start + r * stride * dtype.size, total, dtype)
    check_values(bench, dtype)


@settings(max_examples=60, deadline=None)
@given(
    seeds(),
    st.sampled_from(FLOATS),
    SHAPES,
    st.integers(1, 9),
    st.data(),
    st.sampled_from(ORDERS),
    st.booleans(),
)
def test_whole_extremes(
    seed: int, dtype: DType, shape: Any, stride: int, data: Any, order: Any, largest: bool
) -> None:
    bench = Bench(seed, dtype, special=seed % 2 == 0)
    repeat, block, step = shape
    lanes = 256 // dtype.size
    mask = data.draw(masks(lanes))
    start = DST + 2 * dtype.size * data.draw(st.integers(0, 5))
    function = asc.whole_reduce_max if largest else asc.whole_reduce_min
    bench.freeze()
    dst = local(start, 1000, dtype)
    bench.run(function, dst, whole(SRC, dtype), mask, repeat, stride, block, step, order)
    bits = asc.uint16 if dtype is asc.float16 else asc.uint32
    for r in range(repeat):
        found = repeat_lanes(bench, SRC, r, dtype, lanes_of(mask, lanes), block, step)
        value, lane = extreme(found, largest)
        if lane < 0:
            continue
        if order is ONLY_VALUE:
            bench.write_bits(start + r * stride * dtype.size, value, dtype)
        elif order is ONLY_INDEX:
            bench.write(start + r * stride * 4, lane, asc.uint32)
        else:
            at = start + r * stride * 2 * dtype.size
            first = order is VALUE_INDEX
            bench.write_bits(at + (0 if first else dtype.size), value, dtype)
            bench.write(at + (dtype.size if first else 0), lane, bits)
    bench.check()


@settings(max_examples=60, deadline=None)
@given(
    seeds(),
    st.sampled_from(FLOATS),
    SHAPES,
    st.integers(1, 4),
    st.data(),
    st.sampled_from(["sum", "max", "min", "pair"]),
)
def test_blocks_and_pairs(
    seed: int, dtype: DType, shape: Any, stride: int, data: Any, kind: str
) -> None:
    bench = Bench(seed, dtype, special=True)
    repeat, block, step = shape
    lanes = 256 // dtype.size
    mask = data.draw(masks(lanes))
    active = lanes_of(mask, lanes)
    function = asc.pair_reduce_sum if kind == "pair" else getattr(asc, f"block_reduce_{kind}")
    group = 2 if kind == "pair" else 32 // dtype.size
    results = lanes // group
    start = DST + (0 if kind == "pair" else 8 * dtype.size)
    bench.freeze()
    dst, src = local(start, 4000, dtype), whole(SRC, dtype)
    bench.run(function, dst, src, repeat, mask, stride, block, step)
    for r in range(repeat):
        found = repeat_lanes(bench, SRC, r, dtype, active, block, step)
        for k in range(results):
            part = found[k * group : (k + 1) * group]
            if any(value is not None for value in part):
                value = tree(part) if kind in ("sum", "pair") else extreme(part, kind == "max")[0]
                bench.write(start + (r * stride * results + k) * dtype.size, value, dtype)
    check_values(bench, dtype)


@settings(max_examples=60, deadline=None)
@given(
    seeds(),
    st.sampled_from(FLOATS),
    st.integers(0, 500),
    st.tuples(st.integers(1, 3), st.integers(22, 24)),
    st.sampled_from(["whole_sum", "whole_max", "block_sum", "block_min", "pair_sum"]),
    st.booleans(),
)
def test_counter_mode(
    seed: int, dtype: DType, total: int, strides: Any, kind: str, from_register: bool
) -> None:
    """In counter mode the mask is a count of elements, and the repeat argument has no effect."""
    bench = Bench(seed, dtype)
    block, step = strides
    lanes = 256 // dtype.size
    unit, what = kind.split("_")
    function = getattr(asc, f"{unit}_reduce_{what}")
    dst, src = whole(DST, dtype), whole(SRC, dtype)
    order = (7, 0) if unit != "whole" else (0, 7)
    arguments = [total if value == 0 else value for value in order]
    bench.freeze()
    with bench.stream:
        asc.set_mask_count()
        if from_register:
            asc.set_vector_mask(total)
            arguments = [0, 0]
        function(dst, src, *arguments, 1, block, step, is_set_mask=not from_register)
    group = {"whole": lanes, "block": 32 // dtype.size, "pair": 2}[unit]
    per_repeat = lanes // group
    for r in range(-(-total // lanes)):
        active = [r * lanes + lane < total for lane in range(lanes)]
        found = repeat_lanes(bench, SRC, r, dtype, active, block, step)
        for k in range(per_repeat):
            part = found[k * group : (k + 1) * group]
            if all(value is None for value in part):
                continue
            at = DST + (r * per_repeat + k) * dtype.size
            if kind == "whole_max":
                at = DST + r * 2 * dtype.size
                value, lane = extreme(part, True)
                bench.write(at, value, dtype)
                bits = asc.uint16 if dtype is asc.float16 else asc.uint32
                bench.write(at + dtype.size, lane, bits)
            else:
                bench.write(at, tree(part) if what == "sum" else extreme(part, False)[0], dtype)
    bench.check()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("count", [1, 7, 64, 65, 128, 129, 1000, 4000])
def test_sum_of_count(dtype: DType, count: int) -> None:
    """A tree in each repeat, then one repeat after the other."""
    bench = Bench(count, dtype)
    lanes = 256 // dtype.size
    start = DST + dtype.size
    bench.run(asc.reduce_sum, local(start, 1, dtype), whole(SRC, dtype), whole(TMP, dtype), count)
    total: Any = None
    bench.freeze()
    for r in range(-(-count // lanes)):
        active = [r * lanes + lane < count for lane in range(lanes)]
        one = tree(repeat_lanes(bench, SRC, r, dtype, active, 1, 8))
        total = one if total is None else total + one
    bench.write(start, total, dtype)
    bench.check()
    with bench.stream:
        assert asc.get_acc_val(dtype) == float(total)


@settings(max_examples=25, deadline=None)
@given(seeds(), st.sampled_from(FLOATS), st.integers(0, 160), st.integers(0, 3), st.data())
def test_sum_of_repeats(seed: int, dtype: DType, repeat: int, step: int, data: Any) -> None:
    """Trees of the repeats' sums, rounds of a repeat each."""
    bench = Bench(seed, dtype)
    lanes = 256 // dtype.size
    mask = data.draw(masks(lanes))
    room = -(-repeat * dtype.size // 32) * 32
    tmp = local(TMP, room // dtype.size, dtype)
    bench.freeze()
    bench.run(asc.reduce_sum, local(DST, 8, dtype), whole(SRC, dtype), tmp, mask, repeat, step)
    sums = [
        tree(repeat_lanes(bench, SRC, r, dtype, lanes_of(mask, lanes), 1, step))
        for r in range(repeat)
    ]
    while len(sums) > 1:
        sums += [None] * (-len(sums) % lanes)
        sums = [tree(sums[i : i + lanes]) for i in range(0, len(sums), lanes)]
    if sums and sums[0] is not None:
        bench.write(DST, sums[0], dtype)
    got = bench.ub[DST : DST + 64].view(dtype.numpy)
    want = bench.want[DST : DST + 64].view(dtype.numpy)
    np.testing.assert_array_equal(got, want)
    outside = np.r_[0:TMP]  # only dst and the work buffer change
    np.testing.assert_array_equal(bench.ub[outside], bench.want[outside])
    np.testing.assert_array_equal(bench.ub[TMP + room :], bench.want[TMP + room :])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("count", [1, 64, 100, 128, 129, 3000, 6000])
@pytest.mark.parametrize("index", [False, True])
def test_extreme_of_count(dtype: DType, largest: bool, count: int, index: bool) -> None:
    bench = Bench(count, dtype)
    function = asc.reduce_max if largest else asc.reduce_min
    src = local(0, 8000, dtype)  # at most 32000 bytes, below dst
    bench.freeze()
    bench.run(function, local(DST + 8, 2, dtype), src, whole(TMP, dtype), count, index)
    found = [bench.read(i * dtype.size, dtype) for i in range(count)]
    value, at = extreme(found, largest)
    bench.write(DST + 8, value, dtype)
    if index:
        bench.write(DST + 8 + dtype.size, at, asc.uint16 if dtype is asc.float16 else asc.uint32)
    np.testing.assert_array_equal(bench.ub[:TMP], bench.want[:TMP])


@settings(max_examples=40, deadline=None)
@given(
    seeds(), st.sampled_from(FLOATS), st.integers(0, 600), st.integers(0, 1), st.data(), st.booleans()
)  # fmt: skip
def test_extreme_of_repeats(
    seed: int, dtype: DType, repeat: int, step: int, data: Any, index: bool
) -> None:
    bench = Bench(seed, dtype)
    lanes = 256 // dtype.size
    mask = data.draw(masks(lanes))
    bench.freeze()
    bench.run(
        asc.reduce_max,
        local(DST, 2, dtype),
        local(0, 16000 // dtype.size * 2, dtype),
        whole(TMP, dtype),
        mask=mask,
        repeat_time=repeat,
        src_rep_stride=step,
        cal_index=index,
    )
    found = []
    for r in range(repeat):
        found += repeat_lanes(bench, 0, r, dtype, lanes_of(mask, lanes), 1, step)
    value, at = extreme(found, True)
    if at >= 0:
        bench.write(DST, value, dtype)
        if index:
            bits = asc.uint16 if dtype is asc.float16 else asc.uint32
            bench.write(DST + dtype.size, at % (1 << 8 * bits.size), bits)
    np.testing.assert_array_equal(bench.ub[:TMP], bench.want[:TMP])


def test_extreme_register_is_over_all_repeats() -> None:
    bench = Bench(1)
    bench.put(SRC, np.r_[np.zeros(200), 9.0, np.zeros(55)].astype(np.float32))
    with bench.stream:
        asc.whole_reduce_max(local(DST, 64), local(SRC, 256), 64, 4, 1, 1, 8)
        assert asc.get_reduce_max_min_count() == (9.0, 200)
        asc.whole_reduce_min(local(DST, 64), local(SRC, 256), 64, 4, 1, 1, 8)
        assert asc.get_reduce_max_min_count() == (0.0, 0)


def test_neighbours_are_added_first() -> None:
    """0.5 vanishes beside 2048 in half precision, unless halves meet before."""
    bench = Bench(2, asc.float16)
    data = np.zeros(128, np.float16)
    data[:4] = [2048, 0.5, 0.5, 0.5]
    bench.put(SRC, data)
    bench.run(
        asc.whole_reduce_sum, whole(DST, asc.float16), whole(SRC, asc.float16), 128, 1, 1, 1, 8
    )
    assert (
        bench.ub[DST : DST + 2].view(np.float16)[0] == 2048
    )  # 2048 + 0.5 → 2048; 0.5 + 0.5 = 1 → 2049 → 2048
    data[:4] = [0.5, 0.5, 0.5, 2048]
    data[4:8] = [1, 1, 0, 0]
    bench.put(SRC, data)
    bench.run(
        asc.whole_reduce_sum, whole(DST, asc.float16), whole(SRC, asc.float16), 128, 1, 1, 1, 8
    )
    assert bench.ub[DST : DST + 2].view(np.float16)[0] == 2050


def test_same_place_keeps_the_last_repeat() -> None:
    bench = Bench(3)
    bench.run(asc.whole_reduce_sum, local(DST, 8), local(SRC, 640), 64, 10, 0, 1, 8)
    once = Bench(3)
    once.run(asc.whole_reduce_sum, local(DST, 8), local(SRC, 640)[576:], 64, 1, 1, 1, 8)
    np.testing.assert_array_equal(bench.ub, once.ub)


def test_in_place() -> None:
    """Results that trail what has been read: the work buffer's own rounds do the same."""
    bench, other = Bench(4), Bench(4)
    bench.run(asc.whole_reduce_sum, local(SRC, 640), local(SRC, 640), 64, 10, 1, 1, 8)
    other.run(asc.whole_reduce_sum, local(DST, 640), local(SRC, 640), 64, 10, 1, 1, 8)
    np.testing.assert_array_equal(bench.ub[:40], other.ub[DST : DST + 40])


@settings(max_examples=60, deadline=None)
@given(
    seeds(),
    st.integers(0, 60),
    st.integers(0, 60),
    st.integers(1, 4),
    st.integers(0, 9),
    st.integers(1, 6),
)
def test_overlap_is_refused_or_right(
    seed: int, dst: int, src: int, repeat: int, step: int, stride: int
) -> None:
    """Whatever the addresses: a fault that changes nothing, or what repeats in order give."""
    bench = Bench(seed)
    start, base = 4096 + 4 * dst, 4096 + 32 * (src // 4)
    try:
        bench.run(
            asc.whole_reduce_sum, local(start, 400), local(base, 4000), 64, repeat, stride, 1, step
        )
    except IsaFault as error:
        assert error.code == "operand-overlap"
        bench.check()
        return
    for r in range(repeat):
        found = [
            bench.read(lane_address(base, r, k, asc.float32, 1, step), asc.float32)
            for k in range(64)
        ]
        bench.write(start + r * stride * 4, tree(found), asc.float32)
    bench.check()


def test_reduce_max_in_the_end_of_ub() -> None:
    """Masks and counts that leave lanes out do not touch the bytes of those lanes."""
    bench = Bench(5, size=1024)
    with bench.stream:
        asc.set_mask_count()
        asc.whole_reduce_max(local(0, 4), local(640, 96), 96, 0, 1, 1, 8)
        asc.set_mask_norm()
        asc.whole_reduce_sum(local(32, 8), local(960, 16), 9, 1, 1, 1, 8)
    last = bench.want[960:996].view(np.float32)
    want = tree([*last, *[None] * 55])
    assert same_value(bench.ub[32:36].view(np.float32)[0], want)


A, B = local(SRC, 1024), local(DST, 1024)
H = local(SRC, 1024, asc.float16)
I = local(SRC, 1024, asc.int32)  # noqa: E741


@pytest.mark.parametrize(
    ("call", "code", "part"),
    [
        (lambda: asc.whole_reduce_sum(B, I, 64, 1, 1, 1, 8), "dtype-not-supported", "takes float16, float32"),
        (lambda: asc.whole_reduce_sum(B, H, 64, 1, 1, 1, 8), "dtype-mismatch", "All operands need one type"),
        (lambda: asc.whole_reduce_sum(B, A, 64, 256, 1, 1, 8), "repeat-times-limit", "8 bits"),
        (lambda: asc.whole_reduce_sum(B, A, 64, 1, 1, 256, 8), "src-blk-stride-limit", "allowed is 0 to 255"),
        (lambda: asc.whole_reduce_sum(B, A, 64, 17, 1, 1, 8), "tensor-out-of-bounds", "256 bytes too many"),
        (lambda: asc.whole_reduce_max(local(DST + 4, 8), A, 64, 1, 1, 1, 8), "misaligned-operand", "8-byte border"),
        (lambda: asc.whole_reduce_max(B, A, 64, 1, 1, 1, 8, 7), "not-a-mode", "must be a ReduceOrder"),
        (lambda: asc.whole_reduce_max(local(DST, 3), A, 64, 2, 1, 1, 8), "tensor-out-of-bounds", "4 bytes too many"),
        (lambda: asc.block_reduce_sum(local(DST + 16, 8), A, 1, 64, 1, 1, 8), "misaligned-operand", "32-byte border"),
        (lambda: asc.pair_reduce_sum(local(DST, 8), A, 1, 64, 1, 1, 8), "tensor-out-of-bounds", "96 bytes too many"),
        (lambda: asc.repeat_reduce_sum(B, A, 1, [3], 1, 1, 1, 8), "form", "use whole_reduce_sum"),
        (lambda: asc.whole_reduce_sum(A[2:], A, 64, 4, 100, 1, 8), "operand-overlap", "an earlier one wrote"),
        (lambda: asc.reduce_sum(B, A, local(TMP, 3), 64, 4, 8), "work-buffer", "this call needs 32"),
        (lambda: asc.reduce_max(B, A, local(TMP, 8), 1000), "work-buffer", "has 32 bytes, this call needs 128"),
        (lambda: asc.reduce_max(B, A, local(TMP, 32), 64, 100, 0), "work-buffer", "needs 800"),
        (lambda: asc.reduce_sum(B, A, A), "form", "takes count, or mask, repeat_time and src_rep_stride"),
        (lambda: asc.reduce_sum(B, A, A, 3, 4), "form", "takes count"),
        (lambda: asc.reduce_max(B, A, A, 3, cal_index=2), "not-a-flag", "True or False"),
        (lambda: asc.reduce_max(local(DST + 4, 8), A, A, 3), "misaligned-operand", "8-byte border"),
        (lambda: asc.get_acc_val(asc.int32), "dtype-not-supported", "float16 and float32"),
    ],
)  # fmt: skip
def test_messages(call: Any, code: str, part: str) -> None:
    with Bench(0).stream, pytest.raises(IsaFault) as caught:
        call()
    assert caught.value.code == code
    assert part in caught.value.message


def test_work_and_price() -> None:
    """A repeat is a repeat; the count form of reduce_sum is one instruction."""
    bench = Bench(6)
    with bench.stream:
        asc.whole_reduce_sum(B, A, 3, 16, 1, 1, 8)
        asc.reduce_sum(B, A, A, 1000)
        asc.block_reduce_max(B, A, 5, 64, 1, 1, 8)
        asc.whole_reduce_sum(B, A, 64, 0, 1, 1, 8)
    calls = bench.stream.issued
    assert [(call.name, call.work, call.cost[0], call.pipe) for call in calls] == [
        ("whole_reduce_sum", 16, "whole_reduce_sum", Pipe.V),
        ("reduce_sum", 16, "reduce_sum", Pipe.V),
        ("block_reduce_max", 5, "block_reduce_max", Pipe.V),
        ("whole_reduce_sum", 0, "whole_reduce_sum", Pipe.V),
    ]
    assert calls[3].writes == ()
