"""Published measurements, and the kernels that were measured, as runs of the simulator.

Each `Point` says what was measured, what the timing sheet's formulas give by hand, and how to read the same
quantity off a run log. The table of docs/calibration.md has one line a point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.run import Run
from tests.machine.kit import E, V, hand_over, instructions, local, variant, window

HALF = asc.float16


@dataclass(frozen=True)
class Point:
    """One measured figure; `sheet` is None where there is no figure by hand, `slack` comes on top of its error."""

    name: str
    unit: str
    measured: float
    sheet: float | None
    simulate: Callable[[], float]
    slack: float = 0.01
    slow: bool = False

    @property
    def allowed(self) -> float:
        """The relative error that the sheet's own model has, and the slack."""
        off = 0.0 if self.sheet is None else abs(self.sheet / self.measured - 1)
        return off + self.slack


# ---- the vector unit ------------------------------------------------------------------------


def vector_loop(name: str, places: tuple[int, int, int], repeats: int, dtype: Any) -> float:
    """Cycles from one to the next of many equal instructions with a barrier behind each."""
    count = repeats * 256 // dtype.size

    def kernel() -> None:
        dst, first, second = (local(address, count, dtype) for address in places)
        for _ in range(100):
            getattr(asc, name)(dst, first, second, count)
            asc.pipe_barrier(V)

    starts = [item.start for item in instructions(sim.launch(kernel, checks="off"), "V")]
    return (starts[-1] - starts[0]) / (len(starts) - 1)


# ---- GM -------------------------------------------------------------------------------------


def one_load(kib: int) -> float:
    """Cycles of one load from L2 on the 910B3, start to end."""

    def kernel(x: asc.GlobalAddress) -> None:
        asc.data_copy(local(0, 512 * kib, HALF), window(x), 512 * kib)

    run = sim.launch(kernel, np.zeros(512 * kib, np.float16), chip="ascend910b3", l2="warm")
    (load,) = instructions(run, "MTE2")
    return load.end - load.start


def one_store(kib: int) -> float:
    """Cycles for which one store takes its pipe, 910B1."""

    def kernel(z: asc.GlobalAddress) -> None:
        asc.data_copy(window(z), local(0, 512 * kib, HALF), 512 * kib)

    run = sim.launch(kernel, np.zeros(512 * kib, np.float16), l2="warm", checks="off")
    (store,) = instructions(run, "MTE3")
    return store.accept - store.start


def load_and_store() -> float:
    """Cycles of a round of a 128-byte load and a 128-byte store that wait for one another, 910B3, L2."""

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        t = local(0, 64, HALF)
        for _ in range(20):
            asc.data_copy(t, window(x), 64)
            hand_over(E.MTE2_MTE3)
            asc.data_copy(window(z), t, 64)
            hand_over(E.MTE3_MTE2)

    run = sim.launch(
        kernel, np.zeros(64, np.float16), np.zeros(64, np.float16), chip="ascend910b3", l2="warm"
    )
    starts = [load.start for load in instructions(run, "MTE2")]
    return (starts[-1] - starts[1]) / (len(starts) - 2)


def small_loads() -> float:
    """Cycles from one 128-byte load to the next, many in a row."""

    def kernel(x: asc.GlobalAddress) -> None:
        for part in range(200):
            asc.data_copy(local(0, 64, HALF), window(x)[64 * part :], 64)

    run = sim.launch(kernel, np.zeros(64 * 200, np.float16), checks="off")
    loads = instructions(run, "MTE2")
    return (loads[-1].end - loads[0].end) / (len(loads) - 1)


# ---- the vendor's add example, 8192 x 8192 float16 ------------------------------------------

COLUMNS = 8192
Slots = tuple[tuple[int, int, int], ...]
SINGLE: Slots = ((0, 0x8000, 0x10000),)
DOUBLE: Slots = ((0, 0x8000, 0x10000), (0x18000, 0x20000, 0x28000))
APART: Slots = ((0, 32512, 131072), (65536, 98048, 163584))


def add_example(
    x: asc.GlobalAddress,
    y: asc.GlobalAddress,
    z: asc.GlobalAddress,
    rows: int,
    chunk: int,
    slots: Slots,
    bypass: bool,
) -> None:
    """Rows dealt out evenly; chunks of x and y loaded, added, stored, one or two sets of slots in turn."""
    blocks, block = asc.get_block_num(), asc.get_block_idx()
    each, more = divmod(rows, blocks)
    first = COLUMNS * (each * block + min(block, more))
    size = COLUMNS * (each + (block < more))
    x_gm, y_gm, z_gm = window(x), window(y), window(z)
    if bypass:
        x_gm.set_l2_cache_hint(asc.CacheMode.CACHE_MODE_DISABLE)
        y_gm.set_l2_cache_hint(asc.CacheMode.CACHE_MODE_DISABLE)
    sets = len(slots)
    tiles = -(-size // chunk)
    for tile in range(tiles):
        slot, start = tile % sets, first + tile * chunk
        count = min(chunk, size - tile * chunk)
        a, b, c = (local(address, chunk, HALF) for address in slots[slot])
        again, once_more = tile >= sets, tile + sets < tiles
        if again:
            asc.wait_flag(E.V_MTE2, slot)
        asc.data_copy(a, x_gm[start:], count)
        asc.data_copy(b, y_gm[start:], count)
        asc.set_flag(E.MTE2_V, slot)
        asc.wait_flag(E.MTE2_V, slot)
        if again:
            asc.wait_flag(E.MTE3_V, slot)
        asc.add(c, a, b, count)
        if once_more:
            asc.set_flag(E.V_MTE2, slot)
        asc.set_flag(E.V_MTE3, slot)
        asc.wait_flag(E.V_MTE3, slot)
        asc.data_copy(z_gm[start:], c, count)
        if once_more:
            asc.set_flag(E.MTE3_V, slot)


def add_run(
    rows: int,
    chunk: int,
    slots: Slots,
    *,
    bypass: bool = False,
    cores: int = 48,
    part: int = 1,
) -> Run:
    """Run the example without numbers. `part`: rows and L2 divided by it, which leaves rates as they are."""
    arrays = [np.empty((rows, COLUMNS), np.float16) for _ in range(3)]
    with TemporaryDirectory() as folder:
        chip = variant(Path(folder), f"l2: {{bytes: {201326592 // part}}}", "ascend910b1")
        return sim.launch(
            add_example,
            *arrays,
            rows,
            chunk,
            slots,
            bypass,
            cores=cores,
            chip=chip,
            numerics="off",
            checks="off",
        )


def core_time(run: Run) -> float:
    """Mean time from a core's first cycle to its last, in microseconds."""
    return run.chip.us(1) * mean(core.end - core.start for core in run.log.cores)


def pipe_time(run: Run, pipe: str) -> float:
    """Mean time for which instructions of a pipe were under way, in microseconds."""
    spans = []
    for core in range(len(run.log.cores)):
        total = last = 0
        for item in instructions(run, pipe, core):
            total += max(item.end, last) - max(item.start, last)
            last = max(item.end, last)
        spans.append(total)
    return run.chip.us(1) * mean(spans)


def pair_of_loads(run: Run) -> float:
    """Cycles from where the first of two loads has its port to the end of the second."""
    spans: list[int] = []
    for core in range(len(run.log.cores)):
        loads = instructions(run, "MTE2", core)
        pairs = zip(loads[::2], loads[1::2], strict=True)
        spans += [second.end - first.spent.began for first, second in pairs]
    return mean(spans)


# ---- cube cores -------------------------------------------------------------------------------

CUBE = {"kernel_type": "AIC_ONLY", "checks": "off"}


def one_load_l1(kib: int) -> float:
    """Cycles of one load from L2 to L1, start to end."""

    def kernel(x: asc.GlobalAddress) -> None:
        asc.data_copy(local(0, 512 * kib, HALF, asc.TPosition.A1), window(x), 512 * kib)

    run = sim.launch(kernel, np.zeros(512 * kib, np.float16), l2="warm", **CUBE)
    (load,) = instructions(run, "MTE2")
    return load.end - load.start


def stream_l1() -> float:
    """Cycles for each 256 KiB of a stream from HBM to L1, 910B3."""
    pieces = 16

    def kernel(x: asc.GlobalAddress) -> None:
        tile = local(0, 65536, HALF, asc.TPosition.A1)
        for piece in range(2 * pieces):
            asc.data_copy(tile, window(x)[65536 * piece :], 65536)

    data = np.zeros(2 * pieces * 65536, np.float16)
    loads = instructions(sim.launch(kernel, data, chip="ascend910b3", **CUBE), "MTE2")
    return 2 * (loads[-1].end - loads[pieces - 1].end) / pieces


def one_mmad(fractals: int) -> float:
    """Cycles of one Mmad of 16 rows and columns in `fractals` blocks, start to result, 910B3."""

    def kernel() -> None:
        left, right = (
            local(0, 256, HALF, asc.TPosition.A2),
            local(0, 16 * 16 * fractals, HALF, asc.TPosition.B2),
        )
        product = local(0, 256 * fractals, asc.float32, asc.TPosition.CO1)
        asc.mmad(product, left, right, asc.MmadParams(16, 16 * fractals, 16, 0, False, True))

    (product,) = instructions(sim.launch(kernel, chip="ascend910b3", **CUBE), "M")
    return product.end - product.start


def load_fractals(position: Any) -> float:
    """Cycles of one load of 64 fractals from L1 to L0A or L0B."""

    def kernel() -> None:
        source, target = local(0, 16384, HALF, asc.TPosition.A1), local(0, 16384, HALF, position)
        asc.load_data(target, source, asc.LoadData2DParams(0, 64, 1))

    (load,) = instructions(sim.launch(kernel, **CUBE), "MTE1")
    return load.end - load.start


def products_one_by_one() -> float:
    """Cycles of a step of 128 x 128 x 128, one buffer everywhere, 910B3: as published, the step's product is stored."""
    size, steps = 128 * 128, 12
    e, at = E, asc.TPosition

    def kernel(a: asc.GlobalAddress, b: asc.GlobalAddress, c: asc.GlobalAddress) -> None:
        a1, b1 = local(0, size, HALF, at.A1), local(2 * size, size, HALF, at.B1)
        a2, b2 = local(0, size, HALF, at.A2), local(0, size, HALF, at.B2)
        c1 = local(0, size, asc.float32, at.CO1)
        for step in range(steps):
            if step:
                asc.wait_flag(e.MTE1_MTE2, 0)
            for tile, source in ((a1, a), (b1, b)):
                params = asc.Nd2NzParams(1, 128, 128, 0, 4096, 128, 1, 0)
                asc.data_copy(tile, window(source)[128 * (step % 8) :], params)
            hand_over(e.MTE2_MTE1)
            if step:
                asc.wait_flag(e.M_MTE1, 0)
            for row in range(8):
                left = asc.LoadData2DParams(row, 8, 8)
                asc.load_data(a2[2048 * row :], a1, left)
                asc.load_data(b2[2048 * row :], b1[2048 * row :], asc.LoadData2DParams(0, 8, 1))
            asc.set_flag(e.MTE1_MTE2, 0)
            hand_over(e.MTE1_M)
            if step:
                asc.wait_flag(e.FIX_M, 0)
            asc.mmad(c1, a2, b2, asc.MmadParams(128, 128, 128, 0, False, True))
            asc.set_flag(e.M_MTE1, 0)
            hand_over(e.M_FIX)
            to = asc.FixpipeParamsV220(n_size=128, m_size=128, src_stride=128, dst_stride=128)
            asc.fixpipe(window(c)[size * step :], c1, to, asc.FixpipeConfig.cfg_row_major())
            asc.set_flag(e.FIX_M, 0)
        for event in (e.MTE1_MTE2, e.M_MTE1, e.FIX_M):
            asc.wait_flag(event, 0)

    a, b = (np.zeros((128, 4096), np.float16) for _ in range(2))
    run = sim.launch(
        kernel, a, b, np.zeros(size * steps, np.float32), chip="ascend910b3", l2="warm", **CUBE
    )
    starts = [item.start for item in instructions(run, "M")]
    return (starts[-1] - starts[3]) / (len(starts) - 4)


def columns(width: int) -> float:
    """Microseconds of MTE2 for loading a float16 matrix of 12288 x 12288, 48 cores, 64 rows an instruction."""
    size = 12288

    def kernel(x: asc.GlobalAddress) -> None:
        x_gm, target = window(x), local(0, 64 * width, HALF)
        burst = asc.DataCopyParams(64, width // 16, (size - width) // 16, 0)
        for row in range(256 * asc.get_block_idx(), 256 * (asc.get_block_idx() + 1), 64):
            for column in range(0, size, width):
                asc.data_copy(target, x_gm[row * size + column :], burst)

    run = sim.launch(
        kernel, np.empty((size, size), np.float16), cores=48, numerics="off", checks="off"
    )
    loads = [instructions(run, "MTE2", core) for core in range(48)]
    return run.chip.us(1) * mean(items[-1].end - items[0].start for items in loads)


# ---- launches -------------------------------------------------------------------------------


def empty(cores: int, kernel_type: str = "AIV_ONLY") -> float:
    """Microseconds of a kernel that does nothing."""
    return sim.launch(lambda: None, cores=cores, kernel_type=kernel_type).time_us


SAME = (0x12000, 0, 0x8000)  # both sources in the same bank groups
CLEAR = (0x20000, 0, 0x10100)  # the vendor's addresses: nothing meets

POINTS = [
    Point(
        "Add float32, 64 repeats and a barrier",
        "cycles",
        86.0,
        86,
        lambda: vector_loop("add", CLEAR, 64, asc.float32),
    ),
    Point(
        "the same, both sources in the same bank groups",
        "cycles",
        150.0,
        150,
        lambda: vector_loop("add", (0x20000, 0, 0x10000), 64, asc.float32),
    ),
    Point(
        "the same, destination in a source's banks",
        "cycles",
        135.0,
        137,
        lambda: vector_loop("add", (0x4020, 0, 0x8100), 64, asc.float32),
    ),
    Point(
        "Add float16, 2 repeats and a barrier",
        "cycles",
        26.0,
        26,
        lambda: vector_loop("add", SAME, 2, HALF),
    ),
    Point(
        "Max float16, 2 repeats and a barrier",
        "cycles",
        24.0,
        24,
        lambda: vector_loop("max", SAME, 2, HALF),
    ),
    Point(
        "Mul float16, 2 repeats and a barrier",
        "cycles",
        27.0,
        27,
        lambda: vector_loop("mul", SAME, 2, HALF),
    ),
    Point("GM to UB, 1 KiB, L2, 910B3", "cycles", 216, 224, lambda: one_load(1)),
    Point("GM to UB, 16 KiB, L2, 910B3", "cycles", 300, 344, lambda: one_load(16)),
    Point("GM to UB, 192 KiB, L2, 910B3", "cycles", 1765, 1752, lambda: one_load(192)),
    Point("UB to GM, 8 KiB", "cycles", 244, 230, lambda: one_store(8)),
    Point("UB to GM, 32 KiB", "cycles", 523, 550, lambda: one_store(32)),
    Point("GM to UB, 128 bytes an instruction", "cycles", 20.2, 20, small_loads),
    Point("128 B load and 128 B store, each waits, 910B3", "cycles", 486, 476, load_and_store),
    Point(
        "two 8 KiB loads, then wait, HBM, 1 core",
        "cycles",
        682,
        723,
        lambda: pair_of_loads(add_run(64, 4096, SINGLE, cores=1)),
    ),
    Point(
        "the same on 48 cores",
        "cycles",
        1165,
        1090,
        lambda: pair_of_loads(add_run(2048, 4096, SINGLE, part=4)),
        slow=True,
    ),
    Point(
        "Add 8192 x 8192 float16 in 8 KiB pieces, 48 cores, core time",
        "us",
        297.1,
        None,
        lambda: core_time(add_run(8192, 4096, SINGLE)),
        slack=0.065,
        slow=True,
    ),
    Point(
        "the same in 32 KiB pieces",
        "us",
        261.5,
        263,
        lambda: core_time(add_run(8192, 16384, SINGLE)),
        slow=True,
    ),
    Point(
        "the same with two buffers",
        "us",
        257.6,
        263,
        lambda: core_time(add_run(8192, 16384, DOUBLE)),
        slow=True,
    ),
    Point(
        "the same, x and y bypass L2, MTE2 time",
        "us",
        176.0,
        175.4,
        lambda: pipe_time(add_run(8192, 16384, DOUBLE, bypass=True), "MTE2"),
        slow=True,
    ),
    Point(
        "the same, vector time",
        "us",
        12.85,
        None,
        lambda: 8 * pipe_time(add_run(1024, 16384, DOUBLE, bypass=True, part=8), "V"),
    ),
    Point(
        "the same without bank conflict",
        "us",
        6.954,
        None,
        lambda: 8 * pipe_time(add_run(1024, 16256, APART, bypass=True, part=8), "V"),
    ),
    Point(
        "matrix of 302 MB, 64 rows of 2 KiB an instruction, 48 cores, MTE2 time",
        "us",
        202.7,
        None,
        lambda: columns(1024),
        slack=0.03,
    ),
    Point(
        "the same, 64 rows of 128 bytes",
        "us",
        220.8,
        None,
        lambda: columns(64),
        slack=0.03,
        slow=True,
    ),
    Point("empty kernel, 1 core", "us", 2.52, 2.44, lambda: empty(1)),
    Point("empty kernel, 12 cores", "us", 3.96, 3.98, lambda: empty(12)),
    Point("empty kernel, 24 cores", "us", 5.70, 5.66, lambda: empty(24)),
    Point("empty kernel, 48 cores", "us", 9.0, 9.02, lambda: empty(48)),
    Point(
        "empty kernel, 24 cube cores with their vector cores",
        "us",
        12.66,
        12.4,
        lambda: empty(24, "MIX_AIC_1_2"),
    ),
    Point("Mmad, 1 fractal alone, 910B3", "cycles", 25, 30, lambda: one_mmad(1)),
    Point("Mmad, 128 fractals alone, 910B3", "cycles", 151, 155, lambda: one_mmad(128), slack=0.02),
    Point(
        "64 fractals from L1 to L0A", "cycles", 129, 129, lambda: load_fractals(asc.TPosition.A2)
    ),
    Point(
        "64 fractals from L1 to L0B", "cycles", 257, 257, lambda: load_fractals(asc.TPosition.B2)
    ),
    Point("GM to L1, 1 KiB, L2", "cycles", 173, 223, lambda: one_load_l1(1)),
    Point("GM to L1, 64 KiB, L2", "cycles", 623, 648, lambda: one_load_l1(64)),
    Point(
        "GM to L1, 512 KiB (here 1 KiB less, which is reserved), L2",
        "cycles",
        3356,
        3672,
        lambda: one_load_l1(511),
    ),
    Point("GM to L1, HBM, each 256 KiB of a stream, 910B3", "cycles", 3349, 3361, stream_l1),
    Point(
        "step of 128 x 128 x 128, one buffer each, 910B3",
        "cycles",
        1453,
        1453,
        products_one_by_one,
    ),
]


def line(point: Point, value: float) -> str:
    """The point's line in the table of docs/calibration.md."""
    sheet = "" if point.sheet is None else f"{point.sheet:g}"
    error = 100 * (value / point.measured - 1)
    number = f"{value:.0f}" if point.unit == "cycles" else f"{value:.2f}"
    return f"| {point.name} | {point.unit} | {point.measured:g} | {sheet} | {number} | {error:+.1f} % |"


if __name__ == "__main__":
    for each in POINTS:
        print(line(each, each.simulate()))
