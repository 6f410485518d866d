"""A long run's log goes to disk while it runs; nothing that anybody reads of it changes."""

from __future__ import annotations

import errno
import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_real_runs

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.errors import ConfigError, KernelError, UnsupportedError
from ascend_sim.program import AHEAD
from ascend_sim.report import spool
from ascend_sim.report.folder import FILES, write_run_folder
from ascend_sim.report.store import StoredLog
from ascend_sim.run import Run
from ascend_sim.trace import CoreLog


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no core keep more than 40 items."""
    monkeypatch.setattr(spool, "ITEMS", 40)
    monkeypatch.setattr(spool, "_FEW", 8)


OPTIONS: list[dict[str, Any]] = [
    {"chip": "toy", "num": 2, "tiles": 40},
    {"chip": "toy", "tiles": 40, "l2": "warm", "auto_sync": True, "checks": "off"},
    {"chip": "ascend910b1", "tiles": 40, "blocks": 7, "physical_cores": 3, "numerics": "off"},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_run_folder_is_the_same_byte_for_byte(
    options: dict[str, Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    whole = test_real_runs.launch(**options)
    assert not isinstance(whole.log, StoredLog)
    first = write_run_folder(whole, tmp_path / "first")
    request.getfixturevalue("little_memory")
    run = test_real_runs.launch(**options)
    assert isinstance(run.log, StoredLog)
    second = write_run_folder(run, tmp_path / "second")
    for name in set(FILES) - {"recording.bin"}:  # its steps are numbered as they came
        assert (first / name).read_bytes() == (second / name).read_bytes(), name
    again = Run.load(second).recording().replay(run.chip, l2=options.get("l2", "cold"),
        physical_cores=run.options["cores"])  # fmt: skip
    assert again.cycles == whole.cycles
    assert run.recording().frees == whole.recording().frees
    assert run.diff(whole).as_dict() == whole.diff(run).as_dict()


@asc.jit(auto_sync=False)
def fails_late(x: asc.GlobalAddress, trips: int, how: str) -> None:
    gm = asc.GlobalTensor()
    gm.set_global_buffer(x)
    for _ in range(trips):
        a = asc.LocalTensor(asc.float16, asc.TPosition.VECCALC, 0, 128)
        asc.data_copy(a, gm, 128)
        asc.set_flag(asc.HardEvent.MTE2_V, 0)
        asc.wait_flag(asc.HardEvent.MTE2_V, 0)
        asc.adds(a, a, 1.0, 128)
        asc.set_flag(asc.HardEvent.V_MTE2, 0)
        asc.wait_flag(asc.HardEvent.V_MTE2, 0)
    if how == "hang":
        asc.wait_flag(asc.HardEvent.MTE3_V, 1)
    elif how == "bounds":
        asc.data_copy(a, gm[1 << 20 :], 128)
    else:
        raise KeyError(how)


@pytest.mark.parametrize("how", ["hang", "bounds"])
def test_what_is_left_of_a_run_that_was_cut_short_is_the_same(
    how: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    def cut_short() -> Run:
        with pytest.raises(KernelError) as caught:
            sim.launch(fails_late, np.zeros(128, np.float16), 100, how, chip="toy")
        assert caught.value.run is not None
        return caught.value.run

    whole = cut_short()
    request.getfixturevalue("little_memory")
    run = cut_short()
    assert isinstance(run.log, StoredLog)
    first, second = whole.save(tmp_path / "first"), run.save(tmp_path / "second")
    assert not (second / "recording.bin").exists()
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes(), path.name


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("how", ["hang", "bounds", "python"])
def test_a_run_that_fails_leaves_nothing_on_disk(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises((KernelError, KeyError)):
        sim.launch(fails_late, np.zeros(128, np.float16), 100, how, chip="toy")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("little_memory")
def test_what_stays_in_memory_does_not_grow_with_the_run() -> None:
    most: dict[int, int] = {}
    kept = spool.Spool.spill
    with pytest.MonkeyPatch.context() as patch:
        for trips in (100, 1000):

            def spill(self: spool.Spool, core: CoreLog, now: int, trips: int = trips) -> None:
                most[trips] = max(most.get(trips, 0), len(core.items))
                kept(self, core, now)

            patch.setattr(spool.Spool, "spill", spill)
            with pytest.raises(KernelError):
                sim.launch(fails_late, np.zeros(128, np.float16), trips, "hang", chip="toy")
    assert most[1000] <= most[100] + AHEAD


@pytest.mark.usefixtures("little_memory")
def test_a_disk_that_is_full_is_told_with_what_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, _: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: Full())
    with pytest.raises(ConfigError, match=r"No space left on device. Set TMPDIR to a directory"):
        test_real_runs.launch(chip="toy", tiles=40)


@pytest.mark.usefixtures("little_memory")
def test_a_kernel_that_reads_what_it_computed_is_refused_by_what_if_as_ever() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        gm = asc.GlobalTensor()
        gm.set_global_buffer(x)
        a = asc.LocalTensor(asc.float16, asc.TPosition.VECCALC, 0, 128)
        for _ in range(60):
            asc.data_copy(a, gm, 128)
            asc.pipe_barrier(asc.PipeID.PIPE_ALL)
            a.get_value(0)

    run = sim.launch(kernel, np.zeros(128, np.float16), chip="toy")
    assert isinstance(run.log, StoredLog)
    with pytest.raises(UnsupportedError, match="which the kernel computes"):
        run.recording()
