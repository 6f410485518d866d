"""Arithmetic that narrows its result: multiply, add or subtract, then convert.

The operation rounds to the operands' type as on its own, then the result is converted to nearest even; integers
saturate. What the hardware keeps between the two steps is not published.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from isa import numerics
from isa.faults import fault
from isa.instruction import Call, Instruction, register
from isa.params import BinaryRepeatParams
from isa.tensor import LocalTensor
from isa.types import DType, Pipe, RoundMode, float16, float32, int8, int16, int32, uint8
from isa.vector.binding import Operand, bind_count, bind_repeats
from isa.vector.checks import check_local, check_params, check_same_dtype, split_forms
from isa.vector.dequantise import half_scale, scale_key
from isa.vector.forms import ALL_FORMS
from isa.vector.masks import freeze
from isa.vector.overflow import with_overflow_mode
from isa.vector.special import send, tensor_key

Array = Any
_PIPE = Pipe.V.name
_PAIRS: dict[str, tuple[tuple[DType, DType], ...]] = {
    "mul_cast": ((float16, int8), (float16, uint8)),
    "add_relu_cast": ((float16, int8), (int16, int8), (float32, float16)),
    "sub_relu_cast": ((float16, int8), (int16, int8), (float32, float16)),
    "add_deq_relu": ((int32, float16),),
}


def _mul_cast(a: Array, b: Array) -> Array:
    """dst = src0 · src1, converted to an 8-bit integer."""
    return numerics.once_rounded(np.multiply, a, b)


def _add_relu_cast(a: Array, b: Array) -> Array:
    """dst = max(src0 + src1, 0), converted to the narrower type."""
    return numerics.relu(numerics.once_rounded(np.add, a, b))


def _sub_relu_cast(a: Array, b: Array) -> Array:
    """dst = max(src0 - src1, 0), converted to the narrower type."""
    return numerics.relu(numerics.once_rounded(np.subtract, a, b))


def _add_deq_relu(a: Array, b: Array, scale: float) -> Array:
    """dst = max((src0 + src1) · scale, 0) as float16, with the scale of set_deq_scale."""
    total = np.add(a.astype(np.int64), b.astype(np.int64)).astype(np.float64) * scale
    return np.maximum(total, 0.0).astype(np.float16)


def _record(name: str, meaning: Callable[..., Any]) -> Instruction:
    dtypes = tuple(dict.fromkeys(target for _, target in _PAIRS[name]))
    return register(Instruction(name, Pipe.V, name, dtypes, meaning, ALL_FORMS))


_MUL_CAST = _record("mul_cast", _mul_cast)
_ADD_RELU_CAST = _record("add_relu_cast", _add_relu_cast)
_SUB_RELU_CAST = _record("sub_relu_cast", _sub_relu_cast)
_ADD_DEQ_RELU = _record("add_deq_relu", _add_deq_relu)


def mul_cast(
    dst: LocalTensor,
    src0: LocalTensor,
    src1: LocalTensor,
    count: Any = None,
    repeat_times: Any = None,
    repeat_params: BinaryRepeatParams | None = None,
    is_set_mask: bool = True,
    *,
    mask: Any = None,
) -> None:
    """dst = src0 · src1 (float16), converted to int8 or uint8; the mask counts lanes of 16 bits."""
    _send_binary(_MUL_CAST, dst, src0, src1, count, repeat_times, repeat_params, is_set_mask, mask)


def add_relu_cast(
    dst: LocalTensor,
    src0: LocalTensor,
    src1: LocalTensor,
    count: Any = None,
    repeat_times: Any = None,
    repeat_params: BinaryRepeatParams | None = None,
    is_set_mask: bool = True,
    *,
    mask: Any = None,
) -> None:
    """dst = max(src0 + src1, 0), converted: float16 or int16 to int8, float32 to float16."""
    _send_binary(
        _ADD_RELU_CAST, dst, src0, src1, count, repeat_times, repeat_params, is_set_mask, mask
    )


def sub_relu_cast(
    dst: LocalTensor,
    src0: LocalTensor,
    src1: LocalTensor,
    count: Any = None,
    repeat_times: Any = None,
    repeat_params: BinaryRepeatParams | None = None,
    is_set_mask: bool = True,
    *,
    mask: Any = None,
) -> None:
    """dst = max(src0 - src1, 0), converted: float16 or int16 to int8, float32 to float16."""
    _send_binary(
        _SUB_RELU_CAST, dst, src0, src1, count, repeat_times, repeat_params, is_set_mask, mask
    )


def add_deq_relu(
    dst: LocalTensor,
    src0: LocalTensor,
    src1: LocalTensor,
    count: Any = None,
    repeat_times: Any = None,
    repeat_params: BinaryRepeatParams | None = None,
    is_set_mask: bool = True,
    *,
    mask: Any = None,
) -> None:
    """dst = max((src0 + src1) · scale, 0): int32 to float16 with the scale of `set_deq_scale`, rounded once."""
    _send_binary(
        _ADD_DEQ_RELU, dst, src0, src1, count, repeat_times, repeat_params, is_set_mask, mask
    )


def _send_binary(
    record: Instruction,
    dst: LocalTensor,
    src0: LocalTensor,
    src1: LocalTensor,
    count: Any,
    repeat_times: Any,
    repeat_params: Any,
    is_set_mask: Any,
    mask: Any,
) -> None:
    name = record.name
    number, repeat_times, repeat_params, set_mask = split_forms(
        name, count, mask, repeat_times, repeat_params, is_set_mask
    )

    def bind() -> Call:
        _check_pair(name, dst, src0)
        check_local(name, "src1", src1, (src0.dtype,))
        check_same_dtype(name, src0, (("src1", src1),))
        params = repeat_params if repeat_params is not None else BinaryRepeatParams()
        check_params(name, params, BinaryRepeatParams)
        target = Operand("dst", dst, params.dst_blk_stride, params.dst_rep_stride)
        sources = [
            Operand("src0", src0, params.src0_blk_stride, params.src0_rep_stride),
            Operand("src1", src1, params.src1_blk_stride, params.src1_rep_stride),
        ]
        meaning = _narrowing(record, dst.dtype)
        if repeat_times is None:
            return bind_count(record, target, sources, number, meaning, src0.dtype.name)
        return bind_repeats(
            record,
            target,
            sources,
            number,
            repeat_times,
            meaning,
            src0.dtype.name,
            set_mask=set_mask,
        )

    scale = scale_key() if record is _ADD_DEQ_RELU else None
    key = (
        tensor_key(dst, src0, src1),
        freeze(number),
        repeat_times,
        repeat_params,
        set_mask,
        scale,
    )
    send(
        name,
        key,
        bind,
        mask=None if repeat_times is None else freeze(number),
        dtype=src0.dtype if isinstance(src0, LocalTensor) else None,
        count_form=repeat_times is None,
        set_mask=set_mask,
    )


def _narrowing(record: Instruction, target: DType) -> Callable[..., Array]:
    if record is _ADD_DEQ_RELU:
        scale = half_scale(record.name)
        return with_overflow_mode(lambda a, b: _add_deq_relu(a, b, scale), target)
    return with_overflow_mode(
        lambda a, b: numerics.cast(record.meaning(a, b), target, RoundMode.CAST_RINT), target
    )


def _check_pair(name: str, dst: LocalTensor, src: LocalTensor) -> None:
    pairs = _PAIRS[name]
    check_local(name, "dst", dst, tuple(dict.fromkeys(target for _, target in pairs)))
    check_local(name, "src0", src, tuple(dict.fromkeys(source for source, _ in pairs)))
    if (src.dtype, dst.dtype) not in pairs:
        known = ", ".join(f"{source} to {target}" for source, target in pairs)
        fault(
            "ILLEGAL_PARAM",
            "cast-pair",
            f"{name}: the 910B does not convert {src.dtype} to {dst.dtype} here; it takes {known}",
            pipe=_PIPE,
        )
