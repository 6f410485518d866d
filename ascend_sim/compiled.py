"""The modules that are compiled ahead of time, and what to do where their sources have changed since.

An installation compiles them where it can (`.ci/compile.py`) and notes the sums of their sources. Compiled code of
sources that are no longer the same is not used: then all of them run from source.
"""

from __future__ import annotations

import json
import os
import sys
import zlib
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

PACKAGE = Path(__file__).parent
NOTE = PACKAGE / "compiled.json"
FILES = "ascend_sim/"
"""How names of files begin in tracebacks through compiled code."""
VARIABLE = "ASCEND_SIM_PURE"
"""Where it is set, everything runs from source."""


class _Sources(MetaPathFinder):
    """Finds modules' sources though compiled ones lie beside them."""

    def __init__(self, names: list[str]) -> None:
        self._files = {f"ascend_sim.{name}": PACKAGE / f"{name}.py" for name in names}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = self._files.get(fullname)
        return spec_from_file_location(fullname, file) if file is not None else None


def use_sources_that_changed() -> None:
    """Turn compiled modules away unless all of them still are what their sources say."""
    try:
        sums: dict[str, int] = json.loads(NOTE.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return  # nothing has been compiled
    if os.environ.get(VARIABLE) or any(_sum(name) != known for name, known in sums.items()):
        sys.meta_path.insert(0, _Sources(list(sums)))


def _sum(name: str) -> int:
    try:
        return zlib.crc32((PACKAGE / f"{name}.py").read_bytes())
    except OSError:
        return -1


def is_compiled() -> bool:
    """Return whether the machine runs as compiled code."""
    return not str(sys.modules["ascend_sim.core"].__file__).endswith(".py")
