"""Data movement between GM, UB and L1: data_copy and data_copy_pad.

Which pipe moves the data follows from the two memories: GM to UB or L1 is MTE2, UB or L1 to GM is MTE3, UB to
UB is a vector instruction (pipe V).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isa.access import Access, check_bounds
from isa.cube_copy import LAYOUT_PARAMS, layout_copy, table_copy
from isa.faults import fault
from isa.instruction import Call, Instruction, register
from isa.params import (
    DataCopyExtParams,
    DataCopyPadExtParams,
    DataCopyPadParams,
    DataCopyParams,
)
from isa.stream import current
from isa.tensor import GlobalTensor, LocalTensor
from isa.types import BLOCK_BYTES, BLOCKS_PER_REPEAT, DTYPES, CoreKind, Pipe, Space

Array = Any
Tensor = GlobalTensor | LocalTensor

MAX_BLOCK_COUNT = 4095
MAX_BLOCK_LEN = 65535
MAX_PAD_LEN = 2_097_151

ROUTES: dict[tuple[Space, Space], Pipe] = {
    (Space.GM, Space.UB): Pipe.MTE2,
    (Space.GM, Space.L1): Pipe.MTE2,
    (Space.UB, Space.GM): Pipe.MTE3,
    (Space.L1, Space.GM): Pipe.MTE3,
    (Space.UB, Space.UB): Pipe.V,
}
"""(source, destination) of data_copy and the pipe that does it on the 910B."""

_GM = Space.GM
_V = Pipe.V
_TABLES = (Space.BT, Space.FB)
_PARAMS = (DataCopyParams, *LAYOUT_PARAMS)
_CORE_OF = {Space.UB: CoreKind.AIV, Space.L1: CoreKind.AIC}


def _data_copy(src: Array) -> Array:
    """dst = src: `count` elements (rounded down to 32 bytes), or bursts of 32-byte blocks with gaps."""
    return src.copy()


_DATA_COPY = register(
    Instruction("data_copy", None, "data_copy_ub", DTYPES, _data_copy, "count; DataCopyParams; layout changes")
)


def _data_copy_pad(src: Array) -> Array:
    """dst = src in bursts of whole bytes: UB rows start on 32-byte borders, GM rows anywhere."""
    return src.copy()


_DATA_COPY_PAD = register(
    Instruction(
        "data_copy_pad", None, "data_copy_ub", DTYPES, _data_copy_pad, "DataCopyExtParams[, DataCopyPadExtParams]"
    )
)


def _route(name: str, dst: Any, src: Any) -> Pipe:
    for operand, tensor in (("dst", dst), ("src", src)):
        if not isinstance(tensor, (GlobalTensor, LocalTensor)):
            fault(
                "ILLEGAL_PARAM",
                "wrong-operand",
                f"{name}: {operand} must be a GlobalTensor or a LocalTensor, got {type(tensor).__name__}",
            )
        if isinstance(tensor, GlobalTensor) and tensor.buffer is None:
            fault("HOST", "unbound-tensor", f"{name}: {operand} is a GlobalTensor before set_global_buffer")
    pipe = ROUTES.get((src.space, dst.space))
    if pipe is None:
        fault(
            "ILLEGAL_PARAM",
            "no-path",
            f"{name}: the 910B has no path from {src.space.name} ({src.name}) to {dst.space.name} ({dst.name}); "
            f"data goes GM to UB or L1, UB or L1 to GM, UB to UB",
            dst.name,
        )
    if src.dtype is not dst.dtype:
        fault(
            "ILLEGAL_PARAM",
            "dtype-mismatch",
            f"{name}: src {src.name} is {src.dtype}, dst {dst.name} is {dst.dtype}. A copy does not convert: use "
            f"tensors of one type, cast, or reinterpret_cast if the bits are meant",
            src.name,
            pipe=pipe.name,
        )
    for operand, tensor in (("dst", dst), ("src", src)):
        _check_alignment(name, operand, tensor, pipe)
    return pipe


def _check_alignment(name: str, operand: str, tensor: Tensor, pipe: Pipe) -> None:
    if isinstance(tensor, GlobalTensor):
        size = tensor.dtype.size
        if tensor.offset % size:
            fault(
                "ALIGNMENT",
                "gm-misaligned",
                f"{name}: {operand} {tensor.name} starts at GM byte {tensor.offset}, which is no multiple of the "
                f"{size} bytes of {tensor.dtype}",
                tensor.name,
                (tensor.offset, tensor.offset + tensor.length),
                pipe.name,
            )
    elif tensor.addr % BLOCK_BYTES:
        fault(
            "ALIGNMENT",
            "misaligned-operand",
            f"{name}: {operand} {tensor.name} starts at {tensor.space.name} byte {tensor.addr}, which is "
            f"{tensor.addr % BLOCK_BYTES} past a {BLOCK_BYTES}-byte border; copies start on one",
            tensor.name,
            (tensor.addr, tensor.addr + tensor.length),
            pipe.name,
        )


def _integer(name: str, what: str, value: Any, high: int, hint: str = "") -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        fault("ILLEGAL_PARAM", "not-an-integer", f"{name}: {what} must be a whole number, got {value!r}")
    if not 0 <= value <= high:
        fault(
            "ILLEGAL_PARAM",
            f"{what.replace('_', '-')}-limit",
            f"{name}: {what} is {value}, allowed is 0 to {high}{hint}",
        )
    return int(value)


def _base(tensor: Tensor) -> int:
    return tensor.offset if isinstance(tensor, GlobalTensor) else tensor.addr


def _access(tensor: Tensor, rows: int, length: int, pitch: int, skip: int = 0) -> Access:
    """Return `rows` runs of `length` bytes, one every `pitch` bytes, as elements; `skip` bytes in."""
    size = tensor.dtype.size
    if rows == 1 or pitch == length:
        return Access(tensor, _base(tensor) + skip, (rows * length // size,), (size,), tensor.dtype)
    return Access(tensor, _base(tensor) + skip, (rows, length // size), (pitch, size), tensor.dtype)


def _check(name: str, operand: str, access: Access, tensor: Tensor, pipe: Pipe, hint: str = "") -> None:
    capacity = 0 if tensor.space is Space.GM else current.get().capacity(tensor.space)
    check_bounds(access, tensor, f"{name}: {operand}", capacity, pipe.name, hint)


def _stream(name: str, dst: Any, src: Any) -> Any:
    """Return the stream that takes this copy; None where the core does not have the local memory."""
    stream = current.get(None)
    if stream is None:
        fault("HOST", "no-kernel", f"{name} was called outside a kernel")
    local = dst if isinstance(dst, LocalTensor) else src
    if isinstance(local, LocalTensor) and _CORE_OF.get(local.space, stream.core_kind) is not stream.core_kind:
        if local.space is Space.L1:
            fault(
                "ILLEGAL_PARAM",
                "wrong-core",
                f"{name}: {local.name} is in L1, which only a cube core has; this kernel runs on a vector core "
                f"(on the board it ends as an illegal instruction)",
                local.name,
            )
        return None
    return stream


def data_copy(
    dst: Tensor,
    src: Tensor,
    count: Any = None,
    enhanced_params: Any = None,
    *,
    repeat_params: DataCopyParams | None = None,
    intri_params: DataCopyParams | None = None,
) -> None:
    """Copy `count` elements, or bursts as DataCopyParams says: lengths and gaps in 32-byte blocks.

    The count form moves whole 32-byte blocks only and silently drops the rest, as the hardware does; a finding
    says so.
    """
    params: Any = repeat_params if repeat_params is not None else intri_params
    if isinstance(count, _PARAMS):
        params, count = count, None
    if isinstance(params, LAYOUT_PARAMS):
        layout_copy(dst, src, params, data_copy)
        return
    if enhanced_params is not None:
        fault("ILLEGAL_PARAM", "unsupported-form", "data_copy: DataCopyEnhancedParams is not simulated")
    if (count is None) == (params is None):
        fault("ILLEGAL_PARAM", "form", "data_copy takes count, or DataCopyParams: give exactly one of them")
    if getattr(dst, "space", None) in _TABLES:
        table_copy(dst, src, count, params)  # type: ignore[arg-type]
        return
    stream = current.get(None)
    template = None
    key: Any = None
    if stream is not None:
        try:
            key = ("data_copy", dst.key, src.key, count if type(count) is int else params)
            template = stream.calls.get(key)
        except (AttributeError, TypeError):  # no tensors: the checks below say so
            key = None
    if template is not None:
        call = _again(template, dst, src)
        if call is not None:
            stream.issue(call)
            return
    stream = _stream("data_copy", dst, src)
    if stream is None:
        return
    pipe = _route("data_copy", dst, src)
    call = _bind_count(dst, src, count, pipe) if params is None else _bind_bursts(dst, src, params, pipe)
    if key is not None and (type(count) is int or params is not None):
        stream.calls[key] = call
    stream.issue(call)


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
    if extent > gm.length or offset < 0 or offset % gm.dtype.size or offset + extent > gm.buffer.nbytes:  # type: ignore[union-attr]
        return None
    if offset == known.base:
        return template
    return template.at(known.moved(offset), write=gm is dst)


def _bind_count(dst: Tensor, src: Tensor, count: Any, pipe: Pipe) -> Call:
    number = _integer("data_copy", "count", count, 1 << 40)
    wanted = number * src.dtype.size
    length = wanted // BLOCK_BYTES * BLOCK_BYTES
    call_extra = f"count:{number}"
    if wanted != length:
        call_extra += f",dropped:{wanted - length}"
    if length == 0:
        call = Call(_DATA_COPY, pipe, (), (), _data_copy, extra=call_extra)
    else:
        accesses = []
        for operand, tensor in (("dst", dst), ("src", src)):
            access = _access(tensor, 1, length, length)
            _check("data_copy", operand, access, tensor, pipe)
            accesses.append(access)
        call = _moved(_DATA_COPY, dst, src, accesses, pipe, 1, length, _data_copy, call_extra)
    if wanted != length:
        call.lint = (
            "LAYOUT",
            "copy-tail-dropped",
            f"data_copy: {number} elements of {src.dtype} are {wanted} bytes; data_copy moves whole 32-byte blocks, so "
            f"the last {wanted - length} bytes are not copied. Use data_copy_pad, or a count that is a multiple of "
            f"{BLOCK_BYTES // src.dtype.size}",
        )
    return call


def _moved(
    record: Instruction,
    dst: Tensor,
    src: Tensor,
    accesses: list[Access],
    pipe: Pipe,
    rows: int,
    length: int,
    meaning: Any,
    extra: str,
) -> Call:
    work = rows * -(-length // (BLOCK_BYTES * BLOCKS_PER_REPEAT)) if pipe is Pipe.V else 0
    call = Call(
        record,
        pipe,
        (accesses[1],),
        (accesses[0],),
        meaning,
        work=work,
        payload=0 if pipe is Pipe.V else rows * length,
        cost=("data_copy_ub", "any"),
        extra=extra,
    )
    for tensor in (dst, src):
        if isinstance(tensor, GlobalTensor):
            call.cache_mode = tensor.cache_mode
    return call


def _bind_bursts(dst: Tensor, src: Tensor, params: DataCopyParams, pipe: Pipe) -> Call:
    if not isinstance(params, DataCopyParams):
        fault("ILLEGAL_PARAM", "wrong-params", f"data_copy: expected DataCopyParams, got {type(params).__name__}")
    rows = _integer("data_copy", "block_count", params.block_count, MAX_BLOCK_COUNT)
    blocks = _integer("data_copy", "block_len", params.block_len, MAX_BLOCK_LEN, " blocks of 32 bytes")
    gaps = (
        _integer("data_copy", "dst_stride", params.dst_stride, MAX_BLOCK_LEN, " blocks of 32 bytes"),
        _integer("data_copy", "src_stride", params.src_stride, MAX_BLOCK_LEN, " blocks of 32 bytes"),
    )
    extra = f"bursts:{rows}x{blocks} blocks,gaps:{gaps[1]}/{gaps[0]}"
    if rows == 0 or blocks == 0:
        return Call(_DATA_COPY, pipe, (), (), _data_copy, extra=extra)
    length = blocks * BLOCK_BYTES
    accesses = []
    for operand, tensor, gap in (("dst", dst, gaps[0]), ("src", src, gaps[1])):
        access = _access(tensor, rows, length, length + gap * BLOCK_BYTES)
        per_block = BLOCK_BYTES // tensor.dtype.size
        hint = (
            f". block_len and strides count 32-byte blocks, here {blocks} blocks = {blocks * per_block} elements of "
            f"{tensor.dtype}"
        )
        if blocks % per_block == 0:
            hint += f"; if {blocks} elements were meant, block_len is {blocks // per_block}"
        _check("data_copy", operand, access, tensor, pipe, hint)
        accesses.append(access)
    shape = accesses[0].shape if len(accesses[0].shape) == len(accesses[1].shape) else None
    meaning = _data_copy if shape is not None else _reshaping(accesses[0].shape)
    return _moved(_DATA_COPY, dst, src, accesses, pipe, rows, length, meaning, extra)


def _reshaping(shape: tuple[int, ...]) -> Any:
    return lambda src: src.copy().reshape(shape)


def data_copy_pad(
    dst: Tensor,
    src: Tensor,
    data_copy_params: DataCopyExtParams | DataCopyParams,
    pad_params: DataCopyPadExtParams | DataCopyPadParams | None = None,
) -> None:
    """Copy bursts of whole bytes between GM and UB; gaps are bytes on the GM side, 32-byte blocks on the UB side.

    GM to UB: each row starts on a 32-byte border of UB and is filled up to one, with the padding value or, without
    padding, with the row's first element (documented as a dummy: do not use it). UB to GM: exactly the
    bytes of each row are stored.
    """
    stream = _stream("data_copy_pad", dst, src)
    if stream is None:
        return
    pipe = _route("data_copy_pad", dst, src)
    if pipe is Pipe.V or Space.L1 in (dst.space, src.space):
        fault("ILLEGAL_PARAM", "no-path", "data_copy_pad moves data between GM and UB only", dst.name)
    stream.issue(_bind_pad(dst, src, data_copy_params, pad_params, pipe))


def _bind_pad(dst: Tensor, src: Tensor, params: Any, pad: Any, pipe: Pipe) -> Call:
    name = "data_copy_pad"
    if not isinstance(params, (DataCopyExtParams, DataCopyParams)):
        fault("ILLEGAL_PARAM", "wrong-params", f"{name}: expected DataCopyExtParams, got {type(params).__name__}")
    wide = isinstance(params, DataCopyExtParams)
    rows = _integer(name, "block_count", params.block_count, MAX_BLOCK_COUNT)
    length = _integer(name, "block_len", params.block_len, MAX_PAD_LEN if wide else MAX_BLOCK_LEN, " bytes")
    limit = (1 << 32) - 1 if wide else MAX_BLOCK_LEN
    dst_gap = _integer(name, "dst_stride", params.dst_stride, limit)
    src_gap = _integer(name, "src_stride", params.src_stride, limit)
    size = dst.dtype.size
    if length % size:
        fault(
            "ILLEGAL_PARAM",
            "block-len-not-whole",
            f"{name}: block_len is {length} bytes, which is no whole number of {dst.dtype} elements ({size} bytes). "
            f"block_len counts bytes here",
            dst.name,
            pipe=pipe.name,
        )
    extra = f"bursts:{rows}x{length} B,gaps:{src_gap}/{dst_gap}"
    if rows == 0 or length == 0:
        return Call(_DATA_COPY_PAD, pipe, (), (), _data_copy_pad, extra=extra)
    if pipe is Pipe.MTE3:
        return _bind_unpad(dst, src, rows, length, src_gap, dst_gap, extra)
    left, right, value, filler = _padding(name, dst, pad)
    padded = -(-(left * size + length + right * size) // BLOCK_BYTES) * BLOCK_BYTES
    source = _access(src, rows, length, length + src_gap)
    target = _access(dst, rows, padded, padded + dst_gap * BLOCK_BYTES)
    _check(name, "src", source, src, pipe)
    _check(name, "dst", target, dst, pipe)
    width = padded // size
    start, stop = left, left + length // size

    def meaning(values: Array) -> Array:
        values = values.reshape(rows, stop - start)
        result = np.empty((rows, width), values.dtype)
        if value is not None:
            result[...] = value
        elif filler == "first":
            result[...] = values[:, :1]
        else:
            result.view(np.uint8)[...] = 0xFF  # undefined on the hardware: poison
        result[:, start:stop] = values
        return result.reshape(target.shape)

    call = Call(_DATA_COPY_PAD, pipe, (source,), (target,), meaning, payload=rows * length, extra=extra)
    call.cache_mode = src.cache_mode  # type: ignore[union-attr]
    if value is None and width > stop - start:
        call.undefined = _undefined(dst, rows, padded, dst_gap, start * size, stop * size)
    return call


def _undefined(
    dst: Tensor, rows: int, padded: int, gap: int, start: int, stop: int
) -> tuple[Access, ...]:
    """Return the filler bytes of the rows: written, but not to be used."""
    pitch = padded + gap * BLOCK_BYTES
    size = dst.dtype.size
    parts = []
    for low, high in ((0, start), (stop, padded)):
        if high > low:
            shape, strides = (rows, (high - low) // size), (pitch, size)
            parts.append(Access(dst, _base(dst) + low, shape, strides, dst.dtype))
    return tuple(parts)


def _bind_unpad(dst: Tensor, src: Tensor, rows: int, length: int, src_gap: int, dst_gap: int, extra: str) -> Call:
    row = -(-length // BLOCK_BYTES) * BLOCK_BYTES
    source = _access(src, rows, length, row + src_gap * BLOCK_BYTES)
    target = _access(dst, rows, length, length + dst_gap)
    _check("data_copy_pad", "src", source, src, Pipe.MTE3)
    _check("data_copy_pad", "dst", target, dst, Pipe.MTE3)
    call = Call(
        _DATA_COPY_PAD,
        Pipe.MTE3,
        (source,),
        (target,),
        _reshaping(target.shape),
        payload=rows * length,
        extra=extra,
    )
    call.cache_mode = dst.cache_mode  # type: ignore[union-attr]
    return call


def _padding(name: str, dst: Tensor, pad: Any) -> tuple[int, int, Any, str]:
    """Return (left, right, value or None, filler): what surrounds each row in UB, in elements."""
    if pad is None:
        return 0, 0, None, "first"
    if not isinstance(pad, (DataCopyPadExtParams, DataCopyPadParams)):
        fault("ILLEGAL_PARAM", "wrong-params", f"{name}: expected DataCopyPadExtParams, got {type(pad).__name__}")
    size = dst.dtype.size
    limit = BLOCK_BYTES // size
    left = _integer(name, "left_padding", pad.left_padding, limit, f" elements of {dst.dtype} (32 bytes)")
    right = _integer(name, "right_padding", pad.right_padding, limit, f" elements of {dst.dtype} (32 bytes)")
    if not pad.is_pad:
        return left, right, None, "first" if left == right == 0 else "random"
    if size == 8 and pad.padding_value != 0:
        fault("ILLEGAL_PARAM", "padding-value", f"{name}: 64-bit types pad with 0 only, got {pad.padding_value}")
    value = pad.padding_value
    if isinstance(pad, DataCopyPadParams):  # the old structure carries the bits of the value
        bits = np.array([int(value) & ((1 << (8 * size)) - 1)], np.uint64).view(np.uint8)[:size]
        return left, right, bits.view(dst.dtype.numpy)[0], "value"
    with np.errstate(all="ignore"):
        return left, right, np.array(value).astype(dst.dtype.numpy)[()], "value"
