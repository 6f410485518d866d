"""The product loop of the cube core: L1, L0A, L0B and L0C as rings of buffers, base block after base block.

For each base block of C: for each step of k, tiles of A and B come to L1 (MTE2, several base blocks a copy), base
blocks of them to L0A and L0B (MTE1), and are multiplied (M); then the block leaves through fixpipe (FIX). Each ring has
flags of its own, so all four pipes work at once, and a tile that is needed again and still there is not loaded again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from ascend_sim.adv.job import Job, Matrix
from ascend_sim.adv.loads import Tile, load_left, load_right, load_row, tile_to_l1
from ascend_sim.adv.ring import Ring, Visit, plan_visits
from ascend_sim.adv.store import FINISH
from isa.cube import mmad, set_hf32_mode, set_hf32_trans_mode
from isa.cube_params import MmadParams
from isa.layout import round_up
from isa.move import data_copy
from isa.tensor import LocalTensor
from isa.types import HardEvent, Pipe, TPosition, float32, uint32, uint64

if TYPE_CHECKING:
    from ascend_sim.adv.memory import CubeMemory
    from ascend_sim.program import Program

_E = HardEvent
_CHECK = 2
"""Unit flag of an instruction that waits for its units and leaves them as they are."""
MAX_SLOTS = 3
"""Buffers of A, and of B, in L1: with those for bias and scales they share the eight ids of an event."""


@dataclass(slots=True)
class Block:
    """A base block of C in L0C: row and column in base blocks, real sizes, and where it is."""

    row: int
    column: int
    m: int
    n: int
    slot: int
    tensor: LocalTensor
    pitch: int
    """Rows of one group of 16 columns in L0C."""
    handed_over: bool = False
    unit_flags: bool = False
    scales: LocalTensor | None = None


@dataclass(slots=True)
class _Step:
    """What one step of k needs: visits of L0A and L0B, and of L1 where these have to be filled."""

    depth: int
    a2: Visit
    b2: Visit
    a1: Visit | None
    b1: Visit | None


class CubeUnit:
    """The rings of one cube core and what passes through them. One product at a time."""

    def __init__(self, stream: Program, memory: CubeMemory) -> None:
        self.stream = stream
        self.memory = memory
        self.job: Job | None = None
        self.next_block = 0
        self.stored = True
        """Whether the block in L0C has been fetched."""
        self._block: Block | None = None
        self._rings: dict[str, Ring] = {}
        self._turn = {"bias": 0, "table": 0, "scales": 0, "c": 0}
        self._steps: Iterator[_Step] = iter(())

    # ---- products -----------------------------------------------------------------------------

    def start(self, job: Job, first: int = 0, *, keep: bool = False) -> None:
        """Begin a product, or go on with one at its `first`-th block. What was there before is finished.

        With `keep` the block in L0C stays: the next one adds to it.
        """
        block = self._block if keep else None
        if keep:
            self._block = None
        self.finish()
        self._block = block
        self.job = job
        self.next_block = first
        self._make_rings(job)
        self._steps = _plan(job, first)
        set_hf32_mode(job.hf32)
        set_hf32_trans_mode(job.hf32_toward_zero)

    def finish(self) -> None:
        """Take all buffers back, so that what follows may use the memories anew."""
        if self.job is None:
            return
        self._leave_block()
        set_hf32_mode(False)
        for ring in self._rings.values():
            ring.empty()
        self.job = None

    def close(self) -> None:
        """Finish and give all event ids back: the kernel ends."""
        self.finish()
        self.memory.release()

    @property
    def done(self) -> bool:
        """Whether every block of the product has been computed."""
        return self.job is None or self.next_block >= self.job.blocks

    def _make_rings(self, job: Job) -> None:
        left = Tile.of(job.a, job.step_m * job.base_m, job.step_ka * job.base_k)
        right = Tile.of(job.b, job.step_n * job.base_n, job.step_kb * job.base_k)
        dtype, result = job.dtype, job.result
        width = round_up(job.base_n, 32)
        self.memory.lay_out(
            {
                "a1": (TPosition.A1, dtype, left.elements, job.slots_a),
                "b1": (TPosition.B1, dtype, right.elements, job.slots_b),
                "bias": (TPosition.C1, job.bias.dtype, width, 2 if job.bias is not None else 0)
                if job.bias is not None
                else (TPosition.C1, float32, 0, 0),
                "scales": (
                    TPosition.A1,
                    uint64,
                    width,
                    2 if job.quant is not None and job.quant.vector is not None else 0,
                ),
                "a2": (TPosition.A2, dtype, _side(job, job.base_m), job.buffers_a2),
                "b2": (TPosition.B2, dtype, _side(job, job.base_n), job.buffers_b2),
                "table": (TPosition.C2, result, width, 1 if job.bias is not None else 0),
                "c": (
                    TPosition.CO1,
                    result,
                    round_up(job.base_m, 16) * width_of(job),
                    job.buffers_c,
                ),
            }
        )
        events = {
            "a1": (_E.MTE2_MTE1, _E.MTE1_MTE2),
            "b1": (_E.MTE2_MTE1, _E.MTE1_MTE2),
            "bias": (_E.MTE2_MTE1, _E.MTE1_MTE2),
            "scales": (_E.MTE2_FIX, _E.FIX_MTE2),
            "a2": (_E.MTE1_M, _E.M_MTE1),
            "b2": (_E.MTE1_M, _E.M_MTE1),
            "table": (_E.MTE1_M, _E.M_MTE1),
            "c": (_E.M_FIX, _E.FIX_M),
        }
        need = self.memory.need
        taken: dict[HardEvent, int] = {}
        for name, (filled, freed) in events.items():
            buffers = self.memory.buffers[name]
            first = taken.get(filled, 0)
            taken[filled] = count = first + len(buffers)
            own = slice(first, count)
            self._rings[name] = Ring(
                self.stream,
                buffers,
                (filled, need(filled, count)[own]),
                (freed, need(freed, count)[own]),
            )

    # ---- blocks -------------------------------------------------------------------------------

    def compute(self, *, add: bool = False, alone: bool = False) -> Block:
        """Compute the next block of C into L0C and return it; with `add`, onto what its buffer holds.

        `alone`: it will be stored once and next, so that unit flags may hand it over.
        """
        job = self.job
        assert job is not None
        row, column = job.place(self.next_block)
        kept = self._block if add else None
        if kept is None:
            self._leave_block()
        m = min(job.base_m, job.m - row * job.base_m)
        n = min(job.base_n, job.n - column * job.base_n)
        slot = kept.slot if kept is not None else self._next("c")
        ring = self._rings["c"]
        tensor = ring.buffers[slot] if kept is not None else ring.take(slot)
        height, width = _computed(job, m, n)
        block = Block(row, column, m, n, slot, tensor, round_up(height, 16))
        if alone and job.unit_flags and not _widened(job):
            ring.occupy(slot)
            block.handed_over = block.unit_flags = True
        table = None
        if job.bias is not None and kept is None:
            table = self._bias(job, column, n, round_up(width, 16))
        for number, step in enumerate(islice(self._steps, job.steps)):
            self._multiply(job, block, number, step, (height, width), table, kept is not None)
        self._block = block
        self.stored = False
        self.next_block += 1
        return block

    def _multiply(
        self,
        job: Job,
        block: Block,
        number: int,
        step: _Step,
        size: tuple[int, int],
        table: LocalTensor | None,
        add: bool,
    ) -> None:
        rings = self._rings
        if step.a2.fill:
            a1 = self._tile(job, job.a, "a1", step.a1, block.row, number, left=True)
            load_left(rings["a2"].take(step.a2.slot), a1, job, block, number, size[0])
            rings["a2"].hand_over(step.a2.slot)
            self._done_with("a1", step.a1)
        if step.b2.fill:
            b1 = self._tile(job, job.b, "b1", step.b1, block.column, number, left=False)
            load_right(rings["b2"].take(step.b2.slot), b1, job, block, number, size[1])
            rings["b2"].hand_over(step.b2.slot)
            self._done_with("b1", step.b1)
        left, right = rings["a2"].buffers[step.a2.slot], rings["b2"].buffers[step.b2.slot]
        fresh = number == 0 and not add
        flag = 0
        if block.unit_flags:
            flag = FINISH if number == job.steps - 1 else _CHECK
        params = MmadParams(size[0], size[1], step.depth, flag, False, fresh and table is None)
        if fresh and table is not None:
            mmad(block.tensor, left, right, table, params)
        else:
            if not fresh and _needs_barrier(size):
                self.stream.pipe_barrier(Pipe.M)
            mmad(block.tensor, left, right, params)
        self._done_with("a2", step.a2)
        self._done_with("b2", step.b2)
        if number == 0 and table is not None:
            rings["table"].hand_back(0)

    def _tile(
        self,
        job: Job,
        matrix: Matrix,
        name: str,
        visit: Visit | None,
        block: int,
        number: int,
        *,
        left: bool,
    ) -> tuple[LocalTensor, Tile]:
        """Return the tile in L1 that holds base block `block` of M or N at step `number` of k, loaded if need be."""
        assert visit is not None
        step, base, whole = (
            (job.step_m, job.base_m, job.m) if left else (job.step_n, job.base_n, job.n)
        )
        step_k = job.step_ka if left else job.step_kb
        first, first_k = block // step * step * base, number // step_k * step_k * job.base_k
        tile = Tile.of(
            matrix,
            min(step * base, whole - first),
            min(step_k * job.base_k, job.k - first_k),
            (first, first_k),
        )
        ring = self._rings[name]
        if visit.fill:
            buffer = ring.take(visit.slot)
            tile_to_l1(buffer, matrix, tile, job, left=left)
            ring.hand_over(visit.slot)
        return ring.buffers[visit.slot], tile

    def _done_with(self, name: str, visit: Visit | None) -> None:
        if visit is not None and visit.last:
            self._rings[name].hand_back(visit.slot)

    def _bias(self, job: Job, column: int, n: int, width: int) -> LocalTensor:
        """Bring a block's part of the bias to the bias table, zeros behind its n values up to `width`."""
        assert job.bias is not None
        slot = self._next("bias")
        inside, table = self._rings["bias"], self._rings["table"]
        row = job.bias[column * job.base_n :]
        load_row(inside.take(slot), row, n, width * row.dtype.size)
        inside.hand_over(slot)
        target = table.take(0)
        data_copy(target, inside.buffers[slot], width)
        table.hand_over(0)
        inside.hand_back(slot)
        return target

    def scales(self, block: Block) -> LocalTensor | None:
        """Return the scales of a block's columns in L1, loaded before; None where there is none for each column."""
        job = self.job
        assert job is not None
        if job.quant is None or job.quant.vector is None:
            return None
        slot = self._next("scales")
        ring = self._rings["scales"]
        buffer = ring.take(slot).reinterpret_cast(uint32)
        vector = job.quant.vector.reinterpret_cast(uint32)
        load_row(buffer, vector[2 * block.column * job.base_n :], 2 * block.n, 128)
        ring.hand_over(slot)
        block.scales = ring.buffers[slot]
        return block.scales

    def _next(self, name: str) -> int:
        slot = self._turn[name]
        self._turn[name] = (slot + 1) % max(len(self._rings[name].buffers), 1)
        return slot

    # ---- results ------------------------------------------------------------------------------

    @property
    def block(self) -> Block | None:
        """The block that has been computed last and is still in L0C."""
        return self._block

    def begin_store(self, block: Block) -> None:
        """Let FIX wait for the block; once, however often it is stored."""
        if not block.handed_over:
            self._rings["c"].hand_over(block.slot)
            block.handed_over = True

    def end_store(self, block: Block) -> None:
        """Give back what a store took besides the block."""
        if block.scales is not None:
            ring = self._rings["scales"]
            ring.hand_back(ring.buffers.index(block.scales))
            block.scales = None

    def _leave_block(self) -> None:
        block = self._block
        if block is None:
            return
        self._block = None
        if not block.unit_flags:
            self.begin_store(block)
            self._rings["c"].hand_back(block.slot)


def width_of(job: Job) -> int:
    """Return the columns that a block of C takes in L0C."""
    unit = 32 if job.dtype.size == 1 and not job.b.turned else 16
    return round_up(job.base_n, unit)


def _side(job: Job, base: int) -> int:
    """Return the elements of a base block in L0A or L0B."""
    unit = 32 if job.dtype.size == 1 else 16
    return round_up(base, unit) * round_up(job.base_k, unit)


def _computed(job: Job, m: int, n: int) -> tuple[int, int]:
    """Return the rows and columns that mmad is told of for a block of m × n.

    One row is computed as two, since m = 1 would read L0A as a plain row. Transposed loads of 8-bit B bring 32 columns
    at a time, and NZ output takes whole groups of 16.
    """
    height = max(m, 2)
    if job.dtype.size == 1 and not job.b.turned:
        return height, round_up(n, 32)
    return height, round_up(n, 16) if job.pad_columns else n


def _widened(job: Job) -> bool:
    """Return whether M computes groups of columns that FIX does not take, whose units would stay full."""
    if job.dtype.size > 1 or job.b.turned:
        return False
    return any(round_up(n, 16) % 32 for n in (job.base_n, job.n % job.base_n))


def _needs_barrier(size: tuple[int, int]) -> bool:
    """Return whether a product that adds to L0C needs a barrier first: fewer than ten fractals of C (manual)."""
    return -(-size[0] // 16) * -(-size[1] // 16) < 10


def _plan(job: Job, first: int) -> Iterator[_Step]:
    """Return the steps of all blocks from the first-th on, with the visits of every ring."""
    steps = job.steps
    places = [job.place(number) for number in range(first, job.blocks)]
    uses = [(row, column, number) for row, column in places for number in range(steps)]
    a2 = plan_visits([(row, number) for row, _, number in uses], job.buffers_a2)
    b2 = plan_visits([(column, number) for _, column, number in uses], job.buffers_b2)
    a1 = iter(
        plan_visits(
            [
                (row // job.step_m, number // job.step_ka)
                for (row, _, number), visit in zip(uses, a2, strict=True)
                if visit.fill
            ],
            job.slots_a,
        )
    )
    b1 = iter(
        plan_visits(
            [
                (column // job.step_n, number // job.step_kb)
                for (_, column, number), visit in zip(uses, b2, strict=True)
                if visit.fill
            ],
            job.slots_b,
        )
    )
    for (_, _, number), left, right in zip(uses, a2, b2, strict=True):
        yield _Step(
            min(job.base_k, job.k - number * job.base_k),
            left,
            right,
            next(a1) if left.fill else None,
            next(b1) if right.fill else None,
        )
