"""Automatic synchronisation on random programs of vector instructions, loads, stores and scalar accesses."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_sim import asc
from ascend_sim.run import Run
from tests.machine.kit import E, V, hand_over, items, local, toy_run, window

SLOTS = 5
SIZE = 64  # float32: one repeat
STEP = st.tuples(
    st.sampled_from(["add", "fill", "get", "set", "barrier", "wait", "load", "store"]),
    st.integers(0, SLOTS - 1),
    st.integers(0, SLOTS - 1),
    st.integers(0, SIZE - 1),
)
LOADS = {"load", "store"}


def _slot(number: int) -> asc.LocalTensor:
    return local(number * SIZE * 4, SIZE)


def _expected(steps: list[tuple[str, int, int, int]], x: np.ndarray[Any, Any]) -> Any:
    """What the program computes where each step ends before the next begins."""
    ub = np.zeros((SLOTS, SIZE), np.float32)
    z = np.zeros((SLOTS, SIZE), np.float32)
    seen = []
    for what, to, source, place in steps:
        if what == "add":
            ub[to] = ub[source] + np.float32(1)
        elif what == "fill":
            ub[to] = place
        elif what == "get":
            seen.append(float(ub[source, place]))
        elif what == "set":
            ub[to, place] = 100 + to
        elif what == "load":
            ub[to] = x[source]
        elif what == "store":
            z[to] = ub[source]
    return seen, z


def _run(steps: list[tuple[str, int, int, int]], x: Any, z: Any, *, auto_sync: bool) -> Any:
    seen: list[float] = []

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        asc.duplicate(local(0, SLOTS * SIZE), 0.0, SLOTS * SIZE)
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        for what, to, source, place in steps:
            if what in LOADS:  # between V and the copies only the kernel orders
                asc.pipe_barrier(asc.PipeID.PIPE_ALL)
            if what == "add":
                asc.adds(_slot(to), _slot(source), 1.0, SIZE)
            elif what == "fill":
                asc.duplicate(_slot(to), float(place), SIZE)
            elif what == "get":
                seen.append(float(_slot(source).get_value(place)))
            elif what == "set":
                _slot(to).set_value(place, 100.0 + to)
            elif what == "barrier":
                asc.pipe_barrier(V)
            elif what == "wait":
                hand_over(E.V_S)
            elif what == "load":
                asc.data_copy(_slot(to), window(x)[source * SIZE :], SIZE)
                hand_over(E.MTE2_V)
            elif what == "store":
                asc.data_copy(window(z)[to * SIZE :], _slot(source), SIZE)
                hand_over(E.MTE3_V)

    run: Run = toy_run(kernel, x, z, auto_sync=auto_sync)
    return run, seen


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.lists(STEP, min_size=1, max_size=24))
def test_what_it_inserts_is_enough(steps: list[tuple[str, int, int, int]]) -> None:
    x = np.arange(SLOTS * SIZE, dtype=np.float32).reshape(SLOTS, SIZE)
    z = np.zeros_like(x)
    run, seen = _run(steps, x, z, auto_sync=True)
    wanted, stored = _expected(steps, x)
    assert [finding for finding in run.findings if finding.kind != "COVERAGE"] == []
    assert seen == wanted
    np.testing.assert_array_equal(z, stored)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.lists(STEP, min_size=1, max_size=24))
def test_it_inserts_nothing_where_the_kernel_needs_nothing(
    steps: list[tuple[str, int, int, int]],
) -> None:
    """A kernel without findings is left as it is: each insertion answers a hazard."""
    x = np.arange(SLOTS * SIZE, dtype=np.float32).reshape(SLOTS, SIZE)
    bare, _ = _run(steps, x, np.zeros_like(x), auto_sync=False)
    if any(finding.kind == "RACE" for finding in bare.findings):
        return
    run, _ = _run(steps, x, np.zeros_like(x), auto_sync=True)
    assert [item for item in items(run) if item.inserted] == []
    assert run.cycles == bare.cycles
