"""Loads from GM to L1 with ND→NZ re-layout, without compute."""

from __future__ import annotations

from functools import partial

import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, time_launch, times

from ._kit import POSITIONS, local, window
from .dcopy_ub import Walk, walks_of


def load_tiles(x, width: int, walks: list[Walk], bypass: bool):
    """Load a core's tiles one behind the other to the same place in L1."""
    source = window(x, bypass=bypass)
    for row, rows, column, columns in walks[asc.get_block_idx()]:
        height = -(-rows // 16) * 16
        tile = local(0, height * -(-columns // 16) * 16, x.dtype, POSITIONS.A1)
        asc.data_copy(
            tile,
            source[row * width + column :],
            asc.Nd2NzParams(1, rows, columns, 0, width, height, 1, 0),
        )


def simulate(record: Record) -> dict:
    """Run a record's kernel. Where all cores read all, they do it around L2, as the vector cores' records say.

    151 MB at 0.72 TB/s cannot have come out of L2, which gives 4.9; with 256 bytes fetched for a row of 128 they are
    what HBM gives.
    """
    height, width = record.shape
    walks = walks_of(record, tuple(record.params["tile"]))
    x = np.zeros((height, width), np.float16)
    around = bool(record.params.get("all_cores_read_all"))
    run = time_launch(
        partial(load_tiles, width=width, walks=walks, bypass=around),
        x,
        record=record,
        cores=record.cores,
        kernel_type="AIC_ONLY",
    )
    return times(run)
