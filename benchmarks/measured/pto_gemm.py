"""C = A B of halfs into floats on a grid of cores, with packets of four base blocks."""

from __future__ import annotations

import numpy as np

from ascend_sim.accuracy import Record

from ._matmul import run_part
from ._tiles import Plan, grid

TILES = 8
"""Base blocks of C of each core that are simulated; the rest is in proportion."""
PERCENT = {"mac_pct": "mac_us", "mte1_pct": "mte1_us", "mte2_pct": "mte2_us", "store_pct": "fix_us"}


def simulate(record: Record) -> dict:
    params = record.params
    plan = Plan(
        (record.shape["M"], record.shape["N"], record.shape["K"]),
        tuple(params["base_mnk"]),
        (params["stepK"], params["stepK"]),
        stored_b="KN",
    )
    tiles = grid(plan, tuple(params["core_grid"]))
    result = run_part(record, plan, tiles, np.float16, np.float32, TILES)
    shares = {name: 100 * result[pipe] / result["task_us"] for name, pipe in PERCENT.items()}
    return result | shares
