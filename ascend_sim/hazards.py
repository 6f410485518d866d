"""The order checker of one core: which accesses nothing orders, and reads of bytes that nothing wrote.

It follows the program without any time: pipes as queues, flags as tokens, each pipe with a vector of what it
knows to be complete on the others. So a verdict does not depend on how fast anything happens to be. Edges: a
set raises what its pipe has completed, a wait learns it; a barrier teaches a pipe about itself; an instruction
knows what the scalar unit knew when it issued it. Inside a pipe instructions start in order but overlap, so two
conflicting neighbours need a barrier as well.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from ascend_sim.trace import Item, Kind
from isa.access import GM_PLACE
from isa.types import PIPES_OF, Pipe

if TYPE_CHECKING:
    from ascend_sim.program import Program
    from isa.access import Access
    from isa.tensor import Owner
    from isa.types import Space

_S = Pipe.S
_INSTRUCTION, _SET, _WAIT, _BARRIER = Kind.INSTRUCTION, Kind.SET_FLAG, Kind.WAIT_FLAG, Kind.BARRIER
_PIPES = len(Pipe)
SAME_PIPE_WINDOW = 16
"""Instructions of one pipe further apart than this do not overlap (the vendor's sanitizer draws the line here)."""
_PRUNE_AT = 64


class _Lane:
    """One pipe in program order: what waits to be followed, and what it knows to be complete."""

    __slots__ = ("count", "known", "pending", "snapshot")

    def __init__(self) -> None:
        self.pending: deque[tuple[Item, list[int]]] = deque()
        self.known = [0] * _PIPES
        self.count = 0
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
        elif item.kind is _SET and any(other.pending for other in self._lanes.values()):
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
                    moved = moved or item.kind is _SET

    def _step(self, pipe: Pipe, lane: _Lane, item: Item, snapshot: list[int]) -> bool:
        if snapshot is not lane.snapshot:
            lane.snapshot = snapshot
            _join(lane.known, snapshot)
        kind = item.kind
        if kind is _INSTRUCTION:
            lane.count += 1
            call = item.call
            if call.writes:
                for access in call.reads:
                    self._access(access, False, pipe, lane, item)
                access = call.writes[0]
                self._access(access, True, pipe, lane, item)
                self._written_bytes(item)
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
                self._complete.clear()
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
        if identity not in self._complete:
            for access in call.reads:
                if access.buffer is None:
                    self._check_written(item, access)
                    if access.owner is not None:
                        self._calls_of.setdefault(access.owner.serial, set()).add(identity)
            self._complete.add(identity)
        if identity in self._marked and not call.undefined:
            return
        target = call.writes[0]
        if target.buffer is None:
            bits = self._written[target.space]
            view = target.byte_view(bits)
            if target.lanes is None:
                view[...] = True
            else:
                np.copyto(view, True, where=target.lanes[..., None])
            for access in call.undefined:
                access.byte_view(bits)[...] = False
                self._complete.clear()
        if not call.undefined:
            self._marked.add(identity)
            if target.owner is not None:
                self._calls_of.setdefault(target.owner.serial, set()).add(identity)

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
                self._session.report(
                    "UNINIT",
                    "uninitialised-read",
                    f"{item.name} reads {access.name}, {access.space.name} bytes {access.low} to {access.high}, but "
                    f"nothing has written byte {first} (byte {first - access.low} of the operand). "
                    f"Load or fill it first, or shorten the operand",
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


def _join(known: list[int], other: list[int]) -> None:
    for position, value in enumerate(other):
        if value > known[position]:
            known[position] = value
