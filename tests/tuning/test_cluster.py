"""A sweep on a Dask cluster of this machine: a scheduler and two workers, each a process, one killed in between."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ascend_sim as sim
from ascend_sim.tuning.space import read_space
from ascend_sim.tuning.sweeps import run_sweep
from ascend_sim.tuning.task import Task

pytest.importorskip("distributed", reason="the extra `tune` is not installed")

ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Start a scheduler and two workers; yield the scheduler's address and the workers' processes."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-m"]

    def start(*words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*command, *words], cwd=folder, env=environment, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE if "scheduler" in words[0] else subprocess.DEVNULL,
        )  # fmt: skip

    scheduler = start(
        "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"
    )
    workers: list[subprocess.Popen[bytes]] = []
    try:
        assert scheduler.stderr is not None
        address = ""
        for line in scheduler.stderr:
            if b"Scheduler at:" in line:
                address = line.decode().split()[-1]
                break
        assert address.startswith("tcp://")
        workers += [
            start(
                "distributed.cli.dask_worker", address, "--no-nanny", "--nthreads", "1",
                "--no-dashboard", "--host", "127.0.0.1",
            )
            for _ in range(2)
        ]  # fmt: skip
        from distributed import Client

        with Client(address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=120)
        yield address, workers
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()
        if scheduler.stderr is not None:
            scheduler.stderr.close()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_worker_dies_in_the_middle(target: str, tmp_path: Path) -> None:
    task, space = Task(target, {"chip": "toy"}), read_space(["SIZE=64:2048:64"])
    here = run_sweep(task, space, out="here", workers=2)
    killed: list[int] = []
    with cluster(tmp_path) as (address, workers):

        def progress(done: int, total: int) -> None:
            if done == 4 and not killed:
                workers[0].kill()
                killed.append(done)

        there = run_sweep(task, space, out="there", scheduler=address, progress=progress)
        assert killed
        assert [worker.poll() for worker in workers][1] is None
    for mine, theirs in zip(here.rows, there.rows, strict=True):
        assert {k: v for k, v in mine.items() if k != "seconds"} == {
            k: v for k, v in theirs.items() if k != "seconds"
        }
    assert len(there.rows) == 32


def test_nobody_there(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ascend_sim.tuning.cluster.TIMEOUT", 1)
    with pytest.raises(sim.ConfigError, match="no Dask scheduler answers at tcp:"):
        run_sweep(
            Task(target, {"chip": "toy"}), read_space(["SIZE=256"]), scheduler="tcp://127.0.0.1:9"
        )
