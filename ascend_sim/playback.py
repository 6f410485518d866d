"""Replaying a recording: the machine as it is, with recorded items in place of the kernel's Python.

The items come in the portions in which a kernel's Python would have issued them, so that the machine cannot tell
the difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from ascend_sim.agenda import PROGRAM
from ascend_sim.config import Chip
from ascend_sim.cost import cube_cycles
from ascend_sim.errors import KernelError
from ascend_sim.garbage import no_collection
from ascend_sim.placement import task_ratio
from ascend_sim.program import AHEAD
from ascend_sim.recording import Origin, Part, Recording, Scalar
from ascend_sim.recording import Step as Recorded
from ascend_sim.run import Outputs, Run
from ascend_sim.scalar_call import ScalarCall, scalar_cost, spending
from ascend_sim.session import Session
from ascend_sim.soft_flags import SoftSet
from ascend_sim.trace import Item, Kind, Step
from isa.instruction import Call
from isa.types import CoreKind, Pipe, Space

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ascend_sim.core import Core

_S = Pipe.S
_INSTRUCTION, _BARRIER = Kind.INSTRUCTION, Kind.BARRIER


def play(recording: Recording, chip: Chip, *, l2: str, physical_cores: int) -> Run:
    """Return the run of a recording on the machine, with all its records. The options are checked."""
    session = ReplaySession(recording, chip, physical_cores)
    session.memory.l2.start(l2, recording.regions)  # type: ignore[arg-type]
    try:
        with no_collection():
            session.run(_no_body)
    except KernelError as error:
        session.abort()
        error.run = _run_of(recording, session, l2)
        error.args = (error.args[0], error.finding, error.run)
        raise
    return _run_of(recording, session, l2)


def _no_body(_: int) -> NoReturn:
    raise AssertionError("a replay runs no kernel")


def _run_of(recording: Recording, session: ReplaySession, l2: str) -> Run:
    memory = session.memory.l2
    return Run(
        recording.op,
        session.chip,
        session.log,
        session.finish(),
        Outputs({}),
        blocks=recording.blocks,
        options={
            "numerics": "off", "checks": "off", "l2_start": l2, "cores": session.physical_cores, "replayed": True,
        },
        coverage={},
        memory={
            "l2_hit_bytes": memory.hit_bytes,
            "l2_miss_bytes": memory.miss_bytes,
            "write_back_bytes": memory.write_back_bytes,
        },
        origin=Origin(recording.kernel_type, {}, set(), recording.reserved, recording),
    )  # fmt: skip


class ReplaySession(Session):
    """A launch whose blocks are recorded parts."""

    def __init__(self, recording: Recording, chip: Chip, physical_cores: int) -> None:
        super().__init__(
            chip,
            blocks=recording.blocks,
            physical_cores=physical_cores,
            kernel_type=recording.kernel_type,
            numerics=False,
            exact=False,
            checks="off",
            auto_sync=False,
            shuffle=None,
            library=(),
        )
        self.physical_cores = physical_cores
        self.log.sites = self.sites = list(recording.sites)
        self.log.phases = list(recording.phases)
        self.recording = recording
        self.parts = {(part.block, part.kind, part.sub_block): part for part in recording.parts}
        self.templates = [_template(call) for call in recording.calls]
        self.steps = [self._step(recorded) for recorded in recording.steps]
        self.moves: dict[tuple[int, int], Call] = {}

    def _step(self, recorded: Recorded) -> Step:
        """Return a step of this replay's own: prices are a chip's."""
        step = Step(recorded.pipe, recorded.kind, recorded.name, recorded.site)
        step.phase, step.cause, step.inserted = recorded.phase, recorded.cause, recorded.inserted
        step.event, step.event_id = recorded.event, recorded.event_id
        step.flag, step.mode = recorded.flag, recorded.mode
        if recorded.call >= 0:
            call = self.templates[recorded.call]
            cube = recorded.pipe is Pipe.M and call.work
            step.bytes, step.work = call.bytes, cube_cycles(call, self.chip) if cube else call.work
        return step

    def _start(self, what: tuple[Core, int]) -> None:
        core, block = what
        part = self.parts[block, core.kind, core.sub_block]
        core.start_block(_Playback(self, core, part), self.agenda.now)


def _template(call: Call | Scalar | SoftSet) -> Any:
    """Return a call of this replay's own: prices are a chip's."""
    if isinstance(call, (Call, SoftSet)):
        return call
    line = call.line
    cost: Callable[[Core], int]
    if call.access is not None:
        cost = scalar_cost(call.access)
    else:
        assert call.spent is not None
        cost = spending(call.spent)
    action = (lambda core: core.scalar_gm_cycles(*line)) if line is not None else _nothing
    return ScalarCall(
        call.name,
        cost,
        action if call.acts else None,
        phase=call.phase,
        wanted=call.wanted,
        text=call.text,
        access=call.access,
        spent=call.spent,
        line=line,
    )


def _nothing(_: Core) -> None:
    """Stand for a scalar access: its value is not computed."""


class _Playback:
    """A recorded part of a block in place of a program: hands its items to a core."""

    order = None
    polls = 0

    def __init__(self, session: ReplaySession, core: Core, part: Part) -> None:
        self.session = session
        self.core = core
        self.block = part.block
        self.sub_block = part.sub_block
        self.core_kind: CoreKind = part.kind
        self._part = part
        self._index = core.log.count
        self._portions = self._make_portions()

    @property
    def number(self) -> int:
        """The index that `get_block_idx` gave."""
        if self.core_kind is CoreKind.AIC:
            return self.block
        return self.block * task_ratio(self.session.kernel_type) + self.sub_block

    def resume(self, _: Any) -> None:
        """Hand over the next portion of items."""
        next(self._portions, None)

    def on_end(self, core: Core, time: int) -> None:
        """Tell the session that the block is over."""
        self.session.block_done(self, core, time)  # type: ignore[arg-type]

    def _make_portions(self) -> Iterator[None]:
        session, core = self.session, self.core
        steps, templates, moves = session.steps, session.templates, session.moves
        calls = [step.call for step in session.recording.steps]
        in_gm = [
            isinstance(call, Call)
            and any(access.space is Space.GM for access in (*call.writes, *call.reads))
            for call in session.recording.calls
        ]
        addresses = iter(self._part.addresses.tolist())
        items, log, place, index = core.items, core.log.items, core.index, self._index
        for number in self._part.steps.tolist():
            step = steps[number]
            call = calls[number]
            bound: Any = None
            portion_ends = False
            if call >= 0:
                bound = templates[call]
                if in_gm[call]:
                    bound = _moved(bound, call, next(addresses), moves)
                portion_ends = step.pipe is _S and bound.wanted
            item = Item(step, place, index, bound)
            index += 1
            log.append(item)
            items.append(item)
            if portion_ends or (
                len(items) >= AHEAD and not (step.pipe is _S and step.kind is _INSTRUCTION)
            ):
                yield
        items.append(Item(Step(_S, _BARRIER, "end", 0), place, index))
        last = ScalarCall("end", lambda _: 0, lambda core: core.finish_block(), phase=PROGRAM)
        items.append(Item(Step(_S, _INSTRUCTION, "end", 0), place, index + 1, last))
        yield


def _moved(call: Call, number: int, address: int, moves: dict[tuple[int, int], Call]) -> Call:
    """Return a move with its GM side at an address; equal ones share one object."""
    known = moves.get((number, address))
    if known is None:
        known = call.at(address, write=call.writes[0].space is Space.GM)
        moves[number, address] = known
    return known
