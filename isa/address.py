"""Addresses in GM: an allocation, and a typed place in it. What kernels get for their tensor arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isa.arguments import is_whole
from isa.faults import fault
from isa.types import DType

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class GmBuffer:
    """One GM allocation: `data` is its bytes, `name` what messages call it."""

    __slots__ = ("data", "index", "name", "nbytes", "scratch")

    def __init__(self, name: str, data: NDArray[np.uint8], index: int = 0) -> None:
        self.name = name
        self.data = data
        self.nbytes = data.nbytes
        self.index = index
        self.scratch: Any = None

    def __repr__(self) -> str:
        return f"<GM {self.name}: {self.nbytes} B>"


class GlobalAddress:
    """A typed address in GM: a kernel's tensor argument. `address + n` moves by n elements."""

    __slots__ = ("buffer", "dtype", "length", "offset", "origin", "shape")

    def __init__(
        self,
        buffer: GmBuffer,
        dtype: DType,
        offset: int = 0,
        length: int | None = None,
        shape: tuple[int, ...] = (),
    ) -> None:
        self.buffer = buffer
        self.dtype = dtype
        self.offset = offset
        self.origin = offset
        self.length = buffer.nbytes - offset if length is None else length
        self.shape = shape

    def copy(self) -> GlobalAddress:
        """Return the same address as an object of its own."""
        return self + 0

    def __add__(self, elements: int) -> GlobalAddress:
        moved = GlobalAddress(self.buffer, self.dtype, 0, self.length, self.shape)
        moved.origin = self.origin
        moved.offset = self.offset + whole("address + n: n", elements) * self.dtype.size
        return moved

    __radd__ = __add__

    def __repr__(self) -> str:
        return f"<GlobalAddress {self.buffer.name}+{self.offset} B {self.dtype}>"


def whole(what: str, value: Any, low: int | None = None) -> int:
    """Return a tensor method's argument as an int; fault unless it is a whole number of at least `low`."""
    if not is_whole(value) or (low is not None and value < low):
        limit = "" if low is None else f" of at least {low}"
        fault(
            "ILLEGAL_PARAM",
            "not-an-integer",
            f"{what} must be a whole number{limit}, got {value!r}",
        )
    return int(value)
