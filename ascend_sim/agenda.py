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
from simpy.events import Timeout

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


class Agenda:
    """Actions by cycle. `now` is the current cycle."""

    def __init__(self, shuffle: int | None = None) -> None:
        self.env = simpy.Environment()
        self.now = 0
        self._slots: dict[int, list[Entry]] = {}
        self._random = random.Random(shuffle) if shuffle is not None else None

    def at(self, time: int, phase: int, rank: int, action: Action, argument: Any = None) -> None:
        """Run `action(argument)` at a cycle that is not in the past."""
        slot = self._slots.get(time)
        if slot is None:
            self._slots[time] = [(phase, rank, action, argument)]
            Timeout(self.env, time - self.now, time).callbacks.append(self._serve)
        elif self._random is None:
            slot.append((phase, rank, action, argument))
        else:
            slot.insert(self._random.randint(0, len(slot)), (phase, rank, action, argument))

    def _serve(self, event: Any) -> None:
        self.now = time = event._value
        slot = self._slots[time]
        while slot:
            if len(slot) == 1:
                _, _, action, argument = slot.pop()
                action(argument)
                continue
            slot.sort(key=_order)
            phase = slot[0][0]
            count = 1
            while count < len(slot) and slot[count][0] == phase:
                count += 1
            due = slot[:count]
            del slot[:count]
            for _, _, action, argument in due:
                action(argument)
        del self._slots[time]

    def run(self) -> None:
        """Run until nothing is due any more."""
        self.env.run()
