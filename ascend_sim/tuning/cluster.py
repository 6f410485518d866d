"""Running points on a Dask cluster: its workers do what the processes of this machine would."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

from ascend_sim.errors import ConfigError
from ascend_sim.tuning.space import Point
from ascend_sim.tuning.store import simulator_version
from ascend_sim.tuning.task import Row, Task, evaluate
from ascend_sim.tuning.workers import Done

_ONE_AT_A_TIME = (
    threading.Lock()
)  # a worker may have threads; running a program belongs to the whole process

TIMEOUT = 20
"""Seconds to wait for the scheduler."""


def run_on_cluster(task: Task, batches: Sequence[Sequence[Point]], address: str) -> Iterator[Done]:
    """Run batches on the workers of the scheduler at `address`; yield each point with its row as it is done.

    A batch whose worker dies runs again on another one; after three deaths its points are rows that say so. The
    cluster needs this version of the simulator, and the target's file at the same path.

    Raises `ConfigError` where Dask is not installed, nobody answers, or a worker has another version.
    """
    try:
        from distributed import Client, as_completed  # noqa: PLC0415  of the extra `tune`
    except ImportError:
        raise ConfigError("--scheduler needs Dask: pip install 'ascend-sim[tune]'") from None
    try:
        client = Client(address, timeout=TIMEOUT, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise ConfigError(f"no Dask scheduler answers at {address}: {error}") from error
    with client:
        _check_versions(client, address)
        futures = {
            client.submit(work, task.as_dict(), list(batch), pure=False): batch for batch in batches
        }
        for future in as_completed(futures, loop=client.loop):  # type: ignore[no-untyped-call]
            yield from _results(future, futures.pop(future))


def work(task: dict[str, Any], points: list[Point]) -> list[tuple[Point, Row]]:
    """Run a batch; this is what travels to a worker."""
    whole = Task.of(task)
    with _ONE_AT_A_TIME:
        recordings = whole.recordings(points)
        return [(point, evaluate(whole, point, recordings)) for point in points]


def _results(future: Any, batch: Sequence[Point]) -> Iterator[Done]:
    if future.status == "finished":
        for point, row in future.result():
            yield point, row
        return
    reason = _reason(future)
    for point in batch:
        yield point, {"status": "crash", "reason": reason}


def _reason(future: Any) -> str:
    from distributed import KilledWorker  # noqa: PLC0415  of the extra `tune`

    error = future.exception()
    if isinstance(error, KilledWorker):
        return "every worker that ran it died"
    return f"the cluster could not run it: {type(error).__name__}: {error}"


def _check_versions(client: Any, address: str) -> None:
    mine = simulator_version()
    for worker, version in client.run(simulator_version).items():
        if version != mine:
            raise ConfigError(
                f"worker {worker} of {address} has version {version} of the simulator, this is {mine}: install the "
                "same one everywhere"
            )
