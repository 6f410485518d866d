"""Exit codes and messages of outcomes, with runs made by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ascend_sim.cli import app as app_module
from ascend_sim.cli.outcome import OtherRun, Outcome
from ascend_sim.cli.program import describe
from ascend_sim.cli.show import report_check
from ascend_sim.errors import ConfigError, DeadlockError, Finding, HostError, SimulatorBug


def run(*kinds: str, numerics: dict[str, Any] | None = None) -> Any:
    findings = [Finding(kind, kind.lower(), "message") for kind in kinds]
    return SimpleNamespace(
        findings=findings, summary={"numerics": numerics}, op="kernel", allowed=[]
    )


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (Outcome(run()), 0),
        (Outcome(run("INFO", "PERF")), 0),
        (Outcome(run("RACE")), 2),
        (Outcome(run("RACE", "BOUNDS", "DEADLOCK")), 4),
        (Outcome(run("DEADLOCK", "COVERAGE")), 3),
        (Outcome(run(numerics={"mismatches": 0})), 0),
        (Outcome(run(numerics={"mismatches": 7})), 2),
        (Outcome(run(), others=[OtherRun("a", [Finding("UNINIT", "u", "m")])]), 2),
        (Outcome(None, ConfigError("x")), 1),
        (Outcome(None, HostError("x")), 1),
        (Outcome(run(), DeadlockError("x")), 3),
        (Outcome(run("RACE"), ValueError("x")), 2),
    ],
)
def test_the_highest_code_that_anything_earned(outcome: Outcome, code: int) -> None:
    assert outcome.code == code


def test_the_simulators_errors_are_described_by_their_message_alone() -> None:
    assert describe(ConfigError("chip x has no y")) == "chip x has no y"


def test_a_bug_of_the_simulator_asks_for_a_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_check(Outcome(None, SimulatorBug("it does not tile"))) == 1
    assert "a bug of the simulator, please report it: it does not tile" in capsys.readouterr().err


def test_a_bug_inside_a_command_is_a_message_too(command, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(_: Any) -> Outcome:
        raise SimulatorBug("it does not tile")

    monkeypatch.setattr(app_module, "_simulate", break_down)
    result = command("run", "rope_grad")
    assert result.code == 1
    assert result.err == "ascend-sim: a bug of the simulator, please report it: it does not tile\n"
