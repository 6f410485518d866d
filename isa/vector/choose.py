"""Selection of elements by bits: `select` in its three modes."""

from __future__ import annotations

from typing import Any

import numpy as np

from isa.access import Access, check_bounds, contiguous
from isa.faults import fault
from isa.instruction import Call, Instruction, register
from isa.params import BinaryRepeatParams
from isa.stream import current
from isa.tensor import LocalTensor
from isa.types import (
    REPEAT_BYTES,
    Pipe,
    float16,
    float32,
    int8,
    uint8,
    uint16,
    uint32,
    uint64,
)
from isa.vector.binding import Operand, bind_count, bind_repeats
from isa.vector.checks import check_local, check_params, check_same_dtype, check_scalar
from isa.vector.masks import freeze
from isa.vector.params import SelMode
from isa.vector.places import capacity
from isa.vector.special import (
    CMPMASK,
    bank,
    bank_key,
    cmp_mask,
    flag_argument,
    mode_argument,
    overload,
    put,
    send,
    tensor_key,
)

Array = Any
_PIPE = Pipe.V.name
_TYPES = (float16, float32)
_BITS = (uint8, int8, uint16, uint32, uint64)
RESERVED_BYTES = 8192
"""The end of UB that the vendor's library uses itself in modes 1 and 2."""


def _select(bits: Array, a: Array, b: Array) -> Array:
    """dst = src0 where the bit is 1, src1 where it is 0."""
    return np.where(bits, a, b)


_SELECT = register(
    Instruction(
        "select",
        Pipe.V,
        "select",
        _TYPES,
        _select,
        "sel_mask, …, sel_mode, count; …, sel_mode, mask, repeat_times, repeat_params; repeat_times, repeat_params",
    )
)


def select(dst: LocalTensor, *args: Any, **kwargs: Any) -> None:
    """Take src0 where a bit is 1 and src1 where it is 0; bit i belongs to lane i.

    `(dst, sel_mask, src0, src1, sel_mode, count)` or `(…, sel_mode, mask, repeat_times, repeat_params)`. Mode 0
    loads CMPMASK from sel_mask and uses its bits in every repeat, modes 1 (src1 a scalar) and 2 (src1 a tensor)
    go through sel_mask repeat by repeat, one bit a lane without gaps; the hardware needs the last 8 KiB of UB
    for these two. `(dst, src0, src1, repeat_times, repeat_params, sel_mode)` uses CMPMASK as it is, and `(dst,
    sel_mask, src0, repeat_times, repeat_params)` takes the scalar of mode 1 from CMPMASK; both use the mask register.
    """
    named = [word for word in ("sel_mask", "src0", "src1") if word in kwargs]
    if "repeat_times" in kwargs and len(args) + len(named) == 2 and "mask" not in kwargs:
        if "sel_mode" in kwargs:
            overload("select", _select_by_register, (dst, *args), kwargs)
        else:
            overload("select", _select_scalar_register, (dst, *args), kwargs)
        return
    if len(args) == 5 and not kwargs and isinstance(args[3], BinaryRepeatParams):
        overload("select", _select_by_register, (dst, *args), {})
        return
    if len(args) == 4 and not kwargs and isinstance(args[3], BinaryRepeatParams):
        overload("select", _select_scalar_register, (dst, *args), {})
        return
    overload("select", _select_tensor, (dst, *args), kwargs)


def _select_tensor(
    dst: LocalTensor,
    sel_mask: LocalTensor,
    src0: LocalTensor,
    src1: Any,
    sel_mode: SelMode,
    count: Any = None,
    repeat_times: Any = None,
    repeat_params: Any = None,
    is_set_mask: bool = True,
    *,
    mask: Any = None,
) -> None:
    set_mask = flag_argument("select", "is_set_mask", is_set_mask)
    number = count if mask is None else mask
    _check_form(number, repeat_times, repeat_params)

    def bind() -> Call:
        mode = mode_argument("select", "sel_mode", sel_mode, SelMode)
        return _bind(dst, sel_mask, src0, src1, mode, number, repeat_times, repeat_params, set_mask)

    other = tensor_key(src1) if isinstance(src1, LocalTensor) else (type(src1), repr(src1))
    _send(
        dst,
        (sel_mask, src0),
        (other, sel_mode),
        number,
        repeat_times,
        repeat_params,
        set_mask,
        bind,
    )


def _select_by_register(
    dst: LocalTensor,
    src0: LocalTensor,
    src1: LocalTensor,
    repeat_times: int,
    repeat_params: BinaryRepeatParams,
    sel_mode: SelMode,
) -> None:
    def bind() -> Call:
        mode = mode_argument("select", "sel_mode", sel_mode, SelMode)
        if mode is not SelMode.VSEL_CMPMASK_SPR:
            fault(
                "ILLEGAL_PARAM",
                "sel-mode-register",
                f"select without sel_mask takes VSEL_CMPMASK_SPR, got {mode.name}: the other modes read their bits "
                f"from a tensor. Pass sel_mask",
                pipe=_PIPE,
            )
        return _bind(dst, None, src0, src1, mode, 0, repeat_times, repeat_params, False)

    _send(dst, (src0, src1), sel_mode, 0, repeat_times, repeat_params, False, bind)


def _select_scalar_register(
    dst: LocalTensor,
    sel_mask: LocalTensor,
    src0: LocalTensor,
    repeat_times: int,
    repeat_params: BinaryRepeatParams,
) -> None:
    def bind() -> Call:
        mode = SelMode.VSEL_TENSOR_SCALAR_MODE
        return _bind(dst, sel_mask, src0, None, mode, 0, repeat_times, repeat_params, False)

    _send(dst, (sel_mask, src0), None, 0, repeat_times, repeat_params, False, bind)


def _check_form(number: Any, repeat_times: Any, params: Any) -> None:
    if number is None or (repeat_times is None) != (params is None):
        fault(
            "ILLEGAL_PARAM",
            "form",
            "select needs sel_mode and count, or sel_mode, mask, repeat_times and repeat_params",
            pipe=_PIPE,
        )


def _send(
    dst: Any,
    sources: tuple[Any, ...],
    extra: Any,
    number: Any,
    repeat_times: Any,
    params: Any,
    set_mask: bool,
    bind: Any,
) -> None:
    key = (
        tensor_key(dst, *sources),
        extra,
        freeze(number),
        repeat_times,
        params,
        set_mask,
        bank_key(),
    )
    count_form = repeat_times is None
    send(
        "select",
        key,
        bind,
        mask=None if count_form else freeze(number),
        dtype=dst.dtype if isinstance(dst, LocalTensor) else None,
        count_form=count_form,
        set_mask=set_mask,
    )


def _bind(
    dst: LocalTensor,
    sel_mask: Any,
    src0: LocalTensor,
    src1: Any,
    mode: SelMode,
    number: Any,
    repeat_times: Any,
    params: Any,
    set_mask: bool,
) -> Call:
    check_local("select", "dst", dst, _TYPES)
    check_local("select", "src0", src0, _TYPES)
    check_same_dtype("select", dst, (("src0", src0),))
    params = params if params is not None else BinaryRepeatParams()
    check_params("select", params, BinaryRepeatParams)
    sources = [Operand("src0", src0, params.src0_blk_stride, params.src0_rep_stride)]
    scalar: Any = None
    if mode is SelMode.VSEL_TENSOR_SCALAR_MODE:
        if src1 is not None:
            scalar = check_scalar("select", src1, dst.dtype)
    else:
        check_local("select", "src1", src1, _TYPES)
        check_same_dtype("select", dst, (("src1", src1),))
        sources.append(Operand("src1", src1, params.src1_blk_stride, params.src1_rep_stride))
    target = Operand("dst", dst, params.dst_blk_stride, params.dst_rep_stride)
    cost = dst.dtype.name
    if repeat_times is None:
        call = bind_count(_SELECT, target, sources, number, _select, cost)
    else:
        call = bind_repeats(
            _SELECT, target, sources, number, repeat_times, _select, cost, set_mask=set_mask
        )
    if call.writes:
        _add_bits(call, dst, sel_mask, src1, scalar, mode)
    return call


def _add_bits(
    call: Call, dst: LocalTensor, sel_mask: Any, src1: Any, scalar: Any, mode: SelMode
) -> None:
    """Give a bound call the bits as its last source, and the meaning that uses them."""
    lanes = REPEAT_BYTES // dst.dtype.size
    target = call.writes[0]
    registers = bank()
    bits: Access
    if sel_mask is None:
        bits = cmp_mask()
    else:
        check_local("select", "sel_mask", sel_mask, _BITS)
        if mode is SelMode.VSEL_CMPMASK_SPR:
            size = lanes // 8
        elif len(target.shape) == 1:
            size = -(-target.shape[0] // 8)
        else:
            size = call.work * lanes // 8
        bits = contiguous(sel_mask, size, uint8)
        check_bounds(bits, sel_mask, "select: sel_mask", capacity(), _PIPE)
        _check_bits_apart(target, bits, sel_mask)
    takes_scalar = mode is SelMode.VSEL_TENSOR_SCALAR_MODE
    from_register = takes_scalar and src1 is None
    reads = [*call.reads, bits]
    if from_register:
        reads.append(cmp_mask())
    call.reads = tuple(reads)
    shape, per_block = target.shape, 32 // dst.dtype.size
    numpy_type = dst.dtype.numpy

    def meaning(*values: Array) -> Array:
        a, given = values[0], values[1 if takes_scalar else 2]
        if takes_scalar:
            b: Any = values[-1].view(numpy_type)[0] if from_register else scalar
        else:
            b = values[1]
        if mode is SelMode.VSEL_CMPMASK_SPR and sel_mask is not None:
            put(registers, CMPMASK, given)
        chosen = np.unpackbits(np.ascontiguousarray(given), bitorder="little")
        return _select(_spread(chosen, shape, lanes, per_block), a, b)

    call.meaning = meaning
    if mode is not SelMode.VSEL_CMPMASK_SPR:
        _warn_reserved(call)


def _spread(bits: Array, shape: tuple[int, ...], lanes: int, per_block: int) -> Array:
    """Return the bit of each element of an operand: `shape` is (count,) or (repeats, blocks, elements)."""
    if len(shape) == 1:
        times = -(-shape[0] // len(bits))
        return np.tile(bits, times)[: shape[0]].astype(bool)
    if len(bits) < lanes * shape[0]:
        bits = np.tile(bits[:lanes], shape[0])
    rows = bits[: lanes * shape[0]].reshape(shape[0], lanes // per_block, per_block)
    return rows[:, : shape[1]].astype(bool)


def _check_bits_apart(dst: Access, bits: Access, sel_mask: LocalTensor) -> None:
    if dst.overlaps(bits):
        fault(
            "ILLEGAL_PARAM",
            "operand-overlap",
            f"select: dst {dst.name} (UB bytes {dst.low} to {dst.high}) overlaps sel_mask {sel_mask.name} (UB bytes "
            f"{bits.low} to {bits.high}): later repeats would select by what earlier ones wrote. Use separate bytes",
            dst.name,
            (max(dst.low, bits.low), min(dst.high, bits.high)),
            _PIPE,
        )


def _warn_reserved(call: Call) -> None:
    limit = current.get().capacity(call.writes[0].space) - RESERVED_BYTES
    for access in (*call.writes, *call.reads):
        if access.high > limit >= 0:
            call.lint = (
                "ALIAS",
                "select-reserved-ub",
                f"select: {access.name} uses UB bytes up to {access.high}, but in modes 1 and 2 the hardware's library "
                f"needs the last {RESERVED_BYTES} bytes of UB (from {limit}) for itself. Keep tensors below them",
            )
            return
