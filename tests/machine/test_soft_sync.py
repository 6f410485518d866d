"""Vector cores that synchronise through words of GM, on the toy chip: a poll takes 100 cycles, sync_all 2000."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.errors import DeadlockError, KernelError
from ascend_sim.run import Run
from tests.machine.kit import (
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

W = 0x20000
"""UB byte of the workspace."""


def words(blocks: int) -> asc.LocalTensor:
    return local(W, 8 * blocks, asc.int32)


def released(run: Run, name: str) -> list[int]:
    """When the first wait of each core by some call was released."""
    found = [items(run, "S", name, index) for index in range(len(run.log.cores))]
    return [mine[0].start for mine in found if mine]


def zeros(*shape: int) -> np.ndarray[Any, Any]:
    return np.zeros(shape, np.float32)


# ---- sync_all -------------------------------------------------------------------------------


def meet(z: Any, y: Any, ws: Any, rounds: int, sync: bool, used: int = 0) -> None:
    """Each block leaves its number, all meet, each reads all; several times."""
    block, total = asc.get_block_idx(), asc.get_block_num()
    for turn in range(rounds):
        asc.duplicate(local(A, 8), 10.0 * turn + block, 8)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z)[8 * block :], local(A, 8), 8)
        if sync:
            asc.sync_all(window(ws), words(total), used)  # meet
        asc.data_copy(local(C, 8 * total), window(z), 8 * total)
        hand_over(E.MTE2_MTE3)
        asc.data_copy(window(y)[8 * total * block :], local(C, 8 * total), 8 * total)
        hand_over(E.MTE3_MTE2)
        hand_over(E.MTE3_V)
        if sync:
            asc.sync_all(window(ws), words(total), used)


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("blocks", [1, 2, 4])
def test_all_blocks_meet(blocks: int, rounds: int) -> None:
    z, y, ws = zeros(8 * blocks), zeros(blocks, 8 * blocks), np.zeros(8 * blocks, np.int32)
    run = toy_run(meet, z, y, ws, rounds, True, cores=blocks)
    assert run.findings == []
    assert (y == z).all()
    assert z[::8].tolist() == [10.0 * (rounds - 1) + block for block in range(blocks)]
    assert ws[::8].tolist() == [2 * rounds] * blocks  # one word a core, counted up by each call
    first = released(run, "sync_all")
    stored = max(instructions(run, "MTE3", index)[1].end for index in range(blocks))
    assert len(set(first)) == 1
    assert first[0] == stored + 1 + 2000


def test_without_it_the_same_kernel_races() -> None:
    run = toy_run(meet, zeros(16), zeros(2, 16), np.zeros(16, np.int32), 1, False, cores=2)
    assert "race-blocks-raw" in {finding.code for finding in run.findings}


def test_what_stands_before_it_is_what_it_orders() -> None:
    def kernel(z: asc.GlobalAddress, ws: asc.GlobalAddress) -> None:
        asc.duplicate(local(A, 8), 1.0, 8)
        asc.sync_all(window(ws), words(2))
        asc.data_copy(window(z), local(A, 8), 8)

    run = toy_run(kernel, zeros(8), np.zeros(16, np.int32), cores=2)
    assert [finding.code for finding in run.findings] == ["race-blocks-waw"]


def test_some_of_the_blocks() -> None:
    def kernel(ws: asc.GlobalAddress) -> None:
        if asc.get_block_idx() < 3:
            asc.sync_all(window(ws), words(3), 3)

    run = toy_run(kernel, np.zeros(24, np.int32), cores=4)
    assert run.findings == []


def test_a_block_that_never_comes() -> None:
    def kernel(ws: asc.GlobalAddress) -> None:
        if asc.get_block_idx() != 2:
            asc.sync_all(window(ws), words(4))  # here

    with pytest.raises(DeadlockError) as caught:
        toy_run(kernel, np.zeros(32, np.int32), cores=4)
    message = str(caught.value)
    assert "sync_all through GM: 3 of 4 blocks have come, missing: block 2" in message
    assert caught.value.finding.line == line_of(kernel, "# here")


def test_a_workspace_that_is_not_zero() -> None:
    run = toy_run(meet, zeros(16), zeros(2, 16), np.full(16, 7, np.int32), 1, True, cores=2)
    assert {(finding.kind, finding.code) for finding in run.findings} == {
        ("STATE", "sync-word-not-zero")
    }
    finding = run.findings[0]
    assert finding.line == line_of(meet, "# meet")
    assert "where 0 should be" in finding.message


# ---- ib_set and ib_wait ---------------------------------------------------------------------


def relay(z: Any, ws: Any, sync: bool, turns: int) -> None:
    """Block 0 stores, block 1 reads and adds one, and back."""
    me = asc.get_block_idx()
    ub = words(1)
    for turn in range(turns):
        if turn % 2 == me:
            if sync and turn:
                asc.ib_wait(window(ws), ub, 1 - me, 0)  # wait
            asc.data_copy(local(A, 8), window(z), 8)
            hand_over(E.MTE2_V)
            asc.adds(local(C, 8), local(A, 8), 1.0, 8)
            hand_over(E.V_MTE3)
            asc.data_copy(window(z), local(C, 8), 8)
            hand_over(E.MTE3_MTE2)
            hand_over(E.MTE3_V)
            if sync and turn + 1 < turns:
                asc.ib_set(window(ws), ub, me, 0)  # set


@pytest.mark.parametrize("turns", [2, 5, 8])
def test_two_blocks_take_turns(turns: int) -> None:
    z, ws = zeros(8), np.zeros(16, np.int32)
    run = toy_run(relay, z, ws, True, turns, cores=2)
    assert run.findings == []
    assert (z == turns).all()
    assert (ws == 0).all()  # every set has been taken
    assert "race-blocks" in toy_run(relay, zeros(8), ws, False, turns, cores=2).findings[0].code


def test_a_wait_ends_one_poll_after_the_word_is_there() -> None:
    run = toy_run(relay, zeros(8), np.zeros(16, np.int32), True, 2, cores=2)
    stored = instructions(run, "MTE3", 0)[-1]
    assert released(run, "ib_wait") == [stored.end + 1 + 100]


def test_events_of_one_block_are_apart() -> None:
    def kernel(ws: asc.GlobalAddress) -> None:
        if asc.get_block_idx() == 0:
            asc.ib_set(window(ws), words(1), 0, 1)  # sets event 1
        else:
            asc.ib_wait(window(ws), words(1), 0, 0)  # waits for event 0

    with pytest.raises(DeadlockError) as caught:
        toy_run(kernel, np.zeros(40, np.int32), cores=2)
    assert "ib_set of event 0 of block 0: nobody sets it" in str(caught.value)
    assert caught.value.finding.line == line_of(kernel, "# waits")


def test_a_second_set_waits_until_the_first_is_taken() -> None:
    def kernel(ws: asc.GlobalAddress, taken: bool) -> None:
        if asc.get_block_idx() == 0:
            for _ in range(2):
                asc.ib_set(window(ws), words(1), 0, 0)  # set
        elif taken:
            for _ in range(2):
                asc.ib_wait(window(ws), words(1), 0, 0)

    assert toy_run(kernel, np.zeros(16, np.int32), True, cores=2).findings == []
    with pytest.raises(DeadlockError, match="event 0 of block 0 to be taken by ib_wait"):
        toy_run(kernel, np.zeros(16, np.int32), False, cores=2)


# ---- one block after the other --------------------------------------------------------------


def in_turn(z: Any, ws: Any, sync: bool, rounds: int) -> None:
    """All blocks add to one place, one after the other: a sum in a fixed order."""
    total = asc.get_block_num()
    for _ in range(rounds):
        if sync:
            asc.wait_pre_block(window(ws), words(total + 1))
        asc.data_copy(local(A, 8), window(z), 8)
        hand_over(E.MTE2_V)
        asc.adds(local(C, 8), local(A, 8), asc.get_block_idx() + 1.0, 8)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z), local(C, 8), 8)
        hand_over(E.MTE3_MTE2)
        hand_over(E.MTE3_V)
        if sync:
            asc.notify_next_block(window(ws), words(total + 1))


@pytest.mark.parametrize(("blocks", "rounds"), [(1, 2), (2, 1), (4, 1), (3, 3)])
def test_blocks_in_turn(blocks: int, rounds: int) -> None:
    z, ws = zeros(8), np.zeros(8 * blocks, np.int32)
    run = toy_run(in_turn, z, ws, True, rounds, cores=blocks)
    assert run.findings == []
    assert (z == rounds * blocks * (blocks + 1) / 2).all()
    if blocks > 1:
        run = toy_run(in_turn, zeros(8), ws * 0, False, rounds, cores=blocks)
        assert {finding.kind for finding in run.findings} == {"RACE"}


def test_a_block_that_does_not_notify() -> None:
    def kernel(ws: asc.GlobalAddress) -> None:
        asc.wait_pre_block(window(ws), words(4))  # here
        if asc.get_block_idx() != 1:
            asc.notify_next_block(window(ws), words(4))

    with pytest.raises(DeadlockError, match="for notify_next_block of block 1") as caught:
        toy_run(kernel, np.zeros(24, np.int32), cores=3)
    assert caught.value.finding.line == line_of(kernel, "# here")


# ---- arguments ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda w: asc.sync_all(w, words(1)), "16 bytes; 2 words of 32 bytes|32 bytes; 2 words"),
        (lambda w: asc.sync_all(w, words(2), 3), "used_cores"),
        (lambda w: asc.sync_all(w, words(2), is_aiv_only=False), "vector cores alone"),
        (lambda w: asc.sync_all(w, local(W, 16)), "LocalTensor of int32 in UB"),
        (lambda w: asc.ib_set(w, words(1), 2, 0), "block_idx"),
        (lambda w: asc.ib_wait(w, words(1), 0, 5), "11 words of 32 bytes"),
        (lambda w: asc.notify_next_block(w, words(2)), "3 words of 32 bytes"),
        (lambda w: asc.wait_pre_block(local(W, 8), words(3)), "bound GlobalTensor of int32"),
    ],
)
def test_arguments_that_there_are_not(call: Any, text: str) -> None:
    with pytest.raises(KernelError, match=text):
        toy_run(lambda w: call(window(w)), np.zeros(16, np.int32), cores=2)


def test_cube_cores_take_no_part() -> None:
    def kernel(ws: asc.GlobalAddress) -> None:
        asc.sync_all(window(ws), words(4))

    run = toy_run(kernel, np.zeros(32, np.int32), cores=2, kernel_type="MIX_AIC_1_2")
    assert run.findings == []
    assert released(run, "sync_all") and len(released(run, "sync_all")) == 4


def test_a_replay_takes_as_long() -> None:
    arguments = (zeros(32), zeros(4, 32), np.zeros(32, np.int32), 2, True)
    run = toy_run(meet, *arguments, cores=4)
    for recording in (
        run.recording(),
        sim.record(meet, *arguments, cores=4, chip="toy"),
    ):
        assert recording.replay("toy").cycles == run.cycles
        other = toy_run(meet, *arguments, cores=4, chip="ascend910b1")
        assert recording.replay("ascend910b1").cycles == other.cycles


def test_a_shuffled_run_is_the_same_run() -> None:
    from tests.machine.kit import everything

    def go(seed: int | None) -> Any:
        return everything(
            toy_run(
                meet,
                zeros(32),
                zeros(4, 32),
                np.zeros(32, np.int32),
                2,
                True,
                cores=4,
                shuffle=seed,
            )
        )

    first = go(None)
    assert all(go(seed) == first for seed in range(4))
