"""quant: numbers scaled and rounded to 8 bits."""

from __future__ import annotations

from typing import Any

from ascend_sim.adv.config import QuantConfig
from ascend_sim.adv.lanes import pieces
from ascend_sim.adv.rows import barrier, check_float, inside
from ascend_sim.lang.queues import program
from isa.faults import fault
from isa.numerics import is_number
from isa.tensor import LocalTensor
from isa.types import CoreKind, RoundMode, Space, float16, float32, int8
from isa.vector import arithmetic as va
from isa.vector.fill import cast

NAME = "quant"


def quant(
    dst: LocalTensor,
    src: LocalTensor,
    scale: float,
    offset: float,
    count: int | None = None,
    temp_buffer: LocalTensor | None = None,
    reuse_source: bool = False,
    config: QuantConfig | None = None,
) -> None:
    """dst = src · scale + offset as int8: rounded to nearest even, at most 127, at least −128.

    `src` is float16 or float32; product and sum are of its type. A float32 sum goes through float16, as the vector unit
    has no shorter way to 8 bits. Without a count, `config.calc_count` elements, or all of `src`.
    """
    if program().core_kind is CoreKind.AIC:
        return
    total = _check(dst, src, scale, offset, count, config)
    narrows = src.dtype is float32
    for first, size, (room, *more) in pieces(NAME, total, src.dtype, temp_buffer, 1 + narrows):
        va.muls(room, src[first:], scale, size)
        barrier()
        va.adds(room, room, offset, size)
        barrier()
        value = room
        if narrows:
            value = more[0].reinterpret_cast(float16)
            cast(value, room, RoundMode.CAST_NONE, size)
            barrier()
        cast(dst[first:], value, RoundMode.CAST_RINT, size)
        barrier()


def _check(dst: Any, src: Any, scale: Any, offset: Any, count: Any, config: Any) -> int:
    check_float(NAME, ("src", src))
    if not isinstance(dst, LocalTensor) or dst.space is not Space.UB or dst.dtype is not int8:
        fault(
            "ILLEGAL_PARAM",
            "wrong-dtype",
            f"{NAME}: dst must be a LocalTensor of int8 in UB, got {dst!r}",
        )
    for what, value in (("scale", scale), ("offset", offset)):
        if not is_number(value):
            fault(
                "ILLEGAL_PARAM", "not-a-number", f"{NAME}: {what} must be a number, got {value!r}"
            )
    if count is None and config is not None and config.calc_count:
        count = config.calc_count
    total = src.get_size() if count is None else int(count)
    inside(NAME, src, total * src.dtype.size, f"{total} elements")
    inside(NAME, dst, total, f"{total} elements")
    return total
