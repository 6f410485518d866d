"""What a command line asks for, checked before anything runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ascend_sim.chip_file import is_file, nearest
from ascend_sim.errors import ConfigError
from ascend_sim.l2 import STARTS

CHOICES = {
    "--numerics": ("on", "off", "exact"),
    "--checks": ("error", "collect", "off"),
    "--l2": STARTS,
    "--auto-sync": ("on", "off"),
    "--doctor": ("on", "off"),
}


@dataclass(slots=True)
class Request:
    """One run: a target and the options given; None where an option was not given."""

    target: str
    chip: str | None = None
    sets: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    cores: int | None = None
    numerics: str | None = None
    checks: str | None = None
    l2: str | None = None
    auto_sync: bool | None = None
    input_file: Path | None = None
    kernel: str | None = None
    operator_options: dict[str, str] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)

    @property
    def is_file(self) -> bool:
        """Whether the target is a Python file rather than an operator's name."""
        return self.target.endswith(".py") or is_file(Path(self.target))


def choose(option: str, value: str | None) -> str | None:
    """Return `value` if `option` may have it. Raises `ConfigError` with the nearest allowed value."""
    allowed = CHOICES[option]
    if value is not None and value not in allowed:
        hint = nearest(value, allowed)
        raise ConfigError(f"{option} is {value!r}{hint} (allowed: {', '.join(allowed)})")
    return value


def read_sets(entries: list[str]) -> dict[str, Any]:
    """Return the constants of `--set NAME=VALUE`; integers as such, anything else as text."""
    values: dict[str, Any] = {}
    for entry in entries:
        name, equals, value = entry.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise ConfigError(
                f"--set takes NAME=VALUE, such as --set BUFFER_NUM=2, and got {entry!r}"
            )
        values[name.strip()] = _number(value.strip())
    return values


def _number(text: str) -> int | str:
    try:
        return int(text, 0)
    except ValueError:
        return text


def check_chip(name: str | None) -> None:
    """Load the chip once, so that a wrong name fails before the work and not in the middle of it."""
    if name is not None:
        from ascend_sim.config import load_chip

        load_chip(name)


def apply_config(request: Request, path: Path) -> None:
    """Take what `request` leaves open from a file that `tune` wrote.

    Raises `ConfigError` for a file that cannot be read, is none of these, or belongs to another target.
    """
    import yaml

    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
        run, options, constants = (dict(found[key]) for key in ("run", "options", "set"))
        target = found["target"]
    except OSError as error:
        raise ConfigError(f"--config {path}: {error.strerror}") from error
    except (yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"--config {path} is no setting of a tuner: it needs target, run, options and set"
        ) from error
    if target != request.target:
        raise ConfigError(
            f"--config {path} is a setting of {target}, and {request.target} is to run"
        )
    request.sets = {**constants, **request.sets}
    given = {f"--{name}": str(value) for name, value in options.items()}
    request.operator_options = {**given, **request.operator_options}
    for name, value in run.items():
        key = name.replace("-", "_")
        if key == "auto_sync":
            value = value == "on"
        if getattr(request, key, None) is None:
            setattr(request, key, value)
    check_chip(request.chip)
