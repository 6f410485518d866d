"""The run folder: whole or not at all, the same bytes each time, nothing of the user's overwritten."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from synthetic import add_log

from ascend_sim.config import load_chip
from ascend_sim.errors import ConfigError, Finding
from ascend_sim.report import folder as folder_module
from ascend_sim.report.critical_path import critical_path
from ascend_sim.report.folder import FILES, write_run_folder
from ascend_sim.report.ledger import build_ledger
from ascend_sim.report.summary import build_summary

TOY = load_chip("toy")
FINDINGS = [Finding("RACE", "race", "Å message", "k.py", 3, bytes=(0, 4), related=[{"line": 2}])]


def write(out: Path | None = None, op: str = "add") -> Path:
    log = add_log()
    summary = build_summary(log, TOY, FINDINGS, None, {"op": op, "block_dim": 1})
    ledger = build_ledger(log)
    run = SimpleNamespace(
        log=log,
        chip=TOY,
        summary=summary,
        findings=FINDINGS,
        ledger=ledger,
        about={},
        sources={},
        critical_path=lambda: critical_path(ledger, TOY),
        attach=lambda folder: (folder / "recording.bin").write_bytes(b""),
    )
    return write_run_folder(run, out)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


def test_a_run_folder_holds_all_its_files_and_nothing_is_left_beside_it(here: Path) -> None:
    path = write()
    assert path == here / "runs" / "add-1"
    assert names(path) == sorted(FILES)
    assert names(here / "runs") == ["add-1"]
    summary = json.loads((path / "summary.json").read_text(encoding="utf-8"))
    assert summary["cycles"] == 420
    (finding,) = json.loads((path / "findings.json").read_text(encoding="utf-8"))
    assert (finding["bytes"], finding["hits"], finding["related"]) == ([0, 4], 1, [{"line": 2}])


def test_runs_are_numbered_by_the_first_free_number() -> None:
    assert [write().name for _ in range(3)] == ["add-1", "add-2", "add-3"]
    (Path("runs") / "add-2").rename("elsewhere")
    assert write().name == "add-2"
    assert write(op="../x y").name == "x_y-1"


def test_the_same_run_gives_the_same_bytes() -> None:
    first, second = write(), write()
    for name in FILES:
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_the_vendors_viewer_may_open_it() -> None:
    assert (write() / "trace.json").stat().st_mode & 0o022 == 0


def test_out_may_be_new_empty_or_an_old_run(here: Path) -> None:
    (here / "empty").mkdir()
    assert write(here / "empty") == here / "empty"
    assert write(here / "deep" / "new") == here / "deep" / "new"
    (here / "empty" / "summary.json").write_text('{"schema_version": 1}', encoding="utf-8")
    write(here / "empty")
    assert json.loads((here / "empty" / "summary.json").read_text(encoding="utf-8"))["op"] == "add"
    assert names(here) == ["deep", "empty"]


def test_anything_else_is_refused_and_left_as_it_is(here: Path) -> None:
    (here / "file").write_text("x", encoding="utf-8")
    with pytest.raises(ConfigError, match="is no directory"):
        write(here / "file")
    (here / "docs").mkdir()
    (here / "docs" / "thesis.txt").write_text("x", encoding="utf-8")
    with pytest.raises(ConfigError, match="is no run folder"):
        write(here / "docs")
    run = write()
    (run / "notes.txt").write_text("x", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"also holds notes\.txt"):
        write(run)
    assert names(here / "docs") == ["thesis.txt"]
    assert names(here / "runs") == ["add-1"]


def test_a_failure_leaves_the_old_run_and_nothing_half_written(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(here / "out")
    before = (path / "summary.json").read_bytes()

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder_module, "write_chrome_trace", fail)
    with pytest.raises(ConfigError, match="No space left on device"):
        write(here / "out")
    with pytest.raises(ConfigError):
        write()
    assert names(here) == ["out", "runs"]
    assert names(here / "out") == sorted(FILES)
    assert names(here / "runs") == []
    assert (path / "summary.json").read_bytes() == before


def test_a_place_that_cannot_be_written_is_a_clear_message(here: Path) -> None:
    (here / "file").write_text("x", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot write a run folder in"):
        write(here / "file" / "run")


def test_an_old_run_comes_back_if_the_new_one_cannot_take_its_place(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(here / "out")
    before = (path / "summary.json").read_bytes()
    rename = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise OSError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(ConfigError, match="Permission denied"):
        write(here / "out")
    assert (path / "summary.json").read_bytes() == before
    assert names(here) == ["out"]


def test_a_number_that_another_process_takes_meanwhile_is_left_to_it(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename
    taken: list[Path] = []

    def overtaken(self: Path, target: Path) -> Path:
        if not taken:
            taken.append(target)
            target.mkdir()
            (target / "theirs").touch()
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", overtaken)
    assert write().name == "add-2"
    assert names(here / "runs" / "add-1") == ["theirs"]
