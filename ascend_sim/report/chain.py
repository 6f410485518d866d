"""The longest chain of dependences: how long the run would take with nothing to share and no queue ever full.

Goes forward through all items in the order in which they began. What an item waits for as written counts: the order of
its pipe and of the scalar unit, flags, barriers, the block before it on its core. What others take from it does not:
shares of bandwidth, and places in instruction queues. Each time is the latest of those that it follows, plus a
duration that is never longer than the run's own: so no time computed here is later than the simulated one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ascend_sim.config import Chip
from ascend_sim.report.columns import SUB_CODE, Columns, Ints
from ascend_sim.report.ledger import CoreLedger, Ledger
from ascend_sim.report.links import Links
from ascend_sim.trace import Kind, MemoryCause
from isa.types import Pipe

_COMPUTE, _MOVE, _SET, _WAIT, _BARRIER, _OWN, _OWN_SET, _OWN_WAIT, _OWN_BARRIER = range(9)
_PIECE = 1 << 17

_LINK = np.dtype(
    [("start", "<i8")]
    + [(name, "<i4") for name in ("row", "after", "offset", "follows", "first", "second", "third", "block")]
    + [("slot", "<u2"), ("code", "u1")]
)  # fmt: skip
"""An item as this module needs it. `row`, `after` and `follows` number the items of all cores; `after` is the scalar
unit's own item before it (-1: the block's begin), `offset` what issuing takes from there on; `follows` a set, or an
instruction that unit flags name; `slot` its pipe. The rest are durations, by code."""


def longest_chain(ledger: Ledger, chip: Chip) -> int:
    """Return the cycles of the longest chain, from the launch to the end of the run."""
    log = ledger.log
    if not log.cores:
        return 0
    bases = np.cumsum([0, *ledger.lengths])
    blocks: list[_Blocks] = []
    # One core after the other: a run has items by the million.
    table, filled = np.empty(int(bases[-1]), _LINK), 0
    for number, entry in enumerate(ledger):
        links = Links(entry, chip, log.cycles)
        blocks.append(_Blocks(entry, links, chip))
        rows = _links(ledger, number, links, chip, bases)
        table[filled : filled + len(rows)] = rows
        filled += len(rows)
    last = _follow(table[:filled], blocks, int(bases[-1]), log.cycles)
    return last + log.cycles - max(core.end for core in log.cores)


class _Blocks:
    """The blocks of one core: when the first begins, and what lies between the last item of one and the next."""

    def __init__(self, entry: CoreLedger, links: Links, chip: Chip) -> None:
        spans = sorted((start, end) for _, start, end in entry.core.blocks)
        self.begin = spans[0][0] if spans else entry.core.start
        between = max(chip.cycles(chip.launch.per_core_us), 1)
        self.gaps = [
            max(min(after[0] - before[1], between), 0) for before, after in pairwise(spans)
        ]
        latest = np.zeros(max(len(spans), 1), np.int64)
        np.maximum.at(
            latest, links.block, np.maximum(np.maximum(links.end, links.accept), links.done)
        )
        self.ending = [
            max(end - int(last), 0) for (_, end), last in zip(spans, latest, strict=False)
        ]

    def next(self, block: int, latest: int) -> int:
        """Return when a block begins at least; `latest` is the last time in the one before it that did anything."""
        if block == 0:
            return self.begin
        return latest + self.ending[block - 1] + self.gaps[block - 1]

    def last(self, block: int, latest: int) -> int:
        """Return when the core's last block ends at least."""
        return latest + self.ending[block] if 0 <= block < len(self.ending) else 0


def _links(ledger: Ledger, number: int, links: Links, chip: Chip, bases: Ints) -> NDArray[Any]:
    """Return the items of one core that began, as records."""
    columns = ledger[number].columns
    count = len(columns)
    rows = np.arange(count)
    scalar, kind = links.pipe == Pipe.S, links.kind
    own = scalar & (kind != Kind.SET_FLAG)  # what the scalar unit stands still for
    table = np.zeros(count, _LINK)
    table["start"], table["row"] = links.start, rows + bases[number]
    table["block"], table["slot"] = links.block, number * len(Pipe) + links.pipe.astype(np.int64)
    ready = np.where(own & (kind != Kind.INSTRUCTION), links.head, links.issue)
    spent = np.cumsum(np.maximum(ready - links.waited_for_place(), 0))
    after = np.maximum.accumulate(np.where(own, rows, -1))
    after = np.concatenate([[-1], after[:-1]])[:count]
    after = np.where((after >= 0) & (links.block[after] == links.block), after, -1)
    first = np.searchsorted(links.block, links.block)  # of the block
    table["offset"] = spent - np.where(
        after >= 0, spent[after], np.where(first > 0, spent[first - 1], 0)
    )
    table["after"] = np.where(after >= 0, after + bases[number], -1)
    _durations(table, columns, links, scalar, int(chip.gm.move_issue + 0.5))
    _partners(table, ledger, number, chip, bases)
    return table[links.start >= 0]


def _durations(
    table: NDArray[Any],
    columns: Columns,
    links: Links,
    scalar: NDArray[np.bool_],
    move_issue: int,
) -> None:
    """Set codes, and what items take by themselves."""
    kind, start, end = links.kind, links.start, np.maximum(links.end, links.start)
    interval = np.where(links.held, move_issue, np.maximum(links.accept - start, 0))
    moves = (kind == Kind.INSTRUCTION) & ~scalar & (start <= links.began)
    code = np.select(
        [kind == Kind.SET_FLAG, kind == Kind.WAIT_FLAG, kind == Kind.BARRIER, moves],
        [_SET, _WAIT, _BARRIER, _MOVE],
        _COMPUTE,
    )
    own = np.select([kind == Kind.SET_FLAG, kind == Kind.WAIT_FLAG, kind == Kind.BARRIER],
                    [_OWN_SET, _OWN_WAIT, _OWN_BARRIER], _OWN)  # fmt: skip
    table["code"] = np.where(scalar, own, code)
    shared = _shared(columns, links)
    transit = np.maximum(links.moved - links.began - shared, 0)
    holds = moves & (
        links.accept >= links.moved
    )  # nothing else begins before its bytes have passed
    table["first"] = np.where(holds, np.maximum(interval - shared, 0), interval)
    table["second"] = np.where(moves, transit, end - start)
    table["third"] = np.where(moves, np.clip(end - links.moved, 0, columns["latency"]), 0)
    older = np.where(links.landed >= 0, links.end[np.maximum(links.landed, 0)], -1)
    sets = kind == Kind.SET_FLAG
    fired = np.where(scalar, links.issue, np.maximum(links.head, older))
    table["first"][sets] = np.maximum(links.end - fired, 0)[sets]


def _shared(columns: Columns, links: Links) -> Ints:
    """Return how long each transfer waited because others moved bytes too, beyond its wait for its own port."""
    parts = columns.parts
    begin = columns["start"][parts["item"]].astype(np.int64)
    same = np.diff(parts["item"], prepend=-1) == 0
    begin = np.where(same, np.roll(parts["end"], 1), begin)
    which = np.isin(parts["sub"], [SUB_CODE[MemoryCause.SHARE], SUB_CODE[MemoryCause.SAME_LINE]])
    length = np.where(which, parts["end"] - begin, 0)
    waits = np.bincount(parts["item"], length, len(columns)).astype(np.int64)
    shared: Ints = np.maximum(waits - np.maximum(links.began - links.start, 0), 0)
    return shared


def _partners(table: NDArray[Any], ledger: Ledger, number: int, chip: Chip, bases: Ints) -> None:
    """Set what items follow, and how long a flag was on its way to each wait at least: never longer than it took."""
    columns = ledger[number].columns
    table["follows"] = -1
    for core in np.unique(columns["partner_core"]).tolist():
        if not 0 <= core < len(ledger):
            continue
        others = ledger[core].columns
        rows = np.flatnonzero(columns["partner_core"] == core)
        rows = rows[columns["partner"][rows] < len(others)]
        partners = columns["partner"][rows].astype(np.int64)
        rows, partners = (one[others["index"][partners] == partners] for one in (rows, partners))
        table["follows"][rows] = bases[core] + partners
        way = chip.sync.visible if core == number else chip.sync.cross_core
        took = columns["start"][rows] - others["end"][partners]
        waits = columns["kind"][rows] == Kind.WAIT_FLAG
        table["third"][rows[waits]] = np.clip(took, 0, int(way + 0.5))[waits]


def _in_order(table: NDArray[Any]) -> Iterator[tuple[int, ...]]:
    """Yield the records by the cycle in which they began, those of one cycle in program order."""
    order = np.argsort(table["start"], kind="stable").astype(
        np.int32
    )  # the table's rows are in program order
    fields = [
        "row",
        "code",
        "slot",
        "block",
        "after",
        "offset",
        "follows",
        "first",
        "second",
        "third",
    ]
    for piece in range(0, len(order), _PIECE):
        rows = table[order[piece : piece + _PIECE]]
        yield from zip(*(rows[name].tolist() for name in fields), strict=True)


def _follow(table: NDArray[Any], blocks: list[_Blocks], count: int, cycles: int) -> int:
    """Return the latest end, launch included.

    One loop over everything with plain numbers: a run has items by the million.
    """
    letter = "i" if cycles < 1 << 31 else "q"
    done, end, start = (array(letter, [0]) * count for _ in range(3))
    pipes, cores = len(Pipe), range(len(blocks))
    accept, port, landed = ([0] * (pipes * len(blocks)) for _ in range(3))
    latest, begin, current = [0 for _ in cores], [0 for _ in cores], [-1 for _ in cores]
    for row, code, slot, block, after, offset, follows, first, second, third in _in_order(table):
        core = slot // pipes
        if current[core] != block:
            begin[core] = latest[core] = blocks[core].next(block, latest[core])
            current[core] = block
            for other in range(core * pipes, core * pipes + pipes):
                accept[other] = port[other] = landed[other] = 0
        time = (done[after] if after >= 0 else begin[core]) + offset
        if code < _OWN:
            if accept[slot] > time:
                time = accept[slot]
            if code == _SET:
                accept[slot] = time
                time = max(time, landed[slot])
                end[row] = (
                    time + first
                )  # a barrier of all pipes does not wait for the set's own cycle
            elif code <= _MOVE:
                if follows >= 0 and start[follows] > time:
                    time = start[follows]
                start[row] = time
                accept[slot] = time + first
                if code == _MOVE:
                    time = max(time, port[slot]) + second
                    port[slot] = time
                    time += third
                else:
                    time += second
                time = max(time, landed[slot])
                landed[slot] = end[row] = time
                time = max(time, accept[slot])
            else:
                if code == _BARRIER:
                    time = max(time, landed[slot])
                elif follows >= 0:
                    time = max(time, end[follows] + third)
                time += first
                accept[slot] = time
        elif code == _OWN_SET:
            time += first
            end[row] = time
        else:
            if code == _OWN_WAIT and follows >= 0:
                time = max(time, end[follows] + third)
            elif code == _OWN_BARRIER:
                time = max(time, latest[core])
            time += second if code == _OWN else 0
            done[row] = time
        if time > latest[core]:
            latest[core] = time
    return max(
        one.last(block, time) for one, block, time in zip(blocks, current, latest, strict=True)
    )
