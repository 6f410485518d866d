"""Automatic synchronisation, as the compiler inserts it on vector cores.

Between dependent vector instructions it puts a barrier of pipe V, around scalar accesses to UB and GM it
puts flags between the scalar unit and V, MTE2 or MTE3. It never orders MTE2, V and MTE3 among each other: that is
the queues' or the kernel's own job. What it inserts is marked in the trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isa.types import HardEvent, Pipe

if TYPE_CHECKING:
    from ascend_sim.program import Program
    from isa.access import Access
    from isa.instruction import Call

_EVENT_ID = 7
"""The id that inserted flags use; ids 6 and 7 are reserved for automatic synchronisation."""

_INTO_SCALAR = {Pipe.V: HardEvent.V_S, Pipe.MTE2: HardEvent.MTE2_S, Pipe.MTE3: HardEvent.MTE3_S}
_FROM_SCALAR = {Pipe.V: HardEvent.S_V, Pipe.MTE2: HardEvent.S_MTE2, Pipe.MTE3: HardEvent.S_MTE3}


class AutoSync:
    """What is outstanding on one core, in program order."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._open: dict[Pipe, list[tuple[Access, bool]]] = {pipe: [] for pipe in _INTO_SCALAR}
        self._scalar: list[tuple[Access, bool]] = []

    def before(self, call: Call, site: int) -> None:
        """Insert what an instruction needs before it is queued."""
        pipe = call.pipe
        outstanding = self._open.get(pipe)
        if outstanding is None:
            return
        accesses = [(access, False) for access in call.reads] + [(access, True) for access in call.writes]
        if self._scalar and _conflict(self._scalar, accesses):
            self._fence(_FROM_SCALAR[pipe], site)
            self._scalar.clear()
        if pipe is Pipe.V and _conflict(outstanding, accesses):
            self._program.insert_barrier(pipe, site)
            outstanding.clear()
        outstanding += accesses
        if len(outstanding) > 64:
            del outstanding[:-64]

    def before_scalar(self, access: Access, site: int, *, write: bool) -> None:
        """Insert what a scalar access needs before it."""
        mine = [(access, write)]
        for pipe, outstanding in self._open.items():
            if _conflict(outstanding, mine):
                self._fence(_INTO_SCALAR[pipe], site)
                outstanding.clear()
        if write:
            self._scalar.append((access, True))

    def _fence(self, event: HardEvent, site: int) -> None:
        self._program.set_flag(event, _EVENT_ID, inserted=True, site=site)
        self._program.wait_flag(event, _EVENT_ID, inserted=True, site=site)


def _conflict(earlier: list[tuple[Access, bool]], later: list[tuple[Access, bool]]) -> bool:
    return any(
        (old_write or new_write) and old.space is new.space and old.overlaps(new)
        for old, old_write in earlier
        for new, new_write in later
    )
