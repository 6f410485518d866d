"""The lists, the help, and the commands that do not exist."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ascend_sim.config import list_chips


def test_chips_lists_every_chip(command) -> None:
    result = command("chips")
    assert result.code == 0
    lines = result.out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list_chips()
    (toy,) = [line for line in lines if line.startswith("toy ")]
    assert toy.split() == ["toy", "Toy", "1000", "2", "4", "192", "KiB", "16", "MiB", "500", "GB/s"]


def test_a_chip_shows_its_numbers_and_their_sources(command) -> None:
    result = command("chips", "toy")
    assert result.code == 0
    rows = {line.split()[0]: line.split()[1:] for line in result.out.splitlines() if line.strip()}
    assert rows["gm.latency_hbm"][:2] == ["200", "L"]
    assert rows["vector_costs.add.any"][:6] == ["10", "+", "1", "a", "repeat", "L"]


def test_ops_lists_operators_and_their_options(command) -> None:
    result = command("ops")
    assert result.code == 0
    assert "rope_grad: backward of the rotary position embedding" in result.out
    assert "--seq, --hidden, --max-seq, --variant, --rows" in result.out
    one = command("ops", "rope_grad")
    assert "--set BUFFER_NUM=N" in one.out
    assert "--seq L1,L2,..." in one.out


def test_validate_accepts_a_chip_and_says_how_far_to_trust_it(command, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("extends: toy\nrevision: 2\n", encoding="utf-8")
    result = command("validate", "mine.yaml")
    assert result.code == 0
    assert result.out.startswith("mine.yaml: a valid chip, mine (Toy); trust in its numbers: ")
    assert " low" in result.out


def test_validate_says_what_is_wrong_and_where(command, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("extends: toy\ngm:\n  latency_hmb: 3\n", encoding="utf-8")
    result = command("validate", "mine.yaml")
    assert result.code == 1
    assert "mine.yaml:3" in result.err
    assert "latency_hbm" in result.err
    missing = command("validate", "toy")
    assert missing.code == 1, "a file is meant, not a shipped chip's name"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("chips", "toi"), "no chip 'toi'; did you mean 'toy'?"),
        (("ops", "rope"), "no operator is called 'rope'; did you mean 'rope_grad'?"),
        (("rnu",), "no command 'rnu'; did you mean 'run'? (there are: "),
        (("serve", "rope_grad"), "no command 'serve'"),
        (("validate",), "FILE"),
        (("chips", "--nope"), "--nope"),
    ],
)
def test_unknown_names_exit_1_with_the_nearest_one(command, words, message) -> None:
    result = command(*words)
    assert result.code == 1
    assert message in result.err
    assert result.out == ""


def test_help_names_the_commands_that_there_are(command) -> None:
    result = command("--help")
    assert result.code == 0
    for name in ("run", "check", "chips", "ops", "validate"):
        assert f" {name} " in result.out
    assert command("run", "--help").code == 0


def test_the_version_is_printed(command) -> None:
    result = command("--version")
    assert result.code == 0
    assert result.out.startswith("ascend-sim ")


def test_it_runs_as_a_module_and_help_loads_no_simulator() -> None:
    code = (
        "import sys; sys.argv = ['x', '--help']\n"
        "from ascend_sim.cli.app import app\n"
        "try:\n    app(prog_name='ascend-sim')\n"
        "except SystemExit as stop:\n    assert stop.code == 0\n"
        "assert 'ops' not in sys.modules and 'rich.progress' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    module = subprocess.run(
        [sys.executable, "-m", "ascend_sim", "nope"], check=False, capture_output=True, text=True
    )
    assert module.returncode == 1
    assert "no command 'nope'" in module.stderr


def test_help_alone_has_a_whole_sentence_for_each_command(command, monkeypatch) -> None:
    monkeypatch.setattr("sys.argv", ["ascend-sim"])
    monkeypatch.setenv("COLUMNS", "80")
    result = command()
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("Usage: ascend-sim")
    assert "..." not in result.err.split("Commands:")[1]
