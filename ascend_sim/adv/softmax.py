"""softmax of rows, with the largest and the sum of each row beside it."""

from __future__ import annotations

from typing import Any

from ascend_sim.adv.records import SoftmaxTiling
from ascend_sim.adv.rows import (
    barrier,
    check_float,
    combine_rows,
    inside,
    narrow,
    reduce_rows,
    row_length,
    rows_at_once,
    same,
    spread,
    widen,
)
from ascend_sim.lang.queues import program
from isa.faults import fault
from isa.layout import round_up
from isa.tensor import LocalTensor
from isa.types import BLOCK_BYTES, CoreKind, RoundMode, float32
from isa.vector import arithmetic as va
from isa.vector.fill import cast, duplicate

NAME = "softmax"


def softmax(
    dst: LocalTensor,
    sum: LocalTensor,
    max: LocalTensor,
    src: LocalTensor,
    tiling: SoftmaxTiling,
    temp_buffer: LocalTensor | None = None,
    reuse_source: bool = False,
    basic_block: bool = False,
    data_format_nz: bool = False,
) -> None:
    """dst = exp(src − m) / s for each row of `tiling.src_k` elements, m its largest and s the sum of the exponentials.

    `max` and `sum` get m and s, each eight (float32) or sixteen (float16) times: one data block a row. `dst` and `src`
    are float16 or float32 and may be the same place; `max` and `sum` have their type, or float32. Rounds of
    `tiling.split_m` rows, or of as many as the temporary buffer holds. Inside it is float32: error 1e-6 of the result.

    The row length is a multiple of 32 bytes; the NZ format is refused.
    """
    if program().core_kind is CoreKind.AIC:
        return
    rows, width = _check(dst, sum, max, src, tiling)
    if data_format_nz:
        fault("ILLEGAL_PARAM", "unsupported-form", f"{NAME}: data_format_nz is not simulated")
    buffer, at_once = rows_at_once(NAME, temp_buffer, 4 * width, 0, int(tiling.split_m))
    floats = buffer.reinterpret_cast(float32)
    room = round_up(at_once, 8)
    values = floats[at_once * width :]
    fold = values[room:]
    blocks = fold[room * 64 :]
    for first in range(0, rows, at_once):
        count = min(at_once, rows - first)
        start = first * width
        _round(dst[start:], src[start:], floats, values, fold, blocks, count, width,
               (max, sum, first))  # fmt: skip


def _round(
    dst: LocalTensor,
    src: LocalTensor,
    x: LocalTensor,
    values: LocalTensor,
    fold: LocalTensor,
    blocks: LocalTensor,
    rows: int,
    width: int,
    out: tuple[LocalTensor, LocalTensor, int],
) -> None:
    total = rows * width
    largest, sums, first = out
    widen(x, src, total)
    duplicate(values, 1.0, round_up(rows, 8))  # whole groups of eight are spread
    barrier()
    reduce_rows(values, x, fold, rows, width, largest=True)
    spread(blocks, values, rows)
    _write(largest, values, blocks, fold, first, rows)
    combine_rows(va.sub, x, x, blocks, rows, width)
    va.exp(x, x, total)
    barrier()
    reduce_rows(values, x, fold, rows, width, largest=False)
    spread(blocks, values, rows)
    _write(sums, values, blocks, fold, first, rows)
    combine_rows(va.div, x, x, blocks, rows, width)
    narrow(dst, x, total)


def _write(
    target: LocalTensor,
    values: LocalTensor,
    blocks: LocalTensor,
    room: LocalTensor,
    first: int,
    rows: int,
) -> None:
    """Copy one data block a row to the output of that value, in its type."""
    per = BLOCK_BYTES // target.dtype.size
    target = target[first * per :]
    if target.dtype is float32:
        va.muls(target, blocks, 1.0, rows * per)
    else:
        padded = round_up(rows, 8)
        small = room.reinterpret_cast(target.dtype)
        cast(small, values, RoundMode.CAST_RINT, padded)
        barrier()
        wide = small[round_up(padded, per) :]
        spread(wide, small, rows)
        va.muls(target, wide, 1.0, rows * per)
    barrier()


def _check(dst: Any, sum: Any, max: Any, src: Any, tiling: Any) -> tuple[int, int]:
    """Return rows and their length; fault where the operands do not fit."""
    if not isinstance(tiling, SoftmaxTiling):
        fault(
            "ILLEGAL_PARAM",
            "adv-tiling",
            f"{NAME}: tiling must be a SoftmaxTiling, got {tiling!r}",
        )
    check_float(NAME, ("dst", dst), ("src", src))
    check_float(NAME, ("sum", sum), ("max", max))
    same(NAME, ("dst", dst), ("src", src))
    same(NAME, ("sum", sum), ("max", max))
    if max.dtype not in (src.dtype, float32):
        fault(
            "ILLEGAL_PARAM",
            "wrong-dtype",
            f"{NAME}: max and sum are {max.dtype}; they have the type of src ({src.dtype}) or float32",
            max.name,
        )
    rows, width = int(tiling.src_m), int(tiling.src_k)
    row_length(NAME, "src_k", width, src.dtype)
    if rows < 1:
        fault("ILLEGAL_PARAM", "adv-tiling", f"{NAME}: src_m of the tiling is {rows}")
    for tensor in (dst, src):
        inside(NAME, tensor, rows * width * src.dtype.size, f"{rows} rows of {width}")
    for tensor in (sum, max):
        inside(NAME, tensor, rows * BLOCK_BYTES, f"{rows} data blocks")
    return rows, width
