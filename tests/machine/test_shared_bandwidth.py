"""Transfers of many cores at once against a small fluid model of their own: equal shares, up to each one's limit."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from tests.machine.kit import instructions, local, variant, window

PORT = 64.0
LATENCY = {"miss": 200, "hit": 100}
BANDWIDTH = 200


@dataclass
class Load:
    """One load: when its bytes may begin to move, how many there are, and when they are through."""

    begin: float
    size: float
    end: float = 0.0


def share(demands: list[float], capacity: float) -> list[float]:
    """Max-min fair rates: everybody the same, but nobody more than his own limit."""
    rates = [0.0] * len(demands)
    left, open_ones = capacity, sorted(range(len(demands)), key=lambda i: demands[i])
    while open_ones:
        level = left / len(open_ones)
        first = open_ones[0]
        if demands[first] > level:
            for i in open_ones:
                rates[i] = level
            break
        rates[first] = demands[first]
        left -= demands[first]
        open_ones.pop(0)
    return rates


def flying(moving: list[int], landed: list[float], time: float) -> list[int]:
    """The cores that move nothing, but whose last bytes are still on their way."""
    return [i for i, there in enumerate(landed) if there > time and i not in moving]


def fluid(cores: list[list[Load]], limits: Any) -> None:
    """Move all loads; those of one core one after another. Ends are rounded up to whole cycles, as on the machine."""
    time = 0.0
    places = [0] * len(cores)
    landed = [-1.0] * len(cores)  # when the last bytes of each core's latest load are there
    left = [loads[0].size for loads in cores]
    while any(place < len(loads) for place, loads in zip(places, cores, strict=True)):
        pending = [i for i in range(len(cores)) if places[i] < len(cores[i])]
        moving = [i for i in pending if cores[i][places[i]].begin <= time]
        rates = dict(
            zip(
                moving,
                share(
                    [limits(i, [*moving, *flying(moving, landed, time)]) for i in moving], BANDWIDTH
                ),
                strict=True,
            )
        )
        next_begin = min(
            (cores[i][places[i]].begin for i in pending if i not in rates), default=float("inf")
        )
        next_end = min(
            (time + max(1.0, np.ceil(left[i] / rates[i] - 1e-6)) for i in moving),
            default=float("inf"),
        )
        until = min(
            next_begin, next_end, *(landed[i] for i in flying(moving, landed, time) if moving)
        )
        for i in moving:
            left[i] -= rates[i] * (until - time)
        time = until
        for i in moving:
            if left[i] <= 1e-4:
                cores[i][places[i]].end = time
                places[i] += 1
                landed[i] = time + LATENCY["miss"]
                if places[i] < len(cores[i]):
                    left[i] = cores[i][places[i]].size


def draw(seed: int, count: int) -> list[list[tuple[int, int]]]:
    """For each core a few loads: (scalar turns of 10 cycles before it, sectors)."""
    r = random.Random(seed)
    return [
        [(r.choice([0, 0, 3, 20]), r.randint(1, 120)) for _ in range(r.randint(1, 4))]
        for _ in range(count)
    ]


def kernel(x: asc.GlobalAddress, plan: Any) -> None:
    block = asc.get_block_idx()
    start = sum(sectors for loads in plan[:block] for _, sectors in loads)
    for turns, sectors in plan[block]:
        for _ in range(turns):
            local(0x2E000, 8).set_value(0, 1.0)
        asc.data_copy(local(0, 32 * sectors), window(x)[32 * start :], 32 * sectors)
        start += sectors


def expected(plan: list[list[tuple[int, int]]], limits: Any) -> list[list[Load]]:
    cores = []
    for loads in plan:
        time, mine = 0, []
        for turns, sectors in loads:
            time += 10 * turns + 10
            mine.append(Load(time, 128.0 * sectors))
        cores.append(mine)
    fluid(cores, limits)
    return cores


def compare(chip: Path, seed: int, count: int, kind: str, limits: Any) -> None:
    plan = draw(seed, count)
    total = sum(sectors for loads in plan for _, sectors in loads)
    frozen = tuple(tuple(loads) for loads in plan)
    run = sim.launch(
        kernel, np.zeros(32 * total, np.float32), frozen, cores=count, physical_cores=count, chip=chip,
        l2="warm" if kind == "hit" else "cold", checks="off",
    )  # fmt: skip
    latency = LATENCY[kind]
    for core, loads in enumerate(expected(plan, limits)):
        measured = [item.end for item in instructions(run, "MTE2", core)]
        wanted = [load.end + latency for load in loads]
        assert measured == pytest.approx(wanted, abs=2), (seed, core)
    # Nobody moved more than there was: bytes over time, from the first start.
    last = max(item.end for core in range(count) for item in instructions(run, "MTE2", core))
    assert 128 * total <= BANDWIDTH * (last - latency - 10) + PORT


@pytest.mark.parametrize("seed", range(40))
def test_misses_share_hbm(seed: int, tmp_path: Path) -> None:
    chip = variant(tmp_path, f"hbm: {{gbps: {BANDWIDTH}}}")
    compare(chip, seed, 1 + seed % 12, "miss", lambda _core, _moving: PORT)


@pytest.mark.parametrize("seed", range(40, 60))
def test_hits_share_l2(seed: int, tmp_path: Path) -> None:
    chip = variant(tmp_path, f"l2: {{read_gbps: {BANDWIDTH}}}")
    compare(chip, seed, 1 + seed % 12, "hit", lambda _core, _moving: PORT)


@pytest.mark.parametrize("seed", range(60, 90))
def test_misses_of_a_pair_share_its_window(seed: int, tmp_path: Path) -> None:
    """9600 bytes in 200 cycles for both vector cores of a pair: 48 a cycle alone, 24 while both have some in flight."""
    chip = variant(tmp_path, f"hbm: {{gbps: {BANDWIDTH}}}\ngm: {{window_core: 9600}}")

    def limit(core: int, loading: list[int]) -> float:
        return 48.0 / sum(1 for other in loading if other // 2 == core // 2)

    compare(chip, seed, 2 + seed % 12, "miss", limit)
