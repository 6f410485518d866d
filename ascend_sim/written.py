"""Which bytes of one core's memories hold something that somebody wrote, and reads of those that do not."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

import numpy as np

from isa.access import Access
from isa.cube_forms import LoadCall

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascend_sim.program import Program
    from ascend_sim.trace import Item
    from isa.tensor import Owner
    from isa.types import Space


class _Memory:
    """The written bytes of one memory: ranges without gaps, and what patterns with gaps add, a bit for each byte."""

    __slots__ = ("_bits", "_ends", "_size", "_starts")

    def __init__(self, size: int) -> None:
        self._size = size
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._bits: NDArray[np.bool_] | None = None

    def covers(self, low: int, high: int) -> bool:
        """Return whether a range holds all bytes from `low` to `high`; `bits` may know more."""
        place = bisect_right(self._starts, low)
        return place > 0 and self._ends[place - 1] >= high

    def add(self, low: int, high: int) -> None:
        """Enter a range."""
        starts, ends = self._starts, self._ends
        first, past = bisect_left(ends, low), bisect_right(starts, high)
        if first < past:  # it meets others
            low, high = min(low, starts[first]), max(high, ends[past - 1])
        starts[first:past] = [low]
        ends[first:past] = [high]

    def remove(self, low: int, high: int) -> None:
        """Take the bytes from `low` to `high` for unwritten."""
        self.cut(low, high)
        if self._bits is not None:
            self._bits[low:high] = False

    def cut(self, low: int, high: int) -> None:
        """Let `bits` alone tell of the bytes from `low` to `high`."""
        starts, ends = self._starts, self._ends
        first, past = bisect_right(ends, low), bisect_left(starts, high)
        if first < past:
            before, after = starts[first], ends[past - 1]
            left, right = before < low, after > high
            starts[first:past] = [before] * left + [high] * right
            ends[first:past] = [low] * left + [after] * right

    def bits(self) -> NDArray[np.bool_]:
        """Return a bit for each byte, which may be changed where `cut` has been."""
        if self._bits is None:
            self._bits = np.zeros(self._size, bool)
        for low, high in zip(self._starts, self._ends, strict=True):
            self._bits[low:high] = True
        return self._bits


class Written:
    """What has been written of a core's memories from the start of its block on."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._session = program.session
        self._memories = {space: _Memory(size) for space, size in program.core.memory_sizes.items()}
        self._hollow: list[tuple[Access, int]] = []  # loads of bytes that nothing had written
        self._complete: set[int] = set()  # calls whose reads have been found written
        self._marked: set[int] = set()  # calls whose writes have been marked
        self._calls_of: dict[int, set[int]] = {}  # those of both that use an owner's bytes

    def scalar(self, item: Item, access: Access, *, write: bool) -> None:
        """Take an access of the scalar unit."""
        memory = self._memories[access.space]
        if write:
            memory.add(access.low, access.high)
        elif not memory.covers(access.low, access.high):
            self._check_written(item, access)

    def instruction(self, item: Item) -> None:
        """Look over what an instruction reads, and mark what it writes."""
        call = item.call
        template = call.template
        identity = id(template)
        if identity not in self._complete and not self._look_at_sources(item, identity):
            return
        undefined = template.undefined
        if identity in self._marked and not undefined:
            return
        target = call.writes[0]
        if target.buffer is None:
            memory = self._memories[target.space]
            if undefined:
                self._mark_but(memory, target, undefined)
            elif target.low < 0:  # a special register, which always holds something
                pass
            elif target.contiguous:
                memory.add(target.low, target.high)
            elif not memory.covers(target.low, target.high):
                _mark(memory, target)
        if not undefined:
            self._marked.add(identity)
            if target.owner is not None:
                self._calls_of.setdefault(target.owner.serial, set()).add(identity)

    def _mark_but(self, memory: _Memory, target: Access, undefined: tuple[Access, ...]) -> None:
        """Mark what an instruction writes, but for bytes with values that must not be used."""
        bits = memory.bits()
        lost = any(access.byte_view(bits).any() for access in undefined)
        _mark(memory, target)
        for access in undefined:
            memory.cut(access.low, access.high)
            access.byte_view(bits)[...] = False
        if lost:
            self._start_anew()

    def _look_at_sources(self, item: Item, identity: int) -> bool:
        """Check that what a call reads has been written; return False where it has marked its writes itself."""
        call = item.call
        moves_only = isinstance(call, LoadCall)
        for access in call.reads:
            if access.buffer is None:
                memory = self._memories[access.space]
                if memory.covers(access.low, access.high):
                    pass
                elif moves_only:
                    written = access.byte_view(memory.bits()).all(axis=-1)
                    if not written.all():
                        self._load_partly(item, written)
                        return False
                else:
                    self._check_written(item, access)
                if access.owner is not None:
                    self._calls_of.setdefault(access.owner.serial, set()).add(identity)
        self._complete.add(identity)
        return True

    def _load_partly(self, item: Item, written: NDArray[np.bool_]) -> None:
        """Take a load of elements of which only some have been written: the others arrive as unwritten ones."""
        target = item.call.writes[0]
        memory = self._memories[target.space]
        view = target.byte_view(memory.bits())
        arrived = item.call.arrives(written)[..., None]
        lost = bool((view & ~arrived).any())
        memory.cut(target.low, target.high)
        view[...] = arrived
        if lost:
            self._start_anew()
        self._hollow = [load for load in self._hollow if not target.covers(load[0])]
        self._hollow.append((target, item.site))

    def _start_anew(self) -> None:
        """Forget which calls need no further look: bytes that they use have become unwritten."""
        self._complete.clear()
        self._marked.clear()

    def forget(self, owner: Owner, space: Space, address: int, length: int) -> None:
        """Take a buffer's bytes for unwritten: a queue has handed them out anew."""
        self._memories[space].remove(address, address + length)
        for identity in self._calls_of.pop(owner.serial, ()):
            self._complete.discard(identity)
            self._marked.discard(identity)

    def _check_written(self, item: Item, access: Access) -> None:
        memory = self._memories[access.space]
        view = access.byte_view(memory.bits())
        written = (
            view.all()
            if access.lanes is None
            else view[np.broadcast_to(access.lanes, access.shape)].all()
        )
        if not written:
            self._uninitialised(item, access)
        elif (
            access.contiguous and type(access) is Access
        ):  # others look at their bytes in ways of their own
            memory.add(access.low, access.high)  # now that it is known

    def _uninitialised(self, item: Item, access: Access) -> None:
        bits = self._memories[access.space].bits()
        for low, high in access.ranges().tolist():
            missing = np.flatnonzero(~bits[low:high])
            if len(missing):
                first = low + int(missing[0])
                cure = "Load or fill it first, or shorten the operand"
                for load, site in reversed(self._hollow):
                    if load.space is access.space and load.low <= first < load.high:
                        cure = (
                            f"The load at {self._session.where_text(site)} took it from L1 bytes that nothing had "
                            f"written: fill them, or shorten the operand"
                        )
                        break
                self._session.report(
                    "UNINIT",
                    "uninitialised-read",
                    f"{item.name} reads {access.name}, {access.space.name} bytes {access.low} to {access.high}, but "
                    f"nothing has written byte {first} (byte {first - access.low} of the operand). {cure}",
                    item.site,
                    self._program.core.name,
                    item.pipe.name,
                    access.name,
                    (first, low + int(missing[-1]) + 1),
                    struck=True,
                )
                return


def _mark(memory: _Memory, target: Access) -> None:
    """Mark bytes with gaps between them."""
    view = target.byte_view(memory.bits())
    if target.lanes is None:
        view[...] = True
    else:
        np.copyto(view, True, where=target.lanes[..., None])
