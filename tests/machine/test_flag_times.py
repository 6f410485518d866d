"""Flags and barriers on the toy chip: a set takes 1 cycle, a wait sees it 10 cycles later."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ascend_sim import asc
from ascend_sim.errors import OperandError
from ascend_sim.run import Run
from ascend_sim.trace import Cause
from tests.machine.kit import (
    ALL,
    MTE2,
    A,
    B,
    C,
    E,
    V,
    hand_over,
    instructions,
    items,
    line_of,
    local,
    times,
    toy_run,
    window,
)


def floats(count: int) -> np.ndarray[Any, Any]:
    return np.arange(count, dtype=np.float32)


def causes(run: Run, pipe: str) -> dict[str, int]:
    result: dict[str, int] = run.pipes["core0.aiv0"][pipe]["causes"]
    return result


def test_from_load_to_vector_to_store() -> None:
    """The load lands at 274: 1 for the set, 10 until the wait sees it; the same again from V to MTE3."""

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        a, c = local(A, 1024), local(C, 1024)
        asc.data_copy(a, window(x), 1024)
        hand_over(E.MTE2_V)
        asc.adds(c, a, 1.0, 1024)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z), c, 1024)

    z = np.zeros(1024, np.float32)
    run = toy_run(kernel, floats(1024), z)
    (load,), (adds,), (store,) = (instructions(run, pipe) for pipe in ("MTE2", "V", "MTE3"))
    assert (load.start, load.end) == (10, 274)
    assert (adds.start, adds.end) == (285, 285 + 36)
    assert (store.start, store.end) == (332, 332 + 164)
    assert run.cycles == 496
    first, second = items(run, name="set_flag")
    assert (first.pipe.name, first.start, first.end) == ("MTE2", 20, 275)
    assert (second.pipe.name, second.start, second.end) == ("V", 285 + 16, 322)
    wait, other = items(run, name="wait_flag")
    assert (wait.pipe.name, wait.head, wait.start, wait.partner) == ("V", 12, 285, first)
    assert (other.pipe.name, other.head, other.start, other.partner) == ("MTE3", 15, 332, second)
    assert causes(run, "V") == {"scalar": 12, "flag": 285 - 12 + 1, "busy": 36, "idle": 174}
    assert causes(run, "MTE3") == {"scalar": 15, "flag": 332 - 15, "busy": 64, "memory": 100}
    np.testing.assert_array_equal(z, floats(1024) + 1)
    assert run.findings == []


def test_a_flag_that_was_raised_long_ago_costs_nothing() -> None:
    def kernel() -> None:
        asc.adds(local(C, 64), local(A, 64), 1.0, 64)
        asc.set_flag(E.V_MTE3, 0)
        for _ in range(10):
            local(A, 64).get_value(0)  # 100 cycles
        asc.wait_flag(E.V_MTE3, 0)

    run = toy_run(kernel, checks="off")
    (wait,) = items(run, "MTE3")
    assert (wait.issue, wait.head, wait.start) == (103, 103, 103)


def test_a_set_fires_after_all_earlier_work_of_its_pipe() -> None:
    """The set stands behind a long and a short instruction; both have landed when it fires."""

    def kernel() -> None:
        asc.div(local(C, 1024), local(A, 1024), local(B, 1024), 1024)
        asc.adds(local(0x28000, 64), local(0x28000, 64), 1.0, 64)
        asc.set_flag(E.V_MTE3, 0)
        asc.wait_flag(E.V_MTE3, 0)

    run = toy_run(kernel, checks="off")
    div, adds = instructions(run, "V")
    (flag,) = items(run, "V", "set_flag")
    assert adds.start == div.accept == 65
    assert adds.end == div.end == 95
    assert (flag.start, flag.end) == (67, 96)


def test_a_set_behind_several_loads_waits_for_the_last() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        for part in range(3):
            asc.data_copy(local(4096 * part, 1024), window(x)[1024 * part :], 1024)
        hand_over(E.MTE2_V)
        asc.adds(local(C, 64), local(A, 64), 1.0, 64)

    run = toy_run(kernel, floats(3072))
    assert [item.end for item in instructions(run, "MTE2")] == [274, 338, 402]
    (adds,) = instructions(run, "V")
    assert adds.start == 402 + 11


def test_a_set_between_loads_does_not_wait_for_the_later_one() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        asc.data_copy(local(0, 1024), window(x), 1024)
        asc.set_flag(E.MTE2_V, 0)
        asc.data_copy(local(4096, 1024), window(x)[1024:], 1024)
        asc.wait_flag(E.MTE2_V, 0)
        asc.adds(local(C, 64), local(A, 64), 1.0, 64)

    run = toy_run(kernel, floats(2048))
    first, second = instructions(run, "MTE2")
    assert (first.end, second.start, second.end) == (274, 21, 338)
    (adds,) = instructions(run, "V")
    assert adds.start == 285


def test_a_set_does_not_hold_its_own_pipe() -> None:
    def kernel() -> None:
        asc.add(local(C, 1024), local(A, 1024), local(B, 1024), 1024)
        asc.set_flag(E.V_MTE3, 0)
        asc.add(local(C, 1024), local(A, 1024), local(B, 1024), 1024)
        asc.wait_flag(E.V_MTE3, 0)

    starts = [item.start for item in instructions(toy_run(kernel, checks="off"), "V")]
    assert starts == [1, 17]


def test_a_wait_holds_its_own_pipe_and_no_other() -> None:
    """MTE2 waits for V; the load behind it stands still while V, MTE3 and the scalar unit go on."""

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        for _ in range(4):
            asc.div(local(C, 1024), local(A, 1024), local(B, 1024), 1024)
        asc.set_flag(E.V_MTE2, 0)
        asc.wait_flag(E.V_MTE2, 0)
        asc.data_copy(local(A, 64), window(x), 64)
        asc.data_copy(window(z), local(0x28000, 64), 64)
        asc.adds(local(0x20000, 64), local(0x20000, 64), 1.0, 64)

    run = toy_run(kernel, floats(64), floats(64), checks="off")
    (load,), (store,) = instructions(run, "MTE2"), instructions(run, "MTE3")
    *_, last, adds = instructions(run, "V")
    assert last.end == 1 + 3 * 64 + 94
    assert load.start == last.end + 11
    assert (store.issue, store.start) == (26, 26)
    assert adds.issue == 27
    assert adds.start == 1 + 4 * 64
    (wait,) = items(run, name="wait_flag")
    assert wait.pipe.name == "MTE2"
    assert causes(run, "MTE2")["flag"] == load.start - wait.head


def test_two_tokens_of_one_flag_are_taken_in_order() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        for part in range(2):
            asc.data_copy(local(4096 * part, 1024), window(x)[1024 * part :], 1024)
            asc.set_flag(E.MTE2_V, 3)
            asc.wait_flag(E.MTE2_V, 3)
            asc.adds(local(C + 4096 * part, 1024), local(4096 * part, 1024), 1.0, 1024)

    run = toy_run(kernel, floats(2048))
    sets, waits = items(run, name="set_flag"), items(run, name="wait_flag")
    assert [wait.partner for wait in waits] == sets
    assert [item.start for item in instructions(run, "V")] == [285, 349]


@pytest.mark.parametrize(
    "event", [E.MTE2_V, E.V_MTE2, E.V_MTE3, E.MTE3_V, E.MTE2_MTE3, E.MTE3_MTE2]
)
def test_an_idle_pair_takes_eleven_cycles(event: asc.HardEvent) -> None:
    run = toy_run(lambda: hand_over(event))
    (flag,), (wait,) = items(run, name="set_flag"), items(run, name="wait_flag")
    source, target = event.name.split("_")
    assert (flag.pipe.name, flag.start, flag.end) == (source, 1, 2)
    assert (wait.pipe.name, wait.head, wait.start) == (target, 2, 12)


def test_a_wait_into_the_scalar_unit_stops_issue() -> None:
    def kernel() -> None:
        asc.add(local(C, 1024), local(A, 1024), local(B, 1024), 1024)
        hand_over(E.V_S)
        asc.adds(local(A, 64), local(A, 64), 1.0, 64)

    run = toy_run(kernel, checks="off")
    add, adds = instructions(run, "V")
    (wait,) = items(run, "S", "wait_flag")
    assert (add.end, wait.start, adds.issue) == (37, 48, 49)
    (stall, *_) = run.log.cores[0].stalls
    assert (stall.start, stall.end, stall.cause) == (3, 48, Cause.FLAG)


def test_a_set_of_the_scalar_unit_fires_at_once() -> None:
    def kernel() -> None:
        hand_over(E.S_V)
        asc.adds(local(A, 64), local(A, 64), 1.0, 64)

    run = toy_run(kernel, checks="off")
    (flag,) = items(run, "S", "set_flag")
    assert (flag.start, flag.end) == (1, 2)
    assert instructions(run, "V")[0].start == 12


def test_a_vector_flag_to_itself_is_a_barrier() -> None:
    def kernel() -> None:
        asc.add(local(C, 1024), local(A, 1024), local(B, 1024), 1024)
        hand_over(E.V_V)
        asc.add(local(A, 1024), local(C, 1024), local(B, 1024), 1024)

    run = toy_run(kernel)
    assert [item.name for item in items(run, "V")] == ["add", "pipe_barrier", "add"]
    assert [item.start for item in instructions(run, "V")] == [1, 37]
    assert "RACE" not in {finding.kind for finding in run.findings}


def test_flags_and_barriers_of_pipes_that_the_core_does_not_have() -> None:
    """They do nothing on a vector core; a flag that does nothing is worth a word."""

    def kernel() -> None:
        asc.set_flag(E.MTE1_M, 0)  # set
        asc.wait_flag(E.MTE1_M, 0)  # wait
        asc.pipe_barrier(asc.PipeID.PIPE_M)

    run = toy_run(kernel)
    assert items(run) == []
    assert [(f.kind, f.code, f.line) for f in run.findings] == [
        ("STATE", "flag-without-effect", line_of(kernel, f"# {word}")) for word in ("set", "wait")
    ]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: asc.set_flag(E.MTE2_V, 8), "event ids run from 0 to 7"),
        (lambda: asc.wait_flag(E.MTE2_V, -1), "event ids run from 0 to 7"),
        (lambda: asc.set_flag("MTE2_V", 0), "event must be a HardEvent such as MTE2_V"),
        (lambda: asc.pipe_barrier(asc.PipeID.PIPE_S), r"pipe_barrier\(PIPE_S\) is illegal"),
        (lambda: asc.pipe_barrier("V"), "pipe must be a PipeID such as PIPE_V"),
    ],
)
def test_flags_and_barriers_that_there_are_not(call: Any, text: str) -> None:
    with pytest.raises(OperandError, match=text) as caught:
        toy_run(call)
    assert caught.value.finding.kind == "ILLEGAL_PARAM"


# ---- barriers -------------------------------------------------------------------------------


def test_pipe_all_waits_for_every_pipe() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        asc.data_copy(local(0, 1024), window(x), 1024)
        asc.add(local(C, 1024), local(A, 1024), local(B, 1024), 1024)
        asc.pipe_barrier(ALL)
        asc.add(local(C, 1024), local(A, 1024), local(B, 1024), 1024)

    run = toy_run(kernel, floats(1024), checks="off")
    first, second = instructions(run, "V")
    assert (first.issue, first.end) == (11, 47)
    (barrier,) = items(run, "S", "pipe_barrier")
    assert (barrier.head, barrier.start) == (12, 274)
    assert second.issue == 275
    assert run.pipes["core0.aiv0"]["S"]["causes"]["barrier"] == 274 - 12 + 311 - 276


def test_pipe_all_with_nothing_under_way_costs_its_issue() -> None:
    def kernel() -> None:
        asc.pipe_barrier(ALL)
        asc.pipe_barrier(ALL)
        asc.adds(local(A, 64), local(A, 64), 1.0, 64)

    assert instructions(toy_run(kernel, checks="off"), "V")[0].issue == 3


def test_a_barrier_of_one_pipe_leaves_the_others_alone() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        asc.data_copy(local(0, 1024), window(x), 1024)
        asc.pipe_barrier(MTE2)
        asc.add(local(C, 64), local(A, 64), local(B, 64), 64)
        asc.pipe_barrier(V)
        asc.add(local(C, 64), local(A, 64), local(B, 64), 64)

    run = toy_run(kernel, floats(1024), checks="off")
    assert times(instructions(run, "V")) == [(12, 33), (33, 54)]


# ---- queues ---------------------------------------------------------------------------------


def test_a_full_queue_stops_the_scalar_unit() -> None:
    """32 places: item 33 takes the place of item 1, free when item 1 starts, at cycle 129; item 34 at 257."""

    def kernel() -> None:
        for _ in range(36):
            asc.adds(local(C, 8192), local(A, 8192), 1.0, 8192)  # 128 cycles

    run = toy_run(kernel, checks="off")
    issues = [item.issue for item in instructions(run, "V")]
    assert issues == [*range(1, 34), 130, 258, 386]
    full = [stall for stall in run.log.cores[0].stalls if stall.cause is Cause.QUEUE_FULL]
    assert [(stall.start, stall.end, stall.detail) for stall in full] == [
        (33, 129, "V"),
        (130, 257, "V"),
        (258, 385, "V"),
    ]
    assert run.stalls()["queue_full"] == 96 + 127 + 127
    assert [item.start for item in instructions(run, "V")] == [1 + 128 * i for i in range(36)]


def test_flags_take_places_in_a_queue_too() -> None:
    """The queue of MTE3 has 16 places, and its first item waits for V until cycle 48."""

    def kernel() -> None:
        asc.add(local(C, 1024), local(A, 1024), local(B, 1024), 1024)
        asc.set_flag(E.V_MTE3, 0)
        asc.wait_flag(E.V_MTE3, 0)
        for _ in range(16):
            asc.pipe_barrier(asc.PipeID.PIPE_MTE3)
        asc.adds(local(A, 64), local(A, 64), 1.0, 64)

    run = toy_run(kernel, checks="off")
    (wait,) = items(run, name="wait_flag")
    assert (wait.issue, wait.start) == (3, 48)
    barriers = items(run, "MTE3", "pipe_barrier")
    assert [item.issue for item in barriers] == [*range(4, 19), 49]
    assert instructions(run, "V")[1].issue == 50
    (full,) = [stall for stall in run.log.cores[0].stalls if stall.cause is Cause.QUEUE_FULL]
    assert (full.start, full.end, full.detail) == (18, 48, "MTE3")


def test_stores_fill_their_queue() -> None:
    """A store of one sector holds MTE3 for 102 cycles; item 18 takes the place of item 2, free at its start."""

    def kernel(z: asc.GlobalAddress) -> None:
        for part in range(20):
            asc.data_copy(window(z)[32 * part :], local(0, 32), 32)

    run = toy_run(kernel, floats(1024), checks="off")
    stores = instructions(run, "MTE3")
    assert [item.start for item in stores] == [10 + 102 * i for i in range(20)]
    assert [item.issue for item in stores[16:]] == [170, 180, 214 + 10, 316 + 10]
    assert run.stalls()["queue_full"] == (214 - 180) + (316 - 224)


def test_loads_in_a_full_queue_wait_for_the_flag_at_its_head() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        asc.div(local(C, 8192), local(A, 8192), local(B, 8192), 8192)  # ends at 543
        asc.set_flag(E.V_MTE2, 0)
        asc.wait_flag(E.V_MTE2, 0)
        for part in range(17):
            asc.data_copy(local(128 * part, 32), window(x)[32 * part :], 32)

    run = toy_run(kernel, floats(1024), checks="off")
    loads = instructions(run, "MTE2")
    assert [item.issue for item in loads[:15]] == [13 + 10 * i for i in range(15)]
    assert loads[0].start == 543 + 11
    assert loads[15].issue == 554 + 10
    assert loads[16].issue == 554 + 20
    assert run.stalls()["queue_full"] == 554 - 153
