"""`reduce_sum`: the sum of a whole tensor, as the vendor's library makes it of real instructions.

The count form adds in counter mode into the accumulator; then the scalar unit, which waits for V, stores that in
dst, and V and MTE3 wait for the scalar unit. Its order: a tree inside each repeat, then repeats one after the other.
The mask form sums each repeat into the work buffer and goes on there: trees only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isa.access import Access, check_bounds, contiguous
from isa.instruction import Call, Instruction, register
from isa.stream import current
from isa.tensor import LocalTensor
from isa.types import (
    BLOCK_BYTES,
    BLOCKS_PER_REPEAT,
    REPEAT_BYTES,
    DType,
    HardEvent,
    Pipe,
    float32,
)
from isa.vector.checks import MAX_REPEAT, check_core, check_integer
from isa.vector.places import capacity
from isa.vector.reduce import bind_whole_sum
from isa.vector.reduce_binding import TYPES, Shape, as_rows, nothing, tree_sum
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
    Later,
    accumulator,
    bank_key,
    hand_over,
    read_register,
    reset_mask_register,
    send,
    tensor_key,
)

Array = Any
_PIPE = Pipe.V.name


def _sum(rows: Array) -> Array:
    """dst[0] = sum of all elements, each addition rounded to the operand's type."""
    total = tree_sum(rows)
    result = total[0]
    for one in total[1:]:
        result = result + one
    return result


_SUM = register(Instruction("reduce_sum", Pipe.V, "reduce_sum", TYPES, _sum, FORMS))


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
    number = number_of("reduce_sum", count, mask, repeat_time, src_rep_stride)
    check_all_operands("reduce_sum", dst, src, shared_tmp_buffer, (2, 4))
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
    repeat, stride, lanes = check_repeats("reduce_sum", src, mask, repeat_time, src_rep_stride)
    if repeat == 0 or not lanes.any():
        send("reduce_sum", ("nothing",), lambda: nothing(_SUM, src.dtype, 0))
        return
    size = src.dtype.size
    if repeat > 1:
        check_work_buffer("reduce_sum", tmp, -(-repeat * size // BLOCK_BYTES) * BLOCK_BYTES)
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
                moved(tmp, rows * size),
                moved(tmp, rows * REPEAT_BYTES),
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
        source = moved(src, first * stride * BLOCK_BYTES)
        target = moved(dst, first * size)

        def bind(
            source: LocalTensor = source, target: LocalTensor = target, n: int = number
        ) -> Call:
            shape = Shape("reduce_sum", source, Lanes(active, n, None), 1, stride)
            return bind_whole_sum(_SUM, target, shape, size)

        key = (tensor_key(target, source), active.tobytes(), number, stride)
        send("reduce_sum", key, bind)


def get_acc_val(dtype: DType = float32) -> float:
    """Return the accumulator: the sum that the last count form of reduce_sum made. The scalar unit waits for V.

    pyasc has no name for the vendor's GetAccVal; `dtype` is that of the summed elements.
    """
    if check_core("get_acc_val") is None:
        return 0.0
    check_float("get_acc_val", dtype)
    return float(read_register(accumulator(dtype)))
