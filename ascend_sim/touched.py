"""What a run did to each tensor in GM: read, written, written twice, left out, along its axes and by core."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ascend_sim.coverage import axis_text, complement
from ascend_sim.gm_order import GmUse
from isa.access import merge_ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isa.access import Access
    from isa.tensor import GlobalAddress

NOTHING = np.empty((0, 2), np.int64)


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes of a tensor as sorted disjoint ranges from its own start."""

    address: GlobalAddress
    ranges: NDArray[np.int64]

    @property
    def elements(self) -> int:
        """How many elements these are; one of which only a part is meant does not count."""
        return int((self.ranges[:, 1] - self.ranges[:, 0]).sum()) // self.address.dtype.size

    @property
    def text(self) -> str:
        """Say which they are along the axes: "columns 5120 to 8191 of every row"; "" for none."""
        if not len(self.ranges):
            return ""
        total = self.address.length
        if self.ranges[0, 0] == 0 and self.ranges[0, 1] == total:
            return "all"
        return axis_text(self.ranges, self.address.shape, self.address.dtype.size)


@dataclass(frozen=True, slots=True)
class Touched:
    """One tensor: what was read and written at least once, written more than once by plain stores, and by each core."""

    name: str
    read: Part
    written: Part
    written_twice: Part
    by_core: dict[str, tuple[Part, Part]]
    """By core: what it read, what it wrote."""

    @property
    def never_read(self) -> Part:
        """What nothing read."""
        return _rest(self.read)

    @property
    def never_written(self) -> Part:
        """What nothing wrote."""
        return _rest(self.written)


def _rest(part: Part) -> Part:
    return Part(part.address, complement(part.ranges, 0, part.address.length))


def touched(
    uses: Iterable[Sequence[Any]], addresses: Mapping[str, GlobalAddress], cores: Sequence[str]
) -> list[Touched]:
    """Return what a launch's accesses to GM (fields of `GmUse`) did to each of its tensors; `cores` are the names."""
    by_buffer: dict[int, list[GmUse]] = {}
    for fields in uses:
        use = GmUse(*fields)
        if use.access.buffer is not None and not use.goes_back:
            by_buffer.setdefault(use.access.buffer.index, []).append(use)
    result = []
    for name, address in addresses.items():
        mine = by_buffer.get(address.buffer.index, [])
        reads = [use for use in mine if not use.write]
        writes = [use for use in mine if use.write]
        plain = [use.access for use in writes if use.combines is None]
        by_core = {}
        for core in sorted({use.item.core for use in mine}):
            parts = [
                Part(
                    address, _union([use.access for use in some if use.item.core == core], address)
                )
                for some in (reads, writes)
            ]
            if len(parts[0].ranges) or len(parts[1].ranges):
                by_core[cores[core]] = (parts[0], parts[1])
        result.append(
            Touched(
                name,
                Part(address, _union([use.access for use in reads], address)),
                Part(address, _union([use.access for use in writes], address)),
                Part(address, _twice(plain, address)),
                by_core,
            )
        )
    return result


def _inside(ranges: NDArray[np.int64], address: GlobalAddress) -> NDArray[np.int64]:
    """Return the part of byte ranges of an allocation that lies in a tensor, from the tensor's start."""
    cut = np.clip(ranges - address.offset, 0, address.length)
    return cut[cut[:, 1] > cut[:, 0]]


def _union(accesses: list[Access], address: GlobalAddress) -> NDArray[np.int64]:
    if not accesses:
        return NOTHING
    return _inside(merge_ranges(np.concatenate([one.ranges() for one in accesses])), address)


def _twice(accesses: list[Access], address: GlobalAddress) -> NDArray[np.int64]:
    """Return the bytes that more than one access touches."""
    if len(accesses) < 2:
        return NOTHING
    ranges = np.concatenate([one.ranges() for one in accesses])
    places = np.concatenate([ranges[:, 0], ranges[:, 1]])
    steps = np.repeat(np.array([1, -1]), len(ranges))
    borders, inverse = np.unique(places, return_inverse=True)
    depth = np.cumsum(np.bincount(inverse, weights=steps, minlength=len(borders)))[:-1]
    deep = np.flatnonzero(depth > 1)
    if not len(deep):
        return NOTHING
    return _inside(merge_ranges(np.stack([borders[deep], borders[deep + 1]], axis=1)), address)
