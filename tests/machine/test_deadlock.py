"""Kernels that hang: what the message says about each wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ascend_sim import asc
from ascend_sim.errors import DeadlockError
from tests.machine.kit import (
    ALL,
    A,
    C,
    E,
    instructions,
    items,
    kinds,
    line_of,
    local,
    toy_run,
    window,
)


def floats(count: int) -> np.ndarray[Any, Any]:
    return np.arange(count, dtype=np.float32)


def hang(kernel: Any, *args: Any, **options: Any) -> DeadlockError:
    with pytest.raises(DeadlockError) as caught:
        toy_run(kernel, *args, **options)
    error = caught.value
    assert (error.finding.kind, error.finding.code) == ("DEADLOCK", "deadlock")
    assert ("DEADLOCK", "deadlock") in kinds(error.run)
    assert error.run.exit_code == 3
    assert str(error) == error.finding.message
    return error


def test_a_missing_set() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        asc.data_copy(local(A, 64), window(x), 64)
        asc.wait_flag(E.MTE2_V, 2)  # here
        asc.adds(local(C, 64), local(A, 64), 1.0, 64)

    error = hang(kernel, floats(64))
    assert (error.finding.line, error.finding.core, error.finding.pipe) == (
        line_of(kernel, "# here"),
        "core0.aiv0",
        "V",
    )
    message = str(error)
    assert "core0.aiv0.V" in message
    assert (
        f"waits at tests/machine/test_deadlock.py:{line_of(kernel, '# here')} in kernel for MTE2_V id 2"
        in message
    )
    assert "this is wait number 1, the flag was set 0 times" in message
    assert "nothing sets it: add set_flag(MTE2_V, 2) before this wait" in message


def test_the_wrong_id() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        asc.data_copy(local(A, 64), window(x), 64)
        asc.set_flag(E.MTE2_V, 1)  # set
        asc.wait_flag(E.MTE2_V, 2)

    message = str(hang(kernel, floats(64)))
    assert (
        f"a set of id 1 is at tests/machine/test_deadlock.py:{line_of(kernel, '# set')}" in message
    )


def test_one_set_too_few() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        for part in range(4):
            asc.data_copy(local(A, 64), window(x), 64)
            if part < 3:
                asc.set_flag(E.MTE2_V, 0)
            asc.wait_flag(E.MTE2_V, 0)

    message = str(hang(kernel, floats(64), checks="off"))
    assert "this is wait number 4, the flag was set 3 times" in message


def test_two_pipes_wait_for_each_other() -> None:
    def kernel() -> None:
        asc.wait_flag(E.MTE3_V, 0)  # v waits
        asc.set_flag(E.V_MTE3, 0)  # v sets
        asc.wait_flag(E.V_MTE3, 0)  # mte3 waits
        asc.set_flag(E.MTE3_V, 0)  # mte3 sets

    message = str(hang(kernel))
    place = "tests/machine/test_deadlock.py"
    lines = message.splitlines()
    v = next(line for line in lines if "core0.aiv0.V" in line)
    mte3 = next(line for line in lines if "core0.aiv0.MTE3" in line)
    assert f"waits at {place}:{line_of(kernel, '# v waits')}" in v
    assert (
        f"the next set is at {place}:{line_of(kernel, '# mte3 sets')} in kernel, queued behind" in v
    )
    assert f"waits at {place}:{line_of(kernel, '# mte3 waits')}" in mte3
    assert f"the next set is at {place}:{line_of(kernel, '# v sets')}" in mte3


def test_a_wait_into_the_scalar_unit() -> None:
    def kernel() -> None:
        asc.wait_flag(E.V_S, 0)  # here
        asc.duplicate(local(A, 64), 1.0, 64)

    error = hang(kernel)
    assert (error.finding.pipe, error.finding.line) == ("S", line_of(kernel, "# here"))
    assert instructions(error.run, "V") == []


def test_pipe_all_behind_a_wait() -> None:
    def kernel() -> None:
        asc.wait_flag(E.MTE2_V, 0)
        asc.pipe_barrier(ALL)  # here

    message = str(hang(kernel))
    assert (
        f"waits in pipe_barrier (tests/machine/test_deadlock.py:{line_of(kernel, '# here')}"
        in message
    )


def test_a_full_queue_behind_a_wait() -> None:
    def kernel() -> None:
        asc.wait_flag(E.MTE2_V, 0)
        for _ in range(40):
            asc.duplicate(local(A, 64), 1.0, 64)  # here

    error = hang(kernel, checks="off")
    assert "the queue of V is full" in str(error)
    assert f"test_deadlock.py:{line_of(kernel, '# here')}" in str(error)


def test_a_value_that_never_comes() -> None:
    """The set comes after a read that waits for it."""

    def kernel() -> None:
        asc.wait_flag(E.V_S, 0)
        if local(A, 64).get_value(0) > 0:
            asc.set_flag(E.V_S, 0)

    assert "V_S id 0" in str(hang(kernel))


def test_the_log_of_a_hang_is_whole() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        if asc.get_block_idx() == 1:
            asc.wait_flag(E.V_MTE2, 0)
        for part in range(4):
            asc.data_copy(local(4096 * part, 1024), window(x)[1024 * part :], 1024)

    error = hang(kernel, floats(4096), cores=2)
    run = error.run
    assert error.finding.core == "core0.aiv1"
    assert run.cycles == 466  # when the last thing that could move had landed
    assert len(instructions(run, "MTE2", 0)) == 4
    assert instructions(run, "MTE2", 1) == []
    second = run.pipes["core0.aiv1"]
    assert second["MTE2"]["causes"] == {"scalar": 1, "flag": 465}


def test_only_the_blocks_that_hang_are_named() -> None:
    def kernel() -> None:
        if asc.get_block_idx() == 2:
            asc.wait_flag(E.MTE2_V, 0)

    message = str(hang(kernel, cores=4))
    assert "core1.aiv0" in message
    assert "core0" not in message
    assert "core1.aiv1" not in message


# ---- who waits for whom ---------------------------------------------------------------------


def ring_of(error: DeadlockError) -> list[str]:
    """The units that a message says wait for each other."""
    (line,) = [line for line in str(error).splitlines() if "they wait for each other" in line]
    return line.partition(": ")[2].partition(". ")[0].split(" -> ")


def test_a_ring_of_two_pipes() -> None:
    def kernel() -> None:
        asc.wait_flag(E.MTE3_V, 0)
        asc.set_flag(E.V_MTE3, 0)
        asc.wait_flag(E.V_MTE3, 0)
        asc.set_flag(E.MTE3_V, 0)

    assert ring_of(hang(kernel)) == ["core0.aiv0.V", "core0.aiv0.MTE3", "core0.aiv0.V"]


def test_a_loop_that_waits_before_it_sets() -> None:
    """The cube core's ping-pong without its first set."""

    def kernel() -> None:
        a1 = asc.LocalTensor(asc.float16, asc.TPosition.A1, 0, 256)
        a2 = asc.LocalTensor(asc.float16, asc.TPosition.A2, 0, 256)
        b2 = asc.LocalTensor(asc.float16, asc.TPosition.B2, 0, 256)
        c = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, 256)
        for _ in range(4):
            asc.wait_flag(E.M_MTE1, 3)  # here
            asc.load_data(a2, a1, asc.LoadData2DParams(0, 1, 1))
            asc.set_flag(E.MTE1_M, 3)
            asc.wait_flag(E.MTE1_M, 3)
            asc.mmad(c, a2, b2, asc.MmadParams(16, 16, 16))
            asc.set_flag(E.M_MTE1, 3)  # set

    error = hang(kernel, checks="off", kernel_type="AIC_ONLY")
    message = str(error)
    assert ring_of(error) == ["core0.aic.M", "core0.aic.MTE1", "core0.aic.M"]
    assert "needs one set before the loop, here set_flag(M_MTE1, 3)" in message  # not MTE1_M
    assert error.finding.line == line_of(kernel, "# here")
    assert "this is wait number 1, the flag was set 0 times" in message
    place = f"tests/machine/test_deadlock.py:{line_of(kernel, '# set')}"
    assert f"the next set is at {place} in kernel, queued behind what waits" in message


def test_cube_and_vector_cores_wait_for_each_other() -> None:
    def kernel() -> None:
        if asc.ascend_is_aic():
            asc.cross_core_wait_flag(1, 2, asc.PipeID.PIPE_S)  # cube
            asc.cross_core_set_flag(2, 2, asc.PipeID.PIPE_FIX)
        else:
            asc.cross_core_wait_flag(2, 2, asc.PipeID.PIPE_S)  # vector
            asc.cross_core_set_flag(1, 2, asc.PipeID.PIPE_MTE3)

    error = hang(kernel, kernel_type="MIX_AIC_1_2")
    message = str(error)
    assert "core0.aic.S" in message
    assert f":{line_of(kernel, '# cube')} in kernel for cross-core flag 1" in message
    assert f":{line_of(kernel, '# vector')} in kernel for cross-core flag 2" in message
    assert "nobody sets it" in message


def test_the_second_round_that_one_core_leaves_out() -> None:
    def kernel() -> None:
        if asc.ascend_is_aic():
            for _ in range(2):
                asc.cross_core_wait_flag(1, 2, asc.PipeID.PIPE_S)  # here
        else:
            for _ in range(2 - asc.get_sub_block_idx()):
                asc.cross_core_set_flag(1, 2, asc.PipeID.PIPE_MTE3)

    error = hang(kernel, kernel_type="MIX_AIC_1_2")
    assert (
        "for cross-core flag 1, wait number 2: mode 2: 1 of 2 have set, missing: core0.aiv1 (has ended)"
        in str(error)
    )
    assert (error.finding.core, error.finding.line) == ("core0.aic", line_of(kernel, "# here"))


def test_a_flag_with_another_number_has_come() -> None:
    def kernel() -> None:
        if asc.ascend_is_aic():
            asc.cross_core_set_flag(4, 2, asc.PipeID.PIPE_FIX)  # set
        else:
            asc.cross_core_wait_flag(5, 2, asc.PipeID.PIPE_S)

    message = str(hang(kernel, kernel_type="MIX_AIC_1_2"))
    place = f"tests/machine/test_deadlock.py:{line_of(kernel, '# set')}"
    assert f"flag 4 has come (set at {place} in kernel) and nobody waits for it" in message
    assert message.count("cross-core flag 5") == 1  # both vector cores in one line
    assert "(and 1 more: core0.aiv1)" in message


@pytest.mark.parametrize("soft", [True, False])
def test_more_blocks_than_cores(soft: bool) -> None:
    """The blocks that run wait for those that no core is free for."""

    def kernel(ws: asc.GlobalAddress) -> None:
        if soft:
            asc.sync_all(window(ws), asc.LocalTensor(asc.int32, asc.TPosition.VECIN, 0, 64))
        else:
            asc.sync_all()

    error = hang(kernel, np.zeros(64, np.int32), cores=6, physical_cores=4)
    assert "4 to 5 have not started: no core is free for them" in str(error)
    run = toy_run(kernel, np.zeros(64, np.int32), cores=4, physical_cores=4)
    assert run.findings == []


def test_a_core_that_is_held_up_elsewhere() -> None:
    """Three cores meet; the fourth waits for a flag that nobody sets: that wait is to blame."""

    def kernel() -> None:
        if asc.get_block_idx() == 3:
            asc.wait_flag(E.V_S, 0)  # culprit
        asc.sync_all()  # meet

    error = hang(kernel, cores=4)
    place = "tests/machine/test_deadlock.py"
    assert (
        f"missing: core1.aiv1 (waits at {place}:{line_of(kernel, '# culprit')} in kernel)"
        in str(error)
    )
    assert (error.finding.core, error.finding.line) == ("core1.aiv1", line_of(kernel, "# culprit"))


def test_a_set_that_nobody_waits_for_is_near() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        asc.data_copy(local(A, 64), window(x), 64)
        asc.set_flag(E.MTE2_MTE3, 4)  # set
        asc.wait_flag(E.MTE2_V, 4)

    message = str(hang(kernel, floats(64)))
    place = f"tests/machine/test_deadlock.py:{line_of(kernel, '# set')}"
    assert f"nobody waits for the set of MTE2_MTE3 id 4 at {place}" in message


def test_sets_of_an_earlier_block_do_not_count() -> None:
    def kernel() -> None:
        for _ in range(3 - asc.get_block_idx()):
            asc.set_flag(E.MTE2_V, 0)
            asc.wait_flag(E.MTE2_V, 0)
        if asc.get_block_idx() == 1:
            asc.wait_flag(E.MTE2_V, 0)

    message = str(hang(kernel, cores=2, physical_cores=1, checks="off"))
    assert "this is wait number 3, the flag was set 2 times" in message


# ---- flags left over ------------------------------------------------------------------------


@pytest.mark.parametrize("extra", [1, 2])
def test_a_flag_left_set(extra: int) -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        asc.data_copy(local(A, 64), window(x), 64)
        for _ in range(extra):
            asc.set_flag(E.MTE2_V, 5)  # here

    run = toy_run(kernel, floats(64))
    found = [finding for finding in run.findings if finding.code == "flag-left-set"]
    assert len(found) == 1
    assert (found[0].kind, found[0].line, found[0].pipe) == (
        "FLAG_BALANCE",
        line_of(kernel, "# here"),
        "MTE2",
    )
    assert (
        f"MTE2_V id 5 is still set when the kernel ends: {extra} more set_flag than wait_flag"
        in found[0].message
    )
    assert run.exit_code == 2


def test_a_flag_set_twice() -> None:
    """A flag is one bit: a second set before the wait is lost on the hardware, and its wait never ends."""

    def kernel(x: asc.GlobalAddress) -> None:
        asc.data_copy(local(A, 64), window(x), 64)
        asc.set_flag(E.MTE2_V, 0)
        asc.set_flag(E.MTE2_V, 0)  # here
        asc.wait_flag(E.MTE2_V, 0)
        asc.wait_flag(E.MTE2_V, 0)

    run = toy_run(kernel, floats(64))
    assert [(finding.kind, finding.line) for finding in run.findings] == [
        ("FLAG_BALANCE", line_of(kernel, "# here"))
    ]


def test_balanced_flags_are_silent() -> None:
    def kernel() -> None:
        for event_id in range(8):
            asc.set_flag(E.MTE2_V, event_id)
        for event_id in range(8):
            asc.wait_flag(E.MTE2_V, event_id)

    run = toy_run(kernel)
    assert run.findings == []
    assert [item.start for item in items(run, "V")] == [12, *range(13, 20)]


# ---- reading GM over and over ---------------------------------------------------------------


def test_a_loop_that_polls_what_nobody_writes() -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        if asc.get_block_idx() == 0:
            while window(z).get_value(2) == 0:  # poll
                asc.data_cache_clean_and_invalid(asc.CacheLine.SINGLE_CACHE_LINE, window(z))

    error = hang(kernel, np.zeros(16, np.float32), cores=3)
    place = f"tests/machine/test_deadlock.py:{line_of(kernel, '# poll')}"
    assert f"core0.aiv0.S     reads z byte 8 at {place} in kernel over and over: it stays 0" in str(
        error
    )
    assert "data cache" not in str(error)
    assert error.finding.line == line_of(kernel, "# poll")


def test_a_loop_that_polls_its_own_data_cache() -> None:
    """The other core does write, and the line that is polled never sees it."""

    def kernel(z: asc.GlobalAddress) -> None:
        if asc.get_block_idx() == 0:
            while window(z).get_value(0) == 0:  # poll
                pass
        else:
            for _ in range(20):
                local(A, 8).set_value(0, 1.0)
            window(z).set_value(0, 1.0)

    error = hang(kernel, np.zeros(16, np.float32), cores=2)
    assert "data_cache_clean_and_invalid belongs into the loop" in str(error)


def test_two_cores_that_poll_each_other() -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        other = 16 * (1 - asc.get_block_idx())
        while window(z).get_value(other) == 0:
            asc.data_cache_clean_and_invalid(asc.CacheLine.SINGLE_CACHE_LINE, window(z)[other:])

    message = str(hang(kernel, np.zeros(32, np.float32), cores=2))
    assert message.count("over and over") == 2


def test_a_loop_that_polls_until_somebody_is_ready() -> None:
    """Many reads, and then the word is there."""

    def kernel(z: asc.GlobalAddress) -> None:
        if asc.get_block_idx() == 0:
            while window(z).get_value(0) == 0:
                asc.data_cache_clean_and_invalid(asc.CacheLine.SINGLE_CACHE_LINE, window(z))
        else:
            for _ in range(60000):
                local(A, 8).set_value(0, 1.0)
            window(z).set_value(0, 1.0)

    run = toy_run(kernel, np.zeros(16, np.float32), cores=2, checks="off")
    assert len(items(run, "S", "get_value")) > 1024
