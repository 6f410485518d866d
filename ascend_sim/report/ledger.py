"""Where every cycle of every pipe went: the ledger that all other reports read.

For each pipe of each core of a log the ledger holds segments that tile `[0, log.cycles)` exactly, each
with one cause of the vocabulary in `ascend_sim.trace.Cause`. This module knows neither chip nor
machine: it reads times that the log states and invents none.

When several things happen to a pipe in one cycle, the cycle is named by the first of these that holds:

1. an instruction of the pipe is busy there (`Item.parts`; no parts: busy from start to end);
2. an instruction in flight waits there for memory or repeats an access for a bank conflict; of several,
   the oldest, because a pipe retires in order;
3. the core is outside its blocks: `launch`, or `tail` once it is done and others are not;
4. a wait or a barrier is at the head of the queue and not yet released: the item's own cause; a set is on
   its way, or an instruction waits for its unit flags: `flag`;
5. nothing was issued: the scalar unit's own stall at that time, else `scalar`;
6. after the pipe's last item: `idle`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ascend_sim.errors import SimulatorBug
from ascend_sim.report.columns import (
    CAUSE_CODE,
    CAUSES,
    SUB_CAUSES,
    SUB_CODE,
    Columns,
    Ints,
    columns_of,
    numbers_of,
)
from ascend_sim.report.segments import FIELDS, ITEM, STALL, Segments, gaps, join, layer, paint
from ascend_sim.report.shelf import Shelf
from ascend_sim.trace import Cause, CoreLog, Item, Kind, Log, MemoryCause, Stall
from isa.types import PIPES_OF, Pipe

_BUSY, _MEMORY, _IDLE = (CAUSE_CODE[cause] for cause in (Cause.BUSY, Cause.MEMORY, Cause.IDLE))


@dataclass(slots=True)
class Segment:
    """The cycles `[start, end)` of one pipe, spent for one reason.

    `sub` refines `Cause.MEMORY`. `origin` is what stands behind the segment: the instruction, the wait
    or the barrier, the scalar unit's stall; for `Cause.SCALAR` the next item of the pipe, which was not
    issued yet; on the scalar unit what it issued at the end of it; None where nothing does (launch, tail,
    idle).
    """

    start: int
    end: int
    cause: Cause
    sub: MemoryCause | None = None
    origin: Item | Stall | None = None


@dataclass(slots=True)
class CoreLedger:
    """The ledger of one core: for each pipe its segments in order and its items in program order.

    `rows` are the pipe's items as rows of `columns`, `segments` the same as `pipes` in columns.
    """

    core: CoreLog
    columns: Columns
    segments: dict[Pipe, Segments]
    rows: dict[Pipe, Ints]

    @property
    def pipes(self) -> dict[Pipe, list[Segment]]:
        """The segments of each pipe as objects."""
        return {pipe: list(self.spans(pipe)) for pipe in self.segments}

    def spans(self, pipe: Pipe) -> Iterator[Segment]:
        """Yield the segments of one pipe."""
        own = self.segments[pipe]
        things = (None, self.core.items, self.core.stalls)
        for start, end, cause, sub, behind, row in zip(
            own.start.tolist(), own.end.tolist(), own.cause.tolist(), own.sub.tolist(),
            own.behind.tolist(), own.row.tolist(), strict=True,
        ):  # fmt: skip
            source = things[behind]
            origin = None if source is None else source[row]
            yield Segment(start, end, CAUSES[cause], SUB_CAUSES[sub], origin)

    def items(self, pipe: Pipe) -> Iterator[Item]:
        """Yield the items of one pipe in program order."""
        items = self.core.items
        return (items[row] for row in self.rows[pipe].tolist())


PipeTotals = dict[str, Any]
"""Totals of one pipe, in cycles unless the name says otherwise.

`busy` + `wait` + `idle` is `Log.cycles`; `occupied` is busy and memory together, what the vendor's
profiler calls the time of a pipe; `instructions`, `items` (flags, waits and barriers count too) and
`bytes` are counts; `utilization` is busy / cycles; `causes` and `memory` (its sub-causes) map names to
cycles and hold only what occurred.
"""

Totals = dict[str, dict[str, PipeTotals]]
"""`{core name: {pipe name: PipeTotals}}`, cores in the log's order, pipes in the order of `Pipe`."""


class Ledger(Sequence[CoreLedger]):
    """The ledgers of a log's cores, in the log's order, and the names and instructions that they number.

    Those of a long log are on disk and come into memory when they are asked for: go through one core after the
    other. `lengths` says how many items each has.
    """

    def __init__(self, log: Log) -> None:
        self.log = log
        self.names, self.calls = numbers_of(log)
        self.lengths: list[int] = []
        self._entries: list[CoreLedger] = []
        self._shelf = Shelf(self._made) if getattr(log, "long", False) else None

    def __len__(self) -> int:
        return len(self.lengths)

    @overload
    def __getitem__(self, number: int) -> CoreLedger: ...
    @overload
    def __getitem__(self, number: slice) -> list[CoreLedger]: ...
    def __getitem__(self, number: int | slice) -> CoreLedger | list[CoreLedger]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        if self._shelf is None:
            return self._entries[number]
        if not -len(self) <= number < len(self):
            raise IndexError(number)
        return self._shelf.get(number % len(self))

    def append(self, entry: CoreLedger) -> None:
        """Add the ledger of the next core."""
        self.lengths.append(len(entry.columns))
        if self._shelf is None:
            self._entries.append(entry)
            return
        arrays: list[NDArray[Any]] = [
            entry.columns.items, entry.columns.parts, entry.columns.stalls,
        ]  # fmt: skip
        for pipe, segments in entry.segments.items():
            arrays += [entry.rows[pipe], *(getattr(segments, name) for name in FIELDS)]
        self._shelf.put(arrays)

    def _made(self, number: int, arrays: list[NDArray[Any]]) -> CoreLedger:
        core, (items, parts, stalls), each = self.log.cores[number], arrays[:3], 1 + len(FIELDS)
        rows: dict[Pipe, Ints] = {}
        segments: dict[Pipe, Segments] = {}
        for place, pipe in enumerate(PIPES_OF[core.kind]):
            first = 3 + place * each
            rows[pipe], segments[pipe] = arrays[first], Segments(*arrays[first + 1 : first + each])
        return CoreLedger(core, Columns(items, parts, stalls), segments, rows)


def build_ledger(log: Log) -> Ledger:
    """Return the ledger of every core of `log`.

    A log that breaks off (an item without a start or an end) is read as if the core's end cut it.
    Raises `SimulatorBug` where the segments of a pipe do not tile the run, or an item's parts the item.
    """
    ledger = Ledger(log)
    last_end = max((_end_of(core, log) for core in log.cores), default=0)
    for core in log.cores:
        columns = columns_of(core, ledger.names, ledger.calls)
        ledger.append(_core_ledger(core, columns, log, last_end))
    return ledger


def pipe_totals(log: Log, ledger: Ledger | None = None) -> Totals:
    """Return the totals of every pipe of every core; `ledger` saves building it again."""
    return {
        entry.core.name: core_totals(entry, log.cycles)
        for entry in (build_ledger(log) if ledger is None else ledger)
    }


def core_totals(entry: CoreLedger, cycles: int) -> dict[str, PipeTotals]:
    """Return the totals of every pipe of one core."""
    return {pipe.name: _totals(entry, pipe, cycles) for pipe in entry.segments}


def stall_totals(totals: Totals) -> dict[str, int]:
    """Return cycles by cause, summed over all pipes of all cores; every cause is there, busy too."""
    return _sums([cause.value for cause in Cause], "causes", totals)


def memory_totals(totals: Totals) -> dict[str, int]:
    """Return cycles by sub-cause of `memory`, summed over all pipes of all cores."""
    return _sums([cause.value for cause in MemoryCause], "memory", totals)


def _sums(names: list[str], what: str, totals: Totals) -> dict[str, int]:
    sums = dict.fromkeys(names, 0)
    for pipes in totals.values():
        for entry in pipes.values():
            for name, cycles in entry[what].items():
                sums[name] += cycles
    return sums


_OCCUPIED = [CAUSE_CODE[cause] for cause in (Cause.BUSY, Cause.MEMORY, Cause.BANK_CONFLICT)]


def overlap_cycles(ledger: Iterable[CoreLedger]) -> dict[str, int]:
    """Return for how many cycles no, one, or several pipes of a core beside S were occupied, summed over cores.

    Occupied is busy or waiting for GM. Only the cores' own time counts, without launch and tail.
    """
    result = {"none": 0, "one": 0, "several": 0}
    for entry in ledger:
        add_overlap(entry, result)
    return result


def add_overlap(entry: CoreLedger, result: dict[str, int]) -> None:
    """Add one core's overlap to `result`; see `overlap_cycles`."""
    times, steps = [np.array([entry.core.start, entry.core.end])], [np.zeros(2, np.int64)]
    for pipe, segments in entry.segments.items():
        if pipe is not Pipe.S:
            taken = segments.only(np.isin(segments.cause, _OCCUPIED))
            times += [taken.start, taken.end]
            steps += [np.ones(len(taken), np.int64), -np.ones(len(taken), np.int64)]
    time, step = np.concatenate(times), np.concatenate(steps)
    order = np.argsort(time, kind="stable")
    time, active = time[order], np.cumsum(step[order])
    lengths = np.diff(time)
    for name, which in (("none", active == 0), ("one", active == 1), ("several", active > 1)):
        result[name] += int(lengths[which[:-1]].sum())


def _totals(entry: CoreLedger, pipe: Pipe, cycles: int) -> PipeTotals:
    segments, rows = entry.segments[pipe], entry.rows[pipe]
    by_cause = _by_code(segments.cause, segments.length, len(CAUSES))
    by_sub = _by_code(segments.sub, segments.length, len(SUB_CAUSES))
    busy, idle = by_cause[_BUSY], by_cause[_IDLE]
    return {
        "busy": busy,
        "wait": cycles - busy - idle,
        "idle": idle,
        "occupied": busy + by_cause[_MEMORY],
        "instructions": int(np.count_nonzero(entry.columns["kind"][rows] == Kind.INSTRUCTION)),
        "items": len(rows),
        "bytes": int(entry.columns["bytes"][rows].sum()),
        "utilization": round(busy / cycles, 6) if cycles else 0.0,
        "causes": {
            cause.value: count for cause, count in zip(CAUSES, by_cause, strict=True) if count
        },
        "memory": {
            sub.value: count
            for sub, count in zip(SUB_CAUSES, by_sub, strict=True)
            if count and sub is not None
        },
    }


def _by_code(codes: NDArray[np.uint8], cycles: Ints, count: int) -> list[int]:
    """Return the sum of cycles for each code. Exact: sums of a run stay far below 2^53."""
    sums: list[int] = np.bincount(codes, cycles, count).astype(np.int64).tolist()
    return sums


def _end_of(core: CoreLog, log: Log) -> int:
    """Return the core's end; a core that a failed run left open ends with the run."""
    return core.end if core.end > 0 else log.cycles


def _core_ledger(core: CoreLog, columns: Columns, log: Log, last_end: int) -> CoreLedger:
    rows = {pipe: np.flatnonzero(columns["pipe"] == pipe) for pipe in PIPES_OF[core.kind]}
    if sum(map(len, rows.values())) != len(columns):
        stray = int(np.flatnonzero(~np.isin(columns["pipe"], list(rows)))[0])
        raise SimulatorBug(
            f"{core.name} has no pipe {Pipe(columns['pipe'][stray]).name}, but {core.items[stray]!r} "
            "is logged on it"
        )
    end, cycles = _end_of(core, log), log.cycles
    frame = _frame(core, end, last_end, cycles)
    stopped = columns.stalls
    stalls = layer(
        stopped["start"],
        stopped["end"],
        stopped["cause"],
        behind=STALL,
        row=np.arange(len(stopped)),
    )
    stalls = stalls.sorted().disjoint()
    segments: dict[Pipe, Segments] = {}
    for pipe, own in rows.items():
        if pipe is Pipe.S:
            painted = paint([frame, stalls, *_issuing(columns, core.start, end)])
        elif len(own):
            painted = _queue_ledger(core, columns, own, end, frame, stalls, cycles)
        else:
            painted = layer([0], [cycles], Cause.IDLE)
        segments[pipe] = painted
        _check_tiling(painted, cycles, f"{core.name}.{pipe.name}")
    return CoreLedger(core, columns, segments, rows)


def _issuing(columns: Columns, start: int, end: int) -> list[Segments]:
    """Return the scalar unit's own time, each cycle with the item that it was spent to issue or execute."""
    own = columns["pipe"] == Pipe.S
    done = np.where(own, columns["end"], columns["issue"])
    rows = np.flatnonzero((done >= start) & (done <= end))
    rows = rows[np.argsort(done[rows], kind="stable")]
    begins = np.concatenate([[start], done[rows][:-1]]) if len(rows) else np.empty(0, np.int64)
    issued = layer(begins, done[rows], Cause.BUSY, behind=ITEM, row=rows)
    return [issued, layer([start], [end], Cause.BUSY)]


def _frame(core: CoreLog, end: int, last_end: int, cycles: int) -> Segments:
    """Return the stretches in which the core's own programs do not run."""
    launch: list[tuple[int, int]] = []
    position = 0
    for _, block_start, block_end in sorted(core.blocks, key=lambda block: block[1]):
        launch.append((position, block_start))
        position = max(position, block_end if block_end >= 0 else end)
    if not core.blocks:
        launch.append((0, core.start))
    around = np.array([*launch, (max(end, last_end), cycles)], np.int64)
    return join(
        [layer(around[:, 0], around[:, 1], Cause.LAUNCH), layer([end], [last_end], Cause.TAIL)]
    ).sorted()


def _queue_ledger(
    core: CoreLog, columns: Columns, rows: Ints, end: int, frame: Segments, stalls: Segments,
    cycles: int,
) -> Segments:  # fmt: skip
    """Return the segments of a pipe that is fed through a queue."""
    busy, delayed = _instruction_layers(core, columns, rows, end)
    known = paint([busy, delayed, frame, _wait_layer(columns, rows, end)])
    ends = columns["end"][rows]
    last = min(int(np.where(ends >= 0, ends, end).max()), cycles)
    start, until, behind = gaps(known, last)
    unissued = layer(start, until, Cause.SCALAR)
    follows = behind < len(known)
    unissued.behind[follows] = known.behind[behind[follows]]
    unissued.row[follows] = known.row[behind[follows]]
    stalls = stalls.only(stalls.start < last)
    stalls.end = np.minimum(stalls.end, last)
    return paint([known, stalls, unissued, layer([0], [cycles], Cause.IDLE)])


def _instruction_layers(
    core: CoreLog, columns: Columns, rows: Ints, core_end: int
) -> tuple[Segments, Segments]:
    """Return what the instructions are busy with, and what delays them, each free of overlaps."""
    rows = rows[(columns["kind"][rows] == Kind.INSTRUCTION) & (columns["start"][rows] >= 0)]
    rows = rows[np.argsort(columns["start"][rows], kind="stable")]
    start, open_end = columns["start"][rows], columns["end"][rows]
    end = np.where(open_end >= 0, open_end, np.maximum(core_end, start))
    # Delays of an instruction count from where its predecessors have ended.
    covered = np.concatenate([[0], np.maximum.accumulate(end)[:-1]]) if len(rows) else end
    place = np.full(len(columns), -1, np.int64)
    place[rows] = np.arange(len(rows))
    parts = columns.parts[place[columns.parts["item"]] >= 0]
    owner = place[parts["item"]]
    whole = np.ones(len(rows), bool)
    whole[owner] = False
    pieces = [layer(start[whole], end[whole], Cause.BUSY, behind=ITEM, row=rows[whole])]
    if len(parts):
        order = np.argsort(owner, kind="stable")
        pieces += _pieces(core, parts[order], owner[order], rows, start, end, open_end)
    every = join(pieces)
    position = place[every.row]
    is_busy = every.cause == _BUSY
    delayed = every.only(~is_busy)
    delayed.start = np.maximum(delayed.start, covered[position[~is_busy]])
    delayed = delayed.only(delayed.end > delayed.start)
    return every.only(is_busy).sorted().disjoint(), delayed.sorted().disjoint()


def _pieces(
    core: CoreLog, parts: NDArray[Any], owner: Ints, rows: Ints, start: Ints, end: Ints,
    open_end: Ints,
) -> list[Segments]:  # fmt: skip
    """Return the parts of instructions as segments, completed where they end early.

    Of an instruction that the run cut off, the rest counts as busy; of one that had to wait for an older one
    to retire first, as latency (it is the older one that names those cycles).
    """
    # The parts of each instruction follow one another: its own offset keeps them from the next one's.
    span = int(max(end.max(), parts["end"].max())) + 1
    reach = np.maximum.accumulate(parts["end"] + owner * span) - owner * span
    first = np.diff(owner, prepend=-1) != 0
    begin = np.where(first, start[owner], np.roll(reach, 1))
    last = np.append(first[1:], True)
    over = np.flatnonzero(last & (reach > end[owner]))
    if len(over):
        item = core.items[int(rows[owner[over[0]]])]
        raise SimulatorBug(
            f"the parts of {item!r} end at cycle {reach[over[0]]}, the item at cycle {end[owner[over[0]]]}"
        )
    own = layer(begin, parts["end"], parts["cause"], sub=parts["sub"], behind=ITEM, row=rows[owner])
    ends = owner[last]
    cut = open_end[ends] < 0
    rest = layer(
        reach[last], end[ends], np.where(cut, _BUSY, _MEMORY).astype(np.uint8),
        sub=np.where(cut, 0, SUB_CODE[MemoryCause.LATENCY]).astype(np.uint8),
        behind=ITEM, row=rows[ends],
    )  # fmt: skip
    return [own, rest]


def _wait_layer(columns: Columns, rows: Ints, core_end: int) -> Segments:
    """Return the stretches in which a flag or barrier held the pipe, free of overlaps."""
    instructions = columns["kind"][rows] == Kind.INSTRUCTION
    late = rows[instructions & (columns["head"][rows] >= 0)]
    # An instruction that starts later than it could have waited for its unit flags.
    late = late[columns["start"][late] > columns["head"][late]]
    flagged = layer(
        columns["head"][late], columns["start"][late], Cause.FLAG, behind=ITEM, row=late
    )
    rows = rows[~instructions]
    kind, cause = columns["kind"][rows], columns["cause"][rows]
    head, start, accept = (columns[name][rows] for name in ("head", "start", "accept"))
    # `flag`, every item's default, is no cause that a barrier can have.
    own = (kind == Kind.BARRIER) & (cause == CAUSE_CODE[Cause.FLAG])
    cause = np.where(own, CAUSE_CODE[Cause.BARRIER], cause).astype(np.uint8)
    # A wait that is released as the core ends (a flag takes cycles to be seen) ends with it.
    release = np.minimum(np.where(start >= 0, start, core_end), core_end)
    holds = (head >= 0) & (kind != Kind.SET_FLAG)
    held = layer(head[holds], release[holds], cause[holds], behind=ITEM, row=rows[holds])
    # A set takes effect when all before it has landed, and a cycle of its own.
    begun = start >= 0
    until = np.minimum(accept, core_end)[begun]
    stepping = layer(start[begun], until, cause[begun], behind=ITEM, row=rows[begun])
    both = join([held, stepping, flagged])
    # An item's wait comes before its step, and both before the next item's.
    return both.only(np.argsort(both.row, kind="stable")).sorted().disjoint()


def _check_tiling(segments: Segments, cycles: int, name: str) -> None:
    position = int(segments.end[-1]) if len(segments) else 0
    if position != cycles:
        raise SimulatorBug(f"the ledger of {name} ends at cycle {position}, the run at {cycles}")
    loose = np.flatnonzero(segments.start != np.concatenate([[0], segments.end[:-1]]))
    if len(loose):
        after = int(segments.end[loose[0] - 1]) if loose[0] else 0
        raise SimulatorBug(
            f"the ledger of {name} does not tile: nothing explains the cycles from {after} to "
            f"{int(segments.start[loose[0]])}"
        )
