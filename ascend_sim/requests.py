"""How a move is cut into requests: how many bytes really pass between a core and L2."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ascend_sim.config import Chip
    from isa.access import Access

Cut = tuple[int, int]
"""Bytes of all requests, and of ragged ones the bytes asked for (0 where no burst is ragged)."""


class Requests:
    """Bytes on the way of each pattern of bursts.

    A burst is fetched in whole granules: sectors by a vector core, larger ones by a cube core. One that begins inside a
    sector and goes on into another line is *ragged*: it is cut at each line's border and takes every line whole.
    """

    def __init__(self, chip: Chip) -> None:
        self.line = chip.gm.line
        self.sector = chip.gm.sector
        self._known: dict[tuple[Access, int, int], Cut] = {}

    def cut(self, access: Access, base: int, granule: int) -> Cut:
        """Return what an access from byte `base` moves, in requests of at least `granule` bytes."""
        origin = access.origin
        place = (base + access.low - access.base) % self.line
        key = (origin, place, granule)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._cut(origin, place, granule)
        return known

    def _cut(self, origin: Access, place: int, granule: int) -> Cut:
        line, sector = self.line, self.sector
        ranges = origin.ranges() + (place - origin.low)
        low, high = ranges[:, 0], ranges[:, 1]
        lines = (high - 1) // line - low // line + 1
        ragged = (low % sector != 0) & (lines > 1)
        granules = (high - 1) // granule - low // granule + 1
        moved = int((lines * line)[ragged].sum() + (granules * granule)[~ragged].sum())
        return moved, int((high - low).sum()) if ragged.any() else 0
