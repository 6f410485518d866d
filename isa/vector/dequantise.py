"""Dequantisation: the scale register, and `cast_deq`, which uses it.

An int32 times the scale is rounded to float16 once. An int16 times its scale is rounded to float32, the offset is
added, and the result goes to the nearest 8-bit integer (ties to even), saturated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from isa import numerics
from isa.access import Access, check_bounds, contiguous, repeats
from isa.faults import fault
from isa.instruction import Call, Instruction, register
from isa.params import UnaryRepeatParams
from isa.stream import current
from isa.tensor import LocalTensor
from isa.types import (
    BLOCK_BYTES,
    BLOCKS_PER_REPEAT,
    REPEAT_BYTES,
    DType,
    HardEvent,
    Pipe,
    RoundMode,
    float16,
    float32,
    int8,
    int16,
    int32,
    uint8,
    uint64,
)
from isa.vector.binding import Operand, bind_count, bind_repeats
from isa.vector.checks import (
    MAX_STRIDE,
    check_core,
    check_integer,
    check_local,
    check_params,
    check_scalar,
    split_forms,
)
from isa.vector.forms import ALL_FORMS
from isa.vector.masks import freeze
from isa.vector.overflow import with_overflow_mode
from isa.vector.params import VdeqInfo
from isa.vector.places import PieceAccess, capacity, check_disjoint, counter_access
from isa.vector.special import (
    check_type,
    flag_argument,
    hand_over,
    lanes_of,
    overload,
    send,
    tensor_key,
)

Array = Any
_PIPE = Pipe.V.name
LANES = 16
"""Lanes of a data block of 16-bit elements: a vector scale has one entry for each."""
_OFFSET_SHIFT, _OFFSET_MASK, _SIGN_SHIFT = 37, 0x1FF, 46
"""Where offset (nine bits) and sign mode stand in a 64-bit entry; the scale is the low 32 bits."""


# ---- the scale register -------------------------------------------------------------------------


def set_deq_scale(*args: Any, **kwargs: Any) -> None:
    """Set the scale that dequantising instructions use.

    `(scale)`, rounded to float16, for `add_deq_relu` and int32 `cast_deq`; `(scale, offset, sign_mode)` for `cast_deq`
    of int16, offset of nine bits; `(vdeq, vdeq_info)` for its vector mode: the scalar unit writes the sixteen
    entries into the 128 bytes of `vdeq`, and V waits for it.
    """
    if check_core("set_deq_scale") is None:
        return
    first = args[0] if args else kwargs.get("vdeq", kwargs.get("scale"))
    if isinstance(first, LocalTensor):
        overload("set_deq_scale", _set_vector_scale, args, kwargs)
    elif len(args) + len(kwargs) == 1:
        overload("set_deq_scale", _set_half_scale, args, kwargs)
    else:
        overload("set_deq_scale", _set_scale, args, kwargs)


def _set_half_scale(scale: float) -> None:
    current.get().registers.deq_scale = (
        "half",
        float(check_scalar("set_deq_scale", scale, float16)),
    )


def _set_scale(scale: float, offset: int, sign_mode: bool) -> None:
    value = float(check_scalar("set_deq_scale", scale, float32))
    number = check_integer("set_deq_scale", "offset", offset, -256, 255, ": it has nine bits")
    signed = flag_argument("set_deq_scale", "sign_mode", sign_mode)
    current.get().registers.deq_scale = ("one", value, number, signed)


def _set_vector_scale(vdeq: LocalTensor, vdeq_info: VdeqInfo) -> None:
    check_local("set_deq_scale", "vdeq", vdeq, (uint64,))
    check_type("set_deq_scale", "vdeq_info", vdeq_info, VdeqInfo)
    fields = (vdeq_info.scale, vdeq_info.offset, vdeq_info.sign_mode)
    if any(not isinstance(one, (list, tuple)) or len(one) != LANES for one in fields):
        fault(
            "ILLEGAL_PARAM",
            "vdeq-length",
            "set_deq_scale: scale, offset and sign_mode of VdeqInfo are lists of 16, one entry for each lane",
            pipe=_PIPE,
        )
    whole = Access(vdeq, vdeq.addr, (LANES,), (8,), uint64)
    check_bounds(whole, vdeq, "set_deq_scale: vdeq", capacity(), _PIPE)
    for lane, (scale, offset, sign) in enumerate(zip(*fields, strict=True)):
        bits = int(np.float32(check_scalar("set_deq_scale", scale, float32)).view(np.uint32))
        number = check_integer("set_deq_scale", "offset", offset, -256, 255, ": it has nine bits")
        signed = flag_argument("set_deq_scale", "sign_mode", sign)
        entry = bits | ((number & _OFFSET_MASK) << _OFFSET_SHIFT) | (int(signed) << _SIGN_SHIFT)
        place = Access(vdeq, vdeq.addr + 8 * lane, (1,), (8,), uint64)
        current.get().store_scalar(vdeq, place, entry)
    hand_over(HardEvent.S_V)
    current.get().registers.deq_scale = ("vector", vdeq)


def scale_key() -> Any:
    """Return what a bound call that holds the scale is looked up with."""
    stream = current.get(None)
    scale = None if stream is None else stream.registers.deq_scale
    return (scale[0], scale[1].key) if scale and scale[0] == "vector" else scale


def _missing_scale(name: str, call: str) -> None:
    fault(
        "ILLEGAL_PARAM",
        "deq-scale",
        f"{name} uses the scale register, which does not hold what it needs: call {call} before",
        pipe=_PIPE,
    )


def half_scale(name: str) -> float:
    """Return the scale that `set_deq_scale(scale)` set; fault where there is none."""
    scale = current.get().registers.deq_scale
    if not scale or scale[0] != "half":
        _missing_scale(name, "set_deq_scale(scale)")
    return float(scale[1])


# ---- cast_deq -----------------------------------------------------------------------------------


def _cast_deq(src: Array, scale: Array, offset: Array, target: DType) -> Array:
    """dst = src · scale + offset as an 8-bit integer, or int32 · scale as float16."""
    if target is float16:
        return (src.astype(np.float64) * scale).astype(np.float16)
    exact = (src.astype(np.float64) * scale).astype(np.float32).astype(np.float64) + offset
    return numerics.to_integer(exact, target, RoundMode.CAST_RINT)


_CAST_DEQ = register(
    Instruction("cast_deq", Pipe.V, "cast_dequant", (int8, uint8, float16), _cast_deq, ALL_FORMS)
)


def cast_deq(
    dst: LocalTensor,
    src: LocalTensor,
    count: Any = None,
    repeat_times: Any = None,
    repeat_params: Any = None,
    is_set_mask: bool = True,
    is_vec_deq: bool = True,
    half_block: bool = True,
    *,
    mask: Any = None,
) -> None:
    """Dequantise: int32 · scale to float16, or int16 · scale + offset to int8 or uint8 (the sign mode).

    Sixteen int16 of a data block become sixteen bytes in the low half (`half_block`) or the high half of a data
    block of dst; the other half stays. With `is_vec_deq` each of the sixteen lanes has its own scale and offset.
    """
    if isinstance(repeat_times, bool):  # (dst, src, count, is_vec_deq, half_block) by position
        is_vec_deq, repeat_times = repeat_times, None
        if isinstance(repeat_params, bool):
            half_block, repeat_params = repeat_params, None
    number, repeat_times, repeat_params, set_mask = split_forms(
        "cast_deq", count, mask, repeat_times, repeat_params, is_set_mask
    )
    vector = flag_argument("cast_deq", "is_vec_deq", is_vec_deq)
    low = flag_argument("cast_deq", "half_block", half_block)

    def bind() -> Call:
        check_local("cast_deq", "dst", dst, (int8, uint8, float16))
        check_local("cast_deq", "src", src, (int16, int32))
        params = repeat_params if repeat_params is not None else UnaryRepeatParams()
        check_params("cast_deq", params, UnaryRepeatParams)
        if (src.dtype is int32) != (dst.dtype is float16):
            fault(
                "ILLEGAL_PARAM",
                "cast-pair",
                f"cast_deq: the 910B does not convert {src.dtype} to {dst.dtype}; it takes int32 to float16, int16 to "
                f"int8 and int16 to uint8",
                pipe=_PIPE,
            )
        if src.dtype is int32:
            return _bind_half(dst, src, number, repeat_times, params, set_mask)
        return _bind_bytes(dst, src, number, repeat_times, params, set_mask, vector, low)

    key = (
        tensor_key(dst, src),
        freeze(number),
        repeat_times,
        repeat_params,
        (set_mask, vector, low),
        scale_key(),
    )
    send(
        "cast_deq",
        key,
        bind,
        mask=None if repeat_times is None else freeze(number),
        dtype=src.dtype if isinstance(src, LocalTensor) else None,
        count_form=repeat_times is None,
        set_mask=set_mask,
    )


def _bind_half(
    dst: LocalTensor, src: LocalTensor, number: Any, repeat_times: Any, params: Any, set_mask: bool
) -> Call:
    scale = half_scale("cast_deq")
    target = Operand("dst", dst, params.dst_blk_stride, params.dst_rep_stride)
    sources = [Operand("src", src, params.src_blk_stride, params.src_rep_stride)]

    meaning = with_overflow_mode(
        lambda values: _cast_deq(values, np.float64(scale), np.float64(0), float16), float16
    )
    if repeat_times is None:
        return bind_count(_CAST_DEQ, target, sources, number, meaning, "int32->float16")
    return bind_repeats(
        _CAST_DEQ,
        target,
        sources,
        number,
        repeat_times,
        meaning,
        "int32->float16",
        set_mask=set_mask,
    )


def _bind_bytes(
    dst: LocalTensor,
    src: LocalTensor,
    number: Any,
    repeat_times: Any,
    params: Any,
    set_mask: bool,
    vector: bool,
    low: bool,
) -> Call:
    cost = ("cast_dequant", src.dtype.name)
    shift = 0 if low else LANES
    source: Access
    if repeat_times is None:
        total = check_integer("cast_deq", "count", number, 0, None)
        work = -(-total * src.dtype.size // REPEAT_BYTES)
        if total:
            source = contiguous(src, total)
            target = _half_blocks(dst, shift, total, 1, BLOCKS_PER_REPEAT)
    else:
        strides = {}
        for what in ("dst_blk_stride", "src_blk_stride", "dst_rep_stride", "src_rep_stride"):
            strides[what] = check_integer("cast_deq", what, getattr(params, what), 0, MAX_STRIDE)
        chosen = lanes_of("cast_deq", number, repeat_times, int16, set_mask)
        work = total = 0 if chosen.none else chosen.repeat
        for what, needed in (("dst_blk_stride", total > 0), ("dst_rep_stride", total > 1)):
            if needed and strides[what] == 0:
                _fault_zero(what, dst)
        block, step = strides["dst_blk_stride"], strides["dst_rep_stride"]
        if total and chosen.total is not None:
            inner = (strides["src_blk_stride"], strides["src_rep_stride"])
            source = counter_access(src, chosen.total, *inner, REPEAT_BYTES // 2)
            target = _half_blocks(dst, shift, chosen.total, block, step)
        elif total:
            source = repeats(
                src,
                total,
                strides["src_blk_stride"],
                strides["src_rep_stride"],
                chosen.active,
                BLOCKS_PER_REPEAT,
            )
            jumps = (step * BLOCK_BYTES, block * BLOCK_BYTES, 1)
            target = Access(dst, dst.addr + shift, source.shape, jumps, dst.dtype, source.lanes)
    if total == 0:
        return Call(_CAST_DEQ, Pipe.V, (), (), _cast_deq, cost=cost)
    reads, meaning = _byte_meaning(dst.dtype, vector)
    for what, access, tensor in (("dst", target, dst), ("src", source, src)):
        check_bounds(access, tensor, f"cast_deq: {what}", capacity(), _PIPE)
    check_disjoint("cast_deq", target, source, src)
    return Call(_CAST_DEQ, Pipe.V, (source, *reads), (target,), meaning, work=work, cost=cost)


def _fault_zero(what: str, dst: LocalTensor) -> None:
    fault(
        "ILLEGAL_PARAM",
        f"{what.replace('_', '-')}-zero",
        f"cast_deq: {what} 0 writes several results to one place; it must be at least 1",
        dst.name,
        pipe=_PIPE,
    )


def _half_blocks(dst: LocalTensor, shift: int, total: int, block: int, step: int) -> Access:
    """Return the halves of data blocks that `total` results go to, sixteen to each."""
    pieces: list[Access] = []
    repeat, rest = divmod(total, LANES * BLOCKS_PER_REPEAT)
    base = dst.addr + shift
    inner = (block * BLOCK_BYTES, 1)
    if repeat:
        shape = (repeat, BLOCKS_PER_REPEAT, LANES)
        pieces.append(Access(dst, base, shape, (step * BLOCK_BYTES, *inner), dst.dtype))
    base += repeat * step * BLOCK_BYTES
    blocks, tail = divmod(rest, LANES)
    if blocks:
        pieces.append(Access(dst, base, (blocks, LANES), inner, dst.dtype))
    if tail:
        pieces.append(Access(dst, base + blocks * block * BLOCK_BYTES, (tail,), (1,), dst.dtype))
    return pieces[0] if len(pieces) == 1 else PieceAccess(dst, pieces)


def _byte_meaning(target: DType, vector: bool) -> tuple[tuple[Access, ...], Callable[..., Array]]:
    """Return further sources and the meaning of int16 to 8 bits."""
    register_value = current.get().registers.deq_scale
    if vector:
        if not register_value or register_value[0] != "vector":
            _missing_scale("cast_deq with is_vec_deq", "set_deq_scale(vdeq, vdeq_info)")
        vdeq = register_value[1]
        entries = Access(vdeq, vdeq.addr, (LANES,), (8,), uint64)
        return (entries,), lambda values, given: _scaled(values, given, target)
    if not register_value or register_value[0] != "one":
        _missing_scale("cast_deq of int16", "set_deq_scale(scale, offset, sign_mode)")
    _, scale, offset, signed = register_value
    if signed != (target is int8):
        fault(
            "ILLEGAL_PARAM",
            "sign-mode",
            f"cast_deq: sign_mode is {signed}, so that results are {'int8' if signed else 'uint8'}, but dst is "
            f"{target}. Set sign_mode to {target is int8}, or take the other type",
            pipe=_PIPE,
        )
    one = (np.float64(scale), np.float64(offset))
    return (), lambda values: _cast_deq(np.asarray(values), *one, target)


def _scaled(values: Array, entries: Array, target: DType) -> Array:
    """Return int16 values with the scale, offset and sign mode of their lane of sixteen."""
    flat = np.asarray(values).ravel()
    lane = np.arange(flat.size) % LANES
    scale = (entries & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.float32).astype(np.float64)
    offset = ((entries >> np.uint64(_OFFSET_SHIFT)) & np.uint64(_OFFSET_MASK)).astype(np.int64)
    offset = np.where(offset > _OFFSET_MASK >> 1, offset - _OFFSET_MASK - 1, offset)
    signed = ((entries >> np.uint64(_SIGN_SHIFT)) & np.uint64(1)).astype(bool)[lane]
    with_sign = _cast_deq(flat, scale[lane], offset[lane], int8).view(np.uint8)
    without = _cast_deq(flat, scale[lane], offset[lane], uint8)
    return np.where(signed, with_sign, without).view(target.numpy).reshape(np.shape(values))
