"""Small kernels, each for one figure of the published ones that no larger kernel shows by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.asc.language.core.struct import Field, Struct
from ascend_sim.code_cache import CodeCache
from tests.machine.kit import E, hand_over, instructions, items, local, window

HALF = asc.float16


def one_trip(kernel: Any, *tensors: Any, **options: Any) -> float:
    """Microseconds of another trip through a kernel's loop, its code fetched: `kernel(*tensors, trips)`."""
    twice, once = (sim.launch(kernel, *tensors, trips, **options) for trips in (2, 1))
    return twice.time_us - once.time_us


def test_sync_all_of_a_mix_kernel() -> None:
    """npu-skillyard, 910B2: about 1.9 us for the barrier of all cores."""

    def kernel(trips: int) -> None:
        for _ in range(trips):
            asc.sync_all(is_aiv_only=False)

    took = one_trip(kernel, cores=24, kernel_type="MIX_AIC_1_2", chip="ascend910b2")
    assert took == pytest.approx(1.9, rel=0.05)


def test_sync_all_through_gm() -> None:
    """An estimate, 4 us from the last core's word on: at least two ways to GM, and dearer than the hard form."""

    def kernel(words: asc.GlobalAddress) -> None:
        asc.sync_all(window(words), local(0, 8 * 48, asc.int32))

    run = sim.launch(kernel, np.zeros(8 * 48, np.int32), cores=48, chip="ascend910b2")
    ends = [core.end for core in run.log.cores]
    begins = [core.start + run.chip.icache.miss for core in run.log.cores]
    assert run.chip.us(max(ends) - max(begins)) == pytest.approx(4.0, rel=0.25)


def test_scalar_additions_in_ub() -> None:
    """asc-devkit, addition without the vector unit: 33 cycles an element, conversions and sum too."""

    def kernel() -> None:
        a, b, c = (local(address, 64, HALF) for address in (0, 4096, 8192))
        for i in range(64):
            c.set_value(i, float(a.get_value(i)) + float(b.get_value(i)))

    run = sim.launch(kernel, checks="off")
    writes = [item.end for item in items(run, "S", "set_value")]
    assert (writes[-1] - writes[0]) / 63 == pytest.approx(33, rel=0.01)


def test_loads_and_stores_of_one_core_share_its_bus() -> None:
    """vTriton counters, 910B3, a copy with two buffers: 48.4 bytes a cycle each way; no more than 110 together."""
    size, number = 32768, 32

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        for part in range(number):
            tile = local(part % 2 * size, size, asc.int8)
            if part > 1:
                asc.wait_flag(E.MTE3_MTE2, part % 2)
            asc.data_copy(tile, window(x)[size * part :], size)
            hand_over(E.MTE2_MTE3, part % 2)
            asc.data_copy(window(z)[size * part :], tile, size)
            if part < number - 2:
                asc.set_flag(E.MTE3_MTE2, part % 2)

    run = sim.launch(
        kernel, *(np.zeros(size * number, np.int8) for _ in range(2)), chip="ascend910b3", l2="warm", numerics="off",
    )  # fmt: skip
    for pipe in ("MTE2", "MTE3"):
        ends = [item.end for item in instructions(run, pipe)]
        assert size * 20 / (ends[25] - ends[5]) == pytest.approx(48.4, rel=0.15)


def mean_load(offset: int, size: int) -> float:
    """Cycles of a load that each of 48 cores waits for, from `offset` bytes behind a line's border."""
    number = 4

    def kernel(x: asc.GlobalAddress) -> None:
        mine = window(x)[asc.get_block_idx() * number * (size + 512) + offset :]
        for step in range(number):
            asc.data_copy(local(0, size, asc.int8), mine[step * (size + 512) :], size)
            hand_over(E.MTE2_S)

    data = np.zeros(49 * number * (size + 512), np.int8)
    run = sim.launch(kernel, data, cores=48, numerics="off", checks="off")
    spans = [core.end - core.start for core in run.log.cores]
    return sum(spans) / len(spans) / number


def test_an_unaligned_start() -> None:
    """CANN 9.0.0 guide: from an address of 32 bytes slower by up to 30 %, from 96 KiB on by 5 % at most."""
    assert 1.01 <= mean_load(32, 16384) / mean_load(0, 16384) <= 1.3
    assert 1.0 <= mean_load(32, 98304) / mean_load(0, 98304) <= 1.05


def rows_at(pitch: int, width: int) -> float:
    """Microseconds of MTE2 for 256 rows of `width` halfs, 48 cores, one row every `pitch` halfs of a large matrix."""

    def kernel(x: asc.GlobalAddress) -> None:
        first = 256 * asc.get_block_idx() * pitch
        burst = asc.DataCopyExtParams(64, 2 * width, 2 * (pitch - width), 0, 0)
        pad = asc.DataCopyPadExtParams(HALF, False, 0, 0, 0)
        for row in range(0, 128, 64):
            for column in range(0, 3 * width, width):
                place = window(x)[first + row * pitch + column :]
                asc.data_copy_pad(local(0, 64 * width, HALF), place, burst, pad)

    data = np.empty(48 * 256 * pitch, np.float16)
    run = sim.launch(kernel, data, cores=48, numerics="off", checks="off")
    loads = [instructions(run, "MTE2", core) for core in range(48)]
    return run.chip.us(1) * sum(one[-1].end - one[0].start for one in loads) / 48


def test_unaligned_rows() -> None:
    """asc-devkit data_copy, rows of 2 KiB: 259 us where rows begin at any half, 202.7 where all begin a line."""
    assert rows_at(12287, 1024) / rows_at(12288, 1024) == pytest.approx(259 / 202.7, rel=0.1)


def test_a_flag_from_cube_to_vector_core() -> None:
    """vTriton counters, hand-over kernel of one cube and one vector core: 340 cycles at most."""

    def kernel() -> None:
        if asc.ascend_is_aic():
            asc.cross_core_set_flag(0, 2, asc.PipeID.PIPE_FIX)
        else:
            asc.cross_core_wait_flag(0)

    run = sim.launch(kernel, cores=1, kernel_type="MIX_AIC_1_2", chip="ascend910b3")
    cube = next(n for n, core in enumerate(run.log.cores) if core.name.endswith("aic"))
    vector = next(n for n, core in enumerate(run.log.cores) if "aiv" in core.name)
    (wait,) = [item for item in run.log.cores[vector].items if item.name.endswith("wait_flag")]
    (sent,) = [item for item in run.log.cores[cube].items if item.name.endswith("set_flag")]
    assert 150 <= wait.end - sent.end <= 340


def test_a_tpipe() -> None:
    """vTriton counters: about 2240 cycles of a tiny mix kernel pass outside its pipes, the code of ten calls too."""

    def kernel(make: bool) -> None:
        if make:
            asc.TPipe()

    runs = [sim.launch(kernel, make) for make in (True, False)]
    code = CodeCache(runs[0].chip.icache)
    first, *others = (code.fetch(call) for call in range(1, 11))
    assert runs[0].cycles - runs[1].cycles - first == pytest.approx(
        2240 - first - sum(others), abs=2
    )


def tiling_of(words: int) -> Any:
    """A structure of so many 32-bit members."""
    members = {f"word{number}": Field(asc.int32, default=number) for number in range(words)}
    return type("Tiling", (Struct,), members)()


def test_tiling_data() -> None:
    """An estimate: copying tiling data takes in the order of a microsecond, and more for more of it."""

    def kernel(tiling: Any) -> None:
        assert tiling.word0 == 0

    def empty() -> None:
        pass

    none = sim.launch(empty).time_us
    few, many = (sim.launch(kernel, tiling_of(words)).time_us - none for words in (8, 64))
    assert 0.1 < few < many
    assert many == pytest.approx(1, rel=0.5)
