"""`gather_mask`: keep the elements that a pattern marks, side by side, and count them."""

from __future__ import annotations

from typing import Any

import numpy as np

from isa.access import Access, check_bounds, contiguous
from isa.faults import fault
from isa.instruction import Call, Instruction, register
from isa.tensor import LocalTensor
from isa.types import (
    BLOCK_BYTES,
    REPEAT_BYTES,
    HardEvent,
    Pipe,
    bfloat16,
    float16,
    float32,
    int16,
    int32,
    uint8,
    uint16,
    uint32,
)
from isa.vector.checks import MAX_STRIDE, check_core, check_integer, check_local, check_same_dtype
from isa.vector.params import GatherMaskMode, GatherMaskParams
from isa.vector.places import (
    PackedCall,
    PieceAccess,
    block_ranges,
    capacity,
    check_disjoint,
    check_repeat_order,
)
from isa.vector.special import (
    KEPT,
    bank,
    bank_key,
    check_type,
    flag_argument,
    hand_over,
    kept_count,
    mode_argument,
    put,
    read_register,
    send,
    tensor_key,
)

Array = Any
_PIPE = Pipe.V.name
_TYPES = (int16, uint16, float16, bfloat16, int32, uint32, float32)
_WIDE = 65535
PATTERNS = {
    1: (0, 2),
    2: (1, 2),
    3: (0, 4),
    4: (1, 4),
    5: (2, 4),
    6: (3, 4),
    7: (0, 1),
}
"""Built-in patterns: (first lane, step) inside a repeat."""


def _gather_mask(values: Array, marked: Array) -> Array:
    """dst = the elements of src0 whose bit in the pattern is 1, side by side from dst[0]."""
    return values[marked]


_RECORD = register(
    Instruction(
        "gather_mask",
        Pipe.V,
        "gather_mask",
        _TYPES,
        _gather_mask,
        "src1_pattern, reduce_mode, mask, params",
    )
)


def gather_mask(
    dst: LocalTensor,
    src0: LocalTensor,
    src1_pattern: LocalTensor | int,
    reduce_mode: bool,
    mask: int,
    params: GatherMaskParams,
    gather_mask_mode: GatherMaskMode = GatherMaskMode.DEFAULT,
) -> int:
    """Keep the elements of src0 that a pattern marks; return how many there are (the scalar unit waits for V).

    The pattern is a number from 1 to 7 (`PATTERNS`) or a tensor of bits (uint16 or uint32, as wide as the
    elements), consumed without gaps inside a repeat. With `reduce_mode` False a repeat is 256 bytes and the mask has
    no effect; with True it is `mask` elements. Afterwards the mask register is all ones and in norm mode. A count
    that the data decides needs numerics on.
    """
    if check_core("gather_mask") is None:
        return 0
    built_in = not isinstance(src1_pattern, LocalTensor)

    def bind() -> Call:
        return _bind(dst, src0, src1_pattern, reduce_mode, mask, params, gather_mask_mode)

    key = (
        tensor_key(dst, src0),
        src1_pattern if built_in else tensor_key(src1_pattern),
        reduce_mode,
        mask,
        params,
        gather_mask_mode,
        bank_key(),
    )
    send("gather_mask", key, bind, count_form=True)
    if not built_in:
        return int(read_register(kept_count()))
    hand_over(HardEvent.V_S)
    lanes, repeat = _size(src0, bool(reduce_mode), mask, params)
    first, step = PATTERNS[int(src1_pattern)]  # type: ignore[arg-type]
    return len(range(first, lanes, step)) * repeat


def get_gather_mask_remain_count() -> int:
    """Return how many elements the last `gather_mask` kept. The scalar unit waits for V."""
    if check_core("get_gather_mask_remain_count") is None:
        return 0
    return int(read_register(kept_count()))


def _size(src0: LocalTensor, counter: bool, mask: Any, params: GatherMaskParams) -> tuple[int, int]:
    """Return elements of a repeat, and repeats."""
    lanes = mask if counter else REPEAT_BYTES // src0.dtype.size
    return int(lanes), int(params.repeat_times)


def _bind(
    dst: LocalTensor,
    src0: LocalTensor,
    pattern: Any,
    reduce_mode: Any,
    mask: Any,
    params: Any,
    mode: Any,
) -> Call:
    name = "gather_mask"
    check_local(name, "dst", dst, _TYPES)
    check_local(name, "src0", src0, _TYPES)
    check_same_dtype(name, dst, (("src0", src0),))
    counter = flag_argument(name, "reduce_mode", reduce_mode)
    check_integer(name, "mask", mask, 1 if counter else 0, (1 << 32) - 1)
    check_type(name, "params", params, GatherMaskParams)
    check_integer(name, "src0_block_stride", params.src0_block_stride, 0, MAX_STRIDE)
    check_integer(name, "repeat_times", params.repeat_times, 0, _WIDE)
    check_integer(name, "src0_repeat_stride", params.src0_repeat_stride, 0, _WIDE)
    check_integer(name, "src1_repeat_stride", params.src1_repeat_stride, 0, MAX_STRIDE)
    mode_argument(name, "gather_mask_mode", mode, GatherMaskMode)
    lanes, repeat = _size(src0, counter, mask, params)
    if lanes * repeat * src0.dtype.size > 1 << 24:
        fault(
            "BOUNDS",
            "memory-out-of-bounds",
            f"{name}: {repeat} repeats of {lanes} elements are more than UB holds. mask and repeat_times multiply: "
            f"mask counts the elements of one repeat",
            src0.name,
            pipe=_PIPE,
        )
    source = _source(src0, lanes, repeat, params) if repeat else None
    cost = ("gather_mask", dst.dtype.name)
    if isinstance(pattern, LocalTensor):
        bits = _pattern_bits(dst, pattern, lanes, repeat, params)
        if source is None or bits is None:
            return Call(_RECORD, Pipe.V, (), (), _gather_mask, cost=cost)
        return _bind_user(dst, src0, pattern, source, bits, lanes, repeat, params)
    number = check_integer(name, "src1_pattern", pattern, 1, 7)
    first, step = PATTERNS[number]
    count = len(range(first, lanes, step)) * repeat
    if source is None:
        return Call(_RECORD, Pipe.V, (), (), _gather_mask, cost=cost)
    if count == 0:
        none = np.zeros(1, np.uint64)
        return Call(_RECORD, Pipe.V, (source,), (kept_count(),), lambda _: none, work=1, cost=cost)
    target = contiguous(dst, count)
    check_bounds(target, dst, f"{name}: dst", capacity(), _PIPE)
    _check_overlap(dst, target, src0, lanes, repeat, params, len(range(first, lanes, step)))
    registers = bank()

    def meaning(values: Array) -> Array:
        put(registers, KEPT, np.uint64(count))
        return np.asarray(values).reshape(repeat, lanes)[:, first::step].ravel().copy()

    return Call(
        _RECORD,
        Pipe.V,
        (source,),
        (target,),
        meaning,
        work=_work(lanes, repeat, src0),
        cost=cost,
        extra=f"pattern:{number}",
    )


def _work(lanes: int, repeat: int, src0: LocalTensor) -> int:
    return -(-lanes * src0.dtype.size // REPEAT_BYTES) * repeat


def _source(src0: LocalTensor, lanes: int, repeat: int, params: GatherMaskParams) -> Access:
    """Return the elements of all repeats in lane order."""
    size = src0.dtype.size
    per_block = BLOCK_BYTES // size
    step = params.src0_repeat_stride * BLOCK_BYTES
    block = params.src0_block_stride * BLOCK_BYTES
    blocks, tail = divmod(lanes, per_block)
    access: Access
    if not tail:
        access = Access(
            src0, src0.addr, (repeat, blocks, per_block), (step, block, size), src0.dtype
        )
    else:
        pieces = []
        for row in range(repeat):
            base = src0.addr + row * step
            if blocks:
                pieces.append(Access(src0, base, (blocks, per_block), (block, size), src0.dtype))
            pieces.append(Access(src0, base + blocks * block, (tail,), (size,), src0.dtype))
        access = PieceAccess(src0, pieces) if len(pieces) > 1 else pieces[0]
    check_bounds(access, src0, "gather_mask: src0", capacity(), _PIPE)
    return access


def _pattern_bits(
    dst: LocalTensor, pattern: LocalTensor, lanes: int, repeat: int, params: GatherMaskParams
) -> Access | None:
    """Return the bytes of a user's pattern, (repeats, bytes of a repeat)."""
    wanted = uint16 if dst.dtype.size == 2 else uint32
    check_local("gather_mask", "src1_pattern", pattern, (wanted,))
    if repeat == 0:
        return None
    used = -(-lanes // 8)
    step = params.src1_repeat_stride * BLOCK_BYTES
    access = Access(pattern, pattern.addr, (repeat, used), (step, 1), uint8)
    check_bounds(access, pattern, "gather_mask: src1_pattern", capacity(), _PIPE)
    return access


def _bind_user(
    dst: LocalTensor,
    src0: LocalTensor,
    pattern: LocalTensor,
    source: Access,
    bits: Access,
    lanes: int,
    repeat: int,
    params: GatherMaskParams,
) -> Call:
    room = dst.length // dst.dtype.size
    target = contiguous(dst, max(min(lanes * repeat, room), 1))
    check_bounds(target, dst, "gather_mask: dst", capacity(), _PIPE)
    check_disjoint("gather_mask", target, bits, pattern)
    _check_overlap(dst, target, src0, lanes, repeat, params, lanes)
    registers = bank()

    def meaning(values: Array, given: Array) -> Array:
        marked = np.unpackbits(given, axis=1, bitorder="little")[:, :lanes].astype(bool)
        kept = _gather_mask(np.asarray(values).reshape(repeat, lanes), marked)
        if len(kept) > room:
            _fault_full(dst, len(kept))
        put(registers, KEPT, np.uint64(len(kept)))
        return kept

    return PackedCall(
        _RECORD,
        Pipe.V,
        (source, bits),
        (target,),
        meaning,
        work=_work(lanes, repeat, src0),
        cost=("gather_mask", dst.dtype.name),
        extra="pattern:tensor",
    )


def _fault_full(dst: LocalTensor, count: int) -> None:
    size = dst.dtype.size
    fault(
        "BOUNDS",
        "tensor-out-of-bounds",
        f"gather_mask: the pattern keeps {count} elements, dst {dst.name} has room for {dst.length // size}: "
        f"{count * size - dst.length} bytes too many. Make dst as large as what may be kept",
        dst.name,
        (dst.addr, dst.addr + count * size),
        _PIPE,
    )


def _check_overlap(
    dst: LocalTensor,
    target: Access,
    src0: LocalTensor,
    lanes: int,
    repeat: int,
    params: GatherMaskParams,
    kept: int,
) -> None:
    """Fault where a later repeat reads what an earlier one may have written; in place from src0's start is fine."""
    size = src0.dtype.size
    blocks = -(-lanes * size // BLOCK_BYTES)
    first = target.base
    check_repeat_order(
        "gather_mask",
        dst,
        lambda row: block_ranges(first + row * kept * size, 0, 1, kept * size),
        src0,
        lambda row: block_ranges(
            src0.addr + row * params.src0_repeat_stride * BLOCK_BYTES,
            params.src0_block_stride * BLOCK_BYTES,
            blocks,
        ),
        repeat,
    )
