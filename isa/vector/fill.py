"""Vector instructions that fill, copy and convert: duplicate, copy, cast."""

from __future__ import annotations

from typing import Any

import numpy as np

from isa import numerics
from isa.access import check_bounds, repeats
from isa.faults import fault
from isa.instruction import Call, Instruction, register
from isa.params import CopyRepeatParams
from isa.stream import current
from isa.tensor import LocalTensor
from isa.types import (
    BLOCK_BYTES,
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
from isa.vector.forms import (
    ALL_FORMS,
    MAX_STRIDE,
    Operand,
    bind_count,
    bind_one_source,
    bind_repeats,
    check_integer,
    check_local,
    check_params,
    check_repeat,
    check_scalar,
    freeze,
    issue,
    lane_mask,
    split_forms,
)

Array = Any

_FILL_TYPES = (int16, uint16, float16, bfloat16, int32, uint32, float32)


def _duplicate(scalar: Array) -> Array:
    """dst = scalar in every lane."""
    return scalar


_DUPLICATE = register(Instruction("duplicate", Pipe.V, "duplicate", _FILL_TYPES, _duplicate, ALL_FORMS))


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
    """dst = scalar in every lane: (dst, scalar, count), or mask, repeat_times, dst_block_stride, dst_repeat_stride."""
    strides = None if dst_block_stride is None and dst_repeat_stride is None else (dst_block_stride, dst_repeat_stride)
    if repeat_times is not None or mask is not None or count is None:
        count, repeat_times, strides, is_set_mask = split_forms(
            "duplicate", count, mask, repeat_times, strides, is_set_mask
        )

    def bind() -> Call:
        check_local("duplicate", "dst", dst, _FILL_TYPES)
        value = check_scalar("duplicate", scalar, dst.dtype)
        target = Operand("dst", dst, *(strides or (1, 8)))
        meaning = lambda: value  # noqa: E731  a constant has no source to read
        if repeat_times is None:
            return bind_count(_DUPLICATE, target, [], count, meaning, dst.dtype.name)
        return bind_repeats(
            _DUPLICATE, target, [], count, repeat_times, meaning, dst.dtype.name, set_mask=is_set_mask
        )

    key = (type(scalar).__name__, repr(scalar))
    issue(_DUPLICATE, dst, (), key, freeze(count), repeat_times, strides, is_set_mask, bind)


def _copy(src: Array) -> Array:
    """dst = src, block by block under a mask."""
    return src.copy()


_COPY = register(
    Instruction("copy", Pipe.V, "copy", _FILL_TYPES, _copy, "mask, repeat_time, repeat_params; mask list, …")
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

    In counter mode the mask counts the elements of one repeat, and `repeat_time` stays valid.
    """

    def bind() -> Call:
        check_local("copy", "dst", dst, _FILL_TYPES)
        check_local("copy", "src", src, _FILL_TYPES)
        if src.dtype is not dst.dtype:
            fault(
                "ILLEGAL_PARAM",
                "dtype-mismatch",
                f"copy: src {src.name} is {src.dtype}, dst {dst.name} is {dst.dtype}; they must be equal",
                src.name,
                pipe="V",
            )
        check_params("copy", repeat_params, CopyRepeatParams)
        lanes_per_repeat = REPEAT_BYTES // dst.dtype.size
        registers = current.get().registers
        words = freeze(mask) if is_set_mask else (registers.mask_low, registers.mask_high)
        if not is_set_mask and registers.counter_mode:
            words = registers.mask_low
        lanes = lane_mask("copy", words, lanes_per_repeat)
        repeat = check_repeat("copy", repeat_time)
        if repeat == 0 or not lanes.any():
            return Call(_COPY, Pipe.V, (), (), _copy, cost=("copy", dst.dtype.name), work=repeat)
        accesses = []
        geometry = []
        for operand, tensor, block, step in (
            ("dst", dst, repeat_params.dst_stride, repeat_params.dst_repeat_size),
            ("src", src, repeat_params.src_stride, repeat_params.src_repeat_size),
        ):
            check_integer("copy", f"{operand}_stride", block, 0, 65535)
            check_integer("copy", f"{operand}_repeat_size", step, 0, 65535)
            access = repeats(tensor, repeat, block, step, lanes, lanes_per_repeat * tensor.dtype.size // BLOCK_BYTES)
            check_bounds(access, tensor, f"copy: {operand}", current.get().capacity(Space.UB), "V")
            accesses.append(access)
            geometry.append(
                (operand == "dst", tensor.addr, block * BLOCK_BYTES, step * BLOCK_BYTES, access.shape[1])
            )
        return Call(
            _COPY,
            Pipe.V,
            (accesses[1],),
            (accesses[0],),
            _copy,
            work=repeat,
            cost=("copy", dst.dtype.name),
            geometry=tuple(geometry),
        )

    issue(_COPY, dst, (src,), None, freeze(mask), repeat_time, repeat_params, is_set_mask, bind)


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

    The mask counts lanes of the wider type.
    """
    if repeat_times is not None or mask is not None or count is None:
        count, repeat_times, repeat_params, is_set_mask = split_forms(
            "cast", count, mask, repeat_times, repeat_params, is_set_mask
        )

    def bind() -> Call:
        check_local("cast", "dst", dst, _CAST_TYPES)
        check_local("cast", "src", src, _CAST_TYPES)
        mode = _check_cast(src.dtype, dst.dtype, round_mode)
        target = dst.dtype
        return bind_one_source(
            _CAST,
            dst,
            src,
            count,
            repeat_times,
            repeat_params,
            lambda values: numerics.cast(np.ascontiguousarray(values), target, mode),
            is_set_mask,
            cost_dtype=f"{src.dtype}->{dst.dtype}",
        )

    issue(_CAST, dst, (src,), round_mode, freeze(count), repeat_times, repeat_params, is_set_mask, bind)


def _check_cast(source: DType, target: DType, round_mode: Any) -> RoundMode:
    try:
        mode = RoundMode(round_mode)
    except (ValueError, TypeError):
        fault("ILLEGAL_PARAM", "round-mode", f"cast: round_mode must be a RoundMode, got {round_mode!r}", pipe="V")
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
