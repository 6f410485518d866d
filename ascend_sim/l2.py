"""Which sectors of GM the L2 holds."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ascend_sim.requests import Bursts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from ascend_sim.config import Chip
    from isa.access import Access
    from isa.tensor import GmBuffer

Window = tuple[int, int, int, int]
"""Sectors of an allocation: the first one, rows, distance of rows, sectors of a row."""


STARTS: Final = ("cold", "warm", "dirty")
"""States of L2 at a launch: see `L2.start`."""

GRANULE: Final = 4
"""Sectors of a line: what a granule, and so a run of sectors, may reach beyond an allocation's end."""


RENAMED_AT_ONCE: Final = 1 << 16


class L2:
    """The sectors that are in the cache.

    A stated approximation of LRU that costs the same for gigabytes: a sector stays until as many sectors as the
    cache holds have been filled since its last use. (True LRU also ages a sector when others are hit.)
    Dirty sectors are written back when they leave.

    An allocation's sectors are kept as runs of equal age for as long as all accesses to it have the same pitch and
    length of rows, and one by one from then on. Both give the same answers.
    """

    def __init__(self, chip: Chip) -> None:
        self.sector = chip.gm.sector
        self.capacity = chip.l2.bytes // self.sector
        self.fills = self.capacity + 1  # a stamp of 0 is older than the whole cache
        self.hit_bytes = 0
        self.miss_bytes = 0
        self.write_back_bytes = 0
        # What has been written, by when it may leave: in order of writing, and a heap of what was used again since.
        self._written: deque[tuple[int, Any, GmBuffer]] = deque()
        self._used_again: list[tuple[int, int, Any, GmBuffer]] = []
        self._serial = 0
        self._bursts: dict[Access, Bursts] = {}
        self.foreign = 0  # dirty sectors of other kernels, older than all else

    def start(self, state: str, buffers: Iterable[GmBuffer]) -> None:
        """Start empty ("cold"), with the allocations in their order as far as they fit ("warm"), or "dirty".

        Dirty is full of what an earlier kernel wrote elsewhere: each sector that comes pushes one of those out. What an
        earlier run with the same allocations has left is forgotten.
        """
        buffers = list(buffers)
        for buffer in buffers:
            buffer.scratch = None
        if state == "dirty":
            self.foreign = self.capacity
        elif state == "warm":
            self._hold(buffers)

    def _hold(self, buffers: Iterable[GmBuffer]) -> None:
        left = self.capacity
        for buffer in buffers:
            held = min(-(-buffer.nbytes // self.sector), left)
            self.table(buffer).stamps[:held] = self.fills
            left -= held

    def pass_by(self, sectors: int) -> None:
        """Let so many sectors be filled that nobody names; what leaves for them costs no transfer anything."""
        self.fills += sectors
        self.foreign -= min(self.foreign, sectors)
        self.write_back_bytes -= self._write_back(self.fills - self.capacity)

    def rename(
        self, renamed: Callable[[Any], NDArray[np.int64]], buffers: Iterable[GmBuffer]
    ) -> None:
        """Give all stamps other names, in the same order; those of the future are as far ahead as before."""
        for buffer in buffers:
            stamps = self.table(buffer).stamps
            for first in range(0, len(stamps), RENAMED_AT_ONCE):  # no copy of all of them
                part = stamps[first : first + RENAMED_AT_ONCE]
                used = np.flatnonzero(part)  # what has never been written takes no memory
                part[used] = renamed(part[used])
        written, again = self._written, self._used_again
        for stamp in renamed([one[0] for one in written]).tolist():
            _, index, buffer = written.popleft()
            written.append((stamp, index, buffer))
        for place, stamp in enumerate(renamed([one[0] for one in again]).tolist()):
            _, serial, index, buffer = again[place]
            again[place] = (stamp, serial, index, buffer)
        self.fills = int(renamed(self.fills))

    def expect(self, stamp: int, index: Any, owner: Any) -> None:
        """Look at dirty sectors of an owner again when what was used at a stamp may leave."""
        self._serial += 1
        heapq.heappush(self._used_again, (stamp, self._serial, index, owner))

    def bursts(self, access: Access) -> Bursts:
        """Return the pattern of an access to GM: one object for all that repeat it."""
        origin = access.origin
        known = self._bursts.get(origin)
        if known is None:
            known = self._bursts[origin] = Bursts(origin, *self._rows(origin))
        return known

    def touch(
        self, bursts: Bursts, base: int, granule: int, *, write: bool
    ) -> tuple[int, int, int]:
        """Read or write the sectors of an access from byte `base`; return bytes hit, missed, and written back.

        `granule`: bytes of which each run of bytes uses whole ones, a sector or a multiple.
        """
        buffer: GmBuffer = bursts.buffer
        sector = self.sector
        index: Any
        many = granule // sector
        rows = bursts.rows
        if rows == 1:
            low = base + bursts.offset
            first = low // granule * many
            count = -(-(low + bursts.extent) // granule) * many - first
            held = buffer.scratch
            if held is not None and count == held.width:  # noqa: SIM108  it may be one of the rows
                index = (first, 1, held.pitch, count)
            else:
                index = (first, count, 1, 1)
        elif rows and base % sector == 0:
            window = (base // sector, rows, bursts.pitch, bursts.width)
            index = window if many == 1 else _whole_granules(window, many)
        else:
            index = None
        if index is None:
            index = self._scattered(bursts.access, base, granule)
        misses = self._use(buffer, index, write)
        self.fills = fills = self.fills + misses
        fresh = fills - self.capacity
        written, again = self._written, self._used_again
        back = 0
        if self.foreign and misses:
            gone = min(misses, self.foreign)
            self.foreign -= gone
            back = gone * sector
            self.write_back_bytes += back
        if (written and written[0][0] <= fresh) or (again and again[0][0] <= fresh):
            back += self._write_back(fresh)
        if write:
            written.append((fills, index, buffer))
        missed = misses * sector
        hit = (index[1] * index[3] if type(index) is tuple else len(index)) * sector - missed
        self.hit_bytes += hit
        self.miss_bytes += missed
        return hit, missed, back

    def touch_line(self, buffer: GmBuffer, offset: int) -> bool:
        """Read the sector at an offset for the scalar unit; return whether L2 held it."""
        missed = self._use(buffer, (offset // self.sector, 1, 1, 1), False)
        self.fills += missed
        return not missed

    def _use(self, buffer: GmBuffer, index: Any, write: bool) -> int:
        """Use some sectors; return how many are missed. `fills` is to grow by that."""
        held = buffer.scratch
        fills = self.fills
        if type(index) is tuple:
            start, rows, pitch, width = index
            if held is None:
                held = buffer.scratch = _Rows(pitch, width)
            if type(held) is _Rows:
                rows_of: _Rows = held
                if rows_of.pitch == pitch and rows_of.width == width and start % pitch % width == 0:
                    return rows_of.touch(start, rows, fills, fills - self.capacity, write)
        return self.table(buffer).touch(index, fills, fills - self.capacity, write)

    def _rows(self, access: Access) -> tuple[int, int, int]:
        """Return the rows, their distance and their width in sectors where these are whole.

        One run of bytes has one row, any other access that is no even rows has none.
        """
        sector = self.sector
        if len(access.shape) == 1 and access.contiguous:
            return 1, 0, 0
        rows, pitch, length = _window(access)
        if rows == 1:
            return 1, 0, 0
        if rows and length % sector == 0 and pitch % sector == 0:
            return rows, pitch // sector, length // sector
        return 0, 0, 0

    def _scattered(self, access: Access, base: int, granule: int) -> NDArray[np.int64]:
        """Return the sectors of any access as a list."""
        many = granule // self.sector
        ranges = access.ranges() + (base - access.base)
        low, high = ranges[:, 0] // granule, (ranges[:, 1] - 1) // granule
        grid = low[:, None] + np.arange(int((high - low).max()) + 1)
        found = np.unique(np.minimum(grid, high[:, None]))
        return found if many == 1 else (found[:, None] * many + np.arange(many)).ravel()

    def table(self, buffer: GmBuffer) -> _Sectors:
        """Return an allocation's sectors, one by one from now on."""
        held = buffer.scratch
        if type(held) is not _Sectors:
            sectors = _Sectors(-(-buffer.nbytes // self.sector) + GRANULE)
            if held is not None:
                held.copy_to(sectors)
            held = buffer.scratch = sectors
        return held

    def _write_back(self, fresh: int) -> int:
        """Write back the dirty sectors that have left the cache by now; return their bytes.

        A sector used again since it was written stays, and is looked at again when its new time has come.
        """
        written, again = self._written, self._used_again
        count = 0
        while True:
            if written and written[0][0] <= fresh:
                _, index, buffer = written.popleft()
            elif again and again[0][0] <= fresh:
                _, _, index, buffer = heapq.heappop(again)
            else:
                break
            gone, oldest = buffer.scratch.clean(index, fresh)
            count += gone
            if oldest:
                self._serial += 1
                heapq.heappush(again, (oldest, self._serial, index, buffer))
        bytes_back = count * self.sector
        self.write_back_bytes += bytes_back
        return bytes_back


class _Rows:
    """The sectors of an allocation whose accesses all are rows of `width` sectors, one every `pitch`.

    By the place inside the pitch: where a run of rows of equal age begins, and its stamp, doubled, with 1 for dirty.
    """

    __slots__ = ("columns", "pitch", "width")

    def __init__(self, pitch: int, width: int) -> None:
        self.pitch = pitch
        self.width = width
        self.columns: dict[int, tuple[list[int], list[int]]] = {}

    def touch(self, start: int, rows: int, fills: int, fresh: int, write: bool) -> int:
        """Use `rows` rows from sector `start`; return the sectors missed. Their new stamp is `fills` and those."""
        column = start % self.pitch
        row = start // self.pitch
        known = self.columns.get(column)
        if known is None:
            known = self.columns[column] = ([0], [0])
        starts, values = known
        end = row + rows
        first = bisect_right(starts, row) - 1
        past = bisect_left(starts, end, first + 1)
        last = values[past - 1]
        if past == first + 1:  # all in one run, as usual
            misses = self.width * rows if last <= 2 * fresh + 1 else 0
            stamp = 2 * (fills + misses) + (1 if write else last & 1)
            if past == len(starts) or starts[past] > end:
                starts.insert(past, end)
                values.insert(past, last)
            if starts[first] == row:
                values[first] = stamp
            else:  # the beginning of that run stays as it is
                starts.insert(past, row)
                values.insert(past, stamp)
            return misses
        places, flags = [row], [1 if write else last & 1]
        missed = self._missed(known, first, past, row, end, 2 * fresh + 1)
        mixed = [value & 1 for value in values[first:past]]
        if not write and 0 < sum(mixed) < len(mixed):
            places += starts[first + 1 : past]
            flags = mixed
        stamp = 2 * (fills + missed * self.width)
        stamps = [stamp + flag for flag in flags]
        if past == len(starts) or starts[past] > end:
            places.append(end)
            stamps.append(last)
        if starts[first] < row:
            first += 1  # the beginning of that run stays as it is
        starts[first:past] = places
        values[first:past] = stamps
        return missed * self.width

    @staticmethod
    def _missed(
        known: tuple[list[int], list[int]], first: int, past: int, row: int, end: int, limit: int
    ) -> int:
        """Return the rows between two rows, in the runs `first` to `past`, whose age is beyond the limit."""
        starts, values = known
        missed = 0
        for run in range(first, past):
            if values[run] <= limit:
                until = starts[run + 1] if run + 1 < past else end
                missed += until - (starts[run] if run > first else row)
        return missed

    def clean(self, index: Window, fresh: int) -> tuple[int, int]:
        """Make the dirty sectors clean that are not younger than `fresh`; return how many, and others' lowest stamp."""
        start, rows, _, _ = index
        row, column = divmod(start, self.pitch)
        starts, values = self.columns[column]
        end = row + rows
        gone, oldest = 0, 0
        run = bisect_right(starts, row) - 1
        while starts[run] < end:
            value = values[run]
            if value & 1:
                if value > 2 * fresh + 1:
                    oldest = min(oldest or value, value)
                else:
                    run = self._make_clean(starts, values, run, row, end)
                    gone += starts[run + 1] - starts[run]
            run += 1
            if run == len(starts):
                break
        return gone * self.width, oldest >> 1

    @staticmethod
    def _make_clean(starts: list[int], values: list[int], run: int, row: int, end: int) -> int:
        """Make the part of a dirty run between two rows clean; return that part's position."""
        value = values[run]
        if starts[run + 1] > end:  # the last run has never been used
            starts.insert(run + 1, end)
            values.insert(run + 1, value)
        if starts[run] < row:
            run += 1
            starts.insert(run, row)
            values.insert(run, value)
        values[run] = value - 1
        return run

    def keep(self, since: int, later: int, fresh: int) -> None:
        """Let what was used after `since` be younger by `later`; what was not younger than `fresh` is clean then."""
        for _, values in self.columns.values():
            for run, value in enumerate(values):
                if value > 2 * since + 1:
                    values[run] = value + 2 * later - (value & 1 if value <= 2 * fresh + 1 else 0)

    def dirty_between(self, since: int, until: int) -> NDArray[np.int64]:
        """Return the stamps of dirty sectors that were used last between two fills."""
        found: list[int] = []
        rows: list[int] = []
        for starts, values in self.columns.values():
            for run, value in enumerate(values):
                if value & 1 and since < value >> 1 <= until:  # the last run has never been used
                    found.append(value >> 1)
                    rows.append(starts[run + 1] - starts[run])
        return np.repeat(np.array(found, np.int64), np.array(rows, np.int64) * self.width)

    def used(self) -> int:
        """Return how many sectors have ever been used."""
        return self.width * sum(
            starts[run + 1] - starts[run]
            for starts, values in self.columns.values()
            for run, value in enumerate(values)
            if value  # the last run has never been used
        )

    def copy_to(self, sectors: _Sectors) -> None:
        """Enter what is known into a table of single sectors."""
        for column, (starts, values) in self.columns.items():
            for number, row in enumerate(starts):
                value = values[number]
                if value:
                    end = starts[number + 1]  # the last run has never been used
                    window = (row * self.pitch + column, end - row, self.pitch, self.width)
                    sectors.view(sectors.stamps, window)[...] = value >> 1
                    sectors.view(sectors.dirty, window)[...] = bool(value & 1)


class _Sectors:
    """The sectors of an allocation one by one: when each was used last, and which are dirty."""

    __slots__ = ("dirty", "pitch", "stamps", "width")

    def __init__(self, count: int) -> None:
        self.stamps: NDArray[np.int64] = np.zeros(count, np.int64)
        self.dirty: NDArray[np.bool_] = np.zeros(count, bool)
        self.pitch = self.width = 0  # no row fits

    def used(self) -> int:
        """Return how many sectors have ever been used."""
        return int(np.count_nonzero(self.stamps))

    @staticmethod
    def view(array: NDArray[Any], window: Window) -> NDArray[Any]:
        """Return a window of an array of sectors."""
        start, rows, pitch, width = window
        size = array.itemsize
        return np.ndarray((rows, width), array.dtype, array, start * size, (pitch * size, size))

    def touch(self, index: Any, fills: int, fresh: int, write: bool) -> int:
        """Use some sectors; return how many were missed. Their new stamp is `fills` and those."""
        view = self.view(self.stamps, index) if type(index) is tuple else self.stamps[index]
        hits = (view > fresh).tobytes().count(1)  # cheaper than count_nonzero on a few sectors
        misses = view.size - hits
        if type(index) is tuple:
            view[...] = fills + misses
        else:
            self.stamps[index] = fills + misses
        if write:
            if type(index) is tuple:
                self.view(self.dirty, index)[...] = True
            else:
                self.dirty[index] = True
        return misses

    def clean(self, index: Any, fresh: int) -> tuple[int, int]:
        """Make the dirty sectors clean that are not younger than `fresh`; return how many, and others' lowest stamp."""
        if type(index) is tuple:
            start, rows, pitch, width = index
            grid = start + np.arange(rows, dtype=np.int64)[:, None] * pitch
            index = (grid + np.arange(width)).ravel()
        index = index[self.dirty[index]]
        stamps = self.stamps[index]
        gone = stamps <= fresh
        self.dirty[index[gone]] = False
        count = int(np.count_nonzero(gone))
        return count, 0 if count == len(index) else int(stamps[~gone].min())

    def keep(self, since: int, later: int, fresh: int) -> None:
        """Let what was used after `since` be younger by `later`; what was not younger than `fresh` is clean then."""
        young = self.stamps > fresh
        np.logical_and(self.dirty, young, out=self.dirty)
        if since != fresh:
            young = self.stamps > since
        np.add(self.stamps, later, out=self.stamps, where=young)

    def dirty_between(self, since: int, until: int) -> NDArray[np.int64]:
        """Return the stamps of dirty sectors that were used last between two fills."""
        found = self.dirty & (self.stamps > since) & (self.stamps <= until)
        stamps: NDArray[np.int64] = self.stamps[found]
        return stamps


def _whole_granules(window: Window, many: int) -> Window | None:
    """Return a window whose rows are whole granules of `many` sectors; None where they are no even rows then."""
    first, rows, pitch, width = window
    start = first // many * many
    width = -(-(first + width - start) // many) * many
    even = rows == 1 or (pitch % many == 0 and width <= pitch)
    return (start, rows, pitch, width) if even else None


def _window(access: Access) -> tuple[int, int, int]:
    """Return an access as rows, their distance and their length in bytes; no rows where it is no such window."""
    if access.lanes is not None:
        return 0, 1, 1
    run = access.dtype.size
    axes = list(zip(access.shape, access.strides, strict=True))
    while axes and (axes[-1][1] == run or axes[-1][0] == 1):
        run *= axes.pop()[0]
    rows, pitch = axes.pop() if axes else (1, run)
    while axes and (axes[-1][1] == rows * pitch or axes[-1][0] == 1):
        rows *= axes.pop()[0]
    return (0, 1, 1) if axes or (rows > 1 and pitch < run) else (rows, pitch, run)
