"""Attention forward in four stages a tile of keys: two on the cube core, two on its vector cores.

    QK (cube) --scores, float32--> P (vector) --weights, 16 bits--> PV (cube) --sums, float32--> GU (vector)

The stages hand blocks over through rings in GM. `ahead` tiles of scores and weights are made before the first values.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.accuracy import Record, time_launch, times
from ascend_sim.run import Run

from ._attention_tasks import ROWS, Shape, Step, Task, cut, steps_of
from ._kit import (
    EVENTS,
    PAIR,
    POSITIONS,
    Buffers,
    hand_over,
    local,
    pieces,
    scale,
    then_barrier,
    window,
)

LANES = 64
SCORES, WEIGHTS, VALUES = 0, 1, 2  # cross-core flags
SPREAD = asc.BrcbRepeatParams(1, 8)
RINT = asc.RoundMode.CAST_RINT


class Rings:
    """A core's places in the rings of scores, weights and values."""

    def __init__(self, scores: Any, weights: Any, values: Any, block: int, shape: Shape) -> None:
        self.shape = shape
        self.sizes = ROWS * shape.tile, ROWS * shape.tile, ROWS * shape.depth
        self.rings = [
            window(ring, block * shape.fifo * size)
            for ring, size in zip((scores, weights, values), self.sizes, strict=True)
        ]

    def slot(self, which: int, turn: int) -> Any:
        return self.rings[which][turn % self.shape.fifo * self.sizes[which] :]


class Cube:
    """The cube core: two packets of keys, values and weights each in L1, two buffers in L0A, L0B and L0C."""

    def __init__(self, q: Any, k: Any, v: Any, rings: Rings, shape: Shape) -> None:
        self.q, self.k, self.v, self.rings, self.shape = (
            window(q),
            window(k),
            window(v),
            rings,
            shape,
        )
        size = ROWS * max(shape.depth, ROWS)
        self.dtype = q.dtype
        place = [local(i * size * 2, size, q.dtype, POSITIONS.A1) for i in range(7)]
        self.query = place[0]
        self.packets = {SCORES: place[1:3], WEIGHTS: place[3:5], VALUES: place[5:7]}
        self.buffers = 2 if shape.depth <= ROWS else 1
        wide = 2 // self.buffers * 16384
        self.left = [local(i * 32768, wide, q.dtype, POSITIONS.A2) for i in range(self.buffers)]
        self.right = [local(i * 32768, wide, q.dtype, POSITIONS.B2) for i in range(self.buffers)]
        self.sums = [
            local(i * 65536, wide, asc.float32, POSITIONS.CO1) for i in range(self.buffers)
        ]
        self.turn = {SCORES: 0, WEIGHTS: 0, VALUES: 0, "L0": 0, "L0C": 0}

    def begin(self) -> None:
        for event in range(7):
            asc.set_flag(EVENTS.MTE1_MTE2, event)
        for index in range(self.buffers):
            asc.set_flag(EVENTS.M_MTE1, index)
            asc.set_flag(EVENTS.FIX_M, index)

    def end(self) -> None:
        for event in range(7):
            asc.wait_flag(EVENTS.MTE1_MTE2, event)
        for index in range(self.buffers):
            asc.wait_flag(EVENTS.M_MTE1, index)
            asc.wait_flag(EVENTS.FIX_M, index)

    def _load(self, what: int, source: Any, rows: int, columns: int, pitch: int) -> tuple[Any, int]:
        """Bring rows to L1 as fractals; returns the packet and its flag."""
        index = self.turn[what] % 2
        self.turn[what] += 1
        event, packet = 2 * what + index, self.packets[what][index]
        asc.wait_flag(EVENTS.MTE1_MTE2, event)
        asc.data_copy(packet, source, asc.Nd2NzParams(1, rows, columns, 0, pitch, ROWS, 1, 0))
        asc.set_flag(EVENTS.MTE2_MTE1, event)
        asc.wait_flag(EVENTS.MTE2_MTE1, event)
        return packet, event

    def scores(self, step: Step, turn: int) -> None:
        """Store a tile of Q Kᵀ."""
        depth, task = self.shape.depth, step.task
        if step.first:
            asc.wait_flag(EVENTS.MTE1_MTE2, 6)
            asc.data_copy(
                self.query, self.q[task.query * depth :],
                asc.Nd2NzParams(1, ROWS, depth, 0, depth, ROWS, 1, 0),
            )  # fmt: skip
            asc.set_flag(EVENTS.MTE2_MTE1, 6)
            asc.wait_flag(EVENTS.MTE2_MTE1, 6)
        for start, keys in pieces(self.shape.tile, ROWS):
            row = task.key + step.number * self.shape.tile + start
            packet, event = self._load(SCORES, self.k[row * depth :], keys, depth, depth)
            index = self._enter()
            asc.load_data(self.left[index], self.query, _unfold(ROWS, depth))
            fractals = asc.LoadData2DParams(0, ROWS * depth // 256, 1)
            asc.load_data(self.right[index], packet, fractals)
            asc.set_flag(EVENTS.MTE1_MTE2, event)
            if step.last and start + keys >= self.shape.tile:
                asc.set_flag(EVENTS.MTE1_MTE2, 6)
            sums = self._open()
            self._multiply(index, self.sums[sums], (ROWS, keys, depth), fresh=True)
            place = self.rings.slot(SCORES, turn)[start:]
            self._store(place, sums, keys, self.shape.tile)
        asc.cross_core_set_flag(SCORES, PAIR, asc.PipeID.PIPE_FIX)

    def values(self, step: Step, turn: int) -> None:
        """Store a tile of P V."""
        depth = self.shape.depth
        asc.cross_core_wait_flag(WEIGHTS, PAIR)
        sums = self._open()
        for start, keys in pieces(self.shape.tile, ROWS):
            row = step.task.key + step.number * self.shape.tile + start
            values, event = self._load(VALUES, self.v[row * depth :], keys, depth, depth)
            place = self.rings.slot(WEIGHTS, turn)[start:]
            weights, other = self._load(WEIGHTS, place, ROWS, keys, self.shape.tile)
            index = self._enter()
            asc.load_data(self.left[index], weights, _unfold(ROWS, keys))
            asc.load_data(self.right[index], values, _unfold(keys, depth))
            asc.set_flag(EVENTS.MTE1_MTE2, event)
            asc.set_flag(EVENTS.MTE1_MTE2, other)
            self._multiply(index, self.sums[sums], (ROWS, depth, keys), fresh=start == 0)
        self._store(self.rings.slot(VALUES, turn), sums, depth, depth)
        asc.cross_core_set_flag(VALUES, PAIR, asc.PipeID.PIPE_FIX)

    def _enter(self) -> int:
        index = self.turn["L0"] % self.buffers
        self.turn["L0"] += 1
        asc.wait_flag(EVENTS.M_MTE1, index)
        return index

    def _open(self) -> int:
        sums = self.turn["L0C"] % self.buffers
        self.turn["L0C"] += 1
        asc.wait_flag(EVENTS.FIX_M, sums)
        return sums

    def _multiply(self, index: int, sums: Any, size: tuple[int, int, int], *, fresh: bool) -> None:
        m, n, k = size
        asc.set_flag(EVENTS.MTE1_M, index)
        asc.wait_flag(EVENTS.MTE1_M, index)
        asc.mmad(
            sums, self.left[index], self.right[index], asc.MmadParams(m, n, k, 0, False, fresh)
        )
        asc.set_flag(EVENTS.M_MTE1, index)

    def _store(self, place: Any, sums: int, columns: int, pitch: int) -> None:
        asc.set_flag(EVENTS.M_FIX, sums)
        asc.wait_flag(EVENTS.M_FIX, sums)
        params = asc.FixpipeParamsV220(columns, ROWS, ROWS, pitch)
        asc.fixpipe(place, self.sums[sums], params, asc.FixpipeConfig.cfg_row_major())
        asc.set_flag(EVENTS.FIX_M, sums)


def _unfold(rows: int, columns: int) -> Any:
    return asc.LoadData3DParamsV2(
        l1_h=1, l1_w=rows, channel_size=columns, k_extension=columns, m_extension=rows
    )


class Vector:
    """One of two vector cores: 64 queries, whose scores it takes in slices of whole rows, in two buffers."""

    def __init__(self, o: Any, mask: Any, rings: Rings, shape: Shape, dtype: Any) -> None:
        self.half = asc.get_block_idx() % 2
        self.target, self.mask, self.rings, self.shape, self.dtype = (
            window(o), window(mask), rings, shape, dtype
        )  # fmt: skip
        self.own = ROWS // 2
        self.scale = shape.depth**-0.5
        self.rows = min(32 if shape.depth <= ROWS else 16, 8192 // shape.tile)
        buffers = Buffers()
        room = self.rows * shape.tile
        self.scores = [buffers.take(room, asc.float32) for _ in range(2)]
        self.weights = [buffers.take(room, dtype) for _ in range(2)]
        self.room = buffers.take(room // 2, asc.float32)
        self.sums = buffers.take(self.own * shape.depth, asc.float32)
        self.loaded = buffers.take(self.own * shape.depth // 2, asc.float32)
        self.most, self.sum, self.new, self.row_sum = (
            buffers.take(self.own, asc.float32) for _ in range(4)
        )
        self.factors = [buffers.take(self.own, asc.float32) for _ in range(shape.fifo)]
        self.spread = buffers.take(self.own * 8, asc.float32)
        self.turn = 0

    def begin(self) -> None:
        for index in range(2):
            asc.set_flag(EVENTS.V_MTE2, index)
            asc.set_flag(EVENTS.MTE3_V, index)
        asc.set_flag(EVENTS.V_MTE2, 2)

    def end(self) -> None:
        for index in range(2):
            asc.wait_flag(EVENTS.V_MTE2, index)
            asc.wait_flag(EVENTS.MTE3_V, index)
        asc.wait_flag(EVENTS.V_MTE2, 2)

    def weigh(self, step: Step, turn: int) -> None:
        """Make a tile's weights of its scores, and the factors for the sums so far."""
        asc.cross_core_wait_flag(SCORES, PAIR)
        tile = self.shape.tile
        masked = step.number >= self.shape.tiles(step.task) - step.task.masked
        for first, rows in pieces(self.own, self.rows):
            index = self.turn % 2
            self.turn += 1
            place = (self.half * self.own + first) * tile
            scores, weights = self.scores[index], self.weights[index]
            asc.wait_flag(EVENTS.V_MTE2, index)
            asc.data_copy(scores, self.rings.slot(SCORES, turn)[place:], rows * tile)
            asc.set_flag(EVENTS.MTE2_V, index)
            asc.wait_flag(EVENTS.MTE2_V, index)
            if masked:
                then_barrier(asc.adds, scores, scores, -1e4, rows * tile)
            self._softmax(scores, turn, first, rows, fresh=step.first)
            asc.wait_flag(EVENTS.MTE3_V, index)
            then_barrier(asc.cast, weights, scores, RINT, rows * tile)
            asc.set_flag(EVENTS.V_MTE2, index)
            asc.set_flag(EVENTS.V_MTE3, index)
            asc.wait_flag(EVENTS.V_MTE3, index)
            asc.data_copy(self.rings.slot(WEIGHTS, turn)[place:], weights, rows * tile)
            asc.set_flag(EVENTS.MTE3_V, index)
        asc.cross_core_set_flag(WEIGHTS, PAIR, asc.PipeID.PIPE_MTE3)

    def _softmax(self, scores: Any, turn: int, first: int, rows: int, *, fresh: bool) -> None:
        most, new, factor = (
            values[first:] for values in (self.most, self.new, self.factors[turn % self.shape.fifo])
        )
        tile, count = self.shape.tile, rows * self.shape.tile
        self._fold(asc.max, asc.block_reduce_max, new, scores, rows)
        then_barrier(asc.muls, new, new, self.scale, rows)
        if not fresh:
            then_barrier(asc.max, new, new, most, rows)
            then_barrier(asc.sub, factor, most, new, rows)
            then_barrier(asc.exp, factor, factor, rows)
        then_barrier(asc.muls, scores, scores, self.scale, count)
        then_barrier(asc.brcb, self.spread, new, rows // 8, SPREAD)
        over_rows(asc.sub, scores, self.spread, rows, tile)
        then_barrier(asc.exp, scores, scores, count)
        then_barrier(asc.adds, most, new, 0.0, rows)
        row_sum, total = self.row_sum[first:], self.sum[first:]
        self._fold(asc.add, asc.block_reduce_sum, total if fresh else row_sum, scores, rows)
        if not fresh:
            then_barrier(asc.mul, total, total, factor, rows)
            then_barrier(asc.add, total, total, row_sum, rows)

    def _fold(self, combine: Any, reduce: Any, dst: Any, scores: Any, rows: int) -> None:
        """Combine each row to one number: halves onto each other down to 64, then eights."""
        width, source = self.shape.tile, scores
        while width > LANES:
            width //= 2
            for start in range(0, width, LANES):
                stride = 2 * width // 8
                params = asc.BinaryRepeatParams(1, 1, 1, width // 8, stride, stride)
                left, right = source[start:], source[start + width :]
                combine(self.room[start:], left, right, LANES, rows, params)
            asc.pipe_barrier(asc.PipeID.PIPE_V)
            source = self.room
        then_barrier(reduce, self.room, source, rows, LANES, 1, 1, 8)
        then_barrier(reduce, dst, self.room, -(-rows // 8), LANES, 1, 1, 8)

    def add(self, step: Step, turn: int) -> None:
        """Scale the sums so far and add a tile's; after the last tile divide and store."""
        asc.cross_core_wait_flag(VALUES, PAIR)
        depth, rows = self.shape.depth, self.own // 2
        for first in (0, rows):
            place = (self.half * self.own + first) * depth
            asc.wait_flag(EVENTS.V_MTE2, 2)
            asc.data_copy(self.loaded, self.rings.slot(VALUES, turn)[place:], rows * depth)
            hand_over(EVENTS.MTE2_V, 2)
            sums = self.sums[first * depth :]
            if step.first:
                then_barrier(asc.adds, sums, self.loaded, 0.0, rows * depth)
            else:
                factor = self.factors[turn % self.shape.fifo][first:]
                then_barrier(asc.brcb, self.spread, factor, rows // 8, SPREAD)
                over_rows(asc.mul, sums, self.spread, rows, depth)
                then_barrier(asc.add, sums, sums, self.loaded, rows * depth)
            asc.set_flag(EVENTS.V_MTE2, 2)
        if step.last:
            then_barrier(asc.brcb, self.spread, self.sum, self.own // 8, SPREAD)
            over_rows(asc.div, self.sums, self.spread, self.own, depth)
            hand_over(EVENTS.V_MTE3, 2)
            place = (step.task.query + self.half * self.own) * depth
            asc.data_copy(self.target[place:], self.sums, self.own * depth)
            hand_over(EVENTS.MTE3_V, 2)


def over_rows(instruction: Any, values: Any, spread: Any, rows: int, columns: int) -> None:
    """Combine each row with its one number: an instruction for every 64 columns."""
    stride = columns // 8
    params = asc.BinaryRepeatParams(1, 1, 0, stride, stride, 1)
    for start in range(0, columns, LANES):
        part = values[start:]
        instruction(part, part, spread, LANES, rows, params)
    asc.pipe_barrier(asc.PipeID.PIPE_V)


def attend(q, k, v, o, mask, scores, weights, values, shape: Shape, tasks):
    """Run a core's tasks; scores and weights are `ahead` tiles before values and sums."""
    cube = asc.ascend_is_aic()
    block = asc.get_block_idx() // (1 if cube else 2)
    rings = Rings(scores, weights, values, block, shape)
    core: Any = Cube(q, k, v, rings, shape) if cube else Vector(o, mask, rings, shape, q.dtype)
    first, second = (core.scores, core.values) if cube else (core.weigh, core.add)
    steps = steps_of(tasks[block], shape)
    core.begin()
    for turn in range(len(steps) + shape.ahead):
        if turn < len(steps):
            first(steps[turn], turn)
        if turn >= shape.ahead:
            second(steps[turn - shape.ahead], turn - shape.ahead)
    core.end()


def launch(
    q: Any, k: Any, v: Any, o: Any, shape: Shape, tasks: Sequence[Sequence[Task]],
    start: Any = sim.launch, **options: Any,
) -> Run:  # fmt: skip
    """Run an attention, one list of tasks a core, with rings of its own."""
    slots = len(tasks) * shape.fifo
    scores, weights = (np.zeros((slots, ROWS, shape.tile), one) for one in (np.float32, q.dtype))
    values, mask = np.zeros((slots, ROWS, shape.depth), np.float32), np.zeros(1, q.dtype)
    kernel = partial(attend, shape=shape, tasks=tasks)
    return start(
        kernel, q, k, v, o, mask, scores, weights, values, cores=len(tasks), kernel_type="MIX_AIC_1_2", **options
    )  # fmt: skip


def run_attention(
    record: Record,
    shape: Shape,
    tasks: Sequence[Sequence[Task]],
    dtype: Any,
    limit: int,
    **options: Any,
) -> dict[str, Any]:
    """Return the times of an attention, one list of tasks a core; of `limit` tiles a core, scaled, where it is long."""
    counts = [sum(map(shape.tiles, own)) for own in tasks]
    few = [cut(own, shape, limit) for own in tasks]
    done = [sum(map(shape.tiles, own)) for own in few]
    queries = ROWS + max(task.query for own in tasks for task in own)
    keys = max(task.key + shape.tiles(task) * shape.tile for own in tasks for task in own)
    q, o = np.zeros((queries, shape.depth), dtype), np.zeros((queries, shape.depth), np.float32)
    k, v = (np.zeros((keys, shape.depth), dtype) for _ in range(2))
    run = launch(q, k, v, o, shape, few, start=partial(time_launch, record=record), **options)
    if done == counts:
        return times(run)
    scaled = scale(run, max(counts) / max(done), sum(counts) / sum(done))
    return scaled | {"simulated_part": f"{max(done)} of {max(counts)} tiles of keys a core, scaled"}
