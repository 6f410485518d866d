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
   its way: `flag`;
5. nothing was issued: the scalar unit's own stall at that time, else `scalar`;
6. after the pipe's last item: `idle`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ascend_sim.errors import SimulatorBug
from ascend_sim.trace import Cause, CoreLog, Item, Kind, Log, MemoryCause, Parts, Stall
from isa.types import PIPES_OF, Pipe


@dataclass(slots=True)
class Segment:
    """The cycles `[start, end)` of one pipe, spent for one reason.

    `sub` refines `Cause.MEMORY`. `origin` is what stands behind the segment: the instruction, the wait
    or the barrier, the scalar unit's stall; for `Cause.SCALAR` the next item of the pipe, which was not
    issued yet; None where nothing does (launch, tail, idle, a busy scalar unit).
    """

    start: int
    end: int
    cause: Cause
    sub: MemoryCause | None = None
    origin: Item | Stall | None = None


@dataclass(slots=True)
class CoreLedger:
    """The ledger of one core: for each pipe its segments in order and its items in program order."""

    core: CoreLog
    pipes: dict[Pipe, list[Segment]]
    items: dict[Pipe, list[Item]]


PipeTotals = dict[str, Any]
"""Totals of one pipe, in cycles unless the name says otherwise.

`busy` + `wait` + `idle` is `Log.cycles`; `occupied` is busy and memory together, what the vendor's
profiler calls the time of a pipe; `instructions`, `items` (flags, waits and barriers count too) and
`bytes` are counts; `utilization` is busy / cycles; `causes` and `memory` (its sub-causes) map names to
cycles and hold only what occurred.
"""

Totals = dict[str, dict[str, PipeTotals]]
"""`{core name: {pipe name: PipeTotals}}`, cores in the log's order, pipes in the order of `Pipe`."""


def build_ledger(log: Log) -> list[CoreLedger]:
    """Return the ledger of every core of `log`.

    A log that breaks off (an item without a start or an end) is read as if the core's end cut it.
    Raises `SimulatorBug` where the segments of a pipe do not tile the run, or an item's parts the item.
    """
    last_end = max((_end_of(core, log) for core in log.cores), default=0)
    return [_core_ledger(core, log, last_end) for core in log.cores]


def pipe_totals(log: Log, ledger: list[CoreLedger] | None = None) -> Totals:
    """Return the totals of every pipe of every core; `ledger` saves building it again."""
    ledger = build_ledger(log) if ledger is None else ledger
    return {
        entry.core.name: {
            pipe.name: _totals(segments, entry.items[pipe], log.cycles)
            for pipe, segments in entry.pipes.items()
        }
        for entry in ledger
    }


def stall_totals(totals: Totals) -> dict[str, int]:
    """Return cycles by cause, summed over all pipes of all cores; every cause is there, busy too."""
    sums = {cause.value: 0 for cause in Cause}
    for pipes in totals.values():
        for entry in pipes.values():
            for cause, cycles in entry["causes"].items():
                sums[cause] += cycles
    return sums


def memory_totals(totals: Totals) -> dict[str, int]:
    """Return cycles by sub-cause of `memory`, summed over all pipes of all cores."""
    sums = {cause.value: 0 for cause in MemoryCause}
    for pipes in totals.values():
        for entry in pipes.values():
            for cause, cycles in entry["memory"].items():
                sums[cause] += cycles
    return sums


_OCCUPIED = (Cause.BUSY, Cause.MEMORY, Cause.BANK_CONFLICT)


def overlap_cycles(ledger: list[CoreLedger]) -> dict[str, int]:
    """Return for how many cycles no, one, or several pipes of a core beside S were occupied, summed over cores.

    Occupied is busy or waiting for GM. Only the cores' own time counts, without launch and tail.
    """
    result = {"none": 0, "one": 0, "several": 0}
    for entry in ledger:
        changes: dict[int, int] = {}
        for pipe, segments in entry.pipes.items():
            if pipe is Pipe.S:
                continue
            for segment in segments:
                if segment.cause in _OCCUPIED:
                    changes[segment.start] = changes.get(segment.start, 0) + 1
                    changes[segment.end] = changes.get(segment.end, 0) - 1
        active, last = 0, entry.core.start
        for time in [*sorted(changes), entry.core.end]:
            result["none" if active == 0 else "one" if active == 1 else "several"] += time - last
            active, last = active + changes.get(time, 0), time
    return result


def _totals(segments: list[Segment], items: list[Item], cycles: int) -> PipeTotals:
    by_cause = dict.fromkeys(Cause, 0)
    by_sub = dict.fromkeys(MemoryCause, 0)
    for segment in segments:
        length = segment.end - segment.start
        by_cause[segment.cause] += length
        if segment.sub is not None:
            by_sub[segment.sub] += length
    busy, idle = by_cause[Cause.BUSY], by_cause[Cause.IDLE]
    return {
        "busy": busy,
        "wait": cycles - busy - idle,
        "idle": idle,
        "occupied": busy + by_cause[Cause.MEMORY],
        "instructions": sum(1 for item in items if item.kind is Kind.INSTRUCTION),
        "items": len(items),
        "bytes": sum(item.bytes for item in items),
        "utilization": round(busy / cycles, 6) if cycles else 0.0,
        "causes": {cause.value: count for cause, count in by_cause.items() if count},
        "memory": {cause.value: count for cause, count in by_sub.items() if count},
    }


def _end_of(core: CoreLog, log: Log) -> int:
    """Return the core's end; a core that a failed run left open ends with the run."""
    return core.end if core.end > 0 else log.cycles


def _core_ledger(core: CoreLog, log: Log, last_end: int) -> CoreLedger:
    items: dict[Pipe, list[Item]] = {pipe: [] for pipe in PIPES_OF[core.kind]}
    for item in core.items:
        if item.pipe not in items:
            raise SimulatorBug(
                f"{core.name} has no pipe {item.pipe.name}, but {item!r} is logged on it"
            )
        items[item.pipe].append(item)
    end = _end_of(core, log)
    frame = _frame(core, end, last_end, log.cycles)
    stalls = [Segment(stall.start, stall.end, stall.cause, None, stall) for stall in core.stalls]
    stalls = _disjoint(sorted(stalls, key=_start))
    pipes: dict[Pipe, list[Segment]] = {}
    for pipe, own in items.items():
        if pipe is Pipe.S:
            own_time = [Segment(core.start, end, Cause.BUSY)] if end > core.start else []
            segments = _overlay(_overlay(frame, stalls), own_time)
        elif own:
            segments = _queue_ledger(own, end, frame, stalls, log.cycles)
        else:
            segments = [Segment(0, log.cycles, Cause.IDLE)] if log.cycles else []
        pipes[pipe] = segments
        _check_tiling(segments, log.cycles, f"{core.name}.{pipe.name}")
    return CoreLedger(core, pipes, items)


def _frame(core: CoreLog, end: int, last_end: int, cycles: int) -> list[Segment]:
    """Return the stretches in which the core's own programs do not run."""
    launch, frame, position = Cause.LAUNCH, [], 0
    for _, block_start, block_end in sorted(core.blocks, key=lambda block: block[1]):
        if block_start > position:
            frame.append(Segment(position, block_start, launch))
        position = max(position, block_end if block_end >= 0 else end)
    if not core.blocks:
        frame.append(Segment(0, core.start, launch))
    frame.append(Segment(end, last_end, Cause.TAIL))
    frame.append(Segment(max(end, last_end), cycles, launch))
    return [segment for segment in frame if segment.end > segment.start]


def _queue_ledger(
    items: list[Item], end: int, frame: list[Segment], stalls: list[Segment], cycles: int
) -> list[Segment]:
    """Return the segments of a pipe that is fed through a queue."""
    busy, delayed = _instruction_layers(items, end)
    known = _overlay(_overlay(_overlay(busy, delayed), frame), _wait_layer(items, end))
    last = max(item.end if item.end >= 0 else end for item in items)
    unissued = list(_gaps(known, min(last, cycles)))
    filled = _overlay(known, _overlay(_clip(stalls, unissued), unissued))
    return _overlay(filled, [Segment(0, cycles, Cause.IDLE)])


def _instruction_layers(items: list[Item], core_end: int) -> tuple[list[Segment], list[Segment]]:
    """Return what the instructions are busy with, and what delays them, each free of overlaps."""
    busy: list[Segment] = []
    delayed: list[Segment] = []
    covered = 0
    started = [item for item in items if item.kind is Kind.INSTRUCTION and item.start >= 0]
    started.sort(key=_start)
    for item in started:
        end = item.end if item.end >= 0 else max(core_end, item.start)
        parts = item.parts  # the machine may make them only now, so ask once
        if parts is None:
            busy.append(Segment(item.start, end, Cause.BUSY, None, item))
        else:
            position = item.start
            for cause, sub, part_end in _complete(item, parts, end):
                if part_end <= position:
                    continue
                if cause is Cause.BUSY:
                    busy.append(Segment(position, part_end, cause, None, item))
                elif part_end > covered:
                    delayed.append(Segment(max(position, covered), part_end, cause, sub, item))
                position = part_end
        covered = max(covered, end)
    busy.sort(key=_start)
    return _disjoint(busy), delayed


def _complete(item: Item, parts: Parts, end: int) -> Parts:
    """Return the item's parts, completed where they end early.

    Of an item that the run cut off, the rest counts as busy; of one that had to wait for an older one to
    retire first, as latency (it is the older one that names those cycles).
    """
    last = parts[-1][2] if parts else item.start
    if last == end:
        return parts
    if last > end:
        raise SimulatorBug(f"the parts of {item!r} end at cycle {last}, the item at cycle {end}")
    if item.end < 0:
        return (*parts, (Cause.BUSY, None, end))
    return (*parts, (Cause.MEMORY, MemoryCause.LATENCY, end))


def _wait_layer(items: list[Item], core_end: int) -> list[Segment]:
    """Return the stretches in which a flag or barrier held the pipe, free of overlaps."""
    waits: list[Segment] = []
    for item in items:
        if item.kind is Kind.INSTRUCTION:
            continue
        if item.head >= 0 and item.kind is not Kind.SET_FLAG:
            # A wait that is released as the core ends (a flag takes cycles to be seen) ends with it.
            release = min(item.start, core_end) if item.start >= 0 else core_end
            if release > item.head:
                waits.append(Segment(item.head, release, _wait_cause(item), None, item))
        accept = min(item.accept, core_end)
        if accept > item.start >= 0:
            # A set takes effect when all before it has landed, and a cycle of its own.
            waits.append(Segment(item.start, accept, _wait_cause(item), None, item))
    waits.sort(key=_start)
    return _disjoint(waits)


def _wait_cause(item: Item) -> Cause:
    """Return the item's cause; `flag`, every item's default, is no cause that a barrier can have."""
    if item.kind is Kind.BARRIER and item.cause is Cause.FLAG:
        return Cause.BARRIER
    return item.cause


def _start(entry: Segment | Item) -> int:
    return entry.start


def _disjoint(segments: Iterable[Segment]) -> list[Segment]:
    """Return the segments (sorted by start), each without what an earlier one covers."""
    result: list[Segment] = []
    covered = 0
    for segment in segments:
        if segment.end <= covered:
            continue
        segment.start = max(segment.start, covered)
        if segment.end > segment.start:
            result.append(segment)
            covered = segment.end
    return result


def _piece(segment: Segment, start: int, end: int) -> Segment:
    if start == segment.start and end == segment.end:
        return segment
    return Segment(start, end, segment.cause, segment.sub, segment.origin)


def _overlay(top: list[Segment], under: list[Segment]) -> list[Segment]:
    """Return `top` and whatever of `under` it leaves free; both are sorted and free of overlaps."""
    if not top or not under:
        return top or under
    merged: list[Segment] = []
    index, count = 0, len(top)
    for segment in under:
        position, end = segment.start, segment.end
        while index < count and top[index].end <= position:
            merged.append(top[index])
            index += 1
        while index < count and top[index].start < end:
            cover = top[index]
            if cover.start > position:
                merged.append(_piece(segment, position, cover.start))
            position = cover.end
            if position >= end:
                break  # `cover` may reach into the next segment: keep it for that one
            merged.append(cover)
            index += 1
        if position < end:
            merged.append(_piece(segment, position, end))
    merged.extend(top[index:])
    return merged


def _gaps(segments: list[Segment], end: int) -> Iterator[Segment]:
    """Yield what is free in [0, end), as time in which nothing was issued; origin: what came next."""
    position = 0
    for segment in segments:
        if segment.start > position:
            if position >= end:
                return
            following = segment.origin
            yield Segment(position, min(segment.start, end), Cause.SCALAR, None, following)
        position = segment.end
    if position < end:
        yield Segment(position, end, Cause.SCALAR)


def _clip(segments: list[Segment], windows: list[Segment]) -> list[Segment]:
    """Return what of `segments` lies inside `windows`; both are sorted and free of overlaps."""
    inside: list[Segment] = []
    index, count = 0, len(segments)
    for window in windows:
        while index < count and segments[index].end <= window.start:
            index += 1
        scan = index
        while scan < count and segments[scan].start < window.end:
            segment = segments[scan]
            inside.append(
                _piece(segment, max(segment.start, window.start), min(segment.end, window.end))
            )
            scan += 1
        index = max(index, scan - 1)
    return inside


def _check_tiling(segments: list[Segment], cycles: int, name: str) -> None:
    position = 0
    for segment in segments:
        if segment.start != position or segment.end <= position:
            raise SimulatorBug(
                f"the ledger of {name} does not tile: cycle {position} is followed by "
                f"{segment.cause.value} from {segment.start} to {segment.end}"
            )
        position = segment.end
    if position != cycles:
        raise SimulatorBug(f"the ledger of {name} ends at cycle {position}, the run at {cycles}")
