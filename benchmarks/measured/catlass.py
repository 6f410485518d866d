"""C = A B from a template: blocks in swizzled order, packets of four base blocks, the next one requested early."""

from __future__ import annotations

import numpy as np

from ascend_sim.accuracy import Record

from ._matmul import run_part
from ._tiles import Plan, cyclic

STORED = {"column": "NK", "row": "KN", "zN": "NZ"}
CORES = {"ascend910b1": 24, "ascend910b2": 24, "ascend910b3": 20, "ascend910b4": 20}


def simulate(record: Record) -> dict:
    params = record.params
    (rows, columns, depth), (_, _, base) = params["l1"], params["l0"]
    early = params["kernel"] != "00_basic"
    plan = Plan(
        (record.shape["M"], record.shape["N"], record.shape["K"]),
        (rows, columns, base),
        (depth // base, depth // base),
        ahead=int(early),
        stored_b=STORED[params["B"]],
    )
    cores = record.cores if isinstance(record.cores, int) else CORES[record.config]
    high, direction = params.get("swizzle", (3, 1))
    tiles = cyclic(
        plan,
        cores,
        swizzle=high,
        along_columns=direction == 1,
        stagger=early and plan.size[2] > depth,
    )
    dtype = np.float32 if record.dtype == "float32" else np.float16
    return run_part(record, plan, [own for own in tiles if own], dtype, dtype)
