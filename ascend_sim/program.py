"""A kernel's program on one core: the stream that its instructions go to.

Runs in a greenlet. Each call becomes an `Item` with its call site; errors are raised right here, on the kernel's
own line. Items wait in the core's list until the scalar unit gets to them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from sys import _getframe
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

import numpy as np
from greenlet import GreenletExit, getcurrent, greenlet

from ascend_sim import errors
from ascend_sim.agenda import PROGRAM, READ, RETIRE
from ascend_sim.auto_sync import AutoSync
from ascend_sim.cost import cube_cycles, whole
from ascend_sim.cross_core import FIRST_KEY
from ascend_sim.errors import Finding, KernelError
from ascend_sim.hazards import Order
from ascend_sim.insert_sync import InsertSync
from ascend_sim.lang.forms import clearer
from ascend_sim.placement import KernelType, task_ratio
from ascend_sim.soft_flags import SOFT, SoftSet
from ascend_sim.trace import Cause, Item, Kind, Step
from isa.access import contiguous
from isa.atomic import as_atomic
from isa.instruction import Call
from isa.stream import Registers, current
from isa.types import (
    EVENT_IDS,
    EVENT_SOURCE,
    EVENT_TARGET,
    PIPES_OF,
    CoreKind,
    HardEvent,
    Pipe,
    Space,
)

if TYPE_CHECKING:
    from ascend_sim.core import Core
    from ascend_sim.session import Session
    from isa.access import Access
    from isa.faults import IsaFault
    from isa.tensor import GlobalTensor, LocalTensor

_FLAG = Cause.FLAG
_M = Pipe.M
_INSTRUCTION, _SET, _WAIT, _BARRIER = Kind.INSTRUCTION, Kind.SET_FLAG, Kind.WAIT_FLAG, Kind.BARRIER

_FULL = (1 << EVENT_IDS) - 1
_LOWEST = [(~used & (used + 1)).bit_length() - 1 for used in range(_FULL)]
"""The lowest free id of an event by the ids in use, a bit each."""
_BARRIER_KEY = 1 << 11
"""In the keys of steps: above all flags."""

AHEAD = 256
"""How many items the kernel's Python runs ahead of the scalar unit: enough to make greenlet switches rare."""

_FAREWELLS = 3
"""How often a kernel is told to end: its own clean-up may still issue."""

POLLS = 1024
"""Equal reads of GM in a row after which the others are looked at: whether any of them can still change the value."""
POLL_ITEMS = 8
"""Items of one turn of a loop that polls, at most."""

_ERROR_OF_KIND: dict[str, type[KernelError]] = {
    "ALIGNMENT": errors.AlignmentError,
    "BOUNDS": errors.BoundsError,
    "CAPACITY": errors.CapacityError,
    "QUEUE": errors.QueueError,
    "DEADLOCK": errors.DeadlockError,
    "HOST": errors.HostError,
    "FLAG_BALANCE": errors.SyncError,
    "RACE": errors.RaceError,
    "UNINIT": errors.UninitializedRead,
}


class KernelReturns(BaseException):
    """Ends a core's program from inside a library call, as a return of the kernel's function would."""


class ScalarCall:
    """Something that the scalar unit itself does: `cost(core)` cycles, then `action(core)`.

    `wanted` says that the program waits for the action's value. What a recording needs to know of the call:
    `access`, the element that it reads or writes, or `spent`, its fixed cycles (a number, or the name of one in the
    chip's section `scalar`), and `line`, the place in GM that it brings into the data cache besides.
    """

    __slots__ = (
        "access", "action", "bytes", "cost", "line", "name", "phase", "spent", "text", "wanted", "work",
    )  # fmt: skip
    atomic = None  # the scalar unit's stores are plain

    def __init__(
        self,
        name: str,
        cost: Callable[[Core], int],
        action: Callable[[Core], Any] | None = None,
        *,
        phase: int = READ,
        wanted: bool = False,
        text: str = "",
        access: Access | None = None,
        spent: float | str | None = None,
        line: tuple[Any, int] | None = None,
    ) -> None:
        self.name = name
        self.cost = cost
        self.action = action
        self.phase = phase
        self.wanted = wanted
        self.text = text
        self.access = access
        self.spent = spent
        self.line = line
        self.bytes = 0
        self.work = 0

    def cycles(self, core: Core) -> int:
        """Return what the scalar unit spends on it."""
        return self.cost(core)

    def detail(self) -> str:
        """Describe it for traces."""
        return self.text


class Program:
    """One block of a kernel on one core, as a stream."""

    has_queues = True
    one_thread = True  # a run keeps the matrix library at one thread
    own_sync = True

    def __init__(
        self, session: Session, core: Core, block: int, body: Callable[[], None], sub_block: int = 0
    ) -> None:
        self.session = session
        self.core = core
        self.block = block
        self.sub_block = sub_block
        self.unit = session.unit(block, core.kind, sub_block)  # among all that run unordered
        self.calls: dict[Any, Call] = session.calls.setdefault(core.kind, {})
        self.registers = Registers()
        self.registers.saturate = session.saturate
        self.core_kind = core.kind
        self.exact = session.exact  # which order of additions matrix products have
        self.tpipe: Any = None
        self.auto_tensors: Any = None  # where tensors go that the compiler places
        self.events = [0] * len(HardEvent)  # ids in use, a bit each
        self.events_by_hand = [0] * len(HardEvent)  # those of them that the kernel took itself
        self._frame: FrameType | None = None  # the kernel's function that issued last
        self._places: dict[int, int] = {}  # its call sites by instruction offset
        self._raised: dict[int, int] = {}  # sets less waits of the kernel's own flags, as issued
        self.polled: tuple[Any, ...] = ()  # the last scalar read of GM: site, place, byte, value
        self.polls = 0  # how often that came again and again
        self._polled_at = 0
        self.polling = False  # whether instructions read words that others may be storing meanwhile
        self.failure: BaseException | None = None
        self.freed: dict[
            int, int
        ] = {}  # queue buffers that are free: owner's serial, site of free_tensor
        self.libraries: dict[str, Any] = {}  # what the high-level part keeps on this core
        self.closing: list[
            Callable[[], None]
        ] = []  # what it does when the kernel's function has returned
        self._borrowed_site: int | None = None
        self.phase = 0
        self.order = Order(self) if session.checks != "off" else None
        self.auto = AutoSync(self) if session.auto_sync and core.kind is CoreKind.AIV else None
        self._watch: Callable[[Item], None] | None = None  # sees all items
        if self.auto is not None:
            self._watch = self._see
        elif self.order is not None:
            self._watch = self.order.issue
        self.insert: InsertSync | None = None
        self.plain: set[int] = set()  # owners of bytes that no queue manages: serials of TBufs
        if session.insert_sync:
            self.use_insert_sync()
        pipes = PIPES_OF[core.kind]
        self._works = [  # by event: whether it connects two different pipes of this core
            source in pipes and target in pipes and source is not target
            for source, target in zip(EVENT_SOURCE, EVENT_TARGET, strict=True)
        ]
        self._body = body
        self._items = core.items
        self._core_index = core.index
        self._log = core.log.items
        self._index = len(core.log.items)
        self._until = 0  # the item behind which the scalar unit gets its turn
        self._steps = session.steps_of(core.kind, 0)
        self._greenlet = greenlet(self._run)
        self._greenlet.gr_context = copy_context()

    @property
    def number(self) -> int:
        """The index that `get_block_idx` gives."""
        if self.core_kind is CoreKind.AIC:
            return self.block
        return self.block * task_ratio(self.session.kernel_type) + self.sub_block

    # ---- the greenlet -----------------------------------------------------------------------

    def _run(self, _: Any = None) -> None:
        current.set(self)
        try:
            with suppress(KernelReturns):
                self._body()
            for close in reversed(self.closing):
                close()
            if self.tpipe is not None:
                self.tpipe.close()
            elif self.insert is not None:
                item = self._new(Pipe.S, Kind.BARRIER, "pipe_barrier", 0)
                item.cause, item.inserted = Cause.BARRIER, True
                self._append(item)
        except GreenletExit:  # the launch is over
            return
        except BaseException as error:
            self.failure = clearer(error, self)
            self._scalar(ScalarCall("fault", lambda _: 0, self._fail, phase=PROGRAM), log=False)
            return
        item = self._new(Pipe.S, Kind.BARRIER, "end", 0, log=False)
        self._items.append(item)
        if self.order is not None:
            self.order.close()
        self._scalar(
            ScalarCall("end", lambda _: 0, lambda core: core.finish_block(), phase=PROGRAM),
            log=False,
        )

    def _fail(self, _: Core) -> None:
        assert self.failure is not None
        raise self.failure

    def resume(self, value: Any) -> None:
        """Run the kernel's Python until it is far enough ahead, wants a value, or ends."""
        if self._greenlet.dead:
            return
        self._until = self._index + AHEAD - 1
        self._greenlet.switch(value)

    def dismiss(self) -> None:
        """End a kernel that does not go on: the frames of a switched-off greenlet are never collected."""
        for _ in range(_FAREWELLS):
            if not self._greenlet:
                return
            self._greenlet.throw()

    def _give_way(self) -> Any:
        return getcurrent().parent.switch()

    def on_end(self, core: Core, time: int) -> None:
        """Tell the session that the block is over."""
        self._check_registers()
        self.session.block_done(self, core, time)

    # ---- items ------------------------------------------------------------------------------

    def site(self, depth: int = 3) -> int:
        """Return the index of the call site: the kernel's frames, innermost first.

        `depth` is where the kernel's own frame is expected, counted from here; frames of the simulator that are
        nearer are passed over. While one function of the kernel runs, its callers stand still, so only the
        place inside it has to be looked up.
        """
        frame = _getframe(depth)
        if frame is self._frame:
            index = self._places.get(frame.f_lasti)
            if index is not None:
                return index
        return self._find_site(frame)

    def borrow_site(self, site: int | None) -> None:
        """Take a call site of the core whose command is being served for all that follows; None: no more."""
        self._borrowed_site, self._frame = site, None

    def _find_site(self, frame: FrameType | None) -> int:
        if self._borrowed_site is not None:
            return self._borrowed_site
        session = self.session
        library = session.library_code
        while frame is not None and id(frame.f_code) in library:
            frame = frame.f_back
        if frame is None or frame.f_code is _RUN_CODE:
            return 0
        chain: list[int] = [
            id(frame.f_code)
        ]  # ids: a code object's hash goes over all its constants
        caller = frame.f_back
        while caller is not None and (code := caller.f_code) is not _RUN_CODE:
            if id(code) not in library:
                chain += (id(code), caller.f_lasti)
            caller = caller.f_back
        places = session.places.setdefault(tuple(chain), {})
        index = places.get(frame.f_lasti)
        if index is None:
            index = session.new_site(frame, _RUN_CODE)
            if index < 0:  # frames of the simulator that were not known yet: now they are
                return self._find_site(frame)
            places[frame.f_lasti] = index
        self._frame, self._places = frame, places
        return index

    def _new(self, pipe: Pipe, kind: Kind, name: str, site: int, *, log: bool = True) -> Item:
        """Return an item with a step of its own, which may still be changed."""
        step = Step(pipe, kind, name, site)
        step.phase = self.phase
        item = Item(step, self._core_index, self._index)
        self._index += 1
        if log:
            self._log.append(item)
        return item

    def _append(self, item: Item) -> None:
        if self._watch is not None:
            self._watch(item)
        self._items.append(item)
        if item.index >= self._until:
            self._give_way()

    def _put(self, step: Step, call: Any = None) -> None:
        """Queue an item of a known step."""
        index = self._index
        self._index = index + 1
        item = Item(step, self._core_index, index, call)
        self._log.append(item)
        if self._watch is not None:
            self._watch(item)
        self._items.append(item)
        if index >= self._until:
            self._give_way()

    def _see(self, item: Item) -> None:
        """Let the order of accesses and automatic synchronisation see an item."""
        if self.order is not None:
            self.order.issue(item)
        if self.auto is not None:
            self.auto.see(item)

    def _set_step(self, event: int, event_id: int, site: int, *, inserted: bool) -> Step:
        """Return the step of a set inside a core."""
        flag = event * EVENT_IDS + event_id
        key = site << 12 | flag << 2 | (2 if inserted else 0)
        step = self._steps.get(key)
        if step is None:
            step = self._steps[key] = self._flag_step(_SET, event, event_id, site)
            step.inserted = inserted
        return step

    def _wait_step(
        self, event: int, event_id: int, site: int, cause: Cause, forget: Any, *, inserted: bool
    ) -> Step:
        """Return the step of a wait inside a core."""
        flag = event * EVENT_IDS + event_id
        key = site << 12 | flag << 2 | (3 if inserted else 1)
        step = self._steps.get(key)
        if step is None or step.cause is not cause or step.forget != forget:
            step = self._steps[key] = self._flag_step(_WAIT, event, event_id, site)
            step.cause, step.forget, step.inserted = cause, forget, inserted
        return step

    def _flag_step(self, kind: Kind, event: int, event_id: int, site: int) -> Step:
        if kind is _SET:
            step = Step(EVENT_SOURCE[event], kind, "set_flag", site)
        else:
            step = Step(EVENT_TARGET[event], kind, "wait_flag", site)
        step.phase = self.phase
        step.event, step.event_id = HardEvent(event), event_id
        step.flag = event * EVENT_IDS + event_id
        return step

    def queue_set(self, event: int, label: str, block: Any) -> int:
        """Set an event for a queue's block, with the lowest free id of the framework's pool; return the id.

        Queues make most of a kernel's items, so this and `queue_wait` do all of it in one place; the call site
        becomes the block's.
        """
        frame = _getframe(2)
        site = self._places.get(frame.f_lasti) if frame is self._frame else None
        if site is None:
            site = self._find_site(frame)
        block.site = site
        used = self.events[event]
        event_id = _LOWEST[used] if used < _FULL else self.take_event(HardEvent(event), label)
        self.events[event] = used | 1 << event_id
        step = self._steps.get(site << 12 | event << 5 | event_id << 2)
        if step is None:
            if not self._works[event]:
                self.set_flag(HardEvent(event), event_id, site=site)
                return event_id
            step = self._set_step(event, event_id, site, inserted=False)
        index = self._index
        self._index = index + 1
        item = Item(step, self._core_index, index)
        self._log.append(item)
        if self._watch is not None:
            self._watch(item)
        self._items.append(item)
        if index >= self._until:
            self._give_way()
        return event_id

    def queue_wait(
        self, event: int, event_id: int, block: Any, cause: Cause, forget: Any = None
    ) -> None:
        """Wait for an event that a queue set, and give its id back to the pool.

        `forget` names the bytes that are nobody's from then on: what they hold is not defined any more.
        """
        frame = _getframe(2)
        site = self._places.get(frame.f_lasti) if frame is self._frame else None
        if site is None:
            site = self._find_site(frame)
        block.site = site
        self.events[event] &= ~(1 << event_id)
        step = self._steps.get(site << 12 | event << 5 | event_id << 2 | 1)
        if step is None or step.forget != forget or step.cause is not cause:
            if not self._works[event]:
                self.wait_flag(HardEvent(event), event_id, cause, site=site)
                return
            step = self._wait_step(event, event_id, site, cause, forget, inserted=False)
        index = self._index
        self._index = index + 1
        item = Item(step, self._core_index, index)
        self._log.append(item)
        if self._watch is not None:
            self._watch(item)
        self._items.append(item)
        if index >= self._until:
            self._give_way()

    def issue(self, call: Call, depth: int = 3) -> None:
        """Take a bound instruction; the kernel's frame is `depth` frames above `site`, or further up."""
        frame = _getframe(depth - 1)
        site = self._places.get(frame.f_lasti) if frame is self._frame else None
        if site is None:
            site = self._find_site(frame)
        registers = self.registers
        if registers.atomic_type is not None:
            call = as_atomic(call, registers.atomic_operation, registers.atomic_type)
        if self.auto is not None:
            self.auto.before(call, site)
        if self.insert is not None:
            self.insert.before(call, site)
        template = call.template
        step: Step | None = template.scratch
        if (
            step is None
            or step.site != site
            or step.phase != self.phase
            or step.polls is not self.polling
        ):
            step = self._instruction_step(call, site)
        if self.freed and not self.freed.keys().isdisjoint(step.owners):
            self._use_after_free(call, site)
        if template.lint is not None:
            kind, code, message = template.lint
            self.session.report(kind, code, message, site, self.core.name, call.pipe.name)
        index = self._index
        self._index = index + 1
        item = Item(step, self._core_index, index, call)
        self._log.append(item)
        if self._watch is not None:
            self._watch(item)
        self._items.append(item)
        if index >= self._until:
            self._give_way()
        if self.insert is not None:
            self.insert.after(call, site)

    def _instruction_step(self, call: Call, site: int) -> Step:
        """Return the step of a bound instruction at a place, and keep it with the call."""
        if self.core.lanes[call.pipe] is None:
            raise errors.UnsupportedError(
                f"{call.name}: pipe {call.pipe.name} of a cube core is not simulated yet"
            )
        step = Step(call.pipe, _INSTRUCTION, call.name, site)
        step.phase, step.polls = self.phase, self.polling
        step.bytes = call.bytes
        step.work = (
            cube_cycles(call, self.session.chip) if call.pipe is _M and call.work else call.work
        )
        if call.writes:
            accesses = (call.writes[0], *call.reads)
            step.owners = tuple(
                access.owner.serial for access in accesses if access.owner is not None
            )
            buffer = call.writes[0].buffer
            if buffer is not None:
                self.session.written_buffers.add(buffer.index)
        call.template.scratch = step
        return step

    def _use_after_free(self, call: Call, site: int) -> None:
        for access in (call.writes[0], *call.reads):
            if access.owner is not None and access.owner.serial in self.freed:
                self._report_use_after_free(call, access, site)

    def _report_use_after_free(self, call: Call, access: Access, site: int) -> None:
        assert access.owner is not None
        self.session.report(
            "QUEUE",
            "use-after-free",
            f"{call.name} uses {access.name} after free_tensor at "
            f"{self.session.where_text(self.freed[access.owner.serial])}: the next alloc_tensor may hand its "
            f"bytes to somebody else. Free it after its last use",
            site,
            self.core.name,
            call.pipe.name,
            access.name,
            (access.low, access.high),
        )

    def set_flag(
        self, event: HardEvent, event_id: int, *, inserted: bool = False, site: int | None = None
    ) -> None:
        """Queue a set in the event's first pipe."""
        source, target = EVENT_SOURCE[event], EVENT_TARGET[event]
        managed = site is not None  # queues hand out their ids themselves
        site = self.site() if site is None else site
        if not self._works[event] and not self._flag_works(event, source, target, "set_flag", site):
            return
        step = self._set_step(event, event_id, site, inserted=inserted)
        if not managed:
            if (self.events[event] & ~self.events_by_hand[event]) >> event_id & 1:
                self._id_of_a_queue(step)
            raised = self._raised[step.flag] = self._raised.get(step.flag, 0) + 1
            if raised > 1:
                self._set_twice(step)
        self._put(step)

    def _id_of_a_queue(self, step: Step) -> None:
        assert step.event is not None
        self.session.report(
            "FLAG_BALANCE",
            "event-id-of-a-queue",
            f"set_flag({step.event.name}, {step.event_id}) uses an id that a queue holds at this moment: the two raise "
            f"and lower one flag. Take ids from alloc_event_id of the TPipe",
            step.site,
            self.core.name,
            step.pipe.name,
        )

    def _set_twice(self, step: Step) -> None:
        assert step.event is not None
        self.session.report(
            "FLAG_BALANCE",
            "flag-set-twice",
            f"set_flag({step.event.name}, {step.event_id}) raises a flag whose last set_flag no wait_flag has taken "
            f"yet: a flag is one bit, so one of the two is lost and a later wait hangs. Wait for the first one "
            f"before, or use another event id",
            step.site,
            self.core.name,
            step.pipe.name,
        )

    def wait_flag(
        self,
        event: HardEvent,
        event_id: int,
        cause: Cause = Cause.FLAG,
        *,
        inserted: bool = False,
        site: int | None = None,
    ) -> None:
        """Queue a wait in the event's second pipe."""
        source, target = EVENT_SOURCE[event], EVENT_TARGET[event]
        managed = site is not None
        site = self.site() if site is None else site
        if not self._works[event] and (
            source is target or not self._flag_works(event, source, target, "wait_flag", site)
        ):
            return  # where both pipes are one, the set was a barrier
        step = self._wait_step(event, event_id, site, cause, None, inserted=inserted)
        if not managed:
            self._raised[step.flag] = self._raised.get(step.flag, 0) - 1
        self._put(step)

    def _flag_works(
        self, event: HardEvent, source: Pipe, target: Pipe, name: str, site: int
    ) -> bool:
        if source is target:
            self._barrier(source, site)
            return False
        pipes = PIPES_OF[self.core_kind]
        self.session.report(
            "STATE",
            "flag-without-effect",
            f"{name}({event.name}) has no effect on a {'vector' if self.core_kind is CoreKind.AIV else 'cube'} core, "
            f"which has no {(source if source not in pipes else target).name} pipe",
            site,
            self.core.name,
            "S",
        )
        return False

    def skipped(self, name: str) -> None:
        """Take a vector call on a cube core: in a mix kernel the vector cores do it, else nobody does."""
        if self.session.kernel_type in (KernelType.AIC_ONLY, KernelType.MIX_AIC_1_0):
            self.session.report(
                "STATE",
                "call-without-effect",
                f"{name} does nothing on a cube core, and a kernel of type {self.session.kernel_type.name} has no "
                f"vector core to do it. Launch it with kernel_type AIV_ONLY or a MIX type, or drop the call",
                self.site(),
                self.core.name,
                "S",
            )

    def _check_registers(self) -> None:
        """Report a setting that outlives the kernel and changes what the next one does."""
        registers = self.registers
        left = []
        if registers.atomic_type is not None:
            left.append(
                (
                    "STATE",
                    "atomic-left-on",
                    f"atomic {registers.atomic_operation} of {registers.atomic_type} is still on when the kernel ends: "
                    f"stores of the next one accumulate, until a TPipe resets it. End with set_atomic_none()",
                )
            )
        if registers.counter_mode:
            left.append(
                (
                    "STATE",
                    "counter-mode-left-on",
                    "masks still count elements (set_mask_count) when the kernel ends: masks of the next one mean "
                    "something else, until a TPipe resets it. End with set_mask_norm()",
                )
            )
        for kind, code, message in left:
            self.session.report(kind, code, message, 0, self.core.name, "S")

    def pipe_barrier(self, pipe: Pipe | None) -> None:
        """Queue a barrier of one pipe, or stop the scalar unit until all pipes are empty."""
        site = self.site()
        if pipe is None:
            item = self._new(Pipe.S, Kind.BARRIER, "pipe_barrier", site)
            item.cause = Cause.BARRIER
            self._append(item)
            return
        step = self._steps.get(site << 12 | pipe << 2 | 1 | _BARRIER_KEY)
        if step is not None:
            self._put(step)
        elif pipe in self.core.pipes:
            self._barrier(pipe, site)

    def memory_barrier(self, name: str, pipes: tuple[Pipe, ...] | None) -> None:
        """Stop the scalar unit until some pipes are empty, or all of them (None)."""
        item = self._new(Pipe.S, Kind.BARRIER, name, self.site())
        item.cause = Cause.BARRIER
        if pipes is not None:
            item.flag = sum(1 << pipe for pipe in pipes)
        self._append(item)

    def _barrier(self, pipe: Pipe, site: int, *, inserted: bool = False) -> None:
        key = site << 12 | pipe << 2 | (2 if inserted else 1) | _BARRIER_KEY
        step = self._steps.get(key)
        if step is None:
            step = self._steps[key] = Step(pipe, _BARRIER, "pipe_barrier", site)
            step.phase, step.cause, step.inserted = self.phase, Cause.BARRIER, inserted
        self._put(step)

    def insert_barrier(self, pipe: Pipe, site: int) -> None:
        """Queue a barrier that automatic synchronisation asks for."""
        self._barrier(pipe, site, inserted=True)

    def use_insert_sync(self) -> None:
        """Let pyasc's pass order the kernel from here on, unless the kernel's jit says that it does not."""
        if (
            self.insert is None
            and self.core_kind is CoreKind.AIV
            and self.session.insert_sync is not False
        ):
            self.insert = InsertSync(self)
            self.own_sync = False

    # ---- the scalar unit --------------------------------------------------------------------

    def _scalar(
        self,
        call: ScalarCall,
        site: int = 0,
        access: Access | None = None,
        *,
        write: bool = False,
        log: bool = True,
    ) -> Any:
        item = self._new(Pipe.S, Kind.INSTRUCTION, call.name, site, log=log)
        item.call = call
        if access is not None and self.order is not None:
            self.order.scalar(item, access, write)
        self._items.append(item)
        if call.wanted:
            return self._give_way()
        return None

    def spend(self, name: str, cycles: float | str) -> None:
        """Let the scalar unit work for some cycles: a number, or the name of one in the chip's section `scalar`."""
        self._scalar(ScalarCall(name, spending(cycles), spent=cycles), self.site())

    def load_scalar(
        self,
        tensor: GlobalTensor | LocalTensor,
        access: Access,
        unknown: float | None = None,
    ) -> int | float:
        """Read one element at the simulated time of the access; `unknown` stands for it with numerics off."""
        site = self.site()
        if self.insert is not None:
            self.insert.around_scalar(access, site, after=False)
        if self.auto is not None:
            self.auto.before_scalar(access, site, write=False)
        guess = None if self.session.numerics else unknown
        if not self.session.numerics and guess is None:
            self._refuse_unknown("get_value", tensor.name, access, site)
        call = ScalarCall(
            "get_value",
            scalar_cost(access),
            lambda core: _load(core, access) if guess is None else guess,
            wanted=True,
            text=f"src:{access.space.name} {access.name}[{access.low}:{access.high}]",
            access=access,
        )
        value = self._scalar(call, site, access)
        if self.insert is not None:
            self.insert.around_scalar(access, site, after=True)
        if access.buffer is not None:
            self._note_poll((site, access.place, access.low, value))
        return value  # type: ignore[no-any-return]

    def _note_poll(self, what: tuple[Any, ...]) -> None:
        """Count how often a place has read the same value from GM with next to nothing in between."""
        if what == self.polled and self._index - self._polled_at <= POLL_ITEMS:
            self.polls += 1
            if self.polls % POLLS == 0:
                self.session.look_at_polls()
        else:
            self.polls = 0
        self.polled, self._polled_at = what, self._index

    def read_register(self, access: Access) -> int | float:
        """Read a special register at the simulated time of the access, at the price of one in UB."""
        site = self.site()
        if not self.session.numerics:
            self._refuse_unknown("the kernel", access.name, access, site)
        call = ScalarCall(
            "get_register",
            scalar_cost(access),
            lambda _: access.view(_NO_BYTES)[0].item(),
            wanted=True,
            text=access.name,
            access=access,
        )
        return self._scalar(call, site, access)  # type: ignore[no-any-return]

    def _refuse_unknown(self, who: str, name: str, access: Access, site: int) -> None:
        if access.buffer is None or access.buffer.index in self.session.written_buffers:
            raise errors.UnsupportedError(
                f"{who} reads {name}, which the kernel computes: with numerics off there is no value. Run "
                f"with numerics on{self.session.where(site)}"
            )

    def store_scalar(
        self, tensor: GlobalTensor | LocalTensor, access: Access, value: float
    ) -> None:
        """Write one element at the simulated time of the access."""
        site = self.site()
        if self.insert is not None:
            self.insert.around_scalar(access, site, after=False)
        if self.auto is not None:
            self.auto.before_scalar(access, site, write=True)
        if access.buffer is not None:
            self.session.written_buffers.add(access.buffer.index)

        def store(core: Core) -> None:
            if not core.numerics:
                return
            if access.buffer is not None:
                core.dcache.write(access, value)
            else:
                access.view(core.memories[access.space])[0] = value

        self._scalar(
            ScalarCall(
                "set_value",
                scalar_cost(access),
                store,
                phase=RETIRE,
                text=f"dst:{access.space.name} {access.name}[{access.low}:{access.high}]",
                access=access,
            ),
            site,
            access,
            write=True,
        )
        if self.insert is not None:
            self.insert.around_scalar(access, site, after=True)

    def preload(self, buffer: Any, offset: int) -> None:
        """Bring a line of GM into the data cache; the scalar unit does not wait for it."""

        def fill(core: Core) -> None:
            core.scalar_gm_cycles(buffer, offset)
            if core.numerics:
                core.dcache.fill(buffer, offset)

        if self.order is not None:
            self.order.fill(buffer, offset)
        call = _step("data_cache_preload", fill, text=f"src:GM {buffer.name}+{offset}")
        self._scalar(call, self.site())

    def clean(self, buffer: Any, offset: int) -> None:
        """Write a line of the data cache back and drop it; all of them where there is no buffer."""
        if self.order is not None:
            self.order.clean(buffer, offset)
        call = ScalarCall(
            "data_cache_clean_and_invalid",
            lambda core: core.clean_cycles(buffer, offset),
            lambda core: core.dcache.clean(buffer, offset),
            phase=RETIRE,
            text="all lines" if buffer is None else f"dst:GM {buffer.name}+{offset}",
        )
        call.line = (buffer, offset)
        self._scalar(call, self.site())

    def cycle_counter(self) -> int:
        """Return the cycle at which the scalar unit gets here."""
        call = ScalarCall(
            "get_system_cycle",
            lambda core: core.flag_cost,
            lambda core: core.time,
            phase=PROGRAM,
            wanted=True,
        )
        return self._scalar(call, self.site())  # type: ignore[no-any-return]

    def open_phase(self, name: str) -> None:
        """Let what is issued from here on count for a phase; "" is none."""
        session = self.session
        if name not in session.phases:
            session.phases[name] = len(session.log.phases)
            session.log.phases.append(name)
        self.phase = session.phases[name]
        self._steps = session.steps_of(self.core_kind, self.phase)

    # ---- what a kernel shows ----------------------------------------------------------------

    def write(self, text: str) -> None:
        """Print text on standard output, with the core's part of the kernel in front of each line."""
        ratio = task_ratio(self.session.kernel_type) if self.core_kind is CoreKind.AIV else 1
        number = self.block * ratio + self.sub_block
        self.session.output.write(f"{self.core_kind.name}-{number}", text)

    def show(self, name: str, text: str, detail: str = "") -> None:
        """Print text when the scalar unit gets here."""
        call = _step(name, lambda _: self.write(text), phase=PROGRAM, text=detail)
        self._scalar(call, self.site())

    def observe(self, name: str, access: Access, tell: Callable[[Any], None]) -> None:
        """Wait until all pipes are empty, then hand an access's values to `tell`."""
        self.pipe_barrier(None)

        def look(core: Core) -> None:
            if core.numerics:
                tell(access.view(core.bytes(access)).copy())
            else:
                self.write(f"{name} {access.name}: there are no values with numerics off\n")

        text = f"src:{access.space.name} {access.name}[{access.low}:{access.high}]"
        self._scalar(_step(name, look, text=text), self.site())

    def mark(self, name: str, detail: str = "") -> None:
        """Leave a mark in the traces."""
        self._scalar(_step(name, text=detail), self.site())

    def stop(self, name: str, code: str, message: str) -> None:
        """Stop the kernel when the scalar unit gets here."""
        site = self.site()

        def stop(_: Core) -> None:
            place = self.session.sites[site]
            finding = Finding(
                "STATE", code, message, place.file, place.line, self.core.name, "S", struck=True
            )
            where = self.session.where_text(site)
            raise KernelError(f"{message}\n  at {where}, {self.core.name}", finding)

        self._scalar(_step(name, stop, phase=PROGRAM, wanted=True), site)

    # ---- other cores ------------------------------------------------------------------------

    def cross_set(self, flag_id: int, mode: int, pipe: Pipe) -> None:
        """Queue a set of a cross-core flag in a pipe."""
        item = self._new(pipe, Kind.SET_FLAG, "cross_core_set_flag", self.site())
        item.event_id, item.mode, item.flag = flag_id, mode, FIRST_KEY + flag_id
        self._append(item)

    def cross_wait(self, flag_id: int) -> None:
        """Stop the scalar unit until a cross-core flag has come."""
        item = self._new(Pipe.S, Kind.WAIT_FLAG, "cross_core_wait_flag", self.site())
        item.event_id, item.flag, item.cause = flag_id, FIRST_KEY + flag_id, Cause.CROSS_CORE
        self._append(item)

    def soft_set(self, name: str, pipe: Pipe, soft: SoftSet) -> None:
        """Tell other cores, behind a pipe's earlier work, that a word is in GM."""
        item = self._new(pipe, Kind.SET_FLAG, name, self.site())
        number = self.session.soft.number
        soft.numbers = tuple(number((soft.group, member)) for member in range(soft.count))
        item.mode, item.call = SOFT, soft
        self._append(item)

    def soft_wait(self, name: str, key: tuple[Any, ...], text: str) -> None:
        """Stop the scalar unit until a word has come that other cores store in GM; `text` names it for messages."""
        item = self._new(Pipe.S, Kind.WAIT_FLAG, name, self.site())
        item.mode, item.cause = SOFT, Cause.CROSS_CORE
        item.flag = self.session.soft.number(key, text)
        self._append(item)

    def look(self, tensor: LocalTensor, tell: Callable[[Any], None]) -> None:
        """Hand the values of a tensor to `tell` when the scalar unit gets here; no time passes, nothing is logged."""
        access = contiguous(tensor, 1)

        def look(core: Core) -> None:
            if core.numerics:
                tell(access.view(core.bytes(access)))

        self._scalar(ScalarCall("look", lambda _: 0, look), log=False)

    # ---- event ids --------------------------------------------------------------------------

    def take_event(self, event: HardEvent, label: str) -> int:
        """Take the lowest free id of an event from the framework's pool."""
        used = self.events[event]
        free = ~used & (used + 1)
        if free >= 1 << EVENT_IDS:
            self.error(
                "QUEUE",
                "no-event-id",
                f"{label}: all {EVENT_IDS} ids of {event.name} are in use. An id comes back at the wait that belongs "
                f"to it (deque, or the next alloc_tensor of the block)",
            )
        self.events[event] = used | free
        return free.bit_length() - 1

    def peek_event(self, event: HardEvent) -> int:
        """Return the lowest free id of an event."""
        used = self.events[event]
        return min((~used & (used + 1)).bit_length(), EVENT_IDS) - 1

    def release_event(self, event: HardEvent, event_id: int) -> None:
        """Give an id back to the pool."""
        self.events[event] &= ~(1 << event_id)

    # ---- errors and names -------------------------------------------------------------------

    def capacity(self, space: Space) -> int:
        """Return the size of a memory of this core in bytes; 0 where it has none."""
        return self.core.memory_sizes.get(space, 0)

    def fault(self, fault: IsaFault) -> None:
        """Raise a fault of the instruction set as the kernel's error, with its place."""
        self.error(
            fault.kind, fault.code, fault.message, fault.tensor, fault.byte_range, fault.pipe
        )

    def fault_at(self, fault: IsaFault, site: int) -> None:
        """Raise a fault that an instruction finds while it executes, with the place where it was issued."""
        self.error(
            fault.kind, fault.code, fault.message, fault.tensor, fault.byte_range, fault.pipe, site
        )

    def error(
        self,
        kind: str,
        code: str,
        message: str,
        tensor: str = "",
        byte_range: tuple[int, int] | None = None,
        pipe: str = "",
        site: int | None = None,
    ) -> None:
        """Raise a KernelError of the class that belongs to the kind of finding, at the running line or a site."""
        site = self.site() if site is None else site
        place = self.session.sites[site]
        where = f"\n  at {self.session.where_text(site)}, {self.core.name}" + (
            f", pipe {pipe}" if pipe else ""
        )
        finding = Finding(
            kind,
            code,
            message,
            place.file,
            place.line,
            self.core.name,
            pipe,
            tensor,
            byte_range,
            struck=True,
        )
        raise _ERROR_OF_KIND.get(kind, errors.OperandError)(message + where, finding)


_RUN_CODE: CodeType = Program._run.__code__
_NO_BYTES = np.empty(0, np.uint8)  # a register's content lies in no memory


def _load(core: Core, access: Access) -> int | float:
    if access.buffer is None:
        return access.view(core.memories[access.space])[0].item()  # type: ignore[no-any-return]
    if not core.numerics:
        return access.view(access.buffer.data)[0].item()  # type: ignore[no-any-return]
    return core.dcache.read(access)  # type: ignore[no-any-return]


def _step(
    name: str,
    action: Callable[[Core], Any] | None = None,
    *,
    phase: int = READ,
    wanted: bool = False,
    text: str = "",
) -> ScalarCall:
    """Return what costs the scalar unit as much as a flag."""
    cost = "flag_issue"
    return ScalarCall(
        name, spending(cost), action, phase=phase, wanted=wanted, text=text, spent=cost
    )


def spending(cycles: float | str) -> Callable[[Core], int]:
    """Return the cost of a fixed time: cycles, or the name of a number in the chip's section `scalar`."""
    if isinstance(cycles, str):
        return lambda core: whole(getattr(core.chip.scalar, cycles))
    return lambda _: whole(cycles)


def scalar_cost(access: Access) -> Callable[[Core], int]:
    """Return the cost of the scalar unit's access to one element of GM or UB."""
    if access.buffer is not None:
        return lambda core: core.scalar_gm_cycles(access.buffer, access.low)
    return lambda core: whole(core.chip.scalar.ub_access)
