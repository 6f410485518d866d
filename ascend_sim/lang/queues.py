"""TQue and TQueBind: buffers of one core, and the events that hand them from pipe to pipe.

Nothing here is known to the machine: a queue's calls become flag instructions, exactly as the framework issues
them. `alloc_tensor` waits for the block's last free event, `enque` sets and `deque` waits, `free_tensor` sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from ascend_sim.block_ring import DEQUE, ENQUE, FREE, OCCUPIED, Block, BlockRing
from ascend_sim.lang.refused import OwnPool
from ascend_sim.trace import Cause
from isa.faults import fault
from isa.stream import current
from isa.tensor import LocalTensor, element_type
from isa.types import POSITION_SPACE, DType, HardEvent, Space, TPosition

if TYPE_CHECKING:
    from ascend_sim.program import Program

_BUFFER, _FLAG = Cause.BUFFER, Cause.FLAG

MAX_BLOCKS = 64
"""Blocks that one TPipe manages."""

_P, _E = TPosition, HardEvent

EVENTS: dict[tuple[TPosition, TPosition], tuple[HardEvent, HardEvent]] = {
    (_P.GM, _P.VECIN): (_E.MTE2_V, _E.V_MTE2),
    (_P.VECOUT, _P.GM): (_E.V_MTE3, _E.MTE3_V),
    (_P.VECIN, _P.VECOUT): (_E.MTE2_MTE3, _E.MTE3_MTE2),
    (_P.GM, _P.A1): (_E.MTE2_MTE1, _E.MTE1_MTE2),
    (_P.GM, _P.B1): (_E.MTE2_MTE1, _E.MTE1_MTE2),
    (_P.GM, _P.C1): (_E.MTE2_MTE1, _E.MTE1_MTE2),
    (_P.A1, _P.A2): (_E.MTE1_M, _E.M_MTE1),
    (_P.B1, _P.B2): (_E.MTE1_M, _E.M_MTE1),
    (_P.C1, _P.C2): (_E.MTE1_M, _E.M_MTE1),
    (_P.GM, _P.A2): (_E.MTE2_M, _E.M_MTE2),
    (_P.GM, _P.B2): (_E.MTE2_M, _E.M_MTE2),
    (_P.CO1, _P.CO2): (_E.M_FIX, _E.FIX_M),
    (_P.B1, _P.C2PIPE2GM): (_E.MTE1_FIX, _E.FIX_MTE1),
}
"""(source, destination) of a queue: the event that enque sets, and the one that free_tensor sets."""

_BIND_OF: dict[TPosition, tuple[TPosition, TPosition]] = {
    _P.VECIN: (_P.GM, _P.VECIN),
    _P.VECOUT: (_P.VECOUT, _P.GM),
    _P.A1: (_P.GM, _P.A1),
    _P.B1: (_P.GM, _P.B1),
    _P.C1: (_P.GM, _P.C1),
    _P.A2: (_P.A1, _P.A2),
    _P.B2: (_P.B1, _P.B2),
    _P.C2: (_P.C1, _P.C2),
    _P.CO1: (_P.CO1, _P.CO2),
    _P.C2PIPE2GM: (_P.B1, _P.C2PIPE2GM),
}


def program() -> Program:
    """Return the running program; fault outside a kernel."""
    stream = current.get(None)
    if stream is None or not stream.has_queues:
        fault(
            "HOST",
            "no-kernel",
            "TPipe, TQue and TBuf work inside a kernel: launch it with kernel[blocks](…)",
        )
    return stream  # type: ignore[no-any-return]


class TQueBind(BlockRing, OwnPool):
    """A queue of buffers between two positions: `TQueBind(src, dst, depth)`."""

    def __init__(
        self,
        src: TPosition = TPosition.VECIN,
        dst: TPosition = TPosition.VECIN,
        depth: int = 0,
        mask: int = 0,
    ) -> None:
        events = EVENTS.get((src, dst))
        if events is None:
            fault(
                "QUEUE",
                "queue-position",
                f"no queue leads from {src.name} to {dst.name} on the 910B; VECCALC is for TBuf, a queue takes VECIN, "
                f"VECOUT, A1, A2, B1, B2, C1, C2 or CO1",
            )
        super().__init__(int(depth), int(events[0]), int(events[1]))
        self.src, self.dst = src, dst
        self.enque_event, self.free_event = events
        self.position = src if dst in (TPosition.GM, TPosition.CO2) else dst
        self.length = 0

    # ---- life of a block --------------------------------------------------------------------

    def alloc_tensor(
        self, dtype: DType | LocalTensor | None = None, *, tensor: LocalTensor | None = None
    ) -> LocalTensor:
        """Take a free block; the pipe that will fill it waits until its last user is done with it.

        With a tensor in place of the type, that tensor becomes the block's.
        """
        if tensor is None:
            usual: LocalTensor | None = self._allocate(dtype)
            if usual is not None:
                return usual
        stream = program()
        block = self._first
        if block is None or block.state is not FREE:
            block = self._free_block(stream)
        self._first = block.next
        block.state = OCCUPIED
        stream.freed.pop(block.serial, None)
        free_id = block.free_id
        if free_id is None:
            block.site = stream.site(2)
        else:
            block.free_id = None
            stream.queue_wait(self._free_number, free_id, block, _BUFFER, block.bytes)
        return self._tensor(block, dtype if tensor is None else tensor)

    def _free_block(self, stream: Program) -> Block:
        """Return the next free block after those that are in use."""
        blocks = self._blocks
        start = self._first.number if self._first is not None else 0
        for block in (*blocks[start:], *blocks[:start]):
            if block.state is FREE:
                return block
        return self._nothing_free(stream)

    def _tensor(self, block: Block, dtype: Any) -> LocalTensor:
        if type(dtype) is not DType:
            return self._other_tensor(block, dtype)
        known = block.tensors.get(dtype)
        if known is None:
            tensor = LocalTensor(
                dtype, self.position, block.addr, self.length // dtype.size, owner=block.owner
            )
            block.tensors[dtype] = (tensor, tensor.key)
            return tensor
        tensor, key = known
        if tensor.key is not key:  # the kernel has changed its size or address: hand out a new one
            tensor = LocalTensor(
                dtype, self.position, block.addr, self.length // dtype.size, owner=block.owner
            )
            block.tensors[dtype] = (tensor, tensor.key)
        return tensor

    def _other_tensor(self, block: Block, what: Any) -> LocalTensor:
        """Return the block as a tensor for what is no type of the machine: a tensor to become it, or Python's types."""
        if not isinstance(what, LocalTensor):
            return self._tensor(block, element_type(f"{self.label}: the tensor", what))
        what._become(self._tensor(block, what.dtype))
        return what

    def _nothing_free(self, stream: Program) -> NoReturn:
        if not self._blocks:
            fault(
                "QUEUE",
                "no-buffer",
                f"{self.label}: alloc_tensor before pipe.init_buffer gave the queue buffers",
            )
        held = "; ".join(
            f"buffer {block.number} is {block.state} since {stream.session.where_text(block.site)}"
            for block in self._blocks
        )
        fault(
            "DEADLOCK",
            "alloc-spins-forever",
            f"alloc_tensor on {self.label} ({self.position.name}) would spin forever: none of its "
            f"{len(self._blocks)} buffers is free ({held}). Each needs a free_tensor when its last user is done",
            self.label,
        )

    def _foreign(self, tensor: Any, call: str) -> NoReturn:
        fault(
            "QUEUE",
            "foreign-tensor",
            f"{call}: {getattr(tensor, 'name', tensor)} is no tensor of {self.label}; a tensor goes back to the queue "
            f"that allocated it",
            self.label,
        )

    def enque(
        self, tensor: LocalTensor, src_user_pos: Any = None, dst_user_pos: Any = None
    ) -> None:
        """Hand a filled tensor to the consumer: its pipe may start when the producer's earlier work is complete."""
        if src_user_pos is None and dst_user_pos is None and self._enqueue(tensor):
            return
        stream = program()
        block = self._by_owner.get(tensor.owner) if type(tensor) is LocalTensor else None
        if block is None:
            self._foreign(tensor, "enque")
        if block.state is not OCCUPIED and block.state is not DEQUE:
            fault(
                "QUEUE",
                "enque-state",
                f"enque: {block.owner.label} is {block.state}, only an allocated tensor can be enqueued",
                self.label,
            )
        if len(self._filled) >= self._room:
            fault(
                "QUEUE",
                "queue-depth",
                f"enque: {self.label} has depth {self.depth} and already holds {len(self._filled)} tensors that nobody "
                f"dequeued. Dequeue first, or give the queue a depth of {len(self._filled) + 1}",
                self.label,
            )
        event = self._enque_number
        if src_user_pos is not None or dst_user_pos is not None:
            event = int(self._event(src_user_pos, dst_user_pos))
        block.state = ENQUE
        self._filled.append((block, stream.queue_set(event, self.label, block)))

    def deque(
        self,
        dtype: DType | LocalTensor | None = None,
        src_user_pos: Any = None,
        dst_user_pos: Any = None,
        *,
        tensor: LocalTensor | None = None,
    ) -> LocalTensor:
        """Take the oldest enqueued tensor; the consuming pipe waits until the producer is done with it.

        With a tensor in place of the type, that tensor becomes the block's.
        """
        if src_user_pos is None and dst_user_pos is None and tensor is None:
            usual: LocalTensor | None = self._dequeue(dtype)
            if usual is not None:
                return usual
        stream = program()
        if not self._filled:
            held = [block for block in self._blocks if block.state is OCCUPIED]
            why = (
                f"buffer {held[0].number} was allocated at {stream.session.where_text(held[0].site)} and not enqueued"
                if held
                else "nothing was enqueued"
            )
            fault("QUEUE", "deque-empty", f"deque: {self.label} is empty: {why}", self.label)
        block, event_id = self._filled.pop(0)
        event = self._enque_number
        if src_user_pos is not None or dst_user_pos is not None:
            event = int(self._event(src_user_pos, dst_user_pos))
        block.state = DEQUE
        stream.queue_wait(event, event_id, block, _FLAG)
        return self._tensor(block, dtype if tensor is None else tensor)

    def free_tensor(self, tensor: LocalTensor) -> None:
        """Give a block back: whoever allocates it next waits until the consumer's earlier work is complete."""
        if self._give_back(tensor):
            return
        stream = program()
        block = self._by_owner.get(tensor.owner) if type(tensor) is LocalTensor else None
        if block is None:
            self._foreign(tensor, "free_tensor")
        if block.state is FREE:
            fault(
                "QUEUE",
                "double-free",
                f"free_tensor: {block.owner.label} is free already, since {stream.session.where_text(block.site)}",
                self.label,
            )
        if block.state is ENQUE:
            fault(
                "QUEUE",
                "free-enqueued",
                f"free_tensor: {block.owner.label} is still enqueued (at {stream.session.where_text(block.site)}); "
                f"dequeue it first",
                self.label,
            )
        block.free_id = stream.queue_set(self._free_number, self.label, block)
        block.state = FREE
        stream.freed[block.serial] = block.site

    def _event(self, source: Any, target: Any) -> HardEvent:
        events = EVENTS.get((TPosition(source), TPosition(target)))
        if events is not None:
            return events[0]
        spaces = {POSITION_SPACE[TPosition(source)], POSITION_SPACE[TPosition(target)]}
        if spaces == {Space.UB}:
            return HardEvent.V_V
        fault(
            "QUEUE",
            "queue-position",
            f"{self.label}: no event leads from {source} to {target}",
            self.label,
        )

    # ---- looking ----------------------------------------------------------------------------

    def has_tensor_in_que(self) -> bool:
        """Return whether a tensor is enqueued."""
        return bool(self._filled)

    def get_tensor_count_in_que(self) -> int:
        """Return how many tensors are enqueued."""
        return len(self._filled)

    def vacant_in_que(self) -> bool:
        """Return whether another tensor may be enqueued."""
        return len(self._filled) < self._room

    def has_idle_buffer(self) -> bool:
        """Return whether a block is free."""
        return any(block.state is FREE for block in self._blocks)

    def free_all_event(self) -> None:
        """Wait for every pending free event of this queue."""
        self._drain(program())

    # ---- for the TPipe ----------------------------------------------------------------------

    @property
    def blocks(self) -> int:
        """How many buffers the queue has."""
        return len(self._blocks)

    def _take(self, label: str, address: int, count: int, length: int) -> None:
        """Get the buffers."""
        self.label, self.length = label, length
        self._stream = program()
        space, owner = POSITION_SPACE[self.position], self._stream.session.owner
        self._blocks = blocks = [
            Block(
                owner(f"{label}[{number}]", space, address + number * length, length),
                space,
                address + number * length,
                length,
                number,
            )
            for number in range(count)
        ]
        for block in blocks:
            block.next = blocks[(block.number + 1) % count]
        self._first = self._blocks[0]
        self._by_owner = {block.owner: block for block in self._blocks}

    def _drain(self, stream: Program) -> None:
        """Wait for the free events that are pending."""
        for block in self._blocks:
            if block.free_id is not None:
                stream.wait_flag(self.free_event, block.free_id, Cause.BUFFER, site=stream.site(2))
                stream.release_event(self.free_event, block.free_id)
                block.free_id = None

    def _leaks(self) -> list[Block]:
        """Return the buffers that nobody gave back."""
        return [block for block in self._blocks if block.state is not FREE]


class TQue(TQueBind):
    """A queue at one position: `TQue(TPosition.VECIN, depth)`."""

    def __init__(self, pos: TPosition = TPosition.VECIN, depth: int = 1, mask: int = 0) -> None:
        bind = _BIND_OF.get(pos)
        if bind is None:
            fault(
                "QUEUE",
                "queue-position",
                f"TQue cannot be at {TPosition(pos).name}: queues are at VECIN, VECOUT, A1, A2, B1, B2, C1, C2 or CO1; "
                f"use TBuf for VECCALC",
            )
        super().__init__(bind[0], bind[1], depth, mask)
