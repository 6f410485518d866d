"""The log on disk: what is read back says what the live run says, and what is no log is refused."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_real_runs
from hypothesis import given, settings
from synthetic import logs

from ascend_sim.config import load_chip
from ascend_sim.errors import ConfigError
from ascend_sim.report import shelf, store
from ascend_sim.report.chrome import write_chrome_trace
from ascend_sim.report.ledger import build_ledger
from ascend_sim.report.perfetto import write_perfetto_trace
from ascend_sim.report.store import StoredLog, read_events, write_events
from ascend_sim.report.tables import write_instructions, write_pipes, write_stalls
from ascend_sim.run import Run
from ascend_sim.trace import Kind, Log

TOY = load_chip("toy")
WRITERS = (
    write_chrome_trace, write_perfetto_trace, write_stalls, write_pipes, write_instructions,
)  # fmt: skip


def text(write: Any, log: Log) -> str:
    stream = io.StringIO()
    write(log, TOY, stream)
    return stream.getvalue()


@pytest.fixture(scope="module", params=["short", "long"])
def length(request: pytest.FixtureRequest) -> Iterator[str]:
    """What was read of a long log is not kept: here every log is one, and one core at a time is in memory."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "long":
            patch.setattr(store, "WHOLE", 0)
            patch.setattr(shelf, "ROOM", 0)
        yield request.param


@given(log=logs())
@settings(max_examples=30, deadline=None)
def test_every_report_of_a_log_from_disk_is_that_of_the_live_one(length: str, log: Log) -> None:
    for number, core in enumerate(log.cores):
        sets = [item for item in core.items if item.kind is Kind.SET_FLAG]
        for item in core.items:
            item.core = number
            if item.kind is Kind.WAIT_FLAG and sets:
                item.partner = sets[0]
    stream = io.BytesIO()
    write_events(build_ledger(log), {"op": "x"}, stream)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "events.npz"
        file.write_bytes(stream.getvalue())
        stored, about = read_events(file)
        assert about["op"] == "x"
        assert isinstance(stored, StoredLog)
        assert stored.long == (length == "long" and any(len(core.items) for core in log.cores))
        for write in WRITERS:
            assert text(write, stored) == text(write, log)


@pytest.mark.usefixtures("length")
def test_a_run_from_disk_says_what_the_live_one_says(tmp_path: Path) -> None:
    live = test_real_runs.launch(chip="toy", num=2, blocks=3)
    folder = live.save(str(tmp_path / "first"))
    saved = Run.load(folder)
    assert saved.summary == live.summary
    assert saved.stalls() == live.stalls()
    assert saved.stalls(by=("line", "trip", "late")) == live.stalls(by=("line", "trip", "late"))
    assert list(saved.critical_path().rows()) == list(live.critical_path().rows())
    assert [str(finding) for finding in saved.findings] == [str(f) for f in live.findings]
    assert saved.chip == live.chip
    assert saved.diff(live).as_dict() == live.diff(saved).as_dict()
    assert [len(entry.columns) for entry in saved.ledger] == saved.ledger.lengths
    again = saved.save(str(tmp_path / "second"))
    for path in sorted(folder.iterdir()):
        assert (again / path.name).read_bytes() == path.read_bytes(), path.name


def test_numpy_opens_the_log_by_itself(tmp_path: Path) -> None:
    run = test_real_runs.launch(chip="toy", blocks=2)
    folder = run.save(str(tmp_path / "run"))
    with np.load(folder / "events.npz") as arrays:
        items = arrays["core0/items"]
        assert items["end"].max() <= run.cycles
        assert len(items) == len(run.log.cores[0].items)


def test_what_is_no_log_of_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"events\.npz is not there"):
        Run.load(tmp_path)
    file = tmp_path / "events.npz"
    file.write_text("no zip")
    with pytest.raises(ConfigError, match="is not the log of a run"):
        Run.load(tmp_path)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("meta.json", json.dumps({"format": 99}))
    with pytest.raises(ConfigError, match="version 99, this simulator reads version 1"):
        Run.load(tmp_path)


def test_a_log_that_lost_a_core_is_refused(tmp_path: Path) -> None:
    folder = test_real_runs.launch(chip="toy").save(tmp_path / "run")
    with zipfile.ZipFile(folder / "events.npz") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(folder / "events.npz", "w") as archive:
        for name, content in members.items():
            if name != "core0/items.npy":
                archive.writestr(name, content)
    with pytest.raises(ConfigError, match=r"not the whole log of a run.*core0/items"):
        Run.load(folder)
