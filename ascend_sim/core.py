"""One core: its memories, its pipes, and the scalar unit that issues a program's items in order.

The kernel's Python runs in a greenlet some items ahead of the scalar unit (`program`); it is switched to only
when the scalar unit has run out of items, or has read the value that the kernel waits for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mypy_extensions import mypyc_attr

from ascend_sim.agenda import PROGRAM, Agenda
from ascend_sim.code_cache import CodeCache
from ascend_sim.core_memories import OwnMemories
from ascend_sim.cost import whole
from ascend_sim.cross_core import FIRST_KEY
from ascend_sim.data_cache import DataCache
from ascend_sim.deeds import Deeds
from ascend_sim.flag_items import OF_SOURCE
from ascend_sim.mailbox import MAIL_KEY, Mailbox
from ascend_sim.pipes import ComputePipe, Flag, MatrixPipe, MovePipe, PipeQueue
from ascend_sim.soft_flags import SOFT
from ascend_sim.trace import PIPES, Cause, CoreLog, Item, Kind, Stall, Step
from ascend_sim.unit_flags import UnitFlags, UnitMap
from isa.types import PIPES_OF, CoreKind, Pipe, Space

if TYPE_CHECKING:
    from ascend_sim.config import Chip
    from ascend_sim.cross_core import CrossFlags
    from ascend_sim.gm import GlobalMemory, Port
    from isa.access import Access
    from isa.instruction import Call

ITEM_BITS: Final = 40
"""Ranks leave this many bits for the number of an item: what one pipe does in one cycle is in program order."""
FRACTAL_CELLS: Final = 256
"""Results of one fractal of L0C: 16 × 16."""
FETCH: Final = "instruction cache miss"
"""What a stall of the scalar unit says that waits for its own code."""
_SET: Final = Kind.SET_FLAG
_WAIT: Final = Kind.WAIT_FLAG
_BARRIER: Final = Kind.BARRIER
_QUEUE_FULL: Final = Cause.QUEUE_FULL

_SPACES_OF: Final = {
    CoreKind.AIV: (Space.UB,),
    CoreKind.AIC: (Space.L1, Space.L0A, Space.L0B, Space.L0C, Space.BT, Space.FB),
}


@mypyc_attr(allow_interpreted_subclasses=True)
class Core:
    """One core of the chip and what runs on it."""

    def __init__(
        self,
        chip: Chip,
        agenda: Agenda,
        memory: GlobalMemory,
        log: CoreLog,
        *,
        index: int,
        rank: int,
        cluster: int,
        numerics: bool,
        cross: CrossFlags,
        units: UnitMap,
        sub_block: int = 0,
    ) -> None:
        self.chip = chip
        self.agenda = agenda
        self.memory = memory
        self.log = log
        self.name = log.name
        self.kind = log.kind
        self.index = index
        self.rank = rank
        self.cluster = cluster
        self.sub_block = sub_block
        self.cross = cross
        self.cross_flags: dict[int, Flag] = {}  # these outlive a block
        self.mailbox = Mailbox(self)
        self.numerics = numerics
        self.memory_sizes = {
            space: chip.memories[space.name].bytes for space in _SPACES_OF[self.kind]
        }
        self.memories = OwnMemories(self.memory_sizes)
        self.deeds = Deeds(agenda)
        self.set_cycles: int = whole(chip.sync.set)
        self.visible: int = whole(chip.sync.visible)
        self.write_latency: int = whole(chip.gm.latency_l2_write)
        scalar = chip.scalar
        move, cube = whole(scalar.move_issue), whole(scalar.cube_issue)
        issue = [0, whole(scalar.vector_issue), cube, cube, move, move, move]  # by Pipe
        self.flag_cost: int = whole(scalar.flag_issue)
        self.barrier_cost: int = whole(scalar.barrier_issue)
        flags = [self.flag_cost] * PIPES
        self.issue_cost: list[int] = [
            *issue,
            *flags,
            *flags,
            *[self.barrier_cost] * PIPES,
        ]  # by `Step.slot`
        cache = chip.dcache
        self.dcache = DataCache(
            cache.aiv_bytes if self.kind is CoreKind.AIV else cache.aic_bytes, cache.line
        )
        self.code = CodeCache(chip.icache)
        ports = memory.ports(rank, cluster, self.kind)
        self.pipes: dict[Pipe, PipeQueue] = {}
        for pipe in PIPES_OF[self.kind]:
            if pipe is Pipe.S:
                continue
            depth = chip.queue_depth(pipe, self.kind)
            pipe_rank = (rank * len(Pipe) + pipe) << ITEM_BITS
            self.pipes[pipe] = self.make_pipe(pipe, depth, pipe_rank, ports.get(pipe))
        self.enough_cells = chip.cube.dependency_window * FRACTAL_CELLS
        self.unit_flags: UnitFlags | None = None
        self.inside = OwnMemories(  # as pipe M knows the memories: all its sums added
            {Space.L0C: self.memory_sizes.get(Space.L0C, 0)}, self.memories
        )
        if self.kind is CoreKind.AIC:
            self.unit_flags = UnitFlags(self, units)
            self.pipes[Pipe.M].gate = self.pipes[Pipe.FIX].gate = self.unit_flags
            self.pipes[Pipe.MTE1].beside = ports[Pipe.MTE2]
        self.lanes: list[PipeQueue | None] = [self.pipes.get(pipe) for pipe in Pipe]
        self._lane_of: list[PipeQueue | None] = self.lanes * len(Kind)  # by `Step.slot`
        self.scalar_rank = rank * len(Pipe) << ITEM_BITS
        self.flags: dict[int, Flag] = {}
        self.program: Any = None  # a Program, or what plays a recording in place of one
        self.items: list[Item] = []  # what the program has issued
        self.taken = 0  # how many of them the scalar unit is through with
        self.time = 0
        self.waiting_for: PipeQueue | None = None
        self.waiting_all = False
        self.waiting_flag: Item | None = None
        self.waiting_value = False
        self.block_start = 0
        self._all = tuple(self.pipes.values())
        self._scalar_ready = False
        self._pumping = False
        self._sleeping = False

    def make_pipe(self, pipe: Pipe, depth: int, rank: int, port: Port | None) -> PipeQueue:
        """Return a pipe of this core; `port` is its way to GM."""
        if port is not None:
            return MovePipe(self, pipe, depth, rank, port)
        return (MatrixPipe if pipe is Pipe.M else ComputePipe)(self, pipe, depth, rank)

    # ---- blocks -----------------------------------------------------------------------------

    def start_block(self, program: Any, time: int) -> None:
        """Begin a block's program at a cycle, on fresh memories and lowered flags."""
        self.program = program
        self.time = self.block_start = time
        if not self.log.blocks:
            self.log.start = time
        self.log.make_room(self.agenda.now)
        self.log.firsts.append(self.log.count)
        self.memories.poison()
        if self.unit_flags is not None:
            self.inside.poison()
            self.unit_flags.clear()
        for pipe in self.pipes.values():
            pipe.reset(time)
        self.flags = {}
        self._scalar_ready = True
        self.pump()

    def _end_block(self) -> None:
        program = self.program
        assert program is not None
        self.program = None
        self.log.blocks.append((program.block, self.block_start, self.time))
        self.log.end = self.time
        program.on_end(self, self.time)

    def fractals_follow(self, call: Call) -> bool:
        """Return whether an Mmad may add to the sums of the one before it without a barrier: it has enough fractals."""
        return not call.writes or call.writes[0].elements >= self.enough_cells

    # ---- flags ------------------------------------------------------------------------------

    def flag(self, step: Step) -> Flag:
        """Return the flag of a set or a wait, lowered if nobody used it yet."""
        if step.mode == SOFT:
            return self.cross.soft.flag(step.flag)
        flags = self.flags if step.event is not None else self.cross_flags
        flag = flags.get(step.flag)
        if flag is None:
            flag = flags[step.flag] = Flag()
        return flag

    def deliver(self, flag_id: int, visible: int, item: Item) -> None:
        """Count a cross-core flag up; whoever waits for it sees it at cycle `visible`."""
        flag = self.cross_flags.setdefault(FIRST_KEY + flag_id, Flag())
        flag.tokens.append((visible, item))
        if flag.waiter is not None:
            flag.waiter = None
            self.wake_scalar()
            self.pump()

    def fire(self, item: Item, time: int) -> None:
        """Raise a flag at a cycle; a wait sees it `visible` cycles later."""
        item.accept = item.end = time
        step = item.step
        if step.event is None:
            self.cross.fire(self, item, time)
            return
        flag = self.flags.get(step.flag)
        if flag is None:
            flag = self.flags[step.flag] = Flag()
        if not flag.tokens or step.flag < OF_SOURCE:
            flag.tokens.append((time + self.visible, item))
        waiter = flag.waiter
        if waiter is not None:
            flag.waiter = None
            if waiter is self:
                self._scalar_ready = True
            else:
                queue: PipeQueue = waiter
                queue.blocked = None

    # ---- the work list ----------------------------------------------------------------------

    def wake_scalar(self) -> None:
        """Let the scalar unit try again."""
        self._scalar_ready = True

    def pump(self) -> None:
        """Let pipes and scalar unit go on until everything waits for something later."""
        if self._pumping:
            return
        self._pumping = True
        pipes = self._all
        moved = True
        while moved or self._scalar_ready:
            moved = False
            for pipe in pipes:
                if pipe.held and pipe.blocked is None:
                    pipe.advance()
                    moved = True
            if self._scalar_ready or (moved and self.waiting_all):
                self._scalar_ready = False
                self._run_scalar()
                moved = True
        self._pumping = False

    # ---- the scalar unit --------------------------------------------------------------------

    def _stall(self, until: int, cause: Cause, item: Item, detail: str = "") -> None:
        if until > self.time:
            self.log.stalls.append(Stall(self.time, until, cause, item.site, detail))
            self.time = until

    def _run_scalar(self) -> None:
        """Issue items in program order until the scalar unit has to wait."""
        if self._sleeping or self.waiting_value:
            return
        items, lane_of, costs = self.items, self._lane_of, self.issue_cost
        known = self.code.known
        while True:
            time, taken = self.time, self.taken
            while taken < len(items):
                item = items[taken]
                step = item.step
                if step.site >= len(known) or not known[step.site]:
                    self.time = time
                    self._stall(time + self.code.fetch(step.site), Cause.SCALAR, item, FETCH)
                    time = self.time
                slot = step.slot
                pipe = lane_of[slot]
                if pipe is None:
                    self.time, self.taken = time, taken
                    if not self._scalar_item(item):
                        return
                    time = self.time
                    taken += 1
                    continue
                if pipe.held == pipe.depth:
                    self.time, self.taken = time, taken
                    self.waiting_for = pipe
                    return
                last = pipe.last
                place = pipe.places[last]
                free = place.free
                if free > time:
                    stall = Stall(time, free, _QUEUE_FULL, item.step.site, pipe.name)
                    self.log.stalls.append(stall)
                    time = free
                item.issue = time = time + costs[slot]
                place.item = item
                last += 1
                pipe.last = last if last < pipe.depth else 0
                pipe.held += 1
                taken += 1
            items.clear()
            self.time, self.taken = time, 0
            self.waiting_for = None
            program = self.program
            if program is None:
                return
            if time > self.agenda.now:
                self._sleeping = True
                self.agenda.at(time, PROGRAM, self.scalar_rank, self._refill)
                return
            program.resume(None)

    def _refill(self, _: Any) -> None:
        """Let the kernel's Python run on: the scalar unit has caught up with it."""
        self._sleeping = False
        self.log.make_room(self.agenda.now)
        if self.program is not None:
            self.program.resume(None)
            self._scalar_ready = True
            self.pump()

    def _scalar_item(self, item: Item) -> bool:
        """Execute an item of the scalar unit; return False where it has to wait."""
        kind = item.kind
        if kind is _SET:
            self.time += self.flag_cost
            item.issue = item.head = item.start = self.time
            self.fire(item, self.time + self.set_cycles)
            return True
        if kind is _WAIT:
            return self._wait_into_scalar(item)
        if kind is _BARRIER:
            if not self._all_landed(item):
                return False
            item.issue = item.start = item.accept = item.end = self.time
            return True
        return self._scalar_instruction(item)

    def _wait_into_scalar(self, item: Item) -> bool:
        if item.head < 0:
            self.time += self.flag_cost
            item.issue = item.head = self.time
        if item.flag == MAIL_KEY:
            return self._wait_for_message(item)
        flag = self.flag(item.step)
        soft = item.mode == SOFT
        if not flag.tokens:
            if soft:
                self.cross.soft.sleep(item.flag, self)
            else:
                flag.waiter = self
            self.waiting_flag = item
            return False
        self.waiting_flag = None
        if item.event is None and not soft and len(flag.tokens) > self.cross.limit:
            self.cross.check_counter(self, flag.tokens)
        visible, item.partner = flag.tokens.pop(0)
        event = item.event.name if item.event is not None else f"id {item.event_id}"
        if soft:
            event = item.partner.call.text
        self._stall(visible, item.cause, item, f"{item.partner.name} {event}")
        item.start = item.accept = item.end = self.time
        return True

    def _wait_for_message(self, item: Item) -> bool:
        found = self.mailbox.take(item)
        if found is None:
            self.waiting_flag = item
            return False
        self.waiting_flag = None
        visible, item.partner = found
        self._stall(visible, item.cause, item, f"{item.partner.name} {item.partner.call.text}")
        item.start = item.accept = item.end = self.time
        return True

    def _all_landed(self, item: Item) -> bool:
        """Wait until every pipe is empty and all results are visible."""
        if item.head < 0:
            self.time += self.barrier_cost
            item.head = self.time
        for pipe in self.pipes.values():
            if not pipe.idle:
                self.waiting_all = True
                return False
        self.waiting_all = False
        self._stall(
            max(max(pipe.landed, pipe.accept) for pipe in self.pipes.values()), Cause.BARRIER, item
        )
        return True

    def _scalar_instruction(self, item: Item) -> bool:
        call = item.call
        if item.issue < 0:
            item.issue = item.head = item.start = self.time
            self.time += call.cycles(self)
            item.accept = item.end = self.time
            if call.action is None:
                return True
            self.waiting_value = True
            self.agenda.at(self.time, call.phase, self.scalar_rank, self._act, item)
            return False
        return True

    def _act(self, item: Item) -> None:
        """Perform a scalar access at its simulated time and let the program go on."""
        call = item.call
        self.waiting_value = False
        self.deeds.catch_up(call.phase, self.scalar_rank)
        value = call.action(self)
        if call.wanted and self.program is not None:
            self.log.make_room(self.agenda.now)
            self.taken += 1
            if self.taken == len(self.items):
                self.items.clear()
                self.taken = 0
            self.program.resume(value)
        self._scalar_ready = True
        self.pump()

    def stands(self) -> bool:
        """Return whether nothing goes on here unless another core does something."""
        if self.program is None:
            return True
        if self._sleeping or self.waiting_value or self.mailbox.has_letters():
            return False
        if any(pipe.flying for pipe in self.pipes.values()):
            return False
        return self.waiting_flag is not None or self.waiting_all or self.waiting_for is not None

    def finish_block(self) -> None:
        """End the running block: its program has returned and all its work has landed."""
        self.dcache.flush()
        self._end_block()

    def bytes(self, access: Access) -> Any:
        """Return the bytes of the memory or allocation that an access touches."""
        return access.buffer.data if access.buffer is not None else self.memories[access.space]

    def clean_cycles(self, buffer: Any, offset: int) -> int:
        """Return what cleaning a line of the data cache costs (all lines where there is no buffer).

        A dirty line goes to L2 first; estimated, like the price of a clean one.
        """
        if self.dcache.is_dirty(buffer, offset):
            return self.write_latency
        return whole(self.chip.scalar.gm_hit)

    def scalar_gm_cycles(self, buffer: Any, offset: int) -> int:
        """Return what a scalar access to GM costs: a data cache hit, or a line from L2 or HBM."""
        scalar = self.chip.scalar
        if self.dcache.hit(buffer, offset):
            return whole(scalar.gm_hit)
        return whole(
            scalar.gm_miss
            if self.memory.l2.touch_line(buffer, offset)
            else self.chip.gm.latency_hbm
        )
