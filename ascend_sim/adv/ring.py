"""Buffers of one memory that tiles pass through: who holds which tile, and the flags between filler and reader.

A ring of buffers is filled in turn. A filled buffer is handed to the reading pipe by one event, and handed back by
another as soon as its tile is not needed any more, which is known beforehand because the order of use is.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isa.types import HardEvent

if TYPE_CHECKING:
    from ascend_sim.program import Program
    from isa.tensor import LocalTensor


@dataclass(slots=True)
class Visit:
    """One use of a tile: in which buffer, whether it has to be filled first, whether this is the tile's last use."""

    slot: int
    fill: bool
    last: bool = False


def plan_visits(tiles: Sequence[Hashable], buffers: int) -> list[Visit]:
    """Return a visit for each use, in order: the oldest tile makes room for a new one.

    >>> [(v.slot, v.fill, v.last) for v in plan_visits(["a", "b", "a", "c"], 2)]
    [(0, True, False), (1, True, True), (0, False, True), (1, True, True)]
    """
    held: list[Hashable | None] = [None] * buffers
    latest: list[Visit | None] = [None] * buffers
    where: dict[Hashable, int] = {}
    following = 0
    visits = []
    for tile in tiles:
        slot = where.get(tile)
        if slot is None:
            slot, following = following, (following + 1) % buffers
            before = latest[slot]
            if before is not None:
                before.last = True
                del where[held[slot]]
            held[slot], where[tile] = tile, slot
            visit = Visit(slot, True)
        else:
            visit = Visit(slot, False)
        latest[slot] = visit
        visits.append(visit)
    for visit in filter(None, latest):
        visit.last = True
    return visits


class Ring:
    """The buffers of one operand. `filled` and `freed` are the events, one id of each for a buffer."""

    def __init__(
        self,
        stream: Program,
        buffers: list[LocalTensor],
        filled: tuple[HardEvent, list[int]],
        freed: tuple[HardEvent, list[int]],
    ) -> None:
        self.buffers = buffers
        self._stream = stream
        self._filled, self._filled_ids = filled
        self._freed, self._freed_ids = freed
        self._handed_back = [False] * len(buffers)
        self._in_use = [False] * len(buffers)

    def take(self, slot: int) -> LocalTensor:
        """Return a buffer to fill; the filling pipe waits until its last reader is done with it."""
        self._await(slot)
        return self.buffers[slot]

    def hand_over(self, slot: int) -> None:
        """Let the reading pipe wait for what has just been filled."""
        self._stream.set_flag(self._filled, self._filled_ids[slot])
        self._stream.wait_flag(self._filled, self._filled_ids[slot])
        self._in_use[slot] = True

    def occupy(self, slot: int) -> None:
        """Say that a buffer is in use, and handed over by other means than this ring's events."""
        self._in_use[slot] = True

    def hand_back(self, slot: int) -> None:
        """Say that the reading pipe's work up to here was the last on this buffer."""
        self._stream.set_flag(self._freed, self._freed_ids[slot])
        self._handed_back[slot], self._in_use[slot] = True, False

    def empty(self) -> None:
        """Take all buffers back: the filling pipe knows all readers to be done."""
        for slot, busy in enumerate(self._in_use):
            if busy:
                self.hand_back(slot)
            self._await(slot)

    def _await(self, slot: int) -> None:
        if self._handed_back[slot]:
            self._stream.wait_flag(self._freed, self._freed_ids[slot])
            self._handed_back[slot] = False
