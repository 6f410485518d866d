"""What an operand or a parameter of a vector instruction must be, and the messages when it is not."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from isa import arguments
from isa.faults import fault
from isa.stream import current
from isa.tensor import LocalTensor
from isa.types import BLOCK_BYTES, CoreKind, DType, Pipe, Space

MAX_REPEAT = 255
"""The repeat count of a vector instruction has 8 bits."""
MAX_STRIDE = 255
"""Block and repeat strides have 8 bits each, in data blocks of 32 bytes."""
PIPE = Pipe.V.name

check_integer = partial(arguments.check_integer, pipe=PIPE)
check_scalar = partial(arguments.check_scalar, pipe=PIPE)


def check_core(name: str) -> Any:
    """Return the current stream; None on a cube core, where vector instructions do nothing."""
    stream = current.get(None)
    if stream is None:
        fault(
            "HOST",
            "no-kernel",
            f"{name} was called outside a kernel: launch the kernel with kernel[blocks](…) or "
            f"ascend_sim.launch",
        )
    if stream.core_kind is CoreKind.AIV:
        return stream
    stream.skipped(name)
    return None


def check_local(name: str, operand: str, tensor: Any, dtypes: tuple[DType, ...]) -> None:
    """Fault unless the operand is a UB tensor of a type that the instruction takes, on a 32-byte border."""
    if not isinstance(tensor, LocalTensor):
        fault(
            "ILLEGAL_PARAM",
            "wrong-operand",
            f"{name}: {operand} must be a LocalTensor, got {type(tensor).__name__}. Vector instructions "
            f"work on UB: copy the data in first",
            pipe=PIPE,
        )
    if tensor.space is not Space.UB:
        fault(
            "ILLEGAL_PARAM",
            "wrong-position",
            f"{name}: {operand} {tensor.name} is at {tensor.position.name}, which is {tensor.space.name}. "
            f"Vector instructions take VECIN, VECOUT or VECCALC (UB)",
            tensor.name,
            pipe=PIPE,
        )
    if tensor.dtype not in dtypes:
        _wrong_dtype(name, operand, tensor, dtypes)
    if tensor.addr % BLOCK_BYTES:
        fault(
            "ALIGNMENT",
            "misaligned-operand",
            f"{name}: {operand} {tensor.name} starts at UB byte {tensor.addr}, which is "
            f"{tensor.addr % BLOCK_BYTES} past a {BLOCK_BYTES}-byte border. Vector operands start on one: "
            f"{BLOCK_BYTES // tensor.dtype.size} elements of {tensor.dtype}",
            tensor.name,
            (tensor.addr, tensor.addr + tensor.length),
            PIPE,
        )


def _wrong_dtype(name: str, operand: str, tensor: LocalTensor, dtypes: tuple[DType, ...]) -> None:
    allowed = ", ".join(dtype.name for dtype in dtypes)
    hint = ""
    if tensor.dtype.name == "bfloat16":
        hint = ". bfloat16 has no arithmetic on the 910B: cast to float32 first"
    fault(
        "ILLEGAL_PARAM",
        "dtype-not-supported",
        f"{name}: {operand} {tensor.name} is {tensor.dtype}, the 910B takes {allowed}{hint}",
        tensor.name,
        pipe=PIPE,
    )


def check_same_dtype(
    name: str,
    dst: LocalTensor,
    sources: tuple[tuple[str, LocalTensor], ...],
    widening: tuple[tuple[DType, DType], ...] = (),
) -> None:
    """Fault unless all sources have the destination's type, or all the same `widening` (source, dst) pair's."""
    if (
        len({tensor.dtype for _, tensor in sources}) == 1
        and (sources[0][1].dtype, dst.dtype) in widening
    ):
        return
    for operand, tensor in sources:
        if tensor.dtype is not dst.dtype:
            also = "".join(f", or {source} sources and a {to} dst" for source, to in widening)
            fault(
                "ILLEGAL_PARAM",
                "dtype-mismatch",
                f"{name}: {operand} {tensor.name} is {tensor.dtype}, dst {dst.name} is {dst.dtype}. All "
                f"operands need one type{also}: use cast, or reinterpret_cast if the bits are meant",
                tensor.name,
                pipe=PIPE,
            )


def check_repeat(name: str, repeat: Any) -> int:
    """Return the repeat count; fault when it does not fit the instruction's 8 bits."""
    return check_integer(
        name,
        "repeat_times",
        repeat,
        0,
        MAX_REPEAT,
        ": the field has 8 bits, on the hardware 256 wraps to 0 and nothing happens. Split the call",
    )


def check_params(name: str, params: Any, expected: type) -> None:
    """Fault unless the stride structure is the one that the instruction takes."""
    if not isinstance(params, expected):
        fault(
            "ILLEGAL_PARAM",
            "wrong-params",
            f"{name}: repeat_params must be {expected.__name__}, got {type(params).__name__}",
            pipe=PIPE,
        )


def check_shift(name: str, scalar: Any, dtype: DType) -> Any:
    """Return a number of bits to shift by; fault unless it lies between 0 and the type's width."""
    value = check_scalar(name, scalar, dtype)
    bits = 8 * dtype.size
    if not 0 <= value <= bits:
        fault(
            "ILLEGAL_PARAM",
            "scalar-range",
            f"{name}: scalar is {scalar}; elements of {dtype} shift by 0 to {bits} bits",
            pipe=PIPE,
        )
    return value


def check_order(name: str, src: Any, scalar: Any) -> None:
    """Fault where scalar and tensor have changed places."""
    if isinstance(scalar, LocalTensor) and not isinstance(src, LocalTensor):
        fault(
            "ILLEGAL_PARAM",
            "not-on-910b",
            f"{name}: a scalar before the tensor exists on chips newer than the 910B only: call "
            f"{name}(dst, src, scalar, …)",
            scalar.name,
            pipe=PIPE,
        )


def overflow_lint(name: str, scalar: Any, value: Any, dtype: DType) -> tuple[str, str, str] | None:
    """Return the finding for a finite scalar that is infinite in the element type."""
    if not dtype.is_float() or not math.isinf(value) or math.isinf(scalar):
        return None
    return (
        "NUMERIC",
        "scalar-overflow",
        f"{name}: scalar {scalar} is beyond the range of {dtype} and becomes {float(value)}",
    )


def split_forms(
    name: str, count: Any, mask: Any, repeat_times: Any, params: Any, is_set_mask: Any
) -> tuple[Any, Any, Any, bool]:
    """Return (count or mask, repeat_times, params, is_set_mask) from the overloads' arguments, or fault."""
    if isinstance(repeat_times, bool) and params is None:  # (…, count, is_set_mask)
        is_set_mask, repeat_times = repeat_times, None
    problem = None
    if mask is not None and count is not None:
        problem = "takes count, or mask with repeat_times and strides (repeat_params), not both"
    value = count if mask is None else mask
    if problem is not None:
        pass
    elif value is None:
        problem = "needs count, or mask with repeat_times and strides (repeat_params)"
    elif repeat_times is None and params is not None:
        problem = (
            "got strides without repeat_times: the mask form is mask, repeat_times, repeat_params"
        )
    elif repeat_times is None and (mask is not None or isinstance(value, (list, tuple))):
        problem = "got a mask without repeat_times and repeat_params (strides)"
    elif repeat_times is not None and params is None:
        problem = "needs repeat_params (strides) after repeat_times"
    elif not isinstance(is_set_mask, (bool, np.bool_)):
        problem = f"takes True or False for is_set_mask, got {is_set_mask!r}"
    if problem is not None:
        strides = None if params is None else type(params).__name__
        words = {
            "count": count, "mask": mask, "repeat_times": repeat_times, "repeat_params": strides,
        }  # fmt: skip
        given = [f"{word}={what}" for word, what in words.items() if what is not None]
        fault(
            "ILLEGAL_PARAM",
            "form",
            f"{name} {problem}; given: {', '.join(given) or 'none of these'}",
            pipe=PIPE,
        )
    return value, repeat_times, params, bool(is_set_mask)
