"""How the items of a program are made: call sites, records, errors on the kernel's own line."""

from __future__ import annotations

from sys import _getframe
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final

from greenlet import getcurrent
from mypy_extensions import mypyc_attr

from ascend_sim import errors
from ascend_sim.errors import Finding, KernelError
from ascend_sim.kernel_root import run
from ascend_sim.naming import Variables
from ascend_sim.spots import Spot
from ascend_sim.trace import Item, Kind, Step
from isa.stream import Registers
from isa.types import Pipe

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascend_sim.auto_sync import AutoSync
    from ascend_sim.core import Core
    from ascend_sim.hazards import Order
    from ascend_sim.insert_sync import InsertSync
    from ascend_sim.scalar_call import ScalarCall
    from ascend_sim.session import Session
    from isa.access import Access
    from isa.faults import IsaFault
    from isa.instruction import Call
    from isa.types import Space


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


_frame_at: Final = _getframe

OWN_FRAMES: Final[int] = 1 if __file__.endswith(".py") else 0
"""Frames that a function of the modules that are compiled together has: compiled ones leave none."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Issuer:
    """One block of a kernel on one core: the part that makes items and hands them on.

    Items wait in the core's list until the scalar unit gets to them; the kernel's Python runs some of them ahead.
    """

    order: Order | None
    """The check of the order of accesses."""
    auto: AutoSync | None
    """Automatic synchronisation of queues' instructions."""
    insert: InsertSync | None
    """Synchronisation as pyasc's pass inserts it."""

    def __init__(self, session: Session, core: Core, block: int, sub_block: int) -> None:
        self.root: CodeType = run.__code__  # the function under which all frames of a kernel are
        self.session = session
        self.core = core
        self.block = block
        self.sub_block = sub_block
        self.unit = session.unit(block, core.kind, sub_block)  # among all that run unordered
        self.calls: dict[Any, Call] = session.calls.setdefault(core.kind, {})
        self.registers = Registers()
        self.registers.saturate = session.saturate
        self.core_kind = core.kind
        self.phase = 0
        self._steps: dict[int, Step] = session.steps_of(core.kind, 0)
        self._frame: FrameType | None = None  # the kernel's function that issued last
        self._places: dict[Any, int] = {}  # its call sites by instruction offset
        self._trail: list[tuple[FrameType, Spot]] = []  # it and its callers, outermost first
        self._borrowed_site: int | None = None
        self._watch: Callable[[Item], None] | None = None  # sees all items
        self._items = core.items
        self._core_index = core.index
        self._log: list[Item] = core.log.items
        self._index = core.log.count
        self._until = 0  # the item behind which the scalar unit gets its turn

    @property
    def issued(self) -> int:
        """How many items the core has been given."""
        return self._index

    def _give_way(self) -> Any:
        return getcurrent().parent.switch()

    # ---- call sites -------------------------------------------------------------------------

    def site(self, depth: int = 3) -> int:
        """Return the index of the call site: the kernel's frames, innermost first.

        `depth` is where the kernel's own frame is expected, counted from here; frames of the simulator that are
        nearer are passed over. While one function of the kernel runs, its callers stand still, so only the
        place inside it has to be looked up.
        """
        frame = _frame_at(depth if OWN_FRAMES else max(0, depth - 2))
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
        library: dict[int, CodeType] = session.library_code
        while frame is not None and id(frame.f_code) in library:
            frame = frame.f_back
        if frame is None or frame.f_code is self.root:
            return 0
        places = self._spot(frame).sites
        here: Any = frame.f_lasti
        index = places.get(here)
        if index is None:
            new: int = session.new_site(frame, self.root)
            if new < 0:  # frames of the simulator that were not known yet: now they are
                return self._find_site(frame)
            places[here] = index = new
        self._frame, self._places = frame, places
        return index

    def _spot(self, frame: FrameType | None) -> Spot:
        """Return how a function was called: known as far up as its callers are those of the last time."""
        if frame is None or frame.f_code is self.root:
            top: Spot = self.session.spots
            return top
        trail = self._trail
        place = len(trail) - 1
        while place >= 0:
            known = trail[place]
            if known[0] is frame:
                if place + 1 < len(trail):
                    del trail[place + 1 :]
                return known[1]
            place -= 1
        caller = frame.f_back
        below = self._spot(caller).below
        key = (id(frame.f_code), -1 if caller is None else caller.f_lasti)
        spot = below.get(key)
        if spot is None:
            spot = below[key] = Spot()
        trail.append((frame, spot))
        return spot

    # ---- items ------------------------------------------------------------------------------

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

    # ---- errors and names -------------------------------------------------------------------

    def variables(self, *, outermost: bool = False) -> Variables:
        """Return what the kernel's running functions call their tensors; see `Variables`."""
        return Variables(
            _frame_at(OWN_FRAMES), self.root, self.session.is_library, outermost=outermost
        )

    def capacity(self, space: Space) -> int:
        """Return the size of a memory of this core in bytes; 0 where it has none."""
        return self.core.memory_sizes.get(space, 0)

    def fault(self, fault: IsaFault) -> None:
        """Raise a fault of the instruction set as the kernel's error, with its place."""
        self.error(
            fault.kind, fault.code, fault.message, fault.tensor, fault.byte_range, fault.pipe
        )

    def look_at_inputs(self, item: Item) -> None:
        """Report inputs for which the hardware's result is not specified."""
        call = item.call
        values = call.undefined_inputs(self.core.memories)
        if values:
            name = call.reads[0].name
            those = f"{len(values)} such elements" if len(values) > 1 else "one such element"
            self.session.report(
                "INFO",
                "undefined-input",
                f"{call.name}({float(values[0]):g}) is not specified, and {name} has {those} here. The "
                f"hardware goes on with any value, the simulator with infinity or NaN; keep such lanes out with "
                f"a mask, or see that nothing uses them",
                item.site,
                self.core.name,
                call.pipe.name,
                name,
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
        if site is None:
            message = self.variables().tell(message, tensor, byte_range, code)
            site = self.site()
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
