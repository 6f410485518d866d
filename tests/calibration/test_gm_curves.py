"""Published curves of what a core draws from GM, by cores and by bytes a copy, and the three states of L2.

By cores: tables of tilesim, 910B1, each core a long stream of its own. By bytes: figures 3-99 and 3-100 of the CANN
9.0.0 guide, read off by eye (within 0.4 GB/s), every copy waited for; the levels are those of all vector cores at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.run import Run
from tests.machine.kit import E, hand_over, instructions, local, window

READ = (
    100.9, 64.5, 88.3, 77.9, 84.9, 80.8, 73.3, 68.9, 73.2, 67.6, 71.1, 68.1, 69.1, 72.6, 75,
    73.3, 72.1, 70.7, 73.3, 68.8, 68.7, 66.1, 66.3, 65.1, 65.3, 62.6, 62.2, 59, 58.2, 56.1, 56.5,
    53.3, 51.6, 50, 48.5, 46.5, 46.1, 43.7, 43, 41.6, 40.4, 39.3, 38.5, 37, 36.3, 35.4, 34.8,
    33.7,
)  # fmt: skip
"""GB/s of a core with 1, 2, ... 48 of them loading from HBM."""

WRITE = (
    188.5, 210.5, 117.3, 130.3, 109, 119.5, 117.3, 115, 112.8, 110.5, 108.2, 106, 103.7, 101.5,
    100.1, 100.4, 96.8, 98.8, 90.4, 88.9, 83.4, 83.8, 77.9, 76.7, 71.1, 70.6, 66.6, 66.4, 61.6,
    59.9, 56.1, 55.9, 53, 51.5, 49.5, 48.1, 46.1, 45.3, 43.5, 42.6, 41, 40.2, 38.5, 38.1, 36.7,
    36.2, 34.7, 34.3,
)  # fmt: skip
"""The same storing."""

LOADS = {
    0.5: 1.69,
    1: 3.09,
    2: 6.6,
    4: 12.6,
    8: 16.8,
    16: 29.1,
    32: 27.75,
    48: 31,
    56: 31.7,
    64: 33.35,
    96: 34.7,
    128: 33.95,
    160: 33.95,
    192: 35.2,
}
"""GB/s of a core by KiB a load, from lines' borders."""

STORES = {
    0.5: 1.56,
    1: 3.19,
    2: 5.74,
    4: 10.9,
    16: 28.35,
    32: 27.6,
    48: 30.2,
    56: 30.65,
    64: 32.9,
    96: 33.8,
    128: 34.8,
    160: 35.2,
    192: 34.8,
}
"""The same of stores. Left out: 8 KiB, see docs/calibration.md."""

KIB = 1024


def rate(run: Run, moved: float) -> float:
    """GB/s of a core that moves so many bytes."""
    mean = sum(core.end - core.start for core in run.log.cores) / len(run.log.cores)
    return moved / mean * run.chip.clock_mhz / 1000


def rate_together(run: Run, size: int) -> float:
    """GB/s of a core while all of them run: from where the last has begun to where the first ends."""
    first = max(core.start for core in run.log.cores)
    last = min(core.end for core in run.log.cores)
    periods = []
    for number in range(len(run.log.cores)):
        copied = [item.end for pipe in ("MTE2", "MTE3") for item in instructions(run, pipe, number)]
        ends = [end for end in copied if first <= end <= last]
        periods.append((ends[-1] - ends[0]) / (len(ends) - 1))
    return size * len(periods) / sum(periods) * run.chip.clock_mhz / 1000


def copies(cores: int, size: int, number: int, *, store: bool, wait: bool) -> Run:
    """Let each core copy `number` pieces of its own; stores find L2 full of those before them."""

    def kernel(x: asc.GlobalAddress) -> None:
        tile, tensor = local(0, size, asc.int8), window(x)
        for step in range(number):
            place = tensor[(asc.get_block_idx() * number + step) * size :]
            if store:
                asc.data_copy(place, tile, size)
            else:
                asc.data_copy(tile, place, size)
            if wait:
                hand_over(E.MTE3_S if store else E.MTE2_S)

    return sim.launch(
        kernel, np.zeros(cores * number * size, np.int8), cores=cores, numerics="off", checks="off",
        l2="dirty" if store else "cold",
    )  # fmt: skip


SOME = [1, 2, 3, 4, 7, 8, 16, 24, 31, 48]
REST = [cores for cores in range(1, 49) if cores not in SOME]


@pytest.mark.parametrize(
    "cores", [*SOME, *(pytest.param(cores, marks=pytest.mark.slow) for cores in REST)]
)
def test_loads_by_cores(cores: int) -> None:
    found = rate(copies(cores, 64 * KIB, 24, store=False, wait=False), 24 * 64 * KIB)
    assert found == pytest.approx(READ[cores - 1], rel=0.15)


@pytest.mark.parametrize(
    "cores",
    [*SOME[2:], *(pytest.param(cores, marks=pytest.mark.slow) for cores in REST)],
)
def test_stores_by_cores(cores: int) -> None:
    """One core alone and two were measured at 1.5 times what any other table gives."""
    found = rate(copies(cores, 64 * KIB, 24, store=True, wait=False), 24 * 64 * KIB)
    assert found == pytest.approx(WRITE[cores - 1], rel=0.2)


@pytest.mark.parametrize("kib", LOADS)
def test_loads_by_size(kib: float) -> None:
    found = rate_together(copies(48, int(kib * KIB), 64, store=False, wait=True), int(kib * KIB))
    assert found == pytest.approx(LOADS[kib], rel=0.15)


@pytest.mark.parametrize("kib", STORES)
def test_stores_by_size(kib: float) -> None:
    found = rate_together(copies(48, int(kib * KIB), 64, store=True, wait=True), int(kib * KIB))
    assert found == pytest.approx(STORES[kib], rel=0.2)


# ---- L2: reads alone, with stores beside, after a flush --------------------------------------


def streams(beside: bool) -> Any:
    """Read 64 x 2 KiB a piece; with `beside`, store half as many bytes elsewhere."""

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress, size: int) -> None:
        first = asc.get_block_idx() * size
        tile, other = local(0, 32 * KIB, asc.int8), local(64 * KIB, 32 * KIB, asc.int8)
        for step in range(size // (32 * KIB)):
            place = first + step * 32 * KIB
            asc.data_copy(tile, window(x)[place:], 32 * KIB)
            if beside and step % 2:
                asc.data_copy(window(z)[place // 2 :], other, 32 * KIB)

    return kernel


@pytest.mark.parametrize(
    ("megabytes", "beside", "l2", "measured"),
    [
        pytest.param(302, False, "cold", 1490, id="reads alone"),
        pytest.param(268, True, "cold", 1070, id="with stores beside"),
        pytest.param(470, False, "dirty", 920, id="after a flush that wrote"),
        pytest.param(128, False, "dirty", 611, id="after a flush, less than L2 holds"),
    ],
)
def test_reads_through_l2(megabytes: int, beside: bool, l2: str, measured: float) -> None:
    """GB/s of 48 cores that read through L2, from one model.

    Measured: asc-devkit data_copy, its addition, and on the 910B2 cached reads of npu-skillyard after a flush. The last
    figure is of 470 MB read out of 128 (282 us), less the time of the hits at the 4.7 TB/s of the smallest footprint.
    """
    size = megabytes * 1_000_000 // 48 // (64 * KIB) * 64 * KIB
    x, z = np.zeros(48 * size, np.int8), np.zeros(24 * size + 64 * KIB, np.int8)
    chip = "ascend910b2" if l2 == "dirty" else "ascend910b1"
    run = sim.launch(
        streams(beside), x, z, size, cores=48, chip=chip, l2=l2, numerics="off", checks="off"
    )
    assert 48 * rate(run, size) == pytest.approx(measured, rel=0.1)
