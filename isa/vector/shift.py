"""shift_right, whose rounding mode no other vector instruction has."""

from __future__ import annotations

from typing import Any

import numpy as np

from isa.faults import fault
from isa.instruction import Call, Instruction, register
from isa.params import UnaryRepeatParams
from isa.tensor import LocalTensor
from isa.types import Pipe, int16, int32, uint16, uint32
from isa.vector.checks import (
    PIPE,
    check_local,
    check_order,
    check_same_dtype,
    check_shift,
    split_forms,
)
from isa.vector.forms import ALL_FORMS, bind_call, issue, one_source, scalar_key
from isa.vector.masks import freeze

Array = Any
_TYPES = (int16, uint16, int32, uint32)


def _shift_right(src: Array, scalar: Array, round_en: bool = False) -> Array:
    """dst = src shifted right by scalar bits, 0 to the type's width: signed types keep their sign."""
    shifted = np.right_shift(src, scalar)
    if not round_en or scalar == 0:
        return shifted
    return shifted + (np.right_shift(src, scalar - 1) & src.dtype.type(1))


_SHIFT_RIGHT = register(
    Instruction("shift_right", Pipe.V, "shift_right", _TYPES, _shift_right, ALL_FORMS)
)


def shift_right(
    dst: LocalTensor,
    src: LocalTensor,
    scalar: Any,
    count: Any = None,
    repeat_times: Any = None,
    repeat_params: UnaryRepeatParams | None = None,
    is_set_mask: bool = True,
    *,
    mask: Any = None,
    round_en: bool = False,
) -> None:
    """dst = src shifted right by scalar bits, 0 to the type's width: signed types keep their sign.

    With `round_en`, which AscendC has and pyasc has not, the last bit that leaves is added: signed types only.
    """
    name = "shift_right"
    count, repeat_times, repeat_params, is_set_mask = split_forms(
        name, count, mask, repeat_times, repeat_params, is_set_mask
    )

    def bind() -> Call:
        check_local(name, "dst", dst, _TYPES)
        check_order(name, src, scalar)
        check_local(name, "src", src, _TYPES)
        check_same_dtype(name, dst, (("src", src),))
        bits = check_shift(name, scalar, src.dtype)
        if not isinstance(round_en, (bool, np.bool_)) or (
            round_en and src.dtype in (uint16, uint32)
        ):
            fault(
                "ILLEGAL_PARAM",
                "round-en",
                f"{name}: round_en is {round_en!r} for {src.dtype}; it is a bool, and True for int16 and int32 only",
                pipe=PIPE,
            )
        return bind_call(
            _SHIFT_RIGHT,
            one_source(name, dst, src, repeat_params),
            count,
            repeat_times,
            lambda values: _shift_right(values, bits, bool(round_en)),
            dst.dtype.name,
            is_set_mask=is_set_mask,
        )

    issue(
        _SHIFT_RIGHT,
        dst,
        (src,),
        (scalar_key(scalar), repr(round_en)),
        freeze(count),
        repeat_times,
        repeat_params,
        is_set_mask,
        bind,
    )
