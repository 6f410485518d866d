"""Random programs of scalar accesses, copies and synchronisation: where nothing is found, the numbers are right.

A program is a list of steps of several vector cores, in one order in which all of them can happen. Executed one by one
in that order, without caches and pipes, they give numbers; a simulated run without findings gives the same, whatever
its times.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_sim import asc
from ascend_sim.run import Run
from tests.machine.kit import E, toy_run, window

WORDS = 48
"""int32 in GM: three lines of the data cache."""
PIECE = 8
FLAGS = ("MTE2_S", "S_MTE2", "MTE3_S", "S_MTE3", "MTE2_MTE3", "MTE3_MTE2")


@dataclass
class Step:
    core: int
    what: str
    place: int = 0
    value: int = 0
    event: str = ""


def draw(seed: int) -> list[Step]:
    r = random.Random(seed)
    cores = r.randint(1, 3)
    steps: list[Step] = []
    for number in range(r.randint(3, 18)):
        core = r.randrange(cores)
        what = r.choices(
            ("get", "put", "load", "store", "clean", "clean all", "flag", "barrier", "meet"),
            (4, 4, 3, 3, 3, 2, 3, 4, 4),
        )[0]
        place = r.randrange(WORDS // PIECE) * PIECE + (
            r.randrange(PIECE) if what in ("get", "put") else 0
        )
        if what == "meet":
            steps += [Step(one, "meet") for one in range(cores)]
        else:
            steps.append(Step(core, what, place, 100 + number, r.choice(FLAGS)))
    return steps


def one_by_one(steps: list[Step]) -> tuple[list[int], list[int]]:
    """Return what the reads see and what GM holds at the end, step after step."""
    gm = np.arange(WORDS, dtype=np.int32)
    own: dict[int, Any] = {}
    seen = []
    for step in steps:
        piece = slice(step.place, step.place + PIECE)
        if step.what == "get":
            seen.append(int(gm[step.place]))
        elif step.what == "put":
            gm[step.place] = step.value
        elif step.what == "load":
            own[step.core] = gm[piece].copy()
        elif step.what == "store" and step.core in own:
            gm[piece] = own[step.core]
    return seen, gm.tolist()


def kernel(z: asc.GlobalAddress, steps: list[Step], seen: dict[int, int]) -> None:
    gm = window(z)
    ub = asc.LocalTensor(asc.int32, asc.TPosition.VECCALC, 0, PIECE)
    loaded = False
    for number, step in enumerate(steps):
        if step.core != asc.get_block_idx():
            continue
        if step.what == "get":
            seen[number] = gm.get_value(step.place)
        elif step.what == "put":
            gm.set_value(step.place, step.value)
        elif step.what == "load":
            asc.data_copy(ub, gm[step.place :], PIECE)
            loaded = True
        elif step.what == "store" and loaded:
            asc.data_copy(gm[step.place :], ub, PIECE)
        elif step.what == "clean":
            asc.data_cache_clean_and_invalid(asc.CacheLine.SINGLE_CACHE_LINE, gm[step.place :])
        elif step.what == "clean all":
            asc.data_cache_clean_and_invalid(asc.CacheLine.ENTIRE_DATA_CACHE, gm)
        elif step.what == "flag":
            asc.set_flag(getattr(E, step.event), 0)
            asc.wait_flag(getattr(E, step.event), 0)
        elif step.what == "barrier":
            asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        elif step.what == "meet":
            asc.sync_all()


def go(steps: list[Step], **options: Any) -> tuple[Run, list[int], list[int]]:
    z = np.arange(WORDS, dtype=np.int32)
    seen: dict[int, int] = {}
    cores = 1 + max(step.core for step in steps)
    run = toy_run(partial(kernel, steps=steps, seen=seen), z, cores=cores, names=["z"], **options)
    return run, [seen[number] for number in sorted(seen)], z.tolist()


VERDICTS = {True: 0, False: 0}


def check(seed: int) -> None:
    steps = draw(seed)
    run, seen, gm = go(steps)
    silent = all(finding.kind == "COVERAGE" for finding in run.findings)
    VERDICTS[silent] += 1
    if silent:
        assert (seen, gm) == one_by_one(steps), seed


@settings(max_examples=150, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1 << 32))
def test_without_findings_the_numbers_are_right(seed: int) -> None:
    check(seed)


def in_turn(steps: list[Step]) -> list[Step]:
    """Every step behind a clean cache and empty pipes, and everybody waits for it."""
    cores = range(1 + max(step.core for step in steps))
    result = []
    for step in steps:
        if step.what in ("get", "put", "load", "store"):
            result += [Step(step.core, "clean all"), step, Step(step.core, "clean all")]
            result += [Step(one, "meet") for one in cores]
    return result or [Step(0, "barrier")]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1 << 32))
def test_one_after_the_other_there_is_nothing_to_find(seed: int) -> None:
    steps = in_turn(draw(seed))
    run, seen, gm = go(steps)
    assert [finding for finding in run.findings if finding.kind != "COVERAGE"] == []
    assert (seen, gm) == one_by_one(steps)


def test_both_verdicts_occurred() -> None:
    assert min(VERDICTS.values()) > 20


@pytest.mark.slow
def test_many_random_programs() -> None:
    for seed in range(5000):
        check(seed)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1 << 32))
def test_a_verdict_does_not_depend_on_time(seed: int) -> None:
    steps = draw(seed)
    found = [
        sorted((f.kind, f.code, f.line, f.bytes or ()) for f in go(steps, chip=chip)[0].findings)
        for chip in ("toy", "ascend910b1")
    ]
    assert found[0] == found[1]
