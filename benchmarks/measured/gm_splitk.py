"""C = A B with one block of C: one core walks all of K, or two cores half of it each and add in GM."""

from __future__ import annotations

import numpy as np

from ascend_sim.accuracy import Record

from ._matmul import run_part
from ._tiles import Plan, Tile


def simulate(record: Record) -> dict:
    m, n, k = record.shape["M"], record.shape["N"], record.shape["K"]
    cores = record.params["split_k"]
    part = k // cores
    plan = Plan((m, n, k), (m, n, 512), (2, 2), stored_b="KN", atomic=cores > 1)
    tiles = [[Tile(0, 0, m, n, core * part, part)] for core in range(cores)]
    return run_part(record, plan, tiles, np.float16, np.float32)
