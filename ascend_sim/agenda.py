"""The clock: what is due at which cycle, in an order that does not depend on who asked first.

SimPy keeps the time. All that is due at one cycle is collected in one slot and served in phases, within a
phase by rank (core and pipe): results land before instructions start, and requests to a shared part are served
as a set. So a run does not depend on the order in which equal times were scheduled; `shuffle` scrambles that
order to prove it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import simpy
from simpy.events import NORMAL

RETIRE = 0
"""Results become visible."""
READ = 1
"""The scalar unit reads, and instructions read their operands."""
PROGRAM = 2
"""Kernel programs go on, blocks are started."""
SERVE = 3
"""The memory system takes the requests of this cycle as a set."""

Action = Callable[[Any], None]
Entry = tuple[int, int, Action, Any]


def _order(entry: Entry) -> tuple[int, int]:
    return entry[0], entry[1]


class _Slot(simpy.Event):
    """What is due at one cycle. It happens when SimPy's clock gets there, so it needs no more than SimPy looks at."""

    _ok = True

    def __init__(self, time: int, entry: Entry, serve: Callable[[_Slot], None]) -> None:
        self.time = time
        self.entries = [entry]
        self.callbacks: list[Any] = [serve]


class Agenda:
    """Actions by cycle. `now` is the current cycle."""

    def __init__(self, shuffle: int | None = None) -> None:
        self.env = simpy.Environment()
        self.now = 0
        self._slots: dict[int, _Slot] = {}
        self._random = random.Random(shuffle) if shuffle is not None else None

    def at(self, time: int, phase: int, rank: int, action: Action, argument: Any = None) -> None:
        """Run `action(argument)` at a cycle that is not in the past."""
        slot = self._slots.get(time)
        if slot is None:
            slot = _Slot(time, (phase, rank, action, argument), self._serve)
            self._slots[time] = slot
            self.env.schedule(slot, NORMAL, time - self.now)
        elif self._random is None:
            slot.entries.append((phase, rank, action, argument))
        else:
            place = self._random.randint(0, len(slot.entries))
            slot.entries.insert(place, (phase, rank, action, argument))

    def _serve(self, slot: _Slot) -> None:
        self.now = time = slot.time
        entries = slot.entries
        if len(entries) == 1:  # mostly
            _, _, action, argument = entries.pop()
            action(argument)
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
            _, _, action, argument = entries.pop()
            action(argument)
            continue
        entries.sort(key=_order)
        phase = entries[0][0]
        count = 1
        while count < len(entries) and entries[count][0] == phase:
            count += 1
        due = entries[:count]
        del entries[:count]
        for _, _, action, argument in due:
            action(argument)
