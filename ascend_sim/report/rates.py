"""Rates over time: bytes that moves carry, for the counters of both trace formats."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ascend_sim.report.calls import READS_GM, WRITES_GM
from ascend_sim.report.ledger import Ledger
from ascend_sim.report.traffic import gm_directions
from ascend_sim.trace import Kind
from isa.types import CoreKind, Pipe

Floats = NDArray[np.float64]

_PATHS = {
    (CoreKind.AIC, Pipe.MTE2): "GM_TO_L1",
    (CoreKind.AIV, Pipe.MTE2): "GM_TO_UB",
    (CoreKind.AIC, Pipe.MTE3): "L1_TO_GM",
    (CoreKind.AIV, Pipe.MTE3): "UB_TO_GM",
}


def gm_rates(ledger: Ledger, width: float) -> dict[str, list[float]]:
    """Return the bytes that each path to and from GM moves in each bin of `width` cycles.

    Keys are the vendor's: `GM_TO_L1`, `GM_TO_UB`, `L1_TO_GM`, `UB_TO_GM` where used, `GM_TO_TOTAL` and
    `TOTAL_TO_GM` (with what fixpipe stores), in alphabetical order. A move spreads its bytes evenly over
    the time from its start to its end.
    """
    cycles = ledger.log.cycles
    edges = np.arange(math.ceil(cycles / width) + 1, dtype=np.float64) * width
    bins: dict[str, Floats] = {}
    for entry, gm in zip(ledger, gm_directions(ledger), strict=True):
        items = entry.columns.items
        moves = (items["kind"] == Kind.INSTRUCTION) & (items["bytes"] > 0) & (items["start"] >= 0)
        moves &= (gm & (READS_GM | WRITES_GM)) != 0
        items, gm = items[moves], gm[moves]
        chosen = {"GM_TO_TOTAL": gm & READS_GM != 0, "TOTAL_TO_GM": gm & READS_GM == 0}
        for pipe in (Pipe.MTE2, Pipe.MTE3):
            chosen[_PATHS[entry.core.kind, pipe]] = items["pipe"] == pipe
        for path, which in chosen.items():
            if which.any():
                moved = _moved(items[which], edges, cycles)
                bins[path] = bins[path] + moved if path in bins else moved
    return {path: _rounded(np.diff(bins[path])) for path in sorted(bins)}


def _moved(items: NDArray[Any], edges: Floats, cycles: int) -> Floats:
    """Return what some transfers of one core have moved by each edge."""
    start, end = items["start"].astype(np.float64), items["end"].astype(np.float64)
    end = np.where(end > start, end, np.maximum(cycles, start + 1))
    rate = items["bytes"] / (end - start)
    moved: Floats = _ramp(start, rate, edges) - _ramp(end, rate, edges)
    return moved


def _rounded(values: Floats) -> list[float]:
    return [max(value, 0.0) for value in np.round(values, 3).tolist()]


def _ramp(begin: Floats, rate: Floats, edges: Floats) -> Floats:
    """Return for each edge t the sum of rate * (t - begin) over everything that began before it."""
    order = np.argsort(begin, kind="stable")
    begin, rate = begin[order], rate[order]
    rates = np.concatenate([[0.0], np.cumsum(rate)])
    offsets = np.concatenate([[0.0], np.cumsum(rate * begin)])
    began = np.searchsorted(begin, edges)
    ramp: Floats = rates[began] * edges - offsets[began]
    return ramp
