"""Steps on rows of float32 in UB: reduce each row to one value, spread one value a row, combine rows with them.

A matrix of rows of `width` elements, a multiple of 8. Instructions take up to 64 lanes a repeat and one row a repeat,
so a row of more goes in columns of 64; repeat strides have 8 bits, so rows longer than 2040 elements go one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ascend_sim.adv.lanes import temporary
from ascend_sim.lang.queues import program
from isa.faults import fault
from isa.layout import round_up
from isa.params import BinaryRepeatParams, UnaryRepeatParams
from isa.tensor import LocalTensor
from isa.types import BLOCK_BYTES, DType, Pipe, RoundMode, Space, float16, float32
from isa.vector import arithmetic as va
from isa.vector.fill import cast
from isa.vector.index import brcb
from isa.vector.params import BrcbRepeatParams, ReduceOrder
from isa.vector.reduce import whole_reduce_max, whole_reduce_sum

LANES = 64
PER_BLOCK = 8
"""Elements of one data block: a value spread over one is what instructions take a row at a time."""
_MAX_STRIDE = 255
GROUP = 248
"""Rows of one instruction: repeats have 8 bits, and results are spread eight at a time."""


def barrier() -> None:
    """Let the vector pipe finish before it goes on."""
    program().pipe_barrier(Pipe.V)


SMALL = 4 * (LANES + PER_BLOCK + 1)
"""Bytes a row of what reducing and spreading take: 64 lanes, a data block and a value."""


def rows_at_once(
    name: str, given: Any, wide: int, fixed: int, wish: int
) -> tuple[LocalTensor, int]:
    """Return the temporary buffer and how many rows a round has: those that fit, at most `wish` where that is not 0.

    A row takes `wide` bytes, and `SMALL` for it and its neighbours up to a multiple of eight; all take `fixed`.
    """
    buffer = temporary(name, given, fixed + wide + 8 * SMALL)
    left = buffer.length - fixed
    rows = left // (wide + SMALL)
    while rows * wide + round_up(rows, 8) * SMALL > left:
        rows -= 1
    rows = rows // 8 * 8 or rows
    return buffer, min(rows, wish) if wish > 0 else rows


def groups(rows: int, width: int) -> Iterator[tuple[int, int]]:
    """Return (first row, rows) of instructions: as many rows as repeats and strides allow."""
    at_once = GROUP if width // PER_BLOCK <= _MAX_STRIDE else 1
    for first in range(0, rows, at_once):
        yield first, min(at_once, rows - first)


def columns(width: int) -> Iterator[tuple[int, int]]:
    """Return (first column, columns) of instructions."""
    for first in range(0, width, LANES):
        yield first, min(LANES, width - first)


def _pitch(rows: int, width: int) -> int:
    return width // PER_BLOCK if rows > 1 else PER_BLOCK


def reduce_rows(
    values: LocalTensor,
    src: LocalTensor,
    room: LocalTensor,
    rows: int,
    width: int,
    *,
    largest: bool,
) -> None:
    """values[r] = the largest, or the sum, of row r. `room` takes 64 elements a row; `src` stays."""
    combine = va.max if largest else va.add
    if width > LANES:
        for first, count in groups(rows, width):
            _fold(combine, room[first * LANES :], src[first * width :], count, width)
        src, width = room, LANES
    for first, count in groups(rows, width):
        source, target = src[first * width :], values[first:]
        stride = _pitch(count, width)
        if largest:
            order = ReduceOrder.ORDER_ONLY_VALUE
            whole_reduce_max(target, source, width, count, 1, 1, stride, order)
        else:
            whole_reduce_sum(target, source, width, count, 1, 1, stride)
        barrier()


def _fold(
    combine: Callable[..., None], room: LocalTensor, src: LocalTensor, rows: int, width: int
) -> None:
    """room[r] = the columns of row r put together to 64 lanes."""
    pitch = _pitch(rows, width)
    copy = UnaryRepeatParams(1, 1, PER_BLOCK, pitch)
    va.muls(room, src, 1.0, LANES, rows, copy)
    barrier()
    both = BinaryRepeatParams(1, 1, 1, PER_BLOCK, PER_BLOCK, pitch)
    for first, lanes in columns(width):
        if first:
            combine(room, room, src[first:], lanes, rows, both)
            barrier()


def spread(dst: LocalTensor, values: LocalTensor, rows: int) -> None:
    """dst[r] = values[r] all over one data block. Both have room for rows up to a multiple of eight."""
    per = BLOCK_BYTES // dst.dtype.size
    at_once = GROUP // per * per  # so that each instruction's values start on a border
    for first in range(0, rows, at_once):
        count = min(at_once, rows - first)
        brcb(dst[first * per :], values[first:], -(-count // 8), BrcbRepeatParams(1, 8))
    barrier()


def combine_rows(
    combine: Callable[..., None],
    dst: LocalTensor,
    src: LocalTensor,
    blocks: LocalTensor,
    rows: int,
    width: int,
) -> None:
    """dst = src with each row combined with its data block of `blocks`."""
    for first, count in groups(rows, width):
        pitch = _pitch(count, width)
        params = BinaryRepeatParams(1, 1, 0, pitch, pitch, 1)
        start = first * width
        for column, lanes in columns(width):
            at = start + column
            combine(dst[at:], src[at:], blocks[first * PER_BLOCK :], lanes, count, params)
    barrier()


def combine_columns(
    combine: Callable[..., None],
    dst: LocalTensor,
    src: LocalTensor,
    row: LocalTensor,
    rows: int,
    width: int,
) -> None:
    """dst = src with each of its rows combined with one row."""
    for first, count in groups(rows, width):
        pitch = _pitch(count, width)
        params = BinaryRepeatParams(1, 1, 1, pitch, pitch, 0)
        start = first * width
        for column, lanes in columns(width):
            at = start + column
            combine(dst[at:], src[at:], row[column:], lanes, count, params)
    barrier()


def widen(dst: LocalTensor, src: LocalTensor, count: int) -> None:
    """dst = src as float32."""
    if src.dtype is float32:
        va.muls(dst, src, 1.0, count)
    else:
        cast(dst, src, RoundMode.CAST_NONE, count)
    barrier()


def narrow(dst: LocalTensor, src: LocalTensor, count: int) -> None:
    """dst = src in dst's type, rounded to nearest even."""
    if dst.dtype is float32:
        va.muls(dst, src, 1.0, count)
    else:
        cast(dst, src, RoundMode.CAST_RINT, count)
    barrier()


# ---- checks -----------------------------------------------------------------------------------


def check_float(name: str, *tensors: tuple[str, Any]) -> None:
    """Fault unless tensors are in UB and of float16 or float32."""
    for what, tensor in tensors:
        if not isinstance(tensor, LocalTensor) or tensor.space is not Space.UB:
            fault(
                "ILLEGAL_PARAM",
                "wrong-position",
                f"{name}: {what} must be a LocalTensor in UB, got {tensor!r}",
            )
        if tensor.dtype not in (float16, float32):
            fault(
                "ILLEGAL_PARAM",
                "wrong-dtype",
                f"{name}: {what} {tensor.name} is {tensor.dtype}; it must be float16 or float32",
                tensor.name,
            )


def same(name: str, first: tuple[str, LocalTensor], second: tuple[str, LocalTensor]) -> None:
    """Fault unless two tensors have one element type."""
    if first[1].dtype is not second[1].dtype:
        fault(
            "ILLEGAL_PARAM",
            "dtype-mismatch",
            f"{name}: {first[0]} is {first[1].dtype}, {second[0]} is {second[1].dtype}; both have one type",
            second[1].name,
        )


def row_length(name: str, what: str, width: int, dtype: DType) -> None:
    """Fault unless rows of `width` elements are whole data blocks."""
    if width < 1 or width * dtype.size % BLOCK_BYTES:
        fault(
            "ILLEGAL_PARAM",
            "row-length",
            f"{name}: {what} of the tiling is {width}; rows of {dtype} are a multiple of "
            f"{BLOCK_BYTES // dtype.size} elements (32 bytes)",
        )


def inside(name: str, tensor: LocalTensor, need: int, what: str) -> None:
    """Fault where a tensor is shorter than what a call uses of it."""
    if tensor.length < need:
        fault(
            "BOUNDS",
            "tensor-out-of-bounds",
            f"{name}: {what} take {need} bytes, {tensor.name} has {tensor.length}",
            tensor.name,
        )
