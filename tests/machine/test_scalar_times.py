"""The scalar unit on the toy chip: UB access 10, data cache hit 5, miss 100 to L2 and 200 to HBM, lines of 64 bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.run import Run
from tests.machine.kit import (
    A,
    C,
    E,
    hand_over,
    instructions,
    items,
    local,
    toy_run,
    variant,
    window,
)


def floats(count: int) -> np.ndarray[Any, Any]:
    return np.arange(count, dtype=np.float32)


def reads(run: Run, name: str = "get_value") -> list[int]:
    """What each scalar access cost."""
    return [item.end - item.start for item in items(run, "S", name)]


def gm_reads(*elements: int) -> Any:
    def kernel(x: asc.GlobalAddress) -> None:
        tensor = window(x)
        for element in elements:
            assert tensor.get_value(element) == element

    return kernel


def test_reads_of_gm_go_through_the_data_cache() -> None:
    """A cold line comes from HBM, its neighbours in the line hit, the other line of the sector is in L2."""
    run = toy_run(gm_reads(0, 1, 15, 16, 17, 32, 0), floats(64))
    assert reads(run) == [200, 5, 5, 100, 5, 200, 5]
    assert run.cycles == 520 + 1  # and the end of the kernel


def test_a_warm_l2_answers_sooner() -> None:
    assert reads(toy_run(gm_reads(0, 1, 32), floats(64), l2="warm")) == [100, 5, 100]


def test_what_a_load_brought_in_is_in_l2() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        asc.data_copy(local(A, 64), window(x), 64)
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        window(x).get_value(40)

    assert reads(toy_run(kernel, floats(64))) == [100]


def test_the_data_cache_forgets_the_line_not_used_longest(tmp_path: Path) -> None:
    chip = variant(tmp_path, "dcache: {aiv_bytes: 256}")  # four lines
    run = sim.launch(gm_reads(0, 16, 32, 48, 0, 64, 0, 16), floats(128), chip=chip, l2="warm")
    assert reads(run) == [100, 100, 100, 100, 5, 100, 5, 100]


def test_each_core_has_its_own_data_cache() -> None:
    run = toy_run(gm_reads(0, 1), floats(64), cores=2)
    first, second = (
        [item.end - item.start for item in items(run, "S", "get_value", core)] for core in (0, 1)
    )
    assert sorted([first, second]) == [[100, 5], [200, 5]]


def test_ub_accesses_take_their_cycles() -> None:
    def kernel() -> None:
        t = local(A, 64)
        t.set_value(3, 7.0)
        assert t.get_value(3) == 7.0
        t.set_value(4, 8.0)

    run = toy_run(kernel)
    assert reads(run) == [10]
    assert reads(run, "set_value") == [10, 10]
    assert [item.start for item in items(run, "S")] == [0, 10, 20]
    assert run.findings == []


def test_a_read_waits_for_nothing_by_itself() -> None:
    """Without a flag the scalar unit reads what is in UB when it gets there: nothing of the fill yet."""

    def kernel(seen: list[float]) -> None:
        t = local(A, 1024)
        t.set_value(0, 5.0)
        hand_over(E.S_V)
        asc.duplicate(t, 1.0, 1024)
        seen.append(t.get_value(0))
        hand_over(E.V_S)
        seen.append(t.get_value(0))

    seen: list[float] = []
    run = toy_run(lambda: kernel(seen))
    assert seen == [5.0, 1.0]
    (fill,) = instructions(run, "V")
    assert (fill.start, fill.end) == (22, 58)
    early, late = items(run, "S", "get_value")
    assert (early.start, early.end) == (13, 23)
    assert late.start == 58 + 11
    (race,) = run.findings
    assert (race.kind, race.code, race.struck) == ("RACE", "race-raw", True)


def test_a_value_steers_the_kernel() -> None:
    def kernel(x: asc.GlobalAddress, n: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        parts = window(n).get_value(0)
        for part in range(parts):
            a = local(256 * part, 64)
            asc.data_copy(a, window(x)[64 * part :], 64)
            hand_over(E.MTE2_MTE3, part)
            asc.data_copy(window(z)[64 * part :], a, 64)

    z = np.zeros(256, np.float32)
    run = toy_run(kernel, floats(256), np.array([3], np.int32), z)
    assert len(instructions(run, "MTE2")) == 3
    np.testing.assert_array_equal(z[:192], floats(192))
    assert not z[192:].any()
    assert instructions(run, "MTE2")[0].issue == 200 + 10


def test_values_of_every_width() -> None:
    types = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
    floating = [np.float16, np.float32]

    def kernel(array: asc.GlobalAddress) -> None:
        seen.append(window(array).get_value(1))

    for dtype in (*types, *floating):
        seen: list[float] = []
        values = (
            np.array([0, 100], dtype)
            if dtype in floating
            else np.array([0, np.iinfo(dtype).max], dtype)
        )
        toy_run(kernel, values)
        assert seen == [values[1].item()]
        assert type(seen[0]) is (float if dtype in floating else int)


def test_scalar_writes_reach_gm() -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        tensor = window(z)
        tensor.set_value(2, 1.5)
        assert tensor.get_value(2) == 1.5

    z = np.zeros(4, np.float32)
    run = toy_run(kernel, z)
    assert z.tolist() == [0, 0, 1.5, 0]
    assert run.outputs["z"] is z
    assert reads(run) == [5]


def test_the_cycle_counter() -> None:
    seen: list[int] = []

    def kernel() -> None:
        seen.append(asc.get_system_cycle())
        local(A, 8).set_value(0, 1.0)
        local(A, 8).set_value(0, 1.0)
        seen.append(asc.get_system_cycle())
        asc.duplicate(local(C, 64), 1.0, 64)
        seen.append(asc.get_system_cycle())

    toy_run(kernel)
    assert seen[1] - seen[0] == 21
    assert seen[2] - seen[1] == 2


def test_a_tpipe_takes_its_time() -> None:
    def kernel() -> None:
        pipe = asc.TPipe()
        work = asc.TBuf()
        pipe.init_buffer(work, 256)
        asc.duplicate(work.get(asc.float32), 1.0, 64)

    (fill,) = instructions(toy_run(kernel), "V")
    assert fill.issue == 100 + 1


def test_a_read_that_needs_numbers_is_refused_without_them() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        asc.duplicate(local(A, 64), 1.0, 64)
        hand_over(E.V_S)
        local(A, 64).get_value(0)

    with pytest.raises(sim.UnsupportedError, match="numerics off there is no value"):
        toy_run(kernel, floats(8), numerics="off")


def test_an_input_may_be_read_without_numbers() -> None:
    assert reads(toy_run(gm_reads(1, 2), floats(8), numerics="off")) == [200, 5]
