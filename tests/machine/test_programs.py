"""What a kernel's Python may do: functions, classes, generators, exceptions; and launches side by side."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.launch import on_run
from tests.machine.kit import (
    ALL,
    A,
    C,
    E,
    everything,
    hand_over,
    instructions,
    items,
    line_of,
    local,
    toy_run,
    window,
)

N = 256


def floats(count: int = N) -> np.ndarray[Any, Any]:
    return np.arange(count, dtype=np.float32)


def test_classes_generators_and_helpers() -> None:
    class Tile:
        def __init__(self, number: int) -> None:
            self.number = number
            self.tensor = local(A + 1024 * number, N)

        def load(self, x: Any) -> None:
            asc.data_copy(self.tensor, window(x)[N * self.number :], N)

        def __enter__(self) -> Tile:
            hand_over(E.MTE2_V, self.number)
            return self

        def __exit__(self, *_: object) -> None:
            hand_over(E.V_MTE3, self.number)

    def tiles(count: int) -> Iterator[Tile]:
        for number in range(count):
            yield Tile(number)

    @contextmanager
    def silence() -> Iterator[None]:
        yield

    def kernel(x: Any, z: Any) -> None:
        for tile in tiles(4):
            tile.load(x)
            with tile, silence():
                [asc.adds(tile.tensor, tile.tensor, 1.0, N) for _ in range(1)]
            store = lambda t: asc.data_copy(window(z)[N * t.number :], t.tensor, N)  # noqa: E731
            store(tile)

    z = np.zeros(4 * N, np.float32)
    run = toy_run(kernel, floats(4 * N), z)
    np.testing.assert_array_equal(z, floats(4 * N) + 1)
    assert run.findings == []
    sites = {run.log.sites[item.site].line for item in instructions(run, "V")}
    assert sites == {line_of(kernel, "asc.adds")}


def test_an_exception_that_the_kernel_itself_catches() -> None:
    """An instruction that was refused has never been issued."""

    def kernel(z: Any) -> None:
        try:
            asc.duplicate(local(A, N), 1.0, N + 1)
        except sim.BoundsError:
            asc.duplicate(local(A, N), 2.0, N)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z), local(A, N), N)

    z = np.zeros(N, np.float32)
    run = toy_run(kernel, z)
    assert len(instructions(run, "V")) == 1
    assert (z == 2).all()


def test_a_break_and_an_early_return() -> None:
    def kernel(x: Any) -> None:
        for part in range(100):
            if window(x).get_value(part) >= 3:
                break
            asc.duplicate(local(A, N), float(part), N)
            asc.pipe_barrier(ALL)
        else:
            raise AssertionError
        if asc.get_block_idx() == 0:
            return
        raise AssertionError

    assert len(instructions(toy_run(kernel, floats()), "V")) == 3


def test_more_items_than_the_program_runs_ahead() -> None:
    """The kernel's Python is called back in between; nothing of that shows in the times."""

    def kernel() -> None:
        for _ in range(3000):
            asc.duplicate(local(A, 64), 1.0, 64)

    run = toy_run(kernel, checks="off")
    assert [item.start for item in instructions(run, "V")] == [1 + 2 * i for i in range(3000)]


def test_what_is_printed_comes_in_program_order(capsys: pytest.CaptureFixture[str]) -> None:
    def kernel() -> None:
        print("one")
        local(A, 8).set_value(0, 4.0)
        print(local(A, 8).get_value(0))

    toy_run(kernel)
    assert capsys.readouterr().out == "one\n4.0\n"


def test_the_error_that_comes_first_in_time_is_raised() -> None:
    """Block 0 fails after 500 cycles, block 1 after 100: the run ends at the latter."""

    def kernel() -> None:
        block = asc.get_block_idx()
        for _ in range(50 if block == 0 else 10):
            local(A, 8).set_value(0, 1.0)
        local(A, 8)[9 + block :]

    with pytest.raises(sim.BoundsError) as caught:
        toy_run(kernel, cores=2)
    assert caught.value.finding.core == "core0.aiv1"
    assert caught.value.run.cycles == 100


def test_an_error_behind_a_hang_is_a_hang() -> None:
    """The wait comes first: what stands behind it is never reached."""

    def kernel() -> None:
        asc.wait_flag(E.V_S, 0)
        local(A, 8).get_value(0)
        local(A, 8)[9:]

    with pytest.raises(sim.DeadlockError):
        toy_run(kernel)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, StopIteration])
def test_exceptions_of_any_kind_come_through(error: type[BaseException]) -> None:
    def kernel() -> None:
        asc.duplicate(local(A, 64), 1.0, 64)
        raise error

    with pytest.raises(error):
        toy_run(kernel)
    assert toy_run(lambda: None).cycles == 1


def test_launches_in_several_threads() -> None:
    def kernel(x: Any, z: Any) -> None:
        block = asc.get_block_idx()
        for part in range(20):
            t = local(A + 1024 * (part % 2), N)
            asc.data_copy(t, window(x)[N * block :], N)
            hand_over(E.MTE2_V)
            asc.muls(t, t, float(part), N)
            hand_over(E.V_MTE3)
            asc.data_copy(window(z)[N * block :], t, N)
            asc.pipe_barrier(ALL)

    def launch() -> Any:
        return everything(toy_run(kernel, floats(4 * N), np.zeros(4 * N, np.float32), cores=4))

    expected = launch()
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(launch())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4


def test_a_launch_from_inside_a_listener() -> None:
    """Somebody who watches runs may start one."""
    inner: list[sim.Run] = []

    def listen(run: sim.Run) -> None:
        if not inner:
            inner.append(run)
            inner.append(toy_run(lambda: None))

    on_run.append(listen)
    try:
        run = toy_run(lambda: asc.duplicate(local(A, 64), 1.0, 64))
    finally:
        on_run.remove(listen)
    assert inner[0] is run
    assert inner[1].cycles == 1


# ---- what a call site is --------------------------------------------------------------------


def test_every_line_of_a_loop_is_one_place_and_counts_its_hits() -> None:
    def kernel() -> None:
        asc.duplicate(local(A, 64), 1.0, 64)
        for _ in range(10):
            asc.adds(local(C, 64), local(A, 64), 1.0, 64)  # here
            asc.adds(local(A, 64), local(C, 64), 1.0, 64)  # there

    run = toy_run(kernel)
    assert len(run.findings) < 12
    raw = next(
        finding
        for finding in run.findings
        if finding.code == "race-raw"
        and finding.line == line_of(kernel, "# there")
        and finding.related[0]["line"] == line_of(kernel, "# here")
    )
    assert raw.hits == 10


def test_two_calls_on_one_line_are_two_instructions_at_one_place() -> None:
    def kernel() -> None:
        asc.duplicate(local(A, 64), 1.0, 64), asc.duplicate(local(C, 64), 1.0, 64)

    first, second = instructions(toy_run(kernel), "V")
    assert first.site != 0
    assert first is not second


def test_detail_of_an_instruction() -> None:
    def kernel(x: Any) -> None:
        asc.data_copy(local(A, 64), window(x)[8:], 64)
        hand_over(E.MTE2_V)
        asc.adds(local(C, 64), local(A, 64), 1.0, 64)

    run = toy_run(kernel, floats())
    (load,), (adds,) = instructions(run, "MTE2"), instructions(run, "V")
    assert load.call.detail() == f"dst:UB+{A:#x} UB[0:256],src:GM x[32:288],len:256,count:64"
    assert f"dst:UB+{C:#x}" in adds.call.detail()
    assert "repeat:1" in adds.call.detail()


def test_phases() -> None:
    def kernel() -> None:
        asc.duplicate(local(A, 64), 1.0, 64)
        sim.phase("main")
        asc.duplicate(local(A + 256, 64), 1.0, 64)
        asc.duplicate(local(A + 512, 64), 1.0, 64)
        sim.phase("post")
        asc.duplicate(local(A + 768, 64), 1.0, 64)
        sim.phase("main")
        asc.duplicate(local(A + 1024, 64), 1.0, 64)

    run = toy_run(kernel)
    assert run.log.phases == ["", "main", "post"]
    assert [item.phase for item in items(run, "V")] == [0, 1, 1, 2, 1]
    counts = {name: entry["instructions"] for name, entry in run.summary["phases"].items()}
    assert counts["main"]["aiv"]["V"] == 3
    assert counts["post"]["aiv"]["V"] == 1
    assert (
        run.cycles
        == toy_run(
            lambda: [asc.duplicate(local(A + 256 * i, 64), 1.0, 64) for i in range(5)] and None
        ).cycles
    )
