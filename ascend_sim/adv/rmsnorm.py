"""rmsnorm: rows divided by their root mean square, times a row of factors."""

from __future__ import annotations

from typing import Any

from ascend_sim.adv.records import RmsNormTiling
from ascend_sim.adv.rows import (
    barrier,
    check_float,
    combine_columns,
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
from isa.numerics import is_number
from isa.tensor import LocalTensor
from isa.types import CoreKind, float32
from isa.vector import arithmetic as va
from isa.vector.fill import duplicate

NAME = "rmsnorm"


def rmsnorm(
    dst: LocalTensor,
    src: LocalTensor,
    gamma: LocalTensor,
    epsilon: float,
    tiling: RmsNormTiling,
    temp_buffer: LocalTensor | None = None,
    basic_block: bool = False,
) -> None:
    """dst = src / √(mean of src² + epsilon) · gamma, for `b_length` · `s_length` rows of `h_length` elements.

    The mean is over `original_h_length` elements where that is not 0 (the others are padding, and should be zero).
    `dst`, `src` and `gamma` are float16 or float32, all of one type. Rounds of `main_bs_length` rows, or of as many as
    the temporary buffer holds. Inside it is float32: error 5e-7 of the result.
    """
    if program().core_kind is CoreKind.AIC:
        return
    rows, width = _check(dst, src, gamma, epsilon, tiling)
    buffer, at_once = rows_at_once(
        NAME, temp_buffer, 8 * width, 4 * width, int(tiling.main_bs_length)
    )
    room = round_up(at_once, 8)
    factors = buffer.reinterpret_cast(float32)
    x = factors[width:]
    square = x[at_once * width :]
    values = square[at_once * width :]
    fold = values[room:]
    blocks = fold[room * 64 :]
    widen(factors, gamma, width)
    elements = int(tiling.original_h_length) or width
    for first in range(0, rows, at_once):
        count = min(at_once, rows - first)
        total, start = count * width, first * width
        widen(x, src[start:], total)
        va.mul(square, x, x, total)
        duplicate(values, 1.0, round_up(count, 8))  # whole groups of eight are spread
        barrier()
        reduce_rows(values, square, fold, count, width, largest=False)
        _root(values, count, 1.0 / elements, float(epsilon))
        spread(blocks, values, count)
        combine_rows(va.div, x, x, blocks, count, width)
        combine_columns(va.mul, x, x, factors, count, width)
        narrow(dst[start:], x, total)


def _root(values: LocalTensor, count: int, share: float, epsilon: float) -> None:
    """values = √(values · share + epsilon)."""
    va.muls(values, values, share, count)
    barrier()
    va.adds(values, values, epsilon, count)
    barrier()
    va.sqrt(values, values, count)
    barrier()


def _check(dst: Any, src: Any, gamma: Any, epsilon: Any, tiling: Any) -> tuple[int, int]:
    """Return rows and their length; fault where the operands do not fit."""
    if not isinstance(tiling, RmsNormTiling):
        fault(
            "ILLEGAL_PARAM",
            "adv-tiling",
            f"{NAME}: tiling must be a RmsNormTiling, got {tiling!r}",
        )
    if not is_number(epsilon):
        fault("ILLEGAL_PARAM", "not-a-number", f"{NAME}: epsilon must be a number, got {epsilon!r}")
    check_float(NAME, ("dst", dst), ("src", src), ("gamma", gamma))
    same(NAME, ("dst", dst), ("src", src))
    same(NAME, ("src", src), ("gamma", gamma))
    rows, width = int(tiling.b_length) * int(tiling.s_length), int(tiling.h_length)
    row_length(NAME, "h_length", width, src.dtype)
    if rows < 1:
        fault(
            "ILLEGAL_PARAM",
            "adv-tiling",
            f"{NAME}: b_length and s_length of the tiling are {tiling.b_length} and {tiling.s_length}",
        )
    for tensor in (dst, src):
        inside(NAME, tensor, rows * width * src.dtype.size, f"{rows} rows of {width}")
    inside(NAME, gamma, width * src.dtype.size, f"{width} factors")
    return rows, width
