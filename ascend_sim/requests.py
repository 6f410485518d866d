"""How a move is cut into requests: how many bytes really pass between a core and L2."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from isa.access import byte_ranges

if TYPE_CHECKING:
    from ascend_sim.config import Chip
    from isa.access import Access

Cut = tuple[int, int, float]
"""Bytes of all requests; of ragged ones the bytes asked for (0 where no burst is ragged); how full they are.

The last is the share of the window's entries that they fill while in flight.
"""


class Bursts:
    """The pattern of an access to GM at any base: what the memory system needs of all accesses that repeat it.

    Bytes `offset` to `offset + extent` from its base in `buffer`; `rows` of `width` sectors, one every `pitch` (see
    `L2`); `cuts` and `lost` are what `Requests` has found out. `access` is the first one of that pattern.
    """

    __slots__ = (
        "access", "buffer", "cuts", "extent", "lost", "offset", "pitch", "rows", "width",
    )  # fmt: skip

    def __init__(self, access: Access, rows: int, pitch: int, width: int) -> None:
        self.access: Any = access
        self.buffer: Any = access.buffer
        self.offset: int = access.low - access.base
        self.extent: int = access.high - access.low
        self.rows = rows
        self.pitch = pitch
        self.width = width
        self.cuts: dict[int, Cut] = {}
        self.lost = -1


def _cut_run(low: int, high: int, granule: int, line: int, sector: int, entry: int) -> Cut:
    """Cut one run of bytes."""
    lines = (high - 1) // line - low // line + 1
    ragged = low % sector != 0 and lines > 1
    moved = lines * line if ragged else ((high - 1) // granule - low // granule + 1) * granule
    return moved, high - low if ragged else 0, moved / (-(-moved // entry) * entry)


def _cut_ranges(ranges: Any, granule: int, line: int, sector: int, entry: int) -> Cut:
    """Cut runs of bytes, rows of (first, past last)."""
    low, high = ranges[:, 0], ranges[:, 1]
    lines = (high - 1) // line - low // line + 1
    ragged = (low % sector != 0) & (lines > 1)
    granules = (high - 1) // granule - low // granule + 1
    sizes = np.where(ragged, lines * line, granules * granule)
    moved = int(sizes.sum())
    entries = int((-(-sizes // entry)).sum())
    return (
        moved,
        int((high - low).sum()) if ragged.any() else 0,
        moved / (entries * entry),
    )


PATTERNS: Final = 1 << 14
"""Patterns of bursts whose cuts are known from earlier launches, at most."""


def _find_pattern(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    size: int,
    place: int,
    sizes: tuple[int, int, int, int],
) -> Cut:
    """Cut elements of `size` bytes at all sums of index · stride, the first of them at byte `place` of a line."""
    return _cut_ranges(byte_ranges(shape, strides, size, place), *sizes)


_cut_pattern: Final[Any] = lru_cache(PATTERNS)(_find_pattern)


class Requests:
    """Bytes on the way of each pattern of bursts.

    A burst is fetched in whole granules: sectors by a vector core, larger ones by a cube core. One that begins inside a
    sector and goes on into another line is *ragged*: it is cut at each line's border and takes every line whole.
    """

    def __init__(self, chip: Chip) -> None:
        self.line: int = chip.gm.line
        self.sector: int = chip.gm.sector
        self.entry: int = chip.gm.window_entry
        self.least = chip.hbm.least

    def cut(self, bursts: Bursts, base: int, granule: int) -> Cut:
        """Return what an access from byte `base` moves, in requests of at least `granule` bytes."""
        place = (base + bursts.offset) % self.line
        key = granule * self.line + place
        known = bursts.cuts.get(key)
        if known is None:
            known = bursts.cuts[key] = self._cut(bursts.access, place, granule)
        return known

    def _cut(self, origin: Any, place: int, granule: int) -> Cut:
        sizes = (granule, self.line, self.sector, self.entry)
        if origin.contiguous:
            return _cut_run(place, place + origin.high - origin.low, *sizes)
        if origin.lanes is not None:
            return _cut_ranges(origin.ranges() + (place - origin.low), *sizes)
        pattern: Cut = _cut_pattern(origin.shape, origin.strides, origin.dtype.size, place, sizes)
        return pattern

    def lost(self, bursts: Bursts, moved: int) -> float:
        """Return what HBM could have moved besides each of `moved` bytes around L2: short bursts take longer."""
        if bursts.lost < 0:
            ranges = bursts.access.ranges()
            sizes = ranges[:, 1] - ranges[:, 0]
            bursts.lost = int(np.maximum(sizes, self.least).sum())
        return max(bursts.lost / moved - 1, 0.0)
