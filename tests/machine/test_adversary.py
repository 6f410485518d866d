"""Hostile timings: a correct kernel gives the same under each, a wrong one shows the smallest timing that breaks it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.adversary import Adversary
from ascend_sim.hostile import Timing
from ascend_sim.stage import Rehearsal, rehearsing
from tests.hazards.test_random_pipelines import Plan, launch
from tests.machine.kit import E, hand_over, line_of, local, window

N = 512
TILES = 4


def double(x: Any, z: Any, back: bool) -> None:
    """z = x + x in tiles of one slot; without `back` nothing says that a tile is out before it is overwritten."""
    x_gm, z_gm = window(x), window(z)
    a, c = local(0, N), local(0x12000, N)
    for i in range(TILES):
        asc.data_copy(a, x_gm[i * N :], N)
        hand_over(E.MTE2_V)
        if back and i:
            asc.wait_flag(E.MTE3_V, 0)
        asc.add(c, a, a, N)
        hand_over(E.V_MTE2)
        hand_over(E.V_MTE3)
        asc.data_copy(z_gm[i * N :], c, N)  # store
        if back and i < TILES - 1:
            asc.set_flag(E.MTE3_V, 0)


def arrays() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    x = np.random.default_rng(0).normal(size=N * TILES).astype(np.float32)
    return x, np.zeros_like(x)


def test_a_correct_kernel_gives_the_same_under_each_timing() -> None:
    x, z = arrays()
    adversary = Adversary(12)
    with rehearsing(adversary.rehearse):
        run = sim.launch(double, x, z, True, chip="toy")
    assert run.findings == []
    np.testing.assert_array_equal(z, x + x)
    assert (adversary.launches, adversary.timings, adversary.broken) == (1, 12, 0)
    assert adversary.verdict() == (
        "12 hostile timings of 1 launch: results and findings are the same under each"
    )


def test_the_smallest_timing_that_breaks() -> None:
    """Only the store's late start breaks it; one cycle less, and it does not."""
    x, z = arrays()
    adversary = Adversary(60)
    tried: list[bool] = []
    with rehearsing(adversary.rehearse), rehearsing(lambda r: tried.extend(_around(r))):
        run = sim.launch(double, x, z, False, chip="toy")
    np.testing.assert_array_equal(
        z, x + x
    )  # this timing did not strike, and trials leave nothing behind
    found = next(finding for finding in run.findings if finding.code == "depends-on-timing")
    assert found.line == line_of(double, "# store")
    assert "MTE3 at" in found.message and "cycles late" in found.message
    assert "MTE2" not in found.message and "z differs" in found.message
    assert tried == [True, False]
    assert adversary.verdict().endswith("1 launch depends on timing")


def test_a_seed_means_the_same_in_every_folder() -> None:
    for seed in range(40):
        here, there = (
            Timing(seed).delay((f"{folder}/kernel.py", 7, "MTE2", "start"))
            for folder in ("/home/a/work", "/tmp/b")
        )
        assert here == there
    assert len({Timing(seed).delay(("kernel.py", 7, "MTE2", "start")) for seed in range(40)}) > 5


def _around(rehearsal: Rehearsal) -> list[bool]:
    """Return whether the store's delay that was found changes the result, and one that is a cycle shorter."""
    found = rehearsal.run.findings[-1]
    late = re.search(r"begins (\d+) cycles late", found.message)
    assert late is not None

    class Exactly(Timing):
        def delay(self, place: Any) -> int:
            return self.limit if place[1:] == (found.line, "MTE3", "start") else 0

    trials = [rehearsal.again(Exactly(0, None, int(late[1]) - less).machine({})) for less in (0, 1)]
    return [
        any(not np.array_equal(trial.data[key], rehearsal.after[key]) for key in trial.data)
        for trial in trials
    ]


def test_delays_are_legal_and_deterministic() -> None:
    x, z = arrays()
    runs: list[Any] = []

    def twice(rehearsal: Rehearsal) -> None:
        for _ in range(2):
            delays: dict[Any, int] = {}
            runs.append((rehearsal.again(Timing(7).machine(delays)).run.cycles, delays))

    with rehearsing(twice):
        run = sim.launch(double, x, z, True, chip="toy")
    assert runs[0] == runs[1] and runs[0][1]
    assert runs[0][0] > run.cycles


def first_come(x: Any, z: Any) -> None:
    """Blocks add to one place: their order is free, and float32 sums round differently."""
    x_gm, z_gm = window(x), window(z)
    a = local(0, N)
    asc.data_copy(a, x_gm[asc.get_block_idx() * N :], N)
    hand_over(E.MTE2_MTE3)
    asc.set_atomic_add(asc.float32)
    asc.data_copy(z_gm, a, N)
    asc.set_atomic_none()


def test_atomic_additions_may_round_differently() -> None:
    x = np.random.default_rng(0).normal(size=N * 8).astype(np.float32)
    z = np.zeros(N, np.float32)
    adversary = Adversary(10)
    with rehearsing(adversary.rehearse):
        run = sim.launch(first_come, x, z, cores=8, chip="toy")
    assert run.findings == [] and adversary.broken == 0
    assert adversary.verdict().endswith(
        "(but for the rounding of atomic additions, whose order is free: z)"
    )


def count_time(z: Any) -> None:
    """Stores whether loading took longer than it does alone: that depends on time by its nature."""
    z_gm = window(z)
    a = local(0, N)
    before = asc.get_system_cycle()
    asc.data_copy(a, z_gm, N)
    hand_over(E.MTE2_S)
    a.set_value(0, float(asc.get_system_cycle() - before))
    hand_over(E.S_MTE3)
    asc.data_copy(z_gm, a, N)


def test_what_depends_on_time_without_a_race() -> None:
    z = np.zeros(N, np.float32)
    adversary = Adversary(20)
    with rehearsing(adversary.rehearse):
        run = sim.launch(count_time, z, chip="toy")
    assert [finding.code for finding in run.findings] == ["depends-on-timing"]
    assert "depends on who comes first" in run.findings[0].message


@pytest.mark.parametrize("seed", range(0, 24, 3))
def test_random_correct_pipelines_do_not_depend_on_time(seed: int) -> None:
    adversary = Adversary(4, seed)
    with rehearsing(adversary.rehearse):
        run, right = launch(Plan.of(seed), None, "toy")
    assert right and run.findings == [] and adversary.timings == 4
