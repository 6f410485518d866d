"""C = A B of 4096 x 5120 x 4096: larger base blocks, more cores, larger packets."""

from __future__ import annotations

import numpy as np

from ascend_sim.accuracy import Record

from ._matmul import run_part
from ._tiles import Plan, grid, grid_of

PARTS = {64: 32, 128: 8}
"""Base blocks of C of each core that are simulated, by their rows; the rest is in proportion."""


def simulate(record: Record) -> dict:
    params = record.params
    size = record.shape["M"], record.shape["N"], record.shape["K"]
    base = tuple(params["base_mnk"])
    step = (4, 4) if params["template"] == "MDL" else (1, 1)
    norm = params["template"] == "norm"  # its default is the unit flag, that of MDL is not
    plan = Plan(size, base, step, unit_flag=norm, stored_b="KN")
    tiles = grid(plan, grid_of(record.cores, size))
    return run_part(record, plan, tiles, np.float16, np.float32, PARTS.get(base[0], 8))
