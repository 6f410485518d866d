"""What a run left out of its outputs: bytes that nothing wrote, exactly, by byte ranges, after the run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from isa.access import Access, merge_ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isa.tensor import GlobalAddress


def union(accesses: Iterable[Access]) -> NDArray[np.int64]:
    """Return the bytes that any of the accesses touches, as sorted disjoint ranges."""
    parts = [access.ranges() for access in accesses]
    if not parts:
        return np.empty((0, 2), np.int64)
    return merge_ranges(np.concatenate(parts))


def complement(ranges: NDArray[np.int64], low: int, high: int) -> NDArray[np.int64]:
    """Return what sorted disjoint ranges leave out of [low, high)."""
    inside = ranges[(ranges[:, 1] > low) & (ranges[:, 0] < high)]
    starts = np.concatenate([[low], np.minimum(inside[:, 1], high)])
    ends = np.concatenate([np.maximum(inside[:, 0], low), [high]])
    gaps = np.stack([starts, ends], axis=1)
    return gaps[gaps[:, 1] > gaps[:, 0]]


def unwritten(
    written: Iterable[Access], addresses: dict[str, GlobalAddress]
) -> dict[str, NDArray[np.int64]]:
    """Return for each argument that was written the byte ranges, from its own start, that nothing wrote."""
    writes: dict[int, list[Access]] = {}
    for access in written:
        if access.buffer is not None:
            writes.setdefault(access.buffer.index, []).append(access)
    merged = {index: union(accesses) for index, accesses in writes.items()}
    result = {}
    for name, address in addresses.items():
        ranges = merged.get(address.buffer.index)
        if ranges is None:
            continue
        low, high = address.offset, address.offset + address.length
        if np.any((ranges[:, 1] > low) & (ranges[:, 0] < high)):
            result[name] = complement(ranges, low, high) - low
    return result


ONE = ("row ", "column ", "every ")
"""How a text of `axis_text` begins that is about one thing: "row 3 was", "rows 3 to 4 were"."""


def axis_text(ranges: NDArray[np.int64], shape: tuple[int, ...], size: int) -> str:
    """Say which part of a tensor byte ranges are, along its axes where they form a pattern.

    A 2-D tensor: "columns 5120 to 8191 of every row", "rows 100 to 131"; else elements.
    """
    total = int((ranges[:, 1] - ranges[:, 0]).sum()) // size
    if len(shape) >= 2 and shape[-1] > 0:
        columns = shape[-1]
        rows = int(np.prod(shape[:-1]))
        whole = _whole_rows(ranges, columns * size)
        if whole is not None:
            return whole
        same = _same_columns(ranges, columns * size, rows, size)
        if same is not None:
            return same
    first = int(ranges[0, 0]) // size
    last = (int(ranges[-1, 1]) - 1) // size
    if len(ranges) == 1:
        return f"elements {first} to {last}"
    return f"{total} elements in {len(ranges)} pieces between element {first} and {last}"


def _whole_rows(ranges: NDArray[np.int64], pitch: int) -> str | None:
    if np.any(ranges % pitch):
        return None
    rows = ranges // pitch
    if len(rows) == 1:
        first, last = int(rows[0, 0]), int(rows[0, 1]) - 1
        return f"row {first}" if first == last else f"rows {first} to {last}"
    if np.all(rows[:, 1] - rows[:, 0] == 1) and len(set(np.diff(rows[:, 0]).tolist())) == 1:
        step = int(rows[1, 0] - rows[0, 0])
        return f"every {_ordinal(step)} row from row {int(rows[0, 0])}"
    return f"{int((rows[:, 1] - rows[:, 0]).sum())} rows between row {int(rows[0, 0])} and {int(rows[-1, 1]) - 1}"


def _same_columns(ranges: NDArray[np.int64], pitch: int, rows: int, size: int) -> str | None:
    if len(ranges) != rows:
        return None
    inside = ranges - np.arange(rows, dtype=np.int64)[:, None] * pitch
    if np.any(inside != inside[0]):
        return None
    first, last = int(inside[0, 0]) // size, (int(inside[0, 1]) - 1) // size
    if inside[0, 0] < 0 or inside[0, 1] > pitch:
        return None
    return (
        f"column {first} of every row"
        if first == last
        else f"columns {first} to {last} of every row"
    )


def _ordinal(number: int) -> str:
    return {2: "second", 3: "third"}.get(number, f"{number}th")
