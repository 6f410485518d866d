"""The servers behind all ports, L2 and HBM: what they are asked for, and how they are shared when that is too much.

As long as the servers have more than all ports together can take, each port moves at its own limit and nobody asks
here for more than that fact. Otherwise they share the servers equally, up to their limits. Ports with the same limit
form a class and run at one rate, so a change costs time by the number of classes, not of ports.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ascend_sim.config import Chip
    from ascend_sim.gm import Port

_push: Final = heappush
_pop: Final = heappop

EPSILON: Final = 1e-6
"""Bytes that are rounding errors."""

HIT: Final = 0
MISS: Final = 1
WRITE: Final = 2
BYPASS_WRITE: Final = 3
BACK: Final = 4
LOST: Final = 5
"""What a port moves: bytes that L2 holds, bytes that it fetches from HBM, bytes into L2, bytes past it.

The last two are what HBM takes besides: dirty bytes that leave L2 for those that come, and bytes that it could have
moved in the time that short bursts take.
"""

SHARES: Final = 8
"""Dirty bytes that a moved byte pushes out are counted in eighths: ports that push out as many share a class."""


class _Class:
    """Ports that move at one rate. `progress` is what each of them has moved since the class was last empty.

    `back`: bytes written back for each byte moved, `lost`: bytes not moved meanwhile; `load`: bytes that HBM moves, or
    could have moved, for each byte moved.
    """

    __slots__ = ("back", "cap", "heap", "kind", "load", "lost", "members", "progress", "rate")

    def __init__(self, kind: int, cap: float, back: float, lost: float) -> None:
        self.kind = kind
        self.cap = cap
        self.back = back
        self.lost = lost
        self.load = back + lost + (kind in (MISS, BYPASS_WRITE))
        self.members = 0
        self.progress = 0.0
        self.rate = cap
        self.heap: list[tuple[float, int, int, Port]] = []


class Servers:
    """L2 and HBM. `demand` is what the ports could take, by kind, in bytes a cycle."""

    def __init__(self, chip: Chip) -> None:
        self.hbm: float = chip.bytes_per_cycle(chip.hbm.gbps)
        self.l2_read: float = chip.bytes_per_cycle(chip.l2.read_gbps)
        self.l2_all: float = chip.bytes_per_cycle(chip.l2.mixed_gbps)
        self.least: float = min(self.hbm, self.l2_read, self.l2_all)  # as much is never too much
        self.turnaround: float = chip.hbm.turnaround
        self.demand: list[float] = [0.0] * 6
        self._classes: dict[tuple[int, float, float, float], _Class] = {}
        self._groups: list[_Class] = []  # the classes that have members
        self._last = 0  # up to which cycle progress is accounted for

    def asked(self) -> float:
        """Return the bytes a cycle that they are asked for, of all kinds."""
        total = 0.0
        for rate in self.demand:
            total += rate
        return total

    @property
    def too_few(self) -> bool:
        """Whether they are asked for more than they have."""
        demand = self.demand
        hit, miss, write = demand[HIT], demand[MISS], demand[WRITE]
        direct, back, lost = demand[BYPASS_WRITE], demand[BACK], demand[LOST]
        stored = direct + back
        turns = self.turnaround * (miss if miss < stored else stored)
        return (
            hit + miss > self.l2_read
            or hit + miss + write > self.l2_all
            or miss + direct + back + lost + turns > self.hbm
        )

    # ---- who shares -------------------------------------------------------------------------

    def join(self, port: Port, size: float) -> None:
        """Take a port that has `size` bytes to move."""
        kind: int = port.kind  # type: ignore[assignment]
        key = (kind, port.cap, port.back, port.lost)
        group = self._classes.get(key)
        if group is None:
            group = self._classes[key] = _Class(*key)
        if group.members == 0:
            self._groups.append(group)
            group.progress = 0.0
            group.rate = group.cap
            group.heap.clear()
        group.members += 1
        port.group = group
        self.go_on(port, size)

    def go_on(self, port: Port, size: float) -> None:
        """Let a port move another `size` bytes of the same kind."""
        group: _Class = port.group
        port.finish = group.progress + size
        port.ticket += 1
        _push(group.heap, (port.finish, port.rank, port.ticket, port))

    def leave(self, port: Port) -> float:
        """Dismiss a port; return the bytes that it has not moved yet."""
        group: _Class = port.group
        group.members -= 1
        if group.members == 0:
            self._groups.remove(group)
        port.group = None
        port.ticket += 1
        return port.finish - group.progress

    # ---- the course of time -----------------------------------------------------------------

    def advance(self, now: int) -> None:
        """Account for what has moved since the last change."""
        elapsed = now - self._last
        if elapsed:
            for group in self._groups:
                group.progress += group.rate * elapsed
            self._last = now

    def share(self) -> None:
        """Set the rates of all classes."""
        self.demand = [0.0] * 6  # anew, so that no rounding error piles up
        for group in self._groups:
            asked = group.cap * group.members
            self.demand[group.kind] += asked
            self.demand[BACK] += asked * group.back
            self.demand[LOST] += asked * group.lost
            group.rate = group.cap
        demand = self.demand
        hit, miss, write = demand[HIT], demand[MISS], demand[WRITE]
        direct, back, lost = demand[BYPASS_WRITE], demand[BACK], demand[LOST]
        if hit + miss > self.l2_read:
            self._cap((HIT, MISS), self.l2_read)
        if hit + miss + write > self.l2_all:
            self._cap((HIT, MISS, WRITE), self.l2_all)
        written = direct + back
        turns = self.turnaround * min(miss, written)
        moved = miss + written + lost
        if moved + turns > self.hbm:
            self._cap_hbm(self.hbm * moved / (moved + turns))

    def _cap(self, kinds: tuple[int, ...], capacity: float) -> None:
        users = [group for group in self._groups if group.kind in kinds]
        level = _water_level(users, capacity)
        for group in users:
            group.rate = min(group.rate, level)

    def _cap_hbm(self, capacity: float) -> None:
        """Share HBM. Stores into L2 wait in the same queues, so none goes faster than what HBM serves."""
        level = _water_level([g for g in self._groups if g.load], capacity, by_load=True)
        for group in self._groups:
            if group.kind != HIT:
                group.rate = min(group.rate, level)

    def soonest(self) -> float:
        """Return the cycles until the first port is through; infinity where none moves."""
        soonest = math.inf
        for group in self._groups:
            heap = group.heap
            while heap[0][2] != heap[0][3].ticket:
                _pop(heap)
            left = (heap[0][0] - group.progress - EPSILON) / group.rate
            if left < soonest:
                soonest = left
        return soonest

    def through(self) -> list[Port]:
        """Return the ports that have moved all their bytes, in order of their ranks; they stay in their classes."""
        done: list[tuple[int, Port]] = []
        for group in self._groups:
            heap = group.heap
            moved = group.progress + (EPSILON if group.progress < 1 else EPSILON * group.progress)
            while heap and (heap[0][0] <= moved or heap[0][2] != heap[0][3].ticket):
                _, rank, ticket, port = _pop(heap)
                if ticket == port.ticket:
                    done.append((rank, port))
        done.sort()  # ranks are unique
        return [port for _, port in done]


def _water_level(groups: list[_Class], capacity: float, *, by_load: bool = False) -> float:
    """Return the equal share at which the groups' demands, each up to its cap, fill a server.

    `by_load`: a byte counts as the bytes that HBM moves for it.
    """
    if not groups:
        return math.inf
    users: list[tuple[float, float]] = []
    left, weight = capacity, 0.0
    for group in groups:
        own = group.members * group.load if by_load else float(group.members)
        users.append((group.rate, own))
        weight += own
    users.sort()
    for rate, own in users:
        if rate * weight <= left:
            left -= rate * own
            weight -= own
        else:
            return left / weight
    return math.inf
