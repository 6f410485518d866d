"""Tensors at fixed addresses that share bytes while both are in use.

Whoever plans the memory may give two tensors one place, if the first is done with when the second comes. It is not
where it was written and read, then overwritten through the second by an instruction that did not read it, and then read
again as if nothing had happened. That is looked for in program order when a block ends, and only where such tensors
exist: two that share bytes, of which neither is a part of the other with the same element type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ascend_sim.naming import place_of
from ascend_sim.trace import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascend_sim.program import Program
    from ascend_sim.trace import CoreLog, Item
    from isa.access import Access
    from isa.types import DType, Space

MAX_NAMES = 256
"""Tensors whose variables are looked up."""


class Tensor(NamedTuple):
    """A window at a fixed address."""

    space: Space
    low: int
    high: int
    dtype: DType

    def at_odds(self, other: Tensor) -> bool:
        """Return whether two share bytes and are not simply a tensor and a part of it."""
        if self.space is not other.space or self.high <= other.low or other.high <= self.low:
            return False
        within = (self.low <= other.low and other.high <= self.high) or (
            other.low <= self.low and self.high <= other.high
        )
        return not within or self.dtype is not other.dtype


class Statics:
    """The tensors at fixed addresses that a program uses, with the variables that hold them."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._names: dict[tuple[str, DType], str] = {}

    def note(self, accesses: Sequence[Access]) -> None:
        """Take note of the tensors of an instruction that is issued for the first time at a place."""
        for access in accesses:
            if access.owner is not None or access.buffer is not None or access.low < 0:
                continue
            key = (access.name, access.dtype)
            if key not in self._names:
                self._names[key] = self._name(access) if len(self._names) < MAX_NAMES else ""

    def _name(self, access: Access) -> str:
        """Return the variable, as the first core of a kind calls it: looking through all of them takes long."""
        program = self._program
        known = program.session.tensor_names
        key = (program.core_kind, access.name, access.dtype)
        name = known.get(key)
        if name is None:
            name = known[key] = program.variables(outermost=True).of(access)
        return name

    def look_over(self, log: CoreLog) -> None:
        """Report what the core's last program reads again though another tensor has taken its place."""
        tensors = {}
        for name, dtype in self._names:
            space, low, high = place_of(name)
            if space is not None:
                tensors[name, dtype] = Tensor(space, low, high, dtype)
        numbers = {key: number for number, key in enumerate(tensors)}
        odds: dict[Space, set[tuple[int, int]]] = {}
        for one, other in _meeting(tensors):
            pair = sorted((numbers[one], numbers[other]))
            odds.setdefault(tensors[one].space, set()).add((pair[0], pair[1]))
        if odds:
            items = log.items[log.firsts[-1] :]
            for space, pairs in odds.items():
                self._look_over(space, items, numbers, pairs)

    def _look_over(
        self,
        space: Space,
        items: Sequence[Item],
        numbers: dict[tuple[str, DType], int],
        odds: set[tuple[int, int]],
    ) -> None:
        keys = list(numbers)
        bytes_ = _Bytes(self._program.core.memory_sizes[space], odds)
        for item in items:
            reads, writes = _accesses(item, space)
            for access in reads:
                found = bytes_.read(item, access, numbers.get((access.name, access.dtype), -1))
                if found is not None:
                    self._report(item, access, *found, keys)
            for access in writes:
                touched = any(access.overlaps(other) for other in reads)
                number = numbers.get((access.name, access.dtype), -1)
                bytes_.write(item, access, number, touched=touched)

    def _report(
        self, item: Item, access: Access, written: Item, killer: Item, other: int, low: int, high: int,
        keys: Sequence[tuple[str, DType]],
    ) -> None:  # fmt: skip
        session = self._program.session
        mine, theirs = self.called(access.name, access.dtype), self.called(*keys[other])
        session.report(
            "ALIAS",
            "live-tensors-overlap",
            f"{item.name} reads {mine}, but {killer.name} at {session.where_text(killer.site)} has overwritten its "
            f"bytes {low} to {high} through {theirs} since {written.name} at {session.where_text(written.site)} wrote "
            f"them: two tensors that are both in use share these bytes. Give one of them a place of its own",
            item.site,
            self._program.core.name,
            item.pipe.name,
            access.name,
            (low, high),
            struck=True,
        )

    def called(self, place: str, dtype: DType) -> str:
        """Return a tensor's place with the variable that holds it, or with its type."""
        return f"{place} ({self._names.get((place, dtype)) or dtype})"


def _meeting(
    tensors: dict[tuple[str, DType], Tensor],
) -> Iterator[tuple[tuple[str, DType], tuple[str, DType]]]:
    """Yield the pairs of tensors that are at odds."""
    ordered = sorted(tensors.items(), key=lambda entry: (int(entry[1].space), entry[1].low))
    open_: list[tuple[tuple[str, DType], Tensor]] = []
    for key, tensor in ordered:
        open_ = [
            (other, one)
            for other, one in open_
            if one.space is tensor.space and one.high > tensor.low
        ]
        for other, one in open_:
            if tensor.at_odds(one):
                yield other, key
        open_.append((key, tensor))


def _accesses(item: Item, space: Space) -> tuple[list[Access], list[Access]]:
    """Return what an item reads and writes of a memory, special registers and tensors of owners left out."""
    call: Any = item.call
    if item.kind is not Kind.INSTRUCTION or call is None:
        return [], []
    access = getattr(call, "access", None)
    if access is not None:  # of the scalar unit
        both: tuple[Sequence[Access], Sequence[Access]] = (
            ((), (access,)) if item.name == "set_value" else ((access,), ())
        )
    else:
        both = getattr(call, "reads", ()), getattr(call, "writes", ())
    return (
        [a for a in both[0] if a.space is space and a.owner is None and a.buffer is None and a.low >= 0],
        [a for a in both[1] if a.space is space and a.owner is None and a.buffer is None and a.low >= 0],
    )  # fmt: skip


class _Bytes:
    """For each byte of a memory: through which tensor it was written last, and whose value that has destroyed."""

    def __init__(self, size: int, odds: set[tuple[int, int]]) -> None:
        self._odds = odds  # pairs of tensors, by number
        self._writer = np.full(size, -1, np.int32)
        self._used: NDArray[np.bool_] = np.zeros(size, bool)  # read through that tensor since
        self._victim = np.full(size, -1, np.int32)
        self._written = np.zeros(size, np.int64)  # place of the last write in `_items`
        self._lost = np.zeros(size, np.int64)  # place of the victim's write
        self._items: list[Item | None] = [None]

    def _at_odds(self, a: int, b: int) -> bool:
        return (min(a, b), max(a, b)) in self._odds

    def read(
        self, item: Item, access: Access, number: int
    ) -> tuple[Item, Item, int, int, int] | None:
        """Take a read; return the victim's write, the one that destroyed it, through what, and the bytes."""
        for low, high in access.ranges().tolist():
            hit = np.flatnonzero(self._victim[low:high] == number)
            if len(hit) and number >= 0:
                first, last = low + int(hit[0]), low + int(hit[-1]) + 1
                written = self._items[int(self._lost[first])]
                killer = self._items[int(self._written[first])]
                other = int(self._writer[first])
                self._victim[low:high] = -1
                assert written is not None and killer is not None
                return written, killer, other, first, last
            self._used[low:high] |= self._writer[low:high] == number
        return None

    def write(self, item: Item, access: Access, number: int, *, touched: bool) -> None:
        """Take a write; `touched`: by an instruction that reads some of these bytes, so that it changes a value."""
        self._items.append(item)
        for low, high in access.ranges().tolist():
            victim = self._victim[low:high]
            victim[victim == number] = -1
            before = self._writer[low:high]
            if not touched:
                for other in np.unique(before[self._used[low:high]]).tolist():
                    if other >= 0 and number >= 0 and self._at_odds(other, number):
                        destroyed = (before == other) & self._used[low:high]
                        victim[destroyed] = other
                        self._lost[low:high][destroyed] = self._written[low:high][destroyed]
            self._writer[low:high] = number
            self._written[low:high] = len(self._items) - 1
            self._used[low:high] = False
