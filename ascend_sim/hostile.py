"""Legal but hostile timings: every delay is one that the hardware may show and no program may count on.

Work starts late, results land late, blocks begin in another order, scalar units are slow. What a pipe does in order
stays in order, and what flags and barriers order stays ordered.
"""

from __future__ import annotations

import random
from collections.abc import Container
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import Any

from ascend_sim.core import Core
from ascend_sim.gm import Port
from ascend_sim.pipes import ComputePipe, MatrixPipe, MovePipe, PipeQueue
from ascend_sim.session import Session
from ascend_sim.trace import Item
from isa.types import Pipe

LATEST = 1 << 14
"""The longest delay in cycles: longer than most kernels take for a tile on any pipe."""
SHORTEST = 1 << 3
SLOWEST = 64
"""How many times its time a scalar unit takes at most for issuing."""

Place = tuple[str, int, str, str]
"""What a delay belongs to: the source file and line ("", 0: a core), the pipe (or core), and what is late."""


@dataclass(frozen=True)
class Timing:
    """Delays drawn from a seed, each for one place of the kernel or one core.

    `only` limits them to some places, `limit` their length in cycles.
    """

    seed: int
    only: Container[Place] | None = None
    limit: int = LATEST

    def delay(self, place: Place) -> int:
        """Return the cycles by which a place is late: 0 for most, else from a few to more than a tile takes."""
        if self.only is not None and place not in self.only:
            return 0
        file, line, *unit = place
        chance = random.Random(repr((self.seed, *unit))).random()  # at all places of one unit
        # Without the folder, so that a seed means the same wherever the sources are.
        draw = random.Random(repr((self.seed, PurePath(file).name, line, *unit)))
        if draw.random() > chance:
            return 0
        return min(int(SHORTEST * (LATEST / SHORTEST) ** draw.random()), self.limit)

    def machine(self, delays: dict[Place, int]) -> Any:
        """Return what builds a session with this timing; `delays` takes up what was late."""
        return partial(HostileSession, self, delays)


class _Late:
    """What delays the instructions of one core, by their places."""

    def __init__(self, core: HostileCore, timing: Timing, delays: dict[Place, int]) -> None:
        self._core = core
        self._timing = timing
        self._delays = delays
        self._known: dict[tuple[int, str], int] = {}

    def by(self, item: Item, what: str) -> int:
        """Return how late an item is with what it does."""
        key = (item.site, what)
        delay = self._known.get(key)
        if delay is None:
            site = self._core.sites[item.site]
            delay = self._known[key] = self.at((site.file, site.line, item.pipe.name, what))
        return delay

    def at(self, place: Place) -> int:
        """Return the delay of a place, and note it if there is any."""
        delay = self._timing.delay(place)
        if delay:
            self._delays[place] = delay
        return delay


def _late(core: Any) -> _Late:
    assert isinstance(core, HostileCore)
    return core.late


class _LateCompute(ComputePipe):
    """Starts late and lands late."""

    __slots__ = ()

    def begin(self, item: Item, start: int) -> None:
        item.start = start = start + _late(self.core).by(item, "start")
        super().begin(item, start)

    def _compute(self, item: Item) -> None:
        _land_late(self, item, _late(self.core))
        super()._compute(item)


class _LateMatrix(MatrixPipe):
    """Starts late; its sums land late where no unit flags tell each unit's time."""

    __slots__ = ()

    def begin(self, item: Item, start: int) -> None:
        item.start = start = start + _late(self.core).by(item, "start")
        super().begin(item, start)

    def _compute(self, item: Item) -> None:
        if not item.call.unit_flag:
            _land_late(self, item, _late(self.core))
        super()._compute(item)


def _land_late(pipe: ComputePipe, item: Item, late: _Late) -> None:
    item.end += late.by(item, "end")
    pipe.landed = max(pipe.landed, item.end)


class _LateMove(MovePipe):
    """Starts late; what goes by GM lands late."""

    __slots__ = ()

    def begin(self, item: Item, start: int) -> None:
        item.start = start = start + _late(self.core).by(item, "start")
        super().begin(item, start)

    def done(self, item: Item) -> None:
        transfer: Any = item.spent
        transfer.latency += _late(self.core).by(item, "end")
        super().done(item)


class HostileCore(Core):
    """A core whose units are late, each in its own way."""

    late: _Late
    sites: list[Any]

    def make_pipe(self, pipe: Pipe, depth: int, rank: int, port: Port | None) -> PipeQueue:
        """Return a pipe that is late."""
        if port is not None:
            return _LateMove(self, pipe, depth, rank, port)
        return (_LateMatrix if pipe is Pipe.M else _LateCompute)(self, pipe, depth, rank)

    def disturb(self, session: HostileSession) -> None:
        """Take up the timing of a session."""
        self.sites = session.sites
        self.late = _Late(self, session.timing, session.delays)
        self._head = self.late.at(("", 0, self.name, "core"))
        slow = 1 + self.late.at(("", 0, self.name, "issue")) * SLOWEST // LATEST
        self.issue_cost = [cost * slow for cost in self.issue_cost]

    def start_block(self, program: Any, time: int) -> None:
        """Begin a block, late."""
        super().start_block(program, time + self._head)


class HostileSession(Session):
    """A machine with the delays of a timing."""

    core_type = HostileCore

    def __init__(
        self, timing: Timing, delays: dict[Place, int], *args: Any, **settings: Any
    ) -> None:
        self.timing = timing
        self.delays = delays
        super().__init__(*args, **settings)

    def _make_cores(self, place: int) -> list[Core]:
        cores = super()._make_cores(place)
        for core in cores:
            assert isinstance(core, HostileCore)
            core.disturb(self)
        return cores
