"""What a kernel calls its tensors: the variables of its functions, for messages.

A tensor at a fixed address is called by its bytes, "UB[0:256]", which says little to whoever wrote `scale`. The
kernel's frames are looked at when there is something to tell, and only then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from isa.tensor import LocalTensor
from isa.types import BLOCK_BYTES, Space

if TYPE_CHECKING:
    from types import CodeType, FrameType

    from isa.access import Access
    from isa.types import DType

_MANY = 64
"""Entries of a list that are looked at."""


class Variables:
    """The local tensors that the functions of a kernel have names for, the innermost function's first.

    With `outermost` those of the function that called the others come first.
    """

    def __init__(
        self,
        frame: FrameType | None,
        root: CodeType,
        is_library: Callable[[str], bool],
        *,
        outermost: bool = False,
    ) -> None:
        self._tensors: list[tuple[str, LocalTensor]] = []
        while frame is not None and frame.f_code is not root:
            if not is_library(frame.f_code.co_filename):
                for name, value in frame.f_locals.items():
                    self._tensors += [
                        found for found in _named(name, value) if found[1].owner is None
                    ]
            frame = frame.f_back
        if outermost:
            self._tensors.reverse()

    def of(self, access: Access) -> str:
        """Return the variable that holds what an access touches; see `at`."""
        return self.at(access.space, access.low, access.high, access.name, access.dtype)

    def at(
        self, space: Space, low: int, high: int, place: str = "", dtype: DType | None = None
    ) -> str:
        """Return the variable that holds some bytes: the one called `place`, else the smallest around them, or "".

        Of several that are called so it is one of the element type. Bytes behind a variable's start are an index of
        it: "x[16:]".
        """
        called = [(tensor, name) for name, tensor in self._tensors if tensor.name == place]
        for tensor, name in called:
            if dtype is None or tensor.dtype is dtype:
                return name
        if called:
            return called[0][1]
        around = [
            (tensor.length, name, tensor)
            for name, tensor in self._tensors
            if tensor.space is space and tensor.addr <= low and high <= tensor.addr + tensor.length
        ]
        if not around:
            return ""
        _, name, tensor = min(around, key=lambda one: one[0])
        index, rest = divmod(low - tensor.addr, tensor.dtype.size)
        return name if index == 0 or rest else f"{name}[{index}:]"

    def others(self, space: Space, low: int, high: int) -> list[str]:
        """Return the variables that have bytes in a range."""
        found = [
            name
            for name, tensor in self._tensors
            if tensor.space is space and tensor.addr < high and low < tensor.addr + tensor.length
        ]
        return list(dict.fromkeys(found))

    def tell(self, message: str, place: str, byte_range: tuple[int, int] | None, code: str) -> str:
        """Return a message about the tensor called `place` with the variable's name, and with what is near."""
        space, start, end = place_of(place)
        if space is None:
            return message
        name = self.at(space, start, end, place)
        if name:
            message = message.replace(place, f"{place} ({name})", 1)
        if code == "misaligned-operand" and name:
            message += self._borders(space, start, end)
        if byte_range is not None and code in ("tensor-out-of-bounds", "memory-out-of-bounds"):
            behind = self.others(space, max(end, byte_range[0]), byte_range[1])
            if behind:
                message += f". Those bytes are {' and '.join(behind)}"
        return message

    def _borders(self, space: Space, low: int, high: int) -> str:
        """Say which elements of the tensor around some bytes do start on a border."""
        for name, tensor in self._tensors:
            if tensor.space is space and tensor.addr <= low and high <= tensor.addr + tensor.length:
                size = tensor.dtype.size
                first = low // BLOCK_BYTES * BLOCK_BYTES - tensor.addr
                if tensor.addr % BLOCK_BYTES == 0 and BLOCK_BYTES % size == 0 and first >= 0:
                    return (
                        f". The nearest elements of {name} on a border are elements {first // size} and "
                        f"{(first + BLOCK_BYTES) // size}"
                    )
        return ""


def _named(name: str, value: Any) -> Iterator[tuple[str, LocalTensor]]:
    """Yield the tensors behind a variable: itself, the entries of a list, the attributes of an object."""
    if isinstance(value, LocalTensor):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for index, entry in enumerate(value[:_MANY]):
            if isinstance(entry, LocalTensor):
                yield f"{name}[{index}]", entry
    elif isinstance(value, dict):
        for key, entry in list(value.items())[:_MANY]:
            if isinstance(entry, LocalTensor):
                yield f"{name}[{key!r}]", entry
    else:
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict):
            for key, entry in list(attributes.items())[:_MANY]:
                if isinstance(entry, LocalTensor):
                    yield f"{name}.{key}", entry


def place_of(place: str) -> tuple[Space | None, int, int]:
    """Return memory and bytes of a name such as "UB[0:256]"; no memory where it is another name."""
    head, _, rest = place.partition("[")
    low, _, high = rest.rstrip("]").partition(":")
    if head in Space.__members__ and low.isdigit() and high.isdigit():
        return Space[head], int(low), int(high)
    return None, 0, 0
