"""Which instructions had a hand in an element: who wrote the bytes, and who wrote what those read.

Kept by instruction, not by element: an instruction is taken to make all that it writes of all that it reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ascend_sim.trace import Item
    from isa.access import Access

Array = np.ndarray[Any, Any]


class Lineage:
    """The last writer of every two bytes of every memory, and what each writer was made of. Numbers begin at 1."""

    def __init__(self) -> None:
        self._items: list[Item | None] = [None]
        self._parents: list[tuple[int, ...]] = [()]
        self._memories: dict[Any, Array] = {}

    def _writers(self, core: int, access: Access, data: Array) -> Array:
        """Return the entries of an access: (…, entries an element), or all between its first and last byte."""
        key = access.buffer.index if access.buffer is not None else (core, access.space)
        memory = self._memories.get(key)
        if memory is None:
            memory = self._memories[key] = np.zeros((data.nbytes + 1) // 2, np.int32)
        size = access.dtype.size
        if size % 2 or access.base % 2 or any(stride % 2 for stride in access.strides):
            return memory[access.low // 2 : (access.high + 1) // 2]
        strides = (*(stride * 2 for stride in access.strides), 4)
        shape = (*access.shape, size // 2)
        return np.ndarray(shape, memory.dtype, memory, access.base * 2, strides)

    def read(self, core: int, accesses: Iterable[Access], memories: Any) -> tuple[int, ...]:
        """Return the writers of what an instruction is about to read."""
        found: set[int] = set()
        for access in accesses:
            if access.low >= 0:  # no special register
                found.update(np.unique(self._writers(core, access, memories(access))).tolist())
        return tuple(sorted(found - {0}))

    def write(self, item: Item, parents: tuple[int, ...], memories: Any) -> None:
        """Take an instruction that has written its result, which `parents` went into."""
        number = len(self._items)
        self._items.append(item)
        made_of = set(parents)
        for access in item.call.writes:
            if access.low < 0:
                continue
            writers = self._writers(item.core, access, memories(access))
            if access.lanes is not None or item.call.atomic is not None:  # not all is new
                made_of.update(np.unique(writers).tolist())
            writers[...] = number
        self._parents.append(tuple(sorted(made_of - {0})))

    def writers_of(self, access: Access, data: Array) -> Array:
        """Return the number of the last writer of each element of an allocation, 0 where there is none."""
        writers = self._writers(0, access, data)
        if writers.shape[:-1] == access.shape:
            return writers[..., 0].copy()
        place = (access.base + np.arange(access.elements) * access.dtype.size) // 2
        return np.asarray(writers[place - access.low // 2].reshape(access.shape))

    def item(self, number: int) -> Item:
        """Return an instruction by its number."""
        item = self._items[number]
        assert item is not None
        return item

    def descent(self, number: int) -> list[Item]:
        """Return an instruction, the last of those that it was made of, the last of those, and so on."""
        found = []
        while number:
            found.append(self.item(number))
            number = max((one for one in self._parents[number] if one < number), default=0)
        return found

    def ancestors(self, numbers: Iterable[int]) -> set[int]:
        """Return some instructions and all that had a hand in what they wrote."""
        found: set[int] = set()
        todo = [number for number in numbers if number]
        while todo:
            number = todo.pop()
            if number not in found:
                found.add(number)
                todo += [one for one in self._parents[number] if one not in found]
        return found
