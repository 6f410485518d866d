"""Before and after a sort: `concat` and `extract`."""

from __future__ import annotations

from typing import Any

from ascend_sim.lang.queues import program
from isa.arguments import check_integer
from isa.faults import fault
from isa.tensor import LocalTensor
from isa.types import CoreKind, Space, float16, float32, uint32
from isa.vector.gather_mask import gather_mask
from isa.vector.params import GatherMaskParams

_EVEN, _ODD, _FOURTH = 1, 2, 3
"""Built-in patterns of gather_mask: lanes 0, 2, …; lanes 1, 3, …; lanes 0, 4, …."""


def concat(dst: LocalTensor, src: LocalTensor, tmp: LocalTensor, repeat_time: int) -> None:
    """Make `dst` another name of `src`: scores need no arrangement on the 910B, whose sort takes indices apart.

    No instruction is issued. `tmp` has no use; `repeat_time` counts 16 elements each.
    """
    if program().core_kind is CoreKind.AIC:
        return
    for what, tensor in (("dst", dst), ("src", src)):
        _check("concat", what, tensor, (float16, float32))
    times = check_integer("concat", "repeat_time", repeat_time, 0, 255)
    if src.get_size() < 16 * times:
        fault(
            "BOUNDS",
            "tensor-out-of-bounds",
            f"concat: {times} repeats are {16 * times} elements, src {src.name} has {src.get_size()}",
            src.name,
        )
    dst.dtype = src.dtype
    dst.set_addr_with_offset(src, 0)
    dst.set_buffer_len(src.length)


def extract(
    dst_value: LocalTensor, dst_index: LocalTensor, src: LocalTensor, repeat_time: int
) -> None:
    """Take sorted records apart: scores to `dst_value`, indices (uint32) to `dst_index`, 32 records a repeat.

    A record has 8 bytes: a score of float32, or of float16 in its first two bytes, then the index.
    """
    if program().core_kind is CoreKind.AIC:
        return
    _check("extract", "dst_value", dst_value, (float16, float32))
    _check("extract", "dst_index", dst_index, (uint32,))
    _check("extract", "src", src, (dst_value.dtype,))
    times = check_integer("extract", "repeat_time", repeat_time, 0, 255)
    if times == 0:
        return
    params = GatherMaskParams(1, times, 8, 0)
    pattern = _EVEN if src.dtype is float32 else _FOURTH
    gather_mask(dst_value, src, pattern, False, 0, params)
    gather_mask(dst_index, src.reinterpret_cast(uint32), _ODD, False, 0, params)


def _check(name: str, what: str, tensor: Any, dtypes: tuple[Any, ...]) -> None:
    if not isinstance(tensor, LocalTensor) or tensor.space is not Space.UB:
        fault(
            "ILLEGAL_PARAM",
            "wrong-position",
            f"{name}: {what} must be a LocalTensor in UB, got {tensor!r}",
        )
    if tensor.dtype not in dtypes:
        fault(
            "ILLEGAL_PARAM",
            "wrong-dtype",
            f"{name}: {what} {tensor.name} is {tensor.dtype}, it must be {' or '.join(one.name for one in dtypes)}",
            tensor.name,
        )
