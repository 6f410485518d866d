"""What reductions of a whole tensor share: their forms, checks and work buffer."""

from __future__ import annotations

from typing import Any

from isa.faults import fault
from isa.tensor import LocalTensor
from isa.types import (
    REPEAT_BYTES,
    Pipe,
    float16,
)
from isa.vector.checks import check_integer, check_local, check_same_dtype
from isa.vector.masks import freeze, lane_mask
from isa.vector.places import check_place
from isa.vector.reduce_binding import MAX_RESULT_STRIDE, TYPES

Array = Any
_PIPE = Pipe.V.name
FORMS = "shared_tmp_buffer, count; shared_tmp_buffer, mask, repeat_time, src_rep_stride"


def moved(tensor: LocalTensor, distance: int) -> LocalTensor:
    """Return the tensor from `distance` bytes on."""
    return tensor._window(tensor.addr + distance, tensor.length - distance, tensor.dtype)


def number_of(name: str, count: Any, mask: Any, repeat_time: Any, src_rep_stride: Any) -> Any:
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


def check_all_operands(
    name: str, dst: LocalTensor, src: LocalTensor, tmp: LocalTensor, border: tuple[int, int]
) -> None:
    """Fault unless the operands are what a whole reduction takes; `border` of dst for half and float."""
    check_local(name, "src", src, TYPES)
    place = border[0] if src.dtype is float16 else border[1]
    check_place(name, "dst", dst, TYPES, place, f"Results of {name} for {src.dtype} start on one")
    check_local(name, "shared_tmp_buffer", tmp, TYPES)
    check_same_dtype(name, dst, (("src", src), ("shared_tmp_buffer", tmp)))


def check_repeats(
    name: str, src: LocalTensor, mask: Any, repeat_time: Any, src_rep_stride: Any
) -> tuple[int, int, Array]:
    """Return repeats, repeat stride and lanes of a mask form, checked."""
    repeat = check_integer(name, "repeat_time", repeat_time, 0, (1 << 31) - 1)
    stride = check_integer(name, "src_rep_stride", src_rep_stride, 0, MAX_RESULT_STRIDE)
    return repeat, stride, lane_mask(name, mask, REPEAT_BYTES // src.dtype.size)


def check_work_buffer(name: str, tmp: LocalTensor, need: int) -> None:
    """Fault unless the work buffer holds `need` bytes."""
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


def check_float(name: str, dtype: Any) -> None:
    """Fault unless a type is one that reductions have."""
    if dtype not in TYPES:
        fault(
            "ILLEGAL_PARAM",
            "dtype-not-supported",
            f"{name}: dtype is {dtype!r}, reductions have float16 and float32",
            pipe=_PIPE,
        )
