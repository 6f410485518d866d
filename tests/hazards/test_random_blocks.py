"""Random strided accesses of several blocks to one tensor, against sets of elements: overlaps and coverage, exactly."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from ascend_sim import asc
from ascend_sim.run import Run
from tests.machine.kit import ALL, local, toy_run, window

SIZE = 1024  # elements of the tensor
Use = tuple[bool, int, int, int, int]
"""(is a store, start, rows, blocks of 8 elements a row, gap in blocks)."""


def draw(seed: int, blocks: int) -> list[list[Use]]:
    """For each block a few accesses, most of them in a part of its own."""
    r = random.Random(seed)
    uses = []
    part = SIZE // blocks
    for block in range(blocks):
        mine = []
        for _ in range(r.randint(1, 4)):
            rows, width = r.randint(1, 4), r.randint(1, 3)
            gap = r.randint(0, 4)
            extent = 8 * (rows * (width + gap) - gap)
            low, high = (0, SIZE) if r.random() < 0.08 else (block * part, (block + 1) * part)
            if high - low < extent:
                continue
            start = low + r.randrange(high - low - extent + 1)
            mine.append((r.random() < 0.7, start, rows, width, gap))
        uses.append(mine)
    return uses


def elements(use: Use) -> set[int]:
    _, start, rows, width, gap = use
    pitch = 8 * (width + gap)
    return {start + row * pitch + i for row in range(rows) for i in range(8 * width)}


def kernel(z: asc.GlobalAddress, uses: list[list[Use]]) -> None:
    t = local(0, SIZE)
    asc.duplicate(t, 1.0, SIZE)
    asc.pipe_barrier(ALL)
    for store, start, rows, width, gap in uses[asc.get_block_idx()]:
        target = window(z)[start:]
        if store:
            asc.data_copy(target, t, asc.DataCopyParams(rows, width, 0, gap))
        else:
            asc.data_copy(t, target, asc.DataCopyParams(rows, width, gap, 0))
        asc.pipe_barrier(ALL)


def touched(uses: list[Use], store: bool) -> set[int]:
    return {element for use in uses if use[0] is store for element in elements(use)}


def check_overlaps(run: Run, uses: list[list[Use]]) -> bool:
    """Compare the findings with the sets; return whether there were any."""
    blocks = range(len(uses))
    stores = [touched(mine, True) for mine in uses]
    loads = [touched(mine, False) for mine in uses]
    doubles = {(a, b) for a in blocks for b in blocks if a < b and stores[a] & stores[b]}
    foreign = {(a, b) for a in blocks for b in blocks if a != b and stores[a] & loads[b]}
    races = [finding for finding in run.findings if finding.kind == "RACE"]
    if not doubles and not foreign:
        assert races == []
        return False
    assert races
    assert ("race-blocks-waw" in {race.code for race in races}) is bool(doubles)
    for race in races:
        words = race.message.split()
        first, second = int(words[1]), int(words[3])
        assert race.bytes is not None
        low, high = (byte // 4 for byte in race.bytes)
        assert low < high
        named = set(range(low, high))
        if race.code == "race-blocks-waw":
            assert (min(first, second), max(first, second)) in doubles
            assert named <= stores[first] & stores[second]
        else:
            assert race.code == "race-blocks-raw"
            assert (first, second) in foreign
            assert named <= stores[first] & loads[second]
    return True


def check_coverage(run: Run, uses: list[list[Use]]) -> None:
    written = set().union(*(touched(mine, True) for mine in uses))
    if not written:
        assert run.coverage == {}
        return
    missing = sorted(set(range(SIZE)) - written)
    ranges = run.coverage["z"]
    assert [e for low, high in ranges for e in range(low // 4, high // 4)] == missing
    assert all(low < high for low, high in ranges)
    assert all(first[1] < second[0] for first, second in pairwise(ranges))


def launch(uses: list[list[Use]], **options: Any) -> Run:
    return toy_run(
        kernel, np.zeros(SIZE, np.float32), uses, cores=len(uses), names=["z", "uses"], **options
    )


def test_random_accesses() -> None:
    verdicts = []
    for seed in range(150):
        uses = draw(seed, 2 + seed % 5)
        run = launch(tuple(tuple(mine) for mine in uses))
        verdicts.append(check_overlaps(run, uses))
        check_coverage(run, uses)
        assert {finding.kind for finding in run.findings} <= {"RACE", "COVERAGE"}
    assert 30 < sum(verdicts) < 120  # both verdicts occur


@pytest.mark.slow
def test_many_random_accesses() -> None:
    for seed in range(1000, 3000):
        uses = draw(seed, 2 + seed % 11)
        run = launch(tuple(tuple(mine) for mine in uses))
        check_overlaps(run, uses)
        check_coverage(run, uses)


# ---- with barriers of all blocks ------------------------------------------------------------


def rounds(z: asc.GlobalAddress, uses: Any) -> None:
    """Several rounds of accesses; all blocks meet between two of them."""
    t = local(0, SIZE)
    asc.duplicate(t, 1.0, SIZE)
    asc.pipe_barrier(ALL)
    for number, epoch in enumerate(uses):
        if number:
            asc.sync_all()
        for store, start, rows, width, gap in epoch[asc.get_block_idx()]:
            target = window(z)[start:]
            if store:
                asc.data_copy(target, t, asc.DataCopyParams(rows, width, 0, gap))
            else:
                asc.data_copy(t, target, asc.DataCopyParams(rows, width, gap, 0))
            asc.pipe_barrier(ALL)


def test_only_blocks_of_one_round_race() -> None:
    verdicts = []
    for seed in range(100):
        blocks = 2 + seed % 3
        epochs = [draw(1000 * seed + number, blocks) for number in range(3)]
        frozen = tuple(tuple(tuple(mine) for mine in epoch) for epoch in epochs)
        run = toy_run(rounds, np.zeros(SIZE, np.float32), frozen, cores=blocks)
        races = [finding for finding in run.findings if finding.kind == "RACE"]
        expected = False
        for epoch in epochs:
            stores = [touched(mine, True) for mine in epoch]
            everything = [touched(mine, False) | touched(mine, True) for mine in epoch]
            expected |= any(
                stores[a] & everything[b] for a in range(blocks) for b in range(blocks) if a != b
            )
        assert bool(races) is expected, seed
        verdicts.append(expected)
    assert 20 < sum(verdicts) < 80
