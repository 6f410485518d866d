"""`trace.json` read by a reader as strict as the vendor's importer is by its source."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from synthetic import add_log, item, logs

from ascend_sim.config import load_chip
from ascend_sim.report.chrome import write_chrome_trace
from ascend_sim.report.ledger import build_ledger
from ascend_sim.report.rates import gm_rates
from ascend_sim.trace import CoreLog, Kind, Log, Site
from isa.types import CoreKind, HardEvent, Pipe
from tests.exports import read_chrome

TOY = load_chip("toy")


def written(log: Log) -> str:
    stream = io.StringIO()
    write_chrome_trace(log, TOY, stream)
    return stream.getvalue()


@given(logs())
@settings(max_examples=60, deadline=None)
def test_a_strict_reader_takes_every_event_of_a_random_run(log: Log) -> None:
    events = read_chrome(written(log))
    items = [entry for core in log.cores for entry in core.items]
    slices = [event for event in events if event["ph"] == "X"]
    begins = [event for event in events if event["ph"] == "B"]
    assert len(slices) == sum(i.kind in (Kind.INSTRUCTION, Kind.BARRIER) for i in items)
    assert len(begins) == sum(i.kind in (Kind.SET_FLAG, Kind.WAIT_FLAG) for i in items)
    assert written(log) == written(log)


def test_the_events_of_a_copy_add_copy() -> None:
    events = read_chrome(written(add_log()))
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
    events = read_chrome(written(log))
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
    events = read_chrome(written(log))
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
    events = [event for event in read_chrome(written(log)) if event["ph"] != "M"]
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
    (load, *_) = [event for event in read_chrome(written(log)) if event["ph"] == "X"]
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
    counters = [event for event in read_chrome(written(log)) if event["ph"] == "C"]
    into_ub = [
        (e["ts"], e["args"]["throughput(MB/s)"]) for e in counters if e["name"] == "GM_TO_UB"
    ]
    assert into_ub == [(1, 2000.0), (2, 4000.0), (3, 2000.0), (4, 0.0)]
