"""Automatic synchronisation, as the compiler inserts it on vector cores.

Between dependent vector instructions it puts a barrier of pipe V, around scalar accesses to UB and GM it puts
flags between the scalar unit and V, MTE2 or MTE3. It never orders MTE2, V and MTE3 among each other: that is
the queues' or the kernel's own job. Where the kernel's own flags and barriers order two instructions already, it puts
nothing. What it inserts is marked in the trace.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ascend_sim.trace import Kind
from isa.types import HardEvent, Pipe

if TYPE_CHECKING:
    from ascend_sim.program import Program
    from ascend_sim.trace import Item
    from isa.access import Access
    from isa.instruction import Call

_EVENT_ID = 7
"""The id that inserted flags use; ids 6 and 7 are reserved for automatic synchronisation."""

_RECENT = 32
"""Instructions of V that may overlap with a new one: at least the last 16."""

_S, _V = Pipe.S, Pipe.V
_INTO_SCALAR = {Pipe.V: HardEvent.V_S, Pipe.MTE2: HardEvent.MTE2_S, Pipe.MTE3: HardEvent.MTE3_S}
_FROM_SCALAR = {Pipe.V: HardEvent.S_V, Pipe.MTE2: HardEvent.S_MTE2, Pipe.MTE3: HardEvent.S_MTE3}
_SET, _WAIT, _BARRIER = Kind.SET_FLAG, Kind.WAIT_FLAG, Kind.BARRIER

Accesses = dict[tuple[int, int], tuple[int, "Access"]]
"""(pattern, first byte): number of the instruction, and the bytes that it touches."""


class _Touched:
    """What a pipe's instructions have read and written since the scalar unit waited for it, by memory."""

    def __init__(self) -> None:
        self.reads: dict[int, Accesses] = {}
        self.writes: dict[int, Accesses] = {}

    def add(self, number: int, accesses: tuple[Access, ...], *, write: bool) -> None:
        """Take note of an instruction's accesses."""
        by_place = self.writes if write else self.reads
        for access in accesses:
            found = by_place.setdefault(access.place, {})
            found[id(access.origin), access.base] = (number, access)

    def conflicts(self, access: Access, known: int, *, write: bool) -> bool:
        """Return whether an instruction after number `known` writes these bytes, or reads what is to be written."""
        for by_place in (self.writes, self.reads) if write else (self.writes,):
            for number, other in by_place.get(access.place, {}).values():
                if number > known and other.overlaps(access):
                    return True
        return False

    def clear(self) -> None:
        """Forget everything."""
        self.reads.clear()
        self.writes.clear()


class AutoSync:
    """What is outstanding on one core, in program order.

    Instructions are numbered by pipe. `_known[a][b]` is the number up to which pipe a's next instruction is sure
    that those of pipe b are complete: barriers and flags carry it on, a kernel's own as well as inserted ones.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._count = [0] * len(Pipe)
        self._known = [[0] * len(Pipe) for _ in Pipe]
        self._flags: dict[int, deque[list[int]]] = {}
        self._recent: deque[tuple[int, tuple[Access, ...], tuple[Access, ...]]] = deque(
            maxlen=_RECENT
        )
        self._touched = {pipe: _Touched() for pipe in _INTO_SCALAR}
        self._stores: dict[int, list[list[int]]] = {}  # of S, by memory: number, low, high

    # ---- what the kernel orders itself ------------------------------------------------------

    def see(self, item: Item) -> None:
        """Learn from a flag or a barrier that is queued."""
        kind, pipe = item.kind, item.pipe
        if kind is _SET and item.event is not None:
            carried = list(self._known[pipe])
            carried[pipe] = self._count[pipe]
            self._flags.setdefault(item.flag, deque()).append(carried)
        elif kind is _WAIT and item.event is not None:
            waiting = self._flags.get(item.flag)
            if waiting:
                self._learn(pipe, waiting.popleft())
        elif kind is _BARRIER and pipe is not _S:
            self._known[pipe][pipe] = self._count[pipe]
        elif kind is _BARRIER:
            pipes = [one for one in Pipe if item.flag < 0 or item.flag >> one & 1]
            self._learn(_S, [self._count[one] if one in pipes else 0 for one in Pipe])

    def _learn(self, pipe: Pipe, carried: list[int]) -> None:
        # What the scalar unit knows, every pipe knows that gets its instructions from there on.
        for one in Pipe if pipe is _S else (pipe,):
            known = self._known[one]
            self._known[one] = [max(*pair) for pair in zip(known, carried, strict=True)]

    # ---- what it inserts --------------------------------------------------------------------

    def before(self, call: Call, site: int) -> None:
        """Insert what an instruction needs before it is queued."""
        pipe = call.pipe
        if pipe not in self._touched:
            return
        if self._stores and self._after_store(pipe, (*call.reads, *call.writes)):
            self._fence(_FROM_SCALAR[pipe], site)
        if pipe is _V:
            if self._depends(call):
                self._program.insert_barrier(pipe, site)
            self._recent.append((self._count[_V] + 1, call.reads, call.writes))
        self._count[pipe] += 1
        touched = self._touched[pipe]
        touched.add(self._count[pipe], call.reads, write=False)
        touched.add(self._count[pipe], call.writes, write=True)

    def before_scalar(self, access: Access, site: int, *, write: bool) -> None:
        """Insert what a scalar access needs before it."""
        for pipe, touched in self._touched.items():
            if touched.conflicts(access, self._known[_S][pipe], write=write):
                self._fence(_INTO_SCALAR[pipe], site)
                touched.clear()
        if write:
            self._count[_S] += 1
            self._note_store(self._count[_S], access)

    def _depends(self, call: Call) -> bool:
        known = self._known[_V][_V]
        for number, reads, writes in reversed(self._recent):
            if number <= known:
                return False
            if _overlap(writes, call.reads) or _overlap((*reads, *writes), call.writes):
                return True
        return False

    def _note_store(self, number: int, access: Access) -> None:
        stores = self._stores.setdefault(access.place, [])
        if stores and stores[-1][2] == access.low:  # element after element, as loops store
            stores[-1][0], stores[-1][2] = number, access.high
        else:
            stores.append([number, access.low, access.high])

    def _after_store(self, pipe: Pipe, accesses: tuple[Access, ...]) -> bool:
        """Return whether the scalar unit has stored into these bytes, and the pipe does not know that it is through."""
        known = self._known[pipe][_S]
        for access in accesses:
            for number, low, high in reversed(self._stores.get(access.place, [])):
                if number <= known:
                    break
                if low < access.high and access.low < high:
                    return True
        return False

    def _fence(self, event: HardEvent, site: int) -> None:
        self._program.set_flag(event, _EVENT_ID, inserted=True, site=site)
        self._program.wait_flag(event, _EVENT_ID, inserted=True, site=site)
        if all(self._known[pipe][_S] == self._count[_S] for pipe in _FROM_SCALAR):
            self._stores.clear()


def _overlap(some: tuple[Access, ...], others: tuple[Access, ...]) -> bool:
    return any(one.overlaps(other) for one in some for other in others)
