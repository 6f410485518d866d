"""The scalar unit's accesses to tensors: one element at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from isa.access import Access, check_bounds
from isa.faults import fault
from isa.stream import current
from isa.tensor import GlobalTensor, LocalTensor
from isa.types import Space


def _element(name: str, tensor: GlobalTensor | LocalTensor, index: Any) -> tuple[Any, Access]:
    stream = current.get(None)
    if stream is None:
        fault("HOST", "no-kernel", f"{name} was called outside a kernel")
    if isinstance(index, bool) or not isinstance(index, (int, np.integer)) or index < 0:
        fault("BOUNDS", "element-index", f"{name}: index must be a whole number of at least 0, got {index!r}", tensor.name)
    if tensor.space not in (Space.GM, Space.UB):
        fault(
            "ILLEGAL_PARAM",
            "wrong-position",
            f"{name}: {tensor.name} is in {tensor.space.name}; the scalar unit reaches GM and UB only",
            tensor.name,
        )
    if isinstance(tensor, GlobalTensor) and tensor.buffer is None:
        fault("HOST", "unbound-tensor", f"{name}: a GlobalTensor is used before set_global_buffer")
    size = tensor.dtype.size
    base = (tensor.offset if isinstance(tensor, GlobalTensor) else tensor.addr) + int(index) * size
    access = Access(tensor, base, (1,), (size,), tensor.dtype)
    capacity = 0 if tensor.space is Space.GM else stream.capacity(tensor.space)
    check_bounds(access, tensor, f"{name}({index}):", capacity, "S")
    return stream, access


def get_value(tensor: GlobalTensor | LocalTensor, index: int = 0) -> int | float:
    """Return one element as a Python number. The scalar unit waits for it."""
    stream, access = _element("get_value", tensor, index)
    return stream.load_scalar(tensor, access)  # type: ignore[no-any-return]


def set_value(tensor: GlobalTensor | LocalTensor, index: int, value: float) -> None:
    """Store one element from the scalar unit."""
    stream, access = _element("set_value", tensor, index)
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        fault("ILLEGAL_PARAM", "not-a-number", f"set_value: value must be a number, got {value!r}", tensor.name)
    stream.store_scalar(tensor, access, value)
