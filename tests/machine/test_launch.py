"""Blocks, cores and waves: who runs where, when it starts, and what a launch costs."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.errors import HostError, KernelError
from ascend_sim.trace import Cause
from tests.machine.kit import A, C, instructions, items, local, toy_run, window


def nothing() -> None:
    pass


def busy_for(turns: Any) -> Any:
    """A kernel whose block b reads UB `turns(b)` times, 10 cycles each on the toy chip."""

    def kernel() -> None:
        for _ in range(turns(asc.get_block_idx())):
            local(A, 8).set_value(0, 1.0)

    return kernel


def where(run: sim.Run) -> dict[str, list[int]]:
    """The blocks of each core, in the order in which they ran."""
    return {core.name: [block for block, _, _ in core.blocks] for core in run.log.cores}


def test_two_blocks_a_core() -> None:
    run = toy_run(nothing, cores=4)
    assert where(run) == {
        "core0.aiv0": [0],
        "core0.aiv1": [1],
        "core1.aiv0": [2],
        "core1.aiv1": [3],
    }


def test_48_blocks_on_the_910b1() -> None:
    run = sim.launch(nothing, cores=48)
    assert where(run) == {f"core{block // 2}.aiv{block % 2}": [block] for block in range(48)}


def test_cores_without_a_block_do_not_appear() -> None:
    run = toy_run(nothing, cores=1)
    assert list(run.pipes) == ["core0.aiv0"]


def test_blocks_beyond_the_cores_follow_on_the_core_that_is_free_first() -> None:
    """Blocks 0 to 3 take 40, 30, 20 and 10 cycles and one more to end; block 4 takes 50 on the core of block 3."""
    run = toy_run(busy_for(lambda block: 4 - block if block < 4 else 5), cores=6)
    assert where(run) == {
        "core0.aiv0": [0],
        "core0.aiv1": [1],
        "core1.aiv0": [2, 5],
        "core1.aiv1": [3, 4],
    }
    blocks = {block: (start, end) for core in run.log.cores for block, start, end in core.blocks}
    assert {block: end - start for block, (start, end) in blocks.items()} == {
        0: 41, 1: 31, 2: 21, 3: 11, 4: 51, 5: 51,
    }  # fmt: skip
    assert 11 <= blocks[4][0] <= 12
    assert 21 <= blocks[5][0] <= 22
    assert run.cycles == blocks[5][1]


def test_waves_on_a_real_chip_wait_for_the_launcher() -> None:
    """Each further block costs the launcher 0.14 us, 259 cycles."""
    run = sim.launch(nothing, cores=5, physical_cores=2)
    for core in run.log.cores:
        ends = [end for _, _, end in core.blocks]
        starts = [start for _, start, _ in core.blocks]
        assert [start - end for start, end in zip(starts[1:], ends, strict=False)] == [259] * (
            len(starts) - 1
        )
    assert sorted(block for blocks in where(run).values() for block in blocks) == [0, 1, 2, 3, 4]
    for pipes in run.pipes.values():
        assert set(pipes["S"]["causes"]) <= {"launch", "busy", "tail"}


def test_a_wave_starts_on_fresh_memory_with_lowered_flags() -> None:
    seen: list[float] = []

    def kernel() -> None:
        seen.append(local(A, 8).get_value(0))
        local(A, 8).set_value(0, 1.0)
        asc.set_flag(asc.HardEvent.MTE2_V, 0)

    run = toy_run(kernel, cores=2, physical_cores=1)
    assert np.isnan(seen).all()
    assert [finding.code for finding in run.findings] == ["flag-left-set", "uninitialised-read"]
    assert [finding.hits for finding in run.findings] == [2, 2]


@pytest.mark.parametrize("cores", [1, 4, 24, 48])
def test_an_empty_kernel(cores: int) -> None:
    """2.3 us and 0.14 us a core: half of the base before the first core starts, half after the last ends."""
    run = sim.launch(nothing, cores=cores)
    assert run.time_us == pytest.approx(2.3 + 0.14 * cores, abs=0.002)
    starts = [core.start for core in run.log.cores]
    assert starts == [int(1850 * (1.15 + 0.14 * (i + 1)) + 0.5) for i in range(cores)]
    assert run.log.launch_cycles == pytest.approx(1850 * (2.3 + 0.14 * cores), abs=1)
    assert run.cycles - run.log.launch_cycles == 1  # the kernel's end


def test_launch_and_tail_in_the_ledger() -> None:
    run = sim.launch(nothing, cores=2)
    first, second = (run.pipes[name]["S"]["causes"] for name in ("core0.aiv0", "core0.aiv1"))
    assert first == {"launch": 2387 + 2128, "busy": 1, "tail": 259}
    assert second == {"launch": 2646 + 2128, "busy": 1}
    assert run.stalls()[Cause.LAUNCH.value] >= 2387 + 2646


def test_block_indices() -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        block = asc.get_block_idx()  # each has a line of the data cache of its own
        window(z).set_value(16 * block, 100 * asc.get_block_num() + block)

    z = np.zeros((6, 16), np.int32)
    toy_run(kernel, z, cores=6)
    assert z[:, 0].tolist() == [600, 601, 602, 603, 604, 605]


def test_results_do_not_depend_on_the_number_of_cores_present() -> None:
    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        block = asc.get_block_idx()
        t, u = local(A, 64), local(C, 64)
        asc.data_copy(t, window(x)[64 * block :], 64)
        asc.set_flag(asc.HardEvent.MTE2_V, 0)
        asc.wait_flag(asc.HardEvent.MTE2_V, 0)
        asc.muls(u, t, float(block + 1), 64)
        asc.set_flag(asc.HardEvent.V_MTE3, 0)
        asc.wait_flag(asc.HardEvent.V_MTE3, 0)
        asc.data_copy(window(z)[64 * block :], u, 64)

    x = np.arange(64 * 7, dtype=np.float32)
    expected = x * np.repeat(np.arange(1, 8), 64)
    cycles = []
    for present in (1, 3, 7):
        z = np.zeros_like(x)
        run = toy_run(kernel, x, z, cores=7, physical_cores=present)
        np.testing.assert_array_equal(z, expected)
        assert sum(len(instructions(run, "V", core)) for core in range(present)) == 7
        assert run.findings == []
        cycles.append(run.cycles)
    assert cycles == sorted(cycles, reverse=True)


def test_scalars_and_names_of_arguments() -> None:
    def kernel(x: asc.GlobalAddress, n: int, factor: float) -> None:
        assert (n, factor) == (3, 0.5)
        window(x).get_value(0)

    run = toy_run(kernel, np.zeros(4, np.float32), 3, 0.5)
    assert "GM x[0:4]" in items(run, "S")[0].call.detail()
    other = toy_run(kernel, np.zeros(4, np.float32), 3, 0.5, names=["weights", "n", "factor"])
    assert "GM weights[0:4]" in items(other, "S")[0].call.detail()


def test_views_of_one_array_are_one_allocation() -> None:
    def kernel(first: asc.GlobalAddress, second: asc.GlobalAddress) -> None:
        window(first).set_value(3, 9.0)
        assert window(second).get_value(1) == 9.0

    root = np.zeros(8, np.float32)
    toy_run(kernel, root[:4], root[2:])
    assert root[3] == 9.0


@pytest.mark.parametrize(
    ("args", "options", "text"),
    [
        ((np.zeros((4, 4), np.float32).T,), {}, "not contiguous"),
        ((np.zeros(4, np.complex64),), {}, "complex64"),
        (([1, 2],), {}, "list"),
        ((), {}, "0 arguments"),
        ((np.zeros(4, np.float32),), {"cores": 0}, "0 blocks"),
        ((np.zeros(4, np.float32),), {"cores": 65536}, "65536 blocks"),
    ],
)
def test_arguments_that_a_launch_refuses(args: Any, options: Any, text: str) -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        raise AssertionError

    with pytest.raises(HostError, match=text) as caught:
        toy_run(kernel, *args, **options)
    assert caught.value.finding.kind == "HOST"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"numerics": "of"}, "off"),
        ({"checks": "colect"}, "collect"),
        ({"l2": "hot"}, "cold"),
        ({"chip": "ascend910b9"}, "ascend910b"),
    ],
)
def test_options_that_a_launch_refuses(options: Any, text: str) -> None:
    with pytest.raises(sim.ConfigError, match=text):
        sim.launch(nothing, **options)


def test_an_error_of_the_kernels_own_python_comes_through() -> None:
    def kernel() -> None:
        asc.duplicate(local(A, 64), 1.0, 64)
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        toy_run(kernel)


def test_memset_sets_outputs_to_zero_first() -> None:
    """What the kernel leaves out stays zero, and atomic additions start from it."""

    def kernel(z: Any) -> None:
        asc.duplicate(local(0, 8), 3.0, 8)
        asc.set_flag(asc.HardEvent.V_MTE3, 0)
        asc.wait_flag(asc.HardEvent.V_MTE3, 0)
        asc.set_atomic_add(asc.float32)
        asc.data_copy(window(z), local(0, 8), 8)
        asc.set_atomic_none()

    z = np.full(24, 7, np.float32)
    run = toy_run(kernel, z[8:], names=["z"], memset=["z"])
    assert z.tolist() == [7.0] * 8 + [3.0] * 8 + [0.0] * 8
    assert run.findings == []
    with pytest.raises(HostError, match="memset names y, which is no tensor argument"):
        toy_run(kernel, z, names=["z"], memset=["y"])


class Kept:
    """Something that a kernel holds."""


@pytest.mark.parametrize("wrong", ["hangs", "out of bounds", "raises"])
def test_a_kernel_that_cannot_go_on_leaves_nothing_behind(wrong: str) -> None:
    left: list[Any] = []

    def kernel(x: Any) -> None:
        kept = Kept()
        left.append(weakref.ref(kept))
        tile = local(0, 64, asc.float16)
        try:
            asc.data_copy(tile, window(x), 64)
            if wrong == "hangs" and asc.get_block_idx() == 1:
                asc.wait_flag(asc.HardEvent.V_S, 0)
                tile.get_value(0)
            elif wrong == "out of bounds" and asc.get_block_idx() == 1:
                asc.data_copy(tile, window(x)[1 << 20 :], 64)
            elif wrong == "raises" and asc.get_block_idx() == 1:
                raise ValueError("of the kernel's own")
            tile.get_value(0)
        finally:
            asc.pipe_barrier(asc.PipeID.PIPE_ALL)  # clean-up of the kernel's own may issue

    with pytest.raises((KernelError, ValueError)):
        sim.launch(kernel, np.zeros(64, np.float16), cores=4)
    gc.collect()
    assert left
    assert [one() for one in left] == [None] * len(left)
