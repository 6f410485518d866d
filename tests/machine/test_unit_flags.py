"""Mmad and Fixpipe hand over by unit flags, on the toy chip.

An Mmad of F fractals and w cycles: issue 2, work w, results seen 20 cycles later, each unit flag 10 after that. A
Fixpipe to GM moves 64 bytes a cycle behind a head of 100 cycles.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.errors import DeadlockError
from ascend_sim.run import Run
from ascend_sim.trace import Cause, Item
from isa.layout import nd_to_zn, nd_to_zz
from tests.machine.kit import E, hand_over, instructions, kinds, line_of, toy_run, window

CUBE = {"kernel_type": "AIC_ONLY"}
POSITION = asc.TPosition


def tile(dtype: Any, position: Any, address: int, count: int) -> asc.LocalTensor:
    return asc.LocalTensor(dtype, position, address, count)


def accumulate(
    a: asc.GlobalAddress,
    b: asc.GlobalAddress,
    c: asc.GlobalAddress,
    shape: tuple[int, int, int],
    mmad_flags: tuple[int, ...],
    fixpipe_flags: tuple[int, ...],
    event: bool,
    barrier: bool,
    rounds: int = 1,
) -> None:
    """C = Σ A(s) · B(s), step after step into one place of L0C; operands arrive as the fractals of L0."""
    m, n, k = shape
    steps = len(mmad_flags)
    a1 = tile(asc.float16, POSITION.A1, 0, m * k * steps)
    b1 = tile(asc.float16, POSITION.B1, 1 << 18, n * k * steps)
    asc.data_copy(a1, window(a), m * k * steps)
    asc.data_copy(b1, window(b), n * k * steps)
    hand_over(E.MTE2_MTE1)
    a2 = tile(asc.float16, POSITION.A2, 0, m * k * steps)
    b2 = tile(asc.float16, POSITION.B2, 0, n * k * steps)
    asc.load_data(a2, a1, asc.LoadData2DParams(0, m * k * steps // 256, 1))
    asc.load_data(b2, b1, asc.LoadData2DParams(0, n * k * steps // 256, 1))
    hand_over(E.MTE1_M)
    result = tile(asc.float32, POSITION.CO1, 0, m * n)
    for turn in range(rounds):
        for step, flag in enumerate(mmad_flags):
            if barrier and step:
                asc.pipe_barrier(asc.PipeID.PIPE_M)
            params = asc.MmadParams(m, n, k, flag, False, step == 0)
            asc.mmad(result, a2[step * m * k :], b2[step * n * k :], params)  # mmad
        if event:
            hand_over(E.M_FIX)
        for flag in fixpipe_flags:
            params = asc.FixpipeParamsV220(n, m, m, n, unit_flag=flag)
            asc.fixpipe(window(c)[turn * m * n :], result, params)  # fixpipe


def run_it(
    shape: tuple[int, int, int],
    mmad_flags: tuple[int, ...] = (2, 2, 3),
    fixpipe_flags: tuple[int, ...] = (3,),
    event: bool = False,
    barrier: bool = False,
    rounds: int = 1,
) -> tuple[Run, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Run with small whole numbers, whose sums are exact; return the run, what came out and what should."""
    m, n, k = shape
    random = np.random.default_rng(7)
    steps = len(mmad_flags)
    left = [random.integers(-4, 5, (m, k)).astype(np.float16) for _ in range(steps)]
    right = [random.integers(-4, 5, (k, n)).astype(np.float16) for _ in range(steps)]
    a = np.concatenate([nd_to_zz(part).ravel() for part in left])
    b = np.concatenate([nd_to_zn(part).ravel() for part in right])
    c = np.zeros((rounds, m, n), np.float32)
    expected = sum(
        x.astype(np.float64) @ y.astype(np.float64) for x, y in zip(left, right, strict=True)
    )
    run = toy_run(
        accumulate, a, b, c, shape, mmad_flags, fixpipe_flags, event, barrier, rounds, **CUBE
    )
    return run, c, np.broadcast_to(expected, c.shape)


def pair(run: Run) -> tuple[list[Item], list[Item]]:
    return instructions(run, "M"), instructions(run, "FIX")


@pytest.mark.parametrize("shape", [(64, 64, 16), (48, 80, 32), (128, 128, 16), (16, 160, 16)])
def test_the_result_is_whole_and_nothing_races(shape: tuple[int, int, int]) -> None:
    run, c, expected = run_it(shape)
    assert np.array_equal(c, expected)
    assert run.findings == []


def test_a_fixpipe_follows_the_first_unit() -> None:
    """32 × 32 × 16: 4 fractals in 4 cycles, 8 units; the bytes of a unit take 8 cycles to leave."""
    run, c, expected = run_it((32, 32, 16), (3,))
    (mmad,), (fixpipe,) = pair(run)
    assert mmad.end == mmad.start + 2 + 4 + 20
    assert fixpipe.start == mmad.start + 2 + 1 + 20 + 10  # half a cycle a unit, rounded up
    assert fixpipe.end == fixpipe.start + 100 + 64
    assert np.array_equal(c, expected)


def test_a_fixpipe_that_is_faster_waits_so_that_it_never_runs_dry() -> None:
    """16 × 16 × 4080: 255 cycles for 2 units; the second one's bytes are asked for 8 cycles after the first."""
    run, c, expected = run_it((16, 16, 1024), (3,))
    (mmad,), (fixpipe,) = pair(run)
    last = mmad.start + 2 + 64 + 20 + 10
    assert fixpipe.start == last - 8
    assert np.array_equal(c, expected)


def test_the_next_mmad_follows_what_has_been_read() -> None:
    """The last of 8 units is free 74 cycles after the Fixpipe's start; its turn comes 5.5 after the Mmad's."""
    run, c, expected = run_it((32, 32, 16), (3,), rounds=2)
    mmads, fixpipes = pair(run)
    assert mmads[1].start == fixpipes[0].start + 64 + 10 - 5
    assert mmads[1].head < mmads[1].start
    assert np.array_equal(c, expected)
    assert run.findings == []
    assert run.pipes["core0.aic"]["M"]["causes"][Cause.FLAG.value] > 0


def test_an_event_makes_the_fixpipe_wait_for_all_of_it() -> None:
    """Unit flags save what an event costs: the rest of the Mmad, and the hand-over."""
    with_flags = pair(run_it((128, 128, 64), (3,))[0])[1][0].start
    with_event = pair(run_it((128, 128, 64), (0,), (0,), event=True)[0])[1][0].start
    assert (
        with_event - with_flags == 256 - 2 + 1
    )  # of 256 cycles, two on the first unit; set and seen: 11 for 10


def test_two_fixpipes_of_one_result() -> None:
    """The first one leaves the units full."""
    run, c, expected = run_it((64, 64, 16), (3,), (2, 3))
    assert {finding.code for finding in run.findings} == {"race-waw"}  # both write one place of GM
    assert np.array_equal(c, expected)


CORRECT = {
    (0, 0, True): True,
    (3, 3, False): True,
    (3, 3, True): True,
    (0, 0, False): False,
}


@pytest.mark.parametrize("flags", list(product((0, 3), (0, 3), (False, True))))
def test_each_side_and_the_event(flags: tuple[int, int, bool]) -> None:
    mmad_flag, fixpipe_flag, event = flags
    if fixpipe_flag and not mmad_flag:
        with pytest.raises(DeadlockError) as caught:
            run_it((64, 64, 16), (mmad_flag,), (fixpipe_flag,), event)
        message = str(caught.value)
        line = line_of(accumulate, "# mmad")
        assert "L0C[0:16384] to become full (unit flag)" in message
        assert f"test_unit_flags.py:{line} in accumulate has unit_flag 0" in message
        assert caught.value.finding.line == line_of(accumulate, "# fixpipe")
        return
    run = run_it((64, 64, 16), (mmad_flag,), (fixpipe_flag,), event)[0]
    found = {finding.code for finding in run.findings}
    left = {"unit-flag-left"} if mmad_flag and not fixpipe_flag else set()
    ordered = event or (mmad_flag and fixpipe_flag)
    assert found == left | (set() if ordered else {"race-raw"})


def test_an_mmad_that_nobody_makes_room_for() -> None:
    with pytest.raises(DeadlockError) as caught:
        run_it((64, 64, 16), (3,), (2,), rounds=2)
    message = str(caught.value)
    assert "mmad waits at" in message
    assert "to become free (unit flag)" in message
    assert f"mmad at tests/machine/test_unit_flags.py:{line_of(accumulate, '# mmad')}" in message
    assert "has unit_flag 2" in message


# ---- sums in L0C ----------------------------------------------------------------------------


@pytest.mark.parametrize("barrier", [True, False])
@pytest.mark.parametrize(
    ("shape", "fractals"),
    [
        ((16, 16, 32), 1),
        ((48, 48, 16), 9),
        ((32, 80, 16), 10),
        ((16, 144, 16), 9),
        ((16, 160, 16), 10),
        ((64, 64, 16), 16),
    ],
)
def test_sums_need_a_barrier_below_ten_fractals(
    shape: tuple[int, int, int], fractals: int, barrier: bool
) -> None:
    """The manual's Mmad page: PIPE_M between accumulating calls when (m / 16) * (n / 16) is below 10."""
    run, c, expected = run_it(shape, barrier=barrier)
    fine = barrier or fractals >= 10
    assert ("RACE" not in {finding.kind for finding in run.findings}) is fine
    if fine:
        assert run.findings == []
        assert np.array_equal(c, expected)
    else:
        assert {finding.code for finding in run.findings} == {"race-raw", "race-waw"}
        assert not np.array_equal(c, expected)
    assert all(finding.line == line_of(accumulate, "# mmad") for finding in run.findings)


# ---- tails ----------------------------------------------------------------------------------


def tail(a: asc.GlobalAddress, c: asc.GlobalAddress, rows: int, used: int) -> None:
    """Load `rows` of 32 rows into L1, take all fractals to L0A, multiply `used` of them."""
    a1 = tile(asc.float16, POSITION.A1, 0, 32 * 32)
    b1 = tile(asc.float16, POSITION.B1, 4096, 32 * 16)
    asc.data_copy(a1, window(a), asc.Nd2NzParams(1, rows, 32, 0, 32, 32, 1, 0))
    asc.data_copy(b1, window(a), 32 * 16)
    hand_over(E.MTE2_MTE1)
    a2 = tile(asc.float16, POSITION.A2, 0, 32 * 32)
    b2 = tile(asc.float16, POSITION.B2, 0, 32 * 16)
    for block in range(2):
        params = asc.LoadData2DParams(block, 2, 2)
        asc.load_data(a2[block * 512 :], a1, params)  # load
    asc.load_data(b2, b1, asc.LoadData2DParams(0, 2, 1))
    hand_over(E.MTE1_M)
    result = tile(asc.float32, POSITION.CO1, 0, 32 * 16)
    asc.mmad(result, a2, b2, asc.MmadParams(used, 16, 32))  # mmad
    hand_over(E.M_FIX)
    asc.fixpipe(window(c), result, asc.FixpipeParamsV220(16, used, 32, 16))


@pytest.mark.parametrize("rows", [32, 17, 25, 31])
def test_fractals_with_rows_that_nothing_wrote(rows: int) -> None:
    """A load takes whole fractals; only what is used of them counts."""
    a = np.ones((32, 32), np.float16)
    assert toy_run(tail, a, np.zeros((rows, 16), np.float32), rows, rows, **CUBE).findings == []
    if rows < 32:
        run = toy_run(tail, a, np.zeros((rows + 1, 16), np.float32), rows, rows + 1, **CUBE)
        assert kinds(run)[0] == ("UNINIT", "uninitialised-read")
        finding = run.findings[0]
        assert finding.line == line_of(tail, "# mmad")
        assert (
            f"The load at tests/machine/test_unit_flags.py:{line_of(tail, '# load')}"
            in finding.message
        )


def refill(a: asc.GlobalAddress, turns: int) -> None:
    """A tail and a full tile in turn through the same places: what a full one left is there for the tail."""
    a1 = tile(asc.float16, POSITION.A1, 0, 32 * 32)
    a2 = tile(asc.float16, POSITION.A2, 0, 32 * 32)
    b2 = tile(asc.float16, POSITION.B2, 0, 16 * 32)
    result = tile(asc.float32, POSITION.CO1, 0, 32 * 16)
    for turn in range(turns):
        asc.data_copy(
            a1, window(a), asc.Nd2NzParams(1, 20 if turn % 2 == 0 else 32, 32, 0, 32, 32, 1, 0)
        )
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        for block in range(2):
            asc.load_data(a2[block * 512 :], a1, asc.LoadData2DParams(block, 2, 2))
        asc.load_data(b2, a1, asc.LoadData2DParams(0, 2, 2))
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        asc.mmad(result, a2, b2, asc.MmadParams(32, 16, 32))
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_what_an_earlier_tile_left_counts_as_written(turns: int) -> None:
    run = toy_run(refill, np.ones((32, 32), np.float16), turns, **CUBE)
    assert kinds(run) == [("UNINIT", "uninitialised-read")]
    assert run.findings[0].hits == 1


# ---- random products ------------------------------------------------------------------------


def products(
    a: asc.GlobalAddress,
    b: asc.GlobalAddress,
    c: asc.GlobalAddress,
    shape: tuple[int, int, int],
    steps: int,
    cuts: tuple[int, ...],
    slots: int,
    rounds: int,
    to_l1: bool,
) -> None:
    """Results go through `slots` places of L0C in turn, each in pieces of columns, handed over by unit flags alone."""
    m, n, k = shape
    tall, wide, deep = (-(-size // 16) * 16 for size in shape)
    a1 = tile(asc.float16, POSITION.A1, 0, tall * deep * steps)
    b1 = tile(asc.float16, POSITION.B1, 1 << 17, wide * deep * steps)
    c1 = tile(asc.float32, POSITION.A1, 1 << 18, tall * wide * rounds)
    asc.data_copy(a1, window(a), tall * deep * steps)
    asc.data_copy(b1, window(b), wide * deep * steps)
    hand_over(E.MTE2_MTE1)
    a2 = tile(asc.float16, POSITION.A2, 0, tall * deep * steps)
    b2 = tile(asc.float16, POSITION.B2, 0, wide * deep * steps)
    for operand, source, count in ((a2, a1, tall * deep), (b2, b1, wide * deep)):
        asc.load_data(operand, source, asc.LoadData2DParams(0, count * steps // 256, 1))
    hand_over(E.MTE1_M)
    for turn in range(rounds):
        result = tile(asc.float32, POSITION.CO1, turn % slots * (1 << 16), tall * wide)
        for step in range(steps):
            flag = 3 if step == steps - 1 else 2
            asc.mmad(
                result,
                a2[step * tall * deep :],
                b2[step * wide * deep :],
                asc.MmadParams(m, n, k, flag, False, step == 0),
            )
            asc.pipe_barrier(asc.PipeID.PIPE_M)
        for first, last in zip(cuts, (*cuts[1:], n), strict=True):
            piece = asc.FixpipeParamsV220(last - first, m, tall, n, unit_flag=3)
            if to_l1:
                there = c1[turn * tall * wide + first * tall :]
                piece = asc.FixpipeParamsV220(last - first, m, tall, tall * 2, unit_flag=3)
                asc.fixpipe(there, result[first * tall :], piece, asc.FixpipeConfig.cfg_nz())
            else:
                asc.fixpipe(window(c)[turn * m * n + first :], result[first * tall :], piece)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    shape=st.tuples(
        *[st.integers(1, 5).map(lambda size: 16 * size)] * 2, st.sampled_from([16, 48])
    ),
    odd=st.tuples(st.integers(0, 15), st.integers(0, 15)),
    steps=st.integers(1, 3),
    cut=st.integers(0, 4),
    slots=st.integers(1, 2),
    rounds=st.integers(1, 3),
    to_l1=st.booleans(),
)
def test_random_products(
    shape: tuple[int, int, int],
    odd: tuple[int, int],
    steps: int,
    cut: int,
    slots: int,
    rounds: int,
    to_l1: bool,
) -> None:
    m, n, k = shape[0] - odd[0], shape[1] - (0 if to_l1 else odd[1]), shape[2]
    m = max(m, 2)  # a single row is another form
    cuts = (0, 16 * cut) if 0 < 16 * cut < n else (0,)
    random = np.random.default_rng(m * n * k)
    left = [random.integers(-4, 5, (m, k)).astype(np.float16) for _ in range(steps)]
    right = [random.integers(-4, 5, (k, n)).astype(np.float16) for _ in range(steps)]
    a = np.concatenate([nd_to_zz(part).ravel() for part in left])
    b = np.concatenate([nd_to_zn(part).ravel() for part in right])
    c = np.zeros((rounds, m, n), np.float32)
    run = toy_run(
        products, a, b, c, (m, n, k), steps, cuts, slots, rounds, to_l1, outputs=["c"], **CUBE
    )
    assert run.findings == []
    if not to_l1:
        pairs = zip(left, right, strict=True)
        assert (c == sum(x.astype(np.float64) @ y.astype(np.float64) for x, y in pairs)).all()
    assert replayed(run) == run.cycles


def replayed(run: Run) -> int:
    return run.recording().replay("toy").cycles


def two_halves_then_one(a: asc.GlobalAddress, b: asc.GlobalAddress, c: asc.GlobalAddress) -> None:
    """Products of 64 columns in the halves of a place in L0C, each twice, then one of 128 columns over both.

    The second time Fixpipe is behind, and Mmads wait for it.
    """
    size = 128 * 128
    a1, b1 = tile(asc.float16, POSITION.A1, 0, size), tile(asc.float16, POSITION.B1, 1 << 18, size)
    asc.data_copy(a1, window(a), size)
    asc.data_copy(b1, window(b), size)
    hand_over(E.MTE2_MTE1)
    a2, b2 = tile(asc.float16, POSITION.A2, 0, size), tile(asc.float16, POSITION.B2, 0, size)
    asc.load_data(a2, a1, asc.LoadData2DParams(0, size // 256, 1))
    asc.load_data(b2, b1, asc.LoadData2DParams(0, size // 256, 1))
    hand_over(E.MTE1_M)
    result = tile(asc.float32, POSITION.CO1, 0, size)
    for turn in range(4):
        part = result[turn % 2 * size // 2 :]
        asc.mmad(part, a2, b2, asc.MmadParams(128, 64, 128, 3, False, True))
        params = asc.FixpipeParamsV220(64, 128, 128, 64, unit_flag=3)
        asc.fixpipe(window(c)[turn * size // 2 :], part, params)
    asc.mmad(result, a2, b2, asc.MmadParams(128, 128, 128, 3, False, True))
    asc.fixpipe(
        window(c)[2 * size :], result, asc.FixpipeParamsV220(128, 128, 128, 128, unit_flag=3)
    )


def test_a_product_may_begin_before_the_fixpipe_that_frees_its_end_is_known() -> None:
    """The last Mmad comes to its second half so late that it begins before the Fixpipe of that half."""
    generator = np.random.default_rng(5)
    a, b = generator.integers(-3, 4, (2, 128, 128)).astype(np.float16)
    wanted = (a.astype(np.float32) @ b.astype(np.float32)).ravel()
    cycles = []
    for numerics in ("on", "off"):
        c = np.zeros(3 * 128 * 128, np.float32)
        run = sim.launch(
            two_halves_then_one,
            np.ascontiguousarray(nd_to_zz(a)).ravel(),
            np.ascontiguousarray(nd_to_zn(b)).ravel(),
            c,
            kernel_type="AIC_ONLY",
            numerics=numerics,
        )
        assert not run.findings
        cycles.append(run.cycles)
        if numerics == "on":
            np.testing.assert_array_equal(c[2 * 128 * 128 :], wanted)
            halves = c[: 2 * 128 * 128].reshape(4, -1)  # all four are one product
            np.testing.assert_array_equal(halves, np.broadcast_to(halves[0], halves.shape))
    assert cycles[0] == cycles[1]
