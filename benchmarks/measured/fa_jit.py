"""Attention forward, one head: 128 queries a cube core, a four-stage pipeline over tiles of keys."""

from __future__ import annotations

import numpy as np

from ascend_sim.accuracy import Record, sweep

from ._attention import run_attention
from ._attention_tasks import ROWS, Shape, Task

LIMIT = 64
"""Tiles of keys of each core that are simulated at most."""


def simulate(record: Record) -> dict:
    params, own = record.params, record.shape
    shape = Shape(own["D"], params["tile_s1"], params["preload"], params["fifo"])
    points = record.points("S1") or [own["S1"]]
    queries = range(0, own["S0"], ROWS)
    return sweep(
        run_attention(record, shape, [[Task(row, 0, keys)] for row in queries], np.float16, LIMIT)
        for keys in points
    )
