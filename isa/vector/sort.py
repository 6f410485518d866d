"""Sorting: 32 pairs of score and index at a time, and merging of sorted lists.

A record is 8 bytes: the score in the low 4 bytes (of float16 in the low 2, the two bytes above are 0), the index,
a uint32, in the high 4. The largest score comes first; of equal scores the earlier one; NaN comes last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from isa.access import Access, check_bounds, contiguous
from isa.faults import fault
from isa.instruction import Call, Instruction, register
from isa.tensor import LocalTensor
from isa.types import REPEAT_BYTES, DType, Pipe, float16, float32, uint8, uint32
from isa.vector.checks import check_core, check_integer, check_local, check_repeat, check_same_dtype
from isa.vector.params import MrgSort4Info, MrgSortSrcList
from isa.vector.places import (
    PackedCall,
    block_ranges,
    capacity,
    check_disjoint,
    check_place,
    check_repeat_order,
)
from isa.vector.special import (
    MERGED,
    bank,
    bank_key,
    check_type,
    flag_argument,
    merged_count,
    overload,
    put,
    read_register,
    send,
    tensor_key,
)

Array = Any
_PIPE = Pipe.V.name
_TYPES = (float16, float32)
RECORD_BYTES = 8
SORTED_AT_ONCE = 32
MAX_RECORDS = 4095
"""Records of one list of `mrg_sort`."""


def _descending(scores: Array) -> Array:
    """Return the order of each row's scores, largest first, earlier first where equal."""
    wide = -scores.astype(np.float64)
    return np.argsort(wide, axis=-1, kind="stable")


def _sort32(scores: Array, indices: Array) -> Array:
    """dst = 32 records of (score, index) a repeat, largest score first."""
    order = _descending(scores)
    records = np.zeros((*scores.shape, RECORD_BYTES), np.uint8)
    size = scores.dtype.itemsize
    sorted_scores = np.ascontiguousarray(np.take_along_axis(scores, order, -1))
    records[..., :size] = sorted_scores[..., None].view(np.uint8)
    sorted_indices = np.ascontiguousarray(np.take_along_axis(indices, order, -1))
    records[..., 4:] = sorted_indices[..., None].view(np.uint8)
    return records


_SORT = register(Instruction("sort32", Pipe.V, "sort32", _TYPES, _sort32, "repeat_time"))


def sort32(dst: LocalTensor, src0: LocalTensor, src1: LocalTensor, repeat_time: int) -> None:
    """Sort 32 scores of src0 with their indices of src1 (uint32) a repeat into 32 records of 8 bytes in dst.

    Source and destination advance by 32 elements and 256 bytes a repeat.
    """

    def bind() -> Call:
        check_local("sort32", "dst", dst, _TYPES)
        check_local("sort32", "src0", src0, _TYPES)
        check_local("sort32", "src1", src1, (uint32,))
        check_same_dtype("sort32", dst, (("src0", src0),))
        repeat = check_repeat("sort32", repeat_time)
        cost = ("sort32", dst.dtype.name)
        if repeat == 0:
            return Call(_SORT, Pipe.V, (), (), _sort32, cost=cost)
        total = repeat * SORTED_AT_ONCE
        target = Access(dst, dst.addr, (total * RECORD_BYTES,), (1,), uint8)
        sources = []
        check_bounds(target, dst, "sort32: dst", capacity(), _PIPE)
        for what, tensor in (("src0", src0), ("src1", src1)):
            access = contiguous(tensor, total)
            check_bounds(access, tensor, f"sort32: {what}", capacity(), _PIPE)
            sources.append(access)
            row_bytes = SORTED_AT_ONCE * tensor.dtype.size
            check_repeat_order(
                "sort32",
                dst,
                lambda row: block_ranges(dst.addr + row * REPEAT_BYTES, 0, 1, REPEAT_BYTES),
                tensor,
                lambda row, t=tensor, n=row_bytes: block_ranges(t.addr + row * n, 0, 1, n),  # type: ignore[misc]
                repeat,
                within=True,
            )

        def meaning(scores: Array, indices: Array) -> Array:
            rows = (repeat, SORTED_AT_ONCE)
            return _sort32(scores.reshape(rows), indices.reshape(rows)).ravel()

        return Call(_SORT, Pipe.V, tuple(sources), (target,), meaning, work=repeat, cost=cost)

    send("sort32", (tensor_key(dst, src0, src1), repeat_time), bind)


def _merge(lists: list[Array], scores: list[Array], stop: bool) -> tuple[Array, list[int]]:
    """dst = the records of up to four sorted lists as one, largest score first, the lower list where equal."""
    taken = [0] * len(lists)
    order = np.argsort(np.concatenate([-one.astype(np.float64) for one in scores]), kind="stable")
    owner = np.repeat(np.arange(len(lists)), [len(one) for one in lists])[order]
    merged = np.concatenate(lists)[order]
    if stop:
        ends = [int(np.flatnonzero(owner == number)[-1]) for number in range(len(lists))]
        merged, owner = merged[: min(ends) + 1], owner[: min(ends) + 1]
    for number in range(len(lists)):
        taken[number] = int((owner == number).sum())
    return merged, taken


_MERGE = register(
    Instruction(
        "mrg_sort",
        Pipe.V,
        "mrg_sort",
        _TYPES,
        _merge,
        "params; element_count_list, sorted_num, valid_bit, repeat_time, is_exhausted_suspension",
    )
)


def mrg_sort(dst: LocalTensor, sort_list: MrgSortSrcList, *args: Any, **kwargs: Any) -> None:
    """Merge two to four sorted lists of records into one, largest score first, the lower list where equal.

    `(dst, sort_list, params)` with MrgSort4Info, or `(dst, sort_list, element_count_list, sorted_num, valid_bit,
    repeat_time, is_exhausted_suspension=False)`, which puts into the list `sorted_num` how many records of each
    list were taken. Where a list runs out, a merge with suspension stops: `get_mrg_sort_result` tells what it
    took. More than one repeat needs four lists of equal length that lie side by side. Lists must be sorted: the
    result for others is not the hardware's.
    """
    if (args and isinstance(args[0], MrgSort4Info)) or "params" in kwargs:
        overload("mrg_sort", _merge_by_info, (dst, sort_list, *args), kwargs)
    else:
        overload("mrg_sort", _merge_by_counts, (dst, sort_list, *args), kwargs)


def _merge_by_info(dst: LocalTensor, sort_list: MrgSortSrcList, params: MrgSort4Info) -> None:
    check_type("mrg_sort", "params", params, MrgSort4Info)
    _send_merge(
        dst,
        sort_list,
        params.element_lengths,
        params.valid_bit,
        params.repeat_times,
        params.if_exhausted_suspension,
    )


def _merge_by_counts(
    dst: LocalTensor,
    sort_list: MrgSortSrcList,
    element_count_list: Sequence[int],
    sorted_num: list[int],
    valid_bit: int,
    repeat_time: int,
    is_exhausted_suspension: bool = False,
) -> None:
    if not isinstance(sorted_num, list):
        _refuse(f"sorted_num must be a list, into which the counts are put, got {sorted_num!r}")
    if not _send_merge(
        dst, sort_list, element_count_list, valid_bit, repeat_time, is_exhausted_suspension
    ):
        return
    number = {3: 2, 7: 3, 15: 4}[int(valid_bit)]
    if is_exhausted_suspension:
        sorted_num[:] = list(get_mrg_sort_result())[:number]
    else:
        sorted_num[:] = [int(count) for count in element_count_list][:number]


def _refuse(sentence: str) -> NoReturn:
    fault("ILLEGAL_PARAM", "merge-lists", f"mrg_sort: {sentence}", pipe=_PIPE)


def _send_merge(
    dst: LocalTensor, sort_list: Any, lengths: Any, valid_bit: Any, repeat_times: Any, suspend: Any
) -> bool:
    def bind() -> Call:
        check_type("mrg_sort", "sort_list", sort_list, MrgSortSrcList)
        stop = flag_argument("mrg_sort", "if_exhausted_suspension", suspend)
        if not isinstance(valid_bit, (int, np.integer)) or valid_bit not in (3, 7, 15):
            _refuse(
                f"valid_bit is {valid_bit!r}; it is 3, 7 or 15: a bit for each of the first two, three or four lists"
            )
        number = {3: 2, 7: 3, 15: 4}[int(valid_bit)]
        if len(sort_list.lists) < number:
            _refuse(
                f"valid_bit {valid_bit} names {number} lists, MrgSortSrcList holds {len(sort_list.lists)}"
            )
        if not isinstance(lengths, (list, tuple)) or len(lengths) < number:
            _refuse(
                f"element lengths must be a list of {number} counts of records, got {lengths!r}"
            )
        counts = [
            check_integer("mrg_sort", "element_lengths", count, 0, MAX_RECORDS)
            for count in lengths[:number]
        ]
        repeat = check_repeat("mrg_sort", repeat_times)
        return _bind_merge(dst, sort_list.lists[:number], counts, repeat, stop)

    lists = sort_list.lists if isinstance(sort_list, MrgSortSrcList) else []
    counts = tuple(lengths) if isinstance(lengths, (list, tuple)) else repr(lengths)
    key = (
        tensor_key(dst, *lists),
        len(lists),
        counts,
        valid_bit,
        repeat_times,
        suspend,
        bank_key(),
    )
    return send("mrg_sort", key, bind)


def _bind_merge(
    dst: LocalTensor, lists: list[Any], counts: list[int], repeat: int, stop: bool
) -> Call:
    check_local("mrg_sort", "dst", dst, _TYPES)
    cost = ("mrg_sort", dst.dtype.name)
    total = sum(counts)
    for position, tensor in enumerate(lists):
        what = f"list {position + 1}"
        check_place("mrg_sort", what, tensor, _TYPES, RECORD_BYTES, "Lists of records start on one")
        check_same_dtype("mrg_sort", dst, ((what, tensor),))
    if repeat == 0 or total == 0:
        return Call(_MERGE, Pipe.V, (), (), _merge, cost=cost)
    if repeat > 1:
        _check_merge_repeats(lists, counts, stop)
    if stop and 0 in counts:
        _refuse(
            "a list of length 0 has run out before the merge begins, so that nothing is merged. Leave it out"
        )
    size = dst.dtype.size
    target = Access(dst, dst.addr, (repeat * total * RECORD_BYTES,), (1,), uint8)
    check_bounds(target, dst, "mrg_sort: dst", capacity(), _PIPE)
    sources = []
    filled = [position for position, count in enumerate(counts) if count]
    for position in filled:
        tensor, count = lists[position], counts[position]
        access = Access(
            tensor,
            tensor.addr,
            (repeat, count, RECORD_BYTES),
            (total * RECORD_BYTES, RECORD_BYTES, 1),
            uint8,
        )
        if repeat == 1:
            check_bounds(access, tensor, f"mrg_sort: list {position + 1}", capacity(), _PIPE)
        check_disjoint("mrg_sort", target, access, tensor)
        sources.append(access)
    if repeat > 1:
        _check_all_lists(lists[0], repeat * total * RECORD_BYTES)
    registers = bank()
    dtype = dst.dtype.numpy

    def meaning(*values: Array) -> Array:
        merged = []
        for row in range(repeat):
            records = [np.ascontiguousarray(one[row]) for one in values]
            scores = [one[:, :size].copy().view(dtype)[:, 0] for one in records]
            done, taken = _merge(records, scores, stop)
            merged.append(done)
            every = np.zeros(4, np.uint32)
            every[filled] = taken
            put(registers, MERGED, every)
        return np.concatenate(merged).ravel()

    call = PackedCall if stop else Call
    return call(
        _MERGE,
        Pipe.V,
        tuple(sources),
        (target,),
        meaning,
        work=-(-repeat * total // SORTED_AT_ONCE),
        cost=cost,
        extra=f"records:{repeat * total}",
    )


def _check_merge_repeats(lists: list[LocalTensor], counts: list[int], stop: bool) -> None:
    beside = all(
        later.addr == lists[0].addr + position * counts[0] * RECORD_BYTES
        for position, later in enumerate(lists)
    )
    if len(lists) < 4 or len(set(counts)) > 1 or not beside or stop:
        _refuse(
            "more than one repeat needs four lists of equal length that lie side by side, and no suspension. Merge "
            "them one call at a time"
        )


def _check_all_lists(first: LocalTensor, need: int) -> None:
    end = capacity()
    if first.addr + need > end:
        fault(
            "BOUNDS",
            "memory-out-of-bounds",
            f"mrg_sort: the lists of all repeats reach from UB byte {first.addr} to {first.addr + need}; UB has {end}. "
            f"Each repeat goes on by the length of four lists",
            first.name,
            (first.addr, first.addr + need),
            _PIPE,
        )


def get_mrg_sort_result() -> tuple[int, int, int, int]:
    """Return how many records the last `mrg_sort` took from each of its four lists. The scalar unit waits for V."""
    if check_core("get_mrg_sort_result") is None:
        return (0, 0, 0, 0)
    first, second, third, fourth = (int(read_register(merged_count(number))) for number in range(4))
    return (first, second, third, fourth)


def get_sort_len(elem_count: int, dtype: DType = float32) -> int:
    """Return how many elements of a type `elem_count` records take. pyasc has no `dtype` here; AscendC has."""
    return _records("get_sort_len", elem_count, dtype)


def get_sort_offset(elem_offset: int, dtype: DType = float32) -> int:
    """Return the offset, in elements of a type, of record number `elem_offset`."""
    return _records("get_sort_offset", elem_offset, dtype)


def _records(name: str, count: Any, dtype: Any) -> int:
    if dtype not in _TYPES:
        fault(
            "ILLEGAL_PARAM",
            "dtype-not-supported",
            f"{name}: dtype is {dtype!r}, sorting has float16 and float32",
        )
    return check_integer(name, "count", count, 0, (1 << 32) - 1) * (RECORD_BYTES // int(dtype.size))
