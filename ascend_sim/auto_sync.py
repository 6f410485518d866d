"""Automatic synchronisation, as the compiler inserts it on vector cores.

Between dependent vector instructions it puts a barrier of pipe V, around scalar accesses to UB and GM it
puts flags between the scalar unit and V, MTE2 or MTE3. It never orders MTE2, V and MTE3 among each other: that is
the queues' or the kernel's own job. What it inserts is marked in the trace.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from isa.types import HardEvent, Pipe

if TYPE_CHECKING:
    from ascend_sim.program import Program
    from isa.access import Access
    from isa.instruction import Call

_EVENT_ID = 7
"""The id that inserted flags use; ids 6 and 7 are reserved for automatic synchronisation."""

_WINDOW = 64
"""Accesses of V that may overlap with a new one: those of at least the last 16 instructions."""

_INTO_SCALAR = {Pipe.V: HardEvent.V_S, Pipe.MTE2: HardEvent.MTE2_S, Pipe.MTE3: HardEvent.MTE3_S}
_FROM_SCALAR = {Pipe.V: HardEvent.S_V, Pipe.MTE2: HardEvent.S_MTE2, Pipe.MTE3: HardEvent.S_MTE3}


class AutoSync:
    """What is outstanding on one core, in program order.

    A barrier of V orders V only, and a flag orders one pipe and the scalar unit only: each pair of units has its own
    list of what is still outstanding between the two.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._vector: list[tuple[Access, bool]] = []  # of V, since its last barrier
        self._into: dict[Pipe, dict[Any, tuple[Access, bool]]] = {pipe: {} for pipe in _INTO_SCALAR}
        self._from: dict[Pipe, list[tuple[Access, bool]]] = {pipe: [] for pipe in _FROM_SCALAR}

    def before(self, call: Call, site: int) -> None:
        """Insert what an instruction needs before it is queued."""
        pipe = call.pipe
        if pipe not in self._into:
            return
        accesses = [(access, False) for access in call.reads]
        accesses += [(access, True) for access in call.writes]
        scalar = self._from[pipe]
        if scalar and _conflict(scalar, accesses):
            self._fence(_FROM_SCALAR[pipe], site)
            scalar.clear()
        if pipe is Pipe.V:
            if _conflict(self._vector, accesses):
                self._program.insert_barrier(pipe, site)
                self._vector.clear()
            self._vector += accesses
            del self._vector[:-_WINDOW]
        into = self._into[pipe]
        for access, write in accesses:
            into[id(access.origin), access.base, write] = (access, write)

    def barrier(self, pipe: Pipe | None) -> None:
        """Take note of a barrier that the kernel itself has."""
        if pipe is None or pipe is Pipe.V:
            self._vector.clear()
        if pipe is None:
            for into in self._into.values():
                into.clear()

    def before_scalar(self, access: Access, site: int, *, write: bool) -> None:
        """Insert what a scalar access needs before it."""
        mine = [(access, write)]
        for pipe, into in self._into.items():
            if _conflict(into.values(), mine):
                self._fence(_INTO_SCALAR[pipe], site)
                into.clear()
        if write:
            for scalar in self._from.values():
                scalar.append((access, True))

    def _fence(self, event: HardEvent, site: int) -> None:
        self._program.set_flag(event, _EVENT_ID, inserted=True, site=site)
        self._program.wait_flag(event, _EVENT_ID, inserted=True, site=site)


def _conflict(earlier: Iterable[tuple[Access, bool]], later: list[tuple[Access, bool]]) -> bool:
    return any(
        (old_write or new_write) and old.space is new.space and old.overlaps(new)
        for old, old_write in earlier
        for new, new_write in later
    )
