"""Reading from places that data names: `gather` elements, `gatherb` data blocks.

Offsets are bytes from the source's start. What they name is known when the instruction executes: an offset that
leaves the source tensor, or is off its border, is reported then. Until then the whole source counts as read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isa.access import Access, check_bounds, contiguous, repeats
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
    uint8,
    uint16,
    uint32,
)
from isa.vector.checks import MAX_STRIDE, check_integer, check_local, check_repeat, check_same_dtype
from isa.vector.masks import freeze
from isa.vector.params import GatherRepeatParams
from isa.vector.places import PickedAccess, capacity, check_disjoint, counter_access
from isa.vector.special import check_type, lanes_of, send, tensor_key

Array = Any
_PIPE = Pipe.V.name
_TYPES = (int16, uint16, float16, bfloat16, int32, uint32, float32)
_OFFSETS = (uint32,)
_BLOCK_TYPES = (uint16, uint32)


def _gather(values: Array, places: Array) -> Array:
    """dst[i] = the element of src that lies src_base + src_offset[i] bytes from its start."""
    return values[places]


_GATHER = register(
    Instruction(
        "gather", Pipe.V, "gather", _TYPES, _gather, "count; mask, repeat_times, dst_rep_stride"
    )
)


def gather(
    dst: LocalTensor,
    src: LocalTensor,
    src_offset: LocalTensor,
    src_base: int,
    count: Any = None,
    repeat_times: Any = None,
    dst_rep_stride: Any = None,
    *,
    mask: Any = None,
) -> None:
    """dst[i] = the element of src at byte src_base + src_offset[i]: `count` elements, or repeats under a mask.

    Offsets (uint32, bytes, multiples of the element size) lie side by side, one for each lane of each repeat.
    Source and destination must not overlap.
    """
    number = count if mask is None else mask
    if number is None or (repeat_times is None) != (dst_rep_stride is None):
        fault(
            "ILLEGAL_PARAM",
            "form",
            "gather takes count, or mask, repeat_times and dst_rep_stride, after src_base",
            pipe=_PIPE,
        )

    def bind() -> Call:
        check_local("gather", "dst", dst, _TYPES)
        check_local("gather", "src", src, _TYPES)
        check_local("gather", "src_offset", src_offset, _OFFSETS)
        check_same_dtype("gather", dst, (("src", src),))
        base = check_integer("gather", "src_base", src_base, 0, (1 << 32) - 1)
        return _bind_gather(dst, src, src_offset, base, number, repeat_times, dst_rep_stride)

    key = (
        tensor_key(dst, src, src_offset),
        src_base,
        freeze(number),
        repeat_times,
        dst_rep_stride,
    )
    send(
        "gather",
        key,
        bind,
        mask=None if repeat_times is None else freeze(number),
        dtype=dst.dtype if isinstance(dst, LocalTensor) else None,
        count_form=repeat_times is None,
    )


def _bind_gather(
    dst: LocalTensor,
    src: LocalTensor,
    offsets: LocalTensor,
    base: int,
    number: Any,
    repeat_times: Any,
    stride: Any,
) -> Call:
    size = dst.dtype.size
    lanes = REPEAT_BYTES // size
    cost = ("gather", dst.dtype.name)
    target: Access
    named: Access
    active: Array = None
    if repeat_times is None:
        total = check_integer("gather", "count", number, 0, None)
        repeat = -(-total // lanes)
        if total:
            target, named = contiguous(dst, total), contiguous(offsets, total)
    else:
        step = check_integer("gather", "dst_rep_stride", stride, 0, MAX_STRIDE)
        chosen = lanes_of("gather", number, repeat_times, dst.dtype, True)
        repeat = 0 if chosen.none else chosen.repeat
        if repeat > 1 and step == 0:
            _fault_zero_stride("gather", dst)
        if repeat and chosen.total is not None:
            target = counter_access(dst, chosen.total, 1, step, lanes)
            named = contiguous(offsets, chosen.total)
        elif repeat:
            target = repeats(dst, repeat, 1, step, chosen.active, BLOCKS_PER_REPEAT)
            active = target.lanes
            named = Access(
                offsets,
                offsets.addr,
                target.shape,
                (lanes * 4, BLOCK_BYTES // size * 4, 4),
                uint32,
                active,
            )
    if repeat == 0:
        return Call(_GATHER, Pipe.V, (), (), _gather, cost=cost)
    source = PickedAccess(src, src.addr, (max(src.length // size, 1),), (size,), src.dtype)
    for what, access, tensor in (
        ("dst", target, dst),
        ("src_offset", named, offsets),
        ("src", source, src),
    ):
        check_bounds(access, tensor, f"gather: {what}", capacity(), _PIPE)
    check_disjoint("gather", target, source, src)
    check_disjoint("gather", target, named, offsets)
    length = src.length

    def meaning(places: Array, values: Array) -> Array:
        wanted = np.asarray(places).astype(np.int64) + base
        checked = wanted if active is None else wanted[..., active]
        _check_offsets("gather", "src_base + src_offset", checked, src, length, size, size)
        return _gather(values, np.where(wanted < length, wanted, 0) // size)

    return Call(_GATHER, Pipe.V, (named, source), (target,), meaning, work=repeat, cost=cost)


def _fault_zero_stride(name: str, dst: LocalTensor) -> None:
    fault(
        "ILLEGAL_PARAM",
        "dst-rep-stride-zero",
        f"{name}: dst_rep_stride 0 makes every repeat write the same bytes; it must be at least 1",
        dst.name,
        pipe=_PIPE,
    )


def _check_offsets(
    name: str,
    what: str,
    wanted: Array,
    src: LocalTensor,
    length: int,
    unit: int,
    border: int,
) -> None:
    """Fault at the first offset that leaves the source or is off its border; the instruction is executing."""
    odd = wanted % border != 0
    outside = wanted + unit > length
    if not (odd | outside).any():
        return
    at = int(np.flatnonzero((odd | outside).ravel())[0])
    offset = int(wanted.ravel()[at])
    span = (src.addr + offset, src.addr + offset + unit)
    if outside.ravel()[at]:
        fault(
            "BOUNDS",
            "gather-out-of-bounds",
            f"{name}: {what} number {at} is {offset} bytes, so that it reads UB bytes {span[0]} to {span[1]}; src "
            f"{src.name} has {length} bytes. Offsets count bytes from the start of src, not elements",
            src.name,
            span,
            _PIPE,
        )
    fault(
        "ALIGNMENT",
        "gather-offset",
        f"{name}: {what} number {at} is {offset} bytes, not a multiple of {border}. Offsets count bytes: multiply "
        f"an element's index by {src.dtype.size}",
        src.name,
        span,
        _PIPE,
    )


def _gatherb(values: Array, places: Array) -> Array:
    """dst block k of repeat r = the data block of src that lies offset[8r + k] bytes from its start."""
    return values[places]


_GATHERB = register(
    Instruction("gatherb", Pipe.V, "gatherb", _BLOCK_TYPES, _gatherb, "repeat_times, repeat_params")
)


def gatherb(
    dst: LocalTensor,
    src0: LocalTensor,
    offset: LocalTensor,
    repeat_times: int,
    repeat_params: GatherRepeatParams,
) -> None:
    """Gather data blocks: eight offsets (uint32, bytes, multiples of 32) a repeat, side by side.

    A dst_blk_stride of 0 means 1. Other types than uint16 and uint32 go through reinterpret_cast.
    """

    def bind() -> Call:
        check_local("gatherb", "dst", dst, _BLOCK_TYPES)
        check_local("gatherb", "src0", src0, _BLOCK_TYPES)
        check_local("gatherb", "offset", offset, _OFFSETS)
        check_same_dtype("gatherb", dst, (("src0", src0),))
        check_type("gatherb", "repeat_params", repeat_params, GatherRepeatParams)
        params = repeat_params
        block = (
            check_integer("gatherb", "dst_blk_stride", params.dst_blk_stride, 0, MAX_STRIDE) or 1
        )
        step = check_integer("gatherb", "dst_rep_stride", params.dst_rep_stride, 0, MAX_STRIDE)
        repeat = check_repeat("gatherb", repeat_times)
        cost = ("gatherb", dst.dtype.name)
        if repeat == 0:
            return Call(_GATHERB, Pipe.V, (), (), _gatherb, cost=cost)
        if repeat > 1 and step == 0:
            _fault_zero_stride("gatherb", dst)
        target = Access(
            dst,
            dst.addr,
            (repeat, BLOCKS_PER_REPEAT, BLOCK_BYTES),
            (step * BLOCK_BYTES, block * BLOCK_BYTES, 1),
            uint8,
        )
        named = contiguous(offset, repeat * BLOCKS_PER_REPEAT)
        length = src0.length
        source = PickedAccess(src0, src0.addr, (max(length, 1),), (1,), uint8)
        for what, access, tensor in (
            ("dst", target, dst),
            ("offset", named, offset),
            ("src0", source, src0),
        ):
            check_bounds(access, tensor, f"gatherb: {what}", capacity(), _PIPE)
        check_disjoint("gatherb", target, source, src0)
        check_disjoint("gatherb", target, named, offset)

        def meaning(places: Array, values: Array) -> Array:
            wanted = places.astype(np.int64)
            _check_offsets("gatherb", "offset", wanted, src0, length, BLOCK_BYTES, BLOCK_BYTES)
            return _gatherb(values, wanted[:, None] + np.arange(BLOCK_BYTES)).copy()

        return Call(_GATHERB, Pipe.V, (named, source), (target,), meaning, work=repeat, cost=cost)

    send(
        "gatherb",
        (tensor_key(dst, src0, offset), repeat_times, repeat_params),
        bind,
    )
