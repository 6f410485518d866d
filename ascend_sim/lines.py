"""Which ports move the same lines of GM at the same time.

A line of L2, and around L2 a page of HBM, answers one core after the other. Cores that walk the same bytes together
wait for each other at every line, and what each of them has in flight does not cover such a wait when they are many.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascend_sim.config import Chip
    from ascend_sim.gm import Port

Key = tuple[Any, ...]
"""An allocation, the first and the last line of a transfer, and whether it goes around L2."""


class Lines:
    """The ports that move bytes, by the lines they move: those whose transfers begin and end in the same lines meet.

    Transfers that share some lines only, with other first or last ones, are not taken for meeting.
    """

    def __init__(self, chip: Chip) -> None:
        gm = chip.gm
        self.sizes: tuple[int, int] = gm.line, chip.hbm.page
        self.waits: tuple[float, float] = gm.same_line, chip.hbm.row_cycle
        self.windows: tuple[float, float] = gm.window_core, gm.store_window
        self._moving: dict[Key, list[Port]] = {}
        self._changed: dict[int, list[Port]] = {}

    def come(self, port: Port, buffer: Any, low: int, high: int, bypass: bool) -> bool:
        """Take a port that begins to move the bytes [low, high) of an allocation; return whether it meets another."""
        size = self.sizes[1] if bypass else self.sizes[0]
        port.place = key = (buffer.index, low // size, (high - 1) // size, bypass)
        met = self._moving.get(key)
        if met is None:
            self._moving[key] = port.met = port.alone
            return False
        if len(met) == 1:
            first = met[0]
            met = self._moving[key] = first.met = [first]
        met.append(port)
        port.met = met
        self._changed[id(met)] = met
        return True

    def go(self, port: Port) -> bool:
        """Dismiss a port whose bytes have passed; return whether others go on with the same lines."""
        met = port.met
        if len(met) == 1:
            del self._moving[port.place]
            return False
        met.remove(port)
        port.met = port.alone
        self._changed[id(met)] = met
        return True

    def changed(self) -> Iterator[Port]:
        """Return the ports of all groups that have changed since the last call."""
        groups, self._changed = self._changed, {}
        for met in groups.values():
            yield from met

    def limit(self, port: Port) -> float:
        """Return the rate of a port that meets others, in bytes a cycle.

        Each of its requests waits until the others' are served. What it has in flight meanwhile is its share of the
        core's window, half of it for a vector core, and no more than the whole transfer.
        """
        wait = (self.waits[1] if port.place[3] else self.waits[0]) * (len(port.met) - 1)
        if not wait:
            return math.inf
        window = self.windows[1] if port.write else self.windows[0]
        if port.other is not None:
            window //= 2
        transfer = port.transfer
        assert transfer is not None
        size = float(transfer.size)
        rate = (window if window < size else size) / wait
        queued = size / rate
        if queued > transfer.queued:
            transfer.queued = queued
        return rate
