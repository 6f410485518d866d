"""Data movement between GM, UB and L1: data_copy, here, and data_copy_pad."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from isa.access import Access
from isa.arguments import check_integer
from isa.copy_pad import data_copy_pad
from isa.cube_copy import LAYOUT_PARAMS, layout_copy, table_copy
from isa.faults import fault
from isa.instruction import Call, Instruction, register
from isa.params import DataCopyEnhancedParams, DataCopyParams
from isa.routes import ROUTES, Tensor, check_inside, route, rows_of, stream_for
from isa.slices import copy_slices
from isa.stream import current
from isa.tensor import GlobalTensor
from isa.types import BLOCK_BYTES, BLOCKS_PER_REPEAT, DTYPES, Pipe, Space

__all__ = ["ROUTES", "data_copy", "data_copy_pad"]

Array = Any

MAX_BLOCK_COUNT = 4095
"""Bursts of one copy: 12 bits."""
MAX_BLOCK_LEN = 65535
"""Data blocks of one burst, and of one gap: 16 bits."""

_GM = Space.GM
_V = Pipe.V
_TABLES = (Space.BT, Space.FB)
_PARAMS = (DataCopyParams, *LAYOUT_PARAMS)


def _data_copy(src: Array) -> Array:
    """dst = src: `count` elements (rounded down to 32 bytes), or bursts of 32-byte blocks with gaps."""
    return src.copy()


_DATA_COPY = register(
    Instruction(
        "data_copy",
        None,
        "data_copy_ub",
        DTYPES,
        _data_copy,
        "count; DataCopyParams; layout changes",
    )
)


def data_copy(
    dst: Tensor,
    src: Tensor,
    count: Any = None,
    enhanced_params: Any = None,
    dim_value: Any = None,
    *,
    repeat_params: DataCopyParams | None = None,
    intri_params: Any = None,
    slice_list1: Any = None,
    slice_list2: Any = None,
) -> None:
    """Copy `count` elements, or bursts as DataCopyParams says: lengths and gaps in 32-byte blocks.

    The third argument is either of them, or the parameters of a layout change. Lists of `SliceInfo` for dst and src
    and the number of dimensions copy slices, row by row. Enhanced parameters are taken with their defaults.

    The count form moves whole 32-byte blocks only and silently drops the rest, as the hardware does; a finding says
    so. UB and L1 operands start on 32-byte borders, GM operands at an element. A count or a length of 0 moves nothing.
    """
    if (
        enhanced_params is None
        and intri_params is None
        and (count is None or repeat_params is None)
    ):
        stream = current.get(None)
        try:
            key = _key(dst, src, count if repeat_params is None else repeat_params)
            template = stream.calls.get(key)
        except (AttributeError, TypeError):  # no tensors: the checks below say so
            template = None
        if template is not None:
            call = _again(template, dst, src)
            if call is not None:
                stream.issue(call)
                return
    params: Any = repeat_params if repeat_params is not None else intri_params
    if params is None and isinstance(count, _PARAMS):
        params, count = count, None
    if dim_value is not None or slice_list1 is not None or slice_list2 is not None:
        slices = (count, enhanced_params) if slice_list1 is None else (slice_list1, slice_list2)
        copy_slices(dst, src, *slices, dim_value)
        return
    if (count is None) == (params is None) or (
        repeat_params is not None and intri_params is not None
    ):
        _wrong_form()
    if enhanced_params is not None:
        _check_enhanced(enhanced_params, params)
    _copy_anew(dst, src, count, params)


def _key(dst: Any, src: Any, what: Any) -> tuple[Any, ...]:
    """Return all that a copy depends on, but for its place in GM; `what` is a count or DataCopyParams."""
    if type(what) is DataCopyParams:
        return (
            "data_copy", dst.key, src.key, what.block_count, what.block_len, what.src_stride, what.dst_stride,
        )  # fmt: skip
    return ("data_copy", dst.key, src.key, what if type(what) is int else None)


def _copy_anew(dst: Any, src: Any, count: Any, params: Any) -> None:
    """Bind a copy that the stream does not know, and issue it."""
    if isinstance(params, LAYOUT_PARAMS):
        layout_copy(dst, src, params, data_copy)
        return
    if getattr(dst, "space", None) in _TABLES:
        table_copy(dst, src, count, params)
        return
    stream = stream_for("data_copy", dst, src)
    if stream is None:
        return
    pipe = route("data_copy", dst, src)
    if params is None:
        call = _bind_count(dst, src, count, pipe)
        known = type(count) is int
    else:
        call = _bind_bursts(dst, src, params, pipe)
        fields = (params.block_count, params.block_len, params.src_stride, params.dst_stride)
        known = all(type(value) is int for value in fields)
    if known:
        stream.calls[_key(dst, src, count if params is None else params)] = call
    stream.issue(call, 4)


def _wrong_form() -> NoReturn:
    fault(
        "ILLEGAL_PARAM",
        "form",
        "data_copy takes count, or DataCopyParams: give exactly one of them",
    )


def _check_enhanced(enhanced_params: Any, params: Any) -> None:
    if not isinstance(enhanced_params, DataCopyEnhancedParams) or not isinstance(
        params, DataCopyParams
    ):
        fault(
            "ILLEGAL_PARAM",
            "wrong-params",
            f"data_copy: enhanced_params is a DataCopyEnhancedParams beside DataCopyParams, got {enhanced_params!r}",
        )
    if enhanced_params != DataCopyEnhancedParams():
        fault(
            "ILLEGAL_PARAM",
            "not-on-910b",
            f"data_copy: the routes that {enhanced_params} is for exist on other chips only; on the 910B fixpipe "
            f"converts and data_copy_pad pads",
        )


def _again(template: Call, dst: Tensor, src: Tensor) -> Call | None:
    """Return a bound copy between the same local bytes with its GM side moved; None where that needs the checks."""
    if template.pipe is _V or not template.writes:
        return template
    if dst.space is _GM:
        gm, known = dst, template.writes[0]
    else:
        gm, known = src, template.reads[0]
    offset: int = gm.offset  # type: ignore[union-attr]
    extent = known.high - known.low
    if extent > gm.length or offset < 0 or offset % gm.dtype.size:
        return None
    if offset + extent > gm.buffer.nbytes:  # type: ignore[union-attr]
        return None
    if offset == known.base:
        return template
    return template.at(offset, write=gm is dst)


def _bind_count(dst: Tensor, src: Tensor, count: Any, pipe: Pipe) -> Call:
    number = check_integer("data_copy", "count", count, 0, None, pipe=pipe.name)
    wanted = number * src.dtype.size
    length = wanted // BLOCK_BYTES * BLOCK_BYTES
    extra = f"count:{number}"
    if wanted != length:
        extra += f",dropped:{wanted - length}"
    if length == 0:
        call = Call(_DATA_COPY, pipe, (), (), _data_copy, extra=extra)
    else:
        accesses = []
        for operand, tensor in (("dst", dst), ("src", src)):
            access = rows_of(tensor, 1, length, length)
            check_inside("data_copy", operand, access, tensor, pipe)
            accesses.append(access)
        if pipe is Pipe.V:
            _check_overlap(accesses, 1, length, (length, length))
        call = _move(dst, src, accesses, pipe, 1, length, extra)
    if wanted != length:
        call.lint = (
            "LAYOUT",
            "copy-tail-dropped",
            f"data_copy: {number} elements of {src.dtype} are {wanted} bytes; data_copy moves whole 32-byte "
            f"blocks, so the last {wanted - length} bytes are not copied. Use data_copy_pad, or a count that "
            f"is a multiple of {BLOCK_BYTES // src.dtype.size}",
        )
    return call


def _bind_bursts(dst: Tensor, src: Tensor, params: Any, pipe: Pipe) -> Call:
    if not isinstance(params, DataCopyParams):
        fault(
            "ILLEGAL_PARAM",
            "wrong-params",
            f"data_copy: expected DataCopyParams, got {type(params).__name__}",
            pipe=pipe.name,
        )

    def field(what: str, high: int, why: str = " blocks of 32 bytes") -> int:
        value = getattr(params, what)
        return check_integer("data_copy", what, value, 0, high, why, pipe=pipe.name)

    rows = field("block_count", MAX_BLOCK_COUNT, "")
    blocks = field("block_len", MAX_BLOCK_LEN)
    gaps = (field("dst_stride", MAX_BLOCK_LEN), field("src_stride", MAX_BLOCK_LEN))
    extra = f"bursts:{rows}x{blocks} blocks,gaps:{gaps[1]}/{gaps[0]}"
    if rows == 0 or blocks == 0:
        return Call(_DATA_COPY, pipe, (), (), _data_copy, extra=extra)
    length = blocks * BLOCK_BYTES
    pitches = (length + gaps[0] * BLOCK_BYTES, length + gaps[1] * BLOCK_BYTES)
    accesses = []
    for operand, tensor, pitch in (("dst", dst, pitches[0]), ("src", src, pitches[1])):
        access = rows_of(tensor, rows, length, pitch)
        check_inside("data_copy", operand, access, tensor, pipe, _length_hint(tensor, blocks))
        accesses.append(access)
    if pipe is Pipe.V:
        _check_overlap(accesses, rows, length, pitches)
    return _move(dst, src, accesses, pipe, rows, length, extra)


def _length_hint(tensor: Tensor, blocks: int) -> str:
    """Return what the bounds message adds, for the usual slip: a length in elements."""
    per_block = BLOCK_BYTES // tensor.dtype.size
    hint = (
        f". block_len and strides count 32-byte blocks, here {blocks} blocks = {blocks * per_block} elements "
        f"of {tensor.dtype}"
    )
    if blocks % per_block == 0:
        hint += f"; if {blocks} elements were meant, block_len is {blocks // per_block}"
    return hint


def _move(
    dst: Tensor,
    src: Tensor,
    accesses: list[Access],
    pipe: Pipe,
    rows: int,
    length: int,
    extra: str,
) -> Call:
    vector = pipe is Pipe.V
    call = Call(
        _DATA_COPY,
        pipe,
        (accesses[1],),
        (accesses[0],),
        _data_copy,
        work=rows * -(-length // (BLOCK_BYTES * BLOCKS_PER_REPEAT)) if vector else 0,
        payload=0 if vector else rows * length,
        extra=extra,
    )
    if isinstance(dst, GlobalTensor):
        call.cache_mode = dst.write_cache
    elif isinstance(src, GlobalTensor):
        call.cache_mode = src.read_cache
    return call


def _check_overlap(
    accesses: list[Access], rows: int, length: int, pitches: tuple[int, int]
) -> None:
    """Fault where a copy inside UB would read a block that it has written before, block by block in order."""
    dst, src = accesses
    if dst.low >= src.high or src.low >= dst.high:
        return
    order = np.arange(rows * length // BLOCK_BYTES)
    row, block = np.divmod(order, length // BLOCK_BYTES)
    written = dst.base + row * pitches[0] + block * BLOCK_BYTES
    read = src.base + row * pitches[1] + block * BLOCK_BYTES
    when = np.full((dst.high - dst.base) // BLOCK_BYTES, len(order))
    when[(written - dst.base) // BLOCK_BYTES] = order
    inside = (read >= dst.base) & (read < dst.high)
    if np.any(when[(read[inside] - dst.base) // BLOCK_BYTES] < order[inside]):
        fault(
            "ILLEGAL_PARAM",
            "operand-overlap",
            f"data_copy: dst {dst.name} (UB bytes {dst.low} to {dst.high}) overlaps src {src.name} (UB bytes "
            f"{src.low} to {src.high}) so that the copy would read what it has written. Copy downwards, or "
            f"through other bytes",
            dst.name,
            (max(dst.low, src.low), min(dst.high, src.high)),
            Pipe.V.name,
        )
