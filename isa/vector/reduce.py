"""Reductions inside a repeat: each repeat, each data block, or each pair of neighbours becomes one result.

Sums are binary trees over neighbours in lane order: lanes 0 and 1, 2 and 3, …, then neighbouring sums, so that a
block is complete before blocks are added. Every addition rounds to the operand's type. The vendor documents the
tree and not its pairing; inactive lanes are left out. Of equal extremes the lowest lane wins; NaN is the extreme
of everything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from isa.access import Access, check_bounds, repeats
from isa.faults import fault
from isa.instruction import Call, Instruction, register
from isa.tensor import LocalTensor
from isa.types import (
    BLOCK_BYTES,
    BLOCKS_PER_REPEAT,
    REPEAT_BYTES,
    DType,
    Pipe,
    float16,
    float32,
    uint16,
    uint32,
)
from isa.vector.checks import MAX_STRIDE, check_integer, check_local, check_same_dtype
from isa.vector.masks import freeze
from isa.vector.params import ReduceOrder
from isa.vector.places import (
    PieceAccess,
    block_ranges,
    capacity,
    check_place,
    check_repeat_order,
    counter_access,
)
from isa.vector.special import (
    EXTREME,
    Lanes,
    bank,
    bank_key,
    flag_argument,
    lanes_of,
    mode_argument,
    put,
    send,
    tensor_key,
)

Array = Any
_PIPE = Pipe.V.name
TYPES = (float16, float32)
MAX_RESULT_STRIDE = 65535
"""Repeat stride of a reduction's destination: 16 bits, in results."""


# ---- meanings on rows of lanes ------------------------------------------------------------------


def tree_sum(rows: Array) -> Array:
    """Return the sum of each row (last axis, a power of two long): neighbours first, one rounding an addition."""
    while rows.shape[-1] > 1:
        rows = rows[..., 0::2] + rows[..., 1::2]
    return rows[..., 0]


def _extreme(rows: Array, active: Array, sign: int) -> tuple[Array, Array]:
    """Return value and lane of the extreme of each row: the largest for sign 1, the smallest for -1."""
    wide = rows.astype(np.float64) * sign
    wide = np.where(active, wide, -np.inf)
    # An active -inf ties with inactive lanes: let only active lanes be found.
    best = np.where(np.isnan(wide), np.inf, wide).max(axis=-1, keepdims=True)
    nan = np.isnan(wide)
    hit = np.where(nan.any(axis=-1, keepdims=True), nan, wide == best) & active
    lane = hit.argmax(axis=-1)
    return np.take_along_axis(rows, lane[..., None], axis=-1)[..., 0], lane


def as_rows(values: Array, repeat: int, dtype: DType, active: Array, fill: float) -> Array:
    """Return the source of a reduction as (repeats, lanes), `fill` where no lane takes part."""
    lanes = REPEAT_BYTES // dtype.size
    rows = np.full((repeat, lanes), fill, dtype.numpy)
    if getattr(values, "ndim", 1) == 3:
        width = values.shape[1] * values.shape[2]
        rows[:, :width] = values.reshape(repeat, width)
        return np.where(active, rows, dtype.numpy.type(fill))
    flat = np.asarray(values).ravel()
    rows.reshape(-1)[: flat.size] = flat
    return rows


# ---- binding ------------------------------------------------------------------------------------


class Shape:
    """Strides and lanes of one reduction's source, checked."""

    __slots__ = ("access", "block_stride", "lanes", "repeat_stride", "tensor")

    def __init__(
        self, name: str, src: LocalTensor, lanes: Lanes, block_stride: Any, repeat_stride: Any
    ) -> None:
        self.tensor = src
        self.lanes = lanes
        self.block_stride = check_integer(name, "src_blk_stride", block_stride, 0, MAX_STRIDE)
        self.repeat_stride = check_integer(
            name, "src_rep_stride", repeat_stride, 0, MAX_RESULT_STRIDE
        )
        count = REPEAT_BYTES // src.dtype.size
        if lanes.total is not None:
            access = counter_access(src, lanes.total, self.block_stride, self.repeat_stride, count)
        else:
            access = repeats(
                src,
                lanes.repeat,
                self.block_stride,
                self.repeat_stride,
                lanes.active,
                BLOCKS_PER_REPEAT,
            )
        check_bounds(access, src, f"{name}: src", capacity(), _PIPE)
        self.access = access

    def active_rows(self) -> Array:
        """Return which lanes take part, as (repeats, lanes)."""
        rows = np.broadcast_to(self.lanes.active, (self.lanes.repeat, self.lanes.active.size))
        if self.lanes.total is not None:
            rows = rows.copy()
            rows.reshape(-1)[self.lanes.total :] = False
        return rows

    def geometry(self) -> tuple[tuple[bool, int, int, int, int], ...]:
        """Return what the bank model needs to know of the source."""
        return (
            (
                False,
                self.tensor.addr,
                self.block_stride * BLOCK_BYTES,
                self.repeat_stride * BLOCK_BYTES,
                BLOCKS_PER_REPEAT,
            ),
        )

    def read(self, row: int) -> Array:
        """Return the byte ranges that one repeat reads."""
        base = self.tensor.addr + row * self.repeat_stride * BLOCK_BYTES
        per_block = BLOCK_BYTES // self.tensor.dtype.size
        blocks = int(np.flatnonzero(self.lanes.active)[-1]) // per_block + 1
        if self.lanes.total is not None and row == self.lanes.repeat - 1:
            blocks = -(-(self.lanes.total - row * self.lanes.active.size) // per_block)
        return block_ranges(base, self.block_stride * BLOCK_BYTES, blocks)


def bind_reduction(
    record: Instruction,
    dst: LocalTensor,
    shape: Shape,
    step: int,
    width: int,
    dtype: DType,
    meaning: Callable[..., Array],
    kept: Array | None = None,
) -> Call:
    """Bind a reduction of `width` results a repeat, `step` bytes from repeat to repeat, stored as `dtype`.

    `kept` (repeats × width) says which results are written, None: all. `meaning` returns (repeats, width). A
    step of 0 lets every repeat write the same place: the last one stays.
    """
    name = record.name
    repeat = shape.lanes.repeat
    size = dtype.size
    rows = repeat if step else 1
    written: Access
    if kept is None or kept.all():
        written = Access(dst, dst.addr, (rows, width), (step, size), dtype)
    else:
        pieces = []
        for row in range(repeat - rows, repeat):
            base = dst.addr + (row * step if rows > 1 else 0)
            pieces += [
                Access(dst, base + first * size, (last - first,), (size,), dtype)
                for first, last in _runs(kept[row])
            ]
        written = pieces[0] if len(pieces) == 1 else PieceAccess(dst, pieces)
    check_bounds(written, dst, f"{name}: dst", capacity(), _PIPE)
    check_repeat_order(
        name,
        dst,
        lambda row: block_ranges(dst.addr + row * step, 0, 1, width * size),
        shape.tensor,
        shape.read,
        repeat,
    )

    def whole(values: Array) -> Array:
        results = meaning(values)[repeat - rows :]
        return results if kept is None or kept.all() else results[kept[repeat - rows :]]

    return Call(
        record,
        Pipe.V,
        (shape.access,),
        (written,),
        whole,
        work=repeat,
        cost=(record.cost, shape.tensor.dtype.name),
        geometry=shape.geometry(),
    )


def _runs(kept: Array) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], kept, [False]]).astype(np.int8)))
    return [(int(first), int(last)) for first, last in edges.reshape(-1, 2)]


def nothing(record: Instruction, dtype: DType, repeat: int) -> Call:
    """Return a call that does nothing but pass through the pipe."""
    return Call(record, Pipe.V, (), (), record.meaning, cost=(record.cost, dtype.name), work=repeat)


def _operands(name: str, dst: LocalTensor, src: LocalTensor, alignment: tuple[int, int]) -> None:
    check_local(name, "src", src, TYPES)
    half, single = alignment
    border = half if src.dtype is float16 else single
    check_place(name, "dst", dst, TYPES, border, f"Results of {name} for {src.dtype} start on one")
    check_same_dtype(name, dst, (("src", src),))


# ---- one result a repeat ------------------------------------------------------------------------


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
        _operands(name, dst, src, (2, 4))
        lanes = lanes_of(name, mask, repeat_time, src.dtype, set_mask)
        step = check_integer(name, "dst_rep_stride", dst_rep_stride, 0, MAX_RESULT_STRIDE)
        if lanes.none:
            return nothing(record, src.dtype, lanes.repeat)
        shape = Shape(name, src, lanes, src_blk_stride, src_rep_stride)
        return bind_whole_sum(record, dst, shape, step * dst.dtype.size)

    set_mask = flag_argument(name, "is_set_mask", is_set_mask)
    key = (repeat_time, dst_rep_stride, src_blk_stride, src_rep_stride, set_mask)
    send_masked(name, dst, src, mask, key, bind, set_mask)


def send_masked(
    name: str,
    dst: Any,
    src: Any,
    mask: Any,
    key: tuple[Any, ...],
    bind: Callable[[], Call],
    set_mask: bool,
) -> bool:
    """Issue a mask form whose mask counts lanes of the source's type."""
    frozen = freeze(mask)
    dtype = src.dtype if isinstance(src, LocalTensor) else None
    return send(
        name,
        (tensor_key(dst, src), key, frozen),
        bind,
        mask=frozen,
        dtype=dtype,
        set_mask=set_mask,
    )


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
        _operands(name, dst, src, (4, 8))
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
