"""C = A B with a low and wide C: one base block in each copy from GM, or packets of four."""

from __future__ import annotations

import numpy as np

from ascend_sim.accuracy import Record

from ._matmul import run_part
from ._tiles import Plan, grid


def simulate(record: Record) -> dict:
    params = record.params
    size = record.shape["M"], record.shape["N"], record.shape["K"]
    _, _, step_a, step_b = params["step"]
    large = params["template"] == "MDL"
    depth = params["depth"]
    plan = Plan(
        size,
        tuple(params["base_mnk"]),
        (step_a, step_b) if large else (1, 1),
        (depth[0] // step_a, depth[1] // step_b) if large else (2, 2),
        unit_flag=not large,  # each template's default
        stored_b="KN",
    )
    return run_part(record, plan, grid(plan, (1, record.cores)), np.float16, np.float32)
