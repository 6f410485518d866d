"""The scalar unit's accesses to tensors: one element at a time."""

from __future__ import annotations

from typing import Any

from isa.access import Access, check_bounds
from isa.arguments import check_scalar, is_whole
from isa.faults import fault
from isa.stream import current
from isa.tensor import GlobalTensor, LocalTensor
from isa.types import Space


def _element(name: str, tensor: GlobalTensor | LocalTensor, index: Any) -> tuple[Any, Access]:
    stream = current.get(None)
    if stream is None:
        fault("HOST", "no-kernel", f"{name} was called outside a kernel")
    if isinstance(tensor, GlobalTensor) and tensor.buffer is None:
        fault("HOST", "unbound-tensor", f"{name}: a GlobalTensor is used before set_global_buffer")
    if not is_whole(index) or index < 0:
        fault(
            "BOUNDS",
            "element-index",
            f"{name}: index must be a whole number of at least 0, got {index!r}",
            tensor.name,
            pipe="S",
        )
    if tensor.space not in (Space.GM, Space.UB):
        fault(
            "ILLEGAL_PARAM",
            "wrong-position",
            f"{name}: {tensor.name} is in {tensor.space.name}; the scalar unit reaches GM and UB only",
            tensor.name,
        )
    size = tensor.dtype.size
    base = (tensor.offset if isinstance(tensor, GlobalTensor) else tensor.addr) + int(index) * size
    access = Access(tensor, base, (1,), (size,), tensor.dtype)
    capacity = 0 if tensor.space is Space.GM else stream.capacity(tensor.space)
    check_bounds(access, tensor, f"{name}({index}):", capacity, "S")
    return stream, access


def get_value(tensor: GlobalTensor | LocalTensor, index: int = 0) -> int | float:
    """Return element `index` as a Python number. The scalar unit waits for it; GM and UB only."""
    stream, access = _element("get_value", tensor, index)
    return stream.load_scalar(tensor, access)  # type: ignore[no-any-return]


def get_index(tensor: LocalTensor, index: int) -> int:
    """Return element `index` as `get_value` does, 0 where nothing is computed: nothing but a number hangs on it."""
    stream, access = _element("get_value", tensor, index)
    return int(stream.load_scalar(tensor, access, 0))


def set_value(tensor: GlobalTensor | LocalTensor, index: int, value: float) -> None:
    """Store a number in element `index` from the scalar unit; GM and UB only.

    Integer types drop a fraction, as C++ does; a number that does not fit is a fault.
    """
    stream, access = _element("set_value", tensor, index)
    number = check_scalar("set_value", value, tensor.dtype, "value", pipe="S", tensor=tensor.name)
    stream.store_scalar(tensor, access, number)
