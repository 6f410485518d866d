"""Convolution as a product: pixels are unfolded on their way from L1 to L0A, filters come as fractals.

A packet is one block of 16 channels: the image rows that a block of pixels needs, and the filter's taps for a block
of output channels. A base block of K is one row of the filter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, time_launch, times

from ._kit import EVENTS, POSITIONS, local, pieces, scale, share, window
from ._tiles import grid_of

C0 = 16
FRACTAL = 256
PERCENT = {"mac_pct": "mac_us", "mte1_pct": "mte1_us", "mte2_pct": "mte2_us", "store_pct": "fix_us"}
STEPS_SIMULATED = 320
"""Base blocks of K, over all blocks of a core, that are simulated; the rest is in proportion."""


@dataclass(frozen=True)
class Conv:
    """Images [n, c1, h, w, 16], filters [c1 · kh · kw, n1, 16, 16], result [n · h · w, n1 · 16]."""

    n: int
    c1: int
    h: int
    w: int
    n1: int
    kernel: tuple[int, int]
    base: tuple[int, int]

    @property
    def taps(self) -> int:
        return self.kernel[0] * self.kernel[1]

    def deal(self, cores: tuple[int, int]) -> list[list[Block]]:
        """Return each core's blocks: pixels of whole images by rows of cores, output channels by columns."""
        pixels = [
            (image, first, count)
            for image in range(self.n)
            for first, count in pieces(self.h * self.w, self.base[0])
        ]
        channels = pieces(self.n1 * C0, self.base[1])
        result = []
        for core in range(cores[0] * cores[1]):
            first, count = share(len(pixels), core // cores[1], cores[0])
            column, across = share(len(channels), core % cores[1], cores[1])
            result.append(
                [
                    Block(*place, *channel)
                    for place in pixels[first : first + count]
                    for channel in channels[column : column + across]
                ]
            )
        return result


@dataclass(frozen=True)
class Block:
    """Some pixels of an image and some output channels."""

    image: int
    pixel: int
    pixels: int
    channel: int
    channels: int


class Cube:
    """A cube core: two packets of each operand in L1, two buffers in L0A and L0B, all of L0C for one block."""

    def __init__(self, x, filters, y, conv: Conv) -> None:
        self.conv, self.x, self.filters, self.target = conv, window(x), window(filters), window(y)
        m, n = conv.base
        image = (m // conv.w + 2 + conv.kernel[0]) * conv.w * C0
        taps = conv.taps * n * C0
        self.images = [local(i * image * 2, image, x.dtype, POSITIONS.A1) for i in range(2)]
        first = 2 * image * 2
        self.packets = [local(first + i * taps * 2, taps, x.dtype, POSITIONS.B1) for i in range(2)]
        depth = conv.kernel[1] * C0
        self.left = [local(i * 32768, m * depth, x.dtype, POSITIONS.A2) for i in range(2)]
        self.right = [local(i * 32768, n * depth, x.dtype, POSITIONS.B2) for i in range(2)]
        self.product = local(0, m * n, asc.float32, POSITIONS.CO1)
        self.packet = self.turn = 0

    def run(self, blocks: list[Block]) -> None:
        for index in range(2):
            asc.set_flag(EVENTS.MTE1_MTE2, index)
            asc.set_flag(EVENTS.M_MTE1, index)
        asc.set_flag(EVENTS.FIX_M, 0)
        for block in blocks:
            asc.wait_flag(EVENTS.FIX_M, 0)
            for c1 in range(self.conv.c1):
                self._channel(block, c1)
            self._store(block)
        asc.wait_flag(EVENTS.FIX_M, 0)
        for index in range(2):
            asc.wait_flag(EVENTS.MTE1_MTE2, index)
            asc.wait_flag(EVENTS.M_MTE1, index)

    def _channel(self, block: Block, c1: int) -> None:
        """Add one block of 16 input channels."""
        conv, slot = self.conv, self.packet % 2
        self.packet += 1
        halo = conv.kernel[0] // 2
        row = block.pixel // conv.w
        top = max(0, row - halo)
        bottom = min(conv.h, -(-(block.pixel + block.pixels) // conv.w) + halo)
        asc.wait_flag(EVENTS.MTE1_MTE2, slot)
        place = (((block.image * conv.c1 + c1) * conv.h + top) * conv.w) * C0
        asc.data_copy(self.images[slot], self.x[place:], (bottom - top) * conv.w * C0)
        across = block.channels // C0
        first = (c1 * conv.taps * conv.n1 + block.channel // C0) * FRACTAL
        gap = (conv.n1 - across) * C0
        params = asc.DataCopyParams(conv.taps, across * C0, gap, 0)
        asc.data_copy(self.packets[slot], self.filters[first:], params)
        asc.set_flag(EVENTS.MTE2_MTE1, slot)
        asc.wait_flag(EVENTS.MTE2_MTE1, slot)
        padding = (
            halo,
            halo,
            halo - (row - top),
            halo - (bottom - 1 - (block.pixel + block.pixels - 1) // conv.w),
        )
        depth = conv.kernel[1] * C0
        for tap_row in range(conv.kernel[0]):
            index = self.turn % 2
            self.turn += 1
            asc.wait_flag(EVENTS.M_MTE1, index)
            unfold = asc.LoadData3DParamsV2(
                pad_list=padding, l1_h=bottom - top, l1_w=conv.w, channel_size=C0, k_extension=depth,
                m_extension=-(-block.pixels // 16) * 16, k_start_pt=tap_row * depth,
                m_start_pt=block.pixel - row * conv.w, filter_w=conv.kernel[1], filter_h=conv.kernel[0],
            )  # fmt: skip
            asc.load_data(self.left[index], self.images[slot], unfold)
            fractals = conv.kernel[1] * across
            asc.load_data(
                self.right[index],
                self.packets[slot],
                asc.LoadData2DParams(tap_row * fractals, fractals, 1),
            )
            asc.set_flag(EVENTS.MTE1_M, index)
            asc.wait_flag(EVENTS.MTE1_M, index)
            fresh = c1 == 0 and tap_row == 0
            params = asc.MmadParams(block.pixels, block.channels, depth, 0, False, fresh)
            asc.mmad(self.product, self.left[index], self.right[index], params)
            asc.set_flag(EVENTS.M_MTE1, index)
        asc.set_flag(EVENTS.MTE1_MTE2, slot)

    def _store(self, block: Block) -> None:
        conv = self.conv
        asc.set_flag(EVENTS.M_FIX, 0)
        asc.wait_flag(EVENTS.M_FIX, 0)
        params = asc.FixpipeParamsV220(
            block.channels, block.pixels, -(-block.pixels // 16) * 16, conv.n1 * C0
        )
        place = (block.image * conv.h * conv.w + block.pixel) * conv.n1 * C0 + block.channel
        asc.fixpipe(self.target[place:], self.product, params, asc.FixpipeConfig.cfg_row_major())
        asc.set_flag(EVENTS.FIX_M, 0)


def convolve(x, filters, y, conv: Conv, blocks):
    """Compute a core's blocks."""
    Cube(x, filters, y, conv).run(blocks[asc.get_block_idx()])


def arrays(conv: Conv) -> list:
    return [
        np.zeros((conv.n, conv.c1, conv.h, conv.w, C0), np.float16),
        np.zeros((conv.c1 * conv.taps, conv.n1, C0, C0), np.float16),
        np.zeros((conv.n * conv.h * conv.w, conv.n1 * C0), np.float32),
    ]


def simulate(record: Record) -> dict:
    n, c1, h, w, _ = record.shape["X_N_C1_H_W_C0"]
    _, n1, _, _ = record.shape["K_C1HW_N1_N0_C0"]
    params = record.params
    conv = Conv(n, c1, h, w, n1, tuple(params["kernel"]), tuple(params["base_mnk"][:2]))
    blocks = conv.deal(grid_of(record.cores, (n * h * w, n1 * C0, 0)))
    most = max(map(len, blocks))
    limit = max(2, STEPS_SIMULATED // (c1 * conv.kernel[0]))
    few = [own[:limit] for own in blocks]
    run = time_launch(
        partial(convolve, conv=conv, blocks=few), *arrays(conv), record=record, cores=len(blocks),
        kernel_type="AIC_ONLY",
    )  # fmt: skip
    result = times(run)
    if limit < most:
        whole, part = sum(map(len, blocks)), sum(map(len, few))
        result = scale(run, most / limit, whole / part)
        result["simulated_part"] = f"{limit} of {most} base blocks a core, scaled"
    return result | {name: 100 * result[time] / result["task_us"] for name, time in PERCENT.items()}
