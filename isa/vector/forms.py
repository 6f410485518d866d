"""The calling forms of vector instructions, written once: count, mask with repeats, bit mask.

A decorated function is the meaning alone, from the sources' values to the destination's. What it returns is
the function that kernels call: it binds the operands, checks them and issues the call. A bound call is kept by
the stream, so that a loop over the same buffers binds once.

Wrong operands, parameters and mixed-up forms end in a fault (`isa.faults`) before anything is issued. On a cube core
vector instructions do nothing.

The depth given to the stream's `issue` is the number of frames from the simulator's record of the call site up to
the kernel's own: record, `issue` of the stream, [`issue` below,] instruction, kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isa.instruction import Call, Instruction, register
from isa.params import BinaryRepeatParams, UnaryRepeatParams
from isa.stream import ALL_LANES, any_input, current
from isa.tensor import LocalTensor
from isa.types import CoreKind, DType, Pipe
from isa.vector.binding import Binder, Operand, bind_count, bind_repeats
from isa.vector.checks import (
    MAX_REPEAT,
    MAX_STRIDE,
    check_core,
    check_integer,
    check_local,
    check_order,
    check_params,
    check_repeat,
    check_same_dtype,
    check_scalar,
    overflow_lint,
    split_forms,
)
from isa.vector.masks import freeze, lane_mask

__all__ = [
    "ALL_FORMS",
    "MAX_REPEAT",
    "MAX_STRIDE",
    "Operand",
    "binary",
    "bind_call",
    "bind_count",
    "bind_repeats",
    "check_core",
    "check_integer",
    "check_local",
    "check_params",
    "check_repeat",
    "check_same_dtype",
    "check_scalar",
    "freeze",
    "issue",
    "lane_mask",
    "one_source",
    "scalar_key",
    "split_forms",
    "two_sources",
    "unary",
    "with_scalar",
]

ALL_FORMS = "count; mask, repeat_times, repeat_params; mask list, repeat_times, repeat_params"

Meaning = Callable[..., Any]
Decorator = Callable[[Meaning], Callable[..., None]]


def issue(
    instruction: Instruction,
    dst: LocalTensor,
    sources: tuple[LocalTensor, ...],
    scalar: Any,
    count_or_mask: Any,
    repeat_times: Any,
    params: Any,
    is_set_mask: bool,
    bind: Callable[[], Call],
) -> None:
    """Issue one vector call, binding it if the stream does not know it yet."""
    stream = current.get(None)
    if stream is None or stream.core_kind is not CoreKind.AIV:
        stream = check_core(instruction.name)
        if stream is None:
            return
    registers = stream.registers
    key: Any = None
    call: Call | None = None
    kind = type(count_or_mask)
    if (kind is int or kind is tuple) and (repeat_times is None or type(repeat_times) is int):
        try:
            if repeat_times is None and scalar is None and is_set_mask:
                key = (
                    instruction.name,
                    dst.key,
                    *[source.key for source in sources],
                    count_or_mask,
                )
            else:
                key = (
                    instruction.name,
                    dst.key,
                    *[source.key for source in sources],
                    scalar,
                    count_or_mask,
                    repeat_times,
                    params,
                )
            if not is_set_mask or (registers.counter_mode and repeat_times is not None):
                key = (key, is_set_mask, registers.key())
            call = stream.calls.get(key)
        except (TypeError, AttributeError):  # an operand that is no tensor: the checks say so
            key = None
    if call is None:
        call = bind()
        if key is not None:
            stream.calls[key] = call
    if call.mask is not None:
        registers.mask_low, registers.mask_high = call.mask
        if repeat_times is None:
            registers.counter_mode = False  # a count form ends in normal mode
    stream.issue(call, 4)


def bind_call(
    record: Instruction,
    operands: list[Operand],
    count: Any,
    repeat_times: Any,
    meaning: Meaning,
    cost_dtype: str,
    *,
    is_set_mask: bool,
) -> Call:
    """Bind an instruction in whichever form it was called; `operands[0]` is the destination."""
    binder = Binder(record, operands, meaning, cost_dtype)
    if repeat_times is not None:
        return binder.mask(count, repeat_times, set_mask=is_set_mask)
    return binder.count(count) if is_set_mask else binder.registers_only(count)


def one_source(
    name: str, dst: LocalTensor, src: LocalTensor, repeat_params: Any, *, reads_dst: bool = False
) -> list[Operand]:
    """Return the operands of a one-source instruction with their strides."""
    params = UnaryRepeatParams() if repeat_params is None else repeat_params
    check_params(name, params, UnaryRepeatParams)
    operands = [
        Operand("dst", dst, params.dst_blk_stride, params.dst_rep_stride),
        Operand("src", src, params.src_blk_stride, params.src_rep_stride),
    ]
    if reads_dst:
        operands.append(Operand("dst", dst, params.dst_blk_stride, params.dst_rep_stride))
    return operands


def two_sources(
    name: str,
    dst: LocalTensor,
    src0: LocalTensor,
    src1: LocalTensor,
    repeat_params: Any,
    *,
    reads_dst: bool,
) -> list[Operand]:
    """Return the operands of a two-source instruction with their strides."""
    params = BinaryRepeatParams() if repeat_params is None else repeat_params
    check_params(name, params, BinaryRepeatParams)
    operands = [
        Operand("dst", dst, params.dst_blk_stride, params.dst_rep_stride),
        Operand("src0", src0, params.src0_blk_stride, params.src0_rep_stride),
        Operand("src1", src1, params.src1_blk_stride, params.src1_rep_stride),
    ]
    if reads_dst:
        operands.append(Operand("dst", dst, params.dst_blk_stride, params.dst_rep_stride))
    return operands


def binary(
    *dtypes: DType,
    folds: tuple[DType, ...] = (),
    reads_dst: bool = False,
    widening: tuple[tuple[DType, DType], ...] = (),
) -> Decorator:
    """Make a two-source instruction of its meaning. With `reads_dst` the meaning gets dst as third value.

    `folds` lists the types for which dst may be src1 with repeat stride 0; `widening` the (source,
    destination) pairs of unequal types that are taken besides equal ones.
    """

    def decorate(meaning: Meaning) -> Callable[..., None]:
        name = meaning.__name__
        record = register(
            Instruction(
                name, Pipe.V, name, dtypes, meaning, ALL_FORMS, bool(folds), folds, widening
            )
        )

        def function(
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
            if repeat_times is None and repeat_params is None and type(count) is int:
                # A count form that was bound before, in as few steps as possible: what kernels call most.
                stream = current.get(None)
                try:
                    call = stream.calls.get((name, dst.key, src0.key, src1.key, count))
                except AttributeError:
                    call = None
                if call is not None and mask is None and is_set_mask is True:
                    registers = stream.registers
                    registers.mask_low = registers.mask_high = ALL_LANES
                    registers.counter_mode = False
                    stream.issue(call, 3)
                    return
            count, repeat_times, repeat_params, is_set_mask = split_forms(
                name, count, mask, repeat_times, repeat_params, is_set_mask
            )

            def bind() -> Call:
                for operand, tensor in (("dst", dst), ("src0", src0), ("src1", src1)):
                    check_local(name, operand, tensor, dtypes)
                check_same_dtype(name, dst, (("src0", src0), ("src1", src1)), widening)
                operands = two_sources(name, dst, src0, src1, repeat_params, reads_dst=reads_dst)
                return bind_call(
                    record,
                    operands,
                    count,
                    repeat_times,
                    meaning,
                    dst.dtype.name,
                    is_set_mask=is_set_mask,
                )

            issue(
                record,
                dst,
                (src0, src1),
                None,
                freeze(count),
                repeat_times,
                repeat_params,
                is_set_mask,
                bind,
            )

        return _named(function, record)

    return decorate


def unary(
    *dtypes: DType, undefined: Callable[..., Any] | None = None, caution: str = ""
) -> Decorator:
    """Make a one-source instruction of its meaning; `undefined` and `caution` as in `Instruction`."""

    def decorate(meaning: Meaning) -> Callable[..., None]:
        name = meaning.__name__
        record = register(
            Instruction(
                name, Pipe.V, name, dtypes, meaning, ALL_FORMS, undefined=undefined, caution=caution
            )
        )

        def function(
            dst: LocalTensor,
            src: LocalTensor,
            count: Any = None,
            repeat_times: Any = None,
            repeat_params: UnaryRepeatParams | None = None,
            is_set_mask: bool = True,
            *,
            mask: Any = None,
        ) -> None:
            if repeat_times is None and repeat_params is None and type(count) is int:
                # As in `binary`.
                stream = current.get(None)
                try:
                    call = stream.calls.get((name, dst.key, src.key, count))
                except AttributeError:
                    call = None
                if call is not None and mask is None and is_set_mask is True:
                    registers = stream.registers
                    registers.mask_low = registers.mask_high = ALL_LANES
                    registers.counter_mode = False
                    stream.issue(call, 3)
                    return
            count, repeat_times, repeat_params, is_set_mask = split_forms(
                name, count, mask, repeat_times, repeat_params, is_set_mask
            )

            def bind() -> Call:
                check_local(name, "dst", dst, dtypes)
                check_local(name, "src", src, dtypes)
                check_same_dtype(name, dst, (("src", src),))
                call = bind_call(
                    record,
                    one_source(name, dst, src, repeat_params),
                    count,
                    repeat_times,
                    meaning,
                    dst.dtype.name,
                    is_set_mask=is_set_mask,
                )
                if any_input.get():
                    call.undefined_for = None
                if caution:
                    call.lint = ("INFO", "low-precision", f"{name}: {caution}")
                return call

            issue(
                record,
                dst,
                (src,),
                None,
                freeze(count),
                repeat_times,
                repeat_params,
                is_set_mask,
                bind,
            )

        return _named(function, record)

    return decorate


def with_scalar(
    *dtypes: DType,
    reads_dst: bool = False,
    widening: tuple[tuple[DType, DType], ...] = (),
    check: Callable[[str, Any, DType], Any] = check_scalar,
) -> Decorator:
    """Make a source-and-scalar instruction of its meaning; `check` converts the scalar to the source's type."""

    def decorate(meaning: Meaning) -> Callable[..., None]:
        name = meaning.__name__
        record = register(
            Instruction(name, Pipe.V, name, dtypes, meaning, ALL_FORMS, widening=widening)
        )

        def function(
            dst: LocalTensor,
            src: LocalTensor,
            scalar: Any,
            count: Any = None,
            repeat_times: Any = None,
            repeat_params: UnaryRepeatParams | None = None,
            is_set_mask: bool = True,
            *,
            mask: Any = None,
        ) -> None:
            key = scalar_key(scalar)
            if repeat_times is None and repeat_params is None and type(count) is int:
                # As in `binary`.
                stream = current.get(None)
                try:
                    call = stream.calls.get((name, dst.key, src.key, key, count, None, None))
                except AttributeError:
                    call = None
                if call is not None and mask is None and is_set_mask is True:
                    registers = stream.registers
                    registers.mask_low = registers.mask_high = ALL_LANES
                    registers.counter_mode = False
                    stream.issue(call, 3)
                    return
            count, repeat_times, repeat_params, is_set_mask = split_forms(
                name, count, mask, repeat_times, repeat_params, is_set_mask
            )

            def bind() -> Call:
                check_local(name, "dst", dst, dtypes)
                check_order(name, src, scalar)
                check_local(name, "src", src, dtypes)
                check_same_dtype(name, dst, (("src", src),), widening)
                value = check(name, scalar, src.dtype)
                call = bind_call(
                    record,
                    one_source(name, dst, src, repeat_params, reads_dst=reads_dst),
                    count,
                    repeat_times,
                    _with_value(meaning, value, reads_dst=reads_dst),
                    dst.dtype.name,
                    is_set_mask=is_set_mask,
                )
                call.lint = overflow_lint(name, scalar, value, src.dtype)
                return call

            issue(
                record,
                dst,
                (src,),
                key,
                freeze(count),
                repeat_times,
                repeat_params,
                is_set_mask,
                bind,
            )

        return _named(function, record)

    return decorate


def scalar_key(scalar: Any) -> Any:
    """Return a scalar operand as a part of a dictionary key: equal keys, equal bits in every element type."""
    kind = type(scalar)
    if (kind is float or kind is int) and scalar and scalar == scalar:  # noqa: PLR0124  no NaN
        return scalar
    return (
        kind.__name__,
        repr(scalar),
    )  # 0.0 and -0.0 are equal, True and 1 too, NaN equals nothing


def _with_value(meaning: Meaning, value: Any, *, reads_dst: bool) -> Meaning:
    if reads_dst:
        return lambda src, dst: meaning(src, value, dst)
    return lambda src: meaning(src, value)


def _named(function: Callable[..., None], record: Instruction) -> Callable[..., None]:
    meaning = record.meaning
    function.__name__ = function.__qualname__ = record.name
    function.__module__ = meaning.__module__
    types = ", ".join(dtype.name for dtype in record.dtypes)
    pairs = "".join(f"; {source} to {to}" for source, to in record.widening)
    function.__doc__ = f"{record.doc}\n\n    Element types: {types}{pairs}.\n    Call it with {record.forms}.\n    "
    return function
