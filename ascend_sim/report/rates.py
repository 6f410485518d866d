"""Rates over time: bytes that moves carry, for the counters of both trace formats."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ascend_sim.report.traffic import gm_direction
from ascend_sim.trace import Kind, Log
from isa.types import CoreKind, Pipe

Floats = NDArray[np.float64]

_PATHS = {
    (CoreKind.AIC, Pipe.MTE2): "GM_TO_L1",
    (CoreKind.AIV, Pipe.MTE2): "GM_TO_UB",
    (CoreKind.AIC, Pipe.MTE3): "L1_TO_GM",
    (CoreKind.AIV, Pipe.MTE3): "UB_TO_GM",
}


def gm_rates(log: Log, width: float) -> dict[str, list[float]]:
    """Return the bytes that each path to and from GM moves in each bin of `width` cycles.

    Keys are the vendor's: `GM_TO_L1`, `GM_TO_UB`, `L1_TO_GM`, `UB_TO_GM` where used, `GM_TO_TOTAL` and
    `TOTAL_TO_GM` (with what fixpipe stores), in alphabetical order. A move spreads its bytes evenly over
    the time from its start to its end.
    """
    moves: dict[str, list[tuple[int, int, int]]] = {}
    for core in log.cores:
        for item in core.items:
            if item.kind is not Kind.INSTRUCTION or not item.bytes or item.start < 0:
                continue
            reads, writes = gm_direction(item)
            if not reads and not writes:
                continue
            end = item.end if item.end > item.start else max(log.cycles, item.start + 1)
            move = (item.start, end, item.bytes)
            path = _PATHS.get((core.kind, item.pipe))
            if path is not None:
                moves.setdefault(path, []).append(move)
            moves.setdefault("GM_TO_TOTAL" if reads else "TOTAL_TO_GM", []).append(move)
    edges = np.arange(math.ceil(log.cycles / width) + 1, dtype=np.float64) * width
    return {path: _binned(moves[path], edges) for path in sorted(moves)}


def _binned(moves: list[tuple[int, int, int]], edges: Floats) -> list[float]:
    start, end, size = (np.array(column, np.float64) for column in zip(*moves, strict=True))
    rate = size / (end - start)
    moved = _ramp(start, rate, edges) - _ramp(end, rate, edges)
    bins = np.round(np.diff(moved), 3)
    return [max(value, 0.0) for value in bins.tolist()]


def _ramp(begin: Floats, rate: Floats, edges: Floats) -> Floats:
    """Return for each edge t the sum of rate * (t - begin) over everything that began before it."""
    order = np.argsort(begin, kind="stable")
    begin, rate = begin[order], rate[order]
    rates = np.concatenate([[0.0], np.cumsum(rate)])
    offsets = np.concatenate([[0.0], np.cumsum(rate * begin)])
    began = np.searchsorted(begin, edges)
    ramp: Floats = rates[began] * edges - offsets[began]
    return ramp
