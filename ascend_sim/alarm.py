"""What SimPy's clock brings about: the next cycle at which something is due."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import simpy


class Alarm(simpy.Event):
    """Goes off again and again. It happens when SimPy's clock gets there, so it needs no more than SimPy looks at."""

    _ok = True

    def __init__(self, ring: Callable[[Alarm], None]) -> None:
        self.callbacks: list[Any] = [ring]
