"""Reductions of a whole tensor, as the vendor's library makes them of real instructions, and register reads.

The count form of `reduce_sum` adds in counter mode into the accumulator; then the scalar unit, which waits for V,
stores that in dst, and V and MTE3 wait for the scalar unit. Its order: a tree inside each repeat, then
repeats one after the other. Its mask form sums each repeat into the work buffer and goes on there: trees only.
`reduce_max` and `reduce_min` work in rounds of (value, index) pairs; where there is more than one round, the scalar
unit follows the index back through them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isa.access import Access, check_bounds, contiguous
from isa.faults import fault
from isa.instruction import Call, Instruction, register
from isa.scalar import get_value
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
from isa.vector.checks import MAX_REPEAT, check_core, check_integer, check_local, check_same_dtype
from isa.vector.masks import freeze, lane_mask
from isa.vector.params import ReduceOrder
from isa.vector.places import capacity, check_place
from isa.vector.reduce import (
    MAX_RESULT_STRIDE,
    TYPES,
    Shape,
    as_rows,
    bind_extreme,
    bind_whole_sum,
    largest,
    nothing,
    smallest,
    tree_sum,
)
from isa.vector.special import (
    Lanes,
    Later,
    accumulator,
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
_FORMS = "shared_tmp_buffer, count; shared_tmp_buffer, mask, repeat_time, src_rep_stride"


def _sum(rows: Array) -> Array:
    """dst[0] = sum of all elements, each addition rounded to the operand's type."""
    total = tree_sum(rows)
    result = total[0]
    for one in total[1:]:
        result = result + one
    return result


def _max(rows: Array, active: Array) -> tuple[Array, Array]:
    """dst[0] = the largest element; with cal_index, dst[1] = its index, the lowest of equal ones."""
    return largest(rows, active)


def _min(rows: Array, active: Array) -> tuple[Array, Array]:
    """dst[0] = the smallest element; with cal_index, dst[1] = its index, the lowest of equal ones."""
    return smallest(rows, active)


_SUM = register(Instruction("reduce_sum", Pipe.V, "reduce_sum", TYPES, _sum, _FORMS))
_MAX = register(
    Instruction("reduce_max", Pipe.V, "reduce_max", TYPES, _max, f"{_FORMS}; …, cal_index")
)
_MIN = register(
    Instruction("reduce_min", Pipe.V, "reduce_min", TYPES, _min, f"{_FORMS}; …, cal_index")
)


# ---- sums ---------------------------------------------------------------------------------------


def reduce_sum(
    dst: LocalTensor,
    src: LocalTensor,
    shared_tmp_buffer: LocalTensor,
    count: Any = None,
    repeat_time: Any = None,
    src_rep_stride: Any = None,
    *,
    mask: Any = None,
) -> None:
    """dst[0] = sum of `count` elements, or of `repeat_time` repeats under a mask, `src_rep_stride` blocks apart.

    The count form leaves the work buffer alone; the mask form needs one element for each repeat in it,
    rounded up to a data block, where there are several.
    """
    if check_core("reduce_sum") is None:
        return
    number = _number("reduce_sum", count, mask, repeat_time, src_rep_stride)
    _check_operands("reduce_sum", dst, src, shared_tmp_buffer, (2, 4))
    if repeat_time is None:
        _sum_of_count(dst, src, number)
    else:
        _sum_of_repeats(dst, src, shared_tmp_buffer, number, repeat_time, src_rep_stride)


def _sum_of_count(dst: LocalTensor, src: LocalTensor, count: Any) -> None:
    number = check_integer("reduce_sum", "count", count, 0, None)
    if number == 0:
        return
    dtype = src.dtype
    lanes = REPEAT_BYTES // dtype.size
    repeat = -(-number // lanes)

    def bind() -> Call:
        source = contiguous(src, number)
        check_bounds(source, src, "reduce_sum: src", capacity(), _PIPE)
        check_bounds(contiguous(dst, 1), dst, "reduce_sum: dst", capacity(), _PIPE)
        every = np.ones(lanes, bool)
        return Call(
            _SUM,
            Pipe.V,
            (source,),
            (accumulator(dtype),),
            lambda values: np.atleast_1d(_sum(as_rows(values, repeat, dtype, every, -0.0))),
            work=repeat,
            cost=("reduce_sum", dtype.name),
            geometry=(
                (False, src.addr, BLOCK_BYTES, REPEAT_BYTES, BLOCKS_PER_REPEAT),
            ),
            extra=f"count:{number}",
        )  # fmt: skip

    send("reduce_sum", (tensor_key(dst, src), number, bank_key()), bind, count_form=True)
    hand_over(HardEvent.V_S)
    access = Access(dst, dst.addr, (1,), (dtype.size,), dtype)
    current.get().store_scalar(dst, access, Later(accumulator(dtype)))
    hand_over(HardEvent.S_V, HardEvent.S_MTE3)


def _sum_of_repeats(
    dst: LocalTensor,
    src: LocalTensor,
    tmp: LocalTensor,
    mask: Any,
    repeat_time: Any,
    src_rep_stride: Any,
) -> None:
    repeat, stride, lanes = _check_repeats("reduce_sum", src, mask, repeat_time, src_rep_stride)
    if repeat == 0 or not lanes.any():
        send("reduce_sum", ("nothing",), lambda: nothing(_SUM, src.dtype, 0))
        return
    size = src.dtype.size
    if repeat > 1:
        _check_work_buffer("reduce_sum", tmp, -(-repeat * size // BLOCK_BYTES) * BLOCK_BYTES)
    if repeat == 1:  # no need of the work buffer
        _sum_rows(dst, src, lanes, 1, stride)
    else:
        _sum_rows(tmp, src, lanes, repeat, stride)
        current.get().pipe_barrier(Pipe.V)
        _sum_sums(dst, tmp, repeat, lanes.size)
    reset_mask_register()


def _sum_sums(dst: LocalTensor, tmp: LocalTensor, count: int, lanes: int) -> None:
    """Sum `count` neighbouring elements of the work buffer in rounds, in place, the last one into dst."""
    size = tmp.dtype.size
    while count > lanes:
        rows, rest = divmod(count, lanes)
        _sum_rows(tmp, tmp, np.ones(lanes, bool), rows, BLOCKS_PER_REPEAT)
        if rest:
            current.get().pipe_barrier(Pipe.V)
            tail = np.arange(lanes) < rest
            _sum_rows(
                _moved(tmp, rows * size),
                _moved(tmp, rows * REPEAT_BYTES),
                tail,
                1,
                BLOCKS_PER_REPEAT,
            )
        current.get().pipe_barrier(Pipe.V)
        count = rows + (rest > 0)
    _sum_rows(dst, tmp, np.arange(lanes) < count, 1, BLOCKS_PER_REPEAT)


def _sum_rows(dst: LocalTensor, src: LocalTensor, active: Array, repeat: int, stride: int) -> None:
    """Issue sums of `repeat` repeats into neighbouring elements of dst, at most 255 an instruction."""
    size = src.dtype.size
    for first in range(0, repeat, MAX_REPEAT):
        if (
            first and dst.addr == src.addr
        ):  # in place: the last instruction still reads what this one writes
            current.get().pipe_barrier(Pipe.V)
        number = min(MAX_REPEAT, repeat - first)
        source = _moved(src, first * stride * BLOCK_BYTES)
        target = _moved(dst, first * size)

        def bind(
            source: LocalTensor = source, target: LocalTensor = target, n: int = number
        ) -> Call:
            shape = Shape("reduce_sum", source, Lanes(active, n, None), 1, stride)
            return bind_whole_sum(_SUM, target, shape, size)

        key = (tensor_key(target, source), active.tobytes(), number, stride)
        send("reduce_sum", key, bind)


def _moved(tensor: LocalTensor, distance: int) -> LocalTensor:
    return tensor._window(tensor.addr + distance, tensor.length - distance, tensor.dtype)


# ---- extremes -----------------------------------------------------------------------------------


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
    number = _number(name, count, mask, repeat_time, src_rep_stride)
    index = flag_argument(name, "cal_index", cal_index)
    _check_operands(name, dst, src, tmp, (4, 8))
    lanes = REPEAT_BYTES // src.dtype.size
    if repeat_time is None:
        total = check_integer(name, "count", number, 0, None)
        rows, rest = divmod(total, lanes)
        parts = [(np.ones(lanes, bool), rows)] if rows else []
        parts += [(np.arange(lanes) < rest, 1)] if rest else []
        stride = BLOCKS_PER_REPEAT
    else:
        rows, stride, active = _check_repeats(name, src, number, repeat_time, src_rep_stride)
        parts = [(active, rows)] if rows and active.any() else []
    if not parts:
        send(name, ("nothing",), lambda: nothing(record, src.dtype, 0))
        return
    repeats = sum(part[1] for part in parts)
    areas = _areas(repeats, lanes, src.dtype, index)
    _check_work_buffer(name, tmp, max((offset + size for offset, size in areas), default=0))
    check_bounds(contiguous(dst, 1 + index), dst, f"{name}: dst", capacity(), _PIPE)
    order = ReduceOrder.ORDER_VALUE_INDEX if index else ReduceOrder.ORDER_ONLY_VALUE
    source = src
    for offset, _ in areas:
        target = _moved(tmp, offset)
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
            source = _moved(src, (done + first) * stride * BLOCK_BYTES)
            target = _moved(dst, (done + first) * width)

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
    place = int(get_value(dst.reinterpret_cast(bits), 1))
    for offset in reversed(offsets):
        pair = place // 2
        lane = int(get_value(_moved(tmp, offset).reinterpret_cast(bits), 2 * pair + 1))
        place = pair * lanes + lane
    limit = int(np.iinfo(bits.numpy).max)
    access = Access(dst, dst.addr + bits.size, (1,), (bits.size,), bits)
    current.get().store_scalar(dst.reinterpret_cast(bits), access, place & limit)
    hand_over(HardEvent.S_V, HardEvent.S_MTE3)


# ---- checks -------------------------------------------------------------------------------------


def _number(name: str, count: Any, mask: Any, repeat_time: Any, src_rep_stride: Any) -> Any:
    """Return the count or the mask, whichever the form has."""
    number = count if mask is None else mask
    if (
        number is None
        or (count is not None and mask is not None)
        or (repeat_time is None) != (src_rep_stride is None)
        or (repeat_time is None and mask is not None)
    ):
        fault(
            "ILLEGAL_PARAM",
            "form",
            f"{name} takes count, or mask, repeat_time and src_rep_stride, after shared_tmp_buffer",
            pipe=_PIPE,
        )
    return freeze(number)


def _check_operands(
    name: str, dst: LocalTensor, src: LocalTensor, tmp: LocalTensor, border: tuple[int, int]
) -> None:
    check_local(name, "src", src, TYPES)
    place = border[0] if src.dtype is float16 else border[1]
    check_place(name, "dst", dst, TYPES, place, f"Results of {name} for {src.dtype} start on one")
    check_local(name, "shared_tmp_buffer", tmp, TYPES)
    check_same_dtype(name, dst, (("src", src), ("shared_tmp_buffer", tmp)))


def _check_repeats(
    name: str, src: LocalTensor, mask: Any, repeat_time: Any, src_rep_stride: Any
) -> tuple[int, int, Array]:
    repeat = check_integer(name, "repeat_time", repeat_time, 0, (1 << 31) - 1)
    stride = check_integer(name, "src_rep_stride", src_rep_stride, 0, MAX_RESULT_STRIDE)
    return repeat, stride, lane_mask(name, mask, REPEAT_BYTES // src.dtype.size)


def _check_work_buffer(name: str, tmp: LocalTensor, need: int) -> None:
    if tmp.length < need:
        fault(
            "BOUNDS",
            "work-buffer",
            f"{name}: shared_tmp_buffer {tmp.name} has {tmp.length} bytes, this call needs {need} "
            f"({need // tmp.dtype.size} elements of {tmp.dtype}) for the results of its repeats",
            tmp.name,
            (tmp.addr, tmp.addr + need),
            _PIPE,
        )


# ---- registers ----------------------------------------------------------------------------------


def get_acc_val(dtype: DType = float32) -> float:
    """Return the accumulator: the sum that the last count form of reduce_sum made. The scalar unit waits for V.

    pyasc has no name for the vendor's GetAccVal; `dtype` is that of the summed elements.
    """
    if check_core("get_acc_val") is None:
        return 0.0
    _check_float("get_acc_val", dtype)
    return float(read_register(accumulator(dtype)))


def get_reduce_max_min_count(dtype: DType = float32) -> tuple[float, int]:
    """Return value and index of the last whole_reduce_max or whole_reduce_min, over all its repeats.

    The scalar unit waits for V. pyasc has no name for the vendor's GetReduceMaxMinCount.
    """
    if check_core("get_reduce_max_min_count") is None:
        return 0.0, 0
    _check_float("get_reduce_max_min_count", dtype)
    return float(read_register(extreme_value(dtype))), int(read_register(extreme_index()))


def _check_float(name: str, dtype: Any) -> None:
    if dtype not in TYPES:
        fault(
            "ILLEGAL_PARAM",
            "dtype-not-supported",
            f"{name}: dtype is {dtype!r}, reductions have float16 and float32",
            pipe=_PIPE,
        )
