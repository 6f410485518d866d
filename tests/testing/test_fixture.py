"""The pytest fixture, in a pytest of its own (pytester)."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

KERNELS = """
import numpy as np
import ascend_sim as sim
from ascend_sim import asc

E = asc.HardEvent


def double(x, z, ordered):
    x_gm, z_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    z_gm.set_global_buffer(z)
    a = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 256)
    b = asc.LocalTensor(asc.float32, asc.TPosition.VECOUT, 4096, 256)
    asc.data_copy(a, x_gm, 256)
    if ordered:
        asc.set_flag(E.MTE2_V, 0)
        asc.wait_flag(E.MTE2_V, 0)
    asc.adds(b, a, 1.0, 256)
    asc.set_flag(E.V_MTE3, 0)
    asc.wait_flag(E.V_MTE3, 0)
    asc.data_copy(z_gm, b, 256)


jitted = asc.jit(auto_sync=False)(double)


def stuck():
    asc.wait_flag(E.MTE2_V, 0)


x, z = np.ones(256, np.float32), np.zeros(256, np.float32)
"""


@pytest.fixture
def tests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    root = Path(__file__).parent.parent.parent
    monkeypatch.syspath_prepend(str(root))
    pytester.makeconftest('pytest_plugins = ["ascend_sim.testing"]\n')
    pytester.makepyfile(kernels=KERNELS)
    return pytester


def outcome(tests: pytest.Pytester, body: str, *options: str) -> pytest.RunResult:
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    tests.makepyfile(
        test_it=f"from kernels import *\nimport pytest\n\n\ndef test_it(npu):\n{lines}\n"
    )
    return tests.runpytest_inprocess("-p", "no:cacheprovider", *options)


def test_a_correct_kernel_passes(tests: pytest.Pytester) -> None:
    body = "run = npu.launch(double, x, z, True)\nnpu.check(z, x + 1)\nassert npu.runs == [run]"
    outcome(tests, body).assert_outcomes(passed=1)


def test_a_finding_fails_a_test_whose_numbers_are_right(tests: pytest.Pytester) -> None:
    result = outcome(tests, "jitted[1](x, z, False)")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["RACE race-raw at *kernels.py:18: *", "*a run is clean with this edit: add `asc.set_flag*"]
    )


def test_expected_findings(tests: pytest.Pytester) -> None:
    body = "npu.expect('race-raw', line=18)\nnpu.expect('uninitialised-read')\nnpu.launch(double, x, z, False)"
    outcome(tests, body.replace("npu.expect('uninitialised-read')\n", "")).assert_outcomes(passed=1)
    result = outcome(tests, body.replace("line=18", "line=20"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*expected race-raw at line 20, and it was not found"])


def test_what_stops_a_kernel(tests: pytest.Pytester) -> None:
    body = "with pytest.raises(sim.DeadlockError):\n    npu.launch(stuck)"
    outcome(tests, body).assert_outcomes(failed=1)
    outcome(tests, "npu.expect('deadlock')\n" + body).assert_outcomes(passed=1)


def test_a_code_that_there_is_not(tests: pytest.Pytester) -> None:
    result = outcome(tests, "npu.expect('race-rav')")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*no finding 'race-rav'; did you mean 'race-raw'?*"])


def test_numbers(tests: pytest.Pytester) -> None:
    result = outcome(tests, "npu.launch(double, x, z, True)\nnpu.check(z, x + 2)")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*256 of 256*"])


def test_the_chip_and_hostile_timings(tests: pytest.Pytester) -> None:
    body = "run = npu.launch(double, x, z, True)\nassert run.chip.name == 'toy'"
    outcome(tests, body, "--npu-chip", "toy", "--npu-adversary", "3").assert_outcomes(passed=1)
    outcome(tests, body).assert_outcomes(failed=1)


def test_nothing_is_left_behind(tests: pytest.Pytester) -> None:
    from ascend_sim.launch import defaults, on_run
    from ascend_sim.stage import rehearsals

    before = list(on_run), list(rehearsals), dict(defaults.options)
    outcome(tests, "npu.launch(double, x, z, False)", "--npu-chip", "toy").assert_outcomes(failed=1)
    assert (list(on_run), list(rehearsals), dict(defaults.options)) == before
