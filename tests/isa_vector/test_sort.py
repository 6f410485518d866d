"""sort32 and mrg_sort against selection by hand; the merge register."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_sim import asc
from isa.faults import IsaFault
from isa.types import DType
from tests.isa_vector.kit import DST, FLOATS, SRC, SRC1, TMP, Bench, local, seeds, whole

LISTS = [SRC, SRC + 4096, SRC + 8192, SRC1]


def put_record(bench: Bench, at: int, score: Any, index: int, dtype: DType) -> None:
    """A record as the manual lays it out."""
    bench.write(at, 0, asc.uint32)
    bench.write(at, score, dtype)
    bench.write(at + 4, index, asc.uint32)


def first_of(scores: list[Any], left: list[int]) -> int:
    """The position of the largest score that is left; the first of equal ones."""
    best = left[0]
    for position in left[1:]:
        if scores[position] > scores[best]:
            best = position
    return best


@settings(max_examples=40, deadline=None)
@given(seeds(), st.sampled_from(FLOATS), st.integers(0, 6))
def test_sort32(seed: int, dtype: DType, repeat: int) -> None:
    bench = Bench(seed, dtype)
    bench.put(SRC1, bench.rng.integers(0, 1 << 32, 2048, np.uint32))
    bench.run(asc.sort32, whole(DST, dtype), whole(SRC, dtype), whole(SRC1, asc.uint32), repeat)
    for r in range(repeat):
        scores = [bench.read(SRC + (32 * r + k) * dtype.size, dtype) for k in range(32)]
        left = list(range(32))
        for place in range(32):
            k = first_of(scores, left)
            left.remove(k)
            index = bench.read(SRC1 + (32 * r + k) * 4, asc.uint32)
            put_record(bench, DST + r * 256 + place * 8, scores[k], index, dtype)
    bench.check()


def put_lists(bench: Bench, starts: list[int], counts: list[int], dtype: DType) -> list[Any]:
    """Sorted lists with ties; returns (score, index) of each."""
    lists = []
    for number, (start, count) in enumerate(zip(starts, counts, strict=True)):
        scores = np.sort(bench.rng.integers(-6, 6, count))[::-1].astype(dtype.numpy)
        records = np.zeros((count, 8), np.uint8)
        records[:, : dtype.size] = scores[:, None].view(np.uint8)
        indices = np.arange(count, dtype=np.uint32) + np.uint32(1000 * number)
        records[:, 4:] = indices[:, None].view(np.uint8)
        bench.put(start, records)
        lists.append(list(zip(scores.tolist(), indices.tolist(), strict=True)))
    return lists


def merge(lists: list[Any], stop: bool) -> tuple[list[Any], list[int]]:
    """Take the largest head again and again, the lowest list's on a tie."""
    taken = [0] * len(lists)
    merged = []
    while any(taken[k] < len(lists[k]) for k in range(len(lists))):
        heads = [k for k in range(len(lists)) if taken[k] < len(lists[k])]
        best = max(heads, key=lambda k: (lists[k][taken[k]][0], -k))
        merged.append(lists[best][taken[best]])
        taken[best] += 1
        if stop and taken[best] == len(lists[best]):
            break
    return merged, taken


@settings(max_examples=50, deadline=None)
@given(
    seeds(),
    st.sampled_from(FLOATS),
    st.lists(st.integers(1, 70), min_size=2, max_size=4),
    st.booleans(),
    st.booleans(),
)
def test_merge(seed: int, dtype: DType, counts: list[int], stop: bool, info: bool) -> None:
    bench = Bench(seed, dtype)
    lists = put_lists(bench, LISTS[: len(counts)], counts, dtype)
    tensors = [local(start, 16384 // dtype.size // 4, dtype) for start in LISTS[: len(counts)]]
    source = asc.MrgSortSrcList(dtype, *tensors)
    valid = {2: 3, 3: 7, 4: 15}[len(counts)]
    merged, taken = merge(lists, stop)
    with bench.stream:
        if info:
            lengths = counts + [0] * (4 - len(counts))
            asc.mrg_sort(whole(DST, dtype), source, asc.MrgSort4Info(lengths, stop, valid))
            assert list(asc.get_mrg_sort_result()) == taken + [0] * (4 - len(taken))
        else:
            found: list[int] = []
            asc.mrg_sort(whole(DST, dtype), source, counts, found, valid, 1, stop)
            assert found == taken
    for place, (score, index) in enumerate(merged):
        put_record(bench, DST + 8 * place, score, index, dtype)
    bench.check()


@pytest.mark.parametrize("dtype", FLOATS)
def test_merge_repeats(dtype: DType) -> None:
    bench = Bench(1, dtype)
    starts = [SRC + 8 * 20 * k for k in range(12)]
    lists = put_lists(bench, starts, [20] * 12, dtype)
    tensors = [local(start, 2000 // dtype.size, dtype) for start in starts[:4]]
    source = asc.MrgSortSrcList(dtype, *tensors)
    bench.run(asc.mrg_sort, whole(DST, dtype), source, asc.MrgSort4Info([20] * 4, False, 15, 3))
    place = DST
    for r in range(3):
        for score, index in merge(lists[4 * r : 4 * r + 4], False)[0]:
            put_record(bench, place, score, index, dtype)
            place += 8
    bench.check()


def test_merge_with_an_empty_list() -> None:
    bench = Bench(2)
    lists = put_lists(bench, LISTS[:2], [5, 5], asc.float32)
    source = asc.MrgSortSrcList(asc.float32, *[local(a, 16) for a in LISTS[:2]], local(TMP, 2))
    with bench.stream:
        asc.mrg_sort(local(DST, 64), source, asc.MrgSort4Info([5, 5, 0], False, 7))
        assert asc.get_mrg_sort_result() == (5, 5, 0, 0)
    for place, (score, index) in enumerate(merge(lists, False)[0]):
        put_record(bench, DST + 8 * place, score, index, asc.float32)
    bench.check()


def test_sort_then_merge_is_a_sort() -> None:
    bench = Bench(3)
    bench.put(SRC1, np.arange(128, dtype=np.uint32))
    lists = [local(TMP + 256 * k, 64) for k in range(4)]
    with bench.stream:
        asc.sort32(local(TMP, 256), local(SRC, 128), local(SRC1, 128, asc.uint32), 4)
        asc.mrg_sort(
            local(DST, 256), asc.MrgSortSrcList(asc.float32, *lists), asc.MrgSort4Info([32] * 4)
        )
        asc.gather_mask(
            local(DST + 4096, 128), local(DST, 256), 1, False, 0, asc.GatherMaskParams(1, 4, 8, 0)
        )
    scores = bench.ub[SRC : SRC + 512].view(np.float32)
    got = bench.ub[DST + 4096 : DST + 4096 + 512].view(np.float32)
    np.testing.assert_array_equal(got, np.sort(scores)[::-1])


def test_lengths() -> None:
    with Bench(0).stream:
        assert asc.get_sort_len(100) == 200
        assert asc.get_sort_len(100, asc.float16) == 400
        assert asc.get_sort_offset(3, asc.float16) == 12


def test_work_counts_records() -> None:
    bench = Bench(4)
    source = asc.MrgSortSrcList(asc.float32, local(SRC, 256), local(SRC1, 256))
    with bench.stream:
        asc.sort32(local(DST, 256), local(SRC, 128), local(TMP, 128, asc.uint32), 3)
        asc.mrg_sort(local(DST, 1024), source, asc.MrgSort4Info([40, 30], False, 3))
    assert [(call.work, call.cost[0]) for call in bench.stream.issued] == [
        (3, "sort32"),
        (3, "mrg_sort"),
    ]


A, B, D = local(SRC, 1024), local(SRC1, 1024), local(DST, 1024)
I = local(TMP, 1024, asc.uint32)  # noqa: E741
TWO = asc.MrgSortSrcList(asc.float32, A, B)
INFO = asc.MrgSort4Info


@pytest.mark.parametrize(
    ("call", "code", "part"),
    [
        (lambda: asc.sort32(D, A, A, 1), "dtype-not-supported", "takes uint32"),
        (lambda: asc.sort32(D, A, I, 300), "repeat-times-limit", "300"),
        (lambda: asc.sort32(D, A, I, 17), "tensor-out-of-bounds", "256 bytes too many"),
        (lambda: asc.sort32(A, A, I, 2), "operand-overlap", "earlier one wrote"),
        (lambda: asc.mrg_sort(D, TWO, INFO([4, 4], False, 5)), "merge-lists", "valid_bit is 5; it is 3, 7 or 15"),
        (lambda: asc.mrg_sort(D, TWO, INFO([4, 4, 4], False, 7)), "merge-lists", "names 3 lists"),
        (lambda: asc.mrg_sort(D, TWO, INFO([4], False, 3)), "merge-lists", "list of 2 counts"),
        (lambda: asc.mrg_sort(D, TWO, INFO([5000, 4], False, 3)), "element-lengths-limit", "0 to 4095"),
        (lambda: asc.mrg_sort(D, TWO, INFO([4, 0], True, 3)), "merge-lists", "Leave it out"),
        (lambda: asc.mrg_sort(D, TWO, INFO([4, 4], False, 3, 2)), "merge-lists", "side by side"),
        (lambda: asc.mrg_sort(A, TWO, INFO([4, 4], False, 3)), "operand-overlap", "separate bytes"),
        (lambda: asc.mrg_sort(D, TWO, INFO([600, 4], False, 3)), "tensor-out-of-bounds", "bytes too many"),
        (lambda: asc.mrg_sort(D, TWO, [4, 4], None, 3, 1), "merge-lists", "sorted_num must be a list"),
        (lambda: asc.mrg_sort(D, A, INFO([4, 4], False, 3)), "wrong-params", "must be MrgSortSrcList"),
        (lambda: asc.get_sort_len(3, asc.int32), "dtype-not-supported", "float16 and float32"),
    ],
)  # fmt: skip
def test_messages(call: Any, code: str, part: str) -> None:
    with Bench(0).stream, pytest.raises(IsaFault) as caught:
        call()
    assert caught.value.code == code
    assert part in caught.value.message
