"""The product of `gm_const`, asked for by vector cores in a mix kernel, or on cube cores alone."""

from __future__ import annotations

from functools import partial

import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, time_launch, times

from ._served import WORDS, Request, ask, serve
from ._tiles import Plan, grid
from .gm_const import FIELDS, prepared, read_tiling

BASE = (128, 256, 64)
VECTORS = 2


def mixed(a, b, c, tiling, lines, plan: Plan, request: Request):
    """Serve on the cube core; on the first vector core of each block read the tiling and ask."""
    if asc.ascend_is_aic():
        read_tiling(tiling)
        serve(a, b, c, lines, plan, [request], VECTORS)
        return
    asc.TPipe()
    read_tiling(tiling)
    ask(lines, [request], VECTORS)


def simulate(record: Record) -> dict:
    m, n, k = (record.shape[name] for name in "MNK")
    plan = Plan((m, n, k), BASE, stored_b="KN")
    tiles = grid(plan, (1, record.cores))
    arrays = [
        np.zeros((m, k), np.float16),
        np.zeros((k, n), np.float16),
        np.zeros((m, n), np.float32),
        np.ones(FIELDS, np.int32),
    ]
    if record.params["mode"] == "cube":
        kernel = partial(prepared, plan=plan, tiles=tiles, run_time=True)
        kind = "AIC_ONLY"
    else:
        arrays.append(np.zeros((record.cores * VECTORS, WORDS), np.int32))
        kernel = partial(mixed, plan=plan, request=Request((0,), tiles))
        kind = f"MIX_AIC_1_{VECTORS}"
    run = time_launch(
        kernel, *arrays, record=record, cores=record.cores, kernel_type=kind, numerics="on"
    )
    return times(run)
