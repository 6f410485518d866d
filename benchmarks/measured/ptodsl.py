"""C = A Bᵀ in blocks dealt to cores in turn: one buffer, two, a swizzled order, flags placed by hand."""

from __future__ import annotations

import numpy as np

from ascend_sim.accuracy import Record, sweep

from ._matmul import run_part
from ._tiles import Plan, cyclic

SWIZZLE = 4
"""Rows of blocks that are walked together, column by column; the number is not stated."""
STEPS_SIMULATED = 128
"""Steps of K, over all blocks of a core, that are simulated; the rest is in proportion."""


def product(record: Record, m: int, n: int, k: int, step: str) -> dict:
    """Return the times of one product at one step of the ladder."""
    single = step == "step1"
    plan = Plan(
        (m, n, k),
        (128, 256, 64),
        (8, 4),
        (1, 1) if single else (2, 2),
        ahead=1 if step == "step4" else 0,  # what a hand does that a compiler does not
        l0_buffers=1 if single else 2,
    )
    swizzle = SWIZZLE if step in ("step3", "step4") else 0
    tiles = cyclic(plan, record.cores, swizzle=swizzle)
    limit = max(1, STEPS_SIMULATED * 64 // k)
    result = run_part(record, plan, tiles, np.float16, np.float16, limit)
    return result | {"tflops": 2 * m * n * k / result["task_us"] / 1e6}


def simulate(record: Record) -> dict:
    if record.name == "l2hit":
        sizes = record.points("MNK", "M", "N", "K", "size") or (8192, 16384)
        return sweep(product(record, size, size, size, "step3") for size in sizes)
    n, k = record.shape["N"], record.shape["K"]
    points = (product(record, m, n, k, record.params["step"]) for m in record.shape["M"])
    return sweep(points)
