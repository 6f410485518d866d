"""Both trace formats read as strictly as their viewers do, and their sums by track beside those of `pipes.csv`."""

from __future__ import annotations

import csv
import io
import json
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from tempfile import SpooledTemporaryFile
from typing import Any

import numpy as np

from ascend_sim.report.chain import longest_chain
from ascend_sim.report.chrome import LANE_OF, LANES, process_name, write_chrome_trace
from ascend_sim.report.ledger import Ledger, build_ledger
from ascend_sim.report.perfetto import write_perfetto_trace
from ascend_sim.report.summary import build_summary
from ascend_sim.report.tables import write_pipes
from ascend_sim.run import Run
from isa.types import Pipe

Event = dict[str, Any]
REQUIRED = {
    "X": ["ph", "name", "cname", "ts", "dur", "pid", "tid", "args"],
    "B": ["ph", "name", "cname", "id", "ts", "pid", "tid", "args"],
    "E": ["ph", "name", "cname", "id", "ts", "pid", "tid", "args"],
    "s": ["ph", "name", "id", "cat", "ts", "pid", "tid"],
    "t": ["ph", "name", "id", "cat", "ts", "pid", "tid"],
    "M": ["ph", "name", "pid", "tid", "args"],
    "C": ["ph", "name", "pid", "tid", "ts", "args"],
}
CHROME_HEAD = '{"displayTimeUnit":"ns","profilingType":"op","schemaVersion":2,"traceEvents":['
PERFETTO_HEAD = '{"displayTimeUnit":"ns","otherData":{'
IN_MEMORY = 1 << 26
"""Bytes of a trace from which on it goes through a file."""
COUNTERS = {"GM_TO_L1", "GM_TO_TOTAL", "GM_TO_UB", "L1_TO_GM", "TOTAL_TO_GM", "UB_TO_GM"}


def events_of(file: Iterable[str], head: str) -> Iterator[Event]:
    """Yield the events of a trace file, of which each has a line; fail on what would not be JSON as a whole."""
    lines = iter(file)
    first = next(lines)
    assert first.startswith(head)
    assert json.loads(first + "]}")["traceEvents"] == []
    before: str | None = None
    for line in lines:
        text = line.rstrip("\n")
        if text == "]}":
            assert before != ",", "a comma without an event behind it"
            break
        assert before in (None, ","), "two events without a comma between them"
        before = text[-1]
        event: Event = json.loads(text.removesuffix(","))
        yield event
    assert not list(lines)


def read_chrome(file: str | Iterable[str]) -> list[Event]:
    """Read a file by the importer's rules; fail where it would drop or misread anything."""
    return list(chrome_events(io.StringIO(file) if isinstance(file, str) else file))


def chrome_events(file: Iterable[str]) -> Iterator[Event]:
    """Yield the events of a file that the importer takes; see `read_chrome`."""
    lanes: dict[str, dict[str, int]] = {}
    cores: dict[str, int] = {}
    used: set[tuple[str, str]] = set()
    open_flags: dict[tuple[str, str], Event] = {}
    flags: dict[tuple[str, str], tuple[Event, float]] = {}
    flows: dict[str, list[Event]] = {}
    for event in events_of(file, CHROME_HEAD):
        assert list(event) == REQUIRED[event["ph"]]
        assert event["pid"]
        assert event["tid"] or event["ph"] == "C"
        if event["ph"] not in "MC":
            used.add((event["pid"], event["tid"]))
        if event["ph"] == "M":
            index = event["args"]["sort_index"]
            if event["name"] == "process_sort_index":
                assert event["tid"] == "NA"
                cores[event["pid"]] = index
            else:
                assert event["name"] == "thread_sort_index"
                assert LANES[index - 1] == event["tid"]
                lanes.setdefault(event["pid"], {})[event["tid"]] = index
        elif event["ph"] == "C":
            assert event["pid"] == "MTE Throughput" and event["tid"] == 0
            assert event["name"] in COUNTERS
            assert isinstance(event["ts"], int) and event["ts"] > 0
            assert list(event["args"]) == ["throughput(MB/s)"]
            assert event["args"]["throughput(MB/s)"] >= 0
        elif event["ph"] == "X":
            assert isinstance(event["ts"], float) and event["ts"] >= 0
            assert isinstance(event["dur"], float) and event["dur"] >= 0
            check_args(event)
        elif event["ph"] == "B":
            assert event["name"] in ("SET_FLAG", "WAIT_FLAG")
            check_args(event)
            key = (event["name"], event["id"])
            assert key not in open_flags and key not in flags, "an id pairs one set and one wait"
            open_flags[key] = event
        elif event["ph"] == "E":
            begin = open_flags.pop((event["name"], event["id"]))
            assert (begin["pid"], begin["tid"]) == (event["pid"], event["tid"])
            assert begin["ts"] <= event["ts"]
            flags[event["name"], event["id"]] = (begin, event["ts"])
        else:
            flows.setdefault(event["id"], []).append(event)
        yield event
    assert not open_flags
    for core, lane in used:
        assert core in cores
        assert lane in lanes[core], "a lane without a sort index is hidden"
    check_flows(flows, flags)


def check_args(event: dict[str, Any]) -> None:
    args = event["args"]
    assert list(args)[:3] == ["pc_addr", "code", "detail"]
    assert all(isinstance(value, str) for value in args.values())
    assert re.fullmatch(r"0x[0-9a-f]+", args["pc_addr"])
    # What the simulator itself adds at a kernel's end stands nowhere in the user's program.
    for line in args["code"].split("\n") if args["code"] else ():
        assert re.fullmatch(r"[^:]+:\d+", line)
    assert set(args) - {"pc_addr", "code", "detail"} <= {"process_bytes"}


def check_flows(
    flows: dict[str, list[dict[str, Any]]],
    flags: dict[tuple[str, str], tuple[dict[str, Any], float]],
) -> None:
    for identity, ends in flows.items():
        assert [event["ph"] for event in ends] == ["s", "t"]
        source, target = ends
        assert source["name"] == target["name"] == "flow"
        assert source["cat"] == target["cat"] == f"{source['tid']}To{target['tid']}"
        wait, wait_end = flags["WAIT_FLAG", identity]
        assert (target["pid"], target["tid"], target["ts"]) == (wait["pid"], wait["tid"], wait_end)
        if ("SET_FLAG", identity) in flags:
            ready, set_end = flags["SET_FLAG", identity]
            assert (source["pid"], source["ts"]) == (ready["pid"], set_end)
            assert ready["args"]["detail"] == wait["args"]["detail"]


def nanoseconds(microseconds: float) -> int:
    ns = microseconds * 1000
    assert abs(ns - round(ns)) < 1e-3, "a time that is no whole nanosecond"
    return round(ns)


def read_perfetto(file: str | Iterable[str]) -> list[Event]:
    """Read the file as Perfetto does; fail on anything that it would drop, nest or bind wrongly."""
    return list(perfetto_events(io.StringIO(file) if isinstance(file, str) else file))


def perfetto_events(file: Iterable[str]) -> Iterator[Event]:
    """Yield the events of a file that Perfetto takes; see `read_perfetto`."""
    names: dict[tuple[str, int, int], str] = {}
    reached: dict[tuple[int, int], tuple[int, int]] = {}  # by track: its latest slice
    latest: dict[tuple[int, int], Event] = {}
    flows: dict[int, dict[str, Event]] = {}
    for event in events_of(file, PERFETTO_HEAD):
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
        track = (event["pid"], event["tid"])
        if event["ph"] == "M":
            kind = event["name"]
            assert kind in (
                "process_name",
                "process_sort_index",
                "thread_name",
                "thread_sort_index",
            )
            if kind.endswith("_name"):
                assert (kind, *track) not in names
                names[kind, *track] = event["args"]["name"]
        elif event["ph"] == "X":
            assert ("process_name", event["pid"], 0) in names
            assert ("thread_name", *track) in names
            start, length = nanoseconds(event["ts"]), nanoseconds(event["dur"])
            assert length >= 0
            before = reached.get(track, (start, start))
            assert before[1] <= start, "two slices of one track overlap"
            assert before <= (start, start + length), "the slices of a track are not in order"
            reached[track] = (start, start + length)
            latest[track] = event
        elif event["ph"] == "C":
            assert ("process_name", event["pid"], 0) in names
            (value,) = event["args"].values()
            assert value >= 0
        else:
            assert event["ph"] in "sf"
            assert event.get("bp") == ("e" if event["ph"] == "f" else None)
            slice_ = latest[track]  # the slice right before it in the file
            at, start = nanoseconds(event["ts"]), nanoseconds(slice_["ts"])
            assert start <= at <= start + nanoseconds(slice_["dur"])
            assert event["ph"] not in flows.setdefault(event["id"], {})
            flows[event["id"]][event["ph"]] = event
        yield event
    for ends in flows.values():
        assert set(ends) == {"s", "f"}
        assert nanoseconds(ends["s"]["ts"]) <= nanoseconds(ends["f"]["ts"])
        assert ends["s"]["cat"] == ends["f"]["cat"]


WAITS = ("flag", "buffer", "barrier", "queue_full", "scalar", "cross_core", "tail", "launch")


def check_exports(run: Run, ledger: Ledger | None = None) -> None:
    """Write both traces and `pipes.csv`, read them back strictly, and compare the sums of every track."""
    ledger = run.ledger if ledger is None else ledger
    table = io.StringIO()
    write_pipes(run.log, run.chip, table, ledger)
    table.seek(0)
    pipes = {(row["core"], row["pipe"]): row for row in csv.DictReader(table)}
    with SpooledTemporaryFile(IN_MEMORY, "w+", encoding="utf-8") as file:
        write_perfetto_trace(run.log, run.chip, file, ledger)
        file.seek(0)
        compare_perfetto(perfetto_events(file), pipes)
    names = {process_name(core)[0]: core.name for core in run.log.cores}
    with SpooledTemporaryFile(IN_MEMORY, "w+", encoding="utf-8") as file:
        write_chrome_trace(run.log, run.chip, file, ledger)
        file.seek(0)
        compare_chrome(chrome_events(file), pipes, names, run.log.clock_mhz)


def check_reports(run: Run) -> None:
    """Check what holds for the reports of every run: time tiles, no bound is above it, the traces can be read.

    Makes a ledger of its own: a run keeps none of what a test may still change.
    """
    ledger = build_ledger(run.log)
    check_exports(run, ledger)
    if run.origin is not None:  # else it was cut short, with some of its work undone
        about = {"options": run.options, "block_dim": run.blocks}
        check_bounds(build_summary(run.log, run.chip, [], None, about, ledger))
        if all(
            finding.kind != "RACE" for finding in run.findings
        ):  # a race does not wait for its data
            assert longest_chain(ledger, run.chip) <= run.cycles


def check_bounds(summary: dict[str, Any]) -> None:
    """Nothing that bounds a run from below is above what it took."""
    found = summary["roofline"]
    assert all(roof["cycles"] <= found["kernel_cycles"] + 1 for roof in found["roofs"]), found
    assert found["operator"]["lower_bound_cycles"] <= summary["cycles"]
    assert summary["bound"]["lower_bound_cycles"] <= summary["cycles"]
    assert summary["as_written"]["lower_bound_cycles"] <= summary["cycles"]


def compare_perfetto(events: Iterable[Event], pipes: dict[tuple[str, str], dict[str, str]]) -> None:
    """Every cause of every track adds up to what the table has, and so do the instructions."""
    cores: dict[int, str] = {}
    tracks: dict[tuple[int, int], str] = {}
    waits: Counter[tuple[str, str, str]] = Counter()
    spans: dict[tuple[str, str], array[int]] = {}
    for event in events:
        if event["ph"] == "M" and event["name"] == "process_name":
            cores[event["pid"]] = event["args"]["name"]
        elif event["ph"] == "M" and event["name"] == "thread_name":
            tracks[event["pid"], event["tid"]] = event["args"]["name"].partition("#")[0]
        elif event["ph"] == "X" and "start" in event["args"]:
            track = cores[event["pid"]], tracks[event["pid"], event["tid"]]
            span = event["args"]["start"], event["args"]["end"]
            if event["name"].startswith("wait: "):
                waits[*track, event["name"][6:]] += span[1] - span[0]
            elif "issue" in event["args"]:
                spans.setdefault(track, array("q")).extend(span)
    for (core, pipe), row in pipes.items():
        for cause in WAITS:
            assert waits[core, pipe, cause] == int(row[cause]), (core, pipe, cause)
        if pipe != "S":
            assert covered(spans.get((core, pipe), ())) == taken(row), (core, pipe)


def compare_chrome(
    events: Iterable[Event],
    pipes: dict[tuple[str, str], dict[str, str]],
    names: dict[str, str],
    mhz: float,
) -> None:
    """What the instructions of every lane cover is what the table says that the pipe is occupied."""
    spans: dict[tuple[str, str], array[int]] = {}
    for event in events:
        if event["ph"] == "X" and event["name"] != "BAR":
            start = round(event["ts"] * mhz)
            track = names[event["pid"]], event["tid"]
            span = start, start + round(event["dur"] * mhz)
            spans.setdefault(track, array("q")).extend(span)
    for (core, pipe), row in pipes.items():
        if pipe != "S":
            lane = LANE_OF[Pipe[pipe]]
            assert covered(spans.get((core, lane), ())) == taken(row), (core, pipe)


def taken(row: dict[str, str]) -> int:
    """Cycles in which a pipe has an instruction in flight."""
    return int(row["occupied"]) + int(row["bank_conflict"])


def covered(spans: Sequence[int]) -> int:
    """Cycles that at least one of some spans covers: starts and ends in turns."""
    if not spans:
        return 0
    table = np.array(spans, np.int64).reshape(-1, 2)
    table = table[np.argsort(table[:, 0], kind="stable")]
    reach = np.maximum.accumulate(table[:, 1])
    known = np.concatenate([table[:1, 0], reach[:-1]])
    return int(np.maximum(table[:, 1] - np.maximum(table[:, 0], known), 0).sum())
