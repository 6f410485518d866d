"""Loads and stores on the toy chip.

Issue 10, HBM 200 and L2 100 cycles away, 64 bytes a cycle through a core's port, in sectors of 128 bytes. Loads
overlap their latencies; a store holds its pipe for 100 cycles and its bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.trace import Cause, MemoryCause
from tests.machine.kit import MTE2, instructions, local, times, toy_run, variant, window


def floats(count: int) -> np.ndarray[Any, Any]:
    return np.arange(count, dtype=np.float32)


def load(count: int, start: int = 0, address: int = 0) -> Any:
    def kernel(x: asc.GlobalAddress) -> None:
        asc.data_copy(local(address, count), window(x)[start:], count)

    return kernel


@pytest.mark.parametrize(("l2", "latency"), [("cold", 200), ("warm", 100)])
def test_one_load(l2: str, latency: int) -> None:
    run = toy_run(load(1024), floats(1024), l2=l2)
    (item,) = instructions(run, "MTE2")
    assert (item.issue, item.start, item.accept) == (10, 10, 20)
    assert item.end == 10 + latency + 4096 // 64
    assert run.cycles == item.end
    assert item.bytes == 4096


def test_what_a_cold_load_waits_for() -> None:
    (item,) = instructions(run := toy_run(load(1024), floats(1024)), "MTE2")
    assert item.parts == (
        (Cause.MEMORY, MemoryCause.LATENCY, 110),
        (Cause.MEMORY, MemoryCause.L2_MISS, 210),
        (Cause.BUSY, None, 274),
    )
    totals = run.pipes["core0.aiv0"]["MTE2"]
    assert totals["causes"] == {"scalar": 10, "busy": 64, "memory": 200}
    assert totals["memory"] == {"latency": 100, "l2_miss": 100}


@pytest.mark.parametrize(
    ("start", "count", "sectors"),
    [(0, 8, 1), (0, 32, 1), (0, 40, 2), (16, 32, 2), (24, 8, 1), (16, 64, 3), (31, 8, 2)],
)
def test_loads_move_whole_sectors(start: int, count: int, sectors: int) -> None:
    run = toy_run(load(count, start), floats(1024))
    (item,) = instructions(run, "MTE2")
    assert item.end == 10 + 200 + 2 * sectors
    assert item.bytes == 4 * count
    assert run.memory["l2_miss_bytes"] == 128 * sectors


def test_latencies_of_loads_overlap_and_bytes_queue() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        for part in range(4):
            asc.data_copy(local(4096 * part, 1024), window(x)[1024 * part :], 1024)

    run = toy_run(kernel, floats(4096))
    loads = instructions(run, "MTE2")
    # One load waits for the port with the bytes before it; the others stay in the queue.
    assert [item.start for item in loads] == [10, 20, 74, 138]
    assert [item.end for item in loads] == [210 + 64, 210 + 128, 210 + 192, 210 + 256]
    totals = run.pipes["core0.aiv0"]["MTE2"]
    assert totals["causes"] == {"scalar": 10, "busy": 256, "memory": 200}
    assert totals["utilization"] == pytest.approx(256 / 466, abs=1e-6)


def test_small_loads_are_limited_by_their_issue() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        for part in range(8):
            asc.data_copy(local(128 * part, 32), window(x)[32 * part :], 32)

    loads = instructions(toy_run(kernel, floats(256)), "MTE2")
    assert times(loads) == [(10 * i, 10 * i + 2 + 200) for i in range(1, 9)]


def test_a_barrier_of_mte2_takes_the_latency_again() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        asc.data_copy(local(0, 1024), window(x), 1024)
        asc.pipe_barrier(MTE2)
        asc.data_copy(local(4096, 1024), window(x)[1024:], 1024)

    assert times(instructions(toy_run(kernel, floats(2048)), "MTE2")) == [(10, 274), (274, 538)]


def test_strided_rows_cost_their_sectors() -> None:
    """Eight rows of 64 bytes, 512 apart: eight sectors of 128 bytes."""

    def kernel(x: asc.GlobalAddress) -> None:
        asc.data_copy(local(0, 128), window(x), asc.DataCopyParams(8, 2, 14, 0))

    (item,) = instructions(toy_run(kernel, floats(1024)), "MTE2")
    assert (item.end, item.bytes) == (10 + 200 + 8 * 2, 512)


def test_a_second_load_of_the_same_bytes_hits_l2() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        asc.data_copy(local(0, 1024), window(x), 1024)
        asc.pipe_barrier(MTE2)
        asc.data_copy(local(4096, 1024), window(x), 1024)

    run = toy_run(kernel, floats(1024))
    assert times(instructions(run, "MTE2")) == [(10, 274), (274, 438)]
    assert run.memory == {"l2_hit_bytes": 4096, "l2_miss_bytes": 4096, "write_back_bytes": 0}


def test_a_tensor_that_bypasses_l2_misses_every_time() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        tensor = window(x)
        tensor.set_l2_cache_hint(asc.CacheMode.CACHE_MODE_DISABLE)
        for part in range(2):
            asc.data_copy(local(4096 * part, 1024), tensor, 1024)
            asc.pipe_barrier(MTE2)

    assert times(instructions(toy_run(kernel, floats(1024), l2="warm"), "MTE2")) == [
        (10, 274),
        (274, 538),
    ]


def test_what_a_store_wrote_hits_l2() -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        asc.duplicate(local(0, 1024), 3.0, 1024)
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        asc.data_copy(window(z), local(0, 1024), 1024)
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        asc.data_copy(local(4096, 1024), window(z), 1024)

    (back,) = instructions(toy_run(kernel, floats(1024)), "MTE2")
    assert back.end - back.start == 100 + 64


def test_l2_forgets_what_has_not_been_used_longest(tmp_path: Path) -> None:
    """An L2 of eight sectors: after eight others the first one has to come from HBM again."""
    small = variant(tmp_path, "l2: {bytes: 1024}")

    def kernel(x: asc.GlobalAddress, others: int) -> None:
        for sector in [0, *range(1, 1 + others), 0]:
            asc.data_copy(local(128 * sector, 32), window(x)[32 * sector :], 32)
            asc.pipe_barrier(MTE2)

    def last(others: int) -> int:
        item = instructions(sim.launch(kernel, floats(512), others, chip=small), "MTE2")[-1]
        return item.end - item.start

    assert last(7) == 100 + 2
    assert last(8) == 200 + 2


def test_a_warm_l2_holds_no_more_than_fits(tmp_path: Path) -> None:
    """Two arrays of 3072 bytes and an L2 of 4096: some of it must come from HBM."""
    small = variant(tmp_path, "l2: {bytes: 4096}")

    def kernel(x: asc.GlobalAddress, y: asc.GlobalAddress) -> None:
        for part in range(6):
            for number, array in enumerate((x, y)):
                asc.data_copy(local(0x8000 * number, 128), window(array)[128 * part :], 128)
                asc.pipe_barrier(MTE2)

    run = sim.launch(kernel, floats(768), floats(768), chip=small, l2="warm")
    assert run.memory["l2_hit_bytes"] <= 4096
    assert run.memory["l2_miss_bytes"] >= 2048


def test_dirty_sectors_are_written_back_when_they_leave_l2(tmp_path: Path) -> None:
    small = variant(tmp_path, "l2: {bytes: 1024}\nhbm: {gbps: 64}")

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        asc.duplicate(local(0, 128), 3.0, 128)
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        asc.data_copy(window(z), local(0, 128), 128)  # four dirty sectors
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        for part in range(4):
            asc.data_copy(local(1024, 128), window(x)[128 * part :], 128)
            asc.pipe_barrier(MTE2)

    run = sim.launch(kernel, floats(512), floats(128), chip=small)
    assert run.memory["write_back_bytes"] == 512
    # Eight sectors fit: the second load pushes the four dirty ones out, and twice the bytes pass HBM.
    assert [item.end - item.start for item in instructions(run, "MTE2")] == [208, 216, 208, 208]


def test_a_dirty_l2_gives_way_to_what_comes(tmp_path: Path) -> None:
    narrow = variant(tmp_path, "l2: {bytes: 2048}\nhbm: {gbps: 64}")

    def kernel(x: asc.GlobalAddress) -> None:
        for part in range(4):
            asc.data_copy(local(0, 256), window(x)[256 * part :], 256)
            asc.pipe_barrier(MTE2)

    run = sim.launch(kernel, floats(1024), chip=narrow, l2="dirty")
    assert run.memory["write_back_bytes"] == 2048
    # 1 KiB each; the first two push as much out of L2, and HBM moves both.
    assert [item.end - item.start for item in instructions(run, "MTE2")] == [232, 232, 216, 216]


def test_reads_and_writes_in_turn_cost_hbm_more(tmp_path: Path) -> None:
    narrow = variant(tmp_path, "hbm: {gbps: 64, turnaround: 0.5}")
    run = sim.launch(load(1024), floats(1024), chip=narrow, l2="dirty")
    (item,) = instructions(run, "MTE2")
    assert item.end - item.start == 200 + 2.5 * 4096 / 64


def test_an_unaligned_burst_takes_each_line_whole(tmp_path: Path) -> None:
    (item,) = instructions(toy_run(load(128, start=8), floats(1024)), "MTE2")
    assert item.end - item.start == 200 + 2 * 512 // 64  # 512 bytes from byte 32 on, in two lines
    (item,) = instructions(toy_run(load(128, start=32), floats(1024)), "MTE2")
    assert item.end - item.start == 200 + 512 // 64  # from a sector's border on


def test_each_core_with_misses_in_flight_adds_to_the_latency_of_a_miss(tmp_path: Path) -> None:
    crowded = variant(tmp_path, "gm: {crowd: 5}")

    def kernel(x: asc.GlobalAddress) -> None:
        asc.data_copy(local(0, 32), window(x)[128 * asc.get_block_idx() :], 32)

    for l2, ends in (("cold", [212, 217, 222, 227]), ("warm", [112] * 4)):
        run = sim.launch(kernel, floats(512), cores=4, chip=crowded, l2=l2)
        assert [instructions(run, "MTE2", core)[0].end for core in range(4)] == ends


def store(sizes: list[int]) -> Any:
    def kernel(z: asc.GlobalAddress) -> None:
        asc.duplicate(local(0, 4096), 3.0, 4096)
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        for size in sizes:
            asc.data_copy(window(z), local(0, size), size)

    return kernel


def test_stores_follow_one_another() -> None:
    """The fill ends at 1 + 10 + 64 + 10 = 85; each store holds the pipe for 100 cycles and its bytes."""
    run = toy_run(store([1024, 2048, 32]), floats(4096))
    first = 85 + 10
    assert times(instructions(run, "MTE3")) == [
        (first, first + 164),
        (first + 164, first + 164 + 228),
        (first + 392, first + 392 + 102),
    ]
    assert run.cycles == first + 392 + 102


def test_a_short_store_is_seen_complete_after_the_write_latency(tmp_path: Path) -> None:
    """The pipe is free after its head and bytes; who waits for the store waits at least the latency."""
    chip = variant(tmp_path, "gm: {latency_l2_write: 300}")
    run = sim.launch(store([32, 32]), floats(4096), chip=chip)
    first = 85 + 10
    one, two = instructions(run, "MTE3")
    assert (one.start, one.accept, one.end) == (first, first + 102, first + 300)
    assert (two.start, two.accept, two.end) == (first + 102, first + 204, first + 402)
    assert run.cycles == two.end


def test_store_on_the_910b1() -> None:
    """The pipe is taken for 124 cycles and the bytes at 77 a cycle, its end is seen after 238 at the earliest."""
    run = sim.launch(store([32, 2464]), floats(4096), chip="ascend910b1")
    small, large = instructions(run, "MTE3")
    assert small.accept - small.start == 124 + 2  # 128 bytes
    assert small.end - small.start == 238
    assert large.start == small.accept
    assert large.accept - large.start == large.end - large.start == 124 + 128  # 9856 bytes


@pytest.mark.parametrize(("l2", "expected"), [("warm", 216 + 128), ("cold", 420 + 306)])
def test_load_on_the_910b1(l2: str, expected: int) -> None:
    """16 KiB: 128 bytes a cycle on hits; on misses the window of 22528 bytes in 420 cycles, 53.6 a cycle."""
    run = sim.launch(load(4096), floats(4096), chip="ascend910b1", l2=l2)
    (item,) = instructions(run, "MTE2")
    assert item.end - item.start == expected


def test_one_core_alone_shares_with_nobody() -> None:
    """Cycles lost to rounding must not be booked as another core's share."""
    run = sim.launch(load(1024), floats(1024), chip="ascend910b1")
    assert "share" not in run.pipes["core0.aiv0"]["MTE2"]["memory"]


# ---- several cores --------------------------------------------------------------------------


def shares(lengths: list[int]) -> Any:
    """Block b loads `lengths[b]` floats of its own."""

    def kernel(x: asc.GlobalAddress) -> None:
        block = asc.get_block_idx()
        count = lengths[block]
        asc.data_copy(local(0, count), window(x)[sum(lengths[:block]) :], count)

    return kernel


def test_two_cores_share_hbm(tmp_path: Path) -> None:
    """64 bytes a cycle for both: 4096 bytes each at 32 a cycle, 128 cycles."""
    chip = variant(tmp_path, "hbm: {gbps: 64}")
    run = sim.launch(shares([1024, 1024]), floats(2048), cores=2, chip=chip)
    for core in (0, 1):
        assert times(instructions(run, "MTE2", core)) == [(10, 10 + 200 + 128)]
        totals = run.pipes[f"core0.aiv{core}"]["MTE2"]
        assert totals["causes"] == {"scalar": 10, "memory": 264, "busy": 64}
        assert totals["memory"] == {"latency": 100, "l2_miss": 100, "share": 64}


def test_the_longer_transfer_gets_the_rest(tmp_path: Path) -> None:
    chip = variant(tmp_path, "hbm: {gbps: 64}")
    run = sim.launch(shares([1024, 2048]), floats(3072), cores=2, chip=chip)
    assert times(instructions(run, "MTE2", 0)) == [(10, 210 + 128)]
    assert times(instructions(run, "MTE2", 1)) == [(10, 210 + 128 + 64)]


def test_a_later_transfer_slows_an_earlier_one_down(tmp_path: Path) -> None:
    """Core 1 issues 50 cycles later. Core 0 has moved 3200 bytes alone, then both move at 32 a cycle."""
    chip = variant(tmp_path, "hbm: {gbps: 64}")

    def kernel(x: asc.GlobalAddress) -> None:
        block = asc.get_block_idx()
        if block == 1:
            for _ in range(5):
                local(0x20000, 8).get_value(0)  # 10 cycles each
        asc.data_copy(local(0, 1024), window(x)[1024 * block :], 1024)

    run = sim.launch(kernel, floats(2048), cores=2, chip=chip, checks="off")
    both = (4096 - 50 * 64) // 32
    assert times(instructions(run, "MTE2", 0)) == [(10, 210 + 50 + both)]
    assert times(instructions(run, "MTE2", 1)) == [(60, 210 + 50 + both + (4096 - both * 32) // 64)]


def test_hits_share_l2_and_not_hbm(tmp_path: Path) -> None:
    chip = variant(tmp_path, "hbm: {gbps: 1}\nl2: {read_gbps: 96}")
    run = sim.launch(shares([1024, 1024]), floats(2048), cores=2, chip=chip, l2="warm")
    for core in (0, 1):
        (item,) = instructions(run, "MTE2", core)
        assert item.end == 10 + 100 + 86  # 4096 bytes at 48 a cycle, 85.3


def test_reads_and_writes_share_l2(tmp_path: Path) -> None:
    """One core stores and one loads on hits, 96 bytes a cycle for both together: 48 each."""
    chip = variant(tmp_path, "l2: {mixed_gbps: 96}")

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        if asc.get_block_idx() == 0:
            asc.data_copy(local(0, 1536), window(x), 1536)
        else:
            asc.data_copy(window(z), local(0, 1536), 1536)

    run = sim.launch(
        kernel, floats(1536), floats(1536), cores=2, chip=chip, l2="warm", checks="off"
    )
    assert times(instructions(run, "MTE2", 0)) == [(10, 10 + 100 + 128)]
    assert times(instructions(run, "MTE3", 1)) == [(10, 10 + 100 + 128)]


def test_a_core_that_loads_and_stores_shares_its_bus(tmp_path: Path) -> None:
    """A bus of 96 bytes a cycle for both directions: 48 each while both move, 64 alone."""
    chip = variant(tmp_path, "gm: {read_write_sum_aiv: 96}")

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        asc.data_copy(window(z), local(0, 1536), 1536)
        asc.data_copy(local(8192, 1536), window(x), 1536)

    run = sim.launch(kernel, floats(1536), floats(1536), chip=chip, l2="warm", checks="off")
    # The store's bytes begin at 10, the load's at 20; 6144 bytes each.
    alone = 10 * 64
    together = (6144 - alone) / 48
    assert times(instructions(run, "MTE3")) == [(10, 10 + 100 + 10 + round(together + 0.5))]
    (item,) = instructions(run, "MTE2")
    rest = 6144 - together * 48
    assert item.end == pytest.approx(20 + 100 + together + rest / 64, abs=1)


def test_the_vector_cores_of_a_pair_share_their_window(tmp_path: Path) -> None:
    """9600 bytes of misses under way for a pair, 200 cycles each: 48 a cycle, 24 for each of the two."""
    chip = variant(tmp_path, "gm: {window_core: 9600}")

    def kernel(x: asc.GlobalAddress) -> None:
        block = asc.get_block_idx()
        if block != 1:
            asc.data_copy(local(0, 768), window(x)[768 * block :], 768)

    two = sim.launch(shares([768, 768]), floats(1536), cores=2, chip=chip)
    assert [times(instructions(two, "MTE2", core)) for core in (0, 1)] == [[(10, 210 + 128)]] * 2
    apart = sim.launch(kernel, floats(768 * 3), cores=3, chip=chip)
    assert [times(instructions(apart, "MTE2", core)) for core in (0, 2)] == [[(10, 210 + 64)]] * 2


def test_values_arrive() -> None:
    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        asc.data_copy(local(0, 256), window(x)[128:], 256)
        asc.set_flag(asc.HardEvent.MTE2_MTE3, 0)
        asc.wait_flag(asc.HardEvent.MTE2_MTE3, 0)
        asc.data_copy(window(z)[64:], local(0, 256), 256)

    z = np.zeros(512, np.float32)
    run = toy_run(kernel, floats(512), z)
    expected = np.zeros(512, np.float32)
    expected[64:320] = np.arange(128, 384)
    np.testing.assert_array_equal(z, expected)
    assert run.coverage == {"z": [(0, 256), (1280, 2048)]}
    (load_item,), (store_item,) = instructions(run, "MTE2"), instructions(run, "MTE3")
    assert load_item.end == 10 + 200 + 16
    assert store_item.start == load_item.end + 1 + 10
