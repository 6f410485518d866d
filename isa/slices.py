"""Copies of slices between GM and UB: a loop of padded copies, one for each row of the outer dimensions."""

from __future__ import annotations

from itertools import product
from typing import Any

from isa.arguments import check_integer
from isa.copy_pad import data_copy_pad
from isa.faults import fault
from isa.params import DataCopyExtParams, SliceInfo
from isa.routes import Tensor
from isa.tensor import GlobalTensor, LocalTensor
from isa.types import BLOCK_BYTES

MAX_DIMS = 8
"""Dimensions of a slice: K_MAX_SHAPE_DIM."""


def copy_slices(dst: Tensor, src: Tensor, dst_slices: Any, src_slices: Any, dim_value: Any) -> None:
    """Copy the elements that `src_slices` names to the places that `dst_slices` names, first dimension innermost."""
    kinds = {type(dst), type(src)}
    if kinds != {GlobalTensor, LocalTensor}:
        fault(
            "ILLEGAL_PARAM",
            "wrong-operand",
            "data_copy of slices goes between a GlobalTensor and a LocalTensor",
        )
    dims = check_integer("data_copy", "dim_value", dim_value, 1, MAX_DIMS)
    for what, slices in (("slice_list1", dst_slices), ("slice_list2", src_slices)):
        _check(what, slices, dims)
    rows_to = [_starts(one) for one in dst_slices[1:dims]]
    rows_from = [_starts(one) for one in src_slices[1:dims]]
    bursts = [len(_bursts(one, dst.dtype.size)) for one in (dst_slices[0], src_slices[0])]
    if [len(rows) for rows in rows_to] != [len(rows) for rows in rows_from] or bursts[0] != bursts[
        1
    ]:
        fault(
            "ILLEGAL_PARAM",
            "slice-shape",
            f"data_copy: dst has {_shape(bursts[0], rows_to)} bursts, src has {_shape(bursts[1], rows_from)}: slices "
            f"must agree",
        )
    params = _params(dst, src, dst_slices[0], src_slices[0])
    # The last dimension runs slowest, as the list has the innermost first.
    for to, at in zip(product(*reversed(rows_to)), product(*reversed(rows_from)), strict=True):
        target = _offset(dst_slices[:dims], to[::-1])
        source = _offset(src_slices[:dims], at[::-1])
        data_copy_pad(dst[target:], src[source:], params)


def _check(what: str, slices: Any, dims: int) -> None:
    if not isinstance(slices, (list, tuple)) or len(slices) < dims:
        fault(
            "ILLEGAL_PARAM",
            "wrong-params",
            f"data_copy: {what} is a list of {dims} SliceInfo, one for each dimension, got {slices!r}",
        )
    for number, one in enumerate(slices[:dims]):
        if not isinstance(one, SliceInfo):
            fault(
                "ILLEGAL_PARAM",
                "wrong-params",
                f"data_copy: {what}[{number}] is a SliceInfo, got {one!r}",
            )
        label = f"{what}[{number}]"
        start = check_integer("data_copy", f"{label}.start_index", one.start_index, 0, None)
        end = check_integer("data_copy", f"{label}.end_index", one.end_index, start, None)
        check_integer("data_copy", f"{label}.stride", one.stride, 0, None)
        check_integer("data_copy", f"{label}.burst_len", one.burst_len, 1, None)
        check_integer("data_copy", f"{label}.shape_value", one.shape_value, end + 1, None)
        if number and one.burst_len != 1:
            fault(
                "ILLEGAL_PARAM",
                "slice-burst",
                f"data_copy: {label}.burst_len is {one.burst_len}; beyond the first dimension it is 1",
            )


def _bursts(one: SliceInfo, size: int) -> range:
    """Return where the bursts of the first dimension begin, in elements."""
    length = int(one.burst_len or 1) * BLOCK_BYTES // size
    starts = range(one.start_index, int(one.end_index or 0) + 1, length + one.stride)
    if starts and starts[-1] + length - 1 > int(one.end_index or 0):
        fault(
            "ILLEGAL_PARAM",
            "slice-burst",
            f"data_copy: {one} ends inside a burst: bursts of {length} elements with gaps of {one.stride}, from "
            f"{one.start_index} on, do not end at {one.end_index}",
        )
    return starts


def _starts(one: SliceInfo) -> range:
    return range(one.start_index, int(one.end_index or 0) + 1, 1 + one.stride)


def _shape(bursts: int, rows: list[range]) -> str:
    return " x ".join(str(count) for count in (bursts, *(len(row) for row in rows)))


def _params(dst: Tensor, src: Tensor, to: SliceInfo, at: SliceInfo) -> DataCopyExtParams:
    size = dst.dtype.size
    if to.burst_len != at.burst_len:
        fault(
            "ILLEGAL_PARAM",
            "slice-burst",
            f"data_copy: bursts of {to.burst_len} blocks in dst and of {at.burst_len} in src",
        )
    gaps = {}
    for tensor, one in ((dst, to), (src, at)):
        gap = one.stride * size
        if isinstance(tensor, LocalTensor):
            if gap % BLOCK_BYTES:
                fault(
                    "ILLEGAL_PARAM",
                    "slice-stride",
                    f"data_copy: a gap of {one.stride} elements is {gap} bytes; in UB it is a multiple of 32",
                )
            gap //= BLOCK_BYTES
        gaps[id(tensor)] = gap
    count = len(_bursts(at, size))
    length = int(at.burst_len or 1) * BLOCK_BYTES
    return DataCopyExtParams(count, length, gaps[id(src)], gaps[id(dst)])


def _offset(slices: Any, rows: tuple[int, ...]) -> int:
    offset, pitch = slices[0].start_index, slices[0].shape_value
    for one, row in zip(slices[1:], rows, strict=True):
        offset += row * pitch
        pitch *= one.shape_value
    return int(offset)
