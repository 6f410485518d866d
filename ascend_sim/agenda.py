"""The clock: what is due at which cycle, in an order that does not depend on who asked first.

SimPy keeps the time; its one event is a cycle at which something is due, from which some more are served in one go.
All that is due at one cycle is collected and served in phases, within a phase by rank (core and pipe): results land
before instructions start, and requests to a shared part are served as a set. So a run does not depend on the order in
which equal times were scheduled; `shuffle` scrambles that order to prove it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any, Final

import simpy
from mypy_extensions import mypyc_attr
from simpy.events import NORMAL

from ascend_sim.alarm import Alarm

RETIRE: Final = 0
"""Results become visible."""
READ: Final = 1
"""The scalar unit reads, and instructions read their operands."""
PROGRAM: Final = 2
"""Kernel programs go on, blocks are started."""
SERVE: Final = 3
"""The memory system takes the requests of this cycle as a set."""

PHASE_BITS: Final = 54
"""Keys of what is due at one cycle: the phase, shifted by these, and the rank, which is smaller (or negative)."""
_HALF: Final = 1 << PHASE_BITS - 1
_TURN: Final = 64
"""Cycles that are served before SimPy's clock is set to the present one."""

Action = Callable[[Any], None]


class Entry:
    """`action(argument)` is due; entries of one cycle go by their keys."""

    __slots__ = ("action", "argument", "key")

    def __init__(self, key: int, action: Action, argument: Any) -> None:
        self.key = key
        self.action = action
        self.argument = argument


_key: Final = attrgetter("key")
_push: Final = heappush
_pop: Final = heappop


@mypyc_attr(allow_interpreted_subclasses=True)
class Agenda:
    """Actions by cycle. `now` is the current cycle."""

    def __init__(self, shuffle: int | None = None) -> None:
        self.env = simpy.Environment()
        self.now = 0
        self._times: list[int] = []  # a heap
        self._entries: dict[int, list[Entry]] = {}
        self._random = random.Random(shuffle) if shuffle is not None else None
        self._go_on = [self._ring]
        self._alarm = Alarm(self._ring)

    def at(self, time: int, phase: int, rank: int, action: Action, argument: Any = None) -> None:
        """Run `action(argument)` at a cycle that is not in the past."""
        entry = Entry((phase << PHASE_BITS) + rank, action, argument)
        entries = self._entries.get(time)
        if entries is None:
            self._entries[time] = [entry]
            _push(self._times, time)
        elif self._random is None:
            entries.append(entry)
        else:
            entries.insert(self._random.randint(0, len(entries)), entry)

    def serve_next(self) -> None:
        """Go to the next cycle at which something is due, and run it all."""
        self.now = time = _pop(self._times)
        entries = self._entries[time]
        if len(entries) == 1:  # mostly
            entry = entries.pop()
            entry.action(entry.argument)
        if entries:
            serve(entries)
        del self._entries[time]

    def _ring(self, _: Alarm) -> None:
        times, served = self._times, 0
        while times and served < _TURN:
            self.serve_next()
            served += 1
        self._set_alarm()

    def _set_alarm(self) -> None:
        if self._times:
            self._alarm.callbacks = self._go_on
            self.env.schedule(self._alarm, NORMAL, self._times[0] - self.env.now)

    def run(self) -> None:
        """Run until nothing is due any more."""
        self._set_alarm()
        self.env.run()


def serve(entries: list[Entry]) -> None:
    """Run what is due at one cycle by phase and rank, with what is added meanwhile."""
    while entries:
        if len(entries) == 1:
            entry = entries.pop()
            entry.action(entry.argument)
            continue
        entries.sort(key=_key)
        limit = (entries[0].key + _HALF >> PHASE_BITS << PHASE_BITS) + _HALF
        count = 1
        while count < len(entries) and entries[count].key < limit:
            count += 1
        due = entries[:count]
        del entries[:count]
        for entry in due:
            entry.action(entry.argument)
