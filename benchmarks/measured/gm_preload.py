"""C = A B with all of K in one packet: the next one is requested before this one is used, or when it is needed."""

from __future__ import annotations

import numpy as np

from ascend_sim.accuracy import Record

from ._matmul import run_part
from ._tiles import Plan, grid


def simulate(record: Record) -> dict:
    params = record.params
    step = params["step_k"]
    plan = Plan(
        (record.shape["M"], record.shape["N"], record.shape["K"]),
        tuple(params["base_mnk"]),
        (step, step),
        (params["depth"][0] // step, params["depth"][1] // step),
        ahead=1 if params["preload"] else 0,
        stored_b="KN",
    )
    return run_part(record, plan, grid(plan, (1, record.cores)), np.float16, np.float32)
