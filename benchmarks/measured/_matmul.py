"""A matrix product on cube cores alone, in basic instructions: what the measured matmuls differ in is in its `Plan`.

    GM --MTE2, packets along K--> L1 --MTE1, base blocks--> L0A, L0B --M--> L0C --FIX--> GM

A is stored [M, K]. B is stored [K, N], [N, K], or as columns of fractals (NZ).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, time_launch, times
from ascend_sim.run import Run

from ._kit import EVENTS, POSITIONS, local, pieces, scale, window
from ._tiles import ALIGN, Plan, Tile, round_up

BLOCK = 32  # bytes
DONE = 3  # unit flag of the last product of a block and of its store
CHECK = 2  # unit flag of the products before


@dataclass
class Use:
    """One packet at work: where it lies, whether it is loaded for this use, whether this is its last."""

    key: tuple[int, int, int, int]
    slot: int
    load: bool
    last: bool = False


def schedule(keys: Sequence[tuple[int, int, int, int]], slots: int) -> list[Use]:
    """Return the uses of packets in a ring of slots; a packet that is still there is used again."""
    there: list[Use | None] = [None] * slots
    turn, result = 0, []
    for key in keys:
        slot = next((i for i, use in enumerate(there) if use is not None and use.key == key), None)
        load = slot is None
        if slot is None:
            slot, turn = turn, (turn + 1) % slots
            before = there[slot]
            if before is not None:
                before.last = True
        there[slot] = Use(key, slot, load)
        result.append(there[slot])
    for use in there:
        if use is not None:
            use.last = True
    return result  # type: ignore[return-value]


def packet_keys(tile: Tile, left: bool, base_k: int, step: int) -> list[tuple[int, int, int, int]]:
    """Return a tile's packets of one side: first row or column, how many, first of K, depth."""
    start, count = (tile.row, tile.rows) if left else (tile.column, tile.columns)
    keys = [
        (start, count, tile.first + first, depth)
        for first, depth in pieces(tile.depth, base_k * step)
    ]
    return keys


@dataclass
class Side:
    """One operand: its place in GM, its packets in L1, its base blocks in L0."""

    tensor: Any
    pitch: int
    stored: str
    """"size" where a row of the matrix in GM is one of M or N, "depth" where it is one of K, "NZ"."""
    packets: list[Any]
    blocks: list[Any]
    event: int
    """First of the flags between MTE2 and MTE1."""
    c0: int
    uses: list[Use] = field(default_factory=list)
    requested: int = 0

    def request(self, number: int) -> None:
        """Load the packets of all uses up to `number` that are not there."""
        while self.requested < min(number + 1, len(self.uses)):
            use = self.uses[self.requested]
            self.requested += 1
            if use.load:
                flag = self.event + use.slot
                asc.wait_flag(EVENTS.MTE1_MTE2, flag)
                self._copy(self.packets[use.slot], use.key)
                asc.set_flag(EVENTS.MTE2_MTE1, flag)

    def _copy(self, packet: Any, key: tuple[int, int, int, int]) -> None:
        start, count, first, depth = key
        if self.stored == "NZ":
            groups = -(-count // self.c0)
            source = self.tensor[(start // self.c0 * self.pitch + first) * self.c0 :]
            asc.data_copy(packet, source, asc.DataCopyParams(groups, depth, self.pitch - depth, 0))
            return
        by_size = self.stored == "size"
        rows, columns = (count, depth) if by_size else (depth, count)
        row, column = (start, first) if by_size else (first, start)
        params = asc.Nd2NzParams(1, rows, columns, 0, self.pitch, round_up(rows), 1, 0)
        asc.data_copy(packet, self.tensor[row * self.pitch + column :], params)

    def wait(self, use: Use) -> None:
        """Let MTE1 wait for a packet that is loaded for this use."""
        if use.load:
            asc.wait_flag(EVENTS.MTE2_MTE1, self.event + use.slot)

    def release(self, use: Use) -> None:
        """Give a packet's place back."""
        if use.last:
            asc.set_flag(EVENTS.MTE1_MTE2, self.event + use.slot)

    def to_l0(self, block: Any, use: Use, first: int, depth: int, left: bool) -> None:
        """Load a base block from its packet: one instruction."""
        packet, (_, count, start, whole) = self.packets[use.slot], use.key
        offset = first - start
        if not left and self.stored != "size" and self.c0 == BLOCK:
            self._turned(block, packet, offset, depth, count, whole)
            return
        if self.stored == "size" and not left:
            fractals = round_up(count) // ALIGN
            low = offset // self.c0 * fractals
            for at, number in pieces(-(-depth // self.c0) * fractals, 255):
                part = asc.LoadData2DParams(low + at, number, 1)
                asc.load_data(block[at * ALIGN * self.c0 :], packet, part)
            return
        rows, columns = ((0, count), (offset, depth)) if left else ((offset, depth), (0, count))
        height, width = (round_up(count), whole) if left else (round_up(whole), count)
        params = asc.LoadData3DParamsV2(
            l1_h=1, l1_w=height, channel_size=round_up(width), k_extension=columns[1], m_extension=rows[1],
            k_start_pt=columns[0], m_start_pt=rows[0],
        )  # fmt: skip
        asc.load_data(block, packet, params)

    def _turned(
        self, block: Any, packet: Any, offset: int, depth: int, count: int, whole: int
    ) -> None:
        """Load 8-bit columns of fractals and turn them: an instruction for every 32 columns."""
        across = round_up(count) // ALIGN
        for number in range(-(-count // BLOCK)):
            part = asc.LoadData2dTransposeParams(
                (number * whole + offset) // BLOCK, -(-depth // BLOCK), 1, across - 1, 0
            )
            asc.load_data_with_transpose(block[2 * number * ALIGN * BLOCK :], packet, part)


def sides(a: Any, b: Any, plan: Plan, tiles: Sequence[Tile]) -> tuple[Side, Side]:
    """Return A and B with their places on the chip and the order of their packets."""
    size = a.dtype.sizeof()
    m, n, k = plan.base
    result = []
    address = event = 0
    for left in (True, False):
        source, high, at = (a, m, POSITIONS.A2) if left else (b, n, POSITIONS.B2)
        step, slots = plan.step[not left], plan.slots[not left]
        stored = (
            "size" if left or plan.stored_b == "NK" else {"KN": "depth", "NZ": "NZ"}[plan.stored_b]
        )
        pitch = plan.size[2] if stored != "depth" else plan.size[1]
        count = round_up(high) * round_up(k * step)
        packets = [
            local(
                address + i * count * size, count, a.dtype, POSITIONS.A1 if left else POSITIONS.B1
            )
            for i in range(slots)
        ]
        address += slots * count * size
        block = round_up(high) * round_up(k)
        blocks = [local(i * block * size, block, a.dtype, at) for i in range(plan.l0_buffers)]
        side = Side(window(source), pitch, stored, packets, blocks, event, BLOCK // size)
        side.uses = schedule(
            [key for t in tiles for key in turned(packet_keys(t, left, k, step), t, plan, step)],
            slots,
        )
        event += slots
        result.append(side)
    return result[0], result[1]


def turned(keys: list[Any], tile: Tile, plan: Plan, step: int) -> list[Any]:
    """Return packets along K from where the tile's walk starts; both sides start at the same depth."""
    first = tile.turn * max(plan.step) // step % len(keys)
    return keys[first:] + keys[:first]


class Alone:
    """What a core does around a base block of C: nothing, where nobody waits for it. Kernels with partners do more."""

    def before(self, number: int) -> None:
        """Wait until block `number` of this core may be begun."""

    def after(self, number: int) -> None:
        """Say that block `number` of this core is stored."""

    def place(self, c: Any, tile: Tile, number: int, pitch: int) -> tuple[Any, int]:
        """Return where block `number` of this core goes, and the pitch of its rows in elements."""
        return c[tile.row * pitch + tile.column :], pitch


def multiply(
    a: Any,
    b: Any,
    c: Any,
    plan: Plan,
    tiles: Sequence[Sequence[Tile]],
    around: Alone | None = None,
) -> None:
    """Compute a core's base blocks of C one after the other."""
    own = tiles[asc.get_block_idx()]
    around = around or Alone()
    left, right = sides(a, b, plan, own)
    target = window(c)
    sums = asc.int32 if a.dtype is asc.int8 else asc.float32
    product = local(0, round_up(plan.base[0]) * round_up(plan.base[1]), sums, POSITIONS.CO1)
    for side in (left, right):
        for slot in range(len(side.packets)):
            asc.set_flag(EVENTS.MTE1_MTE2, side.event + slot)
    for index in range(plan.l0_buffers):
        asc.set_flag(EVENTS.M_MTE1, index)
    if not plan.unit_flag:
        asc.set_flag(EVENTS.FIX_M, 0)
    if plan.atomic:
        asc.set_atomic_add(c.dtype)
    walk = Walk(plan, left, right, product)
    for number, tile in enumerate(own):
        if not plan.unit_flag:
            asc.wait_flag(EVENTS.FIX_M, 0)
        around.before(number)
        walk.tile(tile)
        store(*around.place(target, tile, number, plan.size[1]), product, tile, plan, c.dtype)
        around.after(number)
    if plan.atomic:
        asc.set_atomic_none()
    for side in (left, right):
        for slot in range(len(side.packets)):
            asc.wait_flag(EVENTS.MTE1_MTE2, side.event + slot)
    for index in range(plan.l0_buffers):
        asc.wait_flag(EVENTS.M_MTE1, index)
    if not plan.unit_flag:
        asc.wait_flag(EVENTS.FIX_M, 0)


@dataclass
class Walk:
    """Where a core is in its packets and L0 buffers."""

    plan: Plan
    left: Side
    right: Side
    product: Any
    used: list[int] = field(default_factory=lambda: [-1, -1])
    turn: int = 0

    def tile(self, tile: Tile) -> None:
        """Sum up one base block of C along K."""
        plan = self.plan
        steps = pieces(tile.depth, plan.base[2])
        first = tile.turn * max(plan.step) % len(steps)
        order = list(range(first, len(steps))) + list(range(first))
        for position, number in enumerate(order):
            start, depth = steps[number]
            fresh = position == 0
            uses = self._enter(number, fresh)
            index = self.turn % plan.l0_buffers
            self.turn += 1
            asc.wait_flag(EVENTS.M_MTE1, index)
            at = tile.first + start
            self.left.to_l0(self.left.blocks[index], uses[0], at, depth, left=True)
            self.right.to_l0(self.right.blocks[index], uses[1], at, depth, left=False)
            self._leave(number, len(steps), uses)
            asc.set_flag(EVENTS.MTE1_M, index)
            asc.wait_flag(EVENTS.MTE1_M, index)
            flag = (DONE if position == len(order) - 1 else CHECK) if plan.unit_flag else 0
            params = asc.MmadParams(tile.rows, tile.columns, depth, flag, False, fresh)
            if not fresh and round_up(tile.rows) * round_up(tile.columns) < 10 * ALIGN * ALIGN:
                asc.pipe_barrier(asc.PipeID.PIPE_M)  # L0C is not ready for the next product
            asc.mmad(self.product, self.left.blocks[index], self.right.blocks[index], params)
            asc.set_flag(EVENTS.M_MTE1, index)

    def _enter(self, number: int, fresh: bool) -> tuple[Use, Use]:
        """Step on to the packets of a base step, and request them and those ahead; B before A."""
        for index, side in ((1, self.right), (0, self.left)):
            if fresh or number % self.plan.step[index] == 0:
                self.used[index] += 1
                now = self.used[index]
                side.request(now)
                side.wait(side.uses[now])
        for index, side in ((1, self.right), (0, self.left)):
            side.request(self.used[index] + min(self.plan.ahead, len(side.packets) - 1))
        return self.left.uses[self.used[0]], self.right.uses[self.used[1]]

    def _leave(self, number: int, steps: int, uses: tuple[Use, Use]) -> None:
        for index, side in enumerate((self.left, self.right)):
            if (number + 1) % self.plan.step[index] == 0 or number == steps - 1:
                side.release(uses[index])


def store(place: Any, pitch: int, product: Any, tile: Tile, plan: Plan, dtype: Any) -> None:
    """Send a base block of C to its rows in GM."""
    if not plan.unit_flag:
        asc.set_flag(EVENTS.M_FIX, 0)
        asc.wait_flag(EVENTS.M_FIX, 0)
    modes = {asc.float16: asc.QuantModes.F322F16, asc.bfloat16: asc.QuantModes.F322BF16}
    if product.dtype is asc.int32:
        modes = {asc.float16: asc.QuantModes.DEQF16}
    params = asc.FixpipeParamsV220(
        n_size=tile.columns, m_size=tile.rows, src_stride=round_up(tile.rows), dst_stride=pitch,
        quant_pre=modes.get(dtype, asc.QuantModes.NoQuant), unit_flag=DONE if plan.unit_flag else 0,
    )  # fmt: skip
    asc.fixpipe(place, product, params, asc.FixpipeConfig.cfg_row_major())
    if not plan.unit_flag:
        asc.set_flag(EVENTS.FIX_M, 0)


def run_plan(
    record: Record,
    plan: Plan,
    tiles: Sequence[Sequence[Tile]],
    dtype: Any,
    result: Any,
    **options: Any,
) -> Run:
    """Launch a product for its time, one cube core for each list of base blocks."""
    m, n, k = plan.size
    stored = {"NK": (n, k), "KN": (k, n), "NZ": (round_up(n), k)}[plan.stored_b]
    a, b, c = np.zeros((m, k), dtype), np.zeros(stored, dtype), np.zeros((m, n), result)
    kernel = partial(multiply, plan=plan, tiles=tiles)
    return time_launch(
        kernel, a, b, c, record=record, cores=len(tiles), kernel_type="AIC_ONLY", **options
    )


def run_part(
    record: Record,
    plan: Plan,
    tiles: Sequence[Sequence[Tile]],
    dtype: Any,
    result: Any,
    limit: int | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Return the times of a product; of its first `limit` base blocks a core, scaled, where it is long."""
    most = max(len(own) for own in tiles)
    if limit is None or most <= limit:
        return times(run_plan(record, plan, tiles, dtype, result, **options))
    run = run_plan(record, plan, [own[:limit] for own in tiles], dtype, result, **options)
    whole, part = sum(len(own) for own in tiles), sum(min(limit, len(own)) for own in tiles)
    scaled = scale(run, most / limit, whole / part)
    return scaled | {"simulated_part": f"{limit} of {most} base blocks a core, scaled"}
