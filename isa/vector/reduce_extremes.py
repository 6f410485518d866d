"""`reduce_max` and `reduce_min`: the extreme of a whole tensor, in rounds of (value, index) pairs.

As in the vendor's library each round is a reduction of repeats into the work buffer; where there is more than one and
the index is wanted, the scalar unit follows it back through them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isa.access import Access, check_bounds, contiguous
from isa.instruction import Call, Instruction, register
from isa.scalar import get_index
from isa.stream import current
from isa.tensor import LocalTensor
from isa.types import (
    BLOCK_BYTES,
    BLOCKS_PER_REPEAT,
    REPEAT_BYTES,
    DType,
    HardEvent,
    Pipe,
    float16,
    float32,
    uint16,
    uint32,
)
from isa.vector.checks import MAX_REPEAT, check_core, check_integer
from isa.vector.params import ReduceOrder
from isa.vector.places import capacity
from isa.vector.reduce import bind_extreme, largest, smallest
from isa.vector.reduce_binding import TYPES, Shape, nothing
from isa.vector.reduce_whole import (
    FORMS,
    check_all_operands,
    check_float,
    check_repeats,
    check_work_buffer,
    moved,
    number_of,
)
from isa.vector.special import (
    Lanes,
    bank_key,
    extreme_index,
    extreme_value,
    flag_argument,
    hand_over,
    read_register,
    reset_mask_register,
    send,
    tensor_key,
)

Array = Any
_PIPE = Pipe.V.name


def _max(rows: Array, active: Array) -> tuple[Array, Array]:
    """dst[0] = the largest element; with cal_index, dst[1] = its index, the lowest of equal ones."""
    return largest(rows, active)


def _min(rows: Array, active: Array) -> tuple[Array, Array]:
    """dst[0] = the smallest element; with cal_index, dst[1] = its index, the lowest of equal ones."""
    return smallest(rows, active)


_MAX = register(
    Instruction("reduce_max", Pipe.V, "reduce_max", TYPES, _max, f"{FORMS}; …, cal_index")
)
_MIN = register(
    Instruction("reduce_min", Pipe.V, "reduce_min", TYPES, _min, f"{FORMS}; …, cal_index")
)


def reduce_max(
    dst: LocalTensor,
    src: LocalTensor,
    shared_tmp_buffer: LocalTensor,
    count: Any = None,
    repeat_time: Any = None,
    src_rep_stride: Any = None,
    cal_index: bool = False,
    *,
    mask: Any = None,
) -> None:
    """dst[0] = the largest element; with `cal_index`, dst[1] = its index as the bits of an unsigned integer.

    The index counts lanes, 128 or 64 a repeat, whatever the repeat stride. The work buffer holds two elements for each
    repeat, rounded up to a data block; with an index the same again for each further round.
    """
    _reduce(_MAX, dst, src, shared_tmp_buffer, count, repeat_time, src_rep_stride, cal_index, mask)


def reduce_min(
    dst: LocalTensor,
    src: LocalTensor,
    shared_tmp_buffer: LocalTensor,
    count: Any = None,
    repeat_time: Any = None,
    src_rep_stride: Any = None,
    cal_index: bool = False,
    *,
    mask: Any = None,
) -> None:
    """dst[0] = the smallest element; with `cal_index`, dst[1] = its index; see `reduce_max`."""
    _reduce(_MIN, dst, src, shared_tmp_buffer, count, repeat_time, src_rep_stride, cal_index, mask)


def _reduce(
    record: Instruction,
    dst: LocalTensor,
    src: LocalTensor,
    tmp: LocalTensor,
    count: Any,
    repeat_time: Any,
    src_rep_stride: Any,
    cal_index: Any,
    mask: Any,
) -> None:
    name = record.name
    if check_core(name) is None:
        return
    if isinstance(repeat_time, bool) and src_rep_stride is None:  # (…, count, cal_index)
        cal_index, repeat_time = repeat_time, None
    number = number_of(name, count, mask, repeat_time, src_rep_stride)
    index = flag_argument(name, "cal_index", cal_index)
    check_all_operands(name, dst, src, tmp, (4, 8))
    lanes = REPEAT_BYTES // src.dtype.size
    if repeat_time is None:
        total = check_integer(name, "count", number, 0, None)
        rows, rest = divmod(total, lanes)
        parts = [(np.ones(lanes, bool), rows)] if rows else []
        parts += [(np.arange(lanes) < rest, 1)] if rest else []
        stride = BLOCKS_PER_REPEAT
    else:
        rows, stride, active = check_repeats(name, src, number, repeat_time, src_rep_stride)
        parts = [(active, rows)] if rows and active.any() else []
    if not parts:
        send(name, ("nothing",), lambda: nothing(record, src.dtype, 0))
        return
    repeats = sum(part[1] for part in parts)
    areas = _areas(repeats, lanes, src.dtype, index)
    check_work_buffer(name, tmp, max((offset + size for offset, size in areas), default=0))
    check_bounds(contiguous(dst, 1 + index), dst, f"{name}: dst", capacity(), _PIPE)
    order = ReduceOrder.ORDER_VALUE_INDEX if index else ReduceOrder.ORDER_ONLY_VALUE
    source = src
    for offset, _ in areas:
        target = moved(tmp, offset)
        _extreme_rows(record, target, source, parts, stride, ReduceOrder.ORDER_VALUE_INDEX)
        current.get().pipe_barrier(Pipe.V)
        pairs = sum(part[1] for part in parts)
        parts, source, stride = _pair_lanes(pairs, lanes), target, BLOCKS_PER_REPEAT
    _extreme_rows(record, dst, source, parts, stride, order)
    reset_mask_register()
    if index and areas:
        _follow_index(dst, tmp, [offset for offset, _ in areas], lanes)


def _areas(repeats: int, lanes: int, dtype: DType, index: bool) -> list[tuple[int, int]]:
    """Return (offset, bytes) of each round's pairs in the work buffer; without an index all start at 0."""
    areas = []
    offset = 0
    while repeats > 1:
        size = -(-repeats * 2 * dtype.size // BLOCK_BYTES) * BLOCK_BYTES
        areas.append((offset, size))
        offset += size if index else 0
        repeats = -(-repeats * 2 // lanes)
    return areas


def _pair_lanes(pairs: int, lanes: int) -> list[tuple[Array, int]]:
    """Return the lanes and repeats that go through the values of (value, index) pairs."""
    values = np.arange(lanes) % 2 == 0
    rows, rest = divmod(pairs, lanes // 2)
    parts = [(values, rows)] if rows else []
    return parts + ([(values & (np.arange(lanes) < 2 * rest), 1)] if rest else [])


def _extreme_rows(
    record: Instruction,
    dst: LocalTensor,
    src: LocalTensor,
    parts: list[tuple[Array, int]],
    stride: int,
    order: ReduceOrder,
) -> None:
    """Issue the extremes of repeats into neighbouring pairs of dst, at most 255 repeats an instruction."""
    width = (1 if order is ReduceOrder.ORDER_ONLY_VALUE else 2) * src.dtype.size
    done = 0
    for active, rows in parts:
        for first in range(0, rows, MAX_REPEAT):
            if done + first and dst.addr == src.addr:  # in place, as above
                current.get().pipe_barrier(Pipe.V)
            number = min(MAX_REPEAT, rows - first)
            source = moved(src, (done + first) * stride * BLOCK_BYTES)
            target = moved(dst, (done + first) * width)

            def bind(
                source: LocalTensor = source,
                target: LocalTensor = target,
                n: int = number,
                active: Array = active,
            ) -> Call:
                shape = Shape(record.name, source, Lanes(active, n, None), 1, stride)
                return bind_extreme(record, target, shape, 1, order)

            key = (tensor_key(target, source), active.tobytes(), number, stride, order, bank_key())
            send(record.name, key, bind)
        done += rows


def _follow_index(dst: LocalTensor, tmp: LocalTensor, offsets: list[int], lanes: int) -> None:
    """Let the scalar unit find the element that the last round's index leads to, and store its index."""
    bits = uint16 if dst.dtype is float16 else uint32
    hand_over(HardEvent.V_S)
    place = get_index(dst.reinterpret_cast(bits), 1)
    for offset in reversed(offsets):
        pair = place // 2
        lane = get_index(moved(tmp, offset).reinterpret_cast(bits), 2 * pair + 1)
        place = pair * lanes + lane
    limit = int(np.iinfo(bits.numpy).max)
    access = Access(dst, dst.addr + bits.size, (1,), (bits.size,), bits)
    current.get().store_scalar(dst.reinterpret_cast(bits), access, place & limit)
    hand_over(HardEvent.S_V, HardEvent.S_MTE3)


def get_reduce_max_min_count(dtype: DType = float32) -> tuple[float, int]:
    """Return value and index of the last whole_reduce_max or whole_reduce_min, over all its repeats.

    The scalar unit waits for V. pyasc has no name for the vendor's GetReduceMaxMinCount.
    """
    if check_core("get_reduce_max_min_count") is None:
        return 0.0, 0
    check_float("get_reduce_max_min_count", dtype)
    return float(read_register(extreme_value(dtype))), int(read_register(extreme_index()))
