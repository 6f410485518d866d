"""Bandwidth of one core's copies between GM and UB, by bytes a copy."""

from __future__ import annotations

from functools import partial

import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, sweep, time_launch, times

from ._kit import hand_over, local, window

CORES = 48
"""All vector cores copy at once: how many did is not published, but the levels fit that."""
COPIES = 96
"""Copies of each core, a part of a long stream: stores find L2 full of those before."""


def copies(x, size: int, offset: int, load: bool):
    """Copy a core's part in pieces of `size` bytes, each one waited for."""
    start = asc.get_block_idx() * (COPIES * size + 512) + offset
    tensor = window(x, start)
    tile = local(0, size, x.dtype)
    event = asc.HardEvent.MTE2_S if load else asc.HardEvent.MTE3_S
    for step in range(COPIES):
        if load:
            asc.data_copy(tile, tensor[step * size :], size)
        else:
            asc.data_copy(tensor[step * size :], tile, size)
        hand_over(event)


def simulate(record: Record) -> dict:
    load = record.params["direction"].startswith("GM->UB")
    offset = 32 if "32 B" in record.params["direction"] else 0
    points = []
    for kib in record.measured.get("size_kb", SIZES):
        size = int(kib * 1024)
        x = np.zeros(CORES * (COPIES * size + 512) + 512, np.int8)
        run = time_launch(
            partial(copies, size=size, offset=offset, load=load),
            x,
            record=record,
            cores=CORES,
            l2="cold" if load else "dirty",
        )
        point = times(run)
        rate = COPIES * size / point["aiv_us"] / 1000
        points.append(point | {"size_kb": kib, "gbps_per_core": rate})
    return sweep(points)


SIZES = (0.5, 1, 2, 4, 8, 16, 32, 48, 56, 64, 96, 128, 160, 192)
