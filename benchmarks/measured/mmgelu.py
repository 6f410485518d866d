"""C = A Bᵀ in float32, GELU over it, and both in one kernel: vector cores take each block as the cube stores it."""

from __future__ import annotations

from functools import partial

import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, time_launch, times

from ._kit import (
    C2V,
    EVENTS,
    PAIR,
    Buffers,
    gelu_chain,
    hand_over,
    load_rows,
    pieces,
    scale,
    store_rows,
    window,
)
from ._matmul import Alone, multiply, run_part
from ._tiles import Plan, cyclic, grid, grid_of

BASE = (128, 256, 64)
STEPS = (8, 4)
TILES = 6
"""Base blocks of C of each core that are simulated; the rest is in proportion."""


class Signal(Alone):
    """The cube core tells its vector cores of every stored block."""

    def after(self, number: int) -> None:
        asc.cross_core_set_flag(C2V, PAIR, asc.PipeID.PIPE_FIX)


class Gelu:
    """x / (1 + exp(-1.596 (x + 0.0447 x³))) over tiles of some rows, in `sets` sets of three buffers."""

    def __init__(self, c, y, columns: int, room: int, sets: int) -> None:
        buffers = Buffers()
        self.sets = [[buffers.take(room, asc.float32) for _ in range(3)] for _ in range(sets)]
        self.source, self.target, self.pitch = window(c), window(y), columns
        self.turn = 0
        for index in range(sets):
            asc.set_flag(EVENTS.MTE3_MTE2, index)

    def tile(self, row: int, column: int, rows: int, columns: int) -> None:
        """Load a tile, compute with a barrier between instructions, store it."""
        index = self.turn % len(self.sets)
        self.turn += 1
        (x, cube, out), n = self.sets[index], rows * columns
        place = row * self.pitch + column
        asc.wait_flag(EVENTS.MTE3_MTE2, index)
        load_rows(x, self.source[place:], rows, columns, self.pitch)
        hand_over(EVENTS.MTE2_V, index)
        gelu_chain(x, cube, out, n)
        hand_over(EVENTS.V_MTE3, index)
        store_rows(self.target[place:], out, rows, columns, self.pitch)
        asc.set_flag(EVENTS.MTE3_MTE2, index)

    def end(self) -> None:
        for index in range(len(self.sets)):
            asc.wait_flag(EVENTS.MTE3_MTE2, index)


def gelu(c, y, tiles, columns: int):
    """Take tiles of 32 rows in two sets of buffers: its pipes' times add up to more than the whole."""
    rows = BASE[0] // 4
    work = Gelu(c, y, columns, rows * BASE[1], sets=2)
    for tile in tiles[asc.get_block_idx()]:
        for start, count in pieces(tile.rows, rows):
            work.tile(tile.row + start, tile.column, count, tile.columns)
    work.end()


def fused(a, b, c, y, plan: Plan, tiles):
    """Multiply on the cube core; on each vector core wait for a block and take its half of it, still in L2."""
    if asc.ascend_is_aic():
        multiply(a, b, c, plan, tiles, Signal())
        return
    block, half = divmod(asc.get_block_idx(), 2)
    work = Gelu(c, y, plan.size[1], BASE[0] // 2 * BASE[1], sets=1)
    for tile in tiles[block]:
        asc.cross_core_wait_flag(C2V, PAIR)
        own = tile.rows // 2
        work.tile(tile.row + half * own, tile.column, own, tile.columns)
    work.end()


def simulate(record: Record) -> dict:
    part = record.params["part"]
    if isinstance(record.shape, dict):
        m, n, k = (record.shape[name] for name in "MNK")
    else:
        (m, n), k = record.shape, BASE[2]
    plan = Plan((m, n, k), BASE, STEPS, ahead=1, unit_flag=True)
    tiles = grid(plan, grid_of(record.cores, plan.size))
    if part == "matmul only":
        return run_part(record, plan, tiles, np.float16, np.float32, TILES)
    c, y = np.zeros((m, n), np.float32), np.zeros((m, n), np.float32)
    if part == "gelu only":
        halves = Plan((m, n, k), (BASE[0] // 2, *BASE[1:]))
        kernel = partial(gelu, tiles=cyclic(halves, record.cores), columns=n)
        return times(time_launch(kernel, c, y, record=record, cores=record.cores))
    a, b = np.zeros((m, k), np.float16), np.zeros((n, k), np.float16)
    few = [own[:TILES] for own in tiles]
    kernel = partial(fused, plan=plan, tiles=few)
    run = time_launch(
        kernel, a, b, c, y, record=record, cores=len(tiles), kernel_type="MIX_AIC_1_2"
    )
    most, all_of, simulated = (max(map(len, tiles)), sum(map(len, tiles)), sum(map(len, few)))
    return scale(run, most / TILES, all_of / simulated) | {
        "simulated_part": f"{TILES} of {most} base blocks a core, scaled"
    }
