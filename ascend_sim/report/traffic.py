"""What a run moved and worked on, summed over cores: the countable half of a summary.

Rules of counting: an instruction counts where it was issued, flags, waits and barriers are items but no
instructions; bytes are the payload that the parameters ask for; V and M have no bytes but work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ascend_sim.trace import Item, Kind, Log
from isa.types import PIPES_OF, CoreKind, Pipe, Space

_MOVERS = (Pipe.MTE1, Pipe.MTE2, Pipe.MTE3, Pipe.FIX)
_READERS = (Pipe.MTE2,)
_WRITERS = (Pipe.MTE3, Pipe.FIX)


class Counts:
    """Counts of one kind of core, each a list by `Pipe`: plain lists, since a run has many items."""

    __slots__ = ("bytes", "instructions", "items", "work")

    def __init__(self) -> None:
        self.instructions = [0] * len(Pipe)
        self.items = [0] * len(Pipe)
        self.work = [0] * len(Pipe)
        self.bytes = [0] * len(Pipe)


class Tally:
    """Counts of one run or of one phase of it, by core kind and pipe."""

    __slots__ = ("first", "gm_read", "gm_write", "kinds", "last")

    def __init__(self) -> None:
        self.kinds = {kind: Counts() for kind in CoreKind}
        self.gm_read = 0
        self.gm_write = 0
        self.first = -1
        self.last = -1

    def add(self, counts: Counts, item: Item, direction: tuple[bool, bool]) -> None:
        """Count `item` in `counts` of its core's kind; `direction`: whether it reads and writes GM."""
        pipe = item.pipe
        counts.items[pipe] += 1
        begin = item.issue if item.issue >= 0 else max(item.head, item.start)
        if begin >= 0 and (self.first < 0 or begin < self.first):
            self.first = begin
        end = item.end
        if end > self.last or begin > self.last:
            self.last = max(end, begin)
        if item.kind is not Kind.INSTRUCTION:
            return
        counts.instructions[pipe] += 1
        counts.work[pipe] += item.work
        if pipe in _MOVERS:
            size = item.bytes
            counts.bytes[pipe] += size
            reads, writes = direction
            if reads:
                self.gm_read += size
            if writes:
                self.gm_write += size

    def as_dict(self) -> dict[str, Any]:
        """Return `instructions`, `items`, `work` and `bytes` as the summary holds them."""
        return {
            "instructions": self._named("instructions"),
            "items": self._named("items"),
            "work": {
                "aic": {"M": self.kinds[CoreKind.AIC].work[Pipe.M]},
                "aiv": {"V": self.kinds[CoreKind.AIV].work[Pipe.V]},
            },
            "bytes": {
                "gm_read": self.gm_read,
                "gm_write": self.gm_write,
                **self._named("bytes", _MOVERS),
            },
        }

    def _named(self, what: str, only: Iterable[Pipe] = tuple(Pipe)) -> dict[str, dict[str, int]]:
        return {
            kind.value: {
                pipe.name: getattr(counts, what)[pipe] for pipe in PIPES_OF[kind] if pipe in only
            }
            for kind, counts in self.kinds.items()
        }

    @property
    def cycles(self) -> int:
        """From the first issue to the last end."""
        return self.last - self.first if self.first >= 0 else 0


def tally(log: Log) -> tuple[Tally, dict[str, Tally]]:
    """Return the counts of the whole run, and of each named phase that something was issued in."""
    whole, phases = Tally(), [Tally() for _ in log.phases]
    directions: dict[int, tuple[bool, bool]] = {}
    for core in log.cores:
        own = whole.kinds[core.kind]
        own_phases = [phase.kinds[core.kind] for phase in phases]
        for item in core.items:
            key = id(item.call)
            direction = directions.get(key) if item.call is not None else gm_direction(item)
            if direction is None:
                direction = directions[key] = gm_direction(item)
            whole.add(own, item, direction)
            if item.phase:
                phases[item.phase].add(own_phases[item.phase], item, direction)
    named = zip(log.phases, phases, strict=True)
    return whole, {name: counts for name, counts in named if name and counts.first >= 0}


def gm_direction(item: Item) -> tuple[bool, bool]:
    """Return whether `item` reads and whether it writes GM; by its pipe where the operands are gone."""
    reads, writes = _accesses(item, "reads"), _accesses(item, "writes")
    if not reads and not writes:
        return item.pipe in _READERS, item.pipe in _WRITERS
    return _in_gm(reads) != [], _in_gm(writes) != []


def _accesses(item: Item, side: str) -> tuple[Any, ...]:
    accesses: tuple[Any, ...] = getattr(item.call, side, ())
    return accesses


def _in_gm(accesses: Iterable[Any]) -> list[Any]:
    return [access for access in accesses if access.space is Space.GM]


def first_read_bytes(log: Log) -> int:
    """Return how many distinct bytes of GM the run reads without writing them itself.

    With a cold L2 each of them has to come from HBM at least once. 0 where the log has no operands.
    """
    read: dict[int, list[NDArray[np.int64]]] = {}
    written: dict[int, list[NDArray[np.int64]]] = {}
    for item in _distinct_moves(log):
        for side, ranges in (("reads", read), ("writes", written)):
            for access in _in_gm(_accesses(item, side)):
                ranges.setdefault(id(access.buffer), []).append(access.ranges())
    total = 0
    for key, parts in read.items():
        own = written.get(key, [])
        total += _covered(parts + own) - _covered(own)
    return total


def _distinct_moves(log: Log) -> Iterator[Item]:
    """Yield one item of each bound call that moves data."""
    seen: set[int] = set()
    for core in log.cores:
        for item in core.items:
            if item.pipe in _MOVERS and item.call is not None and id(item.call) not in seen:
                seen.add(id(item.call))
                yield item


def _covered(parts: list[NDArray[np.int64]]) -> int:
    """Return the size of the union of byte ranges (rows of first, past last)."""
    if not parts:
        return 0
    ranges = np.concatenate(parts)
    ranges = ranges[np.argsort(ranges[:, 0], kind="stable")]
    # What a range adds is what lies beyond every range before it.
    reach = np.maximum.accumulate(ranges[:, 1])
    known = np.concatenate([ranges[:1, 0], reach[:-1]])
    return int(np.maximum(reach - np.maximum(ranges[:, 0], known), 0).sum())
