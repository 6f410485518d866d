"""Attention of long sequences, twelve heads of queries to one of keys: the pipeline of `fa_jit`, wider."""

from __future__ import annotations

import re

import numpy as np

from ascend_sim.accuracy import Record, sweep

from ._attention import run_attention
from ._attention_tasks import Shape, deal_tasks, whole_tasks

HEADS, DEPTH = 12, 128
SHAPE = Shape(DEPTH, tile=512, ahead=2)
LIMIT = 8
"""Tiles of keys of each core that are simulated; the rest is in proportion."""


def simulate(record: Record) -> dict:
    lengths = record.points("S", "S1", "seq") or [
        int(n) for n in re.findall(r"\d+", str(record.shape))
    ]
    return sweep(
        run_attention(
            record,
            SHAPE,
            deal_tasks(whole_tasks(length, length, 1, HEADS, 1, SHAPE), record.cores, SHAPE),
            np.float16,
            LIMIT,
        )
        for length in lengths
    )
