"""What a run moved and worked on, summed over cores: the countable half of a summary.

Rules of counting: an instruction counts where it was issued, flags, waits and barriers are items but no
instructions; bytes are the payload that the parameters ask for; V and M have no bytes but work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ascend_sim.report.calls import READS_GM, UNKNOWN, WRITES_GM, directions
from ascend_sim.report.columns import Columns, Flags, Ints
from ascend_sim.report.ledger import Ledger
from ascend_sim.trace import Kind, Log
from isa.types import PIPES_OF, CoreKind, Pipe, Space

_MOVERS = (Pipe.MTE1, Pipe.MTE2, Pipe.MTE3, Pipe.FIX)
_READERS = (Pipe.MTE2,)
_WRITERS = (Pipe.MTE3, Pipe.FIX)
_MANY = 1 << 14


class Counts:
    """Counts of one kind of core, each by `Pipe`."""

    __slots__ = ("bytes", "instructions", "items", "work")

    def __init__(self) -> None:
        self.instructions, self.items, self.work, self.bytes = (
            np.zeros(len(Pipe), np.int64) for _ in range(4)
        )


class Tally:
    """Counts of one run or of one phase of it, by core kind and pipe."""

    __slots__ = ("first", "gm_read", "gm_write", "kinds", "last")

    def __init__(self) -> None:
        self.kinds = {kind: Counts() for kind in CoreKind}
        self.gm_read = 0
        self.gm_write = 0
        self.first = -1
        self.last = -1

    def add(self, kind: CoreKind, columns: Columns, which: Flags, gm: NDArray[np.uint8]) -> None:
        """Count some items of a core of a kind; `gm` says what of GM each item touches."""
        counts, items = self.kinds[kind], columns.items[which]
        counts.items += np.bincount(items["pipe"], minlength=len(Pipe))
        head = np.maximum(items["head"], items["start"])
        begin = np.where(items["issue"] >= 0, items["issue"], head)
        begun = begin[begin >= 0]
        if len(begun):
            first = int(begun.min())
            self.first = first if self.first < 0 else min(self.first, first)
        if len(items):
            self.last = max(self.last, int(np.maximum(items["end"], begin).max()))
        own = items["kind"] == Kind.INSTRUCTION
        items, gm = items[own], gm[which][own]
        pipe, size = items["pipe"], np.where(np.isin(items["pipe"], _MOVERS), items["bytes"], 0)
        counts.instructions += np.bincount(pipe, minlength=len(Pipe))
        counts.work += _sums(pipe, items["work"])
        counts.bytes += _sums(pipe, size)
        self.gm_read += int(size[gm & READS_GM != 0].sum())
        self.gm_write += int(size[gm & WRITES_GM != 0].sum())

    def as_dict(self) -> dict[str, Any]:
        """Return `instructions`, `items`, `work` and `bytes` as the summary holds them."""
        return {
            "instructions": self._named("instructions"),
            "items": self._named("items"),
            "work": {
                "aic": {"M": int(self.kinds[CoreKind.AIC].work[Pipe.M])},
                "aiv": {"V": int(self.kinds[CoreKind.AIV].work[Pipe.V])},
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
                pipe.name: int(getattr(counts, what)[pipe])
                for pipe in PIPES_OF[kind]
                if pipe in only
            }
            for kind, counts in self.kinds.items()
        }

    @property
    def cycles(self) -> int:
        """From the first issue to the last end."""
        return self.last - self.first if self.first >= 0 else 0


def _sums(pipe: NDArray[np.uint8], values: Ints) -> Ints:
    sums: Ints = np.bincount(pipe, values, len(Pipe)).astype(np.int64)
    return sums


def tally(ledger: Ledger) -> tuple[Tally, dict[str, Tally]]:
    """Return the counts of the whole run, and of each named phase that something was issued in."""
    log = ledger.log
    whole, phases = Tally(), [Tally() for _ in log.phases]
    for entry, gm in zip(ledger, gm_directions(ledger), strict=True):
        columns, kind = entry.columns, entry.core.kind
        whole.add(kind, columns, np.ones(len(columns), bool), gm)
        for number in range(1, len(phases)):
            which = columns["phase"] == number
            if which.any():
                phases[number].add(kind, columns, which, gm)
    named = zip(log.phases, phases, strict=True)
    return whole, {name: counts for name, counts in named if name and counts.first >= 0}


def gm_directions(ledger: Ledger) -> Iterator[NDArray[np.uint8]]:
    """Yield for each core what of GM its items touch, in the bits of `ascend_sim.report.calls`.

    By its operands; by its pipe where the operands are gone.
    """
    known = np.append(directions(ledger.calls.things), UNKNOWN).astype(np.uint8)
    for entry in ledger:
        gm = known[entry.columns["call"]]  # an item without a call has number -1: the last one
        pipe, unknown = entry.columns["pipe"], gm == UNKNOWN
        by_pipe = READS_GM * np.isin(pipe, _READERS) + WRITES_GM * np.isin(pipe, _WRITERS)
        yield np.where(unknown, by_pipe, gm).astype(np.uint8)


def first_read_bytes(log: Log) -> int:
    """Return how many distinct bytes of GM the run reads without writing them itself.

    With a cold L2 each of them has to come from HBM at least once. 0 where the log has no operands.
    """
    return distinct_bytes(log)[0]


def distinct_bytes(log: Log) -> tuple[int, int]:
    """Return how many distinct bytes of GM the run reads without writing them, and how many it writes."""
    stored = getattr(log, "distinct_bytes", None)
    if stored is not None:
        return stored  # type: ignore[no-any-return]
    bytes_ = GmBytes()
    for call in _distinct_moves(log):
        bytes_.add(call)
    return bytes_.distinct()


class GmBytes:
    """Which bytes of GM instructions read and write."""

    def __init__(self) -> None:
        self._read: dict[int, list[NDArray[np.int64]]] = {}
        self._written: dict[int, list[NDArray[np.int64]]] = {}

    def add(self, call: Any) -> None:
        """Count the operands of an instruction."""
        for side, ranges in (("reads", self._read), ("writes", self._written)):
            for access in getattr(call, side, ()):
                if access.space is Space.GM:
                    own = ranges.setdefault(id(access.buffer), [])
                    own.append(access.ranges())
                    if len(own) >= _MANY:  # a long run: keep their union instead
                        own[:] = [_union(own)]

    def distinct(self) -> tuple[int, int]:
        """Return how many bytes are read without being written, and how many are written."""
        first = 0
        for key, parts in self._read.items():
            own = self._written.get(key, [])
            first += _covered(parts + own) - _covered(own)
        return first, sum(_covered(parts) for parts in self._written.values())


def _distinct_moves(log: Log) -> Iterator[Any]:
    """Yield each bound call that moves data once."""
    seen: set[int] = set()
    for core in log.cores:
        for item in core.items:
            if item.pipe in _MOVERS and item.call is not None and id(item.call) not in seen:
                seen.add(id(item.call))
                yield item.call


def _covered(parts: list[NDArray[np.int64]]) -> int:
    """Return the size of the union of byte ranges (rows of first, past last)."""
    union = _union(parts)
    return int((union[:, 1] - union[:, 0]).sum())


def _union(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the union of byte ranges as sorted ranges that do not touch."""
    if not parts:
        return np.empty((0, 2), np.int64)
    ranges = np.concatenate(parts)
    if not len(ranges):
        return ranges
    ranges = ranges[np.argsort(ranges[:, 0], kind="stable")]
    reach = np.maximum.accumulate(ranges[:, 1])
    opens = np.flatnonzero(np.concatenate([[True], ranges[1:, 0] > reach[:-1]]))
    return np.stack([ranges[opens, 0], reach[np.append(opens[1:], len(ranges)) - 1]], axis=1)
