"""`asc.jit(insert_sync=True)`: what pyasc's own pass makes of a kernel's synchronisation, as far as release 1.1.1 goes.

The pass takes out the kernel's flags and barriers and puts in its own: a barrier of V after each instruction on a
tensor that the kernel placed itself or got from a TBuf; from the pipe that fills a `LocalTensorAuto` to the pipe that
uses it, the event that a queue would have; flags between V and the scalar unit around each scalar access; a barrier of
all pipes at the end. It orders nothing else: not a copy before V on a tensor that the kernel placed, and nobody before
the one who overwrites a tensor. Queues keep their events. What it puts in is marked in the trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isa.types import HardEvent, Pipe, Space

if TYPE_CHECKING:
    from ascend_sim.program import Program
    from isa.access import Access
    from isa.instruction import Call

_FILLED = {
    (Pipe.MTE2, Pipe.V): HardEvent.MTE2_V,
    (Pipe.V, Pipe.MTE3): HardEvent.V_MTE3,
    (Pipe.MTE2, Pipe.MTE3): HardEvent.MTE2_MTE3,
}
"""(who fills, who uses): the event between them."""


class InsertSync:
    """What the pass has to remember of one core: who filled each tensor that the compiler placed."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._filler: dict[int, Pipe] = {}  # by first byte: the pipe that wrote it last
        self._handed: dict[int, set[Pipe]] = {}  # the pipes that have waited for it since
        self._loaded: set[int] = set()  # tensors that MTE2 has filled at any time
        self.placed: list[tuple[int, int]] = []  # (first byte, past the last) of LocalTensorAuto

    def before(self, call: Call, site: int) -> None:
        """Put in what an instruction waits for."""
        for access in call.reads:
            base = self._auto(access)
            if base is None or base not in self._filler:
                continue
            filler = self._filler[base]
            event = _FILLED.get((filler, call.pipe))
            if event is None or call.pipe in self._handed[base]:
                continue
            if call.pipe is Pipe.MTE3 and base in self._loaded and filler is not Pipe.MTE2:
                self._loaded_and_stored(access, site)
            self._fence(event, site)
            self._handed[base].add(call.pipe)

    def after(self, call: Call, site: int) -> None:
        """Take note of what an instruction fills; put in the barrier that follows it."""
        barrier = False
        for access in (*call.writes, *call.reads):
            if access.space is not Space.UB:
                continue
            if self._auto(access) is None and (
                access.owner is None or access.owner.serial in self._program.plain
            ):
                barrier = True
        for access in call.writes:
            base = self._auto(access)
            if base is not None:
                self._filler[base] = call.pipe
                self._handed[base] = set()
                if call.pipe is Pipe.MTE2:
                    self._loaded.add(base)
        if barrier:
            self._program.insert_barrier(Pipe.V, site)

    def around_scalar(self, access: Access, site: int, *, after: bool) -> None:
        """Put in the flags before, or after, a scalar access to UB."""
        if access.space is Space.UB:
            self._fence(HardEvent.S_V if after else HardEvent.V_S, site)

    def _auto(self, access: Access) -> int | None:
        """Return the first byte of the LocalTensorAuto that holds the bytes; None where none does."""
        if access.space is not Space.UB or access.owner is not None:
            return None
        for low, high in self.placed:
            if low <= access.low < high:
                return low
        return None

    def _fence(self, event: HardEvent, site: int) -> None:
        program = self._program
        event_id = program.peek_event(event)
        program.set_flag(event, event_id, inserted=True, site=site)
        program.wait_flag(event, event_id, inserted=True, site=site)

    def _loaded_and_stored(self, access: Access, site: int) -> None:
        program = self._program
        program.session.report(
            "RACE",
            "insert-sync-event",
            f"{access.name}: pyasc gives a LocalTensorAuto that is loaded and stored a queue at VECOUT, and its event "
            f"V_MTE3 does not make V wait for the load: on the device V may read before it is through. Use one "
            f"LocalTensorAuto for what is loaded and another for what is stored",
            site,
            program.core.name,
            "V",
            access.name,
            (access.low, access.high),
        )
