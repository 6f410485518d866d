"""Replaying a recording: the machine as it is, with recorded items in place of the kernel's Python.

The items come in the portions in which a kernel's Python would have issued them, so that the machine cannot tell
the difference.
"""

from __future__ import annotations

import copy
import gc
from typing import TYPE_CHECKING, Any, NoReturn

from ascend_sim.agenda import PROGRAM
from ascend_sim.config import Chip
from ascend_sim.cost import cube_cycles
from ascend_sim.errors import KernelError
from ascend_sim.program import AHEAD, ScalarCall, scalar_cost, spending
from ascend_sim.recording import Origin, Part, Recording, Scalar
from ascend_sim.run import Outputs, Run
from ascend_sim.session import Session
from ascend_sim.trace import Item, Kind
from isa.instruction import Call
from isa.types import Pipe, Space

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ascend_sim.core import Core
    from isa.types import CoreKind

_S, _M = Pipe.S, Pipe.M
_INSTRUCTION, _BARRIER = Kind.INSTRUCTION, Kind.BARRIER


def play(recording: Recording, chip: Chip, *, l2: str, physical_cores: int) -> Run:
    """Return the run of a recording on the machine, with all its records. The options are checked."""
    session = ReplaySession(recording, chip, physical_cores)
    for region in recording.regions:
        region.scratch = None
    if l2 == "warm":
        session.memory.l2.preload(recording.regions)  # type: ignore[arg-type]
    collecting = gc.isenabled()
    gc.disable()
    try:
        session.run(_no_body)
    except KernelError as error:
        session.abort()
        error.run = _run_of(recording, session, l2)
        error.args = (error.args[0], error.finding, error.run)
        raise
    finally:
        if collecting:
            gc.enable()
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
        self.work = [
            0 if isinstance(call, ScalarCall)
            else cube_cycles(call, chip) if call.pipe is _M and call.work
            else call.work
            for call in self.templates
        ]  # fmt: skip
        self.moves: dict[tuple[int, int], Call] = {}

    def _start(self, what: tuple[Core, int]) -> None:
        core, block = what
        part = self.parts[block, core.kind, core.sub_block]
        core.start_block(_Playback(self, core, part), self.agenda.now)  # type: ignore[arg-type]


def _template(call: Call | Scalar) -> Any:
    """Return a call of this replay's own: prices are a chip's."""
    if isinstance(call, Call):
        call.price = None
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

    def __init__(self, session: ReplaySession, core: Core, part: Part) -> None:
        self.session = session
        self.core = core
        self.block = part.block
        self.sub_block = part.sub_block
        self.core_kind: CoreKind = part.kind
        self._part = part
        self._index = len(core.log.items)
        self._portions = self._make_portions()

    def resume(self, _: Any) -> None:
        """Hand over the next portion of items."""
        next(self._portions, None)

    def on_end(self, core: Core, time: int) -> None:
        """Tell the session that the block is over."""
        self.session.block_done(self, core, time)  # type: ignore[arg-type]

    def _make_portions(self) -> Iterator[None]:
        session, core = self.session, self.core
        steps, templates, work, moves = (
            session.recording.steps, session.templates, session.work, session.moves,
        )  # fmt: skip
        in_gm = [
            isinstance(call, Call)
            and any(access.space is Space.GM for access in (*call.writes, *call.reads))
            for call in session.recording.calls
        ]
        addresses = iter(self._part.addresses.tolist())
        items, log, place, index = core.items, core.log.items, core.index, self._index
        for number in self._part.steps.tolist():
            step = steps[number]
            pipe, kind, name, site, phase, event, event_id, flag, mode, cause, inserted, call = step
            item = Item(place, index, pipe, kind, name, site)
            index += 1
            if phase:
                item.phase = phase
            portion_ends = False
            if call >= 0:
                bound = templates[call]
                if in_gm[call]:
                    bound = _moved(bound, call, next(addresses), moves)
                item.call = bound
                item.bytes = bound.bytes
                item.work = work[call]
                portion_ends = pipe is _S and bound.wanted
            elif kind is not _BARRIER:
                item.event, item.event_id, item.flag, item.mode = event, event_id, flag, mode
            item.cause = cause
            if inserted:
                item.inserted = True
            log.append(item)
            items.append(item)
            if portion_ends or (len(items) >= AHEAD and not (pipe is _S and kind is _INSTRUCTION)):
                yield
        end = Item(place, index, _S, _BARRIER, "end", 0)
        items.append(end)
        last = Item(place, index + 1, _S, _INSTRUCTION, "end", 0)
        last.call = ScalarCall("end", lambda _: 0, lambda core: core.finish_block(), phase=PROGRAM)
        items.append(last)
        yield


def _moved(call: Call, number: int, address: int, moves: dict[tuple[int, int], Call]) -> Call:
    """Return a move with its GM side at an address; equal ones share one object."""
    known = moves.get((number, address))
    if known is None:
        write = call.writes[0].space is Space.GM
        gm = (call.writes[0] if write else call.reads[0]).moved(address)
        known = copy.copy(call)
        if write:
            known.writes = (gm,)
        else:
            known.reads = (gm, *call.reads[1:])
        moves[number, address] = known
    return known
