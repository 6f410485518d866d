"""The library's attention over many shapes. Its kernel is another one: this is the pipeline of `fa_jit`, wider."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from ascend_sim.accuracy import Record, sweep

from ._attention import run_attention
from ._attention_tasks import Shape, causal_tasks, deal_tasks, whole_tasks

TYPES = {"bf16": ml_dtypes.bfloat16, "bfloat16": ml_dtypes.bfloat16}
LIMIT = 8
"""Tiles of keys of each core that are simulated; the rest is in proportion."""
SHAPES = (
    (1, 1024, 1024, 16, 16, 128, False, "f16"),
    (2, 2048, 2048, 32, 8, 128, True, "bf16"),
    (4, 4096, 4096, 16, 16, 64, True, "f16"),
    (8, 1, 4096, 32, 8, 128, False, "bf16"),
)
"""Batch, queries, keys, heads, heads of keys, head size, causal, type: where the record has no rows of its own."""


def attention(record: Record, row) -> dict:
    """Return the times of one shape."""
    batch, queries, keys, heads, key_heads, depth, causal, kind = row
    shape = Shape(-(-depth // 64) * 64, tile=256 if depth > 128 else 512, ahead=2)
    make = causal_tasks if causal and queries > 1 else whole_tasks
    tasks = make(queries, keys, batch, heads, key_heads, shape)
    dtype = TYPES.get(str(kind), np.float16)
    return run_attention(record, shape, deal_tasks(tasks, record.cores, shape), dtype, LIMIT)


def simulate(record: Record) -> dict:
    return sweep(attention(record, row[:8]) for row in record.points() or SHAPES)
