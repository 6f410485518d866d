"""Options that must not change time: numerics, checks; and what they do change. Runs that must be equal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.run import Run
from isa.stream import current
from tests.machine.kit import A, C, E, V, everything, instructions, local, toy_run, variant, window

N = 512


def floats(count: int) -> np.ndarray[Any, Any]:
    return np.arange(count, dtype=np.float32)


def queues(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
    """Two buffers a queue, four tiles a block."""
    first = asc.get_block_idx() * 4
    pipe = asc.TPipe()
    source, target = asc.TQue(asc.TPosition.VECIN, 1), asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(que=source, num=2, len=4 * N)
    pipe.init_buffer(que=target, num=2, len=4 * N)
    for tile in range(first, first + 4):
        a = source.alloc_tensor(asc.float32)
        asc.data_copy(a, window(x)[tile * N :], N)
        source.enque(a)
        a, c = source.deque(asc.float32), target.alloc_tensor(asc.float32)
        asc.muls(c, a, 3.0, N)
        asc.pipe_barrier(V)
        asc.adds(c, c, 1.0, N)
        target.enque(c)
        source.free_tensor(a)
        c = target.deque(asc.float32)
        asc.data_copy(window(z)[tile * N :], c, N)
        target.free_tensor(c)


def strided(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
    """Columns of a wide tensor, and a load that everybody makes from the same place."""
    block = asc.get_block_idx()
    rows = asc.DataCopyParams(16, 4, 4 * (asc.get_block_num() - 1), 0)
    a, b = local(A, N), local(0x8100, N)
    asc.data_copy(a, window(x)[32 * block :], rows)
    asc.data_copy(b, window(x), N)
    asc.set_flag(E.MTE2_V, 0)
    asc.wait_flag(E.MTE2_V, 0)
    asc.add(local(C, N), a, b, N)
    asc.set_flag(E.V_MTE3, 0)
    asc.wait_flag(E.V_MTE3, 0)
    asc.data_copy(
        window(z)[32 * block :],
        local(C, N),
        asc.DataCopyParams(16, 4, 0, 4 * (asc.get_block_num() - 1)),
    )


def racy(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
    """Every flag is missing, and all blocks write the same bytes."""
    a = local(A, N)
    for part in range(3):
        asc.data_copy(a, window(x)[N * (asc.get_block_idx() + part) :], N)
        asc.adds(local(C, N), a, 1.0, N)
        asc.adds(a, local(C, N), 1.0, N)
        asc.data_copy(window(z)[N * part :], a, N)


def scalars(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
    """Scalar reads of GM and branches between loads."""
    block = asc.get_block_idx()
    tensor = window(x)
    total = 0.0
    for part in range(6):
        total += tensor.get_value(17 * part + block)
        if total >= 0:
            asc.data_copy(local(A + 2048 * part, N), tensor[N * part :], N)
    asc.pipe_barrier(asc.PipeID.PIPE_ALL)
    asc.data_copy(window(z)[N * block :], local(A, N), N)


def mte_mix(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
    """Loads and stores of many sizes at once, nothing ordered but what must be."""
    block = asc.get_block_idx()
    for part in range(6):
        count = 8 * (1 + (7 * part + block) % 60)
        asc.data_copy(local(2048 * part, count), window(x)[N * part + 8 * block :], count)
        asc.set_flag(E.MTE2_MTE3, 0)
        asc.wait_flag(E.MTE2_MTE3, 0)
        asc.data_copy(window(z)[N * (6 * block + part) :], local(2048 * part, count), count)


KERNELS = [queues, strided, racy, scalars, mte_mix]


def launch(
    kernel: Callable[..., None], blocks: int, chip: str = "ascend910b1", **options: Any
) -> Run:
    size = N * 6 * max(blocks, 4)
    return sim.launch(
        kernel, floats(size), np.zeros(size, np.float32), cores=blocks, chip=chip, **options
    )


def shape(run: Run) -> Any:
    """Times and counts, without findings and data."""
    cycles, log, _, _ = everything(run)
    return cycles, log, run.memory


# ---- equal runs -----------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_two_runs_are_the_same(kernel: Callable[..., None]) -> None:
    assert everything(launch(kernel, 8)) == everything(launch(kernel, 8))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("chip", ["toy", "ascend910b4"])
def test_ties_do_not_matter(kernel: Callable[..., None], chip: str) -> None:
    """The order in which equal times were scheduled is scrambled; nothing may change."""
    expected = everything(launch(kernel, 4, chip))
    for seed in range(8):
        assert everything(launch(kernel, 4, chip, shuffle=seed)) == expected


def test_results_of_one_pipe_that_land_together_land_in_program_order() -> None:
    """Two short fills retire in the cycle of the long division before them: the last one stays."""

    def kernel(z: asc.GlobalAddress) -> None:
        t = local(A, 1024)
        asc.duplicate(t, 1.0, 1024)
        asc.pipe_barrier(V)
        asc.div(t, t, t, 1024)
        asc.duplicate(t, 2.0, 64)
        asc.duplicate(t, 3.0, 64)
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        asc.data_copy(window(z), t, 64)

    for seed in [None, *range(10)]:
        z = np.zeros(64, np.float32)
        run = toy_run(kernel, z, shuffle=seed)
        assert len({item.end for item in instructions(run, "V")[1:]}) == 1
        assert z.tolist() == [3.0] * 64


@pytest.fixture
def crowd(tmp_path: Path) -> str:
    """The 910B1 with all cores starting at once: equal times and shared bandwidth everywhere."""
    return str(variant(tmp_path, "launch: {base_us: 0, per_core_us: 0}", "ascend910b1"))


@pytest.mark.parametrize("kernel", KERNELS)
def test_ties_do_not_matter_on_48_contended_cores(kernel: Callable[..., None], crowd: str) -> None:
    """Fewer cores than blocks, too: the last ones follow in a second wave."""
    for blocks, present in ((48, 48), (20, 12)):
        expected = everything(launch(kernel, blocks, crowd, physical_cores=present))
        for seed in range(3):
            again = launch(kernel, blocks, crowd, physical_cores=present, shuffle=seed)
            assert everything(again) == expected


def test_the_48_cores_do_get_in_each_others_way(crowd: str) -> None:
    """So that the test above means something."""
    for kernel in KERNELS:
        totals = launch(kernel, 48, crowd).pipes
        assert any("share" in pipes["MTE2"]["memory"] for pipes in totals.values())
    assert launch(queues, 48, crowd).cycles > launch(queues, 1, crowd).cycles


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("l2", ["cold", "warm"])
def test_ties_do_not_matter_at_length(kernel: Callable[..., None], l2: str, crowd: str) -> None:
    for chip, blocks in (("toy", 9), (crowd, 48), (crowd, 31), ("ascend910b4", 40)):
        expected = everything(launch(kernel, blocks, chip, l2=l2))
        for seed in range(100, 120):
            assert everything(launch(kernel, blocks, chip, l2=l2, shuffle=seed)) == expected


# ---- numerics -------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [queues, strided, racy, mte_mix])
@pytest.mark.parametrize("blocks", [1, 7])
def test_without_numerics_the_times_are_the_same(kernel: Callable[..., None], blocks: int) -> None:
    on, off = launch(kernel, blocks), launch(kernel, blocks, numerics="off")
    assert shape(on) == shape(off)
    assert on.summary["instructions"] == off.summary["instructions"]
    assert on.summary["bytes"] == off.summary["bytes"]
    assert not off.outputs["z"].any()


def test_without_numerics_findings_are_the_same() -> None:
    on, off = launch(racy, 3), launch(racy, 3, numerics="off")
    assert everything(on)[2] == everything(off)[2]
    assert on.coverage == off.coverage


def test_scalar_inputs_are_read_without_numerics() -> None:
    on, off = launch(scalars, 3), launch(scalars, 3, numerics="off")
    assert shape(on) == shape(off)


def test_exact_numerics_change_no_vector_result() -> None:
    assert everything(launch(queues, 3)) == everything(launch(queues, 3, numerics="exact"))


# ---- checks ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_without_checks_times_and_numbers_are_the_same(kernel: Callable[..., None]) -> None:
    on, off = launch(kernel, 5), launch(kernel, 5, checks="off")
    assert shape(on) == shape(off)
    np.testing.assert_array_equal(on.outputs["z"], off.outputs["z"])
    assert off.findings == []


@pytest.mark.parametrize("kernel", [queues, strided, mte_mix])
def test_errors_asked_and_none_there(kernel: Callable[..., None]) -> None:
    on, error = launch(kernel, 5, outputs=["z"]), launch(kernel, 5, checks="error", outputs=["z"])
    assert on.findings == error.findings == []
    assert shape(on) == shape(error)


def test_errors_asked_and_some_there() -> None:
    with pytest.raises(sim.RaceError) as caught:
        launch(racy, 2, checks="error")
    assert caught.value.run.cycles > 0


def test_races_between_blocks_stop_a_run_too() -> None:
    """They are known when all is done: the error carries the whole run."""

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        asc.duplicate(local(A, N), 1.0, N)
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        asc.data_copy(window(z), local(A, N), N)

    run = toy_run(kernel, floats(N), np.zeros(N, np.float32), cores=2)
    assert [finding.code for finding in run.findings] == ["race-blocks-waw"]
    with pytest.raises(sim.RaceError) as caught:
        toy_run(kernel, floats(N), np.zeros(N, np.float32), cores=2, checks="error")
    assert caught.value.run.cycles == run.cycles
    assert len(instructions(caught.value.run, "MTE3", 1)) == 1


def test_the_lower_bound_is_one() -> None:
    for kernel in KERNELS:
        for blocks in (1, 6):
            run = launch(kernel, blocks)
            assert 0 < run.summary["bound"]["lower_bound_cycles"] <= run.cycles


def test_a_run_is_repeatable_after_an_error() -> None:
    """Nothing global is left behind."""
    expected = everything(launch(queues, 2))

    def broken(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        asc.duplicate(local(A, 8), 1.0, 9)

    with pytest.raises(sim.BoundsError):
        launch(broken, 2)
    assert everything(launch(queues, 2)) == expected
    assert current.get(None) is None
