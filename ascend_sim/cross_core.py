"""Flags between cores: counters that a wait takes one from.

A set is queued in a pipe and fires when that pipe's earlier work is complete. Mode 0 joins all cores of one kind,
mode 1 the vector cores of one AI Core, mode 2 a cube core and its vector cores: the k-th arrival at a
receiver is there when all senders of the mode have set for the k-th time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascend_sim.cost import whole
from ascend_sim.mailbox import DIRECT, FIRST_KEY, delivery_cycles
from ascend_sim.soft_flags import SOFT
from isa.types import CoreKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascend_sim.core import Core
    from ascend_sim.session import Session
    from ascend_sim.trace import Item

__all__ = ["ANSWERS", "CUBE_READY", "FIRST_KEY", "USER_IDS", "CrossFlags"]

USER_IDS = 11
SYNC_AIC, SYNC_AIV_TO_AIC, SYNC_AIC_TO_AIV, SYNC_AIV = 11, 12, 13, 14
"""The ids that sync_all uses."""
CUBE_READY = 15
"""The id with which a cube core says that it takes messages (pyasc's front end emits it so)."""
ANSWERS = 16
"""Flags for one core only are numbered from here: the answers to messages."""


class CrossFlags:
    """All cross-core flags of one launch."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.soft = session.soft
        chip = session.chip
        self._latency = whole(chip.sync.cross_core)
        self._delivery = delivery_cycles(chip)
        # The all-core barrier of a mix kernel is two hops inside each AI Core and one over all of them.
        self._latency_all = max(
            chip.cycles(chip.sync.sync_all_us) - 2 * self._latency, self._latency
        )
        self.limit = chip.sync.counter_max
        self._sets: dict[tuple[int, int, int, CoreKind], dict[int, list[tuple[int, Item]]]] = {}

    def senders(self, core: Core, mode: int) -> list[Core]:
        """Return the cores whose sets make up a round of a mode, with a core among them."""
        cores = self._session.cores
        if mode == 0:
            return [other for other in cores if other.kind is core.kind]
        same = [other for other in cores if other.cluster == core.cluster]
        if mode == 1 or core.kind is CoreKind.AIV:
            return [other for other in same if other.kind is CoreKind.AIV]
        return [core]

    def receivers(self, core: Core, mode: int) -> list[Core]:
        """Return the cores on which a round of a mode that a core takes part in arrives."""
        if mode in (0, 1):
            return self.senders(core, mode)
        want = CoreKind.AIV if core.kind is CoreKind.AIC else CoreKind.AIC
        return [
            other
            for other in self._session.cores
            if other.cluster == core.cluster and other.kind is want
        ]

    def vector_cores(self, core: Core) -> list[Core]:
        """Return the vector cores of a core's AI Core."""
        return [
            other
            for other in self._session.cores
            if other.cluster == core.cluster and other.kind is CoreKind.AIV
        ]

    def cube_core(self, core: Core) -> Core:
        """Return the cube core of a core's AI Core."""
        return next(
            other
            for other in self._session.cores
            if other.cluster == core.cluster and other.kind is CoreKind.AIC
        )

    def fire(self, core: Core, item: Item, time: int) -> None:
        """Take a set that fires at a cycle; deliver where it was the last of its round."""
        mode, flag_id = item.mode, item.event_id
        if mode == DIRECT:
            self._to_one(item, time)
            return
        if mode == SOFT:
            self.soft.fire(item, time)
            return
        group = -1 if mode == 0 else core.cluster
        sets = self._sets.setdefault((mode, flag_id, group, core.kind), {})
        mine = sets.setdefault(core.index, [])
        mine.append((time, item))
        round_number = len(mine)
        senders = self.senders(core, mode)
        arrivals = []
        if mode == 0 and self._session.not_started():
            return  # those blocks belong to the round, and nobody makes room for them
        for sender in senders:
            theirs = sets.get(sender.index, [])
            if len(theirs) < round_number:
                return
            arrivals.append(theirs[round_number - 1])
        last, by = max(arrivals, key=lambda arrival: (arrival[0], arrival[1].core))
        visible = last + (self._latency_all if mode == 0 else self._latency)
        for receiver in self.receivers(core, mode):
            receiver.deliver(flag_id, visible, by)

    def _to_one(self, item: Item, time: int) -> None:
        letter = item.call
        receiver = self._session.cores[letter.receiver]
        if letter.content is None:
            receiver.deliver(item.event_id, time + self._latency, item)
        else:
            receiver.mailbox.put(time + self._delivery, item)

    def check_counter(
        self, core: Core, tokens: Sequence[tuple[int, Item]], time: int | None = None
    ) -> None:
        """Report a counter that stood above its limit before a wait took one from it."""
        visible, setter = tokens[self.limit]
        if visible <= (core.time if time is None else time):
            self.overflow(core, setter, struck=True)

    def overflow(self, core: Core, setter: Item, *, struck: bool | None = None) -> None:
        """Report a set that finds, or may find, the counter on a core full."""
        happens = "finds" if struck else "may find"
        self._session.report(
            "FLAG_BALANCE",
            "cross-core-counter-overflow",
            f"a set of cross-core flag {setter.event_id} {happens} its counter on {core.name} at {self.limit}, the "
            f"most that it holds: one more is an error on the hardware. Let the receiver answer with a flag of its "
            f"own, and wait for it before setting {setter.event_id} again",
            setter.site,
            core.name,
            setter.pipe.name,
            struck=struck,
        )

    def mixed(self, core: Core, earlier: Item, later: Item) -> None:
        """Report two sets of one flag from different sides of which a wait cannot tell which one it has got."""
        self._session.report(
            "FLAG_BALANCE",
            "cross-core-flag-mixed",
            f"cross-core flag {later.event_id} reaches {core.name} from two sides at once: set with mode {later.mode} "
            f"on {later.pipe.name} here, with mode {earlier.mode} on {earlier.pipe.name} at "
            f"{self._session.where_text(earlier.site)}. A counter does not tell them apart, so a wait may pass for "
            f"the wrong one. Use another id for one of them",
            later.site,
            self._session.cores[later.core].name,
            later.pipe.name,
        )

    def rounds_for(self, core: Core, flag_id: int) -> list[tuple[int, list[tuple[Core, int]]]]:
        """Return the modes in which a flag has been set for a core, each with its senders and how often they set."""
        found = []
        for (mode, other_id, group, kind), sets in self._sets.items():
            if other_id != flag_id or group not in (-1, core.cluster):
                continue
            if (kind is core.kind) is (mode == 2):
                continue  # set for others
            senders = [
                (other, len(sets.get(other.index, [])))
                for other in self._session.cores
                if other.kind is kind and group in (-1, other.cluster)
            ]
            found.append((mode, senders))
        return found
