"""Grouped int8 products on cube cores, their int32 blocks dequantised on vector cores through places in GM.

Group g multiplies its rows of x by its own weight: to the product all weights are one, with the groups' columns side
by side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, time_launch, times

from ._kit import (
    C2V,
    EVENTS,
    PAIR,
    Buffers,
    gelu_chain,
    load_rows,
    pieces,
    scale,
    store_rows,
    then_barrier,
    window,
)
from ._matmul import Alone, multiply
from ._tiles import Plan, Tile

SAME, ROUND = asc.RoundMode.CAST_NONE, asc.RoundMode.CAST_RINT
LANES = 64
V2C = 1
DEPTH = 128
"""Of K in one product: two buffers fill L0A half and L0B whole."""
STEP = 4
"""Base blocks along K in a packet: two packets of A and B are what L1 holds."""


@dataclass(frozen=True)
class Grouped:
    """Sizes, and how cube and vector cores share the work."""

    groups: int
    rows: int
    columns: int
    depth: int
    vectors: int
    """Vector cores of a cube core."""
    places: int
    """Blocks in GM that the cube core may be ahead."""
    tile: int
    """Elements of a tile in UB."""
    buffers: int
    gelu: bool
    base: tuple[int, int] = (128, 256)
    item: tuple[int, int] = (128, 1024)

    def deal(self, cores: int) -> list[list[Tile]]:
        """Return each core's base blocks: items dealt in turn, across groups; columns count on over groups."""
        high = self.rows // self.groups
        items = [
            (group * high + row, group * self.columns + column, rows, columns)
            for group in range(self.groups)
            for row, rows in pieces(high, self.item[0])
            for column, columns in pieces(self.columns, self.item[1])
        ]
        return [
            [
                Tile(row, column + start, rows, count, 0, self.depth)
                for row, column, rows, columns in items[core::cores]
                for start, count in pieces(columns, self.base[1])
            ]
            for core in range(cores)
        ]


class Places(Alone):
    """The cube core stores block after block into the places of its core and waits for a free one before it begins."""

    def __init__(self, case: Grouped) -> None:
        self.case = case

    def before(self, number: int) -> None:
        if number >= self.case.places:
            asc.cross_core_wait_flag(V2C, PAIR)

    def after(self, number: int) -> None:
        asc.cross_core_set_flag(C2V, PAIR, asc.PipeID.PIPE_FIX)

    def place(self, c: Any, tile: Tile, number: int, pitch: int) -> tuple[Any, int]:
        return c[place_of(self.case, asc.get_block_idx(), number) :], self.case.base[1]

    def end(self, blocks: int) -> None:
        """Take back the flags of the last places."""
        for _ in range(min(blocks, self.case.places)):
            asc.cross_core_wait_flag(V2C, PAIR)


def place_of(case: Grouped, core: int, number: int) -> int:
    """Return where a block goes in the workspace, in elements."""
    return (core * case.places + number % case.places) * case.base[0] * case.base[1]


def grouped(x, weight, scales, tokens, workspace, y, case: Grouped, tiles, chain: Any):
    """Run the product on the cube core, what follows it on its vector cores."""
    if asc.ascend_is_aic():
        plan = Plan(
            (case.rows, case.groups * case.columns, case.depth), (*case.base, DEPTH), (STEP, STEP),
            ahead=1, stored_b="NZ",
        )  # fmt: skip
        around = Places(case)
        multiply(x, weight, workspace, plan, tiles, around)
        around.end(len(tiles[asc.get_block_idx()]))
        return
    block, part = divmod(asc.get_block_idx(), case.vectors)
    work = Dequant(scales, tokens, workspace, y, case, chain)
    for number, tile in enumerate(tiles[block]):
        asc.cross_core_wait_flag(C2V, PAIR)
        own = tile.rows // case.vectors
        work.block(place_of(case, block, number), tile, part * own, own)
        asc.cross_core_set_flag(V2C, PAIR, asc.PipeID.PIPE_MTE2)
    work.end()


class Dequant:
    """What a vector core does with a block: int32 to float32, times two scales, GELU where asked, to float16."""

    def __init__(
        self, scales: Any, tokens: Any, workspace: Any, y: Any, case: Grouped, chain: Any
    ) -> None:
        self.scales, self.tokens, self.source, self.target = (
            window(one) for one in (scales, tokens, workspace, y)
        )
        self.case, self.chain, self.turn = case, chain, 0
        width, rows = case.base[1], case.tile // case.base[1]
        buffers = Buffers()
        self.loaded = [buffers.take(case.tile, asc.int32) for _ in range(case.buffers)]
        self.results = [buffers.take(case.tile, asc.float16) for _ in range(case.buffers)]
        self.scale = [buffers.take(width, asc.float32) for _ in range(case.buffers)]
        self.token = [buffers.take(-(-rows // 8) * 8, asc.float32) for _ in range(case.buffers)]
        self.value, self.other = (buffers.take(case.tile, asc.float32) for _ in range(2))
        self.spread = buffers.take(-(-rows // 8) * 64, asc.float32)
        for index in range(case.buffers):
            asc.set_flag(EVENTS.V_MTE2, index)
            asc.set_flag(EVENTS.MTE3_V, index)

    def block(self, place: int, tile: Tile, first: int, own: int) -> None:
        """Work through this core's rows of a block, tile by tile."""
        width = tile.columns
        column = tile.column % self.case.columns
        for start, rows in pieces(own, self.case.tile // self.case.base[1]):
            index = self.turn % self.case.buffers
            self.turn += 1
            row, count = first + start, rows * width
            asc.wait_flag(EVENTS.V_MTE2, index)
            at = place + row * self.case.base[1]
            load_rows(self.loaded[index], self.source[at:], rows, width, self.case.base[1])
            load_rows(self.scale[index], self.scales[tile.column :], 1, width, width)
            load_rows(self.token[index], self.tokens[tile.row + row :], 1, rows, rows)
            asc.set_flag(EVENTS.MTE2_V, index)
            asc.wait_flag(EVENTS.MTE2_V, index)
            asc.wait_flag(EVENTS.MTE3_V, index)
            self._compute(index, rows, width, count)
            asc.set_flag(EVENTS.V_MTE2, index)
            asc.set_flag(EVENTS.V_MTE3, index)
            asc.wait_flag(EVENTS.V_MTE3, index)
            out = (tile.row + row) * self.case.columns + column
            store_rows(self.target[out:], self.results[index], rows, width, self.case.columns)
            asc.set_flag(EVENTS.MTE3_V, index)

    def _compute(self, index: int, rows: int, width: int, count: int) -> None:
        value, stride = self.value, width // 8
        then_barrier(asc.cast, value, self.loaded[index], SAME, count)
        by_column = asc.BinaryRepeatParams(1, 1, 1, stride, stride, 0)
        for start in range(0, width, LANES):
            part = value[start:]
            asc.mul(part, part, self.scale[index][start:], LANES, rows, by_column)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        blocks = asc.BrcbRepeatParams(1, 8)
        then_barrier(asc.brcb, self.spread, self.token[index], -(-rows // 8), blocks)
        by_row = asc.BinaryRepeatParams(1, 1, 0, stride, stride, 1)
        for start in range(0, width, LANES):
            part = value[start:]
            asc.mul(part, part, self.spread, LANES, rows, by_row)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        result = self.chain(value, self.other, count) if self.case.gelu else value
        then_barrier(asc.cast, self.results[index], result, ROUND, count)

    def end(self) -> None:
        for index in range(self.case.buffers):
            asc.wait_flag(EVENTS.V_MTE2, index)
            asc.wait_flag(EVENTS.MTE3_V, index)


def gelu_into(x: Any, other: Any, count: int) -> Any:
    """Compute GELU into `other`, and return it."""
    gelu_chain(x, other, other, count)
    return other


def arrays(case: Grouped, cores: int) -> list[Any]:
    """Return x, weights (columns of fractals), scales, scales of tokens, workspace and y."""
    return [
        np.zeros((case.rows, case.depth), np.int8),
        np.zeros((case.groups * case.columns // 32, case.depth, 32), np.int8),
        np.zeros((case.groups, case.columns), np.float32),
        np.zeros(case.rows, np.float32),
        np.zeros((cores, case.places, *case.base), np.int32),
        np.zeros((case.rows, case.columns), np.float16),
    ]


def run_grouped(
    record: Record, case: Grouped, limit: int, chain: Callable[..., Any] = gelu_into
) -> dict[str, Any]:
    """Return the times of a grouped product; of its first `limit` base blocks a core, scaled, where it is long."""
    tiles = case.deal(record.cores)
    few = [own[:limit] for own in tiles]
    run = time_launch(
        partial(grouped, case=case, tiles=few, chain=chain), *arrays(case, record.cores),
        record=record, cores=record.cores, kernel_type=f"MIX_AIC_1_{case.vectors}",
    )  # fmt: skip
    most, whole, part = max(map(len, tiles)), sum(map(len, tiles)), sum(map(len, few))
    if part == whole:
        return times(run)
    scaled = scale(run, most / limit, whole / part)
    return scaled | {"simulated_part": f"{limit} of {most} base blocks a core, scaled"}
