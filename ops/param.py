"""Operation parameters: dataclasses that are read from and printed as JSON objects.

A field says its JSON name and how its value is read; see `json_field`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NoReturn, Self

import numpy as np

from ascend_sim.chip_file import nearest
from ops.status import Refusal, Status

Reader = Callable[[str, Any], Any]
"""Takes the JSON name and the value given; returns the field's value or raises `Refusal`."""

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1


def json_field(name: str, read: Reader, default: Any, *, printed: bool = True) -> Any:
    """Return a dataclass field with the JSON name `name`; `printed`: whether the library prints it."""
    return field(default=default, metadata={"name": name, "read": read, "printed": printed})


@dataclass(frozen=True)
class Param:
    """Parent of the operations' parameters. Missing keys have the library's defaults."""

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Return the parameter of a JSON object.

        Raises `Refusal` (ERROR_INVALID_PARAM) for an unknown key or a value of the wrong type.
        """
        if not isinstance(given, Mapping):
            _refuse(
                f"the parameter is a dict such as {cls().to_dict()}, not {type(given).__name__}"
            )
        known = {f.metadata["name"]: f for f in fields(cls)}
        for key in given:
            if key not in known:
                hint = nearest(str(key), known)
                _refuse(f"unknown parameter {key!r}{hint} (known: {', '.join(known)})")
        values = {
            known[key].name: known[key].metadata["read"](key, value) for key, value in given.items()
        }
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameter as the JSON object that the library prints."""
        printed = [f for f in fields(self) if f.metadata["printed"]]
        return {f.metadata["name"]: _plain(getattr(self, f.name)) for f in printed}

    def to_json(self) -> str:
        """Return the parameter as JSON text."""
        return json.dumps(self.to_dict())


def int32_list(name: str, value: Any) -> tuple[int, ...]:
    """Read a list of int32."""
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        _refuse(f"{name} is a list of integers, not {value!r}")
    return tuple(_int32(f"{name}[{i}]", entry) for i, entry in enumerate(value))


def int32(name: str, value: Any) -> int:
    """Read an int32."""
    return _int32(name, value)


def number(name: str, value: Any) -> float:
    """Read a number that the library keeps as a float32."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        _refuse(f"{name} is {value!r}; it is a number")
    return float(value)


def text(name: str, value: Any) -> str:
    """Read a text."""
    if not isinstance(value, str):
        _refuse(f"{name} is {value!r}; it is a text")
    return value


def reserved(size: int) -> Reader:
    """Return the reader of a reserved array of `size` bytes; a shorter list is filled up with zeros."""

    def read(name: str, value: Any) -> bytes:
        entries = int32_list(name, list(value) if isinstance(value, bytes) else value)
        if len(entries) > size:
            _refuse(f"{name} has {len(entries)} bytes; it has {size} at most")
        for i, entry in enumerate(entries):
            if not 0 <= entry <= 255:
                _refuse(f"{name}[{i}] is {entry}; it is a byte")
        return bytes(entries).ljust(size, b"\0")

    return read


def _int32(name: str, value: Any) -> int:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        _refuse(f"{name} is {value!r}; it is an integer")
    if not INT32_MIN <= value <= INT32_MAX:
        _refuse(f"{name} is {value}; it is an int32, {INT32_MIN} to {INT32_MAX}")
    return int(value)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple | bytes) else value


def _refuse(message: str) -> NoReturn:
    raise Refusal(Status.ERROR_INVALID_PARAM, message)
