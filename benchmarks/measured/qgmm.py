"""y = GELU((x · weight of its group) · scale · scale of its token), int8 to float16: cube and vector cores in turn."""

from __future__ import annotations

from ascend_sim.accuracy import Record

from ._grouped import Grouped, run_grouped

LIMIT = 16
"""Base blocks of each core that are simulated; the rest is in proportion."""


def simulate(record: Record) -> dict:
    own, params = record.shape, record.params
    case = Grouped(
        own["groups"], own["M"], own["N"], own["K"],
        vectors=params["aiv_per_aic"], places=params["slots"], tile=params["ub_tile_bytes"] // 4,
        buffers=2, gelu=True, base=tuple(params["base_mn"]), item=tuple(params["single_mn"]),
    )  # fmt: skip
    return run_grouped(record, case, LIMIT)
