"""A kernel's program on one core: the stream that its instructions go to.

Runs in a greenlet. Each call becomes an `Item` with its call site; errors are raised right here, on the kernel's
own line. Items wait in the core's list until the scalar unit gets to them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from sys import _getframe
from typing import TYPE_CHECKING, Any, Final

from greenlet import GreenletExit, greenlet
from mypy_extensions import mypyc_attr

from ascend_sim import errors, unread
from ascend_sim.agenda import PROGRAM
from ascend_sim.auto_sync import AutoSync
from ascend_sim.cost import cube_cycles
from ascend_sim.hazards import Order
from ascend_sim.insert_sync import InsertSync
from ascend_sim.issuer import OWN_FRAMES
from ascend_sim.kernel_root import run
from ascend_sim.lang.forms import clearer
from ascend_sim.leftovers import Settings
from ascend_sim.pass_through import QueueUses
from ascend_sim.placement import KernelType, task_ratio
from ascend_sim.scalar_call import ScalarCall
from ascend_sim.scalar_items import ScalarItems
from ascend_sim.shared_bytes import Statics
from ascend_sim.trace import Cause, Item, Kind, Step
from isa.atomic import as_atomic
from isa.stream import current
from isa.types import CoreKind, Pipe

if TYPE_CHECKING:
    from ascend_sim.core import Core
    from ascend_sim.session import Session
    from isa.access import Access
    from isa.instruction import Call

_frame_at: Final = _getframe
_M: Final = Pipe.M
_INSTRUCTION: Final = Kind.INSTRUCTION

AHEAD: Final = 256
"""How many items the kernel's Python runs ahead of the scalar unit: enough to make greenlet switches rare."""

_FAREWELLS: Final = 3
"""How often a kernel is told to end: its own clean-up may still issue."""


class KernelReturns(BaseException):
    """Ends a core's program from inside a library call, as a return of the kernel's function would."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Program(ScalarItems):
    """One block of a kernel on one core, as a stream."""

    has_queues = True
    one_thread = True  # a run keeps the matrix library at one thread
    own_sync = True

    def __init__(
        self, session: Session, core: Core, block: int, body: Callable[[], None], sub_block: int = 0
    ) -> None:
        super().__init__(session, core, block, sub_block)
        self.exact = session.exact  # which order of additions matrix products have
        self.tpipe: Any = None
        self.auto_tensors: Any = None  # where tensors go that the compiler places
        self.failure: BaseException | None = None
        self.freed: dict[
            int, int
        ] = {}  # buffers that nobody may use: serial, site of free_tensor or reset
        self.taken_back: set[int] = set()  # those of a reset
        self.libraries: dict[str, Any] = {}  # what the high-level part keeps on this core
        self.closing: list[Callable[[], None]] = []  # what it does when the function has returned
        self.settings = Settings(self)
        self.statics = Statics(self)
        self.queue_uses = QueueUses(self)
        self.registers.listener = self.settings.changed
        self.order = Order(self) if session.checks != "off" else None
        self.auto = AutoSync(self) if session.auto_sync and core.kind is CoreKind.AIV else None
        if self.auto is not None:
            self._watch = self._see
        elif self.order is not None:
            self._watch = self.order.issue
        self.insert = None
        self.plain: set[int] = set()  # owners of bytes that no queue manages: serials of TBufs
        if session.insert_sync:
            self.use_insert_sync()
        self._body = body
        self._greenlet = greenlet(partial(run, self))
        self._greenlet.gr_context = copy_context()

    @property
    def number(self) -> int:
        """The index that `get_block_idx` gives."""
        if self.core_kind is CoreKind.AIC:
            return self.block
        return self.block * task_ratio(self.session.kernel_type) + self.sub_block

    # ---- the greenlet -----------------------------------------------------------------------

    def perform(self) -> None:
        """Run the kernel's function and queue the end of the block."""
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
                item.step.cause, item.step.inserted = Cause.BARRIER, True
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

    def stand_still(self, cost: Callable[[Core], int]) -> None:
        """Let the scalar unit stand still for as long as it turns out then."""
        self._scalar(ScalarCall("stand_still", cost), log=False)

    def on_end(self, core: Core, time: int) -> None:
        """Tell the session that the block is over."""
        self._check_registers()
        if self.order is not None:
            self.statics.look_over(core.log)
            self.queue_uses.look_over()
            unread.look_over(self, core.log)
        self.session.block_done(self, core, time)

    # ---- instructions -----------------------------------------------------------------------

    def issue(self, call: Call, depth: int = 3) -> None:
        """Take a bound instruction; the kernel's frame is `depth` frames above `site`, or further up."""
        frame = _frame_at(depth - 2 + OWN_FRAMES)
        found = self._places.get(frame.f_lasti) if frame is self._frame else None
        site = self._find_site(frame) if found is None else found
        registers = self.registers
        if registers.atomic_type is not None:
            call = as_atomic(call, registers.atomic_operation, registers.atomic_type)
            self.settings.stores(call, site)
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
            if self.order is not None:
                if len(step.owners) < len(accesses):
                    self.statics.note(accesses)
                if step.owners:
                    self.queue_uses.note(call, accesses, site)
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
        serial = access.owner.serial
        how, cure = (
            "free_tensor",
            "the next alloc_tensor may hand its bytes to somebody else. Free it after",
        )
        if serial in self.taken_back:
            how, cure = (
                "reset",
                "the next init_buffer hands its bytes to somebody else. Reset after",
            )
        self.session.report(
            "QUEUE",
            "use-after-free",
            f"{call.name} uses {access.name} after {how} at {self.session.where_text(self.freed[serial])}: {cure} its "
            f"last use",
            site,
            self.core.name,
            call.pipe.name,
            access.name,
            (access.low, access.high),
        )

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

    # ---- what goes with the block -----------------------------------------------------------

    def _see(self, item: Item) -> None:
        """Let the order of accesses and automatic synchronisation see an item."""
        if self.order is not None:
            self.order.issue(item)
        if self.auto is not None:
            self.auto.see(item)

    def _check_registers(self) -> None:
        """Report a setting that outlives the kernel and changes what the next one does."""
        for kind, code, message, site, tensor in self.settings.left():
            self.session.report(kind, code, message, site, self.core.name, "S", tensor)

    def use_insert_sync(self) -> None:
        """Let pyasc's pass order the kernel from here on, unless the kernel's jit says that it does not."""
        if (
            self.insert is None
            and self.core_kind is CoreKind.AIV
            and self.session.insert_sync is not False
        ):
            self.insert = InsertSync(self)
            self.own_sync = False

    def open_phase(self, name: str) -> None:
        """Let what is issued from here on count for a phase; "" is none."""
        session = self.session
        if name not in session.phases:
            session.phases[name] = len(session.log.phases)
            session.log.phases.append(name)
        self.phase = session.phases[name]
        self._steps = session.steps_of(self.core_kind, self.phase)
