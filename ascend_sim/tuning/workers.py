"""Running points in processes of their own: one that dies takes its point with it and nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import IO, Any, Protocol

from ascend_sim.tuning.space import Point
from ascend_sim.tuning.task import Front, Row, Task

Done = tuple[Point, Row]
Job = tuple[Sequence[Point], Front | None]


def default_workers() -> int:
    """Return how many processes this machine has cores for."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Team(Protocol):
    """Whoever runs points."""

    @property
    def size(self) -> int:
        """How many points can be at work at once."""
        ...

    def run(self, batches: Sequence[Sequence[Point]], front: Front | None = None) -> Iterator[Done]:
        """Run batches; yield each point with its row as soon as it is done, in any order; `front` as in `evaluate`."""
        ...


class Workers:
    """Some worker processes. Use as a context: leaving it ends them.

    Points come in batches: those of one batch run in one process one after the other, so that they can share a
    recording.
    """

    def __init__(self, task: Task, count: int) -> None:
        self._task = task
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Done | Exception] = queue.SimpleQueue()
        self._hands = [_Hand(task, self._jobs, self._done) for _ in range(count)]

    def __enter__(self) -> Workers:
        for hand in self._hands:
            hand.start()
        return self

    def __exit__(self, *_: object) -> None:
        for hand in self._hands:
            hand.stop()

    @property
    def size(self) -> int:
        """How many processes there are."""
        return len(self._hands)

    def run(self, batches: Sequence[Sequence[Point]], front: Front | None = None) -> Iterator[Done]:
        """Run batches; yield each point with its row as soon as it is done, in any order."""
        for batch in batches:
            self._jobs.put((batch, front))
        for _ in range(sum(len(batch) for batch in batches)):
            result = self._done.get()
            if isinstance(result, Exception):
                raise result
            yield result


class _Hand(threading.Thread):
    """Drives one process: hands it points, starts another one when it dies."""

    def __init__(
        self,
        task: Task,
        jobs: queue.SimpleQueue[Job | None],
        done: queue.SimpleQueue[Done | Exception],
    ) -> None:
        super().__init__(daemon=True)
        self._task = task.as_dict()
        self._jobs = jobs
        self._done = done
        self._process: subprocess.Popen[str] | None = None

    def run(self) -> None:
        try:
            while (job := self._jobs.get()) is not None:
                batch, front = job
                for point in batch:
                    words = {
                        "task": self._task,
                        "point": point,
                        "front": front,
                    }
                    self._done.put((point, self._ask(words)))
        except Exception as error:  # the sweep itself must hear of it, unless it is over
            self._done.put(error)

    def stop(self) -> None:
        self._jobs.put(None)
        if self._process is not None:
            self._process.kill()
            _bury(self._process)

    def _ask(self, job: dict[str, Any]) -> Row:
        process = self._process
        if process is None:
            process = self._process = _start()
        line = ""
        with contextlib.suppress(OSError):  # a broken pipe: it has died
            _pipe(process.stdin).write(json.dumps(job) + "\n")
            _pipe(process.stdin).flush()
            line = _pipe(process.stdout).readline()
        if line.endswith("\n"):
            row: Row = json.loads(line)
            return row
        self._process = None
        return {"status": "crash", "reason": _bury(process), "simulated": 1}


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def _start() -> subprocess.Popen[str]:
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
    }  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-m", "ascend_sim.tuning.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        env=environment,
        start_new_session=True,  # Ctrl-C is for the sweep, which ends its workers itself
    )


def _bury(process: subprocess.Popen[str]) -> str:
    """Wait for a process's end, close what led to it, and say how it ended."""
    code = process.wait()
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            _pipe(stream).close()
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = str(-code)
        hint = ", as the system does when memory runs out" if -code == signal.SIGKILL else ""
        return f"its process was ended by signal {name}{hint}"
    return f"its process ended itself with status {code}"
