"""C = A B of a few base blocks: two packets of each operand in L1, or three."""

from __future__ import annotations

import numpy as np

from ascend_sim.accuracy import Record

from ._matmul import run_part
from ._tiles import Plan, grid


def simulate(record: Record) -> dict:
    slots = (3, 3) if record.params["nbuffer33"] else (2, 2)
    plan = Plan(
        (record.shape["M"], record.shape["N"], record.shape["K"]),
        (128, 256, 64),
        slots=slots,
        stored_b="KN",
    )
    return run_part(record, plan, grid(plan, (1, record.cores)), np.float16, np.float32)
