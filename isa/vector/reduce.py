"""Reductions of each repeat to one result: its sum, or its extreme and where that is.

Of equal extremes the lowest lane wins; NaN is the extreme of everything. For sums see `isa.vector.reduce_binding`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isa import half
from isa.faults import fault
from isa.instruction import Call, Instruction, register
from isa.tensor import LocalTensor
from isa.types import (
    Pipe,
    float16,
    uint16,
    uint32,
)
from isa.vector.checks import check_integer
from isa.vector.params import ReduceOrder
from isa.vector.reduce_binding import (
    MAX_RESULT_STRIDE,
    TYPES,
    Shape,
    as_rows,
    bind_reduction,
    check_operands,
    nothing,
    send_masked,
    tree_sum,
)
from isa.vector.special import (
    EXTREME,
    bank,
    bank_key,
    flag_argument,
    lanes_of,
    mode_argument,
    put,
)

Array = Any
_PIPE = Pipe.V.name


# ---- sums ------------------------------------------------------------------------


def _whole_sum(rows: Array) -> Array:
    """dst = sum of a repeat's active lanes: a tree over neighbours, each addition rounded to the operand's type."""
    return tree_sum(rows)


_WHOLE_FORMS = "mask, repeat_time, dst_rep_stride, src_blk_stride, src_rep_stride"
_WHOLE_SUM = register(
    Instruction("whole_reduce_sum", Pipe.V, "whole_reduce_sum", TYPES, _whole_sum, _WHOLE_FORMS)
)
_REPEAT_SUM = register(
    Instruction(
        "repeat_reduce_sum",
        Pipe.V,
        "repeat_reduce_sum",
        TYPES,
        _whole_sum,
        "repeat_time, mask, dst_blk_stride, src_blk_stride, dst_rep_stride, src_rep_stride",
    )
)


def bind_whole_sum(record: Instruction, dst: LocalTensor, shape: Shape, step: int) -> Call:
    """Bind a sum of each repeat, `step` bytes from result to result."""
    dtype = shape.tensor.dtype
    repeat, active = shape.lanes.repeat, shape.lanes.active

    def meaning(values: Array) -> Array:
        return _whole_sum(as_rows(values, repeat, dtype, active, -0.0))[:, None]

    return bind_reduction(record, dst, shape, step, 1, dtype, meaning)


def whole_reduce_sum(
    dst: LocalTensor,
    src: LocalTensor,
    mask: Any,
    repeat_time: int,
    dst_rep_stride: int,
    src_blk_stride: int,
    src_rep_stride: int,
    is_set_mask: bool = True,
) -> None:
    """dst[r · dst_rep_stride] = sum of repeat r; the destination stride is in elements."""
    _send_sum(
        _WHOLE_SUM, dst, src, mask, repeat_time, dst_rep_stride, src_blk_stride, src_rep_stride, is_set_mask
    )  # fmt: skip


def repeat_reduce_sum(
    dst: LocalTensor,
    src: LocalTensor,
    repeat_time: int,
    mask: Any,
    dst_blk_stride: int,
    src_blk_stride: int,
    dst_rep_stride: int,
    src_rep_stride: int,
    is_set_mask: bool = True,
) -> None:
    """dst[r · dst_rep_stride] = sum of repeat r: `whole_reduce_sum` in another order; dst_blk_stride has no effect."""
    if isinstance(mask, (list, tuple)):
        fault(
            "ILLEGAL_PARAM",
            "form",
            "repeat_reduce_sum takes a number of leading lanes as mask, not a bit mask: use whole_reduce_sum",
            pipe=_PIPE,
        )
    _send_sum(
        _REPEAT_SUM, dst, src, mask, repeat_time, dst_rep_stride, src_blk_stride, src_rep_stride, is_set_mask
    )  # fmt: skip


def _send_sum(
    record: Instruction,
    dst: LocalTensor,
    src: LocalTensor,
    mask: Any,
    repeat_time: Any,
    dst_rep_stride: Any,
    src_blk_stride: Any,
    src_rep_stride: Any,
    is_set_mask: Any,
) -> None:
    name = record.name

    def bind() -> Call:
        check_operands(name, dst, src, (2, 4))
        lanes = lanes_of(name, mask, repeat_time, src.dtype, set_mask)
        step = check_integer(name, "dst_rep_stride", dst_rep_stride, 0, MAX_RESULT_STRIDE)
        if lanes.none:
            return nothing(record, src.dtype, lanes.repeat)
        shape = Shape(name, src, lanes, src_blk_stride, src_rep_stride)
        return bind_whole_sum(record, dst, shape, step * dst.dtype.size)

    set_mask = flag_argument(name, "is_set_mask", is_set_mask)
    key = (repeat_time, dst_rep_stride, src_blk_stride, src_rep_stride, set_mask)
    send_masked(name, dst, src, mask, key, bind, set_mask)


# ---- extremes


def _extreme(rows: Array, active: Array, sign: int) -> tuple[Array, Array]:
    """Return value and lane of the extreme of each row: the largest for sign 1, the smallest for -1."""
    wide = half.widen(rows)
    if not active.all():
        wide = np.where(active, wide, np.float32(-np.inf * sign))
    # numpy finds the first NaN, else the first of equal ones, -0 being equal to 0.
    lane = wide.argmax(axis=-1) if sign > 0 else wide.argmin(axis=-1)
    found = np.take_along_axis(active, lane[..., None], axis=-1)[..., 0]
    if not found.all():  # all active lanes hold the infinity that stands for inactive ones
        lane = np.where(found, lane, active.argmax(axis=-1))
    return np.take_along_axis(rows, lane[..., None], axis=-1)[..., 0], lane


def largest(rows: Array, active: Array) -> tuple[Array, Array]:
    """dst = the largest of a repeat's active lanes and its lane number; the lowest lane of equal ones."""
    return _extreme(rows, active, 1)


def smallest(rows: Array, active: Array) -> tuple[Array, Array]:
    """dst = the smallest of a repeat's active lanes and its lane number; the lowest lane of equal ones."""
    return _extreme(rows, active, -1)


_WHOLE_MAX = register(
    Instruction("whole_reduce_max", Pipe.V, "whole_reduce_max", TYPES, largest, f"{_WHOLE_FORMS}, order")
)  # fmt: skip
_WHOLE_MIN = register(
    Instruction("whole_reduce_min", Pipe.V, "whole_reduce_min", TYPES, smallest, f"{_WHOLE_FORMS}, order")
)  # fmt: skip


def bind_extreme(
    record: Instruction, dst: LocalTensor, shape: Shape, stride: int, order: ReduceOrder
) -> Call:
    """Bind the extreme of each repeat; `stride` is in results: pairs, values, or 4-byte indices.

    An index is stored as the bit pattern of an unsigned integer of the operand's width, alone of 32 bits.
    """
    dtype = shape.tensor.dtype
    bits = uint16 if dtype is float16 else uint32
    repeat, active = shape.lanes.repeat, shape.active_rows()
    registers = bank()
    lanes = active.shape[1]

    def find(values: Array) -> tuple[Array, Array]:
        rows = as_rows(values, repeat, dtype, shape.lanes.active, 0.0)
        value, lane = record.meaning(rows, active)
        best, row = record.meaning(value[None, :], np.ones((1, repeat), bool))
        put(registers, EXTREME, best)
        put(registers, EXTREME + 4, (row * lanes + lane[row]).astype(np.uint32))
        return value.view(bits.numpy), lane

    def meaning(values: Array) -> Array:
        value, lane = find(values)
        if order is ReduceOrder.ORDER_ONLY_VALUE:
            return value[:, None]
        if order is ReduceOrder.ORDER_ONLY_INDEX:
            return lane.astype(np.uint32)[:, None]
        pair = [value, lane.astype(bits.numpy)]
        return np.stack(pair if order is ReduceOrder.ORDER_VALUE_INDEX else pair[::-1], axis=1)

    stored, width = bits, 2
    if order is ReduceOrder.ORDER_ONLY_VALUE:
        width = 1
    elif order is ReduceOrder.ORDER_ONLY_INDEX:
        stored, width = uint32, 1
    step = stride * width * stored.size
    return bind_reduction(record, dst, shape, step, width, stored, meaning)


def _send_extreme(
    record: Instruction,
    dst: LocalTensor,
    src: LocalTensor,
    mask: Any,
    repeat_time: Any,
    dst_rep_stride: Any,
    src_blk_stride: Any,
    src_rep_stride: Any,
    order: Any,
    is_set_mask: Any,
) -> None:
    name = record.name

    def bind() -> Call:
        check_operands(name, dst, src, (4, 8))
        kind = mode_argument(name, "order", order, ReduceOrder)
        lanes = lanes_of(name, mask, repeat_time, src.dtype, set_mask)
        stride = check_integer(name, "dst_rep_stride", dst_rep_stride, 0, MAX_RESULT_STRIDE)
        if lanes.none:
            return nothing(record, src.dtype, lanes.repeat)
        shape = Shape(name, src, lanes, src_blk_stride, src_rep_stride)
        return bind_extreme(record, dst, shape, stride, kind)

    set_mask = flag_argument(name, "is_set_mask", is_set_mask)
    key = (repeat_time, dst_rep_stride, src_blk_stride, src_rep_stride, order, set_mask, bank_key())
    send_masked(name, dst, src, mask, key, bind, set_mask)


def whole_reduce_max(
    dst: LocalTensor,
    src: LocalTensor,
    mask: Any,
    repeat_time: int,
    dst_rep_stride: int,
    src_blk_stride: int,
    src_rep_stride: int,
    order: ReduceOrder = ReduceOrder.ORDER_VALUE_INDEX,
    is_set_mask: bool = True,
) -> None:
    """dst = the largest of each repeat and its lane number, in the given order; stride in results."""
    _send_extreme(
        _WHOLE_MAX, dst, src, mask, repeat_time, dst_rep_stride, src_blk_stride, src_rep_stride, order, is_set_mask
    )  # fmt: skip


def whole_reduce_min(
    dst: LocalTensor,
    src: LocalTensor,
    mask: Any,
    repeat_time: int,
    dst_rep_stride: int,
    src_blk_stride: int,
    src_rep_stride: int,
    order: ReduceOrder = ReduceOrder.ORDER_VALUE_INDEX,
    is_set_mask: bool = True,
) -> None:
    """dst = the smallest of each repeat and its lane number, in the given order; stride in results."""
    _send_extreme(
        _WHOLE_MIN, dst, src, mask, repeat_time, dst_rep_stride, src_blk_stride, src_rep_stride, order, is_set_mask
    )  # fmt: skip
