"""Running points on a Dask cluster: its workers do what the processes of this machine would."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

from ascend_sim.errors import ConfigError
from ascend_sim.tuning.space import Point
from ascend_sim.tuning.store import simulator_version
from ascend_sim.tuning.task import Front, Row, Task, evaluate, new_recordings
from ascend_sim.tuning.workers import Done

TIMEOUT = 20
"""Seconds to wait for the scheduler."""

# A worker may have threads; running a program is an affair of the whole process.
_ONE_AT_A_TIME = threading.Lock()


class Cluster:
    """The workers of a Dask scheduler. Use as a context.

    A batch whose worker dies runs again on another one; after three deaths its points are rows that say so. The
    cluster needs this version of the simulator, and the target's file at the same path.

    Raises `ConfigError` where Dask is not installed, nobody answers, or a worker has another version.
    """

    def __init__(self, task: Task, address: str) -> None:
        self._task = task
        self._address = address
        self._client: Any = None

    def __enter__(self) -> Cluster:
        try:
            from distributed import Client  # noqa: PLC0415  of the extra `tune`
        except ImportError:
            raise ConfigError("--scheduler needs Dask: pip install 'ascend-sim[tune]'") from None
        try:
            self._client = Client(  # type: ignore[no-untyped-call]
                self._address, timeout=TIMEOUT, set_as_default=False
            )
        except (OSError, ValueError) as error:
            raise ConfigError(f"no Dask scheduler answers at {self._address}: {error}") from error
        try:
            self._check_versions()
        except BaseException:
            self._client.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    @property
    def size(self) -> int:
        """How many points can be at work at once."""
        return max(len(self._client.ncores()), 1)

    def run(self, batches: Sequence[Sequence[Point]], front: Front | None = None) -> Iterator[Done]:
        """Run batches; yield each point with its row as soon as it is done, in any order."""
        from distributed import as_completed  # noqa: PLC0415  of the extra `tune`

        client = self._client
        known = None if front is None else [dict(point) for point in front]
        futures = {
            client.submit(work, self._task.as_dict(), list(batch), known, pure=False): batch
            for batch in batches
        }
        for future in as_completed(futures, loop=client.loop):  # type: ignore[no-untyped-call]
            yield from _results(future, futures.pop(future))

    def _check_versions(self) -> None:
        mine = simulator_version()
        for worker, version in self._client.run(simulator_version).items():
            if version != mine:
                raise ConfigError(
                    f"worker {worker} of {self._address} has version {version} of the simulator, this is {mine}: "
                    "install the same one everywhere"
                )


def work(
    task: dict[str, Any], points: list[Point], front: Front | None = None
) -> list[tuple[Point, Row]]:
    """Run a batch; this is what travels to a worker."""
    whole = Task.of(task)
    with _ONE_AT_A_TIME:
        recordings = new_recordings()
        return [(point, evaluate(whole, point, recordings, front)) for point in points]


def _results(future: Any, batch: Sequence[Point]) -> Iterator[Done]:
    if future.status == "finished":
        yield from future.result()
        return
    reason = _reason(future)
    for point in batch:
        yield point, {"status": "crash", "reason": reason, "simulated": 1}


def _reason(future: Any) -> str:
    from distributed import KilledWorker  # noqa: PLC0415  of the extra `tune`

    error = future.exception()
    if isinstance(error, KilledWorker):
        return "every worker that ran it died"
    return f"the cluster could not run it: {type(error).__name__}: {error}"
