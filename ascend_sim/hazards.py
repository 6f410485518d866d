"""The order checker of one core: which accesses nothing orders, and reads of bytes that nothing wrote.

It follows the program without any time: pipes as queues, flags as tokens, each pipe with a vector of what it
knows to be complete on the others. So a verdict does not depend on how fast anything happens to be. Edges: a
set raises what its pipe has completed, a wait learns it; a barrier teaches a pipe about itself; an instruction
knows what the scalar unit knew when it issued it. Inside a pipe instructions start in order but overlap, so two
conflicting neighbours need a barrier as well.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from ascend_sim.trace import Item, Kind
from ascend_sim.unit_flags import FINISH
from isa.access import GM_PLACE
from isa.cube_forms import LoadCall
from isa.types import PIPES_OF, CoreKind, Pipe, Space

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascend_sim.program import Program
    from isa.access import Access
    from isa.instruction import Call
    from isa.tensor import Owner

_S, _M, _FIX = Pipe.S, Pipe.M, Pipe.FIX
_L0C = int(Space.L0C)
_INSTRUCTION, _SET, _WAIT, _BARRIER = Kind.INSTRUCTION, Kind.SET_FLAG, Kind.WAIT_FLAG, Kind.BARRIER
_PIPES = len(Pipe)
SAME_PIPE_WINDOW = 16
"""Instructions of one pipe further apart than this do not overlap (the vendor's sanitizer draws the line here)."""
_PRUNE_AT = 64


class _Lane:
    """One pipe in program order: what waits to be followed, and what it knows to be complete."""

    __slots__ = ("count", "freed", "known", "pending", "snapshot")

    def __init__(self) -> None:
        self.pending: deque[tuple[Item, list[int]]] = deque()
        self.known = [0] * _PIPES
        self.count = 0
        self.freed = 0  # of M: up to which Fixpipe unit flags say that L0C has been read
        self.snapshot: list[int] | None = None


class _Entry:
    """One access that later ones may conflict with."""

    __slots__ = ("access", "covered", "item", "number", "write")

    def __init__(self, access: Access, write: bool, number: int, item: Item) -> None:
        self.access = access
        self.covered = (
            False  # a later write has taken all its bytes: that one stands for it from then on
        )
        self.write = write
        self.number = number
        self.item = item


class _Log:
    """The accesses to one memory by one pipe, in program order.

    What a pipe knows to be complete of another one is always a beginning of its list, so only the end of the list
    has to be looked at.
    """

    __slots__ = ("entries", "limit")

    def __init__(self) -> None:
        self.entries: list[_Entry] = []
        self.limit = _PRUNE_AT


class Order:
    """Happens-before of one block on one core."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._session = program.session
        self._lanes = {pipe: _Lane() for pipe in PIPES_OF[program.core_kind]}
        self._by_pipe = [self._lanes.get(pipe) for pipe in Pipe]
        self._scalar = self._lanes[Pipe.S]
        self._scalar.snapshot = self._scalar.known
        self._tokens: dict[int, deque[list[int]]] = {}
        self._logs: dict[int, dict[Pipe, _Log]] = {}  # by memory or allocation
        self._written = {
            space: np.zeros(memory.nbytes, bool) for space, memory in program.core.memories.items()
        }
        self._units = _UnitBits(self) if program.core_kind is CoreKind.AIC else None
        self._enough_cells = program.core.enough_cells
        self._hollow: list[tuple[Access, int]] = []  # loads of bytes that nothing had written
        self._complete: set[int] = set()  # calls whose reads have been found written
        self._marked: set[int] = set()  # calls whose writes have been marked
        self._calls_of: dict[int, set[int]] = {}  # those of both that use an owner's bytes

    # ---- following the program --------------------------------------------------------------

    def issue(self, item: Item) -> None:
        """Take the next item of the program."""
        snapshot = self._scalar.known
        if item.pipe is _S:
            self._scalar_item(item)
            return
        lane: _Lane = self._by_pipe[item.pipe]  # type: ignore[assignment]
        if lane.pending or not self._step(item.pipe, lane, item, snapshot):
            lane.pending.append((item, snapshot))
        elif _moves_others(item) and any(other.pending for other in self._lanes.values()):
            self._follow()

    def _follow(self) -> None:
        moved = True
        while moved:
            moved = False
            for pipe, lane in self._lanes.items():
                while lane.pending:
                    item, snapshot = lane.pending[0]
                    if not self._step(pipe, lane, item, snapshot):
                        break
                    lane.pending.popleft()
                    moved = moved or _moves_others(item)

    def _step(self, pipe: Pipe, lane: _Lane, item: Item, snapshot: list[int]) -> bool:
        if snapshot is not lane.snapshot:
            lane.snapshot = snapshot
            _join(lane.known, snapshot)
        kind = item.kind
        if kind is _INSTRUCTION:
            call = item.call
            flagged = call.unit_flag
            if flagged and not self._units.may_start(pipe, lane, call):  # type: ignore[union-attr]
                return False
            lane.count += 1
            if call.writes:
                for access in call.reads:
                    self._access(access, False, pipe, lane, item)
                access = call.writes[0]
                self._access(access, True, pipe, lane, item)
                self._written_bytes(item)
            if flagged == FINISH:
                self._units.finish(pipe, lane, call)  # type: ignore[union-attr]
        elif kind is _SET:
            if item.event is None:
                return True  # goes to another core
            token = lane.known.copy()
            token[pipe] = lane.count
            self._tokens.setdefault(item.flag, deque()).append(token)
        elif kind is _WAIT:
            tokens = self._tokens.get(item.flag)
            if not tokens:
                return False
            _join(lane.known, tokens.popleft())
            if item.forget is not None:
                self._forget_bytes(*item.forget)
        else:
            lane.known[pipe] = lane.count
        return True

    def _scalar_item(self, item: Item) -> None:
        lane = self._scalar
        kind = item.kind
        if kind is _SET:
            token = lane.known.copy()
            token[Pipe.S] = lane.count
            self._tokens.setdefault(item.flag, deque()).append(token)
            self._follow()
        elif kind is _WAIT:
            tokens = self._tokens.get(item.flag)
            if tokens:
                known = lane.known.copy()
                _join(known, tokens.popleft())
                lane.known = known
        elif kind is _BARRIER:
            known = lane.known.copy()
            for pipe, other in self._lanes.items():
                known[pipe] = other.count
            lane.known = known
            self._forget()

    def _forget(self) -> None:
        """Drop everything: after PIPE_ALL no earlier access can conflict with a later one."""
        if all(not lane.pending for lane in self._lanes.values()):
            self._logs.clear()

    # ---- accesses ---------------------------------------------------------------------------

    def scalar(self, item: Item, access: Access, *, write: bool) -> None:
        """Take an access of the scalar unit."""
        lane = self._scalar
        lane.count += 1
        self._access(access, write, Pipe.S, lane, item)
        if access.buffer is None:
            if write:
                access.byte_view(self._written[access.space])[...] = True
            elif not access.byte_view(self._written[access.space]).all():
                self._uninitialised(item, access)

    def _access(self, access: Access, write: bool, pipe: Pipe, lane: _Lane, item: Item) -> None:
        place = access.place
        if place >= GM_PLACE:
            self._session.note_gm(self._program, access, write, item)
        logs = self._logs.get(place)
        if logs is None:
            logs = self._logs[place] = {}
        known = lane.known
        number = lane.count
        low, high = access.low, access.high
        for other_pipe, log in logs.items():
            entries = log.entries
            limit = known[other_pipe]
            follows = False
            if pipe is _M and place == _L0C:
                if other_pipe is _FIX:
                    limit = max(limit, lane.freed)
                else:  # M comes to each fractal of L0C in turn: with enough of them the last sum is there by then
                    follows = access.elements >= self._enough_cells
            if other_pipe is pipe:
                if pipe is _S:
                    continue
                if limit < number - SAME_PIPE_WINDOW - 1:
                    limit = number - SAME_PIPE_WINDOW - 1
            elif not entries or entries[-1].number <= limit:
                continue
            for entry in reversed(entries):
                if entry.number <= limit:
                    break
                if (
                    (write or entry.write)
                    and not entry.covered
                    and not (write and entry.write and _combine(entry.item, item))
                ):
                    other = entry.access
                    if (
                        low < other.high
                        and other.low < high
                        and (other_pipe is not pipe or entry.number != number)
                        and not (follows and other.elements >= self._enough_cells)
                        and other.overlaps(access)
                    ):
                        self._session.race(self._program, entry, item, access, write)
                        entry.covered = write and access.covers(other)
                        if entry.write and other.covers(access):
                            break  # what lies before it has been overwritten: its own hazard says so
        if pipe is _S and not write:
            return  # the scalar unit has the value before it issues anything further
        own = logs.get(pipe)
        if own is None:
            own = logs[pipe] = _Log()
        own.entries.append(_Entry(access, write, number, item))
        if len(own.entries) > own.limit:
            self._prune(pipe, own)

    def _prune(self, pipe: Pipe, log: _Log) -> None:
        """Drop what every pipe knows to be complete."""
        floor = min(lane.known[pipe] for lane in self._lanes.values())
        log.entries = [entry for entry in log.entries if entry.number > floor]
        log.limit = max(_PRUNE_AT, 2 * len(log.entries))

    # ---- written bytes ----------------------------------------------------------------------

    def _written_bytes(self, item: Item) -> None:
        call = item.call
        identity = id(call.template)
        if identity not in self._complete and not self._look_at_sources(item, identity):
            return
        if identity in self._marked and not call.undefined:
            return
        target = call.writes[0]
        if target.buffer is None:
            bits = self._written[target.space]
            lost = any(access.byte_view(bits).any() for access in call.undefined)
            view = target.byte_view(bits)
            if target.lanes is None:
                view[...] = True
            else:
                np.copyto(view, True, where=target.lanes[..., None])
            for access in call.undefined:
                access.byte_view(bits)[...] = False
            if lost:
                self._start_anew()
        if not call.undefined:
            self._marked.add(identity)
            if target.owner is not None:
                self._calls_of.setdefault(target.owner.serial, set()).add(identity)

    def _look_at_sources(self, item: Item, identity: int) -> bool:
        """Check that what a call reads has been written; return False where it has marked its writes itself."""
        call = item.call
        moves_only = isinstance(call, LoadCall)
        for access in call.reads:
            if access.buffer is None:
                if moves_only:
                    written = access.byte_view(self._written[access.space]).all(axis=-1)
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
        view = target.byte_view(self._written[target.space])
        arrived = item.call.arrives(written)[..., None]
        lost = bool((view & ~arrived).any())
        view[...] = arrived
        if lost:
            self._start_anew()
        self._hollow = [load for load in self._hollow if not target.covers(load[0])]
        self._hollow.append((target, item.site))

    def _start_anew(self) -> None:
        """Forget which calls need no further look: bytes that they use have become unwritten."""
        self._complete.clear()
        self._marked.clear()

    def _forget_bytes(self, owner: Owner, space: Space, address: int, length: int) -> None:
        """Take a buffer's bytes for unwritten: a queue has handed them out anew."""
        self._written[space][address : address + length] = False
        for identity in self._calls_of.pop(owner.serial, ()):
            self._complete.discard(identity)
            self._marked.discard(identity)

    def _check_written(self, item: Item, access: Access) -> None:
        view = access.byte_view(self._written[access.space])
        written = (
            view.all()
            if access.lanes is None
            else view[np.broadcast_to(access.lanes, access.shape)].all()
        )
        if not written:
            self._uninitialised(item, access)

    def _uninitialised(self, item: Item, access: Access) -> None:
        bits = self._written[access.space]
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


def _combine(first: Item, second: Item) -> bool:
    """Return whether two stores are atomic ones of one kind, whose order does not matter."""
    kind = first.call.atomic
    return kind is not None and kind == second.call.atomic


class _UnitBits:
    """The unit flags of L0C as the order sees them: which units are full, and what their last change tells."""

    def __init__(self, order: Order) -> None:
        self._map = order._session.units
        count = -(-order._program.core.memories[Space.L0C].nbytes // self._map.granule)
        self._full: NDArray[np.bool_] = np.zeros(count, bool)
        self._changed: NDArray[np.int64] = np.zeros(count, np.int64)  # by which Mmad or Fixpipe
        self._tokens: NDArray[Any] = np.full(count, None, object)  # what that one knew

    def may_start(self, pipe: Pipe, lane: _Lane, call: Call) -> bool:
        """Return whether an instruction's units are as it needs them; its pipe learns what that tells."""
        units = self._map.of(call)
        full = self._full[units]
        if not len(full):
            return True
        if full.any() if pipe is _M else not full.all():
            return False
        changed = self._changed[units]
        last = int(changed.argmax())
        token = self._tokens[units][last]
        if token is not None:
            _join(lane.known, token)
            if pipe is _M:
                lane.freed = max(lane.freed, int(changed[last]))
        return True

    def finish(self, pipe: Pipe, lane: _Lane, call: Call) -> None:
        """Fill or free the units of an instruction that is the last one to need them.

        Full units say that the Mmad is through; free ones only that the Fixpipe has read them, not where its bytes are.
        """
        units = self._map.of(call)
        token = lane.known.copy()
        if pipe is _M:
            token[_M] = lane.count
        self._full[units] = pipe is _M
        self._changed[units] = lane.count
        box = np.empty((), object)  # else numpy would take the list for a row of values
        box[()] = token
        self._tokens[units] = box


def _moves_others(item: Item) -> bool:
    """Return whether pipes may wait for an item: a set, or the last user of unit flags."""
    return item.kind is _SET or (item.kind is _INSTRUCTION and item.call.unit_flag == FINISH)


def _join(known: list[int], other: list[int]) -> None:
    for position, value in enumerate(other):
        if value > known[position]:
            known[position] = value
