"""A machine that shows each result to somebody, with what it was made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ascend_sim.core import Core
from ascend_sim.pipes import ComputePipe, MatrixPipe, MovePipe, PipeQueue
from ascend_sim.session import Session
from isa.types import Pipe

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from ascend_sim.gm import Port
    from ascend_sim.trace import Item
    from isa.access import Access

    Bytes = Callable[[Access], np.ndarray[Any, Any]]


class Watcher(Protocol):
    """Who is shown results."""

    def before(self, session: Session, item: Item, memories: Bytes) -> None:
        """See an instruction that is about to read its operands in `memories`."""
        ...

    def after(self, session: Session, item: Item, memories: Bytes) -> None:
        """See an instruction whose result stands in `memories`."""
        ...


class _WatchedCompute(ComputePipe):
    """Shows what it reads and writes."""

    __slots__ = ()

    def _read(self, item: Item) -> None:
        core = _watched(self.core)
        core.watcher.before(core.session, item, core.bytes)
        super()._read(item)

    def _write(self, item: Item) -> None:
        super()._write(item)
        core = _watched(self.core)
        core.watcher.after(core.session, item, core.bytes)


class _WatchedMatrix(MatrixPipe):
    """Shows sums as the unit itself knows them: its own earlier ones are added already."""

    __slots__ = ()

    def _read(self, item: Item) -> None:
        core = _watched(self.core)
        follows = core.fractals_follow(item.call)
        core.watcher.before(core.session, item, core.inner_bytes if follows else core.bytes)
        super()._read(item)
        core.watcher.after(core.session, item, core.inner_bytes)


class _WatchedMove(MovePipe):
    """Shows what it takes and brings."""

    __slots__ = ()

    def _read(self, item: Item) -> None:
        super()._read(item)  # what is due before it is done
        core = _watched(self.core)
        inner = bool(item.call.unit_flag)
        core.watcher.before(core.session, item, core.inner_bytes if inner else core.bytes)

    def _write(self, item: Item) -> None:
        super()._write(item)
        core = _watched(self.core)
        core.watcher.after(core.session, item, core.bytes)


class WatchedCore(Core):
    """A core whose results are looked at."""

    watcher: Watcher
    session: Session

    def make_pipe(self, pipe: Pipe, depth: int, rank: int, port: Port | None) -> PipeQueue:
        """Return a pipe that shows what it does."""
        if port is not None:
            return _WatchedMove(self, pipe, depth, rank, port)
        return (_WatchedMatrix if pipe is Pipe.M else _WatchedCompute)(self, pipe, depth, rank)

    def inner_bytes(self, access: Access) -> Any:
        """Return the bytes of a memory as pipe M knows it."""
        return access.buffer.data if access.buffer is not None else self.inside[access.space]


def _watched(core: Any) -> WatchedCore:
    assert isinstance(core, WatchedCore)
    return core


class WatchedSession(Session):
    """A machine whose results are looked at."""

    core_type = WatchedCore

    def __init__(self, watcher: Watcher, *args: Any, **settings: Any) -> None:
        self._watcher = watcher
        super().__init__(*args, **settings)

    def _make_cores(self, place: int) -> list[Core]:
        cores = super()._make_cores(place)
        for core in cores:
            _watched(core).watcher, _watched(core).session = self._watcher, self
        return cores
