"""Cycles by pipe, cause, line, trip and the flag behind them: they add up, and late flags are blamed rightly."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from synthetic import add_log, logs

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.errors import ConfigError
from ascend_sim.report.columns import SUB_CAUSES
from ascend_sim.report.ledger import CoreLedger, build_ledger
from ascend_sim.report.stalls import BY, HANDOVER, LATE, core_rows, stall_table
from ascend_sim.trace import Kind, Log
from isa.types import Pipe


def cause_at(entry: CoreLedger, pipe: Pipe, cycle: int) -> str:
    for segment in entry.pipes[pipe]:
        if segment.start <= cycle < segment.end:
            return segment.cause.value + (f"/{segment.sub.value}" if segment.sub else "")
    raise AssertionError("a cycle without a cause")


@given(logs())
@settings(max_examples=60, deadline=None)
def test_whatever_they_are_told_apart_by_the_cycles_are_those_of_the_run(log: Log) -> None:
    ledger = build_ledger(log)
    pipes = sum(len(entry.segments) for entry in ledger)
    for by in ((), ("cause",), ("line", "trip"), BY):
        rows = stall_table(ledger, by)
        assert sum(row["cycles"] for row in rows) == pipes * log.cycles
        assert all(row["cycles"] > 0 and row["count"] > 0 for row in rows)


@given(logs())
@settings(max_examples=60, deadline=None)
def test_a_late_flag_is_blamed_on_what_its_pipe_did_cycle_by_cycle(log: Log) -> None:
    # Pair every wait with an earlier set of its core, as the machine would.
    for core in log.cores:
        sets = [item for item in core.items if item.kind is Kind.SET_FLAG]
        for item in core.items:
            if item.kind is Kind.WAIT_FLAG and sets:
                item.partner = sets[item.index % len(sets)]
                item.core = item.partner.core = log.cores.index(core)
    ledger = build_ledger(log)
    for number, entry in enumerate(ledger):
        rows = core_rows(number, ledger)
        got: Counter[tuple[int, str]] = Counter()
        for row in np.flatnonzero(rows.columns["late"] >= 0):
            late, sub = int(rows.columns["late"][row]), int(rows.columns["late_sub"][row])
            refined = SUB_CAUSES[sub] if late < HANDOVER else None
            word = LATE[late] + (f"/{refined.value}" if refined else "")
            got[int(rows.columns["pipe"][row]), word] += int(rows.cycles[row])
        want: Counter[tuple[int, str]] = Counter()
        for pipe, segments in entry.pipes.items():
            for segment in segments if pipe is not Pipe.S else []:
                item = segment.origin
                if segment.cause.value not in ("flag", "buffer", "cross_core"):
                    continue
                partner = getattr(item, "partner", None)
                if partner is None:
                    continue
                for cycle in range(segment.start, segment.end):
                    late = (
                        cause_at(entry, partner.pipe, cycle) if cycle < partner.end else "handover"
                    )
                    want[int(pipe), late] += 1
        assert got == want


def test_a_run_tells_its_stalls_by_line_and_trip() -> None:
    @asc.jit(auto_sync=False)
    def kernel(x: asc.GlobalAddress, y: asc.GlobalAddress) -> None:
        source, target = asc.GlobalTensor(), asc.GlobalTensor()
        source.set_global_buffer(x)
        target.set_global_buffer(y)
        t = asc.LocalTensor(x.dtype, asc.TPosition.VECIN, 0, 1024)
        for i in range(3):
            asc.data_copy(t, source[i * 1024 :], 1024)
            asc.set_flag(asc.HardEvent.MTE2_MTE3, 0)
            asc.wait_flag(asc.HardEvent.MTE2_MTE3, 0)
            asc.data_copy(target[i * 1024 :], t, 1024)
            asc.set_flag(asc.HardEvent.MTE3_MTE2, 0)
            asc.wait_flag(asc.HardEvent.MTE3_MTE2, 0)

    x = np.ones(3 * 1024, np.float16)
    run = sim.launch(kernel, x, np.zeros_like(x), chip="toy")
    rows = run.stalls(by=("pipe", "cause", "trip", "set_pipe", "late"))
    waits = [row for row in rows if row["pipe"] == "MTE3" and row["set_pipe"] == "MTE2"]
    # 2048 bytes from HBM on the toy chip: 200 cycles until the first byte, 32 for the bytes. The first
    # trip's load is under way when the scalar unit has issued the wait.
    by_trip = {
        trip: {row["late"]: row["cycles"] for row in waits if row["trip"] == trip}
        for trip in range(3)
    }
    assert by_trip[1]["memory/latency"] + by_trip[1]["memory/l2_miss"] == 200
    assert by_trip[1]["busy"] == by_trip[0]["busy"] == 32
    assert by_trip[1]["handover"] == 10  # sync.visible
    assert by_trip[0]["memory/latency"] < 200
    assert sum(row["cycles"] for row in rows) == run.cycles * 4
    with pytest.raises(ConfigError, match="there are: core, pipe"):
        run.stalls(by=("lines",))


def test_a_set_says_whose_result_it_waited_for() -> None:
    rows = stall_table(build_ledger(add_log()), ("pipe", "set_pipe", "set_line"))
    assert {(row["pipe"], row["set_pipe"], row["set_line"]) for row in rows if row["set_pipe"]} == {
        ("V", "MTE2", "kernel.py:11"),
        ("MTE3", "V", "kernel.py:11"),
    }
