"""The chain of instructions and waits that makes the run as long as it is.

Walked backwards from the last core's end: each time was decided by one earlier time, which the log
states. The steps tile the run from 0 to its last cycle. Where two things decide a time together,
the pipe's own chain is followed rather than the scalar unit's. Durations count as given: what they would be if
the transfers of other cores ended elsewhere is a question for `what_if`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TextIO

import numpy as np

from ascend_sim.config import Chip
from ascend_sim.report.columns import CAUSE_CODE, CAUSES, SUB_CAUSES, Ints
from ascend_sim.report.ledger import Ledger
from ascend_sim.report.links import Links
from ascend_sim.report.names import short_path
from ascend_sim.trace import Cause, Kind
from isa.types import Pipe

COLUMNS = (
    "start", "end", "cycles", "core", "pipe", "index", "name", "what", "cause", "sub_cause", "file",
    "line", "slack",
)  # fmt: skip
"""Columns of `critical_path.csv`, in order of time; the `cycles` add up to the run's."""

WORK, MOVE, WAY, SET, HANDOVER, ISSUE, FETCH, LAUNCH = (
    "work", "move", "way", "set", "handover", "issue", "fetch", "launch",
)  # fmt: skip
"""What a step is: an instruction's own time; of a transfer that queued at its port the bytes passing it, and
their way; a set taking effect; a flag on its way to the wait; the scalar unit issuing; its code coming; the launch."""


@dataclass(slots=True)
class Step:
    """Cycles [start, end) of the path, spent by one item (`row` of core number `core`, -1: by none)."""

    start: int
    end: int
    core: int
    row: int
    what: str


class CriticalPath:
    """The steps in order of time, and sums of them."""

    def __init__(self, ledger: Ledger, steps: list[Step]) -> None:
        self.ledger = ledger
        self.steps = steps
        self._owners: dict[int, Ints] = {}  # by core: which item each part belongs to
        self._waits_for_code: dict[int, list[tuple[int, int]]] = {}

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of `critical_path.csv`, without the slack: steps, split by what they were spent on."""
        return (row for _, row in self.rows_by_step())

    def rows_by_step(self) -> Iterator[tuple[Step, dict[str, Any]]]:
        """Yield each row of `rows` with its step."""
        log = self.ledger.log
        places = [(short_path(site.file), site.line) for site in log.sites]
        for step in self._pieces():
            for start, end, cause, sub in self._spent(step):
                row: dict[str, Any] = {"start": start, "end": end, "cycles": end - start}
                row |= {"core": log.cores[step.core].name if step.core >= 0 else ""}
                row |= dict.fromkeys(("pipe", "index", "name", "file", "line"), "")
                if step.row >= 0:
                    columns = self.ledger[step.core].columns
                    site = int(columns["site"][step.row])
                    row["pipe"] = Pipe(columns["pipe"][step.row]).name
                    row["index"] = int(columns["index"][step.row])
                    row["name"] = self.ledger.names.things[columns["name"][step.row]]
                    if site < len(places) and places[site][0]:
                        row["file"], row["line"] = places[site]
                row |= {"what": step.what, "cause": cause, "sub_cause": sub}
                yield step, row

    def by(self, *keys: str) -> list[dict[str, Any]]:
        """Return cycles of the path by columns of `rows`, and by `place` (file:line), the largest first."""
        sums: dict[tuple[Any, ...], int] = {}
        for row in self.rows():
            row["place"] = f"{row['file']}:{row['line']}" if row["file"] else ""
            key = tuple(row[name] for name in keys)
            sums[key] = sums.get(key, 0) + row["cycles"]
        ordered = sorted(sums.items(), key=lambda entry: -entry[1])
        return [dict(zip(keys, key, strict=True)) | {"cycles": cycles} for key, cycles in ordered]

    def _pieces(self) -> Iterator[Step]:
        """Yield the steps, the times in which the scalar unit waited for code apart from those in which it issued."""
        for step in self.steps:
            position = step.start
            if step.what == ISSUE and step.core >= 0:
                for start, end in self._fetches(step.core):
                    low, high = max(int(start), position), min(int(end), step.end)
                    if low < high:
                        if position < low:
                            yield Step(position, low, step.core, step.row, ISSUE)
                        yield Step(low, high, step.core, step.row, FETCH)
                        position = high
            if position < step.end:
                yield Step(position, step.end, step.core, step.row, step.what)

    def _fetches(self, core: int) -> Iterable[tuple[int, int]]:
        """Return when a core's scalar unit waited for code: its only stalls that are nobody else's doing."""
        found = self._waits_for_code.get(core)
        if found is None:
            stalls = self.ledger[core].columns.stalls
            own = stalls[stalls["cause"] == CAUSE_CODE[Cause.SCALAR]]
            found = list(zip(own["start"].tolist(), own["end"].tolist(), strict=True))
            self._waits_for_code[core] = found
        return found

    def _spent(self, step: Step) -> Iterable[tuple[int, int, str, str]]:
        if step.what not in (WORK, MOVE, WAY) or step.row < 0:
            cause = {LAUNCH: Cause.LAUNCH, ISSUE: Cause.SCALAR, FETCH: Cause.SCALAR}.get(
                step.what, Cause.FLAG
            )
            return [(step.start, step.end, cause.value, "")]
        columns = self.ledger[step.core].columns
        # An item's parts put the way of its first byte before all bytes: look there for what a step is.
        shift = 0
        if step.what == MOVE:
            shift = int(columns["latency"][step.row])
        elif step.what == WAY:
            shift = int(columns["start"][step.row]) - step.start
        parts = columns.parts
        owners = self._owners.get(step.core)
        if owners is None:
            owners = self._owners[step.core] = parts["item"].astype(np.int64)
        low, high = np.searchsorted(owners, np.array([step.row, step.row + 1], np.int64))
        spans = []
        position = step.start
        for part in parts[low:high]:
            until = min(int(part["end"]) - shift, step.end)
            if until > position:
                sub = SUB_CAUSES[part["sub"]]
                word = "" if sub is None else sub.value
                spans.append((position, until, CAUSES[part["cause"]].value, word))
                position = until
        if position < step.end:
            # Behind the parts an instruction waits for an older one to retire; one without parts is busy.
            rest = (Cause.MEMORY.value, "latency") if high > low else (Cause.BUSY.value, "")
            spans.append((position, step.end, *rest))
        return spans


def critical_path(ledger: Ledger, chip: Chip) -> CriticalPath:
    """Return the critical path of a run; `chip` says how deep its queues are."""
    return CriticalPath(ledger, _Walk(ledger, chip).steps())


def write_critical_path(
    path: CriticalPath, slack: Callable[[int, int], int | str], stream: TextIO
) -> None:
    """Write `critical_path.csv`; `slack(core, row)` is an item's slack."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for step, row in path.rows_by_step():
        own = slack(step.core, step.row) if step.row >= 0 else ""
        writer.writerow([*(row[name] for name in COLUMNS[:-1]), own])


class _LinksOf(dict[int, Links]):
    """The links of cores, made when the walk comes to them."""

    def __init__(self, ledger: Ledger, chip: Chip) -> None:
        self._ledger, self._chip = ledger, chip

    def __missing__(self, core: int) -> Links:
        links = self[core] = Links(self._ledger[core], self._chip, self._ledger.log.cycles)
        return links


class _Walk:
    """Walks from the run's end to its beginning. `time` is where it has come to, `found` the steps so far."""

    def __init__(self, ledger: Ledger, chip: Chip) -> None:
        self.ledger = ledger
        self.links = _LinksOf(ledger, chip)
        self.time = ledger.log.cycles
        self.found: list[Step] = []
        self.core = -1

    def steps(self) -> list[Step]:
        cores = self.ledger.log.cores
        if cores:
            self.core = max(range(len(cores)), key=lambda number: cores[number].end)
            self._go(-1, LAUNCH, cores[self.core].end)
            move: _Move | None = self._end_of_block, len(cores[self.core].blocks) - 1
            seen: set[tuple[str, int, int]] = set()
            while move is not None and self.time > 0:
                follow, row = move
                key = (follow.__name__, self.core, row)
                if key in seen:  # a log that no machine can have made
                    break
                seen.add(key)
                move = follow(row)
        self._go(-1, LAUNCH, 0)
        return self.found[::-1]

    def _go(self, row: int, what: str, time: int) -> None:
        """Step back to a time (never forward, never before the run)."""
        time = max(int(time), 0)
        if time < self.time:
            core = self.core if row >= 0 else -1
            self.found.append(Step(time, self.time, core, row, what))
            self.time = time

    # ---- what decided a time ----------------------------------------------------------------

    def _end_of_block(self, block: int) -> _Move | None:
        """The scalar unit's last step of a block waits for everything to land."""
        links = self.links[self.core]
        rows = np.flatnonzero(links.block == block)
        if not len(rows):
            return self._begin_block, block
        last = int(rows[-1])
        latest = int(rows[np.argmax(np.maximum(links.end, links.accept)[rows])])
        if max(links.end[latest], links.accept[latest]) >= self.time > links.done[last]:
            return self._late(latest)
        self._go(last, ISSUE, links.done[last])
        return self._done, last

    def _late(self, row: int) -> _Move:
        links = self.links[self.core]
        if links.end[row] >= links.accept[row] or links.kind[row] != Kind.INSTRUCTION:
            return self._end, row
        return self._accept, row

    def _begin_block(self, block: int) -> _Move | None:
        links, blocks = self.links[self.core], self.ledger.log.cores[self.core].blocks
        if block <= 0 or not len(links.block_starts):
            return None
        self._go(-1, LAUNCH, sorted(blocks, key=lambda one: one[1])[block - 1][2])
        return self._end_of_block, block - 1

    def _end(self, row: int) -> _Move:
        """When an item's result is visible."""
        links = self.links[self.core]
        kind, older = links.kind[row], int(links.landed[row])
        if kind == Kind.INSTRUCTION:
            if older >= 0 and links.end[older] >= self.time:
                return self._end, older  # it retires behind an older one
            if links.began[row] > links.start[row] >= 0:
                return self._bytes, row
            self._go(row, WORK, links.start[row])
            return self._begin, row
        if kind == Kind.SET_FLAG:
            if older >= 0 and links.end[older] > links.head[row]:
                self._go(row, SET, links.end[older])
                return self._end, older
            self._go(row, SET, links.head[row])
            return self._head, row
        return self._begin, row

    def _bytes(self, row: int) -> _Move:
        """When a transfer's bytes were through the port, or its result was there."""
        links = self.links[self.core]
        self._go(row, WAY, links.moved[row])
        self._go(row, MOVE, links.began[row])
        if links.began[row] > links.start[row] and (ahead := self._ahead(row)) >= 0:
            return self._bytes, ahead
        return self._begin, row

    def _begin(self, row: int) -> _Move:
        """When an instruction began, or a wait or barrier was released."""
        links = self.links[self.core]
        kind, own = links.kind[row], links.pipe[row] == Pipe.S
        if kind == Kind.WAIT_FLAG and self.time > links.head[row]:
            columns = self.ledger[self.core].columns
            other, index = int(columns["partner_core"][row]), int(columns["partner"][row])
            setter = self.ledger[other].columns.row(index) if other >= 0 else -1
            if setter >= 0:
                self._go(row, HANDOVER, self.links[other].end[setter])
                self.core = other
                return self._end, setter
        if kind == Kind.INSTRUCTION and not own and self.time > links.head[row]:
            columns = self.ledger[self.core].columns
            followed = (
                columns.row(int(columns["partner"][row])) if columns["partner"][row] >= 0 else -1
            )
            if followed >= 0:  # by unit flags: as soon as that one had come far enough
                self._go(followed, WORK, links.start[followed])
                return self._begin, followed
        if kind == Kind.BARRIER and self.time > links.head[row]:
            older = self._last_to_land(row) if own else int(links.landed[row])
            if older >= 0 and max(links.end[older], links.accept[older]) >= self.time:
                return self._late(older)
        if kind == Kind.INSTRUCTION and not own:
            self._go(row, HANDOVER, links.head[row])  # it waited for its unit flags
        return (self._issue if own else self._head), row

    def _last_to_land(self, row: int) -> int:
        """Return the item that the barrier of all pipes waited for."""
        links = self.links[self.core]
        low = int(np.searchsorted(links.block, links.block[row]))
        if low == row:
            return -1
        return low + int(np.argmax(np.maximum(links.end, links.accept)[low:row]))

    def _head(self, row: int) -> _Move:
        """When an item came to the head of its queue."""
        links = self.links[self.core]
        before = int(links.before[row])
        if before >= 0 and links.accept[before] >= self.time:
            return self._accept, before
        return self._issue, row

    def _accept(self, row: int) -> _Move:
        """When the pipe could turn to the next item."""
        links = self.links[self.core]
        if links.kind[row] == Kind.SET_FLAG:
            return self._head, row
        if links.kind[row] == Kind.INSTRUCTION:
            if links.held[row] and (ahead := self._ahead(row)) >= 0:
                return self._bytes, ahead
            self._go(row, WORK, links.start[row])
        return self._begin, row

    def _ahead(self, row: int) -> int:
        """Return the transfer whose bytes a transfer's waited for at the port; -1 where there is none.

        It is the core's store that a load let go first, else the transfer before it in its pipe.
        """
        links, columns = self.links[self.core], self.ledger[self.core].columns
        store = columns.row(int(columns["partner"][row]))
        if store >= 0 and links.began[store] >= 0:
            return store
        ahead = int(links.landed[row])
        while ahead >= 0 and links.began[ahead] < 0:
            ahead = int(links.landed[ahead])
        return ahead

    def _issue(self, row: int) -> _Move:
        """When the scalar unit had put an item into its queue, or had begun its own."""
        links = self.links[self.core]
        place = int(links.place[row])
        if place >= 0 and links.start[place] > links.free[row]:
            self._go(row, ISSUE, links.start[place])
            return self._begin, place
        self._go(row, ISSUE, links.free[row])
        if row > 0 and links.block[row - 1] == links.block[row]:
            return self._done, row - 1
        return self._begin_block, int(links.block[row])

    def _done(self, row: int) -> _Move:
        """When the scalar unit was through with an item."""
        links = self.links[self.core]
        if links.pipe[row] == Pipe.S and links.kind[row] == Kind.INSTRUCTION:
            self._go(row, WORK, links.start[row])
            return self._issue, row
        if links.pipe[row] == Pipe.S and links.kind[row] != Kind.SET_FLAG:
            return self._begin, row
        return self._issue, row


_Move = tuple[Callable[[int], "_Move | None"], int]
