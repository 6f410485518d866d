"""Letting the name `asc` mean this simulator, so that a pyasc program runs here as it is."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


def our_modules() -> dict[str, ModuleType]:
    """Return `ascend_sim.asc` and everything under it, by the names that pyasc's modules have."""
    root = importlib.import_module("ascend_sim.asc")
    found = [root] + [
        importlib.import_module(part.name)
        for part in pkgutil.walk_packages(root.__path__, f"{root.__name__}.")
    ]
    return {module.__name__.removeprefix("ascend_sim."): module for module in found}


def install() -> dict[str, ModuleType]:
    """Make `import asc` this simulator in the whole process; return what had these names before."""
    before = {name: module for name, module in sys.modules.items() if _is_asc(name)}
    for name in before:
        del sys.modules[name]
    sys.modules.update(our_modules())
    return before


@contextmanager
def standing_in() -> Iterator[None]:
    """Make `import asc` this simulator for a while."""
    before = install()
    try:
        yield
    finally:
        for name in [name for name in sys.modules if _is_asc(name)]:
            del sys.modules[name]
        sys.modules.update(before)


def _is_asc(name: str) -> bool:
    return name == "asc" or name.startswith("asc.")
