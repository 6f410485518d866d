"""`trace.perfetto.json`: the run for ui.perfetto.dev and chrome://tracing, which the vendor's file trips.

A process for each core, a track for each pipe. Slices of one track never overlap: instructions whose
tails overlap go to sub-lanes `MTE2#1`, `MTE2#2`. What the ledger calls a wait is a slice of its own,
named and coloured by its cause. An arrow leads from the last instruction before a set to the first one
behind the wait that it released. Times are whole nanoseconds, so that neighbours never overlap by a
rounding; every slice's `args` hold its exact cycles. Counters: bytes to and from GM, items in a queue, live bytes of
the on-chip memories.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from ascend_sim.config import Chip
from ascend_sim.report.flags import Arrows
from ascend_sim.report.ledger import CoreLedger, Ledger, Segment, build_ledger
from ascend_sim.report.memory_map import live_bytes, residents
from ascend_sim.report.names import Details, site_lines
from ascend_sim.report.rates import gm_rates
from ascend_sim.trace import Cause, CoreLog, Item, Kind, Log, MemoryCause, Stall
from isa.types import Pipe

_COLOUR = {
    Cause.FLAG: "yellow",
    Cause.BUFFER: "olive",
    Cause.BARRIER: "black",
    Cause.QUEUE_FULL: "terrible",
    Cause.SCALAR: "grey",
    Cause.CROSS_CORE: "bad",
    Cause.TAIL: "white",
    Cause.LAUNCH: "startup",
}
_CAUSES = {cause: cause.value for cause in Cause}
_SUB_CAUSES = {cause: cause.value for cause in MemoryCause}
_TRACKS_OF_A_PIPE = 1000
_SAMPLES = 2000


def write_perfetto_trace(
    log: Log, chip: Chip, stream: TextIO, ledger: Ledger | None = None
) -> None:
    """Write the run to `stream`; `ledger` saves building it again."""
    ledger = build_ledger(log) if ledger is None else ledger
    about = json.dumps({"chip": chip.name, "clock_mhz": log.clock_mhz, "cycles": log.cycles})
    stream.write(f'{{"displayTimeUnit":"ns","otherData":{about},"traceEvents":[')
    separator = "\n"
    for event in _events(log, ledger):
        stream.write(separator)
        stream.write(event)
        separator = ",\n"
    stream.write("\n]}\n")


@dataclass(slots=True)
class _Clock:
    """Cycles as the text of a time in microseconds with three decimals: whole nanoseconds."""

    mhz: float

    def ns(self, cycle: int) -> int:
        return int(cycle * 1000 / self.mhz + 0.5)

    def text(self, ns: int) -> str:
        return f"{ns // 1000}.{ns % 1000:03d}"


@dataclass(slots=True)
class _Slice:
    start: int
    end: int
    name: str
    colour: str
    args: str
    arrows: Sequence[tuple[int, bool]] = ()  # number, and whether it begins here


def _events(log: Log, ledger: Ledger) -> Iterator[str]:
    clock = _Clock(log.clock_mhz)
    codes = [json.dumps(lines) for lines in site_lines(log.sites)]
    arrows, details = Arrows(ledger), Details(json.dumps)
    for pid, entry in enumerate(ledger, 1):
        yield _named("process_name", pid, 0, f'"name":{json.dumps(entry.core.name)}')
        yield _named("process_sort_index", pid, 0, f'"sort_index":{pid}')
        yield from _block_track(entry.core, pid, log.cycles, clock)
        touched = arrows.of(pid - 1)
        for pipe in entry.segments:
            lanes = _lanes(_slices(entry, pipe, codes, details, touched, log.cycles))
            yield from _pipe_tracks(lanes, pipe, pid, clock)
            if pipe is not Pipe.S:
                yield from _queue_counter(entry, pipe, pid, log, clock)
        yield from _live_counters(entry, ledger.calls.things, pid, clock)
    yield from _bandwidth(ledger, len(ledger) + 1, clock)


def _named(event: str, pid: int, tid: int, args: str) -> str:
    return f'{{"ph":"M","name":"{event}","pid":{pid},"tid":{tid},"args":{{{args}}}}}'


def _block_track(core: CoreLog, pid: int, cycles: int, clock: _Clock) -> Iterator[str]:
    if not core.blocks:
        return
    yield _named("thread_name", pid, 1, '"name":"blocks"')
    yield _named("thread_sort_index", pid, 1, '"sort_index":1')
    for block, start, end in core.blocks:
        end = end if end >= start else cycles
        args = f'{{"start":{start},"end":{end}}}'
        yield _text(_Slice(start, end, f"block {block}", "generic_work", args), pid, 1, clock)


def _slices(
    entry: CoreLedger, pipe: Pipe, codes: list[str], details: Details,
    arrows: dict[int, list[tuple[int, bool]]], cycles: int,
) -> list[_Slice]:  # fmt: skip
    """Return the pipe's instructions and its waits, sorted by start."""
    slices = []
    for row, item in zip(entry.rows[pipe].tolist(), entry.items(pipe), strict=True):
        if item.kind is Kind.INSTRUCTION and item.start >= 0:
            end = item.end if item.end >= item.start else cycles
            args = _instruction_args(item, end, codes, details)
            slices.append(
                _Slice(item.start, end, item.name, "generic_work", args, arrows.get(row, ()))
            )
        elif item.inserted and item.head >= 0:
            # A barrier mostly waits while results drain, which is busy time: it gets a slice of its own.
            end = max(item.start, item.head + 1)
            args = f'{{"code":{_code(item.site, codes)},"inserted_by":"auto_sync"}}'
            slices.append(_Slice(item.head, end, f"inserted: {item.name}", "good", args))
    for segment in entry.spans(pipe):
        colour = _COLOUR.get(segment.cause)
        if colour is not None:
            args = _wait_args(segment, codes)
            slices.append(
                _Slice(segment.start, segment.end, f"wait: {segment.cause.value}", colour, args)
            )
    slices.sort(key=lambda entry: entry.start)
    return slices


def _instruction_args(item: Item, end: int, codes: list[str], details: Details) -> str:
    size = f',"bytes":{item.bytes}' if item.bytes else ""
    parts = ""
    own = item.parts
    if own is not None:
        position, spent = item.start, []
        for cause, sub, part_end in own:
            spent.append(f"{_cause_text(cause, sub)} {part_end - position}")
            position = part_end
        parts = f',"spent":"{", ".join(spent)}"'
    return (
        f'{{"code":{_code(item.site, codes)},"detail":{details.of(item)},"issue":{item.issue},'
        f'"start":{item.start},"end":{end}{size}{parts}}}'
    )


def _cause_text(cause: Cause, sub: MemoryCause | None) -> str:
    return _CAUSES[cause] if sub is None else f"{_CAUSES[cause]}/{_SUB_CAUSES[sub]}"


def _wait_args(segment: Segment, codes: list[str]) -> str:
    text = f'{{"start":{segment.start},"end":{segment.end}'
    origin = segment.origin
    if isinstance(origin, Stall):
        text += f',"code":{_code(origin.site, codes)}'
        text += f',"detail":{json.dumps(origin.detail)}' if origin.detail else ""
    elif origin is not None:
        text += f',"code":{_code(origin.site, codes)}'
        if origin.partner is not None:
            text += f',"released_by":{_code(origin.partner.site, codes)}'
    return text + "}"


def _code(site: int, codes: list[str]) -> str:
    return codes[site] if 0 <= site < len(codes) else '""'


def _lanes(slices: list[_Slice]) -> list[list[_Slice]]:
    """Put each slice on the first lane that is free at its start."""
    lanes: list[list[_Slice]] = [[]]
    free = [0]
    for entry in slices:
        lane = next((number for number, end in enumerate(free) if end <= entry.start), len(free))
        if lane == len(free):
            lanes.append([])
            free.append(0)
        lanes[lane].append(entry)
        free[lane] = entry.end
    return lanes


def _pipe_tracks(lanes: list[list[_Slice]], pipe: Pipe, pid: int, clock: _Clock) -> Iterator[str]:
    for place, lane in enumerate(lanes):
        tid = _TRACKS_OF_A_PIPE * (pipe + 1) + place
        name = pipe.name if place == 0 else f"{pipe.name}#{place}"
        yield _named("thread_name", pid, tid, f'"name":"{name}"')
        yield _named("thread_sort_index", pid, tid, f'"sort_index":{tid}')
        for entry in lane:
            yield _text(entry, pid, tid, clock)
            for number, begins in entry.arrows:
                yield _arrow_text(number, entry, pid, tid, clock, begins=begins)


def _text(entry: _Slice, pid: int, tid: int, clock: _Clock) -> str:
    start, end = clock.ns(entry.start), clock.ns(entry.end)
    return (
        f'{{"ph":"X","name":"{entry.name}","cname":"{entry.colour}","ts":{clock.text(start)},'
        f'"dur":{clock.text(end - start)},"pid":{pid},"tid":{tid},"args":{entry.args}}}'
    )


def _arrow_text(
    number: int, entry: _Slice, pid: int, tid: int, clock: _Clock, *, begins: bool
) -> str:
    """Draw one end inside its slice: viewers bind an arrow to the slice that is open at its time."""
    start = clock.ns(entry.start)
    if begins:
        ns, phase, binding = max(start, clock.ns(entry.end) - 1), "s", ""
    else:
        ns, phase, binding = start, "f", '"bp":"e",'
    return (
        f'{{"ph":"{phase}","name":"flag","cat":"flag","id":{number},{binding}'
        f'"ts":{clock.text(ns)},"pid":{pid},"tid":{tid}}}'
    )


def _queue_counter(
    entry: CoreLedger, pipe: Pipe, pid: int, log: Log, clock: _Clock
) -> Iterator[str]:
    """Yield the most items that were issued and not yet begun, in each of up to 2,000 stretches."""
    changes: dict[int, int] = {}
    for item in entry.items(pipe):
        if item.issue >= 0:
            begun = item.start if item.start >= item.issue else log.cycles
            changes[item.issue] = changes.get(item.issue, 0) + 1
            changes[begun] = changes.get(begun, 0) - 1
    width = max(1, math.ceil(log.cycles / _SAMPLES))
    peaks: dict[int, int] = {}
    depth = 0
    for cycle in sorted(changes):
        stretch, inside = divmod(cycle, width)
        carried = (
            depth if inside else 0
        )  # what a stretch begins with counts unless it changes at once
        depth += changes[cycle]
        peaks[stretch] = max(peaks.get(stretch, carried), depth)
        peaks[stretch + 1] = depth
    before = 0
    for stretch, peak in peaks.items():
        if peak != before:
            yield _sample(f"{pipe.name} queue", pid, stretch * width, f'"items":{peak}', clock)
        before = peak


def _live_counters(
    entry: CoreLedger, calls: Sequence[Any], pid: int, clock: _Clock
) -> Iterator[str]:
    """Yield how many bytes of each on-chip memory hold a value that is still used."""
    found = residents(entry, calls)
    for space in sorted({one.space for one in found}):
        for cycle, live in live_bytes(found, space):
            yield _sample(f"{space.name} live", pid, cycle, f'"bytes":{live}', clock)


def _sample(name: str, pid: int, cycle: int, value: str, clock: _Clock) -> str:
    ts = clock.text(clock.ns(cycle))
    return f'{{"ph":"C","name":"{name}","pid":{pid},"tid":0,"ts":{ts},"args":{{{value}}}}}'


def _bandwidth(ledger: Ledger, pid: int, clock: _Clock) -> Iterator[str]:
    """Yield GB/s (10^9 bytes) to and from GM over all cores, in up to 2,000 stretches."""
    width = max(64, math.ceil(ledger.log.cycles / _SAMPLES))
    named = False
    for path, title in (("GM_TO_TOTAL", "GM read"), ("TOTAL_TO_GM", "GM write")):
        values = gm_rates(ledger, width).get(path, [])
        before = 0.0
        for stretch, moved in enumerate([*values, 0.0] if values else []):
            rate = round(moved / width * ledger.log.clock_mhz / 1000, 3)
            if rate == before:
                continue
            if not named:
                yield _named("process_name", pid, 0, '"name":"GM"')
                yield _named("process_sort_index", pid, 0, f'"sort_index":{pid}')
                named = True
            yield _sample(title, pid, stretch * width, f'"GB/s":{rate!r}', clock)
            before = rate
