"""Flags raised before a loop in one function and taken behind it in another: the partner that one of them lacks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim.doctor.search import Doctor
from tests.doctor.kit import found_by, load

CALLS = """
from ascend_sim import asc

E = asc.HardEvent


def begin(places):
    for place in range(places):
        asc.set_flag(E.V_MTE2, place)
        asc.set_flag(E.MTE3_V, place)


def end(places):
    for place in range(places):
        asc.wait_flag(E.V_MTE2, place)
        asc.wait_flag(E.MTE3_V, place)


def trip(x_gm, z_gm, i, places):
    half = i % places
    a = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 1024 * half, 256)
    b = asc.LocalTensor(asc.float32, asc.TPosition.VECOUT, 4096 + 1024 * half, 256)
    asc.wait_flag(E.V_MTE2, half)
    asc.data_copy(a, x_gm[i * 256 :], 256)
    asc.set_flag(E.MTE2_V, half)
    asc.wait_flag(E.MTE2_V, half)
    asc.wait_flag(E.MTE3_V, half)
    asc.adds(b, a, 1.0, 256)
    asc.set_flag(E.V_MTE2, half)
    asc.set_flag(E.V_MTE3, half)
    asc.wait_flag(E.V_MTE3, half)
    asc.data_copy(z_gm[i * 256 :], b, 256)
    asc.set_flag(E.MTE3_V, half)


def kernel(x, z, places):
    x_gm, z_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    z_gm.set_global_buffer(z)
    begin(places)
    for i in range(4):
        trip(x_gm, z_gm, i, places)
    end(places)
"""
WITHIN = CALLS.replace(
    "    begin(places)\n",
    "    for n in range(places):\n        asc.set_flag(E.V_MTE2, n)\n"
    "    for n in range(places):\n        asc.set_flag(E.MTE3_V, n)\n",
).replace(
    "    end(places)\n",
    "    for n in range(places):\n        asc.wait_flag(E.V_MTE2, n)\n"
    "    for n in range(places):\n        asc.wait_flag(E.MTE3_V, n)\n",
)


def edit_of(text: str, folder: Path) -> str:
    """Return what the doctor says of a kernel with two places."""
    kernel = load(text, folder / "kernel.py").kernel
    x, z = np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)
    found = found_by(Doctor(), lambda: sim.launch(kernel, x, z, 2, chip="toy"))
    assert found
    return found[0].edit


@pytest.mark.parametrize("text", [CALLS, WITHIN])
def test_nothing_to_cure(text: str, tmp_path: Path) -> None:
    kernel = load(text, tmp_path / "kernel.py").kernel
    x, z = np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)
    assert sim.launch(kernel, x, z, 2, chip="toy").findings == []


@pytest.mark.parametrize(
    "lost", ["set_flag(E.V_MTE2", "set_flag(E.MTE3_V", "wait_flag(E.V_MTE2", "wait_flag(E.MTE3_V"]
)
@pytest.mark.parametrize("call", ["place", "n"])
def test_the_partner_of_a_flag_that_is_counted_in_a_loop(
    lost: str, call: str, tmp_path: Path
) -> None:
    """Beside those of the flags that it goes with, or as a loop that mirrors the other end's."""
    right = f"asc.{lost}, {call})"
    wrong = (CALLS if call == "place" else WITHIN).replace(right, "pass")
    loop = f"`for {call} in range(places): {right}`" if call == "n" else f"`{right}`"
    assert edit_of(wrong, tmp_path).startswith(f"add {loop} ")
