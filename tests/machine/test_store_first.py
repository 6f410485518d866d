"""A core's store goes before its later loads while HBM has too little for all, and only then."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.report.critical_path import MOVE
from ascend_sim.run import Run
from ascend_sim.trace import Cause, MemoryCause
from tests.machine.kit import instructions, local, variant, window

BYTES = 4096
LONG = 22528


def run_beside(folder: Path, gbps: int, *, load_first: bool) -> Run:
    """Core 0 stores, then loads; core 1 loads all the time. The port takes 64 bytes a cycle, HBM `gbps`."""

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        if asc.get_block_idx() == 1:
            asc.data_copy(local(0, LONG, asc.int8), window(x), LONG)
            return
        for _ in range(40):  # until the other core's bytes move
            local(0x2E000, 8).set_value(0, 1.0)
        mine = window(x)[LONG:]
        if load_first:
            asc.data_copy(local(0x8000, BYTES, asc.int8), mine[BYTES:], BYTES)
        asc.data_copy(window(z), local(0x10000, BYTES, asc.int8), BYTES)
        asc.data_copy(local(0, BYTES, asc.int8), mine, BYTES)

    x, z = np.zeros(LONG + 2 * BYTES, np.int8), np.zeros(BYTES, np.int8)
    chip = variant(folder, f"hbm: {{gbps: {gbps}}}")
    return sim.launch(kernel, x, z, cores=2, physical_cores=2, chip=chip, checks="off")


def test_a_load_waits_for_the_cores_own_store(tmp_path: Path) -> None:
    run = run_beside(tmp_path, 40, load_first=False)
    (store,), (load,) = instructions(run, "MTE3"), instructions(run, "MTE2")
    assert load.start < store.spent.passed == load.spent.began
    assert load.partner is store
    assert load.accept == load.spent.began
    shares = [end for cause, sub, end in load.parts if sub is MemoryCause.SHARE]
    assert shares[0] - load.start >= load.spent.began - load.start
    assert {cause for cause, _, _ in load.parts} <= {Cause.MEMORY, Cause.BUSY}
    assert load.end == run.cycles
    chain = [(step.row, step.what) for step in run.critical_path().steps if step.core == 0]
    assert [step for step in chain if step[1] == MOVE] == [(store.index, MOVE), (load.index, MOVE)]


@pytest.mark.parametrize(("gbps", "load_first"), [(500, False), (40, True)])
def test_a_load_goes_on_beside_the_store(tmp_path: Path, gbps: int, load_first: bool) -> None:
    """With enough for all; and with an earlier load under way, whose bytes it follows."""
    run = run_beside(tmp_path, gbps, load_first=load_first)
    (store,), loads = instructions(run, "MTE3"), instructions(run, "MTE2")
    assert loads[-1].partner is None
    assert loads[-1].spent.began < store.spent.passed or load_first
    if load_first:
        assert loads[-1].spent.began == loads[0].spent.passed
