"""What all reductions inside a repeat share: rows of lanes, the tree of sums, binding and issuing.

Sums are binary trees over neighbours in lane order: lanes 0 and 1, 2 and 3, …, then neighbouring sums, so that a
block is complete before blocks are added. Every addition rounds to the operand's type. The vendor documents the
tree and not its pairing; inactive lanes are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from isa import numerics
from isa.access import Access, check_bounds, repeats
from isa.instruction import Call, Instruction
from isa.tensor import LocalTensor
from isa.types import (
    BLOCK_BYTES,
    BLOCKS_PER_REPEAT,
    REPEAT_BYTES,
    DType,
    Pipe,
    float16,
    float32,
)
from isa.vector.checks import MAX_STRIDE, check_integer, check_local, check_same_dtype
from isa.vector.masks import freeze
from isa.vector.places import (
    PieceAccess,
    block_ranges,
    capacity,
    check_place,
    check_repeat_order,
    counter_access,
)
from isa.vector.special import (
    Lanes,
    send,
    tensor_key,
)

Array = Any
_PIPE = Pipe.V.name
TYPES = (float16, float32)
MAX_RESULT_STRIDE = 65535
"""Repeat stride of a reduction's destination: 16 bits, in results."""


# ---- rows of lanes ------------------------------------------------------------------


def tree_sum(rows: Array) -> Array:
    """Return the sum of each row (last axis, a power of two long): neighbours first, one rounding an addition."""
    while rows.shape[-1] > 1:
        rows = numerics.once_rounded(np.add, rows[..., 0::2], rows[..., 1::2])
    return rows[..., 0]


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


def check_operands(
    name: str, dst: LocalTensor, src: LocalTensor, alignment: tuple[int, int]
) -> None:
    """Fault unless source and destination are what a reduction takes; `alignment` of dst for half and float."""
    check_local(name, "src", src, TYPES)
    half, single = alignment
    border = half if src.dtype is float16 else single
    check_place(name, "dst", dst, TYPES, border, f"Results of {name} for {src.dtype} start on one")
    check_same_dtype(name, dst, (("src", src),))


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
