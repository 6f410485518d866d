"""Flags between cores on the toy chip: seen 100 cycles after the set; sync_all takes a microsecond."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ascend_sim import asc
from ascend_sim.errors import DeadlockError, HostError, OperandError
from ascend_sim.run import Run
from ascend_sim.trace import Cause
from tests.machine.kit import (
    ALL,
    A,
    C,
    E,
    hand_over,
    instructions,
    items,
    line_of,
    local,
    toy_run,
    window,
)

MIX = {"kernel_type": "MIX_AIC_1_2"}
MTE2, MTE3 = asc.PipeID.PIPE_MTE2, asc.PipeID.PIPE_MTE3
N = 64


def core(run: Run, name: str) -> int:
    return [log.name for log in run.log.cores].index(name)


def waits(run: Run, name: str) -> list[int]:
    """When the cross-core waits of a core were released."""
    return [item.start for item in items(run, "S", "cross_core_wait_flag", core(run, name))]


def test_the_cores_of_a_block() -> None:
    run = toy_run(lambda: None, cores=2, **MIX)
    assert [log.name for log in run.log.cores] == [
        "core0.aic", "core0.aiv0", "core0.aiv1", "core1.aic", "core1.aiv0", "core1.aiv1",
    ]  # fmt: skip


def test_indices() -> None:
    seen = []

    def kernel() -> None:
        seen.append(
            (asc.ascend_is_aic(), asc.get_block_idx(), asc.get_sub_block_idx(), asc.get_block_num())
        )

    toy_run(kernel, cores=2, **MIX)
    assert sorted(seen) == [
        (False, 0, 0, 2), (False, 1, 1, 2), (False, 2, 0, 2), (False, 3, 1, 2), (True, 0, 0, 2), (True, 1, 0, 2),
    ]  # fmt: skip


def test_from_the_cube_core_to_both_vector_cores() -> None:
    """The set goes into an idle pipe at cycle 1 and fires at 2; both vector cores see it at 102."""

    def kernel() -> None:
        if asc.ascend_is_aic():
            asc.cross_core_set_flag(3, 2, MTE2)
        else:
            asc.cross_core_wait_flag(3)
            asc.duplicate(local(A, N), 1.0, N)

    run = toy_run(kernel, **MIX)
    assert waits(run, "core0.aiv0") == waits(run, "core0.aiv1") == [102]
    for name in ("core0.aiv0", "core0.aiv1"):
        assert instructions(run, "V", core(run, name))[0].issue == 103
        assert run.pipes[name]["S"]["causes"][Cause.CROSS_CORE.value] > 0
    assert run.findings == []


def test_from_both_vector_cores_to_the_cube_core() -> None:
    """The later of the two counts: it sets behind a fill that ends at 37."""

    def kernel() -> None:
        if asc.ascend_is_aic():
            asc.cross_core_wait_flag(4)
        else:
            if asc.get_sub_block_idx() == 1:
                asc.duplicate(local(A, 1024), 1.0, 1024)
            asc.cross_core_set_flag(4, 2, asc.PipeID.PIPE_V)

    run = toy_run(kernel, **MIX)
    assert waits(run, "core0.aic") == [37 + 1 + 100]


def test_a_set_behind_a_store_says_that_it_is_out() -> None:
    """Vector core 0 stores, vector core 1 loads after the flag, and both know it: no race, the right values."""

    def kernel(z: asc.GlobalAddress, y: asc.GlobalAddress) -> None:
        if asc.ascend_is_aic():
            return
        t = local(A, N)
        if asc.get_sub_block_idx() == 0:
            asc.duplicate(t, 7.0, N)
            hand_over(E.V_MTE3)
            asc.data_copy(window(z), t, N)
        asc.cross_core_set_flag(1, 1, MTE3)
        asc.cross_core_wait_flag(1)
        if asc.get_sub_block_idx() == 1:
            asc.data_copy(t, window(z), N)
            hand_over(E.MTE2_MTE3)
            asc.data_copy(window(y), t, N)

    z, y = np.zeros(N, np.float32), np.zeros(N, np.float32)
    run = toy_run(kernel, z, y, **MIX)
    assert (y == 7).all()
    assert run.findings == []
    store = instructions(run, "MTE3", core(run, "core0.aiv0"))[0]
    assert waits(run, "core0.aiv1") == [store.end + 1 + 100]


def test_counters_keep_what_comes_early() -> None:
    def kernel() -> None:
        if asc.ascend_is_aic():
            for _ in range(3):
                asc.cross_core_set_flag(0, 2, MTE2)
        else:
            for _ in range(3):
                asc.cross_core_wait_flag(0)

    run = toy_run(kernel, **MIX)
    assert waits(run, "core0.aiv0") == [102, 103, 104]
    assert run.findings == []


@pytest.mark.parametrize("blocks", [1, 2, 4])
def test_sync_all_of_vector_cores(blocks: int) -> None:
    """Each block leaves its number, all meet, each reads all."""

    def kernel(z: asc.GlobalAddress, y: asc.GlobalAddress) -> None:
        block = asc.get_block_idx()
        for _ in range(10 * block):
            local(C, 8).set_value(0, 1.0)
        asc.duplicate(local(A, 8), block + 1.0, 8)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z)[8 * block :], local(A, 8), 8)
        asc.sync_all()
        count = 8 * asc.get_block_num()
        asc.data_copy(local(C, count), window(z), count)
        hand_over(E.MTE2_MTE3)
        asc.data_copy(window(y)[count * block :], local(C, count), count)

    z, y = np.zeros(8 * blocks, np.float32), np.zeros((blocks, 8 * blocks), np.float32)
    run = toy_run(kernel, z, y, cores=blocks)
    assert z.tolist() == np.repeat(np.arange(1.0, blocks + 1), 8).tolist()
    assert (y == z).all()
    assert run.findings == []
    released = {waits(run, log.name)[0] for log in run.log.cores}
    last = max(instructions(run, "MTE3", index)[0].end for index in range(blocks))
    assert len(released) == 1
    assert 100 <= released.pop() - last <= 1000 + 10


def test_without_sync_all_the_same_kernel_races() -> None:
    def kernel(z: asc.GlobalAddress, y: asc.GlobalAddress) -> None:
        block = asc.get_block_idx()
        asc.duplicate(local(A, 8), block + 1.0, 8)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z)[8 * block :], local(A, 8), 8)
        asc.data_copy(local(C, 16), window(z), 16)
        hand_over(E.MTE2_MTE3)
        asc.data_copy(window(y)[16 * block :], local(C, 16), 16)

    run = toy_run(kernel, np.zeros(16, np.float32), np.zeros(32, np.float32), cores=2)
    assert "race-blocks-raw" in [finding.code for finding in run.findings]


def test_a_sync_all_orders_what_stands_before_it_only() -> None:
    """All meet first, and only then write the same bytes."""

    def kernel(z: asc.GlobalAddress) -> None:
        asc.duplicate(local(A, 8), 1.0, 8)
        asc.sync_all()
        asc.data_copy(window(z), local(A, 8), 8)

    run = toy_run(kernel, np.zeros(8, np.float32), cores=2)
    assert [finding.code for finding in run.findings] == ["race-blocks-waw"]


def test_a_core_that_never_comes() -> None:
    def kernel() -> None:
        if asc.get_block_idx() != 2:
            asc.sync_all()  # here

    with pytest.raises(DeadlockError) as caught:
        toy_run(kernel, cores=4)
    message = str(caught.value)
    assert "for sync_all: 3 of 4 cores have come, missing: core1.aiv0 (has ended)" in message
    assert f"test_cross_core.py:{line_of(kernel, '# here')}" in message
    assert caught.value.finding.line == line_of(kernel, "# here")


def test_only_one_vector_core_sets() -> None:
    def kernel() -> None:
        if asc.ascend_is_aic():
            asc.cross_core_wait_flag(5)
        elif asc.get_sub_block_idx() == 0:
            asc.cross_core_set_flag(5, 2, MTE3)

    with pytest.raises(DeadlockError, match="1 of 2 have set, missing: core0"):
        toy_run(kernel, **MIX)


def test_a_counter_left_over() -> None:
    def kernel() -> None:
        if asc.ascend_is_aic():
            asc.cross_core_set_flag(5, 2, MTE2)  # here

    run = toy_run(kernel, **MIX)
    assert [(f.kind, f.code) for f in run.findings][:1] == [
        ("FLAG_BALANCE", "cross-core-counter-left")
    ]
    assert {f.line for f in run.findings} == {line_of(kernel, "# here")}


@pytest.mark.parametrize("sets", [15, 16])
def test_a_counter_holds_fifteen(sets: int) -> None:
    """The sixteenth set without a wait is an error of the hardware."""

    def kernel() -> None:
        if asc.ascend_is_aic():
            for _ in range(sets):
                asc.cross_core_set_flag(5, 2, MTE2)
        else:
            for _ in range(100):
                local(A, 8).set_value(0, 1.0)
            for _ in range(sets):
                asc.cross_core_wait_flag(5)

    run = toy_run(kernel, **MIX)
    assert bool(run.findings) is (sets > 15)


@pytest.mark.parametrize(
    ("pipes", "answer", "fine"),
    [
        ((MTE2, MTE2), False, True),
        ((MTE2, MTE3), False, False),
        ((MTE2, MTE3), True, True),
    ],
)
def test_one_flag_from_two_pipes(pipes: Any, answer: bool, fine: bool) -> None:
    """Which of the two sets comes first is open, and the counter does not tell; in turn they are known."""

    def kernel() -> None:
        if asc.ascend_is_aic():
            asc.cross_core_set_flag(5, 2, pipes[0])
            if answer:
                asc.cross_core_wait_flag(6)
            asc.cross_core_set_flag(5, 2, pipes[1])  # here
        else:
            asc.cross_core_wait_flag(5)
            if answer:
                asc.cross_core_set_flag(6, 2, MTE3)
            asc.cross_core_wait_flag(5)

    run = toy_run(kernel, **MIX)
    assert [finding.code for finding in run.findings] == ([] if fine else ["cross-core-flag-mixed"])
    if not fine:
        assert run.findings[0].line == line_of(kernel, "# here")
        assert "from two sides at once" in run.findings[0].message


@pytest.mark.parametrize("ahead", [1, 15, 16, 20])
def test_how_far_a_producer_may_run_ahead(ahead: int) -> None:
    """Whether the counter can overflow is a matter of the program, not of who is faster in this run."""

    def kernel(rounds: int) -> None:
        if asc.ascend_is_aic():
            for turn in range(rounds):
                if turn >= ahead:
                    asc.cross_core_wait_flag(6)
                asc.cross_core_set_flag(5, 2, MTE2)  # here
            for _ in range(min(ahead, rounds)):
                asc.cross_core_wait_flag(6)
        else:
            for _ in range(rounds):
                asc.cross_core_wait_flag(5)
                asc.cross_core_set_flag(6, 2, MTE3)

    run = toy_run(kernel, 40, **MIX)
    assert {finding.code for finding in run.findings} == (
        {"cross-core-counter-overflow"} if ahead > 15 else set()
    )
    if ahead > 15:
        assert run.findings[0].line == line_of(kernel, "# here")
        assert "may find its counter on core0.aiv" in run.findings[0].message


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: asc.cross_core_set_flag(11, 2, MTE2), OperandError, "ids 0 to 10"),
        (lambda: asc.cross_core_set_flag(0, 3, MTE2), OperandError, "mode_id is 3"),
        (
            lambda: asc.cross_core_set_flag(0, 2, asc.PipeID.PIPE_S),
            OperandError,
            "other than PIPE_S",
        ),
        (lambda: asc.cross_core_set_flag(0, 2, ALL), OperandError, "one pipe"),
        (lambda: asc.cross_core_wait_flag(-1), OperandError, "ids 0 to 10"),
    ],
)
def test_flags_that_there_are_not(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        toy_run(call, **MIX)


def test_a_vector_kernel_has_no_flags_between_cores() -> None:
    with pytest.raises(HostError, match="mix kernels only"):
        toy_run(lambda: asc.cross_core_set_flag(0, 0, MTE3))


@pytest.mark.parametrize("relay", [True, False])
def test_order_from_one_vector_core_to_the_other_by_way_of_the_cube_core(relay: bool) -> None:
    """Both vector cores report to the cube core, which answers both; without it they are not ordered."""

    def kernel(z: asc.GlobalAddress) -> None:
        if asc.ascend_is_aic():
            if relay:
                asc.cross_core_wait_flag(1)
                asc.cross_core_set_flag(2, 2, MTE2)
            return
        t = local(A, N)
        if asc.get_sub_block_idx() == 0:
            asc.duplicate(t, 7.0, N)
            hand_over(E.V_MTE3)
            asc.data_copy(window(z), t, N)  # store
        if relay:
            asc.cross_core_set_flag(1, 2, MTE3)
            asc.cross_core_wait_flag(2)
        if asc.get_sub_block_idx() == 1:
            asc.data_copy(t, window(z), N)  # load

    run = toy_run(kernel, np.zeros(N, np.float32), **MIX)
    if relay:
        assert run.findings == []
    else:
        (race,) = run.findings
        assert (race.kind, race.code) == ("RACE", "race-blocks-raw")
        assert race.line == line_of(kernel, "# load")
        assert str(line_of(kernel, "# store")) in race.message


def test_a_flag_that_is_set_before_the_store_orders_nothing() -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        if asc.ascend_is_aic():
            return
        t = local(A, N)
        first = asc.get_sub_block_idx() == 0
        if first:
            asc.duplicate(t, 7.0, N)
            hand_over(E.V_MTE3)
        asc.cross_core_set_flag(1, 1, MTE3)
        if first:
            asc.data_copy(window(z), t, N)
        asc.cross_core_wait_flag(1)
        if not first:
            asc.data_copy(t, window(z), N)

    (race,) = toy_run(kernel, np.zeros(N, np.float32), **MIX).findings
    assert race.kind == "RACE"


def test_a_producer_that_does_not_wait_for_its_consumer() -> None:
    """The second store may come before the first has been read: nothing leads back."""

    def kernel(z: asc.GlobalAddress, back: bool) -> None:
        if asc.ascend_is_aic():
            return
        t = local(A, N)
        for turn in range(2):
            if asc.get_sub_block_idx() == 0:
                asc.duplicate(t, float(turn), N)
                hand_over(E.V_MTE3)
                if back and turn:
                    asc.cross_core_wait_flag(2)
                asc.data_copy(window(z), t, N)  # store
                hand_over(E.MTE3_V)
                asc.cross_core_set_flag(1, 1, MTE3)
                asc.cross_core_wait_flag(1)
            else:
                asc.cross_core_set_flag(1, 1, MTE3)
                asc.cross_core_wait_flag(1)
                asc.data_copy(t, window(z), N)  # load
                asc.pipe_barrier(MTE2)
            if back and not turn:
                asc.cross_core_set_flag(2, 1, MTE2)
                if asc.get_sub_block_idx() == 1:
                    asc.cross_core_wait_flag(2)

    with_it, without = (
        toy_run(kernel, np.zeros(N, np.float32), back, **MIX).findings for back in (True, False)
    )
    assert with_it == []
    assert "RACE" in {finding.kind for finding in without}
