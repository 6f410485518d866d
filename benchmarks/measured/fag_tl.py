"""Attention with a window of keys, several heads to one of keys: forward and backward, one after the other."""

from __future__ import annotations

import re

import numpy as np

from ascend_sim.accuracy import Record, total
from ascend_sim.config import load_chip

from ._attention import run_attention
from ._attention_grad import deal, pairs_of, run_gradient
from ._attention_tasks import ROWS, Shape, Task
from ._kit import share

HEADS_OF_KEYS = 8
LIMITS = 24, 40
"""Tiles of keys and pairs of blocks of each core that are simulated; the rest is in proportion."""


def simulate(record: Record) -> dict:
    named = dict(re.findall(r"\b([A-Za-z]+) ?(\d+)", str(record.shape)))
    batch, heads, length, depth, reach = (
        int(named[name]) for name in ("B", "H", "S", "D", "window")
    )
    group = max(1, heads // HEADS_OF_KEYS)
    cores = record.cores if isinstance(record.cores, int) else load_chip(record.config).cores.aic
    tasks = []
    for head in range(batch * heads):
        for row in range(0, length, ROWS):
            first = max(0, row - reach) // ROWS * ROWS
            keys = head // group * length + first
            tasks.append(Task(head * length + row, keys, row + ROWS - first, masked=1))
    dealt = []
    for core in range(cores):
        first, count = share(len(tasks), core, cores)
        dealt.append(tasks[first : first + count])
    shape = Shape(depth, tile=2 * ROWS)
    forward = run_attention(record, shape, dealt, np.float16, LIMITS[0])
    pairs = pairs_of(length, length, batch * heads, group, causal=True, reach=reach)
    backward = run_gradient(record, depth, depth, deal(pairs, cores), np.float16, LIMITS[1])
    both = total([forward, backward])
    limited = [part["simulated_part"] for part in (forward, backward) if "simulated_part" in part]
    result = both | {"fwd_ms": forward["task_us"] / 1000, "bwd_ms": backward["task_us"] / 1000}
    flops = 5 * 2 * len(pairs) * ROWS * ROWS * depth
    result["bwd_tflops"] = flops / backward["task_us"] / 1e6
    return result | ({"simulated_part": "; ".join(limited)} if limited else {})
