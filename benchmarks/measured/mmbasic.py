"""C = A Bᵀ over 8192 x 8192 x 8192 halfs in basic instructions, with unit flags; all rows at once or in two passes."""

from __future__ import annotations

import numpy as np

from ascend_sim.accuracy import Record

from ._matmul import run_part
from ._tiles import Plan, grid, grid_of

TILES = 6
"""Base blocks of C of each core that are simulated; the rest is in proportion."""


def simulate(record: Record) -> dict:
    params = record.params
    plan = Plan(
        (record.shape["M"], record.shape["N"], record.shape["K"]),
        tuple(params["base_mnk"]),
        (params["stepKa"], params["stepKb"]),
        ahead=1,
        unit_flag=params["unit_flag"],
    )
    tiles = grid(plan, grid_of(record.cores, plan.size), parts=2 if "l2_split" in params else 1)
    return run_part(record, plan, tiles, np.float16, np.float16, TILES)
