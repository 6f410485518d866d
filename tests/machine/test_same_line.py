"""Cores that ask for the same lines, lines that are still on their way, and short bursts, on the toy chip.

There a line takes 10 cycles for each further core, around L2 a page of HBM 100; the other numbers are those of
`test_memory_times`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.trace import Cause, MemoryCause
from tests.machine.kit import instructions, local, toy_run, variant, window

FLOATS = np.zeros(32768, np.float32)


def load(count: int, apart: int = 0, *, bypass: bool = False, late: int = 0) -> Any:
    """Return a kernel whose cores each load `count` floats, `apart` from one another; cores but the first `late`."""

    def kernel(x: asc.GlobalAddress) -> None:
        block, tensor = asc.get_block_idx(), window(x)
        if bypass:
            tensor.set_l2_cache_hint(asc.CacheMode.CACHE_MODE_DISABLE)
        if block:
            for _ in range(late):
                local(0, 1).get_value(0)
        asc.data_copy(local(1024, count), tensor[apart * block :], count)

    return kernel


def ends(run: sim.Run, cores: int) -> list[int]:
    return [instructions(run, "MTE2", core)[0].end for core in range(cores)]


def test_a_line_serves_one_core_after_the_other() -> None:
    """Each of four cores waits for three others: 30 cycles for 512 bytes that take the port 8."""
    assert ends(toy_run(load(128, 128), FLOATS, cores=4, l2="warm"), 4) == [10 + 100 + 8] * 4
    run = toy_run(load(128), FLOATS, cores=4, l2="warm")
    assert ends(run, 4) == [10 + 100 + 30] * 4
    (item,) = instructions(run, "MTE2")
    assert item.parts == (
        (Cause.MEMORY, MemoryCause.LATENCY, 110),
        (Cause.MEMORY, MemoryCause.SAME_LINE, 132),
        (Cause.BUSY, None, 140),
    )


def test_what_is_in_flight_covers_the_wait() -> None:
    """32 KiB are in flight at once: with 16 KiB on the way, 64 bytes a cycle need no more than 10 cycles a line."""
    assert ends(toy_run(load(4096), FLOATS, cores=4, l2="warm"), 4) == [10 + 100 + 256] * 4


def test_different_parts_of_one_line_meet_too() -> None:
    assert ends(toy_run(load(32, 32), FLOATS, cores=4, l2="warm"), 4) == [10 + 100 + 30] * 4


def test_stores_meet_as_loads_do() -> None:
    def kernel(z: asc.GlobalAddress, apart: int) -> None:
        asc.data_copy(window(z)[apart * asc.get_block_idx() :], local(0, 32), 32)

    for apart, cycles in ((128, 2), (8, 30)):
        run = toy_run(kernel, np.zeros(1024, np.float32), apart, cores=4, checks="off")
        taken = [
            item.accept - item.start for item in (instructions(run, "MTE3", i)[0] for i in range(4))
        ]
        assert taken == [100 + cycles] * 4


def test_around_l2_cores_meet_at_a_page(tmp_path: Path) -> None:
    """Two cores at the two lines of a page of 1 KiB: apart in L2, together around it."""
    chip = variant(tmp_path, "hbm: {page: 1024, row_cycle: 50}")
    cold = [210 + 8] * 2
    for bypass, expected in ((False, cold), (True, [210 + 50] * 2)):
        run = sim.launch(load(128, 128, bypass=bypass), FLOATS, cores=2, chip=chip)
        assert ends(run, 2) == expected


def test_a_hit_waits_for_the_miss_that_brings_it() -> None:
    """The second core asks 22 cycles later for what the first has missed: it is there when the miss is."""
    run = toy_run(load(4096, late=2), FLOATS, cores=2, l2="cold")
    first, second = (instructions(run, "MTE2", core)[0] for core in range(2))
    later = second.start - first.start
    assert 0 < later < 100
    assert second.parts[:2] == (
        (Cause.MEMORY, MemoryCause.LATENCY, second.start + 100),
        (Cause.MEMORY, MemoryCause.L2_MISS, first.start + 200),
    )
    assert run.memory["l2_miss_bytes"] == 4 * 4096


@pytest.mark.parametrize(("least", "factor"), [(32, 1), (128, 1), (192, 1.5), (256, 2)])
def test_short_bursts_around_l2_cost_hbm_more(tmp_path: Path, least: int, factor: float) -> None:
    """Rows of 128 bytes, 64 of them: 8 KiB at the 64 bytes a cycle that HBM gives here."""
    chip = variant(tmp_path, f"hbm: {{gbps: 64, least: {least}}}")

    def kernel(x: asc.GlobalAddress) -> None:
        tensor = window(x)
        tensor.set_l2_cache_hint(asc.CacheMode.CACHE_MODE_DISABLE)
        asc.data_copy(local(0, 2048), tensor, asc.DataCopyParams(64, 4, 12, 0))

    run = sim.launch(kernel, FLOATS, chip=chip)
    (item,) = instructions(run, "MTE2")
    assert item.end - item.start == 200 + 128 * factor


def test_bursts_fill_whole_entries_of_the_window(tmp_path: Path) -> None:
    """8 KiB are in flight for 200 cycles each: 40.96 bytes a cycle, half of that in rows of half an entry."""
    chip = variant(tmp_path, "gm: {window_core: 8192, window_aiv: 8192, window_entry: 256}")

    def kernel(x: asc.GlobalAddress, rows: int) -> None:
        asc.data_copy(local(0, 2048), window(x), asc.DataCopyParams(rows, 256 // rows, 12, 0))

    for rows, rate in ((1, 40.96), (64, 20.48)):
        (item,) = instructions(sim.launch(kernel, FLOATS, rows, chip=chip), "MTE2")
        assert item.end - item.start == 200 + 8192 / rate


def test_the_window_of_stores_is_shared_by_two_vector_cores(tmp_path: Path) -> None:
    """4 KiB for 100 cycles: 40.96 bytes a cycle for one core, half of it for the one that begins second."""
    chip = variant(tmp_path, "gm: {store_window: 4096}")

    def kernel(z: asc.GlobalAddress) -> None:
        for part in range(2):
            start = (asc.get_block_idx() * 2 + part) * 2048
            asc.data_copy(window(z)[start:], local(0, 2048), 2048)

    (alone, _) = instructions(sim.launch(kernel, FLOATS, chip=chip, checks="off"), "MTE3")
    assert alone.accept - alone.start == 100 + 200
    run = sim.launch(kernel, FLOATS, cores=2, chip=chip, checks="off")
    for core in range(2):
        assert (
            instructions(run, "MTE3", core)[1].accept - instructions(run, "MTE3", core)[1].start
            == 100 + 400
        )


def test_a_store_that_pushes_out_dirty_lines_waits_for_its_last_byte() -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        asc.data_copy(window(z), local(0, 2048), 2048)

    for l2, cycles in (("cold", 100 + 128), ("dirty", 200 + 128)):
        (item,) = instructions(toy_run(kernel, FLOATS, l2=l2, checks="off"), "MTE3")
        assert item.end - item.start == cycles


def test_what_mte2_writes_to_l1_takes_its_share_of_mte1s_port(tmp_path: Path) -> None:
    """L1 gives and takes 256 bytes a cycle: with 128 of them written, a move to L0A takes twice as long."""
    chip = variant(tmp_path, "mte1: {l1_port: 256}")

    def kernel(x: asc.GlobalAddress, beside: bool) -> None:
        position = asc.TPosition
        source = local(0, 16384, asc.float16, position.A1)
        if beside:
            asc.data_copy(local(65536, 32768, asc.float16, position.A1), window(x), 32768)
        for _ in range(150):  # until the bytes pass
            asc.set_flag(asc.HardEvent.M_FIX, 0)
            asc.wait_flag(asc.HardEvent.M_FIX, 0)
        asc.load_data(
            local(0, 16384, asc.float16, position.A2), source, asc.LoadData2DParams(0, 64, 1)
        )

    taken = []
    for beside in (False, True):
        run = sim.launch(
            kernel, np.zeros(32768, np.float16), beside, chip=chip, l2="warm", kernel_type="AIC_ONLY", checks="off",
        )  # fmt: skip
        (move,) = instructions(run, "MTE1")
        taken.append(move.end - move.start)
    assert taken[1] == pytest.approx(2 * taken[0], abs=2)


def test_stores_that_are_there_at_once_need_no_window(tmp_path: Path) -> None:
    chip = variant(tmp_path, "gm: {latency_l2_write: 0, write_head: 0}")

    def kernel(z: asc.GlobalAddress) -> None:
        asc.data_copy(window(z), local(0, 2048), 2048)

    (item,) = instructions(sim.launch(kernel, FLOATS, chip=chip, checks="off"), "MTE3")
    assert item.end - item.start == 128
