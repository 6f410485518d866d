"""The library's attention backward before and after its workspaces' rows were widened to whole 512 bytes."""

from __future__ import annotations

import re

import numpy as np

from ascend_sim.accuracy import Record

from ._attention_grad import deal, pairs_of, run_gradient

LIMIT = 40
"""Pairs of blocks of each core that are simulated; the rest is in proportion."""
SCENARIO = {"B": 1, "N": 12, "S": 6144, "D": 128}
"""What the page calls its first scenario, causal: for a record that does not say which it is."""
LINE = 128
"""Numbers of 512 bytes."""


def simulate(record: Record) -> dict:
    named = {name: int(size) for name, size in re.findall(r"\b([BNSD])(\d+)", str(record.shape))}
    own = SCENARIO | named
    unaligned = "not" in str(record.params.get("workspace_pitch", ""))
    depth = own["D"]
    pitch = depth if unaligned else -(-depth // LINE) * LINE
    pairs = pairs_of(own["S"], own["S"], own["B"] * own["N"], 1, causal=not named)
    cores = record.cores if isinstance(record.cores, int) else 20
    return run_gradient(record, depth, pitch, deal(pairs, cores), np.float16, LIMIT)
