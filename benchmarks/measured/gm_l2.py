"""C = A B with many rows: each core walks all of its rows for one column of blocks, or bands of them."""

from __future__ import annotations

import numpy as np

from ascend_sim.accuracy import Record

from ._matmul import run_part
from ._tiles import Plan, grid

BASE = (128, 256, 64)
BANDS = 5
"""Bands of a core's 1,280 rows with the split: 256 rows, so that they and B stay in L2; the number is not stated."""


def simulate(record: Record) -> dict:
    size = record.shape["M"], record.shape["N"], record.shape["K"]
    plan = Plan(size, BASE, (4, 4), stored_b="KN")
    parts = BANDS if record.params["l2_split"] else 1
    tiles = grid(plan, (record.cores, 1), parts=parts, by_column=True)
    return run_part(record, plan, tiles, np.float16, np.float32)
