"""Filling by rule: `create_vec_index` counts up, `brcb` spreads eight elements over eight data blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from isa.access import Access, check_bounds, contiguous
from isa.faults import fault
from isa.instruction import Call, Instruction, register
from isa.tensor import LocalTensor
from isa.types import (
    BLOCK_BYTES,
    BLOCKS_PER_REPEAT,
    REPEAT_BYTES,
    Pipe,
    bfloat16,
    float16,
    float32,
    int16,
    int32,
    uint16,
    uint32,
)
from isa.vector.binding import Operand, bind_count, bind_repeats
from isa.vector.checks import (
    MAX_STRIDE,
    check_integer,
    check_local,
    check_repeat,
    check_same_dtype,
    check_scalar,
)
from isa.vector.masks import freeze
from isa.vector.params import BrcbRepeatParams
from isa.vector.places import block_ranges, capacity, check_repeat_order
from isa.vector.special import check_type, flag_argument, send, tensor_key

Array = Any
_PIPE = Pipe.V.name
_INDEX_TYPES = (int16, float16, int32, float32)
_SPREAD_TYPES = (int16, uint16, float16, bfloat16, int32, uint32, float32)


def _create_vec_index(first: Array, positions: Array) -> Array:
    """dst[i] = first + i, rounded to the element type."""
    with np.errstate(all="ignore"):
        return (first.astype(np.float64) + positions).astype(first.dtype)


_INDEX = register(
    Instruction(
        "create_vec_index",
        Pipe.V,
        "create_vec_index",
        _INDEX_TYPES,
        _create_vec_index,
        "count; mask, repeat_times, dst_blk_stride, dst_rep_stride",
    )
)


def create_vec_index(
    dst: LocalTensor,
    first_value: float,
    count: Any = None,
    repeat_times: Any = None,
    dst_blk_stride: Any = None,
    dst_rep_stride: Any = None,
    is_set_mask: bool = True,
    *,
    mask: Any = None,
) -> None:
    """dst[i] = first_value + i: `count` elements, or lane l of repeat r gets first_value + r · lanes + l.

    The vendor's library makes it of several instructions; here it is one, at the price of `adds`. Integers
    wrap around.
    """
    number = count if mask is None else mask
    set_mask = flag_argument("create_vec_index", "is_set_mask", is_set_mask)
    strides = (dst_blk_stride, dst_rep_stride)
    if number is None or (repeat_times is None) != (None in strides):
        fault(
            "ILLEGAL_PARAM",
            "form",
            "create_vec_index takes count, or mask, repeat_times, dst_blk_stride and dst_rep_stride",
            pipe=_PIPE,
        )

    def bind() -> Call:
        check_local("create_vec_index", "dst", dst, _INDEX_TYPES)
        first = np.asarray(check_scalar("create_vec_index", first_value, dst.dtype))
        lanes = REPEAT_BYTES // dst.dtype.size
        if repeat_times is None:
            call = bind_count(
                _INDEX, Operand("dst", dst), [], number, _create_vec_index, dst.dtype.name
            )
            shape = call.writes[0].shape if call.writes else (0,)
            positions = np.arange(shape[0])
        else:
            operand = Operand("dst", dst, *strides)
            call = bind_repeats(
                _INDEX, operand, [], number, repeat_times, _create_vec_index, dst.dtype.name, set_mask=set_mask
            )  # fmt: skip
            shape = call.writes[0].shape if call.writes else (0, 0, 0)
            inside = np.arange(shape[1] * shape[2]).reshape(shape[1:])
            positions = np.arange(shape[0])[:, None, None] * lanes + inside
        if first.dtype.kind in "iu":
            values = (int(first) + positions).astype(first.dtype)
        else:
            values = _create_vec_index(first, positions)
        call.meaning = lambda: values
        return call

    key = (
        tensor_key(dst),
        type(first_value).__name__,
        repr(first_value),
        freeze(number),
        repeat_times,
        strides,
        set_mask,
    )
    send(
        "create_vec_index",
        key,
        bind,
        mask=None if repeat_times is None else freeze(number),
        dtype=dst.dtype if isinstance(dst, LocalTensor) else None,
        count_form=repeat_times is None,
        set_mask=set_mask,
    )


def _brcb(src: Array) -> Array:
    """dst block k of repeat r = element 8r + k of src in all its places."""
    return src[..., None]


_BRCB = register(
    Instruction("brcb", Pipe.V, "brcb", _SPREAD_TYPES, _brcb, "repeat_times, repeat_params")
)


def brcb(
    dst: LocalTensor, src0: LocalTensor, repeat_times: int, repeat_params: BrcbRepeatParams
) -> None:
    """Spread elements: repeat r reads src0[8r] to src0[8r + 7] and fills one data block of dst with each.

    The mask has no effect. The source starts on a 32-byte border.
    """

    def bind() -> Call:
        check_local("brcb", "dst", dst, _SPREAD_TYPES)
        check_local("brcb", "src0", src0, _SPREAD_TYPES)
        check_same_dtype("brcb", dst, (("src0", src0),))
        check_type("brcb", "repeat_params", repeat_params, BrcbRepeatParams)
        block = check_integer("brcb", "dst_blk_stride", repeat_params.dst_blk_stride, 0, MAX_STRIDE)
        step = check_integer("brcb", "dst_rep_stride", repeat_params.dst_rep_stride, 0, 65535)
        repeat = check_repeat("brcb", repeat_times)
        cost = ("brcb", dst.dtype.name)
        if repeat == 0:
            return Call(_BRCB, Pipe.V, (), (), _brcb, cost=cost)
        for what, value, needed in (
            ("dst_blk_stride", block, True),
            ("dst_rep_stride", step, repeat > 1),
        ):
            if needed and value == 0:
                fault(
                    "ILLEGAL_PARAM",
                    f"{what.replace('_', '-')}-zero",
                    f"brcb: {what} 0 writes several blocks to one place; it must be at least 1",
                    dst.name,
                    pipe=_PIPE,
                )
        size = dst.dtype.size
        target = Access(
            dst,
            dst.addr,
            (repeat, BLOCKS_PER_REPEAT, BLOCK_BYTES // size),
            (step * BLOCK_BYTES, block * BLOCK_BYTES, size),
            dst.dtype,
        )
        source = contiguous(src0, repeat * 8)
        check_bounds(target, dst, "brcb: dst", capacity(), _PIPE)
        check_bounds(source, src0, "brcb: src0", capacity(), _PIPE)
        check_repeat_order(
            "brcb",
            dst,
            lambda row: block_ranges(dst.addr + row * step * BLOCK_BYTES, block * BLOCK_BYTES, 8),
            src0,
            lambda row: block_ranges(src0.addr + row * 8 * size, 0, 1, 8 * size),
            repeat,
            within=True,
        )
        shape = target.shape

        def meaning(src: Array) -> Array:
            return np.broadcast_to(_brcb(src.reshape(repeat, 8)), shape).copy()

        return Call(
            _BRCB,
            Pipe.V,
            (source,),
            (target,),
            meaning,
            work=repeat,
            cost=cost,
            geometry=(
                (True, dst.addr, block * BLOCK_BYTES, step * BLOCK_BYTES, BLOCKS_PER_REPEAT),
            ),
        )

    send("brcb", (tensor_key(dst, src0), repeat_times, repeat_params), bind)
