"""`trace.json` read by a reader as strict as the vendor's importer is by its source."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from synthetic import add_log, item, logs

from ascend_sim.config import load_chip
from ascend_sim.report.chrome import LANES, write_chrome_trace
from ascend_sim.report.ledger import build_ledger
from ascend_sim.report.rates import gm_rates
from ascend_sim.trace import CoreLog, Kind, Log, Site
from isa.types import CoreKind, HardEvent, Pipe

TOY = load_chip("toy")
REQUIRED = {
    "X": ["ph", "name", "cname", "ts", "dur", "pid", "tid", "args"],
    "B": ["ph", "name", "cname", "id", "ts", "pid", "tid", "args"],
    "E": ["ph", "name", "cname", "id", "ts", "pid", "tid", "args"],
    "s": ["ph", "name", "id", "cat", "ts", "pid", "tid"],
    "t": ["ph", "name", "id", "cat", "ts", "pid", "tid"],
    "M": ["ph", "name", "pid", "tid", "args"],
    "C": ["ph", "name", "pid", "tid", "ts", "args"],
}
COUNTERS = {"GM_TO_L1", "GM_TO_TOTAL", "GM_TO_UB", "L1_TO_GM", "TOTAL_TO_GM", "UB_TO_GM"}


def written(log: Log) -> str:
    stream = io.StringIO()
    write_chrome_trace(log, TOY, stream)
    return stream.getvalue()


def read_strictly(text: str) -> list[dict[str, Any]]:
    """Read a file by the importer's rules; fail where it would drop or misread anything."""
    head, bracket, _ = text.partition("[")
    assert bracket
    assert head == '{"displayTimeUnit":"ns","profilingType":"op","schemaVersion":2,"traceEvents":'
    events: list[dict[str, Any]] = json.loads(text)["traceEvents"]
    lanes: dict[str, dict[str, int]] = {}
    cores: dict[str, int] = {}
    open_flags: dict[tuple[str, str], dict[str, Any]] = {}
    flags: dict[tuple[str, str], tuple[dict[str, Any], float]] = {}
    flows: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        assert list(event) == REQUIRED[event["ph"]]
        assert event["pid"]
        assert event["tid"] or event["ph"] == "C"
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
    assert not open_flags
    for event in events:
        if event["ph"] not in "MC":
            assert event["pid"] in cores
            assert event["tid"] in lanes[event["pid"]], "a lane without a sort index is hidden"
    check_flows(flows, flags)
    return events


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


@given(logs())
@settings(max_examples=60, deadline=None)
def test_a_strict_reader_takes_every_event_of_a_random_run(log: Log) -> None:
    events = read_strictly(written(log))
    items = [entry for core in log.cores for entry in core.items]
    slices = [event for event in events if event["ph"] == "X"]
    begins = [event for event in events if event["ph"] == "B"]
    assert len(slices) == sum(i.kind in (Kind.INSTRUCTION, Kind.BARRIER) for i in items)
    assert len(begins) == sum(i.kind in (Kind.SET_FLAG, Kind.WAIT_FLAG) for i in items)
    assert written(log) == written(log)


def test_the_events_of_a_copy_add_copy() -> None:
    events = read_strictly(written(add_log()))
    by_kind = {}
    for event in events:
        by_kind.setdefault((event["ph"], event["tid"]), []).append(event)
    (load,) = by_kind["X", "MTE2"]
    assert load == {
        "ph": "X", "name": "data_copy", "cname": "thread_state_iowait", "ts": 0.12, "dur": 0.18,
        "pid": "core0.veccore0", "tid": "MTE2",
        "args": {
            "pc_addr": "0x1000", "code": "kernel.py:10\nmain.py:5",
            "detail": "dst UB[0:8192], src x[0:8192]", "process_bytes": "8192",
        },
    }  # fmt: skip
    begin, end = by_kind["B", "VECTOR"][0], by_kind["E", "VECTOR"][0]
    assert (begin["name"], begin["id"], begin["ts"]) == ("WAIT_FLAG", "core0.veccore0_0", 0.13)
    assert (end["id"], end["ts"], end["args"]) == ("core0.veccore0_0", 0.301, {})
    assert begin["args"]["detail"] == "PIPE:MTE2,TRIGGERPIPE:VEC,FLAGID:0,"
    ready = by_kind["B", "MTE2"][0]
    assert (ready["name"], ready["cname"], ready["ts"]) == ("SET_FLAG", "black", 0.3)
    assert [event["cat"] for event in events if event["ph"] == "s"] == [
        "MTE2ToVECTOR", "VECTORToMTE3",
    ]  # fmt: skip
    lanes = {e["tid"]: e["args"]["sort_index"] for e in events if e["name"] == "thread_sort_index"}
    assert lanes == {
        "SCALAR": 1, "FLOWCTRL": 2, "MTE2": 6, "VECTOR": 7, "MTE3": 8, "CACHEMISS": 9,
        "SCALARLDST": 10, "ALL": 11,
    }  # fmt: skip


def test_a_wait_begins_where_its_pipe_ended_its_last_work() -> None:
    core = CoreLog("core3.aiv1", CoreKind.AIV, start=0, end=50)
    item(core, Pipe.V, Kind.INSTRUCTION, 0, 20, accept=10)
    item(core, Pipe.V, Kind.WAIT_FLAG, 30, 31, head=10, event=HardEvent.MTE2_V, event_id=2)
    item(core, Pipe.V, Kind.BARRIER, 40, 41, head=31)
    item(core, Pipe.S, Kind.BARRIER, 50, 50, head=31)
    log = Log("toy", 1000.0, [core], [Site((("a.py", 1, "f"),))], cycles=50)
    events = read_strictly(written(log))
    assert [event["ts"] for event in events if event["ph"] in "BE"] == [0.02, 0.031]
    barriers = [(e["ts"], e["dur"], e["tid"]) for e in events if e["name"] == "BAR"]
    assert barriers == [(0.04, 0.001, "VECTOR"), (0.049, 0.001, "ALL")]
    (order,) = [event for event in events if event["name"] == "process_sort_index"]
    assert (order["pid"], order["args"]["sort_index"]) == ("core3.veccore1", 3 * 3 + 2 + 1)


def test_one_set_that_releases_two_cores_draws_two_arrows() -> None:
    first = CoreLog("core0.aic", CoreKind.AIC, start=0, end=50)
    second = CoreLog("core0.aiv0", CoreKind.AIV, start=0, end=50)
    ready = item(first, Pipe.FIX, Kind.SET_FLAG, 10, 11, event_id=3)
    for pipe in (Pipe.MTE2, Pipe.V):
        wait = item(second, pipe, Kind.WAIT_FLAG, 20, 20, head=0, partner=ready, event_id=3)
        wait.core = 1
    log = Log("toy", 1000.0, [first, second], [Site((("a.py", 1, "f"),))], cycles=50)
    events = read_strictly(written(log))
    arrows = [(e["ph"], e["pid"], e["tid"], e["cat"]) for e in events if e["ph"] in "st"]
    assert arrows == [
        ("s", "core0.cubecore0", "FIXP", "FIXPToMTE2"), ("t", "core0.veccore0", "MTE2", "FIXPToMTE2"),
        ("s", "core0.cubecore0", "FIXP", "FIXPToVECTOR"),
        ("t", "core0.veccore0", "VECTOR", "FIXPToVECTOR"),
    ]  # fmt: skip


def test_what_a_broken_run_left_open_ends_with_it_and_what_never_began_is_left_out() -> None:
    core = CoreLog("core0.aiv0", CoreKind.AIV, start=0)
    item(core, Pipe.MTE2, Kind.INSTRUCTION, 10, -1)
    item(core, Pipe.V, Kind.WAIT_FLAG, -1, -1, head=20)
    item(core, Pipe.V, Kind.WAIT_FLAG, -1, -1, head=-1)
    item(core, Pipe.V, Kind.INSTRUCTION, -1, -1, head=-1)
    log = Log("toy", 1000.0, [core], [Site((("a.py", 1, "f"),))], cycles=40)
    events = [event for event in read_strictly(written(log)) if event["ph"] != "M"]
    assert [(event["ph"], event["tid"], event["ts"]) for event in events] == [
        ("X", "MTE2", 0.01), ("B", "VECTOR", 0.02), ("E", "VECTOR", 0.04),
    ]  # fmt: skip
    assert events[0]["dur"] == 0.03


def test_files_are_named_without_the_machines_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log = add_log()
    frames = ((str(tmp_path / "ops" / "k.py"), 1, "f"), ("/somewhere/else/main.py", 2, "g"))
    log.sites[0] = Site(frames)
    (load, *_) = [event for event in read_strictly(written(log)) if event["ph"] == "X"]
    assert load["args"]["code"] == "ops/k.py:1\nmain.py:2"


@given(logs())
@settings(max_examples=40, deadline=None)
def test_rates_carry_every_byte_once(log: Log) -> None:
    rates = gm_rates(build_ledger(log), 7.0)
    loads = [
        i for c in log.cores for i in c.items if i.pipe is Pipe.MTE2 and i.kind is Kind.INSTRUCTION
    ]
    total = sum(entry.bytes for entry in loads)
    assert sum(rates.get("GM_TO_TOTAL", [0.0])) == pytest.approx(total, abs=0.01)
    parts = sum(rates.get("GM_TO_UB", [0.0])) + sum(rates.get("GM_TO_L1", [0.0]))
    assert parts == pytest.approx(total, abs=0.01)


def test_throughput_is_bytes_a_microsecond_at_the_end_of_each() -> None:
    core = CoreLog("core0.aiv0", CoreKind.AIV, start=0, end=4000)
    item(core, Pipe.MTE2, Kind.INSTRUCTION, 500, 2500, bytes=8000)
    log = Log("toy", 1000.0, [core], [Site((("a.py", 1, "f"),))], cycles=4000)
    counters = [event for event in read_strictly(written(log)) if event["ph"] == "C"]
    into_ub = [
        (e["ts"], e["args"]["throughput(MB/s)"]) for e in counters if e["name"] == "GM_TO_UB"
    ]
    assert into_ub == [(1, 2000.0), (2, 4000.0), (3, 2000.0), (4, 0.0)]
