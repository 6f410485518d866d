"""Attention backward by pairs of blocks: products on the cube core, softmax and its gradient on two vector cores.

    S = Q Kᵀ, dP = dO Vᵀ (cube) --float32--> P, dS (vector) --16 bits--> dV += Pᵀ dO, dK += dSᵀ Q, dQ += dS K (cube)

Gradients are added up in float32 workspaces in GM. The first products are `AHEAD` pairs before the last ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.accuracy import Record, time_launch, times
from ascend_sim.run import Run

from ._kit import EVENTS, PAIR, POSITIONS, Buffers, hand_over, local, scale, then_barrier, window

ROWS = 128
AHEAD = 2
PLACES = 4
SCORES, WEIGHTS = 0, 1  # cross-core flags
SPREAD = asc.BrcbRepeatParams(1, 8)
SAME, RINT = asc.RoundMode.CAST_NONE, asc.RoundMode.CAST_RINT
LANES = 64
LOADS = ("q", "k", "v", "do", "p", "ds")


@dataclass(frozen=True)
class Pair:
    """A block of 128 queries and a block of 128 keys, by their first rows; the first pair of its queries or not."""

    query: int
    key: int
    first: bool


class Places:
    """A core's places in GM: S and dP, P and dS of `PLACES` pairs."""

    def __init__(self, scores: Any, weights: Any, block: int) -> None:
        self.scores, self.weights = window(scores), window(weights)
        self.block = block

    def slot(self, ring: Any, turn: int, which: int) -> Any:
        at = (self.block * PLACES + turn % PLACES) * 2 + which
        return ring[at * ROWS * ROWS :]


class Cube:
    """The cube core: a packet of each operand in L1, two buffers in L0A, L0B and L0C."""

    def __init__(
        self, inputs: Sequence[Any], outputs: Sequence[Any], places: Places, depth: int, pitch: int
    ) -> None:
        self.q, self.k, self.v, self.do = (window(one) for one in inputs)
        self.dq, self.dk, self.dv = (window(one) for one in outputs)
        self.places, self.depth, self.pitch = places, depth, pitch
        dtype, size = inputs[0].dtype, ROWS * ROWS
        self.packets = {
            name: local(i * size * 2, size, dtype, POSITIONS.A1) for i, name in enumerate(LOADS)
        }
        self.left = [local(i * 32768, size, dtype, POSITIONS.A2) for i in range(2)]
        self.right = [local(i * 32768, size, dtype, POSITIONS.B2) for i in range(2)]
        self.sums = [local(i * 65536, size, asc.float32, POSITIONS.CO1) for i in range(2)]
        self.turn = 0

    def begin(self) -> None:
        for event in range(len(LOADS)):
            asc.set_flag(EVENTS.MTE1_MTE2, event)
        for index in range(2):
            asc.set_flag(EVENTS.M_MTE1, index)
            asc.set_flag(EVENTS.FIX_M, index)

    def end(self) -> None:
        for event in range(len(LOADS)):
            asc.wait_flag(EVENTS.MTE1_MTE2, event)
        for index in range(2):
            asc.wait_flag(EVENTS.M_MTE1, index)
            asc.wait_flag(EVENTS.FIX_M, index)

    def _load(self, name: str, source: Any, columns: int) -> None:
        event = LOADS.index(name)
        asc.wait_flag(EVENTS.MTE1_MTE2, event)
        params = asc.Nd2NzParams(1, ROWS, columns, 0, columns, ROWS, 1, 0)
        asc.data_copy(self.packets[name], source, params)
        asc.set_flag(EVENTS.MTE2_MTE1, event)
        asc.wait_flag(EVENTS.MTE2_MTE1, event)

    def _release(self, *names: str) -> None:
        for name in names:
            asc.set_flag(EVENTS.MTE1_MTE2, LOADS.index(name))

    def first(self, pair: Pair, turn: int) -> None:
        """Store S and dP of a pair."""
        depth = self.depth
        queries, keys = pair.query * depth, pair.key * depth
        for which, (left, right) in enumerate((("q", "k"), ("do", "v"))):
            self._load(left, getattr(self, left)[queries:], depth)
            self._load(right, getattr(self, right)[keys:], depth)
            index = self._enter()
            asc.load_data(self.left[index], self.packets[left], _unfold(depth))
            by_rows = asc.LoadData2DParams(0, ROWS * depth // 256, 1)
            asc.load_data(self.right[index], self.packets[right], by_rows)
            self._release(left, right)
            self._multiply(index, ROWS, depth)
            self._store(self.places.slot(self.places.scores, turn, which), index, ROWS, ROWS)
        asc.cross_core_set_flag(SCORES, PAIR, asc.PipeID.PIPE_FIX)

    def second(self, pair: Pair, turn: int) -> None:
        """Add a pair's part to dV, dK and dQ."""
        depth = self.depth
        asc.cross_core_wait_flag(WEIGHTS, PAIR)
        self._load("p", self.places.slot(self.places.weights, turn, 0), ROWS)
        self._load("ds", self.places.slot(self.places.weights, turn, 1), ROWS)
        self._load("do", self.do[pair.query * depth :], depth)
        self._load("q", self.q[pair.query * depth :], depth)
        self._load("k", self.k[pair.key * depth :], depth)
        asc.set_atomic_add(asc.float32)
        for left, right, target, row, turned in (
            ("p", "do", self.dv, pair.key, True),
            ("ds", "q", self.dk, pair.key, True),
            ("ds", "k", self.dq, pair.query, False),
        ):
            index = self._enter()
            asc.load_data(self.left[index], self.packets[left], _unfold(ROWS, turned=turned))
            asc.load_data(self.right[index], self.packets[right], _unfold(depth))
            self._multiply(index, depth, ROWS)
            self._store(target[row * self.pitch :], index, depth, self.pitch)
        self._release("p", "ds", "do", "q", "k")
        asc.set_atomic_none()

    def _enter(self) -> int:
        index = self.turn % 2
        self.turn += 1
        asc.wait_flag(EVENTS.M_MTE1, index)
        return index

    def _multiply(self, index: int, columns: int, depth: int) -> None:
        asc.set_flag(EVENTS.MTE1_M, index)
        asc.wait_flag(EVENTS.MTE1_M, index)
        asc.wait_flag(EVENTS.FIX_M, index)
        params = asc.MmadParams(ROWS, columns, depth, 0, False, True)
        asc.mmad(self.sums[index], self.left[index], self.right[index], params)
        asc.set_flag(EVENTS.M_MTE1, index)

    def _store(self, place: Any, index: int, columns: int, pitch: int) -> None:
        asc.set_flag(EVENTS.M_FIX, index)
        asc.wait_flag(EVENTS.M_FIX, index)
        params = asc.FixpipeParamsV220(columns, ROWS, ROWS, pitch)
        asc.fixpipe(place, self.sums[index], params, asc.FixpipeConfig.cfg_row_major())
        asc.set_flag(EVENTS.FIX_M, index)


def _unfold(columns: int, *, turned: bool = False) -> Any:
    return asc.LoadData3DParamsV2(
        l1_h=1, l1_w=ROWS, channel_size=columns, k_extension=columns, m_extension=ROWS, en_transpose=turned
    )  # fmt: skip


class Vector:
    """One of two vector cores: 64 of a block's queries, in two halves with buffers of their own."""

    def __init__(
        self, inputs: Sequence[Any], lines: Sequence[Any], places: Places, depth: int
    ) -> None:
        self.half = asc.get_block_idx() % 2
        self.do, self.o = (window(one) for one in inputs)
        self.most = window(lines[0])
        self.places, self.depth = places, depth
        self.scale = depth**-0.5
        self.rows = ROWS // 4
        dtype, size, buffers = inputs[0].dtype, self.rows * ROWS, Buffers()
        self.scores = [buffers.take(size, asc.float32) for _ in range(2)]
        self.grads = [buffers.take(size, asc.float32) for _ in range(2)]
        self.weights = [buffers.take(size, dtype) for _ in range(2)]
        self.results = [buffers.take(size, dtype) for _ in range(2)]
        self.narrow = [buffers.take(self.rows * depth, dtype) for _ in range(2)]
        self.line, self.inner = (buffers.take(ROWS // 2, asc.float32) for _ in range(2))
        self.line_spread, self.inner_spread = (
            buffers.take(ROWS // 2 * 8, asc.float32) for _ in range(2)
        )

    def begin(self) -> None:
        for index in range(2):
            asc.set_flag(EVENTS.V_MTE2, index)
            asc.set_flag(EVENTS.MTE3_V, index)

    def end(self) -> None:
        for index in range(2):
            asc.wait_flag(EVENTS.V_MTE2, index)
            asc.wait_flag(EVENTS.MTE3_V, index)

    def first(self, pair: Pair, turn: int) -> None:
        """Make P and dS of S and dP."""
        if pair.first:
            self._lines(pair)
        asc.cross_core_wait_flag(SCORES, PAIR)
        count = self.rows * ROWS
        for index in range(2):
            place = (self.half * 2 + index) * count
            scores, grads = self.scores[index], self.grads[index]
            asc.wait_flag(EVENTS.V_MTE2, index)
            for which, target in enumerate((scores, grads)):
                source = self.places.slot(self.places.scores, turn, which)
                asc.data_copy(target, source[place:], count)
            asc.set_flag(EVENTS.MTE2_V, index)
            asc.wait_flag(EVENTS.MTE2_V, index)
            then_barrier(asc.muls, scores, scores, self.scale, count)
            self._over_rows(asc.sub, scores, self.line_spread, index)
            then_barrier(asc.exp, scores, scores, count)
            self._over_rows(asc.sub, grads, self.inner_spread, index)
            then_barrier(asc.mul, grads, grads, scores, count)
            then_barrier(asc.muls, grads, grads, self.scale, count)
            asc.wait_flag(EVENTS.MTE3_V, index)
            then_barrier(asc.cast, self.weights[index], scores, RINT, count)
            then_barrier(asc.cast, self.results[index], grads, RINT, count)
            asc.set_flag(EVENTS.V_MTE2, index)
            asc.set_flag(EVENTS.V_MTE3, index)
            asc.wait_flag(EVENTS.V_MTE3, index)
            for which, made in enumerate((self.weights[index], self.results[index])):
                target = self.places.slot(self.places.weights, turn, which)
                asc.data_copy(target[place:], made, count)
            asc.set_flag(EVENTS.MTE3_V, index)
        asc.cross_core_set_flag(WEIGHTS, PAIR, asc.PipeID.PIPE_MTE3)

    def second(self, pair: Pair, turn: int) -> None:
        """Nothing: the cube core adds the gradients up."""

    def _over_rows(self, instruction: Any, values: Any, spread: Any, index: int) -> None:
        params = asc.BinaryRepeatParams(1, 1, 0, ROWS // 8, ROWS // 8, 1)
        for start in range(0, ROWS, LANES):
            part = values[start:]
            instruction(part, part, spread[index * self.rows * 8 :], LANES, self.rows, params)
        asc.pipe_barrier(asc.PipeID.PIPE_V)

    def _lines(self, pair: Pair) -> None:
        """Load each query's logarithm of the sum, and compute the sum of dO times O."""
        depth, own = self.depth, ROWS // 2
        first = pair.query + self.half * own
        for index in range(2):
            asc.wait_flag(EVENTS.V_MTE2, index)
        asc.data_copy(self.line, self.most[first:], own)
        for index in range(2):
            row, count = first + index * self.rows, self.rows * depth
            for narrow, source in zip(self.narrow, (self.do, self.o), strict=True):
                asc.data_copy(narrow, source[row * depth :], count)
            hand_over(EVENTS.MTE2_V, 2)
            then_barrier(asc.cast, self.scores[0], self.narrow[0], SAME, count)
            then_barrier(asc.cast, self.grads[0], self.narrow[1], SAME, count)
            then_barrier(asc.mul, self.scores[0], self.scores[0], self.grads[0], count)
            width = depth
            while width > LANES:
                width //= 2
                params = asc.BinaryRepeatParams(1, 1, 1, depth // 8, depth // 8, depth // 8)
                left = self.scores[0]
                asc.add(left, left, left[width:], LANES, self.rows, params)
                asc.pipe_barrier(asc.PipeID.PIPE_V)
            sums = self.inner[index * self.rows :]
            asc.whole_reduce_sum(sums, self.scores[0], LANES, self.rows, 1, 1, depth // 8)
            asc.pipe_barrier(asc.PipeID.PIPE_V)
            hand_over(EVENTS.V_MTE2, 2)
        then_barrier(asc.brcb, self.line_spread, self.line, own // 8, SPREAD)
        then_barrier(asc.brcb, self.inner_spread, self.inner, own // 8, SPREAD)
        for index in range(2):
            asc.set_flag(EVENTS.V_MTE2, index)


def differentiate(q, k, v, do, o, line, dq, dk, dv, scores, weights, depth: int, pitch: int, pairs):
    """Run a core's pairs."""
    cube = asc.ascend_is_aic()
    block = asc.get_block_idx() // (1 if cube else 2)
    places = Places(scores, weights, block)
    core: Any = (
        Cube((q, k, v, do), (dq, dk, dv), places, depth, pitch)
        if cube
        else Vector((do, o), (line,), places, depth)
    )
    own = pairs[block]
    core.begin()
    for turn in range(len(own) + AHEAD):
        if turn < len(own):
            core.first(own[turn], turn)
        if turn >= AHEAD:
            core.second(own[turn - AHEAD], turn - AHEAD)
    core.end()


def pairs_of(
    rows: int, keys: int, heads: int, group: int, *, causal: bool, reach: int | None = None
) -> list[Pair]:
    """Return all pairs of blocks of some heads, `group` of them for one head of keys; `reach`: of a window, in keys."""
    result = []
    for head in range(heads):
        for row in range(0, rows, ROWS):
            last = row + ROWS if causal else keys
            first = max(0, row - reach) // ROWS * ROWS if reach is not None else 0
            result += [
                Pair(head * rows + row, head // group * keys + key, key == first)
                for key in range(first, last, ROWS)
            ]
    return result


def deal(pairs: Sequence[Pair], cores: int) -> list[list[Pair]]:
    """Return each core's pairs: neighbours on one core, as many on each."""
    each = -(-len(pairs) // cores)
    dealt = [list(pairs[core * each : (core + 1) * each]) for core in range(cores)]
    return [
        [Pair(p.query, p.key, p.first or i == 0) for i, p in enumerate(own)] for own in dealt if own
    ]


def launch(
    arrays: Sequence[Any],
    depth: int,
    pitch: int,
    pairs: Sequence[Sequence[Pair]],
    start: Any = sim.launch,
    **options: Any,
) -> Run:
    """Run it on q, k, v, do, o, line and the three sums, with places of its own."""
    places = len(pairs) * PLACES * 2
    scores = np.zeros((places, ROWS, ROWS), np.float32)
    weights = np.zeros((places, ROWS, ROWS), arrays[0].dtype)
    kernel = partial(differentiate, depth=depth, pitch=pitch, pairs=pairs)
    return start(
        kernel, *arrays, scores, weights, cores=len(pairs), kernel_type="MIX_AIC_1_2", **options
    )


def run_gradient(
    record: Record, depth: int, pitch: int, pairs: Sequence[Sequence[Pair]], dtype: Any, limit: int
) -> dict[str, Any]:
    """Return the times of a backward pass, one list of pairs a core; of `limit` pairs a core, scaled, if it is long."""
    few = [own[:limit] for own in pairs]
    rows = ROWS + max(pair.query for own in pairs for pair in own)
    keys = ROWS + max(pair.key for own in pairs for pair in own)
    shapes = [(rows, depth), (keys, depth), (keys, depth), (rows, depth), (rows, depth)]
    arrays = [np.zeros(shape, dtype) for shape in shapes] + [np.zeros(rows, np.float32)]
    arrays += [np.zeros((count, pitch), np.float32) for count in (rows, keys, keys)]
    run = launch(arrays, depth, pitch, few, partial(time_launch, record=record))
    most, whole, part = max(map(len, pairs)), sum(map(len, pairs)), sum(map(len, few))
    if part == whole:
        return times(run)
    return scale(run, most / limit, whole / part) | {
        "simulated_part": f"{limit} of {most} pairs of blocks a core, scaled"
    }
