"""What one core's units do to its own memories, put off until somebody can tell the difference.

Reads and writes of on-chip memory are due at cycles like everything else, but nobody outside the core sees them.
So they do not go through the clock: they are kept in order here and done in one go when a store takes bytes away,
the scalar unit looks, or the block ends.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any, Final

from ascend_sim.agenda import PHASE_BITS, Agenda

MANY: Final = 512
"""Deeds that may wait: results of loads take memory while they do."""


class Deeds:
    """Deeds of one core by cycle, phase and rank, as in `Agenda`."""

    __slots__ = ("_agenda", "_due")

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self._due: list[tuple[int, int, Callable[[Any], None], Any]] = []

    def add(
        self, time: int, phase: int, rank: int, action: Callable[[Any], None], what: Any
    ) -> None:
        """Do `action(what)`, which adds no deed, at a cycle that is not in the past."""
        self._due.append((time, (phase << PHASE_BITS) + rank, action, what))

    def catch_up(self, phase: int, rank: int) -> None:
        """Do all that comes before a phase and rank of the present cycle."""
        if self._due:
            self._do((self._agenda.now, (phase << PHASE_BITS) + rank))

    def thin_out(self) -> None:
        """Do what is over, if much is waiting."""
        if len(self._due) > MANY:
            self._do((self._agenda.now, 0))

    def finish(self) -> None:
        """Do all that is known of."""
        if self._due:
            self._do((max(self._due)[0] + 1, 0))

    def _do(self, limit: tuple[int, int]) -> None:
        due = self._due
        due.sort()  # each pipe adds its own in order, so there is little to do
        count = bisect_left(due, limit)
        ready = due[:count]
        del due[:count]
        for _, _, action, what in ready:
            action(what)
