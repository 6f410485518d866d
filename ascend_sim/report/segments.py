"""Stretches of time as columns, and painting one layer of them over another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ascend_sim.report.columns import CAUSE_CODE, Flags, Ints
from ascend_sim.trace import Cause

NOTHING, ITEM, STALL = 0, 1, 2
"""What kind of thing stands behind a segment: nothing, an item, a stall of the scalar unit."""


FIELDS = ("start", "end", "cause", "sub", "behind", "row")


@dataclass(slots=True)
class Segments:
    """Sorted stretches `[start, end)`, each with a cause, a sub-cause and what stands behind it.

    `cause` and `sub` are the codes of `ascend_sim.report.columns`; `row` is a row of the core's items or
    stalls, by `behind`.
    """

    start: Ints
    end: Ints
    cause: NDArray[np.uint8]
    sub: NDArray[np.uint8]
    behind: NDArray[np.uint8]
    row: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.start)

    @property
    def length(self) -> Ints:
        """Cycles of each segment."""
        return self.end - self.start

    def only(self, which: Flags | Ints) -> Segments:
        """Return some of the segments, by a mask or by their places."""
        return Segments(
            self.start[which], self.end[which], self.cause[which], self.sub[which],
            self.behind[which], self.row[which],
        )  # fmt: skip

    def sorted(self) -> Segments:
        """Return the segments by start; those of one start keep their order."""
        return self.only(np.argsort(self.start, kind="stable"))

    def disjoint(self) -> Segments:
        """Return the segments (sorted by start), each without what an earlier one covers."""
        if not len(self):
            return self
        covered = np.concatenate([[0], np.maximum.accumulate(self.end)[:-1]])
        cut = self.only(slice(None))  # type: ignore[arg-type]
        cut.start = np.maximum(self.start, covered)
        return cut.only(cut.end > cut.start)


def layer(
    start: Ints | Sequence[int],
    end: Ints | Sequence[int],
    cause: Cause | NDArray[np.uint8],
    *,
    sub: NDArray[np.uint8] | None = None,
    behind: int = NOTHING,
    row: Ints | None = None,
) -> Segments:
    """Return segments of one cause, or of a cause each, without those that are empty."""
    start, end = np.asarray(start, np.int64), np.asarray(end, np.int64)
    count = len(start)
    codes = np.full(count, CAUSE_CODE[cause], np.uint8) if isinstance(cause, Cause) else cause
    made = Segments(
        start,
        end,
        codes.astype(np.uint8),
        np.zeros(count, np.uint8) if sub is None else sub.astype(np.uint8),
        np.full(count, behind, np.uint8),
        np.full(count, -1, np.int64) if row is None else row.astype(np.int64),
    )
    return made.only(end > start)


def join(parts: Sequence[Segments]) -> Segments:
    """Return all segments of several layers, one layer behind the other."""
    return Segments(*(np.concatenate([getattr(part, name) for part in parts]) for name in FIELDS))


def paint(layers: Sequence[Segments]) -> Segments:
    """Return the first layer, what it leaves free of the second, and so on, sorted.

    Each layer is sorted and free of overlaps; the result is, too.
    """
    edges = np.sort(np.concatenate([part for one in layers for part in (one.start, one.end)]))
    edges = edges[np.diff(edges, prepend=-1) > 0]
    begins = edges[:-1]
    chosen = np.full(len(begins), -1, np.int64)
    offset = 0
    for one in layers:
        if len(one):
            place = np.searchsorted(one.start, begins, "right") - 1
            covers = (chosen < 0) & (place >= 0)
            covers &= begins < one.end[np.maximum(place, 0)]
            chosen[covers] = place[covers] + offset
        offset += len(one)
    new = np.ones(len(begins), bool)
    new[1:] = chosen[1:] != chosen[:-1]
    new &= chosen >= 0
    # A piece goes on until another one, or nothing, begins.
    changes = np.append(np.flatnonzero(np.diff(chosen, prepend=-2) != 0), len(begins))
    first = np.flatnonzero(new)
    last = changes[np.searchsorted(changes, first, "right")]
    result = join(layers).only(chosen[first])
    result.start, result.end = begins[first], edges[last]
    return result


def gaps(segments: Segments, end: int) -> tuple[Ints, Ints, Ints]:
    """Return what is free in [0, end): starts, ends, and the place of the segment behind each gap (or its
    length where none follows)."""
    start = np.concatenate([[0], segments.end])
    until = np.concatenate([segments.start, [max(end, int(start[-1]))]])
    until = np.minimum(until, end)
    place = np.flatnonzero(until > start)
    return start[place], until[place], place
