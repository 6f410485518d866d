"""Sweeps: every point of a space, in parallel, resumable."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascend_sim.config import load_chip
from ascend_sim.errors import ConfigError
from ascend_sim.tuning.space import Point, Space
from ascend_sim.tuning.store import COLUMNS, FAILED, Store, point_key
from ascend_sim.tuning.task import Task, check_task
from ascend_sim.tuning.workers import Team, Workers, default_workers

if TYPE_CHECKING:
    import pandas

TOGETHER = ("chip", "l2")
"""Points that differ in these only run in one process: the first one's recording serves the others."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a sweep: its rows in the order of the space, and the folder that keeps them."""

    task: Task
    space: Space
    folder: Path
    rows: list[dict[str, Any]]

    @property
    def columns(self) -> list[str]:
        """The names of all columns: the parameters first."""
        return [*self.space.axes, *(name for name in COLUMNS if name not in self.space.axes)]

    def best(self) -> dict[str, Any] | None:
        """Return the row with the least time; None where nothing went through."""
        good = [row for row in self.rows if row["status"] == "ok"]
        return min(good, key=lambda row: row["time_us"], default=None)

    def frame(self) -> pandas.DataFrame:
        """Return the rows as a pandas data frame. Raises `ConfigError` where pandas is not installed."""
        try:
            import pandas  # noqa: PLC0415  of the extra `tune`
        except ImportError:
            raise ConfigError("a data frame needs pandas: pip install 'ascend-sim[tune]'") from None
        frame = pandas.DataFrame(self.rows, columns=self.columns)
        frame.attrs["folder"] = str(self.folder)
        return frame


def run_sweep(
    task: Task,
    space: Space,
    *,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    retry: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Run what of a sweep is missing and return all of it; `retry` runs again what crashed or failed by itself."""
    check_task(task, space)
    folder = Path(out) if out is not None else default_folder(task, space)
    points = list(space.points())
    with Store(folder, identity(task, space)) as store:
        for name in space.axes.get("chip", (task.fixed.get("chip", "ascend910b1"),)):
            chip = load_chip(str(name))
            store.check_revision(chip.name, chip.revision)
        if retry:
            store.forget(FAILED)
        done = store.done()
        missing = [point for point in points if point_key(point) not in done]
        finished = len(points) - len(missing)
        if progress is not None:
            progress(finished, len(points))
        work = batches(missing)
        if work:
            with team(task, workers, scheduler, len(work)) as hands:
                for point, row in hands.run(work):
                    store.add(point, row)
                    finished += 1
                    if progress is not None:
                        progress(finished, len(points))
        rows = [_full_row(store, point) for point in points]
    return Result(task, space, folder, rows)


def _full_row(store: Store, point: Point) -> dict[str, Any]:
    row = store.row(point)
    assert row is not None
    return {**row, **point}


@contextmanager
def team(task: Task, workers: int | None, scheduler: str | None, most: int) -> Iterator[Team]:
    """Yield who runs the points: processes here, at most `most`, or the workers of a Dask scheduler."""
    if scheduler is not None:
        from ascend_sim.tuning.cluster import Cluster  # noqa: PLC0415  loads Dask

        with Cluster(task, scheduler) as cluster:
            yield cluster
        return
    count = default_workers() if workers is None else workers
    if count < 1:
        raise ConfigError(f"{count} processes cannot run anything; give at least 1")
    with Workers(task, min(count, most)) as hands:
        yield hands


def batches(points: Iterable[Point]) -> list[list[Point]]:
    """Put points that can share a recording together, in their order."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        own = {name: value for name, value in point.items() if name not in TOGETHER}
        groups.setdefault(point_key(own), []).append(point)
    return list(groups.values())


def identity(task: Task, space: Space) -> dict[str, Any]:
    """Return what makes two sweeps the same: all but the values that the names take."""
    known = {**task.as_dict(), "names": sorted(space.axes)}
    path = Path(task.target)
    if path.is_file():
        known["source"] = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    return known


def default_folder(task: Task, space: Space) -> Path:
    """Return the folder of a sweep that nobody named one for: the same for the same target and names."""
    what = json.dumps([task.as_dict(), sorted(space.axes)], sort_keys=True)
    digest = hashlib.sha256(what.encode()).hexdigest()[:8]
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "_", Path(task.target).stem) or "sweep"
    return Path("sweeps") / f"{stem}-{digest}"
