"""TPipe: the memories and event ids of one core, handed out in order."""

from __future__ import annotations

from ascend_sim.lang.buffers import Buffers
from ascend_sim.lang.queues import program
from isa.faults import fault
from isa.types import BLOCK_BYTES, POSITION_SPACE, HardEvent, Space, TPosition


class TPipe(Buffers):
    """Hands out the on-chip memories of one core, in order from address 0. One at a time."""

    def __init__(self) -> None:
        stream = program()
        if stream.tpipe is not None:
            fault(
                "QUEUE",
                "second-pipe",
                "a second TPipe is made while one is alive; destroy the first one",
            )
        super().__init__()
        stream.tpipe = self
        stream.registers.reset()
        self._stream = stream
        self._used: dict[Space, int] = {}
        self._holders: list[tuple[str, Space, int, int]] = []
        stream.spend("TPipe", "pipe_init")

    def _reserve(
        self, label: str, space: Space, count: int, length: int, *, whole_memory: bool = False
    ) -> int:
        memory = self._stream.session.chip.memories[space.name]
        used = self._used.get(space, 0)
        self._holders.append((label, space, count, length))
        asked = used + count * length
        if asked > (memory.bytes if whole_memory else memory.usable):
            table = "".join(
                f"\n    {name:<16} {number} x {size} = {number * size} bytes"
                for name, where, number, size in self._holders
                if where is space
            )
            left = max((memory.usable - used) // count // BLOCK_BYTES * BLOCK_BYTES, 0)
            fits = (
                f"{left} bytes a buffer would still fit"
                if left
                else "nothing is left for it; make the buffers before it smaller"
            )
            kept = memory.reserved
            less = f" ({memory.bytes} less {kept} that the framework keeps)" if kept else ""
            fault(
                "CAPACITY",
                "memory-overflow",
                f"init_buffer({label}, {count} x {length}): {asked} bytes of {space.name} asked, {memory.usable} "
                f"there{less}, {asked - memory.usable} too many. {fits}{table}{self._what_fits(space, memory.usable)}",
                label,
            )
        self._used[space] = asked
        reserved = self._stream.session.reserved
        reserved[space.name] = max(asked, reserved.get(space.name, 0))
        return used

    def _what_fits(self, space: Space, usable: int) -> str:
        """Say which sizes would do, a line each: all buffers alike, single ones, sums in L0C."""
        mine = [(number, size) for _, where, number, size in self._holders if where is space]
        texts = []
        if len(mine) > 1:
            alike = usable // sum(number for number, _ in mine) // BLOCK_BYTES * BLOCK_BYTES
            texts.append(f"with {alike} bytes a buffer all of them fit")
        single = sum(size for _, size in mine)
        if single <= usable and any(number > 1 for number, _ in mine):
            texts.append(f"with 1 buffer each they take {single} bytes, which fit")
        if space is Space.L0C:
            texts.append(
                f"sums are float32 for float16 operands too: {usable // 4} of them fit, such as 128 x {usable // 512}"
            )
        return "".join(f"\n    {text}" for text in texts)

    def reserve(self, label: str, space: Space, length: int) -> int:
        """Take `length` bytes of a memory for a library and return their address (an addition to pyasc)."""
        return self._reserve(label, space, 1, -(-length // BLOCK_BYTES) * BLOCK_BYTES)

    def holders(self, space: Space) -> str:
        """Return who holds how much of a memory, for messages (an addition to pyasc)."""
        mine = [
            (name, number * size) for name, where, number, size in self._holders if where is space
        ]
        usable = self._stream.session.chip.memories[space.name].usable
        names = ", ".join(f"{name} {size}" for name, size in mine)
        return (
            f"{self._used.get(space, 0)} of {usable} bytes of {space.name} ({names or 'none yet'})"
        )

    def unused(self, space: Space) -> tuple[int, int]:
        """Return the bytes of a memory, from and to, that nobody has been given (an addition to pyasc)."""
        return self._used.get(space, 0), self._stream.session.chip.memories[space.name].usable

    def extend(self, space: Space, held: tuple[int, int], length: int) -> bool:
        """Make what `reserve` gave at `held` (address, bytes) longer, where nothing stands behind it."""
        if held[0] + held[1] != self._used.get(space):
            return False
        self._reserve("matmul", space, 1, length - held[1])
        return True

    # ---- event ids --------------------------------------------------------------------------

    def alloc_event_id(self, event: HardEvent = HardEvent.V_S) -> int:
        """Take the lowest free id of an event."""
        event_id = self._stream.take_event(event, "alloc_event_id")
        self._stream.events_by_hand[event] |= 1 << event_id
        return event_id

    def fetch_event_id(self, event: HardEvent = HardEvent.V_S) -> int:
        """Return the lowest free id of an event without taking it."""
        return self._stream.peek_event(event)

    def release_event_id(self, id: int, event: HardEvent = HardEvent.V_S) -> None:
        """Give an id back."""
        self._stream.release_event(event, int(id))
        self._stream.events_by_hand[event] &= ~(1 << int(id))

    def get_base_addr(self, logic_pos: TPosition = TPosition.VECCALC) -> int:
        """Return the address that the memory behind a position begins at: 0, as addresses count from there."""
        if POSITION_SPACE.get(logic_pos) is None:
            fault(
                "ILLEGAL_PARAM",
                "wrong-position",
                f"get_base_addr: logic_pos must be a TPosition such as VECCALC, got {logic_pos!r}",
            )
        return 0

    # ---- the end ----------------------------------------------------------------------------

    def init(self) -> None:
        """Start over with empty memories."""
        self.reset()

    def reset(self) -> None:
        """Wait for all events, then hand the memories out anew."""
        self._forget()
        self._used, self._holders = {}, []

    def destroy(self) -> None:
        """Wait for the pending free events of all buffers, then for all pipes."""
        self.close()

    def close(self) -> None:
        """Do what the end of the TPipe's life does; the kernel's end calls it."""
        stream = self._stream
        if stream.tpipe is not self:
            return
        for queue in self._all_queues():
            queue._drain(stream)
            for block in queue._leaks():
                stream.session.report(
                    "QUEUE",
                    "tensor-not-freed",
                    f"{block.owner.label} is still {block.state} when the kernel ends: no free_tensor for what was "
                    f"taken at {stream.session.where_text(block.site)}",
                    block.site,
                    stream.core.name,
                    "S",
                    queue.label,
                )
        stream.pipe_barrier(None)
        stream.tpipe = None


def get_tpipe_ptr() -> TPipe:
    """Return the running kernel's TPipe."""
    pipe = program().tpipe
    if pipe is None:
        fault("QUEUE", "no-pipe", "get_tpipe_ptr: the kernel has made no TPipe")
    return pipe  # type: ignore[no-any-return]
