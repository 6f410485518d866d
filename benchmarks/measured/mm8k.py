"""C = A Bᵀ over 8192 x 8192 x 8192 halfs: from small base blocks on one core to unit flags on 24."""

from __future__ import annotations

import numpy as np

from ascend_sim.accuracy import Record

from ._matmul import run_part
from ._tiles import Plan, grid

# The norm template keeps one base block of each operand in L1: in all four of its records MTE1 and MTE2 add up to the
# whole time. The large-packet template has two packets of half the depth; a depth that is not given is two base blocks.
# The norm template's default is the unit flag, that of the other is not.
TILES = {1: 4, 24: 6}
"""Base blocks of C of each core that are simulated, by cores; the rest is in proportion."""


def simulate(record: Record) -> dict:
    params = record.params
    size = record.shape["M"], record.shape["N"], record.shape["K"]
    norm = params["template"] == "norm"
    packets = 1 if norm else 2
    steps = tuple(params.get(name, packets) // packets for name in ("depthA1", "depthB1"))
    plan = Plan(
        size,
        tuple(params["base_mnk"]),
        steps,
        (packets, packets),
        unit_flag=norm or bool(params.get("unit_flag")),
    )
    parts = 2 if "l2_split" in params else 1
    tiles = grid(plan, tuple(params["core_grid"]), single=params.get("single_core_mn"), parts=parts)
    return run_part(record, plan, tiles, np.float16, np.float16, TILES.get(record.cores, 6))
