"""What the scalar unit computes with bits and roundings, and hints to its caches."""

from __future__ import annotations

from typing import Any

import numpy as np

from ascend_sim.lang.queues import program
from isa import numerics
from isa.arguments import check_integer
from isa.faults import fault
from isa.tensor import GlobalTensor
from isa.types import DType, RoundMode, float16, int32

_MODES = {
    int32: (RoundMode.CAST_ROUND, RoundMode.CAST_CEIL, RoundMode.CAST_FLOOR, RoundMode.CAST_RINT),
    float16: (RoundMode.CAST_ODD,),
}
"""Roundings of `scalar_cast` by target type."""
_U64 = (1 << 64) - 1


def scalar_cast(value_in: float, dtype: DType, round_mode: RoundMode) -> int | float:
    """Convert a float32: to int32 with CAST_ROUND, CEIL, FLOOR or RINT, to float16 with CAST_ODD."""
    modes = _MODES.get(dtype) if isinstance(dtype, DType) else None
    if modes is None or round_mode not in modes:
        allowed = ", ".join(mode.name for mode in modes or ())
        fault(
            "ILLEGAL_PARAM",
            "round-mode",
            f"scalar_cast to {dtype} "
            + (
                f"takes {allowed}, got {round_mode!r}"
                if modes
                else "does not exist; it goes to int32 or float16"
            ),
        )
    if not numerics.is_number(value_in):
        fault("ILLEGAL_PARAM", "not-a-number", f"scalar_cast: value_in is {value_in!r}, no number")
    value = np.array([value_in], np.float32)
    return numerics.cast(value, dtype, RoundMode(round_mode))[0].item()  # type: ignore[no-any-return]


def _bits(name: str, value: Any) -> int:
    return check_integer(name, "value_in", value, -(1 << 63), _U64) & _U64


def scalar_get_sff_value(value_in: int, count_value: int) -> int:
    """Return the lowest bit position of a uint64 that holds `count_value` (0 or 1), -1 where none does."""
    bits = _bits("scalar_get_sff_value", value_in)
    if check_integer("scalar_get_sff_value", "count_value", count_value, 0, 1) == 0:
        bits = ~bits & _U64
    return (bits & -bits).bit_length() - 1


def scalar_get_count_of_value(value_in: int, count_value: int) -> int:
    """Return how many bits of a uint64 hold `count_value` (0 or 1)."""
    ones = _bits("scalar_get_count_of_value", value_in).bit_count()
    wanted = check_integer("scalar_get_count_of_value", "count_value", count_value, 0, 1)
    return ones if wanted else 64 - ones


def scalar_count_leading_zero(value_in: int) -> int:
    """Return how many zeros a uint64 begins with: 64 for 0."""
    return 64 - _bits("scalar_count_leading_zero", value_in).bit_length()


def count_bits_cnt_same_as_sign_bit(value_in: int) -> int:
    """Return how many bits below the sign bit of an int64 are equal to it; -1 for 0 and -1."""
    bits = _bits("count_bits_cnt_same_as_sign_bit", value_in)
    if bits >> 63:
        bits = ~bits & _U64
    return -1 if bits == 0 else 63 - bits.bit_length()


def icache_preload(pre_fetch_len: int) -> None:
    """Take note that code is fetched ahead; it wins nothing here: code costs what it does when it is first run."""
    check_integer("icache_preload", "pre_fetch_len", pre_fetch_len, 0, None)
    program().mark("icache_preload")


def get_icache_preload_status() -> int:
    """Return 0, idle: no code is ever under way here when it is asked for."""
    return 0


def data_cache_preload(src: GlobalTensor, cache_offset: int) -> None:
    """Bring the data-cache line of a byte of GM in, so that a later `get_value` finds it there."""
    if not isinstance(src, GlobalTensor) or src.buffer is None:
        fault(
            "ILLEGAL_PARAM",
            "wrong-operand",
            f"data_cache_preload: src must be a bound GlobalTensor, got {src!r}",
        )
    offset = check_integer("data_cache_preload", "cache_offset", cache_offset, 0, src.length - 1)
    program().preload(src.buffer, src.offset + offset)


def set_mm_layout_transform(mm_layout_mode: bool | int) -> None:
    """Say whether mmad goes along N or M first: neither numbers nor times depend on it here."""
    if not isinstance(mm_layout_mode, bool):
        check_integer("set_mm_layout_transform", "mm_layout_mode", mm_layout_mode, 0, 1)
    program().mark("set_mm_layout_transform", f"n_first:{bool(mm_layout_mode)}")
