"""The attention of `fa_jit` on one die of an A3."""

from __future__ import annotations

import numpy as np

from ascend_sim.accuracy import Record, sweep

from ._attention import run_attention
from ._attention_tasks import ROWS, Shape, Task

LIMIT = 64
"""Tiles of keys of each core that are simulated at most."""
UNNAMED = 2048
"""Queries and keys of the record that says no more than its length."""


def simulate(record: Record) -> dict:
    own = record.shape if isinstance(record.shape, dict) else {"S0": UNNAMED, "S1": [UNNAMED]}
    params = {"tile_s1": 256, "preload": 4, "fifo": 8} | record.params
    shape = Shape(own.get("D", 128), params["tile_s1"], params["preload"], params["fifo"])
    queries = range(0, own["S0"], ROWS)
    result = sweep(
        run_attention(record, shape, [[Task(row, 0, keys)] for row in queries], np.float16, LIMIT)
        for keys in record.points("S1") or own["S1"]
    )
    if isinstance(record.shape, dict):
        return result
    single = {key: value[0] if isinstance(value, list) else value for key, value in result.items()}
    return single | {"npu_us": single["task_us"]}
