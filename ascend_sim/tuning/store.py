"""The results of a sweep on disk: one SQLite file, one row a point, written as soon as the point is done.

A row is committed whole or not at all, so a sweep that is killed loses what was under way and nothing else.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ascend_sim.errors import ConfigError
from ascend_sim.tuning.space import Point

FORMAT = 2
"""Version of the file's layout."""
FILE = "sweep.sqlite"

COLUMNS = (
    "status", "reason", "cycles", "time_us", "blocks", "cores", "bound_cycles", "limit", "ub_bytes", "gm_read",
    "gm_write", "l2_hit_bytes", "l2_miss_bytes", "write_back_bytes", "simulated", "seconds", "chip", "chip_revision",
    "version",
)  # fmt: skip
"""What a row holds besides the parameters, in the order of tables."""
FAILED = ("error", "crash")


def simulator_version() -> str:
    """Return the version of the simulator that runs."""
    try:
        return version("ascend-sim")
    except PackageNotFoundError:
        return "sources"


def point_key(point: Mapping[str, Any]) -> str:
    """Return what a point is known by: its parameters in a fixed order."""
    return json.dumps(dict(point), sort_keys=True)


class Store:
    """The folder of one sweep, locked while it is open.

    `identity` says what the sweep is: target, names, fixed options. A folder of another sweep, another version or
    with other revisions of its chips is refused, and stays as it is.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self.folder = folder
        self.path = folder / FILE
        if folder.exists() and not folder.is_dir():
            raise ConfigError(f"{folder} is no directory; name another one with --out")
        if folder.is_dir() and not self.path.exists() and any(folder.iterdir()):
            raise ConfigError(
                f"{folder} holds other files and no sweep: nothing was written; name another folder with --out"
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = (folder / ".lock").open("w")
        except OSError as error:
            raise ConfigError(f"cannot write to {folder}: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise ConfigError(
                f"another sweep is at work in {folder}: wait for it, or name another folder with --out"
            ) from None
        try:
            self._open(identity)
        except Exception:
            self._lock.close()
            raise

    def _open(self, identity: Mapping[str, Any]) -> None:
        try:
            self._base = sqlite3.connect(self.path, isolation_level=None)
            self._base.execute("PRAGMA journal_mode=WAL")
            self._base.execute("PRAGMA synchronous=FULL")
            self._base.execute(
                "CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT)"
            )
            known = dict(self._base.execute("SELECT name, value FROM about"))
        except sqlite3.DatabaseError as error:
            raise ConfigError(
                f"{self.path} is no sweep of this simulator ({error}): nothing was written; name another folder "
                "with --out"
            ) from error
        mine = {name: json.dumps(value, sort_keys=True) for name, value in identity.items()}
        mine |= {"format": str(FORMAT), "version": json.dumps(simulator_version())}
        if known:
            self._refuse_other(known, mine)
        else:
            columns = ", ".join(f'"{name}"' for name in COLUMNS)
            with self._transaction():
                self._base.execute(
                    f"CREATE TABLE points (key TEXT PRIMARY KEY, parameters TEXT, {columns})"
                )
                self._base.executemany("INSERT INTO about VALUES (?, ?)", mine.items())

    def _refuse_other(self, known: Mapping[str, str], mine: Mapping[str, str]) -> None:
        for name in sorted({*known, *mine}):
            if known.get(name) != mine.get(name):
                raise ConfigError(
                    f"{self.folder} is a sweep with another {name}: it has {known.get(name, 'none')}, this one has "
                    f"{mine.get(name, 'none')}. Nothing was overwritten; name another folder with --out"
                )

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._base.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._base.execute("ROLLBACK")
            raise
        self._base.execute("COMMIT")

    def check_revision(self, chip: str, revision: int) -> None:
        """Raise `ConfigError` where rows of a chip come from another revision of its file."""
        found = self._base.execute(
            "SELECT chip_revision FROM points WHERE chip = ? AND chip_revision != ? LIMIT 1",
            (chip, revision),
        ).fetchone()
        if found is not None:
            raise ConfigError(
                f"{self.folder} has results of {chip} in revision {found[0]}, its file is in revision {revision} now. "
                "Nothing was overwritten; name another folder with --out"
            )

    def done(self) -> set[str]:
        """Return the keys of the points that have a row."""
        return {key for (key,) in self._base.execute("SELECT key FROM points")}

    def add(self, point: Point, row: Mapping[str, Any]) -> None:
        """Write the row of a point; one that is there already stays."""
        values = {**row, "version": simulator_version()}
        cells = [values.get(name) for name in COLUMNS]
        marks = ", ".join("?" * (len(cells) + 2))
        with self._transaction():
            self._base.execute(
                f"INSERT OR IGNORE INTO points VALUES ({marks})",
                [point_key(point), json.dumps(point), *cells],
            )

    def forget(self, statuses: Sequence[str]) -> int:
        """Delete the rows with one of these statuses, so that their points run again; return how many."""
        marks = ", ".join("?" * len(statuses))
        with self._transaction():
            return self._base.execute(
                f"DELETE FROM points WHERE status IN ({marks})", statuses
            ).rowcount

    def row(self, point: Point) -> dict[str, Any] | None:
        """Return a point's row with its parameters, None where it has none."""
        columns = ", ".join(f'"{name}"' for name in COLUMNS)
        found = self._base.execute(
            f"SELECT {columns} FROM points WHERE key = ?", (point_key(point),)
        ).fetchone()
        if found is None:
            return None
        return dict(zip(COLUMNS, found, strict=True))

    def close(self) -> None:
        """Close the file and let others in."""
        self._base.close()
        self._lock.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
