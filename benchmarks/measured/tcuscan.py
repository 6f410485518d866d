"""Copies, and running sums: products with triangles of ones on cube cores, carries on vector cores."""

from __future__ import annotations

from functools import partial

import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, sweep, time_launch, times

from ._kit import EVENTS, POSITIONS, Buffers, hand_over, local, scale, share, then_barrier, window
from ._stream import run_walk, tile_for
from .rms_norm import fold

COPIED = (81920, 2703360, 5324800, 7946240, 10567680, 99696640)
SCANNED = (327680, 5570560, 10813440, 16056320, 21299200, 99942400)
SHAPE = asc.FixpipeConfig.cfg_row_major()
SAME = asc.RoundMode.CAST_NONE
LIMIT = 80
"""Tiles of each cube core that are simulated; the rest is in proportion."""
LINE = 8
"""float32 of a core's sum in GM."""


class Triangles:
    """The cube core: row sums up to each element, and sums of the rows before, in one block of L0C.

    x U + L (x 1), U the upper triangle with its diagonal, L the lower one without
    """

    def __init__(self, x, ones, rows, size: int) -> None:
        self.x, self.ones, self.rows, self.size = window(x), window(ones), window(rows), size
        block, dtype = size * size, x.dtype
        self.block = block
        self.packets = [local(i * block * 2, block, dtype, POSITIONS.A1) for i in range(2)]
        self.constants = [local((2 + i) * block * 2, block, dtype, POSITIONS.A1) for i in range(3)]
        self.sums = local(5 * block * 2, block, dtype, POSITIONS.A1)
        self.left = [local(i * 32768, block, dtype, POSITIONS.A2) for i in range(2)]
        self.right = [local(i * 32768, block, dtype, POSITIONS.B2) for i in range(2)]
        self.products = [local(i * 65536, block, asc.float32, POSITIONS.CO1) for i in range(2)]
        self.turn = 0

    def run(self, first: int, count: int) -> None:
        size = self.size
        params = asc.Nd2NzParams(1, size, size, 0, size, size, 1, 0)
        for number, packet in enumerate(self.constants):
            asc.data_copy(packet, self.ones[number * self.block :], params)
        hand_over(EVENTS.MTE2_MTE1, 2)
        for index in range(2):
            asc.set_flag(EVENTS.MTE1_MTE2, index)
            asc.set_flag(EVENTS.M_MTE1, index)
            asc.set_flag(EVENTS.FIX_M, index)
        for tile in range(count):
            self._tile((first + tile) * self.block, tile % 2, params)
        for index in range(2):
            asc.wait_flag(EVENTS.MTE1_MTE2, index)
            asc.wait_flag(EVENTS.M_MTE1, index)
            asc.wait_flag(EVENTS.FIX_M, index)

    def _tile(self, place: int, slot: int, params) -> None:
        upper, lower, ones = self.constants
        asc.wait_flag(EVENTS.MTE1_MTE2, slot)
        asc.data_copy(self.packets[slot], self.x[place:], params)
        asc.set_flag(EVENTS.MTE2_MTE1, slot)
        asc.wait_flag(EVENTS.MTE2_MTE1, slot)
        total, result = self.products
        asc.wait_flag(EVENTS.FIX_M, 0)
        self._multiply(self.packets[slot], ones, total, fresh=True)
        asc.set_flag(EVENTS.M_FIX, 0)
        asc.wait_flag(EVENTS.M_FIX, 0)
        size = self.size
        narrow = asc.FixpipeParamsV220(size, size, size, size, quant_pre=asc.QuantModes.F322F16)
        asc.fixpipe(self.sums, total, narrow, asc.FixpipeConfig.cfg_nz())
        asc.set_flag(EVENTS.FIX_M, 0)
        asc.wait_flag(EVENTS.FIX_M, 1)
        self._multiply(self.packets[slot], upper, result, fresh=True)
        asc.set_flag(EVENTS.MTE1_MTE2, slot)
        hand_over(EVENTS.FIX_MTE1, 0)
        self._multiply(lower, self.sums, result, fresh=False)
        asc.set_flag(EVENTS.M_FIX, 1)
        asc.wait_flag(EVENTS.M_FIX, 1)
        wide = asc.FixpipeParamsV220(size, size, size, size)
        asc.fixpipe(self.rows[place:], result, wide, SHAPE)
        asc.set_flag(EVENTS.FIX_M, 1)

    def _multiply(self, left, right, product, *, fresh: bool) -> None:
        size, index = self.size, self.turn % 2
        self.turn += 1
        unfold = asc.LoadData3DParamsV2(
            l1_h=1, l1_w=size, channel_size=size, k_extension=size, m_extension=size
        )
        asc.wait_flag(EVENTS.M_MTE1, index)
        asc.load_data(self.left[index], left, unfold)
        asc.load_data(self.right[index], right, unfold)
        hand_over(EVENTS.MTE1_M, index)
        params = asc.MmadParams(size, size, size, 0, False, fresh)
        asc.mmad(product, self.left[index], self.right[index], params)
        asc.set_flag(EVENTS.M_MTE1, index)


def scan(x, ones, rows, sums, y, tiles: int, size: int):
    """Scan tiles on the cube cores while vector cores sum their parts up; then add what lies before each tile."""
    if asc.ascend_is_aic():
        Triangles(x, ones, rows, size).run(*share(tiles, asc.get_block_idx(), asc.get_block_num()))
        asc.sync_all(is_aiv_only=False)
        return
    block, cores = asc.get_block_idx(), asc.get_block_num() * asc.get_task_ratio()
    first, own = share(tiles, block, cores)
    n = size * size
    buffers = Buffers()
    narrow = [buffers.take(n, x.dtype) for _ in range(2)]
    wide = buffers.take(n, asc.float32)
    kept = buffers.take(LINE, asc.float32)
    source, lines = window(x), window(sums)
    then_barrier(asc.duplicate, kept, 0.0, LINE)
    for slot in range(2):
        asc.set_flag(EVENTS.V_MTE2, slot)
    for tile in range(own):
        slot = tile % 2
        asc.wait_flag(EVENTS.V_MTE2, slot)
        asc.data_copy(narrow[slot], source[(first + tile) * n :], n)
        hand_over(EVENTS.MTE2_V, slot)
        then_barrier(asc.cast, wide, narrow[slot], SAME, n)
        asc.set_flag(EVENTS.V_MTE2, slot)
        fold(wide, n)
        then_barrier(asc.add, kept, kept, wide, 1)
    for slot in range(2):
        asc.wait_flag(EVENTS.V_MTE2, slot)
    hand_over(EVENTS.V_MTE3)
    asc.data_copy(lines[block * LINE :], kept, LINE)
    asc.sync_all(is_aiv_only=False)
    carry(rows, sums, y, (first, own), n, cores)


def carry(rows, sums, y, part: tuple[int, int], n: int, cores: int):
    """Add to each tile the sum of all before it: its own tiles' last elements go through the scalar unit."""
    first, own = part
    buffers = Buffers()
    lines = buffers.take(cores * LINE, asc.float32)
    tiles = [buffers.take(n, asc.float32) for _ in range(2)]
    asc.data_copy(lines, window(sums), cores * LINE)
    hand_over(EVENTS.MTE2_S)
    before = sum(float(lines.get_value(i * LINE)) for i in range(asc.get_block_idx()))
    source, target = window(rows), window(y)
    for slot in range(2):
        asc.set_flag(EVENTS.MTE3_MTE2, slot)
    for tile in range(own):
        slot = tile % 2
        place = (first + tile) * n
        asc.wait_flag(EVENTS.MTE3_MTE2, slot)
        asc.data_copy(tiles[slot], source[place:], n)
        hand_over(EVENTS.MTE2_V, slot)
        then_barrier(asc.adds, tiles[slot], tiles[slot], before, n)
        hand_over(EVENTS.V_MTE3, slot)
        asc.data_copy(target[place:], tiles[slot], n)
        asc.set_flag(EVENTS.MTE3_MTE2, slot)
        hand_over(EVENTS.V_S, slot)
        before = float(tiles[slot].get_value(n - 1))
    for slot in range(2):
        asc.wait_flag(EVENTS.MTE3_MTE2, slot)


def triangles(size: int) -> np.ndarray:
    """Return the three constant matrices: upper with its diagonal, lower without, all ones."""
    ones = np.ones((size, size), np.float16)
    return np.stack([np.triu(ones), np.tril(ones, -1), ones])


def scanned(record: Record, elements: int) -> dict:
    """Return the times of one length."""
    size, cores = record.params["tile"], record.cores
    tiles = -(-elements // size**2)
    few = min(tiles, LIMIT * cores)
    x = np.zeros(few * size**2, np.float16)
    rows, y = (np.zeros(few * size**2, np.float32) for _ in range(2))
    sums = np.zeros(cores * 2 * LINE, np.float32)
    run = time_launch(
        partial(scan, tiles=few, size=size), x, triangles(size), rows, sums, y, record=record,
        cores=cores, kernel_type="MIX_AIC_1_2", numerics="on",
    )  # fmt: skip
    if few == tiles:
        return times(run)
    return scale(run, tiles / few, tiles / few) | {
        "simulated_part": f"{few} of {tiles} tiles, scaled"
    }


def copied(record: Record, elements: int) -> dict:
    types = [np.float16, np.float16]
    tile = tile_for(types[:1], [], elements, record.cores)
    run = run_walk(record, elements, types, None, cores=record.cores, tile=min(tile, 16384))
    return times(run)


def simulate(record: Record) -> dict:
    one, points = (scanned, SCANNED) if record.name == "mcscan" else (copied, COPIED)
    return sweep(one(record, count) for count in record.points("elements") or points)
