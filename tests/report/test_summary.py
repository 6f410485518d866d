"""The summary: its keys, its counts, its bound, JSON both ways."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from synthetic import add_log, item, logs

from ascend_sim.config import load_chip
from ascend_sim.errors import Finding
from ascend_sim.report.summary import build_summary
from ascend_sim.report.traffic import first_read_bytes
from ascend_sim.trace import Cause, CoreLog, Kind, Log, Stall
from isa.types import CoreKind, Pipe, Space

TOY = load_chip("toy")
EXTRA = {"op": "add", "block_dim": 1, "l2_start": "cold"}
KEYS = [
    "schema_version", "op", "chip", "block_dim", "cycles", "launch_cycles", "time_us", "l2_start",
    "numerics", "pipes", "instructions", "items", "work", "bytes", "phases", "stalls", "overlap", "bound", "as_written",
    "roofline", "findings", "advice",
]  # fmt: skip


def access(low: int, high: int, buffer: object, space: Space = Space.GM) -> SimpleNamespace:
    ranges = np.array([[low, high]], np.int64)
    return SimpleNamespace(space=space, buffer=buffer, ranges=lambda: ranges)


def moves(*calls: SimpleNamespace) -> Log:
    """Return a log of copies on MTE2 with the given operands."""
    core = CoreLog("core0.aiv0", CoreKind.AIV, start=0, end=10 * len(calls))
    for index, call in enumerate(calls):
        start = 10 * index
        item(core, Pipe.MTE2, Kind.INSTRUCTION, start, start + 10, call=call, bytes=100)
    return Log("toy", 1000.0, [core], cycles=10 * len(calls))


def test_the_summary_has_the_documented_keys_and_the_counts_of_its_log() -> None:
    summary = build_summary(add_log(), TOY, [], None, EXTRA)
    assert list(summary) == KEYS
    assert summary["chip"] == "toy"
    assert (summary["cycles"], summary["launch_cycles"], summary["time_us"]) == (420, 110, 0.42)
    assert summary["instructions"]["aiv"] == {"S": 0, "V": 1, "MTE2": 1, "MTE3": 1}
    assert summary["items"]["aiv"] == {"S": 0, "V": 3, "MTE2": 2, "MTE3": 2}
    assert set(summary["instructions"]["aic"].values()) == {0}
    assert summary["work"] == {"aic": {"M": 0}, "aiv": {"V": 16}}
    assert summary["bytes"] == {
        "gm_read": 8192, "gm_write": 4096, "aic": {"MTE1": 0, "MTE2": 0, "MTE3": 0, "FIX": 0},
        "aiv": {"MTE2": 8192, "MTE3": 4096},
    }  # fmt: skip
    assert summary["phases"] == {}
    assert summary["stalls"]["buffer"] == 201


@given(logs())
@settings(max_examples=40, deadline=None)
def test_the_summary_survives_json_and_its_bound_is_never_above_the_time(log: Log) -> None:
    summary = build_summary(log, TOY, [], {"mismatches": np.int64(3)}, EXTRA)
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert 0 <= summary["bound"]["lower_bound_cycles"] <= log.cycles
    named = sum(sum(p["instructions"]["aiv"].values()) for p in summary["phases"].values())
    assert named <= sum(summary["instructions"]["aiv"].values())


def test_phases_hold_what_was_issued_in_them() -> None:
    log = add_log()
    log.phases = ["", "pre", "main", "unused"]
    load, *rest = log.cores[0].items
    load.step.phase = 1
    for entry in rest:
        entry.step.phase = 2
    phases = build_summary(log, TOY, [], None, EXTRA)["phases"]
    assert list(phases) == ["pre", "main"]
    assert phases["pre"]["cycles"] == 300 - 118
    assert phases["pre"]["bytes"]["aiv"] == {"MTE2": 8192, "MTE3": 0}
    assert phases["main"]["instructions"]["aiv"] == {"S": 0, "V": 1, "MTE2": 0, "MTE3": 1}
    assert phases["main"]["work"]["aiv"] == {"V": 16}


def test_the_bound_names_launch_pipe_gm_or_hbm() -> None:
    log = add_log()
    bound = build_summary(log, TOY, [], None, EXTRA)["bound"]
    # The scalar unit of this log is busy but for one stall: 310 - 10 cycles.
    assert bound == {"limit": "core0.aiv0.S", "lower_bound_cycles": 110 + 300}
    short = CoreLog("core0.aiv0", CoreKind.AIV, start=300, end=400, blocks=[(0, 300, 400)])
    launch = Log("toy", 1000.0, [short], cycles=420, launch_cycles=320)
    assert build_summary(launch, TOY, [], None, EXTRA)["bound"] == {
        "limit": "launch", "lower_bound_cycles": 420,
    }  # fmt: skip
    nothing = build_summary(Log("toy", 1000.0), TOY, [], None, EXTRA)["bound"]
    assert nothing == {"limit": "none", "lower_bound_cycles": 0}
    # 1000 cycles of the toy's L2, which serves 1000 B/cycle
    log.cores[0].items[0].step.bytes = 1_000_000
    assert build_summary(log, TOY, [], None, EXTRA)["bound"] == {
        "limit": "gm", "lower_bound_cycles": 420,
    }  # fmt: skip


def test_with_a_cold_l2_every_byte_read_first_comes_from_hbm() -> None:
    x, y = object(), object()
    call = SimpleNamespace(reads=(access(0, 8000, x),), writes=(access(0, 8000, None, Space.UB),))
    half = SimpleNamespace(reads=(access(4000, 12000, x),), writes=())
    own = SimpleNamespace(reads=(access(0, 500, y),), writes=(access(0, 400, y),))
    log = moves(call, call, half, own)
    assert first_read_bytes(log) == 12000 + 100
    # The toy's HBM gives 500 bytes a cycle: 24 cycles; the pipes have next to nothing to do.
    log.cycles = log.cores[0].end = 400
    log.cores[0].stalls.append(Stall(0, 399, Cause.BARRIER, 0))
    for entry in log.cores[0].items:
        entry.start, entry.end = entry.start // 10, entry.end // 10
    assert build_summary(log, TOY, [], None, EXTRA)["bound"] == {
        "limit": "hbm", "lower_bound_cycles": 24,
    }  # fmt: skip
    warm = build_summary(log, TOY, [], None, {**EXTRA, "l2_start": "warm"})
    assert warm["bound"] == {"limit": "core0.aiv0.MTE2", "lower_bound_cycles": 4}
    assert warm["l2_start"] == "warm"


def test_only_operands_in_gm_count_as_gm_bytes() -> None:
    inside = SimpleNamespace(
        reads=(access(0, 1, None, Space.UB),), writes=(access(0, 1, None, Space.L1),)
    )
    log = moves(inside)
    assert build_summary(log, TOY, [], None, EXTRA)["bytes"]["gm_read"] == 0
    assert build_summary(log, TOY, [], None, EXTRA)["bytes"]["aiv"]["MTE2"] == 100


def test_findings_are_plain_and_name_files_without_the_machines_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    below = Finding("RACE", "race", "message", str(tmp_path / "sub" / "a.py"), 3, bytes=(0, 64))
    elsewhere = Finding("PERF", "slow", "message", "/usr/lib/python/b.py", 4, struck=False)
    first, second = build_summary(add_log(), TOY, [below, elsewhere], None, EXTRA)["findings"]
    assert list(first) == [
        "kind", "code", "message", "file", "line", "core", "pipe", "tensor", "bytes", "struck",
    ]  # fmt: skip
    assert (first["file"], first["bytes"], first["struck"]) == ("sub/a.py", [0, 64], None)
    assert (second["file"], second["bytes"], second["struck"]) == ("b.py", None, False)


def test_numerics_become_plain_numbers() -> None:
    numerics = {
        "max_abs_error": np.float32(0.5), "max_rel_error": float("nan"), "bit_exact": np.bool_(False),
        "adjoint": {"max_abs_error": 1.5},
    }  # fmt: skip
    summary = build_summary(add_log(), TOY, [], numerics, {**EXTRA, "seed": 3})
    assert summary["numerics"] == {
        "max_abs_error": 0.5, "max_rel_error": None, "bit_exact": False,
        "adjoint": {"max_abs_error": 1.5},
    }  # fmt: skip
    assert list(summary)[-1] == "seed"


def test_every_roof_is_below_the_run_and_the_nearest_comes_first() -> None:
    summary = build_summary(add_log(), TOY, [], None, EXTRA)
    found = summary["roofline"]
    needs = {roof["name"]: roof["cycles"] for roof in found["roofs"]}
    # 8192 bytes in at 64 a cycle, 4096 out at 64; all 12288 at L2's 1000 bytes a cycle; 16 repeats of V.
    assert needs["GM to UB, one core"] == 128
    assert needs["UB to GM, one core"] == 64
    assert needs["L2 reads and writes"] == 12.288
    assert needs["vector unit, one core"] == 16
    assert needs["scalar unit, one core"] == 300
    assert found["nearest"] == "scalar unit, one core"
    assert found["kernel_cycles"] == 310
    assert found["distance"] == round(310 / 300, 6)
    assert found["point"] == [round(16 / 12288, 9), round(16 / 310, 6)]
    assert list(needs.values()) == sorted(needs.values(), reverse=True)


def test_no_kernel_of_the_operator_beats_one_that_moves_each_byte_once() -> None:
    x, y = object(), object()
    call = SimpleNamespace(reads=(access(0, 8000, x),), writes=(access(0, 8000, None, Space.UB),))
    store = SimpleNamespace(reads=(access(0, 8000, None, Space.UB),), writes=(access(0, 3000, y),))
    log = moves(call, call, store)
    found = build_summary(log, TOY, [], None, EXTRA)["roofline"]["operator"]
    # 8000 bytes from HBM at 500 a cycle; the toy chip launches for nothing.
    assert found == {"limit": "hbm", "lower_bound_cycles": 16}
    warm = build_summary(log, TOY, [], None, {**EXTRA, "l2_start": "warm"})["roofline"]["operator"]
    assert warm == {"limit": "l2", "lower_bound_cycles": 11}  # 11000 bytes through L2
