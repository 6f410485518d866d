"""Sorting whole vectors: sort32 for each 32 elements, then merges of four lists at a time."""

from __future__ import annotations

from isa.arguments import check_integer
from isa.faults import fault
from isa.move import data_copy
from isa.sync import pipe_barrier
from isa.tensor import LocalTensor
from isa.types import PipeID
from isa.vector.params import MrgSort4Info, MrgSortSrcList
from isa.vector.sort import RECORD_BYTES, SORTED_AT_ONCE, mrg_sort, sort32

LISTS = 4
"""Lists that one merge takes."""
MAX_REPEAT = 255


def sort(
    dst: LocalTensor,
    concat: LocalTensor,
    index: LocalTensor,
    tmp: LocalTensor,
    repeat_time: int,
    is_full_sort: bool = False,
) -> None:
    """Sort 32 scores and their indices a repeat into records of 8 bytes, largest first; with `is_full_sort` all.

    `tmp` holds as many records as dst where all are sorted; otherwise nothing reads it.
    """
    repeats = check_integer("sort", "repeat_time", repeat_time, 0, MAX_REPEAT)
    if not is_full_sort or repeats <= 1:
        sort32(dst, concat, index, repeats)
        return
    for operand, tensor in (("dst", dst), ("concat", concat), ("index", index), ("tmp", tmp)):
        if not isinstance(tensor, LocalTensor):
            fault(
                "ILLEGAL_PARAM",
                "wrong-operand",
                f"sort: {operand} must be a LocalTensor, got {type(tensor).__name__}",
            )
    # Each merge goes from one tensor to the other: begin where the last one ends in dst.
    levels = 0
    while SORTED_AT_ONCE * LISTS**levels < SORTED_AT_ONCE * repeats:
        levels += 1
    here, there = (tmp, dst) if levels % 2 else (dst, tmp)
    sort32(here, concat, index, repeats)
    length = SORTED_AT_ONCE
    for _ in range(levels):
        pipe_barrier(PipeID.PIPE_V)
        _merge_level(there, here, length, SORTED_AT_ONCE * repeats)
        here, there, length = there, here, length * LISTS


def _merge_level(dst: LocalTensor, src: LocalTensor, length: int, total: int) -> None:
    """Merge sorted lists of `length` records, four at a time, until none of the `total` records is left."""
    in_record = RECORD_BYTES // dst.dtype.size
    for start in range(0, total, LISTS * length):
        counts = [
            min(length, total - begin)
            for begin in range(start, min(start + LISTS * length, total), length)
        ]
        begin = start * in_record
        if len(counts) == 1:
            data_copy(dst[begin:], src[begin:], counts[0] * in_record)
            continue
        lists = [src[begin + number * length * in_record :] for number in range(len(counts))]
        info = MrgSort4Info(counts, valid_bit=(1 << len(counts)) - 1)
        mrg_sort(dst[begin:], MrgSortSrcList(dst.dtype, *lists), info)
