"""Re-layout ND→NZ on vector cores: a copy whose eight writes a repeat meet on one bank group, or do not."""

from __future__ import annotations

from functools import partial

import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, time_launch, times

from ._kit import EVENTS, local, pieces, window

BANDS = (6, 8)  # of rows and of columns: one core each


def relayout(x, z, shape: tuple[int, int], tile: tuple[int, int], stride: int):
    """Load a tile, write its blocks fractal column by fractal column, store it; two buffers."""
    height, width = shape
    block = asc.get_block_idx()
    rows, columns = -(-height // BANDS[0]), width // BANDS[1]
    first_row, first_column = block // BANDS[1] * rows, block % BANDS[1] * columns
    source, target = window(x), window(z)
    room = tile[0] * tile[1]
    padded = stride * 16 * (tile[1] // 16)
    nd = [local(index * room * 2, room, x.dtype) for index in range(2)]
    nz = [local(2 * room * 2 + index * padded * 2, padded, x.dtype) for index in range(2)]
    for index in range(2):
        asc.set_flag(EVENTS.V_MTE2, index)
        asc.set_flag(EVENTS.MTE3_V, index)
    step = 0
    for row, count in pieces(min(rows, height - first_row), tile[0]):
        for column, length in pieces(columns, tile[1]):
            index = step % 2
            step += 1
            place = (first_row + row) * width + first_column + column
            asc.wait_flag(EVENTS.V_MTE2, index)
            load = asc.DataCopyParams(count, length // 16, (width - length) // 16, 0)
            asc.data_copy(nd[index], source[place:], load)
            asc.set_flag(EVENTS.MTE2_V, index)
            asc.wait_flag(EVENTS.MTE2_V, index)
            asc.wait_flag(EVENTS.MTE3_V, index)
            asc.copy(
                nz[index],
                nd[index],
                length,
                count,
                asc.CopyRepeatParams(stride, 1, 1, length // 16),
            )
            asc.set_flag(EVENTS.V_MTE2, index)
            asc.set_flag(EVENTS.V_MTE3, index)
            asc.wait_flag(EVENTS.V_MTE3, index)
            # Fractal columns of the whole matrix: a column's rows lie together, 16 elements each.
            start = (first_column + column) * height + (first_row + row) * 16
            store = asc.DataCopyParams(length // 16, count, stride - count, height - count)
            asc.data_copy(target[start:], nz[index], store)
            asc.set_flag(EVENTS.MTE3_V, index)
    for index in range(2):
        asc.wait_flag(EVENTS.V_MTE2, index)
        asc.wait_flag(EVENTS.MTE3_V, index)


def simulate(record: Record) -> dict:
    kernel = partial(
        relayout,
        shape=tuple(record.shape),
        tile=tuple(record.params["tile"]),
        stride=record.params["dst_block_stride"],
    )
    x, z = (np.zeros(tuple(record.shape), np.float16) for _ in range(2))
    return times(time_launch(kernel, x, z, record=record, cores=record.cores))
