"""What the product loop takes of a cube core: parts of its memories, and event ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isa.faults import fault
from isa.layout import round_up
from isa.tensor import LocalTensor
from isa.types import EVENT_IDS, POSITION_SPACE, DType, HardEvent, Space, TPosition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascend_sim.lang.pipe import TPipe
    from ascend_sim.program import Program

Wish = tuple[TPosition, DType, int, int]
"""Position, element type, elements of one buffer, how many buffers."""

_BORDER = {Space.L1: 512, Space.L0A: 512, Space.L0B: 512, Space.L0C: 1024, Space.BT: 64}


class CubeMemory:
    """Memory and event ids of the Matmul objects of one core, which use them one after another."""

    def __init__(self, stream: Program, pipe: TPipe) -> None:
        self.buffers: dict[str, list[LocalTensor]] = {}
        self._stream = stream
        self._pipe = pipe
        self._regions: dict[Space, tuple[int, int]] = {}
        self._ids: dict[HardEvent, list[int]] = {}

    def lay_out(self, wishes: Mapping[str, Wish]) -> None:
        """Give each name its buffers, one behind another in each memory. What was there before is given up."""
        sizes: dict[Space, int] = {}
        places: dict[str, tuple[int, int]] = {}
        for name, (position, dtype, elements, count) in wishes.items():
            space = POSITION_SPACE[position]
            length = round_up(elements * dtype.size, _BORDER[space])
            places[name] = (sizes.get(space, 0), length)
            sizes[space] = sizes.get(space, 0) + length * count
        for space, size in sizes.items():
            self._provide(space, size)
        session = self._stream.session
        self.buffers = {}
        for name, (position, dtype, _, count) in wishes.items():
            space = POSITION_SPACE[position]
            start, length = places[name]
            base = self._regions[space][0] + start if count else 0
            self.buffers[name] = [
                LocalTensor(
                    dtype,
                    position,
                    address,
                    length // dtype.size,
                    owner=session.owner(f"matmul {name}[{number}]", space, address, length),
                )
                for number in range(count)
                for address in (base + number * length,)
            ]

    def _provide(self, space: Space, size: int) -> None:
        held = self._regions.get(space)
        if held is not None and held[1] >= size:
            return
        if held is not None and self._pipe.extend(space, held, size):
            self._regions[space] = (held[0], size)
            return
        self._regions[space] = (self._pipe.reserve("matmul", space, size), size)

    def ids(self, event: HardEvent) -> list[int]:
        """Return the event ids that the objects use of an event; they are theirs from the first call on."""
        ids = self._ids.get(event)
        if ids is None:
            ids = self._ids[event] = []
            while len(ids) < EVENT_IDS and (~self._stream.events[event] & 0xFF):
                ids.append(self._stream.take_event(event, "matmul"))
            for one in ids:
                self._stream.events_by_hand[event] |= 1 << one
        return ids

    def need(self, event: HardEvent, count: int) -> list[int]:
        """Return the first `count` ids of an event; fault where queues hold too many of them."""
        ids = self.ids(event)
        if len(ids) < count:
            fault(
                "QUEUE",
                "no-event-id",
                f"a Matmul object needs {count} ids of {event.name}, queues of this kernel hold all but {len(ids)}. "
                f"Use fewer queues on the cube core, or smaller depth_a1 and depth_b1",
            )
        return ids

    def release(self) -> None:
        """Give all event ids back."""
        for event, ids in self._ids.items():
            for one in ids:
                self._stream.events_by_hand[event] &= ~(1 << one)
                self._stream.release_event(event, one)
        self._ids = {}
