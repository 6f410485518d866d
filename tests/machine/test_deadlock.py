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
