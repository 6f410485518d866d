"""Random command lines: an exit code and a message, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascend_sim.cli.app import app
from tests.fuzz.command_lines import CODES, HereWorkers, command_lines, is_small, prepare


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Points of a sweep run in this process, and no environment for `export` is found."""
    monkeypatch.setattr("ascend_sim.tuning.sweeps.Workers", HereWorkers)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def answers(seed: int, number: int, folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Run command lines in this process; return what is wrong with the answers."""
    wrong = []
    for line in command_lines(seed, number):
        if not is_small(line):
            continue
        prepare(folder)
        said = ""
        try:
            app(line, prog_name="ascend-sim")
        except SystemExit as stop:
            said = "" if stop.code in CODES else f"exit code {stop.code!r}"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        printed = capsys.readouterr()
        if "Traceback" in printed.err + printed.out:
            said = "a traceback"
        if said:
            wrong.append(f"ascend-sim {' '.join(map(repr, line))}\n    {said[:300]}")
    return wrong


def test_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert answers(0, 60, tmp_path, capsys) == []


@pytest.mark.slow
def test_ten_thousand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert answers(1, 10_000, tmp_path, capsys) == []


@pytest.mark.parametrize(
    "line",
    [["chips", "a" * 300], ["report", "a" * 300], ["check", "kernel.py", "--seed", str(10**20)]],
)
def test_what_was_found(
    line: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    with pytest.raises(SystemExit) as stop:
        app(line, prog_name="ascend-sim")
    assert stop.value.code == 1 and capsys.readouterr().err.strip()
