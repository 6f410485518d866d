"""The library's C = A B over many shapes. Its tiling is not published: this is one that a good library would choose."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from ascend_sim.accuracy import Record, sweep

from ._matmul import run_part
from ._tiles import Plan, cyclic

SHAPES = (
    (1024, 1024, 1024, "f16"), (2048, 2048, 2048, "f16"), (4096, 4096, 4096, "f16"), (8192, 8192, 8192, "f16"),
    (1024, 1024, 1024, "bf16"), (4096, 4096, 4096, "bf16"), (2048, 4096, 2048, "bf16"), (8192, 1024, 8192, "bf16"),
    (1, 4096, 4096, "f16"), (1, 4096, 14336, "f16"), (1, 8192, 4096, "f16"), (1, 3584, 4608, "f16"),
    (128, 4096, 4096, "f16"), (128, 4096, 14336, "f16"), (512, 4096, 4096, "f16"), (1024, 3584, 3584, "f16"),
    (1009, 1024, 1024, "f16"), (512, 1040, 1024, "f16"), (64, 64, 64, "f16"), (2048, 7168, 2048, "bf16"),
)  # fmt: skip
"""M, K, N and type."""
TYPES = {
    "f16": (np.float16, np.float16, 64),
    "bf16": (ml_dtypes.bfloat16, ml_dtypes.bfloat16, 64),
    "i8": (np.int8, np.float16, 128),
}
"""Type of the operands, of the result, and K of a base block."""
STEPS_SIMULATED = 256
"""Steps of K, over all blocks of a core, that are simulated; the rest is in proportion."""


def product(record: Record, m: int, k: int, n: int, kind: str, stored_b: str = "KN") -> dict:
    """Return the times of one product, in blocks as large as leave no core idle."""
    rows, columns = min(128, -(-m // 16) * 16), 256
    while -(-m // rows) * -(-n // columns) < record.cores and columns > 64:
        columns //= 2
    dtype, result, depth = TYPES[kind]
    plan = Plan(
        (m, n, k), (rows, columns, depth), (4, 4), unit_flag=True, ahead=1, stored_b=stored_b
    )
    tiles = [own for own in cyclic(plan, record.cores, swizzle=4, stagger=True) if own]
    return run_part(record, plan, tiles, dtype, result, max(1, STEPS_SIMULATED * depth // k))


def simulate(record: Record) -> dict:
    points = record.points() or SHAPES
    return sweep(product(record, *row) for row in points)
