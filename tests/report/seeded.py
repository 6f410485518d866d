"""Kernels with one seeded cause of lost time each, beside the same kernel without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.run import Run

F16 = asc.float16
ALL = asc.PipeID.PIPE_ALL


@asc.jit(auto_sync=False)
def stream(
    x: asc.GlobalAddress, z: asc.GlobalAddress, tile: int, count: int, num: int, work: int,
    barrier: int, copies: int, wrap: int, scalars: int, shift: int, stores: int,
) -> None:  # fmt: skip
    """Load tiles, work on each, store it: `count` tiles a block, `wrap` of them different."""
    start = asc.get_block_idx() * wrap * tile
    x_gm, z_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x + start)
    z_gm.set_global_buffer(z + start)
    pipe = asc.TPipe()
    source, target = asc.TQue(asc.TPosition.VECIN, 1), asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(que=source, num=num, len=tile * 2)
    pipe.init_buffer(que=target, num=num, len=tile * 2)
    other = asc.LocalTensor(F16, asc.TPosition.VECCALC, 0x28000 + shift, 4096)
    for i in range(count):
        place = (i % wrap) * tile
        a = source.alloc_tensor(F16)
        for _ in range(copies):
            asc.data_copy(a, x_gm[place:], tile)
        source.enque(a)
        a = source.deque(F16)
        b = target.alloc_tensor(F16)
        for _ in range(work):
            asc.add(b, a, other, min(tile, 4096))
        for j in range(scalars):
            other.set_value(j, 1.0)
        target.enque(b)
        source.free_tensor(a)
        b = target.deque(F16)
        if stores:
            asc.data_copy(z_gm[place:], b, tile)
        target.free_tensor(b)
        if barrier:
            asc.pipe_barrier(ALL)


@asc.jit(auto_sync=False)
def rows(x: asc.GlobalAddress, shift: int, count: int) -> None:
    """Load rows of 128 bytes, every second one; they begin `shift` bytes behind a sector of L2."""
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x + asc.get_block_idx() * 128 * 128 * count + shift // 2)
    pipe = asc.TPipe()
    source = asc.TQue(asc.TPosition.VECIN, 1)
    pipe.init_buffer(que=source, num=2, len=128 * 128)
    for i in range(count):
        a = source.alloc_tensor(F16)
        asc.data_copy_pad(
            a, x_gm[i * 128 * 128 :], asc.DataCopyExtParams(128, 128, 128, 0, 0),
            asc.DataCopyPadExtParams(),
        )  # fmt: skip
        source.enque(a)
        source.free_tensor(source.deque(F16))


@asc.jit(auto_sync=False)
def uneven(x: asc.GlobalAddress, light: int, heavy: int) -> None:
    """Block 0 does `heavy` instructions, all others `light`."""
    t = asc.LocalTensor(F16, asc.TPosition.VECCALC, 0, 16384)
    for _ in range(heavy if asc.get_block_idx() == 0 else light):
        asc.adds(t, t, 1.0, 16384)
        asc.pipe_barrier(asc.PipeID.PIPE_V)


def streamed(blocks: int = 4, chip: str = "ascend910b1", l2: str = "warm", **changes: Any) -> Run:
    given = {
        "tile": 4096, "count": 24, "num": 2, "work": 1, "barrier": 0, "copies": 1, "wrap": 24,
        "scalars": 0, "shift": 0x1100, "stores": 1,
    } | changes  # fmt: skip
    x = np.zeros(blocks * given["wrap"] * given["tile"], np.float16)
    return sim.launch(
        stream, x, x.copy(), *given.values(), cores=blocks, chip=chip, l2=l2, numerics="off",
        checks="off",
    )  # fmt: skip


def in_rows(shift: int) -> Run:
    x = np.zeros(4 * 128 * 128 * 128 + 64, np.float16)
    return sim.launch(
        rows, x, shift, 128, cores=4, chip="ascend910b1", l2="warm", numerics="off", checks="off"
    )


def spread(light: int, heavy: int) -> Run:
    return sim.launch(
        uneven, np.zeros(8, np.float16), light, heavy, cores=4, chip="ascend910b1",
        numerics="off", checks="off",
    )  # fmt: skip


@dataclass(frozen=True)
class Seed:
    """A kernel without and with the cause, where the cause shows in the ledger, and which ideal undoes it.

    `core`: the place of the core to look at; `causes`: causes of one of its pipes, `memory/…` for a sub-cause.
    """

    plain: Callable[[], Run]
    seeded: Callable[[], Run]
    pipe: str
    causes: tuple[str, ...]
    ideal: str
    core: int = 0

    def cycles(self, run: Run) -> int:
        """The cycles of the seeded class."""
        entry = run.pipes[run.log.cores[self.core].name][self.pipe]
        return sum(
            entry["memory"].get(name.partition("/")[2], 0) if "/" in name
            else entry["causes"].get(name, 0)
            for name in self.causes
        )  # fmt: skip


def _loads(**changes: Any) -> Run:
    return streamed(**{"count": 48, "wrap": 48, "work": 1, "stores": 0} | changes)


SEEDS = {
    "small tile": Seed(
        lambda: streamed(count=48, wrap=48), lambda: streamed(tile=256, count=768, wrap=768),
        "MTE3", ("memory",), "overhead",
    ),
    "one buffer": Seed(
        lambda: streamed(work=24, count=48), lambda: streamed(work=24, count=48, num=1),
        "MTE2", ("buffer",), "buffer",
    ),
    "extra barrier": Seed(
        lambda: streamed(work=6, count=48), lambda: streamed(work=6, count=48, barrier=1),
        "S", ("barrier",), "barrier",
    ),
    "redundant copy": Seed(
        lambda: _loads(copies=2), lambda: _loads(copies=6), "MTE2", ("busy", "memory"), "mte2",
    ),
    "bank conflict": Seed(
        lambda: streamed(work=16, count=48), lambda: streamed(work=16, count=48, shift=0),
        "V", ("bank_conflict",), "banks",
    ),
    "unaligned rows": Seed(
        lambda: in_rows(0), lambda: in_rows(64), "MTE2", ("busy", "memory"), "alignment",
    ),
    "imbalance": Seed(
        lambda: spread(40, 40), lambda: spread(40, 160), "V", ("tail",), "balance", core=1,
    ),
    "scalar loop": Seed(
        lambda: streamed(count=48, scalars=40), lambda: streamed(count=48, scalars=100),
        "S", ("busy",), "scalar",
    ),
    "L2 thrash": Seed(
        lambda: _loads(), lambda: _loads(l2="cold"), "MTE2", ("memory/l2_miss",), "l2",
    ),
    "too many cores": Seed(
        lambda: streamed(blocks=2, count=2, wrap=2), lambda: streamed(blocks=40, count=2, wrap=2),
        "S", ("launch",), "launch", core=-1,
    ),
}  # fmt: skip
