"""C = A Bᵀ over 8192 x 8192 x 8192 halfs: from small base blocks on one core to unit flags on 24."""

from __future__ import annotations

import numpy as np

from ascend_sim.accuracy import Record

from ._matmul import run_part
from ._tiles import Plan, grid

# With the norm template and no depth given L1 holds one base block of each operand: in all four of its records MTE1
# and MTE2 add up to the whole time. Its default is the unit flag, that of MDL is not.
STEP = {"norm": (1, 1), "MDL": (2, 2)}
"""Base blocks in a packet where the record does not say: a depth of 4 is two packets of two."""
TILES = {1: 4, 24: 6}
"""Base blocks of C of each core that are simulated, by cores; the rest is in proportion."""


def simulate(record: Record) -> dict:
    params = record.params
    size = record.shape["M"], record.shape["N"], record.shape["K"]
    step = STEP[params["template"]]
    if "stepKa" in params:
        step = params["stepKa"], params["depthB1"] // 2
    norm = params["template"] == "norm"
    plan = Plan(
        size,
        tuple(params["base_mnk"]),
        step,
        slots=(1, 1) if norm else (2, 2),
        unit_flag=norm or bool(params.get("unit_flag")),
    )
    parts = 2 if "l2_split" in params else 1
    tiles = grid(plan, tuple(params["core_grid"]), single=params.get("single_core_mn"), parts=parts)
    return run_part(record, plan, tiles, np.float16, np.float16, TILES.get(record.cores, 6))
