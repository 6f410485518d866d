"""What `ascend-sim check` can be asked for beside the checks of one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def test_hostile_timings(command: Any, program: Any) -> None:
    good = command("check", program("scale[2](x, z, 512)"), "--adversary", "3")
    assert good.code == 0
    assert good.out.endswith(
        "3 hostile timings of 1 launch: results and findings are the same under each\n"
    )


def test_hostile_timings_break_a_race(command: Any, program: Any) -> None:
    wrong = command("check", program("racy[1](x, 1024)"), "--adversary", "2")
    assert wrong.code == 2 and "race-raw" in wrong.out and "hostile timing" in wrong.out


def test_hostile_timings_need_something_to_compare(command: Any, program: Any) -> None:
    name = program("scale[2](x, z, 512)")
    for option in ("--numerics", "--checks"):
        refused = command("check", name, "--adversary", "3", option, "off")
        assert refused.code == 1 and f"leave out {option} off" in refused.err
    assert command("check", name, "--adversary", "0").code == 1


def test_coverage(command: Any, program: Any) -> None:
    half = command("check", program("scale[1](x, z, 512)"), "--coverage")
    assert "x, 1024 of float16\n  read           elements 0 to 511 (512 elements)\n" in half.out
    assert "  never written  elements 512 to 1023 (512 elements)\n" in half.out
    assert "    core0.aiv0   writes elements 0 to 511\n" in half.out
    refused = command("check", program("scale[1](x, z, 512)"), "--coverage", "--checks", "off")
    assert refused.code == 1 and "leave out --checks off" in refused.err


LOSES = """
@asc.jit(auto_sync=False)
def near(x: asc.GlobalAddress, z: asc.GlobalAddress):
    x_gm, z_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    z_gm.set_global_buffer(z)
    wide = asc.LocalTensor(asc.float32, asc.TPosition.VECCALC, 0, 64)
    half = asc.LocalTensor(asc.float16, asc.TPosition.VECCALC, 1024, 64)
    asc.data_copy(wide, x_gm, 64)
    asc.set_flag(asc.HardEvent.MTE2_V, 0)
    asc.wait_flag(asc.HardEvent.MTE2_V, 0)
    asc.cast(half, wide, asc.RoundMode.CAST_RINT, 64)
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.adds(half, half, -100.0, 64)
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.cast(wide, half, asc.RoundMode.CAST_NONE, 64)
    asc.set_flag(asc.HardEvent.V_MTE3, 0)
    asc.wait_flag(asc.HardEvent.V_MTE3, 0)
    asc.data_copy(z_gm, wide, 64)


x = np.linspace(99.9, 100.1, 64).astype(np.float32)
near[1](x, np.zeros_like(x))
"""


def test_blame(command: Any, program: Any, tmp_path: Path) -> None:
    name = program(LOSES)
    assert command("check", name).code == 0
    found = command("check", name, "--blame")
    assert found.code == 2 and "NUMERIC precision-loss" in found.out
    x = np.linspace(99.9, 100.1, 64).astype(np.float32)
    np.savez(tmp_path / "right.npz", z=x - np.float32(100))
    beside = command("check", name, "--reference", "right.npz")
    assert beside.code == 2 and "NUMERIC output-differs" in beside.out
    np.savez(tmp_path / "other.npz", y=x)
    refused = command("check", name, "--reference", "other.npz")
    assert refused.code == 1
    assert "other.npz has y: no launch has an argument of that name" in refused.err
    refused = command("check", name, "--blame", "--numerics", "off")
    assert refused.code == 1 and "leave out --numerics off" in refused.err
    assert command("check", program("scale[2](x, z, 512)"), "--blame").code == 0
