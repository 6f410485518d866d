"""C = A B with rows of B that start anywhere: turned into fractals on their way to L1, or by vector cores before."""

from __future__ import annotations

from functools import partial

import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, time_launch, times

from ._kit import EVENTS, Buffers, pieces, window
from ._matmul import multiply
from ._tiles import Plan, cyclic, round_up

BASE = (128, 256, 64)
STEP = (4, 4)
ROWS = 64
"""Rows of B that a vector core turns at once; the number is not published."""
FRACTAL = 16
COLUMNS = 256
"""Columns of such a piece."""


def turned(a, b, c, workspace, plan: Plan, tiles):
    """Turn B into fractals on all vector cores, let all cores meet, multiply on the cube cores."""
    if asc.ascend_is_aiv():
        turn(b, workspace, plan.size[2], plan.size[1])
        asc.sync_all(is_aiv_only=False)
        return
    asc.sync_all(is_aiv_only=False)
    multiply(a, workspace, c, plan, tiles)


def direct(a, b, c, plan: Plan, tiles):
    """Multiply on the cube cores; the vector cores are started, too, and do nothing."""
    if asc.ascend_is_aic():
        multiply(a, b, c, plan, tiles)


def turn(b, workspace, rows: int, columns: int):
    """Read pieces of B, lay them out as columns of 16 in UB, store each column of 16 in one burst."""
    source, target = window(b), window(workspace)
    buffers = Buffers()
    room = ROWS * (COLUMNS + FRACTAL)  # rows a block apart, so that columns lie on all banks
    loaded, made = ([buffers.take(room, b.dtype) for _ in range(2)] for _ in range(2))
    parts = [(r, c) for c in pieces(columns, COLUMNS) for r in pieces(rows, ROWS)]
    for slot in range(2):
        asc.set_flag(EVENTS.V_MTE2, slot)
        asc.set_flag(EVENTS.MTE3_V, slot)
    for number, ((row, high), (column, wide)) in enumerate(
        parts[asc.get_block_idx() :: asc.get_block_num() * asc.get_task_ratio()]
    ):
        slot, across = number % 2, -(-wide // FRACTAL)
        asc.wait_flag(EVENTS.V_MTE2, slot)
        size = b.dtype.sizeof()
        part = asc.DataCopyExtParams(high, wide * size, (columns - wide) * size, 1, 0)
        padding = asc.DataCopyPadExtParams(b.dtype, True, 0, across * FRACTAL - wide, 0)
        asc.data_copy_pad(loaded[slot], source[row * columns + column :], part, padding)
        asc.set_flag(EVENTS.MTE2_V, slot)
        asc.wait_flag(EVENTS.MTE2_V, slot)
        asc.wait_flag(EVENTS.MTE3_V, slot)
        for group in range(across):
            repeat = asc.CopyRepeatParams(1, across + 1, 8, (across + 1) * 8)
            place = made[slot][group * high * FRACTAL :]
            asc.copy(place, loaded[slot][group * FRACTAL :], 128, high // 8, repeat)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.set_flag(EVENTS.V_MTE2, slot)
        asc.set_flag(EVENTS.V_MTE3, slot)
        asc.wait_flag(EVENTS.V_MTE3, slot)
        place = (column // FRACTAL * rows + row) * FRACTAL
        params = asc.DataCopyParams(across, high, 0, rows - high)
        asc.data_copy(target[place:], made[slot], params)
        asc.set_flag(EVENTS.MTE3_V, slot)
    for slot in range(2):
        asc.wait_flag(EVENTS.V_MTE2, slot)
        asc.wait_flag(EVENTS.MTE3_V, slot)


def simulate(record: Record) -> dict:
    m, n, k = (record.shape[name] for name in "MNK")
    by_vectors = "AIV" in record.params["b_layout"]
    plan = Plan((m, n, k), BASE, STEP, stored_b="NZ" if by_vectors else "KN")
    tiles = [own for own in cyclic(plan, record.cores) if own]
    a, b, c = (
        np.zeros((m, k), np.float16),
        np.zeros((k, n), np.float16),
        np.zeros((m, n), np.float32),
    )
    arrays, kernel = [a, b, c], direct
    if by_vectors:
        arrays.append(np.zeros((round_up(n) // FRACTAL, k, FRACTAL), np.float16))
        kernel = turned
    run = time_launch(
        partial(kernel, plan=plan, tiles=tiles), *arrays, record=record, cores=len(tiles),
        kernel_type="MIX_AIC_1_2",
    )  # fmt: skip
    return times(run)
