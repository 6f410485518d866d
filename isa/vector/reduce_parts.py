"""Reductions of parts of a repeat: one result for each data block, or for each pair of neighbouring lanes."""

from __future__ import annotations

from typing import Any

from isa.instruction import Call, Instruction, register
from isa.tensor import LocalTensor
from isa.types import BLOCK_BYTES, BLOCKS_PER_REPEAT, REPEAT_BYTES, Pipe, float16
from isa.vector.checks import check_integer, check_local, check_same_dtype
from isa.vector.places import check_place
from isa.vector.reduce import largest, smallest
from isa.vector.reduce_binding import (
    MAX_RESULT_STRIDE,
    TYPES,
    Shape,
    as_rows,
    bind_reduction,
    nothing,
    send_masked,
    tree_sum,
)
from isa.vector.special import flag_argument, lanes_of

Array = Any
_BLOCK_FORMS = "repeat, mask, dst_rep_stride, src_blk_stride, src_rep_stride"


def _block_sum(rows: Array, active: Array) -> Array:
    """dst = sum of each data block's active lanes: a tree over neighbours, rounded to the operand's type."""
    return tree_sum(rows)


def _block_max(rows: Array, active: Array) -> Array:
    """dst = the largest of each data block's active lanes."""
    return largest(rows, active)[0]


def _block_min(rows: Array, active: Array) -> Array:
    """dst = the smallest of each data block's active lanes."""
    return smallest(rows, active)[0]


def _pair_sum(rows: Array, active: Array) -> Array:
    """dst = sum of lanes 2k and 2k + 1."""
    return tree_sum(rows)


def _record(name: str, meaning: Any) -> Instruction:
    return register(Instruction(name, Pipe.V, name, TYPES, meaning, _BLOCK_FORMS))


_SUM = _record("block_reduce_sum", _block_sum)
_MAX = _record("block_reduce_max", _block_max)
_MIN = _record("block_reduce_min", _block_min)
_PAIR = _record("pair_reduce_sum", _pair_sum)


def _send(
    record: Instruction,
    dst: LocalTensor,
    src: LocalTensor,
    repeat: Any,
    mask: Any,
    dst_rep_stride: Any,
    src_blk_stride: Any,
    src_rep_stride: Any,
    is_set_mask: Any,
) -> None:
    name = record.name

    def bind() -> Call:
        check_local(name, "src", src, TYPES)
        pair = record is _PAIR
        border = BLOCK_BYTES // 2 if src.dtype is float16 and not pair else BLOCK_BYTES
        check_place(
            name, "dst", dst, TYPES, border, f"Results of {name} for {src.dtype} start on one"
        )
        check_same_dtype(name, dst, (("src", src),))
        lanes = lanes_of(name, mask, repeat, src.dtype, set_mask)
        stride = check_integer(name, "dst_rep_stride", dst_rep_stride, 0, MAX_RESULT_STRIDE)
        if lanes.none:
            return nothing(record, src.dtype, lanes.repeat)
        shape = Shape(name, src, lanes, src_blk_stride, src_rep_stride)
        count = REPEAT_BYTES // src.dtype.size
        results = count // 2 if pair else BLOCKS_PER_REPEAT
        dtype, rows = src.dtype, lanes.repeat
        active = shape.active_rows().reshape(rows, results, -1)

        def meaning(values: Array) -> Array:
            matrix = as_rows(values, rows, dtype, lanes.active, -0.0)
            return record.meaning(matrix.reshape(rows, results, -1), active)

        step = stride * results * dtype.size
        return bind_reduction(record, dst, shape, step, results, dtype, meaning, active.any(axis=2))

    set_mask = flag_argument(name, "is_set_mask", is_set_mask)
    key = (repeat, dst_rep_stride, src_blk_stride, src_rep_stride, set_mask)
    send_masked(name, dst, src, mask, key, bind, set_mask)


def block_reduce_sum(
    dst: LocalTensor,
    src: LocalTensor,
    repeat: int,
    mask: Any,
    dst_rep_stride: int,
    src_blk_stride: int,
    src_rep_stride: int,
    is_set_mask: bool = True,
) -> None:
    """dst = sum of each data block, eight results a repeat; dst_rep_stride counts eight results.

    The result of a block without an active lane is not written.
    """
    _send(_SUM, dst, src, repeat, mask, dst_rep_stride, src_blk_stride, src_rep_stride, is_set_mask)


def block_reduce_max(
    dst: LocalTensor,
    src: LocalTensor,
    repeat: int,
    mask: Any,
    dst_rep_stride: int,
    src_blk_stride: int,
    src_rep_stride: int,
    is_set_mask: bool = True,
) -> None:
    """dst = the largest of each data block, eight results a repeat; see `block_reduce_sum`."""
    _send(_MAX, dst, src, repeat, mask, dst_rep_stride, src_blk_stride, src_rep_stride, is_set_mask)


def block_reduce_min(
    dst: LocalTensor,
    src: LocalTensor,
    repeat: int,
    mask: Any,
    dst_rep_stride: int,
    src_blk_stride: int,
    src_rep_stride: int,
    is_set_mask: bool = True,
) -> None:
    """dst = the smallest of each data block, eight results a repeat; see `block_reduce_sum`."""
    _send(_MIN, dst, src, repeat, mask, dst_rep_stride, src_blk_stride, src_rep_stride, is_set_mask)


def pair_reduce_sum(
    dst: LocalTensor,
    src: LocalTensor,
    repeat_time: int,
    mask: Any,
    dst_rep_stride: int,
    src_blk_stride: int,
    src_rep_stride: int,
    is_set_mask: bool = True,
) -> None:
    """dst = sums of lanes 2k and 2k + 1, half as many as lanes; dst_rep_stride counts 128 bytes.

    The result of a pair without an active lane is not written.
    """
    _send(
        _PAIR, dst, src, repeat_time, mask, dst_rep_stride, src_blk_stride, src_rep_stride, is_set_mask
    )  # fmt: skip
