"""Finding and running the kernels that were measured."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from ascend_sim.accuracy.cases import Record
from ascend_sim.chip_file import nearest
from ascend_sim.errors import ConfigError

_HERE = Path(__file__).resolve().parent
_PLACES = (_HERE.parents[1] / "benchmarks" / "measured", _HERE.parent / "measured")


def folder() -> Path:
    """Return the folder of the measured kernels: in a checkout, or inside an installed package."""
    for place in _PLACES:
        if (place / "cases.yaml").is_file():
            return place
    raise ConfigError(f"the measured kernels are not installed: no {_PLACES[0]}")


def list_families() -> list[str]:
    """Return the names of the families that have a kernel here."""
    return sorted(file.stem for file in folder().glob("*.py") if not file.stem.startswith("_"))


def load_family(name: str) -> ModuleType:
    """Import a family's module; raises ConfigError with the nearest name for one that there is not."""
    known = list_families()
    if name not in known:
        raise ConfigError(
            f"no family {name!r}{nearest(name, known)} (there are: {', '.join(known)})"
        )
    package = "ascend_sim_measured"
    if package not in sys.modules:
        holder = ModuleType(package)
        holder.__path__ = [str(folder())]
        sys.modules[package] = holder
    return importlib.import_module(f"{package}.{name}")


def simulate(record: Record) -> dict[str, Any]:
    """Run a record's kernel and return its simulated figures."""
    function: Callable[[Record], dict[str, Any]] = load_family(record.family).simulate
    return function(record)
