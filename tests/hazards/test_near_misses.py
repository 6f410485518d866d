"""Synchronisation that stands in the right place and orders something else: messages say so, the doctor mends it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ascend_sim import asc
from ascend_sim.doctor.search import Doctor
from ascend_sim.errors import DeadlockError, Finding
from ascend_sim.stage import rehearsing
from tests.machine.kit import E, hand_over, local, toy_run, window

MIX = {"kernel_type": "MIX_AIC_1_2"}
P, PIPES = asc.TPosition, asc.PipeID


def product(a: Any) -> Any:
    """Multiply 16 x 16 by its transpose; return the sums in L0C."""
    a1, a2, b2 = (asc.LocalTensor(asc.float16, one, 0, 256) for one in (P.A1, P.A2, P.B2))
    sums = asc.LocalTensor(asc.float32, P.CO1, 0, 256)
    asc.data_copy(a1, window(a), 256)
    hand_over(E.MTE2_MTE1)
    asc.load_data(a2, a1, asc.LoadData2DParams())
    asc.load_data(b2, a1, asc.LoadData2DParams(if_transpose=True))
    hand_over(E.MTE1_M)
    asc.mmad(sums, a2, b2, asc.MmadParams(16, 16, 16))
    hand_over(E.M_FIX)
    return sums


def half_of(z: Any, ws: Any) -> None:
    """A vector core's half, through UB."""
    half, part = local(0, 128), 128 * asc.get_sub_block_idx()
    asc.data_copy(half, window(ws)[part:], 128)
    hand_over(E.MTE2_MTE3)
    asc.data_copy(window(z)[part:], half, 128)


def set_on_m(a: asc.GlobalAddress, ws: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
    if asc.ascend_is_aic():
        sums = product(a)
        asc.fixpipe(window(ws), sums, asc.FixpipeParamsV220(16, 16, 16, 16))
        asc.cross_core_set_flag(1, 2, asc.PipeID.PIPE_M)
        return
    asc.cross_core_wait_flag(1)
    half_of(z, ws)


def set_before(a: asc.GlobalAddress, ws: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
    if asc.ascend_is_aic():
        sums = product(a)
        asc.cross_core_set_flag(1, 2, asc.PipeID.PIPE_FIX)
        asc.fixpipe(window(ws), sums, asc.FixpipeParamsV220(16, 16, 16, 16))
        return
    asc.cross_core_wait_flag(1)
    half_of(z, ws)


def found(kernel: Any, *args: Any, **options: Any) -> Finding:
    doctor = Doctor()
    try:
        with rehearsing(doctor.rehearse):
            findings = toy_run(kernel, *args, **options).findings
    except DeadlockError as error:
        findings = [error.finding]
    return next(one for one in findings if one.kind in ("RACE", "DEADLOCK"))


@pytest.mark.parametrize(
    ("kernel", "says", "edit"),
    [
        (
            set_on_m,
            "is on PIPE_M, which does not wait for FIX: put it on PIPE_FIX",
            "from `asc.cross_core_set_flag(1, 2, asc.PipeID.PIPE_M)` to "
            "`asc.cross_core_set_flag(1, 2, asc.PipeID.PIPE_FIX)`",
        ),
        (set_before, "comes before fixpipe", "swap lines"),
    ],
)
def test_a_flag_between_cores(kernel: Any, says: str, edit: str) -> None:
    a = np.random.default_rng(0).normal(size=256).astype(np.float16)
    race = found(kernel, a, np.zeros(256, np.float32), np.zeros(256, np.float32), **MIX)
    assert race.code == "race-blocks-raw"
    assert "cross-core flag 1 at" in race.message and says in race.message
    assert edit in race.edit


def test_two_tensors_that_share_some_bytes() -> None:
    """A barrier would put the loads in order, and the second would destroy what the first one brought."""

    def kernel(place: int) -> Any:
        def body(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
            a, b, c = local(0, 128), local(place, 128), local(4096, 128)
            asc.data_copy(a, window(x), 128)
            asc.data_copy(b, window(x)[128:], 128)
            hand_over(E.MTE2_V)
            asc.add(c, a, b, 128)
            hand_over(E.V_MTE3)
            asc.data_copy(window(z), c, 128)

        return body

    x, z = np.ones(256, np.float32), np.zeros(128, np.float32)
    race = found(kernel(256), x, z)
    assert race.code == "race-waw" and race.edit == ""
    assert "UB[0:512] (a) and UB[256:768] (b) share no more than bytes 256 to 512" in race.message
    assert toy_run(kernel(512), x, z).findings == []


def test_two_statements_of_one_line() -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        if asc.ascend_is_aic():
            asc.cross_core_wait_flag(6); asc.cross_core_set_flag(5, 2, PIPES.PIPE_FIX)  # noqa: E702  # fmt: skip
        else:
            asc.cross_core_wait_flag(5)
            asc.cross_core_set_flag(6, 2, PIPES.PIPE_MTE3)

    assert "swap the two statements of line" in found(kernel, np.zeros(8), **MIX).edit


@pytest.mark.parametrize(
    ("name", "meant"),
    [("SELMODE", "SelMode"), ("pipeid", "PipeID"), ("SetFlag", "set_flag"), ("data_coppy", "data_copy")],
)  # fmt: skip
def test_names_in_another_case(name: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"did you mean '{meant}'"):
        getattr(asc, name)
