"""What SimPy's clock brings about: a cycle at which something is due."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import simpy


class Slot(simpy.Event):
    """What is due at one cycle. It happens when SimPy's clock gets there, so it needs no more than SimPy looks at."""

    _ok = True

    def __init__(self, time: int, entry: Any, serve: Callable[[Slot], None]) -> None:
        self.time = time
        self.entries = [entry]
        self.callbacks: list[Any] = [serve]
