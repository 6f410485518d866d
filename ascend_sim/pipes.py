"""Pipes of one core: in-order queues of instructions, flags and barriers.

A pipe handles its items in order and works ahead of the clock as far as everything it depends on is known;
only transfers, whose end the memory system decides, make it wait. Data moves at the simulated time all the
same: sources are read when an instruction starts, results are written when it retires.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mypy_extensions import mypyc_attr

from ascend_sim.agenda import READ, RETIRE
from ascend_sim.cost import beside_writes, load_limit, price, whole
from ascend_sim.prices import Price
from ascend_sim.trace import Conflicts, Item, Kind, Transfer
from isa.faults import IsaFault
from isa.types import CacheMode, Pipe

if TYPE_CHECKING:
    from ascend_sim.core import Core
    from ascend_sim.gm import Port
    from ascend_sim.requests import Bursts
    from ascend_sim.unit_flags import UnitFlags
    from isa.instruction import Call

_INSTRUCTION: Final = Kind.INSTRUCTION
_SET: Final = Kind.SET_FLAG
_WAIT: Final = Kind.WAIT_FLAG
_BARRIER: Final = Kind.BARRIER


_BYPASS: Final = CacheMode.CACHE_MODE_DISABLE
_MTE2: Final = Pipe.MTE2


class Flag:
    """One flag: raised tokens with the cycle from which a wait sees them, and who waits."""

    __slots__ = ("sets", "tokens", "waiter", "waits")

    def __init__(self) -> None:
        self.tokens: list[tuple[int, Item]] = []
        self.waiter: Any = None
        self.sets: list[Item] = []
        self.waits = 0


class Place:
    """One place of a pipe's queue: an item, or none since cycle `free`."""

    __slots__ = ("free", "item")

    def __init__(self, free: int) -> None:
        self.free = free
        self.item: Item | None = None


@mypyc_attr(allow_interpreted_subclasses=True)
class PipeQueue:
    """One pipe. `accept` is when it may handle its next item, `landed` when all it has started is visible.

    Its queue has `depth` places, taken in turn: `held` of them hold an item, from place `first` on.
    """

    __slots__ = (
        "accept", "beside", "blocked", "core", "depth", "first", "flying", "gate", "held", "landed", "last", "name",
        "pipe", "places", "rank", "results",
    )  # fmt: skip

    def __init__(self, core: Core, pipe: Pipe, depth: int, rank: int) -> None:
        self.core = core
        self.pipe = pipe
        self.name = pipe.name
        self.depth = depth
        self.rank = rank
        self.gate: UnitFlags | None = None  # of M and FIX
        self.beside: Port | None = None  # of MTE1: MTE2's, which writes the L1 that it reads
        self.results: dict[Item, Any] = {}  # read and computed, but not written yet
        self.reset(0)

    def reset(self, time: int) -> None:
        """Empty the pipe at the start of a block."""
        self.places = [Place(time) for _ in range(self.depth)]
        self.first: int = 0
        self.last: int = 0
        self.held: int = 0
        self.flying: list[Item] = []  # started, end not known yet; with the sets behind them
        self.accept = time
        self.landed = time
        self.blocked: Item | None = None

    @property
    def idle(self) -> bool:
        """Whether nothing is queued or under way with an unknown end."""
        return not self.held and not self.flying and self.blocked is None

    def advance(self) -> None:
        """Handle items until the queue is empty or the next one depends on something unknown."""
        places, flying, depth = self.places, self.flying, self.depth
        core = self.core
        flags, gate = core.flags, self.gate
        accept, first, held = self.accept, self.first, self.held
        while held:
            place = places[first]
            item = place.item
            assert item is not None
            step = item.step
            head = item.issue
            if head < accept:
                head = accept
            item.head = head
            kind = step.kind
            if kind is _WAIT:
                flag = flags.get(step.flag)
                if flag is None or not flag.tokens:
                    core.flag(step).waiter = self
                    self.blocked = item
                    break
                visible, item.partner = flag.tokens.pop(0)
                if visible > head:
                    head = visible
                item.start = item.accept = item.end = accept = head
            elif kind is _SET:
                item.start = accept = head
                if flying:
                    flying.append(item)
                else:
                    core.fire(item, (head if head > self.landed else self.landed) + core.set_cycles)
            elif kind is _INSTRUCTION:
                gated = gate is not None and item.call.unit_flag
                if gated:
                    head = gate.start(self, item, head)  # type: ignore[union-attr]
                    if head < 0:
                        self.blocked = item
                        break
                item.start = head
                self.begin(item, head)
                accept = self.accept
                if gated:
                    gate.begun(self, item)  # type: ignore[union-attr]
            elif flying:
                self.blocked = item
                break
            else:
                if self.landed > head:
                    head = self.landed
                item.start = item.accept = item.end = accept = head
            place.item = None  # the item has left the queue
            place.free = head
            first += 1
            if first == depth:
                first = 0
            held -= 1
            if self.blocked is not None:
                break
        self.accept, self.first, self.held = accept, first, held
        if held < depth and core.waiting_for is self:
            core.wake_scalar()

    def begin(self, item: Item, start: int) -> None:
        """Start an instruction. Subclasses decide its interval and its end."""
        raise NotImplementedError

    def land(self, item: Item, end: int) -> None:
        """Record the end of an instruction whose end is known, in order behind those that are still flying."""
        item.end = end
        if self.flying:
            self.flying.append(item)
        elif end > self.landed:
            self.landed = end
        else:
            item.end = self.landed

    def drain(self) -> None:
        """Retire what is known at the head of `flying`, and fire the sets behind it."""
        core = self.core
        flying = self.flying
        landed = self.landed
        while flying:
            item = flying[0]
            if item.step.kind is _SET:
                core.fire(item, (item.head if item.head > landed else landed) + core.set_cycles)
            elif item.end < 0:
                break
            elif item.end < landed:
                item.end = landed
            else:
                landed = item.end
            del flying[0]
        self.landed = landed
        if not flying:
            if self.blocked is not None and self.blocked.step.kind is _BARRIER:
                self.blocked = None
            if core.waiting_all:
                core.wake_scalar()


@mypyc_attr(allow_interpreted_subclasses=True)
class ComputePipe(PipeQueue):
    """V, M or MTE1: everything about an instruction is known when it starts.

    The next one may start when this one's repeats, fractals or bytes have passed; results land after the drain.
    """

    __slots__ = ()

    def begin(self, item: Item, start: int) -> None:
        """Start an instruction."""
        step = item.step
        cost: Price | None = step.price
        if cost is None:
            cost = step.price = price(item.call, self.core.chip)
        if self.beside is not None and self.beside.kind is not None:
            cost = beside_writes(cost, self.beside.rate, self.core.chip)
        self.accept = item.accept = start + cost.interval
        item.end = end = start + cost.duration
        if end > self.landed:
            self.landed = end
        else:
            item.end = end = self.landed
        if cost.conflict:
            item.spent = Conflicts(cost.lead, cost.conflict)
        if self.core.numerics and item.call.writes:
            self._compute(item)

    def _compute(self, item: Item) -> None:
        """See to the numbers of an instruction that has its times."""
        deeds, rank = self.core.deeds, self.rank + item.index
        reading, end = self._reading(item), item.end
        deeds.add(reading, READ, rank, self._read, item)
        deeds.add(end if end > reading else reading + 1, RETIRE, rank, self._write, item)

    def _reading(self, item: Item) -> int:
        """Return when the numbers of an instruction are computed."""
        return item.start

    def _read(self, item: Item) -> None:
        core, call = self.core, item.call
        program = core.program
        try:
            self.results[item] = call.start(core.memories)
        except IsaFault as fault:
            core.agenda.now = item.start
            program.fault_at(fault, item.site)
        if call.undefined_for is not None and program.session.checks != "off":
            program.look_at_inputs(item)

    def _write(self, item: Item) -> None:
        item.call.retire(self.core.memories, self.results.pop(item))


@mypyc_attr(allow_interpreted_subclasses=True)
class MatrixPipe(ComputePipe):
    """M. An Mmad that adds to what an earlier one has not written yet gets it inside the unit.

    It comes to each fractal as often as the result has fractals: with too few of them the earlier sum is not there yet
    when its turn comes, and only a barrier helps.
    """

    __slots__ = ()

    def _reading(self, item: Item) -> int:
        """Return when an Mmad's numbers are computed: when the Fixpipes before it have read all of its units.

        It may have begun earlier, even before those were known; by its flags nobody touches its operands meanwhile.
        """
        if self.gate is None or not item.call.unit_flag:
            return item.start
        return max(item.start, self.gate.emptied(item), self.core.agenda.now)

    def _read(self, item: Item) -> None:
        core, call = self.core, item.call
        inside = core.inside
        result = call.start(inside if core.fractals_follow(call) else core.memories)
        call.retire(inside, result)
        self.results[item] = result


class Route:
    """How a step of an MTE pipe goes: its operand in GM, or, without one, the time that it takes on the core.

    `base` is where the operand lies unless a call says otherwise.
    """

    __slots__ = ("base", "bursts", "bypass", "duration", "interval", "limit")

    def __init__(
        self,
        interval: int,
        duration: int,
        bursts: Bursts | None = None,
        base: int = 0,
        *,
        bypass: bool = False,
        limit: float = 0.0,
    ) -> None:
        self.interval = interval
        self.duration = duration
        self.bursts = bursts
        self.base = base
        self.bypass = bypass
        self.limit = limit


@mypyc_attr(allow_interpreted_subclasses=True)
class MovePipe(PipeQueue):
    """MTE2, MTE3 or FIX: instructions start in order, their bytes go through a port to GM.

    A load lets its successor start after the issue interval, but not before its own requests are on their way:
    latencies overlap, and one load waits for the bytes of another. A store holds the pipe until its bytes are out.
    What does not touch GM (L0C to L1, constant fills) has a price of its own.
    """

    __slots__ = ("_ask", "asking", "interval", "port")

    def __init__(self, core: Core, pipe: Pipe, depth: int, rank: int, port: Port) -> None:
        super().__init__(core, pipe, depth, rank)
        self.port = port
        # Transfers that have started, and whose request the memory system does not have yet.
        self.asking = 0
        port.begun, port.done = self.begun, self.done
        self._ask = self._request  # bound once
        self.interval: int = whole(core.chip.gm.move_issue)

    def begin(self, item: Item, start: int) -> None:
        """Start a transfer; the memory system will tell its end."""
        step = item.step
        route: Route | None = step.price
        if route is None:
            route = step.price = self._route(item.call.template)
        self.accept = item.accept = start + route.interval
        if route.bursts is None:
            self._move_locally(item, start, route)
            return
        self.flying.append(item)
        port, shared = self.port, self.core.memory.shared
        if (
            port.write
            or port.current is not None
            or self.asking
            or (shared and port.other is not None)
        ):
            self.blocked = item
        # Else the port is still idle when the request comes, and a load's bytes begin to pass at once.
        self.asking += 1
        port.asked = start
        self.core.agenda.at(start, READ, self.rank + item.index, self._ask, item)

    def _route(self, call: Call) -> Route:
        if not call.writes:
            return Route(self.interval, self.interval)
        if not call.touches_gm:
            cost = price(call, self.core.chip)
            return Route(cost.interval, cost.duration)
        access = call.writes[0] if self.port.write else call.reads[0]
        return Route(
            self.interval,
            0,
            self.core.memory.l2.bursts(access),
            access.base,
            bypass=call.cache_mode is _BYPASS,
            limit=load_limit(call, self.core.chip),
        )

    def _move_locally(self, item: Item, start: int, route: Route) -> None:
        self.land(item, start + route.duration)
        if self.core.numerics and item.call.writes:
            self.core.agenda.at(start, READ, self.rank + item.index, self._read_locally, item)

    def _read_locally(self, item: Item) -> None:
        self._read(item)
        end = max(item.end, item.start + 1)
        self.core.deeds.add(end, RETIRE, self.rank + item.index, self._write, item)

    def _request(self, item: Item) -> None:
        core = self.core
        if core.numerics:
            self._read(item)
        route: Route = item.step.price
        base: int = item.call.base
        assert route.bursts is not None
        held = self.blocked is item
        self.asking -= 1
        core.memory.request(
            self.port,
            item,
            route.bursts,
            base if base >= 0 else route.base,
            bypass=route.bypass,
            limit=route.limit,
            yielding=held and not self.port.write,
        )
        if held and self.blocked is None:
            core.pump()

    def begun(self, item: Item) -> None:
        """Take the begin of a transfer's bytes: the pipe may take another load."""
        if self.blocked is item and not self.port.write:
            now = self.core.agenda.now
            if now > item.accept:
                self.accept = item.accept = now
            self.blocked = None

    def _read(self, item: Item) -> None:
        """Read the operands. With unit flags those out of L0C are taken unit by unit, each when it is there."""
        core, call = self.core, item.call
        if self.pipe is not _MTE2:
            core.deeds.catch_up(READ, self.rank + item.index)
        self.results[item] = call.start(core.inside if call.unit_flag else core.memories)

    def done(self, item: Item) -> None:
        """Take the end of a transfer's bytes: its results follow after the latency; what waited can go on."""
        core = self.core
        transfer: Transfer = item.spent  # type: ignore[assignment]
        end = transfer.passed + transfer.latency
        if self.port.write:
            if end > item.accept:
                self.accept = item.accept = end
            self.blocked = None
            end = max(end, item.start + transfer.complete)
        item.end = end
        self.drain()
        if core.numerics:
            if self.port.write:  # what comes into GM is everybody's concern
                core.agenda.at(item.end, RETIRE, self.rank + item.index, self._write, item)
            else:
                core.deeds.add(item.end, RETIRE, self.rank + item.index, self._write, item)
                core.deeds.thin_out()
        core.pump()

    def _write(self, item: Item) -> None:
        item.call.retire(self.core.memories, self.results.pop(item))
