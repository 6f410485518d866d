"""The same ten causes, seeded in other kernels: a matrix product, rows of float32, another chip each."""

from __future__ import annotations

from typing import Any

import numpy as np
from seeded import Seed

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.config import load_chip
from ascend_sim.run import Run

F32 = asc.float32


@asc.jit(auto_sync=False, kernel_type=asc.runtime.config.KernelType.AIC_ONLY)
def product(
    a: asc.GlobalAddress, b: asc.GlobalAddress, c: asc.GlobalAddress, tile: int, step: int, steps: int, num: int,
    barrier: int, copies: int, products: int, part: int,
) -> None:  # fmt: skip
    """C = A B on one tile a block; of each step 1/`part` is loaded, `copies` times, and multiplied `products` times."""
    a_gm, b_gm, c_gm = asc.GlobalTensor(), asc.GlobalTensor(), asc.GlobalTensor()
    a_gm.set_global_buffer(a + asc.get_block_idx() * tile * step * steps)
    b_gm.set_global_buffer(b + asc.get_block_idx() * tile * step * steps)
    c_gm.set_global_buffer(c + asc.get_block_idx() * tile * tile)
    pipe = asc.TPipe()
    a1_queue, b1_queue = asc.TQue(asc.TPosition.A1, 1), asc.TQue(asc.TPosition.B1, 1)
    a2_queue, b2_queue = asc.TQue(asc.TPosition.A2, 1), asc.TQue(asc.TPosition.B2, 1)
    c_queue = asc.TQue(asc.TPosition.CO1, 1)
    for que in (a1_queue, b1_queue, a2_queue, b2_queue):
        pipe.init_buffer(que=que, num=num, len=tile * step * 2)
    pipe.init_buffer(que=c_queue, num=1, len=tile * tile * 4)
    whole = asc.LoadData2DParams(repeat_times=tile * step // 256, src_stride=1)
    c0 = c_queue.alloc_tensor(F32)
    for i in range(steps):
        a1, b1 = a1_queue.alloc_tensor(a.dtype), b1_queue.alloc_tensor(b.dtype)
        for _ in range(copies):
            asc.data_copy(a1, a_gm[i * tile * step :], tile * step // part)
            asc.data_copy(b1, b_gm[i * tile * step :], tile * step // part)
        a1_queue.enque(a1)
        b1_queue.enque(b1)
        a1, b1 = a1_queue.deque(a.dtype), b1_queue.deque(b.dtype)
        a2, b2 = a2_queue.alloc_tensor(a.dtype), b2_queue.alloc_tensor(b.dtype)
        asc.load_data(a2, a1, whole)
        asc.load_data(b2, b1, whole)
        a2_queue.enque(a2)
        b2_queue.enque(b2)
        a1_queue.free_tensor(a1)
        b1_queue.free_tensor(b1)
        a2, b2 = a2_queue.deque(a.dtype), b2_queue.deque(b.dtype)
        for again in range(products):
            asc.mmad(c0, a2, b2, asc.MmadParams(tile, tile, step, 0, False, i + again == 0))
        a2_queue.free_tensor(a2)
        b2_queue.free_tensor(b2)
        if barrier:
            asc.pipe_barrier(asc.PipeID.PIPE_ALL)
    c_queue.enque(c0)
    c0 = c_queue.deque(F32)
    asc.fixpipe(
        c_gm, c0, asc.FixpipeParamsV220(tile, tile, tile, tile), asc.FixpipeConfig.cfg_row_major()
    )
    c_queue.free_tensor(c0)


@asc.jit(auto_sync=False)
def scaled(
    x: asc.GlobalAddress, z: asc.GlobalAddress, width: int, trips: int, rows: int, gap: int, shift: int, place: int,
    reads: int, work: int, rounds: int, heavy: int, kept: int,
) -> None:  # fmt: skip
    """Load `rows` rows of `width` float32, a `gap` of bytes between them, multiply and store them.

    Rows begin `shift` bytes behind a line; `place` is where the factors lie; `reads` scalars are read from GM
    a trip; all is done `rounds` times over, by block 0 `heavy` times; `kept` numbers of a trip are stored (0: all).
    """
    size = rows * width
    apart = rows * (width * 4 + gap) // 4
    start = asc.get_block_idx() * apart * trips
    x_gm, z_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x + start + shift // 4)
    z_gm.set_global_buffer(z + start)
    pipe = asc.TPipe()
    source, target = asc.TQue(asc.TPosition.VECIN, 1), asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(que=source, num=2, len=size * 4)
    pipe.init_buffer(que=target, num=2, len=size * 4)
    other = asc.LocalTensor(F32, asc.TPosition.VECCALC, place, size)
    for _ in range(heavy if asc.get_block_idx() == 0 else rounds):
        for i in range(trips):
            t = source.alloc_tensor(F32)
            asc.data_copy_pad(
                t, x_gm[i * apart :], asc.DataCopyExtParams(rows, width * 4, gap, 0, 0),
                asc.DataCopyPadExtParams(),
            )  # fmt: skip
            source.enque(t)
            t = source.deque(F32)
            for j in range(reads):
                x_gm.get_value(j * 8)
            r = target.alloc_tensor(F32)
            for _ in range(work):
                asc.mul(r, t, other, size)
            target.enque(r)
            source.free_tensor(t)
            r = target.deque(F32)
            asc.data_copy(z_gm[i * apart :], r, kept or size)
            target.free_tensor(r)


def multiplied(blocks: int = 6, chip: str = "ascend910b3", l2: str = "warm", **changes: Any) -> Run:
    given = {
        "tile": 64, "step": 128, "steps": 40, "num": 2, "barrier": 0, "copies": 1, "products": 1, "part": 1,
    } | changes  # fmt: skip
    size = blocks * given["tile"] * given["step"] * given["steps"]
    a, c = np.zeros(size, np.float16), np.zeros(blocks * given["tile"] ** 2, np.float32)
    return sim.launch(
        product, a, a.copy(), c, *given.values(), cores=blocks, chip=chip, l2=l2, numerics="off",
        checks="off",
    )  # fmt: skip


def scaling(blocks: int = 5, chip: Any = "ascend910b4", l2: str = "warm", **changes: Any) -> Run:
    given = {
        "width": 256, "trips": 30, "rows": 16, "gap": 0, "shift": 0, "place": 0x20100, "reads": 0, "work": 1,
        "rounds": 1, "heavy": 0, "kept": 0,
    } | changes  # fmt: skip
    given["heavy"] = given["heavy"] or given["rounds"]
    apart = given["rows"] * (given["width"] + given["gap"] // 4)
    x = np.zeros(blocks * apart * given["trips"] + 64, np.float32)
    return sim.launch(
        scaled, x, x.copy(), *given.values(), cores=blocks, chip=chip, l2=l2, numerics="off",
        checks="off",
    )  # fmt: skip


def _small_l2() -> Any:
    """The 910B2 with an L2 of 1 MiB, as a run sees it that shares the chip."""
    chip = load_chip("ascend910b2")
    return chip.model_copy(update={"l2": chip.l2.model_copy(update={"bytes": 1 << 20})})


OTHERS = {
    "small tile": Seed(
        lambda: scaling(trips=24, rows=16), lambda: scaling(trips=384, rows=1),
        "MTE3", ("memory",), "overhead",
    ),
    "one buffer": Seed(
        lambda: multiplied(tile=128, part=4), lambda: multiplied(tile=128, part=4, num=1),
        "MTE2", ("buffer",), "buffer",
    ),
    "extra barrier": Seed(
        lambda: multiplied(products=3), lambda: multiplied(products=3, barrier=1),
        "S", ("barrier",), "barrier",
    ),
    "redundant copy": Seed(
        lambda: multiplied(copies=1), lambda: multiplied(copies=3), "MTE2", ("busy", "memory"), "mte2",
    ),
    "bank conflict": Seed(
        lambda: scaling(work=8), lambda: scaling(work=8, place=0x20000), "V", ("bank_conflict",), "banks",
    ),
    "unaligned rows": Seed(
        lambda: scaling(width=16, gap=64, rows=128, trips=100, kept=8),
        lambda: scaling(width=16, gap=64, rows=128, trips=100, kept=8, shift=96),
        "MTE2", ("busy", "memory"), "alignment",
    ),
    "imbalance": Seed(
        lambda: scaling(rounds=2), lambda: scaling(rounds=2, heavy=6), "MTE2", ("tail",), "balance", core=1,
    ),
    "scalar loop": Seed(
        lambda: scaling(reads=20, kept=64), lambda: scaling(reads=60, kept=64), "S", ("busy",), "scalar",
    ),
    "L2 thrash": Seed(
        lambda: scaling(blocks=10, chip="ascend910b2", trips=24, rounds=6, rows=16, kept=8),
        lambda: scaling(blocks=10, chip=_small_l2(), trips=24, rounds=6, rows=16, kept=8),
        "MTE2", ("memory/l2_miss", "memory/share"), "l2",
    ),
    "too many cores": Seed(
        lambda: multiplied(blocks=2, steps=1), lambda: multiplied(blocks=20, steps=1),
        "S", ("launch",), "launch", core=-1,
    ),
}  # fmt: skip
