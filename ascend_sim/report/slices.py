"""The slices of the page's timeline: the ledger's segments as packed arrays, coarser where there are too many."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ascend_sim.report.columns import CAUSE_CODE, SUB_CAUSES, Ints
from ascend_sim.report.ledger import CoreLedger, Ledger
from ascend_sim.report.segments import ITEM, STALL, Segments
from ascend_sim.trace import Cause, Kind
from isa.types import Pipe

MOST = 250_000
"""So many slices a page carries at most; where a run has more, short neighbours are drawn as one."""

_UNSEEN = [CAUSE_CODE[Cause.IDLE]]
FIELDS = (
    "start",
    "length",
    "label",
    "name",
    "site",
    "call",
    "bytes",
    "set_site",
    "set_lane",
    "joined",
)


@dataclass(slots=True)
class Lane:
    """One pipe of one core, as the arrays of `FIELDS`."""

    core: int
    pipe: Pipe
    arrays: dict[str, Ints] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.arrays["start"])


def lanes(ledger: Ledger, most: int = MOST) -> tuple[list[Lane], int]:
    """Return the lanes of a run, and up to how many cycles slices were joined (0: none were)."""
    found = [
        Lane(number, pipe)
        for number, entry in enumerate(ledger)
        for pipe in entry.segments
        if len(entry.rows[pipe]) or pipe is Pipe.S
    ]
    lane_of = {(lane.core, lane.pipe): number for number, lane in enumerate(found)}
    count = sum(len(ledger[lane.core].segments[lane.pipe]) for lane in found)
    # Of many slices none are made only to be joined: a large run is never held whole.
    widest = max(ledger.log.cycles * len(found) // (4 * most), 1)
    resolution = widest if count > 4 * most else 0
    for lane in found:
        arrays = _arrays(ledger[lane.core], lane, lane_of)
        lane.arrays = coarser(arrays, resolution) if resolution else arrays
    while sum(map(len, found)) > most:
        resolution = max(2 * resolution, ledger.log.cycles // 65536, 1)
        for lane in found:
            lane.arrays = coarser(lane.arrays, resolution)
    return found, resolution


def _arrays(entry: CoreLedger, lane: Lane, lane_of: dict[tuple[int, Pipe], int]) -> dict[str, Ints]:
    segments = entry.segments[lane.pipe]
    segments = segments.only(~np.isin(segments.cause, _UNSEEN))
    columns, stalls = entry.columns, entry.columns.stalls
    item, stall = segments.behind == ITEM, segments.behind == STALL
    rows = segments.row[item]
    made = {name: np.full(len(segments), -1, np.int64) for name in FIELDS}
    made["start"], made["length"] = segments.start, segments.length
    made["label"] = segments.cause.astype(np.int64) * 8 + segments.sub
    for name in ("name", "site", "call", "bytes"):
        made[name][item] = columns[name][rows]
    made["name"][stall] = stalls["name"][segments.row[stall]]
    made["site"][stall] = stalls["site"][segments.row[stall]]
    made["joined"][:] = 1
    _sets(entry, segments, made, lane_of, lane.core)
    return made


def _sets(
    entry: CoreLedger, segments: Segments, made: dict[str, Ints],
    lane_of: dict[tuple[int, Pipe], int], number: int,
) -> None:  # fmt: skip
    """Say of waits inside a core which lane and line set the flag."""
    columns = entry.columns
    row = np.where(segments.behind == ITEM, segments.row, -1)
    waits = np.flatnonzero((row >= 0) & (segments.cause != CAUSE_CODE[Cause.SCALAR]))
    rows = row[waits]
    waits = waits[
        (columns["kind"][rows] == Kind.WAIT_FLAG) & (columns["partner_core"][rows] == number)
    ]
    partners = columns["partner"][row[waits]]
    place = np.minimum(np.searchsorted(columns["index"], partners), max(len(columns) - 1, 0))
    if len(waits):
        made["set_site"][waits] = columns["site"][place]
        lanes_of_pipes = np.array([lane_of.get((number, pipe), -1) for pipe in Pipe])
        made["set_lane"][waits] = lanes_of_pipes[columns["pipe"][place]]


def coarser(arrays: dict[str, Ints], resolution: int) -> dict[str, Ints]:
    """Join neighbours that are shorter than `resolution` and lie in one stretch of it; the longest names them."""
    start, length = arrays["start"], arrays["length"]
    if not len(start):
        return arrays
    stretch = start // resolution
    apart = np.ones(len(start), bool)
    short = length < resolution
    apart[1:] = (np.diff(stretch) != 0) | ~short[1:] | ~short[:-1]
    group = np.cumsum(apart) - 1
    first = np.flatnonzero(apart)
    last = np.append(first[1:], len(start)) - 1
    order = np.lexsort((length, group))
    longest = order[np.append(np.flatnonzero(np.diff(group[order])), len(order) - 1)]
    joined = {name: array[longest] for name, array in arrays.items()}
    joined["start"] = start[first]
    joined["length"] = start[last] + length[last] - start[first]
    joined["joined"] = np.add.reduceat(arrays["joined"], first)
    return joined


def packed(found: Sequence[Lane], calls: dict[int, int]) -> dict[str, Any]:
    """Return all lanes behind one another: each field compressed, starts as gaps behind the slice before.

    `calls` gives the instructions whose texts the page has their numbers there.
    """
    counts = [len(lane) for lane in found]
    arrays = {
        name: np.concatenate([lane.arrays[name] for lane in found] or [np.empty(0, np.int64)])
        for name in FIELDS
    }
    ends = [lane.arrays["start"] + lane.arrays["length"] for lane in found]
    before = [np.concatenate([[0], end[:-1]]) if len(end) else end for end in ends]
    arrays["start"] = arrays["start"] - np.concatenate(before or [np.empty(0, np.int64)])
    arrays["call"] = np.array([calls.get(call, -1) for call in arrays["call"].tolist()], np.int64)
    return {"counts": counts, **{name: pack(array) for name, array in arrays.items()}}


def pack(array: Ints) -> str:
    """Return whole numbers as base64 of their deflated 32-bit form."""
    narrow: NDArray[np.int32] = array.astype("<i4")
    return base64.b64encode(zlib.compress(narrow.tobytes(), 6)).decode("ascii")


LABELS = [
    f"{cause.value}/{sub.value}" if sub is not None else cause.value
    for cause in Cause
    for sub in (*SUB_CAUSES, *[None] * (8 - len(SUB_CAUSES)))
]
"""What a label's number means."""
