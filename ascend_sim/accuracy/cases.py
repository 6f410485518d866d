"""The case file: published records and pairs, with their figures where they are open."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ascend_sim.errors import ConfigError

CHIPS = {
    "910B1": "ascend910b1",
    "A2-24": "ascend910b1",
    "910B2": "ascend910b2",
    "910B3": "ascend910b3",
    "910B4": "ascend910b4",
    "A3-die": "ascend910_93",
    "910_93": "ascend910_93",
}
"""Chip file of a record's chip; what names none of them is simulated as a 910B1."""


class Record(BaseModel):
    """One measured configuration, or a sweep of one parameter."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    family: str
    grade: Literal["A", "B", "C"] = "C"
    split: str = "open"
    chip: str = "910B1"
    cores: Any = None
    core_type: str | None = None
    shape: Any = None
    dtype: Any = None
    params: dict[str, Any] = Field(default_factory=dict)
    measured: dict[str, Any] = Field(default_factory=dict)

    @property
    def name(self) -> str:
        """The part of the id after the family."""
        return self.id.split(".", 1)[-1]

    @property
    def config(self) -> str:
        """The chip file that stands for the record's chip."""
        if self.chip in CHIPS:
            return CHIPS[self.chip]
        named = [file for name, file in CHIPS.items() if name in self.chip]
        return named[0] if named else "ascend910b1"

    @property
    def columns(self) -> list[str]:
        """Names of a table's columns, where the record's shape is one: "list of [M, K, N, dtype, us]"."""
        found = _TABLE.search(self.shape) if isinstance(self.shape, str) else None
        return [name.strip() for name in found[1].split(",")] if found else []

    @property
    def table(self) -> list[list[Any]] | None:
        """The rows of a sweep that is measured as one: a list of lists, in `measured`."""
        for value in self.measured.values():
            if isinstance(value, list) and value and isinstance(value[0], list):
                return value
        return None

    @property
    def figures(self) -> dict[str, Any]:
        """The measured figures; the time of a sweep that is a table, or that is called `us`, as `task_us`.

        In a table whose columns the shape does not name the time stands second.
        """
        times: Any = None
        if self.table is not None:
            at = self.columns.index("us") if self.columns else 1
            times = [row[at] if at < len(row) else None for row in self.table]
        else:
            times = next((self.measured[key] for key in _TIME if key in self.measured), None)
        return self.measured if times is None else {"task_us": times} | self.measured

    def points(self, *names: str) -> list[Any] | None:
        """Return a sweep's points: the rows of a table, or the first list that the record has under one of the names.

        Rows come without what stands behind the parameters in the shape's list of columns (`us` and on).
        """
        if self.table is not None:
            end = self.columns.index("us") if self.columns else None
            return [row[:end] for row in self.table]
        own = self.shape if isinstance(self.shape, dict) else {}
        for place in (self.measured, self.params, own):
            lower = {str(key).lower(): value for key, value in place.items()}
            for name in (*names, "rows"):
                value = lower.get(name.lower())
                if isinstance(value, list) and value:
                    return value
        return None


_TIME = ("us", "mean_us", "time_us")
_TABLE = re.compile(r"\[([^\[\]]*\bus\b[^\[\]]*)\]")


class Pair(BaseModel):
    """Two records and the gain that one change brought: time before over time after."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    before: str
    after: str
    metric: str = "task_us"
    gain: float | None = None
    split: str = "open"
    what_changed: str = ""


class CaseFile(BaseModel):
    """All records and pairs of a file."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    records: list[Record]
    pairs: list[Pair] = Field(default_factory=list)

    def grade(self, pair: Pair) -> str:
        """Return the worse grade of a pair's two records."""
        grades = {record.id: record.grade for record in self.records}
        return max(grades.get(pair.before, "C"), grades.get(pair.after, "C"))


def load_cases(path: str | Path) -> CaseFile:
    """Read a case file; figures given as the word `held` count as not given.

    Raises ConfigError with file and key path for a file that is not there, not YAML or not of this form.
    """
    file = Path(path)
    try:
        data = yaml.load(file.read_text(encoding="utf-8"), Loader=_Loader)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror})") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: not valid YAML ({str(error).splitlines()[0]})") from error
    if not isinstance(data, dict) or not isinstance(data.get("records"), list):
        raise ConfigError(f"{file}: a case file is a mapping with a list `records`")
    for entry in data["records"]:
        if isinstance(entry, dict) and not isinstance(entry.get("measured"), dict):
            entry["measured"] = {}
    for entry in data.get("pairs") or []:
        if isinstance(entry, dict) and not isinstance(entry.get("gain"), (int, float)):
            entry["gain"] = None
    try:
        return CaseFile.model_validate(data)
    except ValidationError as error:
        wrong = error.errors()[0]
        where = ".".join(str(part) for part in wrong["loc"])
        raise ConfigError(f"{file}: {where}: {wrong['msg']}") from error


_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
