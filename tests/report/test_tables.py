"""The CSV tables: their columns, their rows, their sums."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

from hypothesis import given, settings
from synthetic import add_log, item, logs

from ascend_sim.config import load_chip
from ascend_sim.report.ledger import pipe_totals
from ascend_sim.report.tables import (
    INSTRUCTION_COLUMNS,
    PIPE_COLUMNS,
    STALL_COLUMNS,
    write_instructions,
    write_pipes,
    write_stalls,
)
from ascend_sim.trace import CoreLog, Kind, Log
from isa.types import CoreKind, Pipe

TOY = load_chip("toy")


def rows(write: Callable[..., None], log: Log) -> list[dict[str, str]]:
    stream = io.StringIO()
    write(log, TOY, stream)
    assert stream.getvalue().endswith("\n") and "\r" not in stream.getvalue()
    return list(csv.DictReader(io.StringIO(stream.getvalue())))


def test_instructions_list_every_item_in_program_order() -> None:
    table = rows(write_instructions, add_log())
    assert tuple(table[0]) == INSTRUCTION_COLUMNS
    assert [row["name"] for row in table] == [
        "data_copy", "set_flag", "wait_flag", "add", "set_flag", "wait_flag", "data_copy",
    ]  # fmt: skip
    load, _, wait, add, *_ = table
    assert load == {
        "core": "core0.aiv0", "index": "0", "pipe": "MTE2", "kind": "instruction", "name": "data_copy",
        "phase": "", "file": "kernel.py", "line": "10", "issue": "118", "head": "120", "start": "120",
        "accept": "140", "end": "300", "busy": "60", "memory": "120", "bank_conflict": "0",
        "bytes": "8192", "work": "", "event": "", "event_id": "", "cause": "", "set_file": "",
        "set_line": "", "inserted": "0", "slack": "14", "detail": "dst UB[0:8192], src x[0:8192]",
    }  # fmt: skip
    assert (wait["event"], wait["event_id"], wait["cause"]) == ("MTE2_V", "0", "flag")
    assert (wait["set_file"], wait["set_line"], wait["busy"]) == ("kernel.py", "11", "")
    assert (add["busy"], add["bank_conflict"], add["work"]) == ("30", "5", "16")


def test_what_never_happened_is_empty() -> None:
    core = CoreLog("core0.aiv0", CoreKind.AIV)
    item(core, Pipe.V, Kind.INSTRUCTION, -1, -1, accept=-1)
    (row,) = rows(write_instructions, Log("toy", 1000.0, [core], cycles=10))
    assert [row[column] for column in ("head", "start", "end", "busy", "file", "line")] == [""] * 6


@given(logs())
@settings(max_examples=40, deadline=None)
def test_pipes_and_stalls_add_up(log: Log) -> None:
    pipes, stalls = rows(write_pipes, log), rows(write_stalls, log)
    for row in pipes:
        assert tuple(row) == PIPE_COLUMNS
        number = {
            name: int(row[name])
            for name in PIPE_COLUMNS
            if name not in ("core", "pipe", "utilization")
        }
        assert number["busy"] + number["wait"] + number["idle"] == number["cycles"] == log.cycles
        causes = PIPE_COLUMNS[PIPE_COLUMNS.index("memory") : PIPE_COLUMNS.index("launch") + 1]
        assert sum(number[cause] for cause in causes) == number["wait"]
        subs = [name for name in PIPE_COLUMNS if name.startswith("memory_")]
        assert sum(number[name] for name in subs) == number["memory"]
        own = [s for s in stalls if (s["core"], s["pipe"]) == (row["core"], row["pipe"])]
        assert sum(int(s["cycles"]) for s in own) == number["wait"] + number["idle"]
        cycles = [int(s["cycles"]) for s in own]
        assert cycles == sorted(cycles, reverse=True)
    assert len(pipes) == sum(len(core) for core in pipe_totals(log).values())


def test_stalls_say_where_and_what_ended_them() -> None:
    table = [row for row in rows(write_stalls, add_log()) if row["pipe"] == "V"]
    assert tuple(table[0]) == STALL_COLUMNS
    waits = [row for row in table if row["name"] == "wait_flag" and row["cause"] == "flag"]
    # MTE2 waits for GM to 220, for its share to 240, moves bytes to 300; its set takes a cycle more.
    assert waits[0] == {
        "core": "core0.aiv0", "pipe": "V", "cause": "flag", "sub_cause": "", "file": "kernel.py",
        "line": "12", "name": "wait_flag", "set_pipe": "MTE2", "set_file": "kernel.py",
        "set_line": "11", "late": "memory/latency", "count": "1", "cycles": "90",
    }  # fmt: skip
    assert {row["late"]: int(row["cycles"]) for row in waits} == {
        "memory/latency": 90, "memory/share": 20, "busy": 60, "flag": 1,
    }  # fmt: skip
    scalar = [(row["name"], row["cycles"]) for row in table if row["cause"] == "scalar"]
    assert scalar == [("wait_flag", "30"), ("add", "4")]
    full = [row for row in rows(write_stalls, add_log()) if row["cause"] == "queue_full"]
    assert [(row["pipe"], row["name"], row["line"]) for row in full] == [("S", "MTE2", "11")]
