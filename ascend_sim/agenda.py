"""The clock: what is due at which cycle, in an order that does not depend on who asked first.

SimPy keeps the time. All that is due at one cycle is collected in one slot and served in phases, within a
phase by rank (core and pipe): results land before instructions start, and requests to a shared part are served
as a set. So a run does not depend on the order in which equal times were scheduled; `shuffle` scrambles that
order to prove it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import simpy
from mypy_extensions import mypyc_attr
from simpy.events import NORMAL

from ascend_sim.slot import Slot

RETIRE = 0
"""Results become visible."""
READ = 1
"""The scalar unit reads, and instructions read their operands."""
PROGRAM = 2
"""Kernel programs go on, blocks are started."""
SERVE = 3
"""The memory system takes the requests of this cycle as a set."""

PHASE = 1 << 54
"""Keys of what is due at one cycle: the phase times this, and the rank, which is smaller."""

Action = Callable[[Any], None]


class Entry:
    """`action(argument)` is due; entries of one cycle go by their keys."""

    __slots__ = ("action", "argument", "key")

    def __init__(self, key: int, action: Action, argument: Any) -> None:
        self.key = key
        self.action = action
        self.argument = argument


_key = attrgetter("key")


@mypyc_attr(allow_interpreted_subclasses=True)
class Agenda:
    """Actions by cycle. `now` is the current cycle."""

    def __init__(self, shuffle: int | None = None) -> None:
        self.env = simpy.Environment()
        self.now = 0
        self._slots: dict[int, Slot] = {}
        self._random = random.Random(shuffle) if shuffle is not None else None
        self._served = self._serve

    def at(self, time: int, phase: int, rank: int, action: Action, argument: Any = None) -> None:
        """Run `action(argument)` at a cycle that is not in the past."""
        entry = Entry(phase * PHASE + rank, action, argument)
        slot = self._slots.get(time)
        if slot is None:
            self._slots[time] = slot = Slot(time, entry, self._served)
            self.env.schedule(slot, NORMAL, time - self.now)
        elif self._random is None:
            slot.entries.append(entry)
        else:
            slot.entries.insert(self._random.randint(0, len(slot.entries)), entry)

    def _serve(self, slot: Slot) -> None:
        self.now = time = slot.time
        entries: list[Entry] = slot.entries
        if len(entries) == 1:  # mostly
            entry = entries.pop()
            entry.action(entry.argument)
        if entries:
            serve(entries)
        del self._slots[time]

    def run(self) -> None:
        """Run until nothing is due any more."""
        self.env.run()


def serve(entries: list[Entry]) -> None:
    """Run what is due at one cycle by phase and rank, with what is added meanwhile."""
    while entries:
        if len(entries) == 1:
            entry = entries.pop()
            entry.action(entry.argument)
            continue
        entries.sort(key=_key)
        limit = (entries[0].key + PHASE // 2) // PHASE * PHASE + PHASE // 2  # ranks may be negative
        count = 1
        while count < len(entries) and entries[count].key < limit:
            count += 1
        due = entries[:count]
        del entries[:count]
        for entry in due:
            entry.action(entry.argument)
