"""A launch in plain Python says on standard error that its kernel is wrong: nobody may look at the run."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc


@pytest.fixture(autouse=True)
def nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the listener of the tests, which looks at runs."""
    monkeypatch.setattr(import_module("ascend_sim.launch"), "on_run", [])


@asc.jit(auto_sync=False)
def leaves_a_flag(x: asc.GlobalAddress) -> None:
    asc.set_flag(asc.HardEvent.MTE2_V, 0)


@asc.jit(auto_sync=False)
def balanced(x: asc.GlobalAddress) -> None:
    asc.set_flag(asc.HardEvent.MTE2_V, 0)
    asc.wait_flag(asc.HardEvent.MTE2_V, 0)


def test_findings_of_a_bare_launch_are_mentioned_once(caplog: pytest.LogCaptureFixture) -> None:
    run = leaves_a_flag[1](np.zeros(16, np.float16))
    assert len(run.findings) == 1
    (record,) = caplog.records
    message = record.getMessage()
    assert "leaves_a_flag has 1 finding, the first FLAG_BALANCE flag-left-set at" in message
    assert "test_launch_log.py:22" in message


def test_a_good_kernel_and_a_launch_that_returns_its_run_are_silent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    balanced[1](np.zeros(16, np.float16))
    sim.launch(leaves_a_flag, np.zeros(16, np.float16), cores=1)
    assert caplog.records == []
