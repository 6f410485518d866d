"""`trace.json`: the run in the format of the vendor's simulator, as MindStudio Insight's importer reads it.

All cores in one file (schema version 2). Times are microseconds as doubles. The importer reads only the
text before the first `[` to tell the kind of file, hence the fixed order of the top keys; it pairs
`SET_FLAG` and `WAIT_FLAG` by `id` and hides lanes that a partial list of sort indices leaves out. The
names of lanes, colours and counters are the vendor's. Written event by event: a large run is never held
as one string.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TextIO

from ascend_sim.config import Chip
from ascend_sim.report.flags import FlagNames
from ascend_sim.report.ledger import Ledger, build_ledger
from ascend_sim.report.names import Details, site_lines
from ascend_sim.report.rates import gm_rates
from ascend_sim.trace import Cause, CoreLog, Item, Kind, Log, Stall
from isa.types import EVENT_PIPES, PIPES_OF, CoreKind, Pipe

LANES = (
    "SCALAR", "FLOWCTRL", "MTE1", "CUBE", "FIXP", "MTE2", "VECTOR", "MTE3", "CACHEMISS", "SCALARLDST",
    "ALL",
)  # fmt: skip
"""The vendor's lanes of a core; the sort index of a lane is its place in this list, from 1."""

LANE_OF = {
    Pipe.S: "SCALAR",
    Pipe.V: "VECTOR",
    Pipe.M: "CUBE",
    Pipe.MTE1: "MTE1",
    Pipe.MTE2: "MTE2",
    Pipe.MTE3: "MTE3",
    Pipe.FIX: "FIXP",
}
_FLAG_PIPE = {pipe: "VEC" if pipe is Pipe.V else lane for pipe, lane in LANE_OF.items()}
COLOUR = {
    Pipe.S: "startup",
    Pipe.V: "cq_build_failed",
    Pipe.M: "background_memory_dump",
    Pipe.MTE1: "thread_state_running",
    Pipe.MTE2: "thread_state_iowait",
    Pipe.MTE3: "rail_response",
    Pipe.FIX: "thread_state_unknown",
}
CACHE_LANE, CACHE_COLOUR = "CACHEMISS", "thread_state_runnable"
"""Lane and colour of the scalar unit's waits for code."""
_FIRST_ADDRESS = 0x1000


def site_address(site: int) -> str:
    """Return what stands for a call's address: places of calls are numbered as instructions would be."""
    return f"{_FIRST_ADDRESS + 4 * site:#x}"


def write_chrome_trace(log: Log, chip: Chip, stream: TextIO, ledger: Ledger | None = None) -> None:
    """Write the run to `stream`; `ledger` saves building it again."""
    del chip  # the log knows its clock
    ledger = build_ledger(log) if ledger is None else ledger
    stream.write('{"displayTimeUnit":"ns","profilingType":"op","schemaVersion":2,"traceEvents":[')
    separator = "\n"
    for event in _events(ledger):
        stream.write(separator)
        stream.write(event)
        separator = ",\n"
    stream.write("\n]}\n")


@dataclass(slots=True)
class _Writer:
    """What all events of a log share: the clock, JSON text of places, the ids of sets and waits."""

    mhz: float
    cycles: int
    codes: list[str]
    names: FlagNames
    processes: list[str] = field(default_factory=list)
    details: Details = field(default_factory=lambda: Details(json.dumps))

    def args(self, item: Item, detail: str) -> str:
        """Return the arguments of an event; `detail` is JSON already."""
        address = site_address(item.site)
        code = self.codes[item.site] if item.site < len(self.codes) else '""'
        size = f',"process_bytes":"{item.bytes}"' if item.bytes else ""
        return f'{{"pc_addr":"{address}","code":{code},"detail":{detail}{size}}}'

    def end(self, item: Item) -> int:
        """Return the item's end; what a run that broke off left open ends with it."""
        return item.end if item.end >= 0 else self.cycles


def process_name(core: CoreLog) -> tuple[str, int]:
    """Return the vendor's name of a core and its sort index: `core0.veccore1`, 3N + 2 + v."""
    pair, _, member = core.name.partition(".")
    number = int(pair.removeprefix("core") or 0)
    if core.kind is CoreKind.AIC:
        return f"{pair}.cubecore0", 3 * number + 1
    vector = int(member.removeprefix("aiv") or 0)
    return f"{pair}.veccore{vector}", 3 * number + 2 + vector


def _events(ledger: Ledger) -> Iterator[str]:
    log = ledger.log
    codes = [json.dumps(lines) for lines in site_lines(log.sites)]
    names = FlagNames(ledger, [process_name(core)[0] for core in log.cores])
    writer = _Writer(log.clock_mhz, log.cycles, codes, names)
    writer.processes = [json.dumps(process_name(core)[0]) for core in log.cores]
    for index, core in enumerate(log.cores):
        yield from _order(core, writer.processes[index])
        yield from _core_events(core, index, writer)
    yield from _throughput(ledger)


def _order(core: CoreLog, pid: str) -> Iterator[str]:
    """Yield the sort indices of a core and of every lane of it, with and without events."""
    _, order = process_name(core)
    yield (
        f'{{"ph":"M","name":"process_sort_index","pid":{pid},"tid":"NA",'
        f'"args":{{"sort_index":{order}}}}}'
    )
    own = {LANE_OF[pipe] for pipe in PIPES_OF[core.kind]} | {"FLOWCTRL", "CACHEMISS"}
    own |= {"SCALARLDST", "ALL"}
    for place, lane in enumerate(LANES, 1):
        if lane in own:
            yield (
                f'{{"ph":"M","name":"thread_sort_index","pid":{pid},"tid":"{lane}",'
                f'"args":{{"sort_index":{place}}}}}'
            )


def _core_events(core: CoreLog, index: int, writer: _Writer) -> Iterator[str]:
    pid = writer.processes[index]
    free = dict.fromkeys(PIPES_OF[core.kind], 0)
    for row, item in enumerate(core.items):
        stuck = item.kind is Kind.WAIT_FLAG and item.head >= 0
        if item.start < 0 and not stuck:
            continue
        end = writer.end(item)
        if item.kind is Kind.INSTRUCTION:
            yield _instruction(item, end, pid, writer)
        elif item.kind is Kind.BARRIER:
            detail = '"inserted by auto_sync"' if item.inserted else '""'
            yield _slice(item, "BAR", (max(end - 1, 0), end), pid, writer, detail)
        else:
            name = writer.names.of(index, row)
            yield from _flag(item, name, (free[item.pipe], end), pid, writer)
            if item.kind is Kind.WAIT_FLAG and item.partner is not None:
                yield from _arrow(item, name, end, pid, writer)
        free[item.pipe] = max(free[item.pipe], end)
    for stall in core.stalls:
        if stall.cause is Cause.SCALAR:
            yield cache_miss(stall, (pid, f'"{CACHE_LANE}"'), writer.mhz, writer.codes)


def cache_miss(stall: Stall, track: tuple[Any, Any], mhz: float, codes: list[str]) -> str:
    """Return the slice of a wait for code; process and thread of `track`, and places of calls, are JSON already."""
    code = codes[stall.site] if stall.site < len(codes) else '""'
    return (
        f'{{"ph":"X","name":"ICACHE_MISS","cname":"{CACHE_COLOUR}","ts":{stall.start / mhz!r},'
        f'"dur":{(stall.end - stall.start) / mhz!r},"pid":{track[0]},"tid":{track[1]},'
        f'"args":{{"pc_addr":"{site_address(stall.site)}","code":{code},"detail":""}}}}'
    )


def _instruction(item: Item, end: int, pid: str, writer: _Writer) -> str:
    return _slice(item, item.name, (item.start, end), pid, writer, writer.details.of(item))


def _slice(
    item: Item, name: str, cycles: tuple[int, int], pid: str, writer: _Writer, detail: str
) -> str:
    start, end = cycles
    lane, colour = LANE_OF[item.pipe], COLOUR[item.pipe]
    if item.kind is Kind.BARRIER and item.pipe is Pipe.S:
        lane, colour = "ALL", "good"  # the scalar unit's barrier is the one of all pipes
    return (
        f'{{"ph":"X","name":"{name}","cname":"{colour}","ts":{start / writer.mhz!r},'
        f'"dur":{(end - start) / writer.mhz!r},"pid":{pid},"tid":"{lane}",'
        f'"args":{writer.args(item, detail)}}}'
    )


def _flag(
    item: Item, identity: str, cycles: tuple[int, int], pid: str, writer: _Writer
) -> Iterator[str]:
    """Yield begin and end of a set (one cycle) or of a wait (from the pipe's last end to its release)."""
    free, end = cycles
    if item.kind is Kind.SET_FLAG:
        name, colour, begin = "SET_FLAG", "black", max(end - 1, 0)
    else:
        arrived = item.head if item.head >= 0 else max(item.issue, 0)
        name, colour, begin = "WAIT_FLAG", "yellow", min(max(arrived, free), end)
    place = f'"pid":{pid},"tid":"{LANE_OF[item.pipe]}"'
    common = f'"name":"{name}","cname":"{colour}","id":"{identity}"'
    paired = item  # ids that belong to a source pipe let one event's set release another one's wait
    if item.kind is Kind.WAIT_FLAG and item.event is not None and item.partner is not None:
        paired = item.partner
    args = writer.args(item, f'"{flag_detail(paired)}"')
    yield f'{{"ph":"B",{common},"ts":{begin / writer.mhz!r},{place},"args":{args}}}'
    yield f'{{"ph":"E",{common},"ts":{end / writer.mhz!r},{place},"args":{{}}}}'


def flag_detail(item: Item) -> str:
    """Return what the vendor's importer pairs sets and waits by; the same text on both sides."""
    if item.event is None:
        return f"FLAGID:{item.event_id},"
    source, target = EVENT_PIPES[item.event]
    return f"PIPE:{_FLAG_PIPE[source]},TRIGGERPIPE:{_FLAG_PIPE[target]},FLAGID:{item.event_id},"


def _arrow(wait: Item, identity: str, end: int, pid: str, writer: _Writer) -> Iterator[str]:
    source = wait.partner
    if source is None or source.start < 0:
        return
    from_lane, to_lane = LANE_OF[source.pipe], LANE_OF[wait.pipe]
    common = f'"name":"flow","id":"{identity}","cat":"{from_lane}To{to_lane}"'
    set_end = writer.end(source) / writer.mhz
    yield (
        f'{{"ph":"s",{common},"ts":{set_end!r},"pid":{writer.processes[source.core]},'
        f'"tid":"{from_lane}"}}'
    )
    yield f'{{"ph":"t",{common},"ts":{end / writer.mhz!r},"pid":{pid},"tid":"{to_lane}"}}'


def _throughput(ledger: Ledger) -> Iterator[str]:
    """Yield what each path moved in every microsecond, at its end; only where it changes.

    A byte a microsecond is 1 MB/s (10^6 bytes a second).
    """
    for path, values in gm_rates(ledger, ledger.log.clock_mhz).items():
        before = None
        for end, value in enumerate(values, 1):
            if value != before:
                yield (
                    f'{{"ph":"C","name":"{path}","pid":"MTE Throughput","tid":0,"ts":{end},'
                    f'"args":{{"throughput(MB/s)":{value!r}}}}}'
                )
                before = value
