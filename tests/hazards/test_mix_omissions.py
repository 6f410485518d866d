"""A cube core and its two vector cores hand tiles over: each flag on its own makes the difference."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from ascend_sim import asc
from ascend_sim.errors import DeadlockError
from ascend_sim.run import Run
from isa.layout import nd_to_zn, nd_to_zz
from tests.machine.kit import E, local, toy_run, window

MIX = {"kernel_type": "MIX_AIC_1_2"}
TURNS, SIDE = 4, 64
TILE = SIDE * SIDE
HALF = TILE // 2
P = asc.TPosition

INSIDE = {
    "in L1": E.MTE2_MTE1,
    "L1 free": E.MTE1_MTE2,
    "in L0": E.MTE1_M,
    "L0 free": E.M_MTE1,
    "in L0C": E.M_FIX,
    "L0C free": E.FIX_M,
    "in UB": E.MTE2_V,
    "UB free": E.V_MTE2,
    "sum": E.V_MTE3,
    "stored": E.MTE3_V,
}
"""Flags inside a core. Those that free a place are set behind its use and waited for before the next one."""
BETWEEN = ("in GM", "GM free")
"""Flags between cores: a tile of the workspace is there, and has been read."""
EVERYTHING = frozenset((*INSIDE, *BETWEEN))


class Flags:
    """Sets and waits, without those that are left out."""

    def __init__(self, sets: frozenset[str], waits: frozenset[str]) -> None:
        self._sets, self._waits = sets, waits

    def set(self, name: str, again: bool = True) -> None:
        if again and name in self._sets:
            asc.set_flag(INSIDE[name], 0)

    def wait(self, name: str, again: bool = True) -> None:
        if again and name in self._waits:
            asc.wait_flag(INSIDE[name], 0)

    def tell(self, name: str, flag_id: int, pipe: asc.PipeID, again: bool = True) -> None:
        if again and name in self._sets:
            asc.cross_core_set_flag(flag_id, 2, pipe)

    def hear(self, name: str, flag_id: int, again: bool = True) -> None:
        if again and name in self._waits:
            asc.cross_core_wait_flag(flag_id, 2, asc.PipeID.PIPE_S)


def cube(a: Any, b: Any, ws: Any, flags: Flags, unit_flags: bool) -> None:
    a1 = asc.LocalTensor(asc.float16, P.A1, 0, TILE)
    b1 = asc.LocalTensor(asc.float16, P.B1, 2 * TILE, TILE)
    a2 = asc.LocalTensor(asc.float16, P.A2, 0, TILE)
    b2 = asc.LocalTensor(asc.float16, P.B2, 0, TILE)
    c = asc.LocalTensor(asc.float32, P.CO1, 0, TILE)
    whole = asc.LoadData2DParams(0, TILE // 256, 1)
    flag = 3 if unit_flags else 0
    for turn in range(TURNS):
        more, again = turn + 1 < TURNS, turn > 0
        flags.wait("L1 free", again)
        asc.data_copy(a1, window(a)[turn * TILE :], TILE)
        asc.data_copy(b1, window(b), TILE)
        flags.set("in L1")
        flags.wait("in L1")
        flags.wait("L0 free", again)
        asc.load_data(a2, a1, whole)
        asc.load_data(b2, b1, whole)
        flags.set("L1 free", more)
        flags.set("in L0")
        flags.wait("in L0")
        flags.wait("L0C free", again and not unit_flags)
        asc.mmad(c, a2, b2, asc.MmadParams(SIDE, SIDE, SIDE, flag))
        flags.set("L0 free", more)
        flags.set("in L0C", not unit_flags)
        flags.wait("in L0C", not unit_flags)
        flags.hear("GM free", 1, turn >= 2)
        params = asc.FixpipeParamsV220(SIDE, SIDE, SIDE, SIDE, unit_flag=flag)
        asc.fixpipe(window(ws)[turn % 2 * TILE :], c, params)
        flags.set("L0C free", more and not unit_flags)
        flags.tell("in GM", 0, asc.PipeID.PIPE_FIX)


def vector(ws: Any, z: Any, flags: Flags) -> None:
    mine = asc.get_sub_block_idx() * HALF
    x, y = local(0, HALF), local(0x8100, HALF)
    for turn in range(TURNS):
        more, again = turn + 1 < TURNS, turn > 0
        flags.hear("in GM", 0)
        flags.wait("UB free", again)
        asc.data_copy(x, window(ws)[turn % 2 * TILE + mine :], HALF)
        flags.tell("GM free", 1, asc.PipeID.PIPE_MTE2, turn + 2 < TURNS)
        flags.set("in UB")
        flags.wait("in UB")
        flags.wait("stored", again)
        asc.adds(y, x, 1.0, HALF)
        flags.set("UB free", more)
        flags.set("sum")
        flags.wait("sum")
        asc.data_copy(window(z)[turn * TILE + mine :], y, HALF)
        flags.set("stored", more)


def kernel(
    a: asc.GlobalAddress,
    b: asc.GlobalAddress,
    ws: asc.GlobalAddress,
    z: asc.GlobalAddress,
    sets: frozenset[str],
    waits: frozenset[str],
    unit_flags: bool,
) -> None:
    flags = Flags(sets, waits)
    if asc.ascend_is_aic():
        cube(a, b, ws, flags, unit_flags)
    else:
        vector(ws, z, flags)


def run_it(
    sets: frozenset[str], waits: frozenset[str], unit_flags: bool = False, **options: Any
) -> tuple[Run, bool]:
    """Run; return the run and whether every number is right (small whole numbers: sums are exact)."""
    random = np.random.default_rng(5)
    left = random.integers(-3, 4, (TURNS, SIDE, SIDE)).astype(np.float16)
    right = random.integers(-3, 4, (SIDE, SIDE)).astype(np.float16)
    a = np.concatenate([nd_to_zz(part).ravel() for part in left])
    z = np.zeros((TURNS, SIDE, SIDE), np.float32)
    ws = np.zeros(2 * TILE, np.float32)
    b = nd_to_zn(right).ravel()
    run = toy_run(kernel, a, b, ws, z, sets, waits, unit_flags, **{**MIX, **options})
    expected = left.astype(np.float64) @ right.astype(np.float64) + 1
    return run, np.array_equal(z, expected)


def kinds(run: Run) -> set[str]:
    return {finding.kind for finding in run.findings} - {"UNINIT"}


@pytest.mark.parametrize("unit_flags", [False, True])
def test_all_flags_and_no_finding(unit_flags: bool) -> None:
    run, right = run_it(EVERYTHING, EVERYTHING, unit_flags)
    assert run.findings == []
    assert right


NEEDED = {False: EVERYTHING, True: EVERYTHING - {"in L0C", "L0C free"}}


@pytest.mark.parametrize("unit_flags", [False, True])
@pytest.mark.parametrize("left_out", sorted(EVERYTHING))
def test_each_pair_that_is_left_out(left_out: str, unit_flags: bool) -> None:
    """Without a set and its wait there is a race; unit flags make the two around L0C needless."""
    there = EVERYTHING - {left_out}
    run, _ = run_it(there, there, unit_flags)
    assert kinds(run) == ({"RACE"} if left_out in NEEDED[unit_flags] else set())


@pytest.mark.parametrize("left_out", sorted(EVERYTHING))
def test_each_wait_that_is_left_out(left_out: str) -> None:
    """The set is left over as well."""
    run, _ = run_it(EVERYTHING, EVERYTHING - {left_out})
    assert kinds(run) == {"RACE", "FLAG_BALANCE"}


@pytest.mark.parametrize("left_out", sorted(EVERYTHING))
def test_each_set_that_is_left_out(left_out: str) -> None:
    with pytest.raises(DeadlockError):
        run_it(EVERYTHING - {left_out}, EVERYTHING)


@pytest.mark.slow
def test_every_two_pairs_that_are_left_out() -> None:
    for one, other in combinations(sorted(EVERYTHING), 2):
        there = EVERYTHING - {one, other}
        run, _ = run_it(there, there)
        assert kinds(run) == {"RACE"}, (one, other)


def test_the_place_of_a_race_between_cores() -> None:
    there = EVERYTHING - {"GM free"}
    run, _ = run_it(there, there)
    (race,) = [finding for finding in run.findings if finding.kind == "RACE"]
    assert race.code == "race-blocks-war"
    assert "core0.aiv" in race.message
    assert "core0.aic" in race.message
    assert race.tensor == "ws"


def test_verdicts_do_not_depend_on_time() -> None:
    """The same findings on a chip that is a hundred times slower here and faster there."""
    for left_out in sorted(EVERYTHING):
        there = EVERYTHING - {left_out}
        found = []
        for chip in ("toy", "ascend910b1"):
            run, _ = run_it(there, there, chip=chip)
            found.append(sorted((f.kind, f.code, f.line, f.bytes or (0, 0)) for f in run.findings))
        assert found[0] == found[1], left_out
