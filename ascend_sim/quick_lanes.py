"""The machine's rules for vector cores without its records: the pipes and the scalar unit of `quick`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mypy_extensions import mypyc_attr

from ascend_sim.agenda import PROGRAM, READ, Agenda
from ascend_sim.core import Core
from ascend_sim.program import AHEAD
from isa.types import Pipe

if TYPE_CHECKING:
    from ascend_sim.gm import Port

WAIT: Final = 0
BARRIER: Final = 1
SET: Final = 2
COMPUTE: Final = 3
MOVE: Final = 4
LOCAL: Final = 5
OWN: Final = 6  # what the scalar unit does itself comes from here on
OWN_SET: Final = 6
OWN_WAIT: Final = 7
OWN_BARRIER: Final = 8
SPEND: Final = 9
READ_GM: Final = 10

_FREE: Final = 0
_FOR_FLAG: Final = 1
_FOR_BARRIER: Final = 2
_FOR_MOVE: Final = 3


class Operation:
    """A step on one chip: its code, what issuing it costs, its pipe, and what else its code asks for."""

    __slots__ = (
        "buffer", "bursts", "bypass", "code", "cost", "duration", "flag", "interval", "phase", "pipe", "place", "site",
    )  # fmt: skip

    def __init__(self, code: int, cost: int, pipe: int) -> None:
        self.code = code
        self.cost = cost
        self.pipe = pipe
        self.site = 0
        self.flag = -1
        self.interval = self.duration = 0
        self.bursts: Any = None  # of a move
        self.bypass = False
        self.buffer: Any = None  # of a read of GM, as the place and the phase
        self.place = self.phase = 0


class _Flag:
    """A flag: from which cycle on its first set is seen, -1 while it is not raised; the sets behind; who waits."""

    __slots__ = ("later", "visible", "waiter")

    def __init__(self) -> None:
        self.visible = -1
        self.later: list[int] = []
        self.waiter: Any = None

    def take(self) -> int:
        """Lower it and return the cycle; -1 where it is not raised."""
        visible = self.visible
        self.visible = self.later.pop(0) if self.later else -1
        return visible


class _Place:
    """One place of a pipe's queue: since when it is free, or the item in it, issued at `time`."""

    __slots__ = ("base", "free", "index", "operation", "time")

    operation: Operation

    def __init__(self, free: int) -> None:
        self.free = free
        self.time = self.index = 0
        self.base = 0  # of a move: where its side in GM begins


@mypyc_attr(allow_interpreted_subclasses=True)
class Clock(Agenda):
    """The agenda without SimPy: nothing but the pipes' own actions is due here."""

    def run(self) -> None:
        """Run until nothing is due any more."""
        while self._times:
            self.serve_next()


class _Flight:
    """A transfer under way, or a set behind one (`flag`); `end` is -1 while it is not known."""

    __slots__ = ("base", "end", "flag", "operation", "partner", "spent", "start", "yielding")

    operation: Operation

    def __init__(self, start: int, flag: int = -1, end: int = -1) -> None:
        self.start = start
        self.flag = flag
        self.end = end
        self.base = 0
        self.yielding = False  # a load that may let a store of its core go first
        self.partner: Any = None
        self.spent: Any = None


class _Lane:
    """A pipe's queue: see `PipeQueue`, whose rules these are."""

    __slots__ = (
        "accept", "blocked", "core", "depth", "first", "flying", "held", "landed", "last", "pipe", "places", "port",
        "queued", "rank", "write",
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
        self.places = [_Place(time) for _ in range(self.depth)]
        self.first = self.last = self.held = (
            0  # the next to be handled and to be taken; how many are taken
        )
        self.flying: list[_Flight] = []
        self.accept = self.landed = time
        self.blocked = _FREE
        self.queued = False

    def advance(self) -> None:
        """Handle items until the queue is empty or the next one depends on something unknown."""
        core, places, depth = self.core, self.places, self.depth
        flying, flags = self.flying, core.flag_list
        accept, landed, first, held = self.accept, self.landed, self.first, self.held
        before = held
        while held:
            place = places[first]
            operation = place.operation
            head = place.time
            if head < accept:
                head = accept
            code = operation.code
            if code == COMPUTE:
                accept = head + operation.interval
                end = head + operation.duration
                if end > landed:
                    landed = end
            elif code == WAIT:
                flag = flags[operation.flag]
                visible = flag.take()
                if visible < 0:
                    flag.waiter = self
                    self.blocked = _FOR_FLAG
                    break
                if head < visible:
                    head = visible
                accept = head
            elif code == SET:
                accept = head
                if flying:
                    flying.append(_Flight(head, operation.flag))
                else:
                    core.raise_flag(operation.flag, head if head > landed else landed)
            elif code == BARRIER:
                if flying:
                    self.blocked = _FOR_BARRIER
                    break
                if head < landed:
                    head = landed
                accept = head
            elif code == MOVE:
                accept = head + operation.interval
                flight = _Flight(head)
                flight.operation, flight.base = operation, place.base
                port = self.port
                assert port is not None
                flight.yielding = not self.write and (
                    port.current is not None or (core.memory.shared and port.other is not None)
                )
                port.asked = head
                flying.append(flight)
                core.agenda.at(head, READ, self.rank + place.index, self.request, flight)
                self.blocked = _FOR_MOVE
            else:
                accept = head + operation.interval
                end = head + operation.duration
                if flying:
                    flying.append(_Flight(head, -1, end))
                elif end > landed:
                    landed = end
            place.free = head
            first += 1
            if first == depth:
                first = 0
            held -= 1
            if code == MOVE:
                break
        self.accept, self.landed, self.first, self.held = accept, landed, first, held
        if held != before and core.waiting_lane is self:
            core.scalar_ready = True

    def request(self, flight: _Flight) -> None:
        """Hand a transfer to the memory system."""
        operation, port = flight.operation, self.port
        assert port is not None
        self.core.memory.request(
            port, flight, operation.bursts, flight.base, bypass=operation.bypass, yielding=flight.yielding,
        )  # fmt: skip

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
                flying.pop(0)
                core.raise_flag(first.flag, first.start if first.start > landed else landed)
            elif first.end >= 0:
                flying.pop(0)
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
        if self.held:
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
        self.lane_list = [self.quick.get(pipe) for pipe in Pipe]
        self.flag_list: list[_Flag] = []
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
        self.addresses: list[int] = []
        self.moved = 0
        self.portion = 0

    def begin_part(
        self, part: Any, play: list[Operation], addresses: list[int], flags: int, time: int
    ) -> None:
        """Begin a recorded part of a block at a cycle; `addresses` are where its moves' sides in GM begin."""
        self.part = part
        self.play = play
        self.addresses = addresses
        self.base += self.position  # where the block before has ended
        self.position = self.moved = self.portion = 0
        self.flag_list = [_Flag() for _ in range(flags)]
        self.time = self.block_start = time
        if not self.log.blocks:
            self.log.start = time
        for lane in self.quick.values():
            lane.reset(time)
        self.begun = False
        self.scalar_ready = True
        self.pump()

    def raise_flag(self, number: int, time: int) -> None:
        """Raise a flag once all that was before it has landed at `time`."""
        flag = self.flag_list[number]
        visible = time + self.set_cycles + self.visible
        if flag.visible < 0:
            flag.visible = visible
        else:
            flag.later.append(visible)
        waiter = flag.waiter
        if waiter is not None:
            flag.waiter = None
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
        play, lanes, look = self.play, self.lane_list, self.look
        position, time, portion, base = self.position, self.time, self.portion, self.base
        count = len(play)
        known = self.code.known
        while position < count:
            operation = play[position]
            if operation.site >= len(known) or not known[operation.site]:
                time += self.code.fetch(operation.site)
            code = operation.code
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
                lane = lanes[operation.pipe]
                assert lane is not None
                if lane.held == lane.depth:
                    self.waiting_lane = lane
                    self.position, self.time, self.portion = position, time, portion
                    return
                self.waiting_lane = None
                last = lane.last
                place = lane.places[last]
                if place.free > time:
                    time = place.free
                time += operation.cost
                place.time = time
                place.operation = operation
                place.index = base + position
                if code == MOVE:
                    place.base = self.addresses[self.moved]
                    self.moved += 1
                last += 1
                lane.last = last if last < lane.depth else 0
                lane.held += 1
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
            self.time += operation.cost
            return True
        if code == READ_GM:
            if self.begun:
                return True
            self.begun = True
            self.time += self.scalar_gm_cycles(operation.buffer, operation.place)
            self.asleep = True
            self.agenda.at(self.time, operation.phase, self.scalar_rank, self._read)
            return False
        if code == OWN_SET:
            self.time += operation.cost
            self.raise_flag(operation.flag, self.time)
            return True
        if not self.begun:
            self.begun = True
            self.time += operation.cost
        if code == OWN_BARRIER:
            return self._all_quiet()
        flag = self.flag_list[operation.flag]
        visible = flag.take()
        if visible < 0:
            flag.waiter = self
            return False
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
            if lane.held or lane.flying or lane.blocked != _FREE or lane.queued:
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
