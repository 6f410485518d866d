"""The library's causal attention of packed sequences, four heads to one of keys: the pipeline of `fa_jit`, wider."""

from __future__ import annotations

import re

import ml_dtypes

from ascend_sim.accuracy import Record

from ._attention import run_attention
from ._attention_tasks import Shape, causal_tasks, deal_tasks

HEADS, DEPTH = 4, 128
SHAPE = Shape(DEPTH, tile=512, ahead=2)
LIMIT = 12
"""Tiles of keys of each core that are simulated; the rest is in proportion."""


def simulate(record: Record) -> dict:
    sequences, tokens = (
        int(re.search(rf"([\d,]+) {word}", record.shape)[1].replace(",", ""))
        for word in ("sequences", "tokens")
    )
    length = tokens // sequences
    tasks = causal_tasks(length, length, sequences, HEADS, 1, SHAPE)
    return run_attention(
        record, SHAPE, deal_tasks(tasks, record.cores, SHAPE), ml_dtypes.bfloat16, LIMIT
    )
