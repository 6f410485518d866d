"""How long a recording takes, and nothing else: the machine's rules for vector cores without its records.

What `core` and `pipes` do item by item for people to look at, this does for the total: no item is made, flags are
numbers, prices are looked up once a step. Only kernels whose cores are ordered by nothing but their own flags and
barriers are taken; the machine replays the others. Both give the same cycles (tests compare them on every kernel).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascend_sim.cost import price, whole
from ascend_sim.errors import DeadlockError, Finding
from ascend_sim.placement import vector_only
from ascend_sim.playback import ReplaySession
from ascend_sim.quick_lanes import (
    BARRIER,
    COMPUTE,
    LOCAL,
    MOVE,
    OWN_BARRIER,
    OWN_SET,
    OWN_WAIT,
    READ_GM,
    SET,
    SPEND,
    WAIT,
    Clock,
    Operation,
    QuickCore,
)
from ascend_sim.recording import Recording, Scalar, Step, gm_side
from ascend_sim.trace import Kind
from isa.instruction import Call
from isa.types import CacheMode, Pipe

if TYPE_CHECKING:
    from ascend_sim.config import Chip
    from ascend_sim.core import Core


class NotQuick(Exception):
    """A recording has a step that only the machine knows."""


def quick_cycles(
    recording: Recording, chip: Chip, *, l2: str = "cold", physical_cores: int
) -> tuple[int, dict[str, int]]:
    """Return the cycles of a recording on a chip, and what L2 did. Raises NotQuick where the machine has to tell.

    The options are those of `Recording.replay`, checked.
    """
    if not vector_only(recording.kernel_type):
        raise NotQuick
    flags: dict[int, int] = {}
    session = QuickSession(recording, chip, physical_cores)
    session.operations = [_operation(step, session, flags) for step in recording.steps]
    for operation, step in zip(session.operations, recording.steps, strict=True):
        operation.site = step.site
    session.flags = len(flags)
    session.memory.l2.start(l2, recording.regions)  # type: ignore[arg-type]
    session.run(_no_body)
    memory = session.memory.l2
    return session.log.cycles, {
        "l2_hit_bytes": memory.hit_bytes,
        "l2_miss_bytes": memory.miss_bytes,
        "write_back_bytes": memory.write_back_bytes,
    }


def _no_body(_: int) -> Any:
    raise AssertionError("a replay runs no kernel")


def _operation(step: Step, session: QuickSession, flags: dict[int, int]) -> Operation:
    scalar = session.chip.scalar
    pipe = step.pipe
    own = pipe is Pipe.S
    if step.kind is Kind.BARRIER:
        return Operation(OWN_BARRIER if own else BARRIER, whole(scalar.barrier_issue), pipe)
    if step.kind is not Kind.INSTRUCTION:
        if step.event is None or step.mode >= 0 or step.call >= 0:
            raise NotQuick
        codes = (OWN_SET, OWN_WAIT) if own else (SET, WAIT)
        operation = Operation(codes[step.kind is Kind.WAIT_FLAG], whole(scalar.flag_issue), pipe)
        operation.flag = flags.setdefault(step.flag, len(flags))
        return operation
    call = session.recording.calls[step.call]
    if isinstance(call, Scalar):
        return _own(call, session.chip)
    if not isinstance(call, Call):
        raise NotQuick
    return _issued(call, pipe, session)


def _own(call: Scalar, chip: Chip) -> Operation:
    if call.wanted and call.access is not None and call.access.buffer is not None:
        operation = Operation(READ_GM, 0, Pipe.S)
        operation.buffer, operation.place = call.access.buffer, call.access.low
        operation.phase = call.phase
        return operation
    if call.acts or call.wanted or call.spent is None:
        raise NotQuick
    spent = getattr(chip.scalar, call.spent) if isinstance(call.spent, str) else call.spent
    return Operation(SPEND, whole(spent), Pipe.S)


def _issued(call: Call, pipe: Pipe, session: QuickSession) -> Operation:
    if getattr(call, "unit_flag", 0):
        raise NotQuick
    chip = session.chip
    scalar = chip.scalar
    if pipe is Pipe.V:
        operation, cost = Operation(COMPUTE, whole(scalar.vector_issue), pipe), price(call, chip)
        operation.interval, operation.duration = cost.interval, cost.duration
        return operation
    if pipe not in (Pipe.MTE2, Pipe.MTE3):
        raise NotQuick
    side = gm_side(call)
    operation = Operation(LOCAL if side is None else MOVE, whole(scalar.move_issue), pipe)
    operation.interval = operation.duration = whole(chip.gm.move_issue)
    if side is not None:
        operation.bursts = session.memory.l2.bursts(side)
        operation.bypass = call.cache_mode is CacheMode.CACHE_MODE_DISABLE
    elif call.writes:
        cost = price(call, chip)
        operation.interval, operation.duration = cost.interval, cost.duration
    return operation


class QuickSession(ReplaySession):
    """A replay for the cycles alone."""

    core_type = QuickCore
    agenda_type = Clock
    operations: list[Operation]
    flags: int

    def _make_cores(self, place: int) -> list[Core]:
        cores = super()._make_cores(place)
        for core in cores:
            assert isinstance(core, QuickCore)
            core.prepare(self.block_done)
        return cores

    def _start(self, what: tuple[Core, int]) -> None:
        core, block = what
        assert isinstance(core, QuickCore)
        part = self.parts[block, core.kind, core.sub_block]
        play = list(map(self.operations.__getitem__, part.steps.tolist()))
        core.begin_part(part, play, part.addresses.tolist(), self.flags, self.agenda.now)

    def _deadlock(self) -> None:
        message = "deadlock: nothing can move any more"
        raise DeadlockError(message, Finding("DEADLOCK", "deadlock", message, struck=True))
