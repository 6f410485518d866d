"""C = A B with a low and wide C: a block is stored when it is done, or as its fractals are done (unit flag)."""

from __future__ import annotations

import numpy as np

from ascend_sim.accuracy import Record

from ._matmul import run_part
from ._tiles import Plan, grid

DEPTH = 1024
"""K: the 64 that is stated does not fit the cube time."""

L2 = "warm"
"""State of L2 at the launch: 63 MB came at 2.4 TB/s on a chip whose HBM gives 0.76."""


def simulate(record: Record) -> dict:
    plan = Plan(
        (record.shape["M"], record.shape["N"], DEPTH),
        (128, 256, 64),
        (4, 4),
        unit_flag=record.params["unit_flag"],
        stored_b="KN",
    )
    return run_part(record, plan, grid(plan, (1, record.cores)), np.float16, np.float32, l2=L2)
