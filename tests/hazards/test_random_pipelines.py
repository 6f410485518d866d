"""Random three-stage kernels with queues: right numbers, no finding; without one of their barriers, a race."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from tests.machine.kit import V, window

F32 = asc.float32
P = asc.TPosition


@dataclass(frozen=True)
class Plan:
    """One kernel: what it is made of."""

    inputs: int
    buffers: int
    outputs: int  # buffers of the output queue
    ahead: int  # tiles loaded before they are needed
    chain: int  # instructions after the sum of the inputs
    tile: int
    size: int  # elements of a block
    blocks: int
    automatic: bool

    @staticmethod
    def of(seed: int) -> Plan:
        """Draw a plan."""
        r = random.Random(seed)
        buffers = r.randint(1, 3)
        inputs = r.randint(1, 8 // buffers if buffers > 1 else 4)
        tile = 8 * r.randint(1, 64)
        return Plan(
            inputs=min(inputs, 3),
            buffers=buffers,
            outputs=r.randint(1, 2),
            ahead=r.randint(0, buffers - 1),
            chain=r.randint(0, 3),
            tile=tile,
            size=8 * r.randint(1, tile),
            blocks=r.randint(1, 5),
            automatic=r.random() < 0.4,
        )


def pipeline(plan: Plan, left_out: int | None, *addresses: Any) -> None:
    """Sum of all inputs, then a chain through a work buffer. Barriers are numbered as they stand in a tile."""
    *sources, result = addresses
    first = plan.size * asc.get_block_idx()
    pipe = asc.TPipe()
    queues = [asc.TQue(P.VECIN, plan.ahead + 1) for _ in sources]
    out, work = asc.TQue(P.VECOUT, 1), asc.TBuf()
    for queue in queues:
        pipe.init_buffer(que=queue, num=plan.buffers, len=4 * plan.tile)
    pipe.init_buffer(que=out, num=plan.outputs, len=4 * plan.tile)
    pipe.init_buffer(work, 4 * plan.tile)
    tiles = -(-plan.size // plan.tile)

    def barrier(number: int) -> None:
        if not plan.automatic and number != left_out:
            asc.pipe_barrier(V)

    def count(tile: int) -> int:
        return min(plan.tile, plan.size - tile * plan.tile)

    def load(tile: int) -> None:
        for queue, source in zip(queues, sources, strict=True):
            t = queue.alloc_tensor(F32)
            asc.data_copy(t, window(source)[first + tile * plan.tile :], count(tile))
            queue.enque(t)

    for tile in range(min(plan.ahead, tiles)):
        load(tile)
    for tile in range(tiles):
        if tile + plan.ahead < tiles:
            load(tile + plan.ahead)
        n = count(tile)
        parts = [queue.deque(F32) for queue in queues]
        w, c = work.get(F32), out.alloc_tensor(F32)
        asc.adds(w, parts[0], 1.0, n)
        for part in parts[1:]:
            barrier(0)
            asc.add(w, w, part, n)
        for step in range(plan.chain):
            barrier(1)
            asc.muls(w, w, 0.5 + step, n)
        barrier(2)
        asc.adds(c, w, -1.0, n)
        barrier(3)
        for queue, part in zip(queues, parts, strict=True):
            queue.free_tensor(part)
        out.enque(c)
        c = out.deque(F32)
        asc.data_copy(window(result)[first + tile * plan.tile :], c, n)
        out.free_tensor(c)


def launch(plan: Plan, left_out: int | None, chip: str) -> tuple[sim.Run, bool]:
    """Return the run, and whether the numbers are right."""
    generator = np.random.default_rng(0)
    total = plan.size * plan.blocks
    arrays = [generator.normal(size=total).astype(np.float32) for _ in range(plan.inputs)]
    z = np.zeros(total, np.float32)
    names = [*(f"x{i}" for i in range(plan.inputs)), "z"]
    run = sim.launch(
        pipeline,
        plan,
        left_out,
        *arrays,
        z,
        names=["plan", "left_out", *names],
        cores=plan.blocks,
        chip=chip,
        auto_sync=plan.automatic,
    )
    expected = arrays[0] + np.float32(1)
    for array in arrays[1:]:
        expected = expected + array
    for step in range(plan.chain):
        expected = expected * np.float32(0.5 + step)
    return run, bool(np.array_equal(z, expected - np.float32(1)))


@pytest.mark.parametrize("seed", range(60))
def test_silent_and_right(seed: int) -> None:
    plan = Plan.of(seed)
    for chip in ("toy", "ascend910b3"):
        run, right = launch(plan, None, chip)
        assert run.findings == []
        assert right


@pytest.mark.parametrize("seed", [seed for seed in range(60) if not Plan.of(seed).automatic])
def test_a_barrier_left_out(seed: int) -> None:
    """Which barrier is needed: 0 with a second input, 1 with a chain, 2 always.

    3, which keeps the next tile's first write of the work buffer behind this tile's last read, is needed where
    inputs and output have two buffers: with one buffer the flags of that queue lead round from V to V.
    """
    plan = Plan.of(seed)
    tiles = -(-plan.size // plan.tile)
    needed = {
        0: plan.inputs > 1,
        1: plan.chain > 0,
        2: True,
        3: tiles > 1 and plan.buffers > 1 and plan.outputs > 1,
    }
    for number, matters in needed.items():
        run, right = launch(plan, number, "toy")
        assert bool(run.findings) is matters, number
        assert {finding.kind for finding in run.findings} <= {"RACE"}
        if not right:
            assert any(finding.struck for finding in run.findings)
