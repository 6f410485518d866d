"""The items of a program that order its pipes: flags, barriers, and what other cores are told or waited for."""

from __future__ import annotations

from sys import _getframe
from typing import TYPE_CHECKING, Any, Final

from mypy_extensions import mypyc_attr

from ascend_sim.cross_core import FIRST_KEY
from ascend_sim.issuer import OWN_FRAMES, Issuer
from ascend_sim.soft_flags import SOFT, SoftSet
from ascend_sim.trace import Cause, Item, Kind, Step
from isa import sync
from isa.types import EVENT_IDS, EVENT_SOURCE, EVENT_TARGET, PIPES_OF, CoreKind, HardEvent, Pipe

if TYPE_CHECKING:
    from types import FrameType

    from ascend_sim.core import Core
    from ascend_sim.session import Session

_SET: Final = Kind.SET_FLAG
_WAIT: Final = Kind.WAIT_FLAG
_BARRIER: Final = Kind.BARRIER

_IDS: Final[int] = EVENT_IDS
_FULL: Final[int] = (1 << EVENT_IDS) - 1
_LOWEST: Final[list[int]] = [(~used & (used + 1)).bit_length() - 1 for used in range(_FULL)]
"""The lowest free id of an event by the ids in use, a bit each."""
_BARRIER_KEY: Final = 1 << 11
"""In the keys of steps: above all flags."""
OF_SOURCE: Final = 1 << 16
"""First number of flags that belong to a source pipe, whatever the target."""
FIRST_AUTO_ID: Final = 6
"""Ids from here on are reserved for automatic synchronisation."""
_frame_at: Final = _getframe
_CALLER: Final[Any] = 1 + OWN_FRAMES
"""Where the frame of a queue's caller is, counted from a function here."""
_FLAG_FILES: Final = (__file__, sync.__file__)
"""Where the calls of flags go through."""
_LOOK_BACK: Final = 16
"""Items that are looked at for a pair of flags just before."""


@mypyc_attr(allow_interpreted_subclasses=True)
class FlagItems(Issuer):
    """The part of a program that queues flags and barriers."""

    def __init__(self, session: Session, core: Core, block: int, sub_block: int) -> None:
        super().__init__(session, core, block, sub_block)
        self.events = [0] * len(HardEvent)  # ids in use, a bit each
        self.events_by_hand = [0] * len(HardEvent)  # those of them that the kernel took itself
        self._raised: dict[int, int] = {}  # sets less waits of the kernel's own flags, as issued
        pipes = PIPES_OF[core.kind]
        self._works = [  # by event: whether it connects two different pipes of this core
            source in pipes and target in pipes and source is not target
            for source, target in zip(EVENT_SOURCE, EVENT_TARGET, strict=True)
        ]

    # ---- steps ------------------------------------------------------------------------------

    def _set_step(self, event: int, event_id: int, site: int, *, inserted: bool) -> Step:
        """Return the step of a set inside a core."""
        flag = event * _IDS + event_id
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
        flag = event * _IDS + event_id
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
        step.flag = event * _IDS + event_id
        return step

    # ---- flags of queues --------------------------------------------------------------------

    def queue_set(self, event: int, label: str, block: Any) -> int:
        """Set an event for a queue's block, with the lowest free id of the framework's pool; return the id.

        Queues make most of a kernel's items, so this and `queue_wait` do all of it in one place; the call site
        becomes the block's.
        """
        frame = _frame_at(_CALLER)
        found = self._places.get(frame.f_lasti) if frame is self._frame else None
        site = self._find_site(frame) if found is None else found
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
        frame = _frame_at(_CALLER)
        found = self._places.get(frame.f_lasti) if frame is self._frame else None
        site = self._find_site(frame) if found is None else found
        block.site = site
        self.events[event] &= ~(1 << event_id)
        step = self._steps.get(site << 12 | event << 5 | event_id << 2 | 1)
        if (
            step is None
            or step.cause is not cause
            or (step.forget is not forget and step.forget != forget)
        ):
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

    # ---- flags of the kernel ----------------------------------------------------------------

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
            self._by_hand(step)
            if (self.events[event] & ~self.events_by_hand[event]) >> event_id & 1:
                self._id_of_a_queue(step)
            if self.auto is not None and event_id >= FIRST_AUTO_ID:
                self._id_of_auto_sync(step)
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

    def _by_hand(self, step: Step) -> None:
        """Let a flag of the kernel's own be its source pipe's, where the launch asked for that."""
        if self.session.ids_by_source and step.flag < OF_SOURCE:
            assert step.event is not None
            step.flag = OF_SOURCE + EVENT_SOURCE[step.event] * EVENT_IDS + step.event_id

    def _id_of_auto_sync(self, step: Step) -> None:
        assert step.event is not None
        self.session.report(
            "STATE",
            "event-id-of-auto-sync",
            f"set_flag({step.event.name}, {step.event_id}): ids from {FIRST_AUTO_ID} on belong to automatic "
            f"synchronisation while it is on, and it may raise and lower {step.event.name} id {step.event_id} between "
            f"this set and its wait. Use a lower id, or turn it off (auto_sync=False) and keep all flags your own",
            step.site,
            self.core.name,
            step.pipe.name,
        )

    def _spare_pair(self, step: Step) -> None:
        """Report a set and a wait that come right behind another pair of the event, with no work between.

        What is needed once is needed: then it is no finding (`Findings.drop_needed`).
        """
        if step.site in self.session.needed:
            return
        event, sets, waits = step.event, 0, 0
        assert event is not None
        name = event.name
        for item in reversed(self._log[-_LOOK_BACK:]):
            kind = item.kind
            if item.event is event and kind is _SET:
                sets += 1
                if sets == 2:
                    break
            elif item.event is event and kind is _WAIT and sets == 1:
                waits += 1
            elif kind is not _SET and item.pipe in (EVENT_SOURCE[event], EVENT_TARGET[event]):
                sets = 0  # work of one of the two, or something new that it learns
                break
        if sets < 2 or waits == 0 or item.inserted or self._asked_by_a_library():
            self.session.needed.add(step.site)
            return
        core = self.core
        self.session.report(
            "INFO",
            "redundant-flag",
            f"this wait_flag({name}, {step.event_id}) and its set_flag order nothing that the pair before, set "
            f"at {self.session.where_text(item.site)}, does not: neither pipe has done anything in between. Without "
            f"them it is about {core.set_cycles + core.visible + 2 * core.flag_cost} cycles faster",
            step.site,
            core.name,
            step.pipe.name,
        )

    def _asked_by_a_library(self) -> bool:
        """Return whether the flag is one of the simulator's own high-level functions, not the kernel's."""
        frame: FrameType | None = _frame_at(OWN_FRAMES)
        while frame is not None and frame.f_code.co_filename in _FLAG_FILES:
            frame = frame.f_back
        return frame is None or self.session.is_library(frame.f_code.co_filename)

    def _set_twice(self, step: Step) -> None:
        assert step.event is not None
        rule = ""
        if step.flag >= OF_SOURCE:
            pipe = step.pipe.name
            rule = (
                f" (event_ids is 'source': all flags {step.event_id} of pipe {pipe} are this one)"
            )
        self.session.report(
            "FLAG_BALANCE",
            "flag-set-twice",
            f"set_flag({step.event.name}, {step.event_id}) raises a flag whose last set_flag no wait_flag has "
            f"taken yet{rule}: a flag is one bit, so one of the two is lost and a later wait hangs. Wait for the "
            f"first one before, or use another event id",
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
            self._by_hand(step)
            self._raised[step.flag] = self._raised.get(step.flag, 0) - 1
            if self.order is not None and not inserted and step.site not in self.session.needed:
                self._spare_pair(step)
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

    # ---- barriers ---------------------------------------------------------------------------

    def pipe_barrier(self, pipe: Pipe | None) -> None:
        """Queue a barrier of one pipe, or stop the scalar unit until all pipes are empty."""
        site = self.site()
        if pipe is None:
            item = self._new(Pipe.S, Kind.BARRIER, "pipe_barrier", site)
            item.step.cause = Cause.BARRIER
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
        item.step.cause = Cause.BARRIER
        if pipes is not None:
            item.step.flag = sum(1 << pipe for pipe in pipes)
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

    # ---- other cores ------------------------------------------------------------------------

    def cross_set(self, flag_id: int, mode: int, pipe: Pipe) -> None:
        """Queue a set of a cross-core flag in a pipe."""
        item = self._new(pipe, Kind.SET_FLAG, "cross_core_set_flag", self.site())
        step = item.step
        step.event_id, step.mode, step.flag = flag_id, mode, FIRST_KEY + flag_id
        self._append(item)

    def cross_wait(self, flag_id: int) -> None:
        """Stop the scalar unit until a cross-core flag has come."""
        item = self._new(Pipe.S, Kind.WAIT_FLAG, "cross_core_wait_flag", self.site())
        step = item.step
        step.event_id, step.flag, step.cause = flag_id, FIRST_KEY + flag_id, Cause.CROSS_CORE
        self._append(item)

    def soft_set(self, name: str, pipe: Pipe, soft: SoftSet) -> None:
        """Tell other cores, behind a pipe's earlier work, that a word is in GM."""
        item = self._new(pipe, Kind.SET_FLAG, name, self.site())
        number = self.session.soft.number
        soft.numbers = tuple(number((soft.group, member)) for member in range(soft.count))
        item.step.mode, item.call = SOFT, soft
        self._append(item)

    def soft_wait(self, name: str, key: tuple[Any, ...], text: str) -> None:
        """Stop the scalar unit until a word has come that other cores store in GM; `text` names it for messages."""
        item = self._new(Pipe.S, Kind.WAIT_FLAG, name, self.site())
        step = item.step
        step.mode, step.cause = SOFT, Cause.CROSS_CORE
        step.flag = self.session.soft.number(key, text)
        self._append(item)

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
