"""The tuner: finds the best point of a space with few simulations, and says why it is the best.

Optuna proposes the points. Before one is simulated its kernel is recorded, which costs little: what does not fit
or is refused ends there, and so does what cannot win because even its lower bound is above the best time. The
neighbours of the best point come first, so that what is found is at least the best of its surroundings.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascend_sim.config import load_chip
from ascend_sim.errors import ConfigError
from ascend_sim.tuning.space import Point, Space
from ascend_sim.tuning.store import FAILED, Store, point_key
from ascend_sim.tuning.sweeps import Progress, Result, default_folder, identity, team
from ascend_sim.tuning.task import Row, Task, check_task, default_point

if TYPE_CHECKING:
    from ascend_sim.tuning.workers import Team

OBJECTIVES = {"time": "time_us", "ub": "ub_bytes", "cores": "cores"}
"""What can be made small, and the column that holds it."""
STUDY = "study.log"
WORST = 1e18


@dataclass(frozen=True, slots=True)
class Tuned:
    """What a search came to: everything that was tried, the best point, the runner-up."""

    result: Result
    objectives: tuple[str, ...]
    simulations: int
    best: dict[str, Any] | None
    runner_up: dict[str, Any] | None

    def pareto(self) -> list[dict[str, Any]]:
        """Return the points that no other one beats in time, UB bytes and cores at once, fastest first."""
        good = [row for row in self.result.rows if row["status"] == "ok"]
        front = [row for row in good if not any(_beats(other, row) for other in good)]
        return sorted(front, key=lambda row: row["time_us"])


def _beats(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    mine = [one[column] for column in OBJECTIVES.values()]
    theirs = [other[column] for column in OBJECTIVES.values()]
    return all(a <= b for a, b in zip(mine, theirs, strict=True)) and mine != theirs


def tune_space(
    task: Task,
    space: Space,
    *,
    budget: int | None = None,
    objectives: Sequence[str] = ("time",),
    out: str | Path | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    seed: int = 0,
    retry: bool = False,
    progress: Progress | None = None,
) -> Tuned:
    """Search a space with at most `budget` simulations (0.3 of its points, at least 10, where None).

    The first of `objectives` decides; with more than one, points on the way to a better value of any are kept.
    Raises `ConfigError` as a sweep does, and for an objective that there is not or a budget below 1.
    """
    _check(objectives, budget)
    check_task(task, space)
    limit = budget if budget is not None else max(10, int(0.3 * len(space)))
    folder = Path(out) if out is not None else _folder(task, space)
    about = {**identity(task, space), "objectives": list(objectives)}
    with Store(folder, about) as store, team(task, workers, scheduler, len(space)) as hands:
        if retry:
            store.forget(FAILED)
        search = _Search(task, space, store, hands, tuple(objectives), seed)
        search.run(limit, progress)
        rows = search.rows()
    return _conclude(Result(task, space, folder, rows), tuple(objectives))


def _check(objectives: Sequence[str], budget: int | None) -> None:
    for name in objectives:
        if name not in OBJECTIVES:
            raise ConfigError(f"no objective {name!r} (there are: {', '.join(OBJECTIVES)})")
    if not objectives or len(set(objectives)) < len(objectives):
        raise ConfigError("give each objective once, and at least one")
    if budget is not None and budget < 1:
        raise ConfigError(f"a budget of {budget} simulations finds nothing; give at least 1")


def _folder(task: Task, space: Space) -> Path:
    folder = default_folder(task, space)
    return folder.with_name(f"tune-{folder.name}")


def _conclude(result: Result, objectives: tuple[str, ...]) -> Tuned:
    columns = [OBJECTIVES[name] for name in objectives]
    columns += [column for column in OBJECTIVES.values() if column not in columns]
    good = sorted(
        (row for row in result.rows if row["status"] == "ok"),
        key=lambda row: [row[column] for column in columns],
    )
    return Tuned(
        result,
        objectives,
        sum(row["simulated"] for row in result.rows),
        good[0] if good else None,
        good[1] if len(good) > 1 else None,
    )


class _Search:
    """One search: Optuna's study beside the rows that are known."""

    def __init__(
        self,
        task: Task,
        space: Space,
        store: Store,
        hands: Team,
        objectives: tuple[str, ...],
        seed: int,
    ) -> None:
        self.task = task
        self.space = space
        self.store = store
        self.hands = hands
        self.columns = [OBJECTIVES[name] for name in objectives]
        self.known: dict[str, Row] = {
            point_key(point): row
            for point in space.points()
            if (row := store.row(point)) is not None
        }
        self.simulations = sum(row["simulated"] for row in self.known.values())
        self.study = _study(store.folder / STUDY, len(objectives), seed + len(self.known))
        self.start = default_point(task, space)
        self._tried: set[str] = set()

    def run(self, budget: int, progress: Progress | None) -> None:
        """Try points until the budget is used or every point is known."""
        total = len(self.space)
        while self.simulations < budget and len(self.known) < total:
            if progress is not None:
                progress(self.simulations, budget)
            room = min(self.hands.size, budget - self.simulations, total - len(self.known))
            trials = [trial for trial in (self._ask() for _ in range(room)) if trial is not None]
            points = [point for _, point in trials]
            rows = self._evaluate(points)
            for trial, point in trials:
                self._tell(trial, rows[point_key(point)])
        if progress is not None:
            progress(budget, budget)

    def _evaluate(self, points: Sequence[Point]) -> dict[str, Row]:
        front = [
            {column: row[column] for column in self.columns}
            for row in self.known.values()
            if row["status"] == "ok"
        ]
        found = {}
        for point, row in self.hands.run([[point] for point in points], front):
            self.store.add(point, row)
            found[point_key(point)] = row
        for key, row in found.items():
            self.known[key] = {**row}
            self.simulations += row["simulated"]
        return found

    # ---- proposals --------------------------------------------------------------------------

    def _ask(self) -> tuple[Any, Point] | None:
        """Return a trial of a point that is not known yet."""
        point = next(self._promising(), None)
        if point is None:
            for _ in range(20):
                trial, proposed = self._propose()
                if not self._is_new(proposed):
                    self._tell(trial, self.known.get(point_key(proposed)))
                    continue
                self._tried.add(point_key(proposed))
                return trial, proposed
            point = next((point for point in self.space.points() if self._is_new(point)), None)
            if point is None:
                return None
        self._tried.add(point_key(point))
        self.study.enqueue_trial(self._numbers(point))
        trial, _ = self._propose()
        return trial, point

    def _is_new(self, point: Point) -> bool:
        return point_key(point) not in self.known and point_key(point) not in self._tried

    def _promising(self) -> Iterator[Point]:
        """Yield the default, then what lies beside the best points, one step along one axis."""
        if self._is_new(self.start):
            yield self.start
        good = [
            (row[self.columns[0]], point)
            for point in self.space.points()
            if (row := self.known.get(point_key(point))) is not None and row["status"] == "ok"
        ]
        if not good:
            return
        _, best = min(good, key=lambda entry: entry[0])
        for name, values in self.space.axes.items():
            place = values.index(best[name])
            steps = (place + 1, place - 1) if _ordered(values) else range(len(values))
            for other in steps:
                if 0 <= other < len(values):
                    point = {**best, name: values[other]}
                    if self._is_new(point):
                        yield point

    def _propose(self) -> tuple[Any, Point]:
        trial = self.study.ask()
        point: Point = {}
        for name, values in self.space.axes.items():
            if _ordered(values):
                point[name] = values[trial.suggest_int(name, 0, len(values) - 1)]
            else:
                point[name] = values[trial.suggest_categorical(name, list(range(len(values))))]
        return trial, point

    def _numbers(self, point: Point) -> dict[str, int]:
        return {name: values.index(point[name]) for name, values in self.space.axes.items()}

    def _tell(self, trial: Any, row: Row | None) -> None:
        """Tell Optuna what a point came to; what failed is as bad as can be, a bound is what is known of a time."""
        if row is not None and row["status"] == "pruned" and len(self.columns) == 1:
            self.study.tell(trial, load_chip(row["chip"]).us(row["bound_cycles"]))
        elif row is None or row["status"] != "ok":
            self.study.tell(trial, [WORST] * len(self.columns))
        else:
            self.study.tell(trial, [row[column] for column in self.columns])

    # ---- results ----------------------------------------------------------------------------

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows that are known, in the order of the space."""
        return [
            {**row, **point}
            for point in self.space.points()
            if (row := self.store.row(point)) is not None
        ]


def _ordered(values: Sequence[Any]) -> bool:
    return all(isinstance(value, (int, float)) for value in values)


def _study(path: Path, objectives: int, seed: int) -> Any:
    try:
        import optuna  # noqa: PLC0415  of the extra `tune`
        from optuna.storages import JournalStorage  # noqa: PLC0415  as above
        from optuna.storages.journal import JournalFileBackend  # noqa: PLC0415  as above
    except ImportError:
        raise ConfigError("tune needs Optuna: pip install 'ascend-sim[tune]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # experimental marks of Optuna's own
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, n_startup_trials=8)
        return optuna.create_study(
            storage=JournalStorage(JournalFileBackend(str(path))),
            study_name="tune",
            sampler=sampler,
            directions=["minimize"] * objectives,
            load_if_exists=True,
        )
