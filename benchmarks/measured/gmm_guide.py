"""Eight groups of int8 rows times their weights, dequantised on one or two vector cores, in one or more places."""

from __future__ import annotations

from ascend_sim.accuracy import Record

from ._grouped import Grouped, run_grouped

TILE = 6144
"""Elements of a tile in UB, which is not published: that of `qgmm`."""
LIMIT = 32


def simulate(record: Record) -> dict:
    own, step = record.shape, record.params["step"]
    case = Grouped(
        own["groups"], own["M"], own["N"], own["K"],
        vectors=1 if "1:1" in step else 2, places=4 if "4 workspaces" in step else 1, tile=TILE,
        buffers=2 if "double buffer" in step else 1, gelu=False,
    )  # fmt: skip
    return run_grouped(record, case, LIMIT)
