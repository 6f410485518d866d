"""C = A B with one step of K, where scalar work counts: numbers of the tiling read from GM, or known beforehand."""

from __future__ import annotations

from functools import partial

import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, time_launch, times

from ._kit import window
from ._matmul import multiply
from ._tiles import Plan, grid

FIELDS = 50
"""Numbers of 4 bytes in the tiling of a matrix product."""


def read_tiling(tiling):
    """Bring the numbers of the tiling to the scalar unit, one by one."""
    numbers = window(tiling)
    for field in range(FIELDS):
        numbers.get_value(field)


def prepared(a, b, c, tiling, plan: Plan, tiles, run_time: bool):
    """Make a pipe object, read the tiling where it is not known, and multiply."""
    asc.TPipe()
    if run_time:
        read_tiling(tiling)
    multiply(a, b, c, plan, tiles)


def simulate(record: Record) -> dict:
    m, n, k = record.shape["M"], record.shape["N"], record.shape["K"]
    plan = Plan((m, n, k), (128, 256, 64), stored_b="KN")
    kernel = partial(
        prepared,
        plan=plan,
        tiles=grid(plan, (1, record.cores)),
        run_time=record.params["tiling"] == "run time",
    )
    a, b, c = (
        np.zeros((m, k), np.float16),
        np.zeros((k, n), np.float16),
        np.zeros((m, n), np.float32),
    )
    tiling = np.ones(FIELDS, np.int32)
    run = time_launch(
        kernel, a, b, c, tiling, record=record, cores=record.cores, kernel_type="AIC_ONLY"
    )
    return times(run)
