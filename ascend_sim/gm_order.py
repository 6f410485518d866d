"""Accesses to GM by different cores: which of them nothing orders.

Looks over a whole run, allocation by allocation. Every piece of an allocation has a state: who wrote it last, and who
has read it or added to it since. An access is compared with the state of the pieces that it touches, and changes it; so
the work grows with the bytes accessed, not with pairs of accesses. Where accesses are a few runs of bytes each, pieces
reach from one end of a run to the next; else they are of one size, as small as the accesses' bytes demand. Accesses
are taken in an order that the programs alone determine, whatever the time was.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from isa.access import Access, intersect_ranges
from isa.types import Pipe, uint8

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascend_sim.core_order import Epoch
    from ascend_sim.trace import Item

MAX_PIECE: Final = 4096
"""Bytes of a piece at most."""
FEW_RUNS: Final = 8
"""Runs of bytes of an access at most, for pieces between their ends."""
READS: Final = len(Pipe) + 1
"""Place in a clock of the scalar unit's reads of GM: each is complete before the unit issues anything further."""
NEVER: Final = 1 << 60
"""Number of an access that nobody waits for: a line that goes back when the kernel ends."""


class CachedLine:
    """A line of a core's data cache, from the access that brought it in until it is dropped.

    `known` and `epoch`: what the scalar unit knew of its own core and of others when it came in; `written`: its first
    store; `cleaned`: when it went back, as a number of the scalar unit's accesses; `whole`: all its bytes, once it
    has gone back.
    """

    __slots__ = ("cleaned", "epoch", "high", "known", "low", "whole", "written")

    def __init__(self, low: int, high: int, known: list[int], epoch: Epoch) -> None:
        self.low = low
        self.high = high
        self.known = known
        self.epoch = epoch
        self.written: tuple[Item, Access] | None = None
        self.cleaned = NEVER
        self.whole: Access | None = None


class GmUse(NamedTuple):
    """One access to GM.

    `unit` is the block, or one core's part of it; `number` counts the pipe's accesses, or the scalar unit's reads;
    `epoch` is what is known of other cores; `knows` how many accesses of its own scalar unit are known to be complete,
    for an access of the scalar unit itself those of all pipes; `line` the line of the data cache that it goes through.
    """

    unit: int
    access: Access
    write: bool
    item: Item
    pipe: Pipe
    number: int
    epoch: Epoch
    knows: Any
    line: CachedLine | None

    @property
    def clock(self) -> int:
        """Which place of a clock says whether it is complete: its pipe's, for a read of the scalar unit `READS`."""
        return READS if self.pipe is Pipe.S and not self.write else self.pipe

    @property
    def combines(self) -> str | None:
        """The kind of an atomic store, whose order among its like does not matter."""
        return self.item.call.atomic if self.write else None

    @property
    def goes_back(self) -> bool:
        """Whether this is a whole line on its way back to GM, beside the stores in it."""
        return self.line is not None and self.line.whole is self.access


class Conflict(NamedTuple):
    """Two accesses that share bytes and are not ordered, or not past the data cache.

    `what` is RAW, WAR or WAW where nothing orders them (`first` is likelier to have been meant to come first), else
    "stale", "kept" or "line": see `_verdict`.
    """

    what: str
    first: GmUse
    second: GmUse

    def bytes(self) -> tuple[int, int]:
        """Return the first range of bytes that both touch."""
        shared = intersect_ranges(self.first.access.ranges(), self.second.access.ranges())
        return int(shared[0, 0]), int(shared[0, 1])


def conflicts(uses: Iterable[Sequence[Any]]) -> Iterator[Conflict]:
    """Yield the pairs of accesses by different units to shared bytes, one of them a write, that nothing orders.

    `uses` are the fields of `GmUse` in plain tuples, which a run makes by the million.

    Where several accesses to some bytes are not ordered among each other, not every pair of them is named.
    """
    by_buffer: dict[int, list[Sequence[Any]]] = {}
    for use in uses:
        by_buffer.setdefault(use[1].place, []).append(use)
    for _, mine in sorted(by_buffer.items()):
        if any(use[2] for use in mine) and _shared(mine):
            ordered = sorted(map(GmUse._make, mine), key=_program_order)
            runs = _runs_of(ordered)
            shadow = _Shadow(ordered)
            yield from shadow.conflicts() if runs is None else shadow.conflicts_of_runs(*runs)


def _shared(uses: Sequence[Sequence[Any]]) -> bool:
    """Return whether several units use an allocation, or one does so both through its data cache and past it."""
    unit, cached = uses[0][0], uses[0][8] is None
    return any(use[0] != unit or (use[8] is None) is not cached for use in uses)


def _runs_of(uses: list[GmUse]) -> tuple[list[int], list[int], list[int]] | None:
    """Return the number of runs of each access, and of all runs the first byte and the one behind; None: too many."""
    counts, lows, highs = [], [], []
    for use in uses:
        access = use.access
        if access.contiguous:
            counts.append(1)
            lows.append(access.low)
            highs.append(access.high)
            continue
        ranges = access.ranges()
        if access.lanes is not None or len(ranges) > FEW_RUNS:
            return None
        counts.append(len(ranges))
        lows += ranges[:, 0].tolist()
        highs += ranges[:, 1].tolist()
    return counts, lows, highs


def whole_line(access: Access, low: int, high: int) -> Access:
    """Return all bytes of a line as an access to the allocation of another access."""
    line = access.moved(low)
    line.origin = line
    line.dtype, line.shape, line.strides = uint8, (high - low,), (1,)
    line.high, line.contiguous, line.layered = high, True, False
    return line


def _program_order(use: GmUse) -> tuple[int, int]:
    """Return what sorts accesses so that what is ordered before something else comes before it."""
    return use.epoch.level, use.unit


def _ordered(first: GmUse, second: GmUse) -> bool:
    """Return whether the second access starts only after the first one is complete."""
    return _knows(second.epoch, first, first.number)


def _knows(epoch: Epoch, use: GmUse, number: int) -> bool:
    row = epoch.row(use.unit)
    return row is not None and row[use.clock] >= number


def _verdict(first: GmUse, second: GmUse) -> str | None:
    """Return what is wrong between two accesses to one place, of which the first one came first; None: nothing.

    "race": nothing orders them. "stale": the second one finds a line of the data cache that came in before the
    first one. "kept": the first one's store is still in a data cache. "line": a line that goes back whole takes
    other bytes of the line along.
    """
    if not (first.write or second.write):
        return None
    if first.line is None and second.line is None:
        if first.unit == second.unit or _ordered(first, second):
            return None
        if first.write and second.write and first.combines is not None:
            return None if first.combines == second.combines else "race"
        return "race"
    if first.goes_back or second.goes_back:
        return _line_verdict(first, second) if first.write and second.write else None
    if first.unit == second.unit:
        return _own_verdict(first, second)
    if not _ordered(first, second):
        return "race"
    if (
        first.write
        and first.line is not None
        and not _knows(second.epoch, first, first.line.cleaned)
    ):
        return "kept"
    if second.line is not None and not second.write and first.write:
        complete = first.number if first.line is None else first.line.cleaned
        if not _knows(second.line.epoch, first, complete):
            return "stale"
    return None


def _own_verdict(first: GmUse, second: GmUse) -> str | None:
    """Return the verdict on a scalar access and another one of the same core; what order it needs is checked there."""
    if first.line is not None and second.line is None:
        seen = second.knows >= first.number
        return "kept" if first.write and seen and first.line.cleaned > second.knows else None
    if first.line is None and second.line is not None and not second.write:
        seen = second.knows[first.pipe] >= first.number
        return "stale" if seen and second.line.known[first.pipe] < first.number else None
    return None


def _line_verdict(first: GmUse, second: GmUse) -> str | None:
    """Return the verdict on a line that goes back and a store of somebody else into it."""
    if first.unit == second.unit and first.pipe == second.pipe:
        return None
    if first.goes_back:  # what comes later has to wait for it
        if first.unit == second.unit:
            return None if second.knows >= first.number else "line"
        return None if _ordered(first, second) else "line"
    assert second.line is not None
    if first.unit == second.unit:
        return None if second.line.known[first.pipe] >= first.number else "line"
    complete = first.number if first.line is None else first.line.cleaned
    return None if _knows(second.line.epoch, first, complete) else "line"


class _State(NamedTuple):
    """Of a piece: its last plain write, and the reads and atomic stores since; as numbers of accesses."""

    write: int
    others: tuple[int, ...]


class _Shadow:
    """The states of one allocation's pieces."""

    def __init__(self, uses: list[GmUse]) -> None:
        self._uses = uses
        self._patterns: dict[int, _Pattern] = {}
        self._states = [_State(-1, ())]
        self._numbers = {self._states[0]: 0}
        self._late_writes: dict[tuple[int, int], bool] = {}  # by the places of a write and a read

    def conflicts_of_runs(
        self, counts: list[int], lows: list[int], highs: list[int]
    ) -> Iterator[Conflict]:
        """Yield the conflicts of accesses that are a few runs of bytes each: how many, from where, up to where."""
        edges, places = np.unique(np.array([lows, highs]), return_inverse=True)
        firsts, pasts = places.reshape(2, -1).tolist()
        cells = [0] * len(edges)
        run = 0
        for number, use in enumerate(self._uses):
            mine = range(run, run + counts[number])
            run = mine.stop
            found = {state for k in mine for state in cells[firsts[k] : pasts[k]]}
            after = {}
            for position in sorted(found):
                state = self._states[position]
                yield from self._compare(use, state)
                after[position] = self._after(number, use, state)
            for k in mine:
                low, high = firsts[k], pasts[k]
                if len(after) == 1:
                    cells[low:high] = [after[cells[low]]] * (high - low)
                else:
                    cells[low:high] = [after[state] for state in cells[low:high]]

    def _size(self) -> int:
        """Return the largest size of pieces, a power of two, of which each access touches whole ones."""
        size = MAX_PIECE
        for use in self._uses:
            access = use.access
            origin = access.origin
            pattern = self._patterns.get(id(origin))
            if pattern is None:
                pattern = self._patterns[id(origin)] = _Pattern(origin)
                size = math.gcd(size, pattern.size)
            size = math.gcd(size, access.base)
            if size == 1:
                break
        return size

    def conflicts(self) -> Iterator[Conflict]:
        """Yield the conflicts, going through the accesses in order."""
        self._piece = self._size()
        buffer = self._uses[0].access.buffer
        assert buffer is not None
        self._cells: NDArray[np.int32] = np.zeros(-(-buffer.nbytes // self._piece), np.int32)
        for number, use in enumerate(self._uses):
            for window in self._windows(use.access):
                yield from self._take(number, use, window)

    def _windows(self, access: Access) -> Iterator[NDArray[np.int32]]:
        """Return the pieces that an access touches, as views."""
        origin = access.origin
        pattern = self._patterns.get(id(origin))
        if pattern is None:
            pattern = self._patterns[id(origin)] = _Pattern(origin)
        piece = self._piece
        if pattern.regular:
            shape = (*pattern.counts, pattern.run // piece)
            strides = (*(stride // piece * 4 for stride in pattern.strides), 4)
            yield np.ndarray(shape, np.int32, self._cells, access.base // piece * 4, strides)
        else:
            for low, high in access.ranges().tolist():
                yield self._cells[low // piece : high // piece]

    def _take(self, number: int, use: GmUse, window: NDArray[np.int32]) -> Iterator[Conflict]:
        """Compare an access with the states of some pieces, and give them their new states."""
        first = int(window.item(0))
        if np.count_nonzero(window == first) == window.size:
            state = self._states[first]
            yield from self._compare(use, state)
            window[...] = self._after(number, use, state)
            return
        flat = window.ravel()
        before = sorted({first, *flat[1:][flat[1:] != flat[:-1]].tolist()})
        after = []
        for position in before:
            state = self._states[position]
            yield from self._compare(use, state)
            after.append(self._after(number, use, state))
        lowest = before[0]
        table = np.empty(before[-1] - lowest + 1, np.int32)  # only what is looked up has values
        table[np.array(before) - lowest] = after
        window[...] = table[window - lowest]

    def _compare(self, use: GmUse, state: _State) -> Iterator[Conflict]:
        for position in (state.write, *state.others):
            if position >= 0:
                other = self._uses[position]
                verdict = _verdict(other, use)
                if verdict is not None:
                    yield self._named(verdict, other, use)

    def _named(self, verdict: str, first: GmUse, second: GmUse) -> Conflict:
        """Name a conflict by what was likely meant to come first."""
        if verdict != "race":
            return Conflict(verdict, first, second)
        if first.write and second.write:
            return Conflict("WAW", first, second)
        write, read = (first, second) if first.write else (second, first)
        key = (write.item.site, read.item.site)
        late = self._late_writes.get(key)
        if late is None:
            late = self._late_writes[key] = self._is_late(write, read)
        return Conflict("WAR", read, write) if late else Conflict("RAW", write, read)

    def _is_late(self, write: GmUse, read: GmUse) -> bool:
        """Return whether a write is one too far: the read has got an earlier one from the same place."""
        if read.epoch.level < write.epoch.level:
            return True
        row = read.epoch.row(write.unit)
        return row is not None and any(
            use.write
            and use.unit == write.unit
            and use.pipe == write.pipe
            and use.number <= row[use.pipe]
            and use.access.overlaps(read.access)
            for use in self._uses
        )

    def _after(self, number: int, use: GmUse, state: _State) -> int:
        """Return the state of a piece after an access."""
        combines = use.combines
        if use.write and combines is None and not use.goes_back:
            after = _State(number, ())
        else:
            # What comes after this access comes after all of its like that are ordered before it.
            kept = [
                position
                for position in state.others
                if not self._stands_for(use, combines, self._uses[position])
            ]
            after = _State(state.write, (*kept, number))
        known = self._numbers.get(after)
        if known is None:
            known = self._numbers[after] = len(self._states)
            self._states.append(after)
        return known

    @staticmethod
    def _stands_for(use: GmUse, combines: str | None, other: GmUse) -> bool:
        if other.write != use.write or other.combines != combines:
            return False
        if other.goes_back != use.goes_back:
            return False
        if other.unit == use.unit and other.pipe == use.pipe:
            return other.number <= use.number
        return _ordered(other, use)


class _Pattern:
    """The bytes of an access as runs at regular distances, where they are that; `size` divides all of it."""

    __slots__ = ("counts", "regular", "run", "size", "strides")

    def __init__(self, access: Access) -> None:
        self.run = access.dtype.size
        axes = list(zip(access.shape, access.strides, strict=True))
        while axes and (axes[-1][1] == self.run or axes[-1][0] == 1):
            self.run *= axes.pop()[0]
        self.counts = tuple(count for count, _ in axes)
        self.strides = tuple(stride for _, stride in axes)
        self.regular = access.lanes is None and all(stride > 0 for stride in self.strides)
        if self.regular:
            self.size = math.gcd(self.run, *self.strides)
        else:
            distances = access.ranges() - access.base
            self.size = math.gcd(*np.unique(distances).tolist())
