"""One kernel, every synchronisation optional: the verdict for each combination against a one-line predicate."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from ascend_sim import asc
from ascend_sim.errors import DeadlockError
from ascend_sim.run import Run
from tests.machine.kit import E, V, line_of, local, toy_run, window

N = 256
TILES = 5
SLOTS = 2
X, Y, Z = 0, 0x8100, 0x12000


def inputs() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    generator = np.random.default_rng(0)
    x, y = (generator.normal(size=N * TILES).astype(np.float32) for _ in range(2))
    return x, y, np.zeros(N * TILES, np.float32)


def kind_set(run: Run) -> set[str]:
    return {finding.kind for finding in run.findings}


# ---- static tensors and flags ---------------------------------------------------------------

PAIRS = ("loaded", "read", "added", "stored")
"""MTE2_V: the inputs are there. V_MTE2: they have been read. V_MTE3: the sum is there. MTE3_V: it is out."""


def static_add(x: Any, y: Any, z: Any, sets: frozenset[str], waits: frozenset[str]) -> None:
    """z = x + y in tiles, two slots in turn; a slot's first use needs no flag back, its last use sets none."""
    x_gm, y_gm, z_gm = window(x), window(y), window(z)
    for i in range(TILES):
        slot = i % SLOTS
        a, b, c = (local(place + 4 * N * slot, N) for place in (X, Y, Z))
        again, once_more = i >= SLOTS, i + SLOTS < TILES
        if again and "read" in waits:
            asc.wait_flag(E.V_MTE2, slot)
        asc.data_copy(a, x_gm[i * N :], N)  # load x
        asc.data_copy(b, y_gm[i * N :], N)  # load y
        if "loaded" in sets:
            asc.set_flag(E.MTE2_V, slot)
        if "loaded" in waits:
            asc.wait_flag(E.MTE2_V, slot)
        if again and "stored" in waits:
            asc.wait_flag(E.MTE3_V, slot)
        asc.add(c, a, b, N)  # add
        if once_more and "read" in sets:
            asc.set_flag(E.V_MTE2, slot)
        if "added" in sets:
            asc.set_flag(E.V_MTE3, slot)
        if "added" in waits:
            asc.wait_flag(E.V_MTE3, slot)
        asc.data_copy(z_gm[i * N :], c, N)  # store
        if once_more and "stored" in sets:
            asc.set_flag(E.MTE3_V, slot)


def subsets() -> list[frozenset[str]]:
    return [
        frozenset(name for name, there in zip(PAIRS, chosen, strict=True) if there)
        for chosen in product((True, False), repeat=len(PAIRS))
    ]


@pytest.mark.parametrize("sets", subsets(), ids=lambda chosen: "+".join(sorted(chosen)) or "none")
def test_static_flags(sets: frozenset[str]) -> None:
    for waits in subsets():
        x, y, z = inputs()
        hangs = bool(waits - sets)
        races = sets & waits != set(PAIRS)
        left = bool(sets - waits)
        if hangs:
            with pytest.raises(DeadlockError):
                toy_run(static_add, x, y, z, sets, waits)
            continue
        run = toy_run(static_add, x, y, z, sets, waits)
        expected = ({"RACE"} if races else set()) | ({"FLAG_BALANCE"} if left else set())
        assert kind_set(run) - {"UNINIT"} == expected
        if not races:
            np.testing.assert_array_equal(z, x + y)


RACES = {
    "loaded": ("race-raw", "# add", "# load x"),
    "read": ("race-war", "# load x", "# add"),
    "added": ("race-raw", "# store", "# add"),
    "stored": ("race-war", "# add", "# store"),
}


@pytest.mark.parametrize("missing", PAIRS)
def test_which_race_a_missing_pair_makes(missing: str) -> None:
    x, y, z = inputs()
    chosen = frozenset(PAIRS) - {missing}
    run = toy_run(static_add, x, y, z, chosen, chosen)
    code, later, earlier = RACES[missing]
    found = [
        (finding.code, finding.line, finding.related[0]["line"])
        for finding in run.findings
        if finding.kind == "RACE"
    ]
    assert (code, line_of(static_add, later), line_of(static_add, earlier)) in found


def test_a_missing_flag_forward_gives_wrong_numbers() -> None:
    for missing in ("loaded", "added"):
        x, y, z = inputs()
        chosen = frozenset(PAIRS) - {missing}
        run = toy_run(static_add, x, y, z, chosen, chosen)
        assert not np.array_equal(z, x + y)
        assert any(finding.struck for finding in run.findings)


# ---- queues ---------------------------------------------------------------------------------

PARTS = ("in", "out", "chain", "reuse")
"""The input's enque and deque, the output's, the barrier between two dependent vector instructions, and the one
that keeps a tile's first write of the work buffer behind the last reads of the tile before."""


def queue_kernel(x: Any, z: Any, there: frozenset[str], buffers: int) -> None:
    """z = (x + 1) * 0.5 through a work buffer."""
    pipe = asc.TPipe()
    source, target, work = (
        asc.TQue(asc.TPosition.VECIN, 1),
        asc.TQue(asc.TPosition.VECOUT, 1),
        asc.TBuf(),
    )
    pipe.init_buffer(que=source, num=buffers, len=4 * N)
    pipe.init_buffer(que=target, num=buffers, len=4 * N)
    pipe.init_buffer(work, 4 * N)
    for i in range(TILES):
        a = source.alloc_tensor(asc.float32)
        asc.data_copy(a, window(x)[i * N :], N)
        if "in" in there:
            source.enque(a)
            a = source.deque(asc.float32)
        c, w = target.alloc_tensor(asc.float32), work.get(asc.float32)
        asc.adds(w, a, 1.0, N)
        if "chain" in there:
            asc.pipe_barrier(V)
        asc.muls(c, w, 0.5, N)
        if "reuse" in there:
            asc.pipe_barrier(V)
        source.free_tensor(a)
        if "out" in there:
            target.enque(c)
            c = target.deque(asc.float32)
        asc.data_copy(window(z)[i * N :], c, N)
        target.free_tensor(c)


@pytest.mark.parametrize("there", [frozenset(s) for s in product(*((name, "") for name in PARTS))])
def test_queues_with_two_buffers(there: frozenset[str]) -> None:
    x, _, z = inputs()
    run = toy_run(queue_kernel, x, z, there, 2)
    correct = there >= set(PARTS)
    assert kind_set(run) - {"UNINIT"} == (set() if correct else {"RACE"})
    if correct:
        np.testing.assert_array_equal(z, (x + 1) * np.float32(0.5))


@pytest.mark.parametrize("there", [frozenset(s) for s in product(*((name, "") for name in PARTS))])
def test_queues_with_one_buffer(there: frozenset[str]) -> None:
    """The work buffer's last barrier is not needed: V_MTE2 and MTE2_V of the only input buffer lead round from V to V.

    Without the input's enque and deque that way round is broken.
    """
    x, _, z = inputs()
    run = toy_run(queue_kernel, x, z, there, 1)
    correct = there >= {"in", "out", "chain"}
    assert kind_set(run) - {"UNINIT"} == (set() if correct else {"RACE"})
    if correct:
        np.testing.assert_array_equal(z, (x + 1) * np.float32(0.5))
