"""C = A B where all cores walk K from 0 up, or each from another place."""

from __future__ import annotations

import numpy as np

from ascend_sim.accuracy import Record

from ._matmul import run_part
from ._tiles import Plan, grid


def simulate(record: Record) -> dict:
    params = record.params
    plan = Plan(
        (record.shape["M"], record.shape["N"], record.shape["K"]),
        tuple(params["base_mnk"]),
        (4, 4),  # packets of the large-packet template, as in the neighbouring cases; not stated
        stored_b="KN",
    )
    tiles = grid(plan, tuple(params["core_grid"]), stagger=params["k_order"] == "stagger")
    return run_part(record, plan, tiles, np.float16, np.float32)
