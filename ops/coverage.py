"""Which part of a 2-d tensor a kernel never wrote, in rows and columns instead of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Region:
    """A rectangle of a 2-d tensor: rows [row, row_end), columns [column, column_end)."""

    row: int
    row_end: int
    column: int
    column_end: int

    @property
    def size(self) -> int:
        """The number of elements."""
        return (self.row_end - self.row) * (self.column_end - self.column)

    @property
    def rows_text(self) -> str:
        """The rows as text, the last one included: "0-63"."""
        return _span(self.row, self.row_end)

    @property
    def columns_text(self) -> str:
        """The columns as text, the last one included."""
        return _span(self.column, self.column_end)


def regions(ranges: Iterable[tuple[int, int]], columns: int, itemsize: int) -> list[Region]:
    """Return byte ranges (first, past-last) of a C-contiguous tensor with `columns` columns as rectangles.

    The rectangles are disjoint; rows that follow each other and lack the same columns are one rectangle.
    """
    pieces = sorted(
        piece
        for first, end in ranges
        for piece in _split(first // itemsize, -(-end // itemsize), columns)
    )
    merged: list[Region] = []
    for column, column_end, row, row_end in pieces:
        last = merged[-1] if merged else None
        if last and (last.column, last.column_end, last.row_end) == (column, column_end, row):
            merged[-1] = Region(last.row, row_end, column, column_end)
        else:
            merged.append(Region(row, row_end, column, column_end))
    return sorted(merged, key=lambda region: (region.row, region.column))


def written_mask(
    missing: Sequence[Region], row: int, row_end: int, columns: int
) -> NDArray[np.bool_] | None:
    """Return which elements of rows [row, row_end) were written, or None where all of them were."""
    mask: NDArray[np.bool_] | None = None
    for region in missing:
        if region.row < row_end and region.row_end > row:
            if mask is None:
                mask = np.ones((row_end - row, columns), np.bool_)
            mask[
                max(region.row - row, 0) : region.row_end - row, region.column : region.column_end
            ] = False
    return mask


def _split(first: int, end: int, columns: int) -> Iterable[tuple[int, int, int, int]]:
    """Yield elements [first, end) as (column, column_end, row, row_end): a part row, whole rows, a part row."""
    row, column = divmod(first, columns)
    if column:
        stop = min(column + end - first, columns)
        yield column, stop, row, row + 1
        first += stop - column
        row += 1
    whole, rest = divmod(end - first, columns)
    if whole > 0:
        yield 0, columns, row, row + whole
    if rest > 0:
        yield 0, rest, row + whole, row + whole + 1


def _span(first: int, end: int) -> str:
    return str(first) if end == first + 1 else f"{first}-{end - 1}"
