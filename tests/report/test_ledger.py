"""The ledger: tiling, causes against a cycle-by-cycle oracle, exact ledgers of small logs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from synthetic import add_log, item, logs

from ascend_sim.errors import SimulatorBug
from ascend_sim.report.ledger import (
    CoreLedger,
    build_ledger,
    memory_totals,
    overlap_cycles,
    pipe_totals,
    stall_totals,
)
from ascend_sim.trace import Cause, CoreLog, Item, Kind, Log, MemoryCause, Stall
from isa.types import PIPES_OF, CoreKind, Pipe

Label = tuple[Cause, MemoryCause | None]


def spans(entry: CoreLedger, pipe: Pipe) -> list[tuple[int, int, str]]:
    """Return a pipe's segments as (start, end, cause or cause/sub), neighbours of one cause joined."""
    result: list[tuple[int, int, str]] = []
    for segment in entry.pipes[pipe]:
        label = segment.cause.value + (f"/{segment.sub.value}" if segment.sub else "")
        if result and result[-1][2] == label:
            result[-1] = (result[-1][0], segment.end, label)
        else:
            result.append((segment.start, segment.end, label))
    return result


def part_at(entry: Item, cycle: int) -> Label | None:
    """Return what an instruction does at `cycle`, None where it is not in flight."""
    if not entry.start <= cycle < entry.end:
        return None
    for cause, sub, end in entry.parts or ():
        if cycle < end:
            return (cause, sub)
    return (Cause.BUSY, None)


def oracle(log: Log, core: CoreLog, pipe: Pipe, cycle: int) -> Label:
    """Name one cycle by the written rules, without any of the ledger's machinery."""
    own = [entry for entry in core.items if entry.pipe is pipe]
    stall = next((s.cause for s in core.stalls if s.start <= cycle < s.end), None)
    last_end = max(core.end for core in log.cores)
    inside = any(start <= cycle < end for _, start, end in core.blocks)
    outside = Cause.TAIL if core.end <= cycle < last_end else Cause.LAUNCH
    if pipe is Pipe.S:
        return (stall or Cause.BUSY, None) if inside else (outside, None)
    if not own:
        return (Cause.IDLE, None)
    doing = [part_at(entry, cycle) for entry in own if entry.kind is Kind.INSTRUCTION]
    in_flight = [part for part in doing if part is not None]
    if in_flight:
        busy = [part for part in in_flight if part[0] is Cause.BUSY]
        return busy[0] if busy else in_flight[0]
    if not inside:
        return (outside, None)
    for entry in own:
        held = entry.kind in (Kind.WAIT_FLAG, Kind.BARRIER) and entry.head <= cycle < entry.start
        stepping = entry.kind is not Kind.INSTRUCTION and entry.start <= cycle < entry.accept
        if held or stepping:
            default = entry.kind is Kind.BARRIER and entry.cause is Cause.FLAG
            return (Cause.BARRIER if default else entry.cause, None)
    if cycle >= max(entry.end for entry in own):
        return (Cause.IDLE, None)
    return (stall or Cause.SCALAR, None)


@given(logs())
@settings(deadline=None)
def test_every_cycle_has_the_cause_that_the_rules_give_it(log: Log) -> None:
    for entry in build_ledger(log):
        for pipe in PIPES_OF[entry.core.kind]:
            got = [(s.cause, s.sub) for s in entry.pipes[pipe] for _ in range(s.start, s.end)]
            assert got == [oracle(log, entry.core, pipe, cycle) for cycle in range(log.cycles)]


@given(logs())
@settings(max_examples=50, deadline=None)
def test_totals_add_up(log: Log) -> None:
    totals = pipe_totals(log)
    pipes = [entry for core in totals.values() for entry in core.values()]
    for entry in pipes:
        assert entry["busy"] + entry["wait"] + entry["idle"] == log.cycles
        assert sum(entry["causes"].values()) == log.cycles
        assert sum(entry["memory"].values()) == entry["causes"].get("memory", 0)
        assert entry["occupied"] == entry["busy"] + entry["causes"].get("memory", 0)
    stalls = stall_totals(totals)
    assert set(stalls) == {cause.value for cause in Cause}
    assert sum(stalls.values()) == log.cycles * len(pipes)
    assert sum(memory_totals(totals).values()) == stalls["memory"]
    assert sum(entry["items"] for entry in pipes) == sum(len(core.items) for core in log.cores)


def test_the_ledger_of_a_copy_add_copy() -> None:
    (entry,) = build_ledger(add_log())
    assert spans(entry, Pipe.S) == [
        (0, 100, "launch"), (100, 150, "busy"), (150, 160, "queue_full"), (160, 410, "busy"),
        (410, 420, "launch"),
    ]  # fmt: skip
    assert spans(entry, Pipe.MTE2) == [
        (0, 100, "launch"), (100, 120, "scalar"), (120, 220, "memory/latency"),
        (220, 240, "memory/share"), (240, 300, "busy"), (300, 301, "flag"), (301, 410, "idle"),
        (410, 420, "launch"),
    ]  # fmt: skip
    assert spans(entry, Pipe.V) == [
        (0, 100, "launch"), (100, 130, "scalar"), (130, 301, "flag"), (301, 305, "scalar"),
        (305, 335, "busy"), (335, 340, "bank_conflict"), (340, 341, "flag"), (341, 410, "idle"),
        (410, 420, "launch"),
    ]  # fmt: skip
    assert spans(entry, Pipe.MTE3) == [
        (0, 100, "launch"), (100, 140, "scalar"), (140, 341, "buffer"), (341, 400, "busy"),
        (400, 410, "idle"), (410, 420, "launch"),
    ]  # fmt: skip


def test_the_totals_of_a_copy_add_copy() -> None:
    totals = pipe_totals(add_log())["core0.aiv0"]
    assert totals["MTE2"] == {
        "busy": 60, "wait": 251, "idle": 109, "occupied": 180, "instructions": 1, "items": 2,
        "bytes": 8192, "utilization": 0.142857,
        "causes": {"busy": 60, "memory": 120, "flag": 1, "scalar": 20, "launch": 110, "idle": 109},
        "memory": {"latency": 100, "share": 20},
    }  # fmt: skip
    assert (totals["V"]["instructions"], totals["V"]["items"], totals["V"]["bytes"]) == (1, 3, 0)


def test_overlap_of_a_copy_add_copy() -> None:
    # MTE2 120-300, V 305-340, MTE3 341-400 of the core's 100-410: never two at once.
    assert overlap_cycles(build_ledger(add_log())) == {"none": 36, "one": 274, "several": 0}


def test_overlap_counts_pipes_that_work_at_once() -> None:
    log = add_log()
    load = log.cores[0].items[0]
    load.parts, load.end = None, 320  # now it runs 15 cycles into the add
    assert overlap_cycles(build_ledger(log)) == {"none": 31, "one": 264, "several": 15}


def test_segments_know_what_stands_behind_them() -> None:
    (entry,) = build_ledger(add_log())
    load, ready, wait, add, *_ = entry.core.items
    mte2 = {segment.start: segment.origin for segment in entry.pipes[Pipe.MTE2]}
    assert (mte2[100], mte2[120], mte2[240], mte2[300]) == (load, load, load, ready)
    vector = {segment.start: segment.origin for segment in entry.pipes[Pipe.V]}
    assert (vector[100], vector[130], vector[301], vector[305]) == (wait, wait, add, add)
    assert (vector[0], vector[341]) == (None, None)
    scalar = {segment.start: segment.origin for segment in entry.pipes[Pipe.S]}
    assert scalar[150] is entry.core.stalls[0]


def test_a_gap_takes_the_scalar_units_own_reason() -> None:
    core = CoreLog("core0.aiv0", CoreKind.AIV, start=0, end=100, blocks=[(0, 0, 100)])
    core.stalls += [Stall(10, 30, Cause.FLAG, 0), Stall(40, 70, Cause.QUEUE_FULL, 0)]
    item(core, Pipe.V, Kind.INSTRUCTION, 20, 50)
    item(core, Pipe.V, Kind.INSTRUCTION, 90, 95)
    (entry,) = build_ledger(Log("toy", 1000.0, [core], cycles=100))
    assert spans(entry, Pipe.V) == [
        (0, 10, "scalar"), (10, 20, "flag"), (20, 50, "busy"), (50, 70, "queue_full"),
        (70, 90, "scalar"), (90, 95, "busy"), (95, 100, "idle"),
    ]  # fmt: skip


def test_between_blocks_a_core_waits_for_the_launcher_and_at_the_end_for_the_others() -> None:
    early = CoreLog("core0.aiv0", CoreKind.AIV, start=10, end=50)
    early.blocks = [(0, 10, 20), (2, 30, 50)]
    item(early, Pipe.V, Kind.INSTRUCTION, 12, 18)
    item(early, Pipe.V, Kind.INSTRUCTION, 35, 45)
    late = CoreLog("core0.aiv1", CoreKind.AIV, start=10, end=70, blocks=[(1, 10, 70)])
    first, second = build_ledger(Log("toy", 1000.0, [early, late], cycles=80))
    assert spans(first, Pipe.V) == [
        (0, 10, "launch"), (10, 12, "scalar"), (12, 18, "busy"), (18, 20, "scalar"),
        (20, 30, "launch"), (30, 35, "scalar"), (35, 45, "busy"), (45, 50, "idle"),
        (50, 70, "tail"), (70, 80, "launch"),
    ]  # fmt: skip
    assert spans(first, Pipe.S) == [
        (0, 10, "launch"), (10, 20, "busy"), (20, 30, "launch"), (30, 50, "busy"),
        (50, 70, "tail"), (70, 80, "launch"),
    ]  # fmt: skip
    assert spans(second, Pipe.V) == [(0, 80, "idle")]


def test_of_two_copies_in_flight_the_busy_one_names_the_cycle_then_the_older_one() -> None:
    core = CoreLog("core0.aiv0", CoreKind.AIV, start=0, end=60, blocks=[(0, 0, 60)])
    older = item(core, Pipe.MTE2, Kind.INSTRUCTION, 0, 40, accept=5)
    older.parts = ((Cause.MEMORY, MemoryCause.LATENCY, 20), (Cause.MEMORY, MemoryCause.SHARE, 40))
    newer = item(core, Pipe.MTE2, Kind.INSTRUCTION, 5, 60, accept=10)
    newer.parts = (
        (Cause.MEMORY, MemoryCause.L2_MISS, 25), (Cause.BUSY, None, 30),
        (Cause.MEMORY, MemoryCause.L2_MISS, 60),
    )  # fmt: skip
    (entry,) = build_ledger(Log("toy", 1000.0, [core], cycles=60))
    assert spans(entry, Pipe.MTE2) == [
        (0, 20, "memory/latency"), (20, 25, "memory/share"), (25, 30, "busy"),
        (30, 40, "memory/share"), (40, 60, "memory/l2_miss"),
    ]  # fmt: skip


def test_a_run_that_broke_off_is_cut_at_its_end() -> None:
    core = CoreLog("core0.aiv0", CoreKind.AIV, start=10, blocks=[(0, 10, -1)])
    item(core, Pipe.MTE2, Kind.INSTRUCTION, 20, -1)
    item(core, Pipe.V, Kind.WAIT_FLAG, -1, -1, head=30, accept=-1)
    item(core, Pipe.V, Kind.INSTRUCTION, -1, -1, accept=-1)
    (entry,) = build_ledger(Log("toy", 1000.0, [core], cycles=50))
    assert spans(entry, Pipe.MTE2) == [(0, 10, "launch"), (10, 20, "scalar"), (20, 50, "busy")]
    assert spans(entry, Pipe.V) == [(0, 10, "launch"), (10, 30, "scalar"), (30, 50, "flag")]


def test_a_wait_that_is_released_after_the_cores_end_ends_with_the_core() -> None:
    core = CoreLog("core0.aiv0", CoreKind.AIV, start=0, end=40, blocks=[(0, 0, 40)])
    item(core, Pipe.V, Kind.INSTRUCTION, 0, 20)
    item(core, Pipe.V, Kind.WAIT_FLAG, 50, 50, head=30)
    (entry,) = build_ledger(Log("toy", 1000.0, [core], cycles=40))
    assert spans(entry, Pipe.V) == [(0, 20, "busy"), (20, 30, "scalar"), (30, 40, "flag")]


def test_a_barrier_waits_for_a_barrier_unless_the_machine_says_otherwise() -> None:
    core = CoreLog("core0.aiv0", CoreKind.AIV, start=0, end=30, blocks=[(0, 0, 30)])
    item(core, Pipe.V, Kind.BARRIER, 10, 10, head=0)
    item(core, Pipe.V, Kind.BARRIER, 30, 30, head=10, cause=Cause.CROSS_CORE)
    (entry,) = build_ledger(Log("toy", 1000.0, [core], cycles=30))
    assert spans(entry, Pipe.V) == [(0, 10, "barrier"), (10, 30, "cross_core")]


def test_parts_past_the_items_end_are_a_bug_of_the_simulator() -> None:
    log = add_log()
    log.cores[0].items[0].parts = ((Cause.BUSY, None, 301),)
    with pytest.raises(SimulatorBug, match="end at cycle 301, the item at cycle 300"):
        build_ledger(log)


def test_a_copy_that_retires_behind_an_older_one_leaves_those_cycles_to_it() -> None:
    core = CoreLog("core0.aiv0", CoreKind.AIV, start=0, end=60, blocks=[(0, 0, 60)])
    older = item(core, Pipe.MTE2, Kind.INSTRUCTION, 0, 50, accept=5)
    older.parts = ((Cause.MEMORY, MemoryCause.L2_MISS, 40), (Cause.BUSY, None, 50))
    newer = item(core, Pipe.MTE2, Kind.INSTRUCTION, 5, 50, accept=10)
    newer.parts = ((Cause.MEMORY, MemoryCause.LATENCY, 20), (Cause.BUSY, None, 30))
    (entry,) = build_ledger(Log("toy", 1000.0, [core], cycles=60))
    assert spans(entry, Pipe.MTE2) == [
        (0, 20, "memory/l2_miss"), (20, 30, "busy"), (30, 40, "memory/l2_miss"), (40, 50, "busy"),
        (50, 60, "idle"),
    ]  # fmt: skip


def test_an_item_past_the_end_of_the_run_is_a_bug_of_the_simulator() -> None:
    log = add_log()
    log.cores[0].items[-1].end = 500
    with pytest.raises(SimulatorBug, match=r"ledger of core0\.aiv0\.MTE3 ends at cycle 500"):
        build_ledger(log)


def test_an_item_on_a_pipe_that_the_core_lacks_is_a_bug_of_the_simulator() -> None:
    log = add_log()
    log.cores[0].items[0].step.pipe = Pipe.M
    with pytest.raises(SimulatorBug, match=r"core0\.aiv0 has no pipe M"):
        build_ledger(log)


def test_an_empty_run_has_empty_totals() -> None:
    assert pipe_totals(Log("toy", 1000.0)) == {}
    core = CoreLog("core0.aiv0", CoreKind.AIV)
    assert pipe_totals(Log("toy", 1000.0, [core]))["core0.aiv0"]["V"]["utilization"] == 0.0
