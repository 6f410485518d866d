"""What a core's first way through its program costs, by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.config import Chip
from ascend_sim.report.folder import write_run_folder, write_vendor
from ascend_sim.report.ledger import pipe_totals
from tests.machine.kit import instructions, local

C, A, B = 0x0000, 0x4000, 0x8000


@pytest.fixture
def fetching(toy: Chip) -> Chip:
    """The toy with code that comes from L2: 50 cycles for two lines of 128 bytes, 100 bytes a call."""
    cache = toy.icache.model_copy(update={"miss": 50.0, "prefetch": 1, "call_bytes": 100})
    return toy.model_copy(update={"icache": cache})


def add() -> None:
    asc.add(local(C, 64), local(A, 64), local(B, 64), 64)


def fetches(run: Any, core: int = 0) -> list[tuple[int, int]]:
    """Line and length of the stalls of a core that waits for code."""
    log = run.log
    return [
        (log.sites[stall.site].line, stall.end - stall.start)
        for stall in log.cores[core].stalls
        if stall.detail == "instruction cache miss"
    ]


def test_each_call_is_fetched_once(fetching: Chip, toy: Chip) -> None:
    """Six calls of 100 bytes, 256 a miss: the first, the third and the sixth wait, and no later trip does."""

    def kernel(trips: int) -> None:
        for _ in range(trips):
            asc.add(local(C, 64), local(A, 64), local(B, 64), 64)
            asc.sub(local(C, 64), local(A, 64), local(B, 64), 64)
            asc.mul(local(C, 64), local(A, 64), local(B, 64), 64)
            asc.add(local(C, 64), local(A, 64), local(B, 64), 64)
            asc.sub(local(C, 64), local(A, 64), local(B, 64), 64)
            asc.mul(local(C, 64), local(A, 64), local(B, 64), 64)

    line = kernel.__code__.co_firstlineno + 2
    for trips in (1, 3):
        run = sim.launch(kernel, trips, chip=fetching, checks="off")
        assert fetches(run) == [(line, 50), (line + 2, 50), (line + 5, 50)]
    assert fetches(sim.launch(kernel, 1, chip=toy, checks="off")) == []


def test_a_function_called_from_two_places_is_there_twice(fetching: Chip) -> None:
    def once() -> None:
        for _ in range(6):
            add()

    def thrice() -> None:
        add()
        add()
        add()

    assert len(fetches(sim.launch(once, chip=fetching, checks="off"))) == 1
    assert len(fetches(sim.launch(thrice, chip=fetching, checks="off"))) == 2


def test_each_core_fetches_for_itself_and_once_for_all_its_blocks(fetching: Chip) -> None:
    run = sim.launch(add, cores=6, physical_cores=2, chip=fetching, checks="off")
    assert [len(fetches(run, core)) for core in range(2)] == [1, 1]


def test_pipes_without_work_wait_for_the_scalar_unit(fetching: Chip) -> None:
    """The time is the scalar unit's, and what it would have fed waits because nothing was issued."""
    run = sim.launch(add, chip=fetching, checks="off")
    (first,) = instructions(run, "V")
    assert first.issue == run.log.cores[0].start + 50 + fetching.scalar.vector_issue
    totals = pipe_totals(run.log, run.ledger)["core0.aiv0"]
    assert totals["V"]["causes"]["scalar"] == 50 + fetching.scalar.vector_issue
    assert totals["S"]["causes"]["scalar"] == 50


def test_a_bare_kernel_has_no_code(fetching: Chip, toy: Chip) -> None:
    assert (
        sim.launch(lambda: None, chip=fetching).cycles == sim.launch(lambda: None, chip=toy).cycles
    )


def test_both_traces_show_the_misses_in_the_lane_for_them(fetching: Chip, tmp_path: Path) -> None:
    run = sim.launch(add, chip=fetching, checks="off")
    write_vendor(run, write_run_folder(run, tmp_path / "run"))
    begin = run.log.cores[0].start
    for name, place in (
        ("trace.json", ("core0.veccore0", "CACHEMISS")),
        ("simulator/core0.veccore0/trace.json", (110, 1)),
    ):
        events = json.loads((tmp_path / "run" / name).read_text(encoding="utf-8"))["traceEvents"]
        (miss,) = [event for event in events if event["name"] == "ICACHE_MISS"]
        assert (miss["pid"], miss["tid"]) == place
        assert (round(miss["ts"] * 1000), round(miss["dur"] * 1000)) == (begin, 50)
        assert "test_code_cache.py:" in miss["args"]["code"]
