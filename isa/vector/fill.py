"""Vector instructions that fill, copy and convert: duplicate, copy, cast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from isa import numerics
from isa.access import check_bounds
from isa.arguments import is_whole
from isa.faults import fault
from isa.instruction import Call, Instruction, register
from isa.params import CopyRepeatParams
from isa.stream import current
from isa.tensor import LocalTensor
from isa.types import (
    REPEAT_BYTES,
    DType,
    Pipe,
    RoundMode,
    Space,
    bfloat16,
    float16,
    float32,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
)
from isa.vector.binding import Operand, strided
from isa.vector.checks import (
    PIPE,
    check_integer,
    check_local,
    check_params,
    check_repeat,
    check_same_dtype,
    check_scalar,
    overflow_lint,
    split_forms,
)
from isa.vector.dequantise import half_scale, scale_key
from isa.vector.forms import ALL_FORMS, bind_call, issue, one_source, scalar_key
from isa.vector.masks import freeze, lanes_of_mask
from isa.vector.overflow import with_overflow_mode
from isa.vector.overlap import Footprint, check_overlap

Array = Any

MAX_COPY_STRIDE = 65535
"""The strides of `copy` have 16 bits."""

_FILL_TYPES = (int16, uint16, float16, bfloat16, int32, uint32, float32)


def _duplicate(scalar: Array) -> Array:
    """dst = scalar in every lane."""
    return scalar


_DUPLICATE = register(
    Instruction(
        "duplicate",
        Pipe.V,
        "duplicate",
        _FILL_TYPES,
        _duplicate,
        "count; mask or mask list, repeat_times, dst_block_stride, dst_repeat_stride",
    )
)


def duplicate(
    dst: LocalTensor,
    scalar: Any,
    count: Any = None,
    repeat_times: Any = None,
    dst_block_stride: Any = None,
    dst_repeat_stride: Any = None,
    is_set_mask: bool = True,
    *,
    mask: Any = None,
) -> None:
    """dst = scalar in every lane: (dst, scalar, count), or mask, repeat_times, dst_block_stride, dst_repeat_stride.

    Element types: 16 and 32 bits wide ones. Strides are in data blocks of 32 bytes.
    """
    strides: Any = None
    if dst_block_stride is not None or dst_repeat_stride is not None:
        strides = (dst_block_stride, dst_repeat_stride)
    count, repeat_times, strides, is_set_mask = split_forms(
        "duplicate", count, mask, repeat_times, strides, is_set_mask
    )

    def bind() -> Call:
        check_local("duplicate", "dst", dst, _FILL_TYPES)
        value = check_scalar("duplicate", scalar, dst.dtype)
        call = bind_call(
            _DUPLICATE,
            [Operand("dst", dst, *(strides or ()))],
            count,
            repeat_times,
            lambda: value,  # a constant has no source to read
            dst.dtype.name,
            is_set_mask=is_set_mask,
        )
        call.lint = overflow_lint("duplicate", scalar, value, dst.dtype)
        return call

    issue(
        _DUPLICATE,
        dst,
        (),
        scalar_key(scalar),
        freeze(count),
        repeat_times,
        strides,
        is_set_mask,
        bind,
    )


def _copy(src: Array) -> Array:
    """dst = src, block by block under a mask."""
    return src.copy()


_COPY = register(
    Instruction(
        "copy",
        Pipe.V,
        "copy",
        _FILL_TYPES,
        _copy,
        "mask, repeat_time, repeat_params; mask list, repeat_time, repeat_params",
    )
)


def copy(
    dst: LocalTensor,
    src: LocalTensor,
    mask: Any,
    repeat_time: int,
    repeat_params: CopyRepeatParams,
    is_set_mask: bool = True,
) -> None:
    """dst = src in UB: `repeat_time` repeats of eight data blocks under a mask, strides in data blocks.

    Element types: 16 and 32 bits wide ones. In counter mode the mask counts the elements of one repeat, and
    `repeat_time` stays valid.
    """
    if repeat_time is None:
        fault("ILLEGAL_PARAM", "form", "copy needs repeat_time after the mask", pipe=PIPE)
    mask, repeat_time, repeat_params, is_set_mask = split_forms(
        "copy", None, mask, repeat_time, repeat_params, is_set_mask
    )
    issue(
        _COPY,
        dst,
        (src,),
        None,
        freeze(mask),
        repeat_time,
        repeat_params,
        is_set_mask,
        lambda: _bind_copy(dst, src, mask, repeat_time, repeat_params, is_set_mask=is_set_mask),
    )


def _bind_copy(
    dst: LocalTensor,
    src: LocalTensor,
    mask: Any,
    repeat_time: Any,
    params: Any,
    *,
    is_set_mask: bool,
) -> Call:
    check_local("copy", "dst", dst, _FILL_TYPES)
    check_local("copy", "src", src, _FILL_TYPES)
    check_same_dtype("copy", dst, (("src", src),))
    check_params("copy", params, CopyRepeatParams)
    repeat = check_repeat("copy", repeat_time)
    lanes_per_repeat = REPEAT_BYTES // dst.dtype.size
    registers = current.get().registers
    if not is_set_mask:
        counted = registers.counter_mode
        mask = registers.mask_low if counted else [registers.mask_low, registers.mask_high]
    lanes = lanes_of_mask("copy", mask, lanes_per_repeat)
    words = lanes.words if is_set_mask else None
    if is_set_mask and registers.counter_mode:
        words = (lanes.last + 1, 0)
    operands = [
        Operand("dst", dst, params.dst_stride, params.dst_repeat_size),
        Operand("src", src, params.src_stride, params.src_repeat_size),
    ]
    for operand in operands:
        for what, stride in (
            ("stride", operand.block_stride),
            ("repeat_size", operand.repeat_stride),
        ):
            check_integer("copy", f"{operand.name}_{what}", stride, 0, MAX_COPY_STRIDE)
    if repeat == 0 or not lanes.bits:
        call = Call(_COPY, Pipe.V, (), (), _copy, cost=("copy", dst.dtype.name), work=repeat)
        call.mask = words
        return call
    accesses = [strided(operand, repeat, lanes) for operand in operands]
    for operand, access in zip(operands, accesses, strict=True):
        capacity = current.get().capacity(Space.UB)
        check_bounds(access, operand.tensor, f"copy: {operand.name}", capacity, PIPE)
    _check_copy_strides(params, accesses[0].shape[1], repeat, dst.name)
    written, read = (
        Footprint(operand.tensor, operand.strides, repeat, lanes, lanes) for operand in operands
    )
    check_overlap("copy", written, read, f"src {src.name}")
    call = Call(
        _COPY,
        Pipe.V,
        (accesses[1],),
        (accesses[0],),
        _copy,
        work=repeat,
        cost=("copy", dst.dtype.name),
        geometry=tuple(
            (operand is operands[0], operand.tensor.addr, *operand.strides, access.shape[1])
            for operand, access in zip(operands, accesses, strict=True)
        ),
        extra=f"mask:{lanes}",
    )
    call.mask = words
    return call


def _check_copy_strides(params: CopyRepeatParams, blocks: int, repeat: int, dst: str) -> None:
    if params.dst_stride == 0 and blocks > 1:
        fault(
            "ILLEGAL_PARAM",
            "dst-block-stride-zero",
            f"copy: dst_stride 0 writes all {blocks} blocks of a repeat to one place; it must be at least 1",
            dst,
            pipe=PIPE,
        )
    if params.dst_repeat_size == 0 and repeat > 1:
        fault(
            "ILLEGAL_PARAM",
            "dst-repeat-stride-zero",
            "copy: dst_repeat_size 0 makes every repeat write the same bytes; side by side it is 8",
            dst,
            pipe=PIPE,
        )


_R = RoundMode
_INTEGRAL = (_R.CAST_RINT, _R.CAST_FLOOR, _R.CAST_CEIL, _R.CAST_ROUND, _R.CAST_TRUNC)
_ALL_BUT_ODD = (*_INTEGRAL, _R.CAST_NONE)

CAST_MODES: dict[tuple[DType, DType], tuple[RoundMode, ...]] = {
    (int8, float16): (_R.CAST_NONE,),
    (uint8, float16): (_R.CAST_NONE,),
    (int16, float16): _ALL_BUT_ODD,
    (int16, float32): (_R.CAST_NONE,),
    (float16, int8): _ALL_BUT_ODD,
    (float16, uint8): _ALL_BUT_ODD,
    (float16, int16): _INTEGRAL,
    (float16, int32): _INTEGRAL,
    (float16, float32): (_R.CAST_NONE,),
    (bfloat16, int32): _INTEGRAL,
    (bfloat16, float32): (_R.CAST_NONE,),
    (int32, int16): (_R.CAST_NONE,),
    (int32, float16): (_R.CAST_NONE,),
    (int32, float32): _ALL_BUT_ODD,
    (int32, int64): (_R.CAST_NONE,),
    (int64, int32): (_R.CAST_NONE,),
    (int64, float32): _INTEGRAL,
    (float32, int16): _INTEGRAL,
    (float32, int32): _INTEGRAL,
    (float32, int64): _INTEGRAL,
    (float32, float16): (*_ALL_BUT_ODD, _R.CAST_ODD),
    (float32, bfloat16): _INTEGRAL,
    (float32, float32): _INTEGRAL,
}
"""The conversions of the 910B and the rounding modes that each takes."""

_CAST_TYPES = tuple({dtype: None for pair in CAST_MODES for dtype in pair})


def _cast(src: Array, target: DType, mode: RoundMode) -> Array:
    """dst = src converted to dst's type in the given rounding mode; integers saturate."""
    return numerics.cast(np.ascontiguousarray(src), target, mode)


_CAST = register(Instruction("cast", Pipe.V, "cast", _CAST_TYPES, _cast, ALL_FORMS))


def cast(
    dst: LocalTensor,
    src: LocalTensor,
    round_mode: RoundMode,
    count: Any = None,
    repeat_times: Any = None,
    repeat_params: Any = None,
    is_set_mask: bool = True,
    *,
    mask: Any = None,
) -> None:
    """dst = src converted to dst's type; `CAST_MODES` lists the pairs and their rounding modes.

    Integers saturate, NaN becomes 0 there; float16 and bfloat16 keep infinities and NaN, unless the launch says
    `overflow="saturate"`. The mask counts lanes of the
    wider type, the narrower operand covers fewer data blocks a repeat: side by side its repeat stride is smaller.
    From int32 to float16 the values are multiplied by the scale of `set_deq_scale(scale)` and rounded once.
    """
    if (
        repeat_times is not None
        or repeat_params is not None
        or mask is not None
        or type(count) is not int
        or is_set_mask is not True
    ):
        count, repeat_times, repeat_params, is_set_mask = split_forms(
            "cast", count, mask, repeat_times, repeat_params, is_set_mask
        )

    def bind() -> Call:
        check_local("cast", "dst", dst, _CAST_TYPES)
        check_local("cast", "src", src, _CAST_TYPES)
        mode = _check_cast(src.dtype, dst.dtype, round_mode)
        return bind_call(
            _CAST,
            one_source("cast", dst, src, repeat_params),
            count,
            repeat_times,
            _conversion(src.dtype, dst.dtype, mode),
            f"{src.dtype}->{dst.dtype}",
            is_set_mask=is_set_mask,
        )

    key: Any = round_mode if type(round_mode) is RoundMode else repr(round_mode)
    if getattr(src, "dtype", None) is int32 and getattr(dst, "dtype", None) is float16:
        key = (key, scale_key())
    issue(
        _CAST,
        dst,
        (src,),
        key,
        freeze(count),
        repeat_times,
        repeat_params,
        is_set_mask,
        bind,
    )


def _conversion(source: DType, target: DType, mode: RoundMode) -> Callable[[Array], Array]:
    if source is int32 and target is float16:
        scale = half_scale("cast of int32 to float16")
        return with_overflow_mode(
            lambda values: (values.astype(np.float64) * scale).astype(np.float16), target
        )
    return with_overflow_mode(
        lambda values: numerics.cast(np.ascontiguousarray(values), target, mode), target
    )


def _check_cast(source: DType, target: DType, round_mode: Any) -> RoundMode:
    if not is_whole(round_mode) or round_mode not in tuple(RoundMode):
        fault(
            "ILLEGAL_PARAM",
            "round-mode",
            f"cast: round_mode must be a RoundMode such as CAST_RINT, got {round_mode!r}",
            pipe=PIPE,
        )
    mode = RoundMode(round_mode)
    modes = CAST_MODES.get((source, target))
    if modes is None:
        reachable = ", ".join(str(to) for from_, to in CAST_MODES if from_ is source) or "nothing"
        fault(
            "ILLEGAL_PARAM",
            "cast-pair",
            f"cast: the 910B does not convert {source} to {target}; from {source} it reaches {reachable}",
            pipe="V",
        )
    if mode not in modes:
        fault(
            "ILLEGAL_PARAM",
            "round-mode",
            f"cast: {source} to {target} does not take {mode.name}; it takes {', '.join(m.name for m in modes)}",
            pipe="V",
        )
    return mode
