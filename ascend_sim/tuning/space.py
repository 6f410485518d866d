"""Spaces of parameters: ranges as people write them, and the points that they span.

`v1,v2,…` lists values, `a:b:step` counts from a to b (both included), `2^a..2^b` takes the powers; parts of all three
kinds may stand in one list. Where a value has commas of its own (`seq=2048,1024`), semicolons separate the values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from ascend_sim.chip_file import nearest
from ascend_sim.errors import ConfigError

MAX_POINTS = 1_000_000

Value = int | float | str
Point = dict[str, Value]

_POWERS = re.compile(r"(\d+)\^(\d+)\.\.(\d+)\^(\d+)")
_NUMBER_AND_COLON = re.compile(r"-?\d+:")
_RANGE = re.compile(r"(-?\d+):(-?\d+)(?::(-?\d+))?")


@dataclass(frozen=True, slots=True)
class Space:
    """Names and the values that each of them takes, in order."""

    axes: Mapping[str, tuple[Value, ...]]

    def __len__(self) -> int:
        return prod(len(values) for values in self.axes.values())

    def points(self) -> Iterator[Point]:
        """Yield every combination; the last name changes fastest."""
        for values in product(*self.axes.values()):
            yield dict(zip(self.axes, values, strict=True))

    @property
    def varying(self) -> list[str]:
        """The names with more than one value."""
        return [name for name, values in self.axes.items() if len(values) > 1]


def read_space(given: Mapping[str, Any] | Sequence[str]) -> Space:
    """Return the space of `NAME=range` entries, or of a mapping from names to ranges or sequences of values.

    Raises `ConfigError` for an empty space, a range that cannot be read or holds nothing, a name given twice, and
    more than a million points.
    """
    entries: list[tuple[str, Any]] = []
    if isinstance(given, Mapping):
        entries = [(str(name), value) for name, value in given.items()]
    else:
        entries = [_split(entry) for entry in given]
    axes: dict[str, tuple[Value, ...]] = {}
    for name, value in entries:
        if name in axes:
            raise ConfigError(
                f"{name} is given twice; put all of its values into one list: {name}=v1,v2,…"
            )
        values = read_values(name, value) if isinstance(value, str) else _listed(name, value)
        axes[name] = tuple(dict.fromkeys(values))
    if not axes:
        raise ConfigError(
            "no parameter to vary; give at least one NAME=range, such as MAX_PROCESS_NUM=2^10..2^13"
        )
    space = Space(axes)
    if len(space) > MAX_POINTS:
        raise ConfigError(
            f"{len(space):,} points are more than {MAX_POINTS:,}; give fewer values or longer steps"
        )
    return space


def _split(entry: str) -> tuple[str, str]:
    name, equals, value = entry.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise ConfigError(
            f"expected NAME=range, such as BUFFER_NUM=1,2 or MAX_PROCESS_NUM=2^10..2^13, and got {entry!r}"
        )
    return name.strip(), value.strip()


def _listed(name: str, value: Any) -> list[Value]:
    values = [value] if isinstance(value, (int, float)) else list(value)
    if not values:
        raise ConfigError(f"{name} has no values; an empty list leaves nothing to run")
    return [
        ",".join(map(str, one)) if isinstance(one, (list, tuple)) else _plain(one) for one in values
    ]


def _plain(value: Any) -> Value:
    plain = value.item() if hasattr(value, "item") else value
    return plain if isinstance(plain, (int, float, str)) else str(plain)


def read_values(name: str, text: str) -> list[Value]:
    """Return the values of one range as people write it. Raises `ConfigError`."""
    parts = text.rstrip(";").split(";") if ";" in text else text.split(",")
    values: list[Value] = []
    for part in parts:
        values += _part(name, part.strip())
    return values


def _part(name: str, part: str) -> list[Value]:
    if not part:
        raise ConfigError(f"{name}: a value is missing between two commas")
    powers = _POWERS.fullmatch(part)
    if powers is not None:
        return _powers(name, part, *map(int, powers.groups()))
    counted = _RANGE.fullmatch(part)
    if counted is not None:
        return _counted(name, part, *counted.groups())
    if ".." in part or "^" in part:
        raise ConfigError(f"{name}: cannot read {part!r}; powers are written 2^8..2^12")
    if _NUMBER_AND_COLON.match(part):
        raise ConfigError(
            f"{name}: cannot read {part!r}; a range is written first:last or first:last:step, in whole numbers"
        )
    return [number(part)]


def _powers(name: str, part: str, base: int, low: int, other: int, high: int) -> list[Value]:
    if base != other or base < 2:
        raise ConfigError(f"{name}: {part} has two bases; powers are written {base}^a..{base}^b")
    if low > high or base**high > 1 << 62:
        raise ConfigError(
            f"{name}: {part} holds nothing: the first power is above the last"
            if low > high
            else f"{name}: {part} goes beyond 2^62"
        )
    return [base**exponent for exponent in range(low, high + 1)]


def _counted(name: str, part: str, low: str, high: str, step: str | None) -> list[Value]:
    stride = int(step) if step is not None else 1
    if stride == 0:
        raise ConfigError(f"{name}: {part} has a step of 0")
    values = list(range(int(low), int(high) + (1 if stride > 0 else -1), stride))
    if not values:
        raise ConfigError(
            f"{name}: {part} holds nothing: from {low} a step of {stride} does not lead to {high}"
        )
    if len(values) > MAX_POINTS:
        raise ConfigError(f"{name}: {part} has {len(values):,} values, {MAX_POINTS:,} at most")
    return list(values)


def number(text: str) -> Value:
    """Return text as an integer or a float where it is one."""
    for kind in (lambda: int(text, 0), lambda: float(text)):
        try:
            return kind()
        except ValueError:
            continue
    return text


def check_names(space: Space, known: Sequence[str], owner: str) -> None:
    """Raise `ConfigError` for a name that `owner` does not have."""
    for name in space.axes:
        if name not in known:
            raise ConfigError(
                f"{owner} has no parameter {name!r}{nearest(name, known)} (it has: {', '.join(known)})"
            )
