"""Comparisons with a bit for each element, and selection by such bits."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from isa.access import Access, check_bounds, contiguous, repeats
from isa.faults import fault
from isa.instruction import Call, Instruction, register
from isa.params import BinaryRepeatParams, UnaryRepeatParams
from isa.stream import current
from isa.tensor import LocalTensor
from isa.types import (
    BLOCK_BYTES,
    BLOCKS_PER_REPEAT,
    REPEAT_BYTES,
    DType,
    Pipe,
    float16,
    float32,
    int8,
    int32,
    uint8,
)
from isa.vector.checks import (
    MAX_STRIDE,
    check_integer,
    check_local,
    check_params,
    check_repeat,
    check_same_dtype,
    check_scalar,
)
from isa.vector.masks import freeze, lane_mask
from isa.vector.params import CMPMODE
from isa.vector.places import capacity, check_place
from isa.vector.special import (
    bank_key,
    cmp_mask,
    flag_argument,
    mode_argument,
    overload,
    send,
    tensor_key,
)

Array = Any
_PIPE = Pipe.V.name
_TYPES = (float16, float32, int32)
_BITS = (int8, uint8)

_OPERATORS = {
    CMPMODE.LT: operator.lt,
    CMPMODE.GT: operator.gt,
    CMPMODE.EQ: operator.eq,
    CMPMODE.LE: operator.le,
    CMPMODE.GE: operator.ge,
    CMPMODE.NE: operator.ne,
}


def _compare(a: Array, b: Array, mode: CMPMODE) -> Array:
    """One bit for each element of src0 and src1, lowest bit first: 1 where the comparison holds; NaN only differs."""
    return np.packbits(np.asarray(_OPERATORS[mode](a, b)).ravel(), bitorder="little")


_COMPARE = register(
    Instruction(
        "compare",
        Pipe.V,
        "compare",
        _TYPES,
        _compare,
        "dst, …, count; dst, …, mask, repeat_times, repeat_params; mask, repeat_params into CMPMASK",
    )
)


def _compare_scalar(a: Array, scalar: Array, mode: CMPMODE) -> Array:
    """One bit for each element of src0, compared with a scalar."""
    return _compare(a, scalar, mode)


_COMPARE_SCALAR = register(
    Instruction(
        "compare_scalar",
        Pipe.V,
        "compare_scalar",
        _TYPES,
        _compare_scalar,
        "count; mask, repeat_times, repeat_params",
    )
)


def compare(*args: Any, **kwargs: Any) -> None:
    """Compare src0 with src1, one bit an element.

    `(dst, src0, src1, cmp_mode, count)` and `(dst, src0, src1, cmp_mode, mask, repeat_times, repeat_params)` write
    bits to an 8-bit tensor, lowest bit first, repeat after repeat without gaps; the mask is ignored, every lane
    is computed. `(src0, src1, cmp_mode, mask, repeat_params)` writes one repeat's bits to CMPMASK; bits of inactive
    lanes stay.
    """
    if len(args) > 2:
        to_register = isinstance(args[2], int)  # the mode, where the other form has src1
    else:
        named = sum(operand in kwargs for operand in ("dst", "src0", "src1"))
        to_register = len(args) + named < 3
    overload("compare", compare_to_register if to_register else compare_to_tensor, args, kwargs)


def compare_to_tensor(
    dst: LocalTensor,
    src0: LocalTensor,
    src1: LocalTensor,
    cmp_mode: CMPMODE,
    count: Any = None,
    repeat_times: Any = None,
    repeat_params: Any = None,
    is_set_mask: bool = True,
    *,
    mask: Any = None,
) -> None:
    """`compare` with a destination."""
    count = count if mask is None else mask

    def bind() -> Call:
        for what, tensor in (("src0", src0), ("src1", src1)):
            check_local("compare", what, tensor, _TYPES)
        check_same_dtype("compare", src0, (("src1", src1),))
        mode = _mode("compare", cmp_mode, src0.dtype)
        params = repeat_params if repeat_params is not None else BinaryRepeatParams()
        check_params("compare", params, BinaryRepeatParams)
        sources = [
            ("src0", src0, params.src0_blk_stride, params.src0_rep_stride),
            ("src1", src1, params.src1_blk_stride, params.src1_rep_stride),
        ]
        return _bind(_COMPARE, dst, sources, count, repeat_times, lambda a, b: _compare(a, b, mode))

    _send("compare", dst, (src0, src1), (cmp_mode,), count, repeat_times, repeat_params, bind)


def compare_scalar(
    dst: LocalTensor,
    src0: LocalTensor,
    src1_scalar: float,
    cmp_mode: CMPMODE,
    count: Any = None,
    repeat_times: Any = None,
    repeat_params: Any = None,
    is_set_mask: bool = True,
    *,
    mask: Any = None,
) -> None:
    """Compare src0 with a scalar, one bit an element; see `compare`."""
    count = count if mask is None else mask

    def bind() -> Call:
        check_local("compare_scalar", "src0", src0, _TYPES)
        mode = _mode("compare_scalar", cmp_mode, src0.dtype)
        scalar = check_scalar("compare_scalar", src1_scalar, src0.dtype)
        params = repeat_params if repeat_params is not None else UnaryRepeatParams()
        check_params("compare_scalar", params, UnaryRepeatParams)
        sources = [("src0", src0, params.src_blk_stride, params.src_rep_stride)]
        return _bind(
            _COMPARE_SCALAR,
            dst,
            sources,
            count,
            repeat_times,
            lambda a: _compare_scalar(a, scalar, mode),
        )

    key = (cmp_mode, type(src1_scalar).__name__, repr(src1_scalar))
    _send("compare_scalar", dst, (src0,), key, count, repeat_times, repeat_params, bind)


def _send(
    name: str,
    dst: Any,
    sources: tuple[Any, ...],
    extra: Any,
    count: Any,
    repeat_times: Any,
    params: Any,
    bind: Any,
) -> None:
    if count is None:
        fault(
            "ILLEGAL_PARAM",
            "form",
            f"{name} needs count, or mask, repeat_times and repeat_params",
            pipe=_PIPE,
        )
    if repeat_times is not None and params is None:
        fault(
            "ILLEGAL_PARAM",
            "form",
            f"{name}: the mask form needs repeat_params (strides) after repeat_times",
            pipe=_PIPE,
        )
    key = (tensor_key(dst, *sources), extra, freeze(count), repeat_times, params)
    send(name, key, bind, count_form=repeat_times is None)


def _mode(name: str, value: Any, dtype: DType) -> CMPMODE:
    mode: CMPMODE = mode_argument(name, "cmp_mode", value, CMPMODE)
    if dtype is int32 and mode is not CMPMODE.EQ:
        fault(
            "ILLEGAL_PARAM",
            "cmp-mode-dtype",
            f"{name}: the 910B compares int32 for EQ only, got {mode.name}. Cast to float32, or subtract and compare "
            f"with 0",
            pipe=_PIPE,
        )
    return mode


def _bind(
    record: Instruction,
    dst: Any,
    sources: list[tuple[str, LocalTensor, Any, Any]],
    count: Any,
    repeat_times: Any,
    meaning: Any,
) -> Call:
    name = record.name
    check_local(name, "dst", dst, _BITS)
    dtype = sources[0][1].dtype
    lanes = REPEAT_BYTES // dtype.size
    accesses = []
    geometry = []
    if repeat_times is None:
        number = check_integer(name, "count", count, 0, None)
        if number % lanes:
            fault(
                "ILLEGAL_PARAM",
                "count-multiple",
                f"{name}: count is {number}, but the 910B compares whole repeats of {REPEAT_BYTES} bytes: {lanes} "
                f"elements of {dtype}. Round count up to {-(-number // lanes) * lanes} (and make the tensors as long)",
                pipe=_PIPE,
            )
        repeat = number // lanes
    else:
        lane_mask(name, count, lanes)
        repeat = check_repeat(name, repeat_times)
    cost = (record.cost, dtype.name)
    if repeat == 0:
        return Call(record, Pipe.V, (), (), meaning, cost=cost)
    for what, tensor, block, step in sources:
        if repeat_times is None:
            access = contiguous(tensor, repeat * lanes)
            block, step = 1, BLOCKS_PER_REPEAT
        else:
            check_integer(name, f"{what}_blk_stride", block, 0, MAX_STRIDE)
            check_integer(name, f"{what}_rep_stride", step, 0, MAX_STRIDE)
            access = repeats(tensor, repeat, block, step, np.ones(lanes, bool), BLOCKS_PER_REPEAT)
        check_bounds(access, tensor, f"{name}: {what}", capacity(), _PIPE)
        accesses.append(access)
        geometry.append(
            (False, tensor.addr, block * BLOCK_BYTES, step * BLOCK_BYTES, BLOCKS_PER_REPEAT)
        )
    target = contiguous(dst, repeat * lanes // 8)
    check_bounds(target, dst, f"{name}: dst", capacity(), _PIPE)
    for (what, tensor, _, _), access in zip(sources, accesses, strict=True):
        _check_bits_overlap(name, target, what, tensor, access, lanes // 8)
    return Call(
        record,
        Pipe.V,
        tuple(accesses),
        (target,),
        meaning,
        work=repeat,
        cost=cost,
        geometry=tuple(geometry),
    )


def _check_bits_overlap(
    name: str, dst: Access, what: str, tensor: LocalTensor, src: Access, row: int
) -> None:
    """Fault where a later repeat reads what an earlier one wrote: bits trail the elements, unless dst lies inside."""
    if not dst.overlaps(src):
        return
    # Repeat r writes `row` bytes at dst + r·row. From the source's own start on that trails what has been read.
    step = src.strides[0] if len(src.shape) > 1 else REPEAT_BYTES
    if dst.base == src.base and step >= row:
        return
    fault(
        "ILLEGAL_PARAM",
        "operand-overlap",
        f"{name}: dst {dst.name} (UB bytes {dst.low} to {dst.high}) lies inside {what} {tensor.name} (UB bytes "
        f"{src.low} to {src.high}): a repeat would read bits that an earlier one wrote. Use separate bytes, or "
        f"start where {what} starts",
        dst.name,
        (max(dst.low, src.low), min(dst.high, src.high)),
        _PIPE,
    )


def compare_to_register(
    src0: LocalTensor,
    src1: LocalTensor,
    cmp_mode: CMPMODE,
    mask: Any,
    repeat_params: BinaryRepeatParams,
    is_set_mask: bool = True,
) -> None:
    """`compare` of one repeat into CMPMASK."""
    set_mask = flag_argument("compare", "is_set_mask", is_set_mask)

    def bind() -> Call:
        for what, tensor in (("src0", src0), ("src1", src1)):
            check_local("compare", what, tensor, _TYPES)
        check_same_dtype("compare", src0, (("src1", src1),))
        mode = _mode("compare", cmp_mode, src0.dtype)
        check_params("compare", repeat_params, BinaryRepeatParams)
        registers = current.get().registers
        words = mask if set_mask else [registers.mask_low, registers.mask_high]
        count = REPEAT_BYTES // src0.dtype.size
        lanes = lane_mask("compare", words, count)
        cost = ("compare", src0.dtype.name)
        if not lanes.any():
            return Call(_COMPARE, Pipe.V, (), (), _compare, cost=cost)
        accesses = []
        for what, tensor, block in (
            ("src0", src0, repeat_params.src0_blk_stride),
            ("src1", src1, repeat_params.src1_blk_stride),
        ):
            check_integer("compare", f"{what}_blk_stride", block, 0, MAX_STRIDE)
            access = repeats(tensor, 1, block, BLOCKS_PER_REPEAT, lanes, BLOCKS_PER_REPEAT)
            check_bounds(access, tensor, f"compare: {what}", capacity(), _PIPE)
            accesses.append(access)
        target = cmp_mask()

        def meaning(a: Array, b: Array) -> Array:
            old = np.unpackbits(target.view(None), bitorder="little")
            new = np.asarray(_OPERATORS[mode](a, b)).ravel()
            active = np.flatnonzero(lanes[: new.size])
            old[active] = new[active]
            return np.packbits(old, bitorder="little")

        return Call(_COMPARE, Pipe.V, tuple(accesses), (target,), meaning, work=1, cost=cost)

    key = (tensor_key(src0, src1), cmp_mode, freeze(mask), repeat_params, set_mask, bank_key())
    dtype = src0.dtype if isinstance(src0, LocalTensor) else None
    send("compare", key, bind, mask=freeze(mask), dtype=dtype, set_mask=set_mask)


def _move_mask(bits: Array) -> Array:
    """CMPMASK = the 16 bytes of src, or the 16 bytes of dst = CMPMASK."""
    return bits.copy()


_ANY = (uint8,)
_GET = register(Instruction("get_cmp_mask", Pipe.V, "copy", _ANY, _move_mask, "dst"))
_SET = register(Instruction("set_cmp_mask", Pipe.V, "copy", _ANY, _move_mask, "src"))


def _mask_memory(name: str, operand: str, tensor: LocalTensor) -> Access:
    dtypes = (tensor.dtype,) if isinstance(tensor, LocalTensor) else _ANY
    check_place(name, operand, tensor, dtypes, 16, "CMPMASK's memory starts on one")
    access = Access(tensor, tensor.addr, (16,), (1,), uint8)
    check_bounds(access, tensor, f"{name}: {operand}", capacity(), _PIPE)
    return access


def get_cmp_mask(dst: LocalTensor) -> None:
    """Store CMPMASK's 16 bytes in `dst`, a tensor of any type on a 16-byte border."""

    def bind() -> Call:
        target = _mask_memory("get_cmp_mask", "dst", dst)
        return Call(
            _GET, Pipe.V, (cmp_mask(),), (target,), _move_mask, work=1, cost=("copy", "uint8")
        )

    send("get_cmp_mask", (tensor_key(dst), bank_key()), bind)


def set_cmp_mask(src: LocalTensor) -> None:
    """Load CMPMASK from the first 16 bytes of `src`, a tensor of any type on a 16-byte border."""

    def bind() -> Call:
        source = _mask_memory("set_cmp_mask", "src", src)
        return Call(
            _SET, Pipe.V, (source,), (cmp_mask(),), _move_mask, work=1, cost=("copy", "uint8")
        )

    send("set_cmp_mask", (tensor_key(src), bank_key()), bind)
