"""Which bytes of one core's memories hold something that somebody wrote, and reads of those that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isa.cube_forms import LoadCall

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascend_sim.program import Program
    from ascend_sim.trace import Item
    from isa.access import Access
    from isa.tensor import Owner
    from isa.types import Space


class Written:
    """One bit for each byte of a core's memories, from the start of its block on."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._session = program.session
        self._written = {
            space: np.zeros(memory.nbytes, bool) for space, memory in program.core.memories.items()
        }
        self._hollow: list[tuple[Access, int]] = []  # loads of bytes that nothing had written
        self._complete: set[int] = set()  # calls whose reads have been found written
        self._marked: set[int] = set()  # calls whose writes have been marked
        self._calls_of: dict[int, set[int]] = {}  # those of both that use an owner's bytes

    def scalar(self, item: Item, access: Access, *, write: bool) -> None:
        """Take an access of the scalar unit."""
        view = access.byte_view(self._written[access.space])
        if write:
            view[...] = True
        elif not view.all():
            self._uninitialised(item, access)

    def instruction(self, item: Item) -> None:
        """Look over what an instruction reads, and mark what it writes."""
        call = item.call
        identity = id(call.template)
        if identity not in self._complete and not self._look_at_sources(item, identity):
            return
        if identity in self._marked and not call.undefined:
            return
        target = call.writes[0]
        if target.buffer is None:
            bits = self._written[target.space]
            lost = any(access.byte_view(bits).any() for access in call.undefined)
            view = target.byte_view(bits)
            if target.lanes is None:
                view[...] = True
            else:
                np.copyto(view, True, where=target.lanes[..., None])
            for access in call.undefined:
                access.byte_view(bits)[...] = False
            if lost:
                self._start_anew()
        if not call.undefined:
            self._marked.add(identity)
            if target.owner is not None:
                self._calls_of.setdefault(target.owner.serial, set()).add(identity)

    def _look_at_sources(self, item: Item, identity: int) -> bool:
        """Check that what a call reads has been written; return False where it has marked its writes itself."""
        call = item.call
        moves_only = isinstance(call, LoadCall)
        for access in call.reads:
            if access.buffer is None:
                if moves_only:
                    written = access.byte_view(self._written[access.space]).all(axis=-1)
                    if not written.all():
                        self._load_partly(item, written)
                        return False
                else:
                    self._check_written(item, access)
                if access.owner is not None:
                    self._calls_of.setdefault(access.owner.serial, set()).add(identity)
        self._complete.add(identity)
        return True

    def _load_partly(self, item: Item, written: NDArray[np.bool_]) -> None:
        """Take a load of elements of which only some have been written: the others arrive as unwritten ones."""
        target = item.call.writes[0]
        view = target.byte_view(self._written[target.space])
        arrived = item.call.arrives(written)[..., None]
        lost = bool((view & ~arrived).any())
        view[...] = arrived
        if lost:
            self._start_anew()
        self._hollow = [load for load in self._hollow if not target.covers(load[0])]
        self._hollow.append((target, item.site))

    def _start_anew(self) -> None:
        """Forget which calls need no further look: bytes that they use have become unwritten."""
        self._complete.clear()
        self._marked.clear()

    def forget(self, owner: Owner, space: Space, address: int, length: int) -> None:
        """Take a buffer's bytes for unwritten: a queue has handed them out anew."""
        self._written[space][address : address + length] = False
        for identity in self._calls_of.pop(owner.serial, ()):
            self._complete.discard(identity)
            self._marked.discard(identity)

    def _check_written(self, item: Item, access: Access) -> None:
        view = access.byte_view(self._written[access.space])
        written = (
            view.all()
            if access.lanes is None
            else view[np.broadcast_to(access.lanes, access.shape)].all()
        )
        if not written:
            self._uninitialised(item, access)

    def _uninitialised(self, item: Item, access: Access) -> None:
        bits = self._written[access.space]
        for low, high in access.ranges().tolist():
            missing = np.flatnonzero(~bits[low:high])
            if len(missing):
                first = low + int(missing[0])
                cure = "Load or fill it first, or shorten the operand"
                for load, site in reversed(self._hollow):
                    if load.space is access.space and load.low <= first < load.high:
                        cure = (
                            f"The load at {self._session.where_text(site)} took it from L1 bytes that nothing had "
                            f"written: fill them, or shorten the operand"
                        )
                        break
                self._session.report(
                    "UNINIT",
                    "uninitialised-read",
                    f"{item.name} reads {access.name}, {access.space.name} bytes {access.low} to {access.high}, but "
                    f"nothing has written byte {first} (byte {first - access.low} of the operand). {cure}",
                    item.site,
                    self._program.core.name,
                    item.pipe.name,
                    access.name,
                    (first, low + int(missing[-1]) + 1),
                    struck=True,
                )
                return
