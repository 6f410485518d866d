"""`trace.perfetto.json` read strictly: no track with overlapping slices, every arrow with two ends."""

from __future__ import annotations

import io
import itertools
import shutil
from pathlib import Path
from typing import Any

import pytest
import test_real_runs
from hypothesis import given, settings
from synthetic import add_log, item, logs

from ascend_sim.config import load_chip
from ascend_sim.report.ledger import build_ledger
from ascend_sim.report.perfetto import write_perfetto_trace
from ascend_sim.trace import Cause, CoreLog, Kind, Log, Site
from isa.types import CoreKind, Pipe
from tests.exports import read_perfetto

TOY = load_chip("toy")


def written(log: Log) -> str:
    stream = io.StringIO()
    write_perfetto_trace(log, TOY, stream)
    return stream.getvalue()


def track_names(events: list[dict[str, Any]]) -> dict[int, str]:
    return {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}


@given(logs())
@settings(max_examples=80, deadline=None)
def test_a_strict_reader_takes_every_event_of_a_random_run(log: Log) -> None:
    events = read_perfetto(written(log))
    slices = [event for event in events if event["ph"] == "X"]
    instructions = [i for core in log.cores for i in core.items if i.kind is Kind.INSTRUCTION]
    assert sum(event["name"] == "op" for event in slices) == len(instructions)
    for cause in (Cause.FLAG, Cause.SCALAR, Cause.LAUNCH):
        drawn = sum(
            event["args"]["end"] - event["args"]["start"]
            for event in slices
            if event["name"] == f"wait: {cause.value}"
        )
        assert drawn == sum(
            segment.end - segment.start
            for entry in build_ledger(log)
            for segments in entry.pipes.values()
            for segment in segments
            if segment.cause is cause
        )


def test_the_slices_of_a_copy_add_copy() -> None:
    events = read_perfetto(written(add_log()))
    names = track_names(events)
    rows = [
        (names[e["tid"]], e["name"], e["args"]["start"], e["args"]["end"])
        for e in events
        if e["ph"] == "X" and names[e["tid"]] == "V"
    ]
    assert rows == [
        ("V", "wait: launch", 0, 100), ("V", "wait: scalar", 100, 130), ("V", "wait: flag", 130, 301),
        ("V", "wait: scalar", 301, 305), ("V", "add", 305, 340), ("V", "wait: flag", 340, 341),
        ("V", "wait: launch", 410, 420),
    ]  # fmt: skip
    wait = next(e for e in events if e["name"] == "wait: flag" and e["args"]["start"] == 130)
    assert wait["args"]["code"] == "kernel.py:12\nmain.py:5"
    assert wait["args"]["released_by"] == "kernel.py:11\nmain.py:5"
    load = next(e for e in events if e["name"] == "data_copy")
    assert load["args"]["spent"] == "memory/latency 100, memory/share 20, busy 60"
    assert load["args"]["detail"] == "dst UB[0:8192], src x[0:8192]"
    assert [e["args"]["name"] for e in events if e["name"] == "process_name"] == [
        "core0.aiv0",
        "GM",
    ]


def test_arrows_lead_from_the_instruction_before_the_set_to_the_one_after_the_wait() -> None:
    events = read_perfetto(written(add_log()))
    names = track_names(events)
    arrows = [(e["ph"], e["id"], names[e["tid"]], e["ts"]) for e in events if e["ph"] in "sf"]
    assert sorted(arrows, key=lambda arrow: (arrow[1], arrow[3])) == [
        ("s", 1, "MTE2", 0.299), ("f", 1, "V", 0.305), ("s", 2, "V", 0.339), ("f", 2, "MTE3", 0.341),
    ]  # fmt: skip


def test_overlapping_tails_go_to_sub_lanes() -> None:
    core = CoreLog("core0.aiv0", CoreKind.AIV, start=0, end=100, blocks=[(0, 0, 100)])
    for start, end in ((0, 30), (10, 40), (20, 50), (30, 60)):
        item(core, Pipe.MTE2, Kind.INSTRUCTION, start, end, accept=start + 10)
    log = Log("toy", 1000.0, [core], [Site((("a.py", 1, "f"),))], cycles=100)
    events = read_perfetto(written(log))
    names = track_names(events)
    lanes = [names[e["tid"]] for e in events if e["name"] == "op"]
    assert sorted(lanes) == ["MTE2", "MTE2", "MTE2#1", "MTE2#2"]


def test_counters_of_queue_depth_and_bandwidth() -> None:
    core = CoreLog("core0.aiv0", CoreKind.AIV, start=0, end=1000, blocks=[(0, 0, 1000)])
    for issue, start, end in ((0, 10, 500), (2, 500, 600), (4, 600, 1000)):
        item(core, Pipe.MTE2, Kind.INSTRUCTION, start, end, issue=issue, bytes=6400)
    log = Log("toy", 1000.0, [core], [Site((("a.py", 1, "f"),))], cycles=1000)
    events = read_perfetto(written(log))
    queue = [(e["ts"], e["args"]["items"]) for e in events if e["name"] == "MTE2 queue"]
    assert queue == [
        (0.0, 1), (0.002, 2), (0.004, 3), (0.01, 2), (0.5, 1), (0.6, 0),
    ]  # fmt: skip
    read = [(e["ts"], e["args"]["GB/s"]) for e in events if e["name"] == "GM read"]
    # 6400 bytes in 490 cycles; the stretch from 448 has 52 cycles of that and 12 of 64 bytes each.
    assert read[1:3] == [(0.064, 13.061), (0.448, round((52 * 6400 / 490 + 12 * 64) / 64, 3))]
    assert read[-1] == (1.024, 0.0)
    moved = sum(rate * (after - before) for (before, rate), (after, _) in itertools.pairwise(read))
    assert round(moved * 1000) == 19200


def test_a_long_run_keeps_its_counters_short() -> None:
    core = CoreLog("core0.aiv0", CoreKind.AIV, start=0, end=1_000_000, blocks=[(0, 0, 1_000_000)])
    for start in range(0, 1_000_000, 100):
        item(core, Pipe.V, Kind.INSTRUCTION, start + 50, start + 100, issue=start)
    log = Log("toy", 1000.0, [core], [Site((("a.py", 1, "f"),))], cycles=1_000_000)
    queue = [e for e in read_perfetto(written(log)) if e["name"] == "V queue"]
    assert 0 < len(queue) <= 2001
    assert {e["args"]["items"] for e in queue} == {0, 1}


def test_perfettos_own_trace_processor_takes_the_file(tmp_path: Path) -> None:
    """Where the package perfetto and its `trace_processor_shell` are installed."""
    processor = pytest.importorskip(
        "perfetto.trace_processor", reason="the package perfetto is not installed"
    )
    shell = shutil.which("trace_processor_shell")
    if shell is None:
        pytest.skip("no trace_processor_shell here")
    run = test_real_runs.launch(chip="toy", num=2)
    file = tmp_path / "trace.json"
    with file.open("w", encoding="utf-8") as stream:
        write_perfetto_trace(run.log, run.chip, stream, run.ledger)
    events = read_perfetto(file.read_text(encoding="utf-8"))
    config = processor.TraceProcessorConfig(bin_path=shell)
    with processor.TraceProcessor(trace=str(file), config=config) as opened:

        def one(query: str) -> int:
            return next(iter(opened.query(query))).n

        assert one("select count(*) as n from stats where severity = 'error' and value > 0") == 0
        assert one("select count(*) as n from slice") == sum(e["ph"] == "X" for e in events)
        assert one("select count(*) as n from flow") == sum(e["ph"] == "s" for e in events)
        assert one("select count(*) as n from counter") == sum(e["ph"] == "C" for e in events)
        assert one("select ifnull(max(depth), 0) as n from slice") == 0
