"""What a run did to GM as a whole: bytes of outputs that nothing wrote, and blocks that touch each other's bytes.

Blocks of one launch are not ordered among each other, so two of them may not touch one byte if one of them
writes it. Works on byte ranges, exactly, after the run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from isa.access import Access, merge_ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascend_sim.trace import Item
    from isa.tensor import GlobalAddress, GmBuffer

GmUse = tuple[int, Access, bool, "Item"]
"""(block, access, is a write, item)."""


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
    uses: list[GmUse], addresses: dict[str, GlobalAddress]
) -> dict[str, NDArray[np.int64]]:
    """Return for each argument that was written the byte ranges, from its own start, that nothing wrote."""
    writes: dict[int, list[Access]] = {}
    for _, access, write, _ in uses:
        if write and access.buffer is not None:
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


def conflicts(uses: list[GmUse]) -> list[tuple[str, GmBuffer, GmUse, GmUse, tuple[int, int]]]:
    """Return pairs of accesses by different blocks to shared bytes, at least one a write; one pair a buffer."""
    by_buffer: dict[int, list[GmUse]] = {}
    for use in uses:
        buffer = use[1].buffer
        if buffer is not None:
            by_buffer.setdefault(buffer.index, []).append(use)
    found = []
    for group in by_buffer.values():
        writes = [use for use in group if use[2]]
        if not writes or len({use[0] for use in group}) == 1:
            continue
        ranges, owners = _by_block(writes)
        pair = _clashing_writes(writes, ranges, owners)
        if pair is None:
            pair = _foreign_read([use for use in group if not use[2]], ranges, owners)
            kind = "RAW"
        else:
            kind = "WAW"
        if pair is not None:
            low, high, first_block, second_block = pair
            second_uses = writes if kind == "WAW" else [use for use in group if not use[2]]
            first = _touching(writes, first_block, low, high)
            second = _touching(second_uses, second_block, low, high)
            buffer = first[1].buffer
            assert buffer is not None
            found.append((kind, buffer, first, second, (low, high)))
    return found


def _by_block(uses: list[GmUse]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return merged ranges of each block, all sorted by start, and the block of each."""
    blocks: dict[int, list[Access]] = {}
    for block, access, _, _ in uses:
        blocks.setdefault(block, []).append(access)
    parts, owners = [], []
    for block, accesses in sorted(blocks.items()):
        ranges = union(accesses)
        parts.append(ranges)
        owners.append(np.full(len(ranges), block, np.int64))
    ranges, owner = np.concatenate(parts), np.concatenate(owners)
    order = np.lexsort((owner, ranges[:, 0]))
    return ranges[order], owner[order]


def _clashing_writes(
    writes: list[GmUse], ranges: NDArray[np.int64], owners: NDArray[np.int64]
) -> tuple[int, int, int, int] | None:
    """Return two blocks that write the same bytes; atomic stores of one kind may."""
    kinds: dict[str | None, list[GmUse]] = {}
    for use in writes:
        kinds.setdefault(use[3].call.atomic, []).append(use)
    if set(kinds) == {None}:
        return _double_write(ranges, owners)
    plain = kinds.pop(None, [])
    pair = _double_write(*_by_block(plain)) if plain else None
    earlier = plain
    for uses in kinds.values():
        if pair is None and earlier:
            pair = _foreign_read(uses, *_by_block(earlier))
        earlier = earlier + uses
    return pair


def _double_write(
    ranges: NDArray[np.int64], owners: NDArray[np.int64]
) -> tuple[int, int, int, int] | None:
    reach = np.maximum.accumulate(ranges[:, 1])
    clash = np.flatnonzero(ranges[1:, 0] < reach[:-1])
    if not len(clash):
        return None
    second = int(clash[0]) + 1
    first = int(np.flatnonzero(ranges[:second, 1] == reach[second - 1])[0])
    low = int(ranges[second, 0])
    high = int(min(ranges[first, 1], ranges[second, 1]))
    return low, high, int(owners[first]), int(owners[second])


def _foreign_read(
    reads: list[GmUse], ranges: NDArray[np.int64], owners: NDArray[np.int64]
) -> tuple[int, int, int, int] | None:
    blocks: dict[int, list[Access]] = {}
    for block, access, _, _ in reads:
        blocks.setdefault(block, []).append(access)
    for block, accesses in sorted(blocks.items()):
        mine = union(accesses)
        first = np.searchsorted(ranges[:, 1], mine[:, 0], side="right")
        last = np.searchsorted(ranges[:, 0], mine[:, 1], side="left")
        foreign = np.concatenate([[0], np.cumsum(owners != block)])
        hits = np.flatnonzero(foreign[np.maximum(last, first)] - foreign[first] > 0)
        if len(hits):
            row = int(hits[0])
            for position in range(int(first[row]), int(last[row])):
                if owners[position] != block:
                    low = max(int(ranges[position, 0]), int(mine[row, 0]))
                    high = min(int(ranges[position, 1]), int(mine[row, 1]))
                    return low, high, int(owners[position]), block
    return None


def _touching(uses: list[GmUse], block: int, low: int, high: int) -> GmUse:
    for use in uses:
        if use[0] == block:
            ranges = use[1].ranges()
            if np.any((ranges[:, 0] < high) & (ranges[:, 1] > low)):
                return use
    raise AssertionError("an access that made a conflict has gone")


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
