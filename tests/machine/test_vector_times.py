"""Pipe V on the toy chip: issue 1 cycle, startup 10, 1 a repeat (at least 2 between starts), drain 10."""

from __future__ import annotations

import pytest

import ascend_sim as sim
from ascend_sim import asc
from tests.machine.kit import A, B, C, V, instructions, items, local, times, toy_run


@pytest.mark.parametrize("repeats", [1, 2, 16, 64, 128])
def test_one_add(repeats: int) -> None:
    def kernel() -> None:
        count = 64 * repeats
        asc.add(local(C, count), local(A, count), local(B, count), count)

    (add,) = instructions(run := toy_run(kernel), "V")
    assert (add.issue, add.head, add.start) == (1, 1, 1)
    assert add.accept == 1 + max(2, repeats)
    assert add.end == 1 + 10 + repeats + 10
    assert add.work == repeats
    assert run.cycles == add.end


def test_a_partial_repeat_costs_a_whole_one() -> None:
    def kernel() -> None:
        asc.add(local(C, 256), local(A, 256), local(B, 256), 129)

    (add,) = instructions(toy_run(kernel), "V")
    assert (add.work, add.end) == (3, 1 + 10 + 3 + 10)


def test_half_precision_moves_twice_the_elements() -> None:
    def kernel() -> None:
        half = [local(address, 2048, asc.float16) for address in (C, A, B)]
        asc.add(*half, 2048)

    (add,) = instructions(toy_run(kernel), "V")
    assert (add.work, add.end) == (16, 1 + 10 + 16 + 10)


def test_masked_lanes_do_not_shorten_a_repeat() -> None:
    def kernel() -> None:
        strides = asc.BinaryRepeatParams(1, 1, 1, 8, 8, 8)
        whole = [local(address, 512) for address in (C, A, B)]
        asc.add(*whole, mask=64, repeat_times=8, repeat_params=strides)
        asc.pipe_barrier(V)
        asc.add(*whole, mask=64, repeat_times=8, repeat_params=strides)
        asc.pipe_barrier(V)
        asc.add(*whole, mask=3, repeat_times=8, repeat_params=strides)

    _, full, few = instructions(toy_run(kernel), "V")
    assert full.end - full.start == few.end - few.start == 10 + 8 + 10


def test_a_slow_instruction() -> None:
    def kernel() -> None:
        asc.div(local(C, 512), local(A, 512), local(B, 512), 512)

    (div,) = instructions(toy_run(kernel), "V")
    assert div.accept - div.start == 4 * 8
    assert div.end - div.start == 20 + 4 * 8 + 10


def test_a_stream_pays_startup_and_drain_once() -> None:
    def kernel() -> None:
        for _ in range(5):
            asc.add(local(C, 1024), local(A, 1024), local(B, 1024), 1024)

    run = toy_run(kernel)
    assert times(instructions(run, "V")) == [(1 + 16 * i, 1 + 16 * i + 36) for i in range(5)]
    assert run.cycles == 1 + 5 * 16 + 10 + 10
    assert run.pipes["core0.aiv0"]["V"]["busy"] == 5 * 16 + 20


def test_short_instructions_follow_every_second_cycle() -> None:
    def kernel() -> None:
        for _ in range(6):
            asc.adds(local(C, 64), local(A, 64), 1.0, 64)

    starts = [item.start for item in instructions(toy_run(kernel), "V")]
    assert starts == [1, 3, 5, 7, 9, 11]


def test_results_retire_in_order() -> None:
    def kernel() -> None:
        asc.div(local(C, 1024), local(A, 1024), local(B, 1024), 1024)
        asc.add(local(0x20000, 64), local(0x18000, 64), local(0x1C100, 64), 64)

    div, add = instructions(toy_run(kernel), "V")
    assert (div.start, div.accept, div.end) == (1, 65, 95)
    assert add.start == 65
    assert add.end == 95  # its own 65 + 21 comes before what stands in front of it


def test_a_barrier_waits_for_the_drain() -> None:
    def kernel() -> None:
        asc.add(local(C, 1024), local(A, 1024), local(B, 1024), 1024)
        asc.pipe_barrier(V)
        asc.add(local(C, 1024), local(A, 1024), local(B, 1024), 1024)

    run = toy_run(kernel)
    assert times(instructions(run, "V")) == [(1, 37), (37, 73)]
    (barrier,) = items(run, "V", "pipe_barrier")
    assert (barrier.issue, barrier.head, barrier.start, barrier.end) == (2, 17, 37, 37)
    assert run.pipes["core0.aiv0"]["V"]["causes"] == {"busy": 72, "scalar": 1}


def test_a_barrier_with_nothing_in_flight_is_free() -> None:
    def kernel() -> None:
        asc.pipe_barrier(V)
        asc.add(local(C, 1024), local(A, 1024), local(B, 1024), 1024)

    (add,) = instructions(toy_run(kernel), "V")
    assert (add.issue, add.start) == (2, 2)


def test_nothing_to_do_takes_the_shortest_time() -> None:
    def kernel() -> None:
        asc.add(local(C, 64), local(A, 64), local(B, 64), 0)
        asc.add(local(C, 64), local(A, 64), local(B, 64), 64)

    nothing, add = instructions(toy_run(kernel), "V")
    assert (nothing.start, nothing.end) == (1, 3)
    assert add.start == 3


@pytest.mark.parametrize(
    ("places", "extra"),
    [
        pytest.param((C, A, B), 0, id="apart"),
        pytest.param((C, A, 0x8000), 16, id="both sources in the same bank groups"),
        pytest.param((0x8000, A, B), 0, id="destination behind the first source"),
        pytest.param((0x4020, A, B), 16, id="destination in banks being read"),
        pytest.param((0x18020, A, B), 0, id="destination in another bank of the group"),
        pytest.param((A, A, B), 0, id="in place"),
    ],
)
def test_bank_conflicts(places: tuple[int, int, int], extra: int) -> None:
    """Of 16 repeats each takes one cycle more where a bank group has two reads, or a bank a read and a write."""

    def kernel() -> None:
        dst, first, second = (local(address, 1024) for address in places)
        asc.add(dst, first, second, 1024)

    (add,) = instructions(run := toy_run(kernel), "V")
    assert add.accept - add.start == 16 + extra
    assert add.end - add.start == 10 + 16 + extra + 10
    assert run.stalls()["bank_conflict"] == extra


def test_an_operand_that_runs_into_another_bank() -> None:
    """Banks change every 64 KiB: of 32 repeats the last 16 write into the banks that are read."""

    def kernel(target: int) -> None:
        asc.adds(local(target, 2048), local(0x14000, 2048), 1.0, 2048)

    apart, into = (instructions(toy_run(kernel, target), "V")[0] for target in (0x8000, 0xF000))
    assert apart.accept - apart.start == 32
    assert into.accept - into.start == 32 + 16


def test_a_stride_of_eight_blocks_meets_one_group_pair() -> None:
    """Eight blocks 256 bytes apart fall into two groups: four reads each, four cycles a repeat."""

    def kernel() -> None:
        strides = asc.UnaryRepeatParams(1, 8, 8, 1)
        asc.adds(
            local(0x18000, 512), local(0, 8192), 1.0, mask=64, repeat_times=8, repeat_params=strides
        )

    (adds,) = instructions(toy_run(kernel), "V")
    assert adds.accept - adds.start == 4 * 8


def test_a_stride_of_sixteen_blocks_meets_one_group() -> None:
    """All eight blocks fall into one group: eight cycles a repeat."""

    def kernel() -> None:
        strides = asc.UnaryRepeatParams(1, 16, 8, 1)
        asc.adds(
            local(0x18000, 512), local(0, 8192), 1.0, mask=64, repeat_times=8, repeat_params=strides
        )

    (adds,) = instructions(toy_run(kernel), "V")
    assert adds.accept - adds.start == 8 * 8


def test_a_stride_of_zero_reads_once() -> None:
    def kernel() -> None:
        strides = asc.UnaryRepeatParams(1, 0, 8, 1)
        asc.adds(
            local(0x18000, 512), local(0, 64), 1.0, mask=64, repeat_times=8, repeat_params=strides
        )

    (adds,) = instructions(toy_run(kernel), "V")
    assert adds.accept - adds.start == 8


def test_on_the_910b1() -> None:
    """Core 0 starts after 1.29 us (2386.5 cycles), the end costs 1.15 us (2127.5); 216 for the code of the one call;
    issue 3, add 5.934 + 1 a repeat.
    """

    def kernel() -> None:
        for _ in range(3):
            asc.add(local(C, 4096), local(A, 4096), local(B, 4096), 4096)

    run = sim.launch(kernel, chip="ascend910b1")
    first = 2387 + 216 + 3
    assert times(instructions(run, "V")) == [
        (first, first + 86),
        (first + 64, first + 150),
        (first + 128, first + 214),
    ]
    assert run.cycles == first + 214 + 2128
    assert run.log.launch_cycles == 2387 + 2128
    assert run.time_us == pytest.approx(run.cycles / 1850)
