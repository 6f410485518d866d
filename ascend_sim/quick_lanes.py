"""The machine's rules for vector cores without its records: the pipes and the scalar unit of `quick`."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from mypy_extensions import mypyc_attr

from ascend_sim.agenda import PHASE, PROGRAM, READ, Action, Agenda, Entry, serve
from ascend_sim.core import Core
from ascend_sim.program import AHEAD
from isa.types import CacheMode, Pipe

if TYPE_CHECKING:
    from ascend_sim.gm import Port
    from isa.access import Access

WAIT, BARRIER, SET, COMPUTE, MOVE, LOCAL = range(6)
OWN = 6  # what the scalar unit does itself comes from here on
OWN_SET, OWN_WAIT, OWN_BARRIER, SPEND, READ_GM = range(OWN, OWN + 5)

_FREE, _FOR_FLAG, _FOR_BARRIER, _FOR_MOVE = range(4)

Operation = tuple[Any, ...]
"""A step on one chip: code, cost of issuing, pipe, then by code: a flag, or interval and duration, or a call."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Clock(Agenda):
    """The agenda on a heap of its own: mostly one action is due at a time, and SimPy's events would cost more."""

    def __init__(self, shuffle: int | None = None) -> None:
        super().__init__(shuffle)
        self._times: list[int] = []
        self._entries: dict[int, list[Entry]] = {}

    def at(self, time: int, phase: int, rank: int, action: Action, argument: Any = None) -> None:
        """Run `action(argument)` at a cycle that is not in the past."""
        entry = Entry(phase * PHASE + rank, action, argument)
        entries = self._entries.get(time)
        if entries is None:
            self._entries[time] = [entry]
            heappush(self._times, time)
        else:
            entries.append(entry)

    def run(self) -> None:
        """Run until nothing is due any more: by cycle, phase and rank, as the agenda does."""
        times, entries = self._times, self._entries
        while times:
            self.now = time = heappop(times)
            due = entries[time]
            if len(due) == 1:
                entry = due.pop()
                entry.action(entry.argument)
            if due:
                serve(due)
            del entries[time]


class _Flight:
    """A transfer under way, or a set behind one (`flag`); `end` is -1 while it is not known."""

    __slots__ = ("access", "call", "end", "flag", "spent", "start")

    def __init__(self, start: int, flag: int = -1, end: int = -1) -> None:
        self.start = start
        self.flag = flag
        self.end = end
        self.call: Any = None
        self.access: Any = None
        self.spent: Any = None


class _Lane:
    """A pipe's queue: see `PipeQueue`, whose rules these are."""

    __slots__ = (
        "accept", "blocked", "core", "depth", "entered", "flying", "landed", "left", "pipe", "port", "queue",
        "queued", "rank", "ring", "write",
    )  # fmt: skip

    def __init__(
        self, core: QuickCore, pipe: Pipe, depth: int, rank: int, port: Port | None
    ) -> None:
        self.core = core
        self.pipe = pipe
        self.depth = depth
        self.rank = rank
        self.port = port
        self.write = False
        if port is not None:
            self.write = port.write
            port.begun, port.done = self.begun, self.done
        self.reset(0)

    def reset(self, time: int) -> None:
        """Empty the pipe at the start of a block."""
        self.queue: deque[tuple[int, Operation, int, Any]] = deque()
        self.flying: deque[_Flight] = deque()
        self.ring = [time] * self.depth
        self.entered = self.left = 0
        self.accept = self.landed = time
        self.blocked = _FREE
        self.queued = False

    def advance(self) -> None:
        """Handle items until the queue is empty or the next one depends on something unknown."""
        core, queue, ring, depth = self.core, self.queue, self.ring, self.depth
        flying, tokens = self.flying, core.tokens
        accept, landed, left = self.accept, self.landed, self.left
        before = left
        while queue:
            head, operation, index, access = queue[0]
            if head < accept:
                head = accept
            code = operation[0]
            if code == COMPUTE:
                accept = head + operation[3]
                end = head + operation[4]
                if end > landed:
                    landed = end
            elif code == WAIT:
                flag = tokens[operation[3]]
                if not flag:
                    core.waiters[operation[3]] = self
                    self.blocked = _FOR_FLAG
                    break
                visible = flag.popleft()
                if head < visible:
                    head = visible
                accept = head
            elif code == SET:
                accept = head
                if flying:
                    flying.append(_Flight(head, operation[3]))
                else:
                    core.fire(operation[3], head if head > landed else landed)
            elif code == BARRIER:
                if flying:
                    self.blocked = _FOR_BARRIER
                    break
                if head < landed:
                    head = landed
                accept = head
            elif code == MOVE:
                accept = head + operation[3]
                flight = _Flight(head)
                flight.call, flight.access = operation[4], access
                flying.append(flight)
                core.agenda.at(head, READ, self.rank + index, self.request, flight)
                self.blocked = _FOR_MOVE
                queue.popleft()
                ring[left % depth] = head
                left += 1
                break
            else:
                accept = head + operation[3]
                end = head + operation[4]
                if flying:
                    flying.append(_Flight(head, -1, end))
                elif end > landed:
                    landed = end
            queue.popleft()
            ring[left % depth] = head
            left += 1
        self.accept, self.landed, self.left = accept, landed, left
        if left != before and core.waiting_lane is self:
            core.scalar_ready = True

    def request(self, flight: _Flight) -> None:
        """Hand a transfer to the memory system."""
        bypass = flight.call.cache_mode is CacheMode.CACHE_MODE_DISABLE
        access = flight.access
        self.core.memory.request(self.port, flight, access, access.base, bypass=bypass)  # type: ignore[arg-type]

    def begun(self, _: _Flight) -> None:
        """Take the begin of a transfer's bytes."""
        if not self.write:
            core = self.core
            now = core.agenda.now
            if now > self.accept:
                self.accept = now
            self.blocked = _FREE
            core.look_at_lane(self)
            core.pump()

    def done(self, flight: _Flight) -> None:
        """Take the end of a transfer's bytes."""
        core = self.core
        transfer = flight.spent
        end = transfer.passed + transfer.latency
        if self.write:
            if end > self.accept:
                self.accept = end
            self.blocked = _FREE
            end = max(end, flight.start + transfer.complete)
        flight.end = end
        flying = self.flying
        landed = self.landed
        while flying:
            first = flying[0]
            if first.flag >= 0:
                flying.popleft()
                core.fire(first.flag, first.start if first.start > landed else landed)
            elif first.end >= 0:
                flying.popleft()
                if first.end > landed:
                    landed = first.end
            else:
                break
        self.landed = landed
        if not flying:
            if self.blocked == _FOR_BARRIER:
                self.blocked = _FREE
                core.look_at_lane(self)
            if core.waiting_for_all:
                core.scalar_ready = True
        if self.queue:
            core.look_at_lane(self)
        core.pump()


@mypyc_attr(allow_interpreted_subclasses=True)
class QuickCore(Core):
    """A vector core that plays operations: see `Core`, whose rules these are."""

    def prepare(self, on_end: Any) -> None:
        """Make what such a core has besides; `on_end` is told of each part's end."""
        self.on_end = on_end
        self.quick: dict[Pipe, _Lane] = {
            pipe: _Lane(self, pipe, queue.depth, queue.rank, getattr(queue, "port", None))
            for pipe, queue in self.pipes.items()
        }
        self.tokens: list[deque[int]] = []
        self.waiters: list[Any] = []
        self.look: list[_Lane] = []
        self.waiting_lane: _Lane | None = None
        self.waiting_for_all = False
        self.scalar_ready = False
        self.busy = False
        self.asleep = False
        self.begun = False  # the item at `position` has spent its issuing cost already
        self.position = 0
        self.base = 0
        self.part: Any = None
        self.play: list[Operation] = []
        self.places: list[Access] = []
        self.moved = 0
        self.portion = 0

    def begin_part(
        self, part: Any, play: list[Operation], places: list[Access], flags: int, time: int
    ) -> None:
        """Begin a recorded part of a block at a cycle; `places` are the operands of its moves, in order."""
        self.part = part
        self.play = play
        self.places = places
        self.base += self.position  # where the block before has ended
        self.position = self.moved = self.portion = 0
        self.tokens = [deque() for _ in range(flags)]
        self.waiters = [None] * flags
        self.time = self.block_start = time
        if not self.log.blocks:
            self.log.start = time
        for lane in self.quick.values():
            lane.reset(time)
        self.begun = False
        self.scalar_ready = True
        self.pump()

    def fire(self, flag: int, time: int) -> None:  # type: ignore[override]
        """Raise a flag once all that was before it has landed at `time`."""
        self.tokens[flag].append(time + self.set_cycles + self.visible)
        waiter = self.waiters[flag]
        if waiter is not None:
            self.waiters[flag] = None
            if waiter is self:
                self.scalar_ready = True
            else:
                waiter.blocked = _FREE
                self.look_at_lane(waiter)

    def look_at_lane(self, lane: _Lane) -> None:
        """Put a pipe on the list of those that may be able to go on."""
        if not lane.queued:
            lane.queued = True
            self.look.append(lane)

    def pump(self) -> None:
        """Let pipes and scalar unit go on until everything waits for something later."""
        if self.busy:
            return
        self.busy = True
        look = self.look
        while look or self.scalar_ready:
            while look:
                lane = look.pop()
                lane.queued = False
                if lane.blocked == _FREE:
                    lane.advance()
            if self.scalar_ready:
                self.scalar_ready = False
                if not self.asleep:
                    self._issue()
        self.busy = False

    def _issue(self) -> None:
        """Issue items in program order until the scalar unit has to wait."""
        play, quick, look = self.play, self.quick, self.look
        position, time, portion, base = self.position, self.time, self.portion, self.base
        count = len(play)
        while position < count:
            operation = play[position]
            code = operation[0]
            if code >= OWN:
                self.position, self.time, self.portion = position, time, portion
                if not self._own(code, operation):
                    return
                position, time, portion = self.position, self.time, self.portion + 1
                self.begun = False
                position += 1
                if code >= SPEND:
                    continue  # the program gives way behind items that go through its queue only
            else:
                lane: _Lane = quick[operation[2]]
                entered = lane.entered
                if entered - lane.left >= lane.depth:
                    self.waiting_lane = lane
                    self.position, self.time, self.portion = position, time, portion
                    return
                self.waiting_lane = None
                slot = lane.ring[entered % lane.depth]
                if slot > time:
                    time = slot
                time += operation[1]
                access = None
                if code == MOVE:
                    access = self.places[self.moved]
                    self.moved += 1
                lane.entered = entered + 1
                lane.queue.append((time, operation, base + position, access))
                if not lane.queued and lane.blocked == _FREE:
                    lane.queued = True
                    look.append(lane)
                position += 1
                portion += 1
            if portion >= AHEAD and position < count:
                portion = 0
                if time > self.agenda.now:
                    self.position, self.time, self.portion = position, time, portion
                    self._sleep(time)
                    return
        self.position, self.time, self.portion = position, time, portion
        self._end()

    def _sleep(self, time: int) -> None:
        self.asleep = True
        self.agenda.at(time, PROGRAM, self.scalar_rank, self._awake)

    def _awake(self, _: Any) -> None:
        self.asleep = False
        self.scalar_ready = True
        self.pump()

    def _own(self, code: int, operation: Operation) -> bool:
        """Execute an item of the scalar unit; return False where it has to wait."""
        if code == SPEND:
            self.time += operation[1]
            return True
        if code == READ_GM:
            if self.begun:
                return True
            self.begun = True
            self.time += self.scalar_gm_cycles(operation[3], operation[4])
            self.asleep = True
            self.agenda.at(self.time, operation[5], self.scalar_rank, self._read)
            return False
        if code == OWN_SET:
            self.time += operation[1]
            self.fire(operation[3], self.time)
            return True
        if not self.begun:
            self.begun = True
            self.time += operation[1]
        if code == OWN_BARRIER:
            return self._all_quiet()
        flag = self.tokens[operation[3]]
        if not flag:
            self.waiters[operation[3]] = self
            return False
        visible = flag.popleft()
        if visible > self.time:
            self.time = visible
        return True

    def _read(self, _: Any) -> None:
        """Let the program go on with the value that it has read."""
        self.portion = -1  # a new portion begins behind this item
        self._awake(None)

    def _all_quiet(self) -> bool:
        """Wait until every pipe is empty and all results are visible."""
        for lane in self.quick.values():
            if lane.queued:
                self.scalar_ready = True  # the list is worked off first
            if lane.queue or lane.flying or lane.blocked != _FREE or lane.queued:
                self.waiting_for_all = True
                return False
        self.waiting_for_all = False
        latest = max(max(lane.landed, lane.accept) for lane in self.quick.values())
        if latest > self.time:
            self.time = latest
        return True

    def _end(self) -> None:
        """Wait for all that is under way, then end the block."""
        if not self.begun:
            self.begun = True
            self.time += self.barrier_cost
        if not self._all_quiet():
            return
        self.asleep = True
        self.agenda.at(self.time, PROGRAM, self.scalar_rank, self._ended)

    def _ended(self, _: Any) -> None:
        self.asleep = False
        part = self.part
        self.part = None
        self.position += 2  # the two items that end a program have numbers as well
        self.log.blocks.append((part.block, self.block_start, self.time))
        self.log.end = self.time
        self.on_end(part, self, self.time)
