"""The buffers of a queue in the order in which they are taken, and the usual course of a queue's four calls.

`lang.queues` asks here first. Each method does a call as it goes in a correct kernel from a buffer's second use on, or
does nothing and says so: then the long way finds out what is new, or wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mypy_extensions import mypyc_attr

from ascend_sim.trace import Cause
from isa.stream import current
from isa.tensor import LocalTensor
from isa.types import DType

if TYPE_CHECKING:
    from ascend_sim.program import Program

FREE: Final = "free"
OCCUPIED: Final = "allocated"
ENQUE: Final = "enqueued"
DEQUE: Final = "dequeued"

_BUFFER: Final = Cause.BUFFER
_FLAG: Final = Cause.FLAG
_running: Final[Any] = current.get
_DTYPE: Final[Any] = DType
_LOCAL: Final[Any] = LocalTensor


class Block:
    """One buffer of a queue: its bytes (owner, memory, address, length), and who has it at the moment.

    `free_id`: the event that `free_tensor` has set and nobody has waited for; `site`: where its state changed last;
    `tensors`: by element type, what stands for its bytes, and that tensor's key when it was made.
    """

    __slots__ = (
        "addr", "bytes", "free_id", "next", "number", "owner", "serial", "site", "state", "tensors",
    )  # fmt: skip

    def __init__(self, owner: Any, space: Any, address: int, length: int, number: int) -> None:
        self.addr = address
        self.number = number
        self.owner = owner
        self.serial: int = owner.serial
        self.bytes: Any = (owner, space, address, length)
        self.state = FREE
        self.free_id: int | None = None
        self.site = 0
        self.tensors: dict[Any, tuple[Any, Any]] = {}
        self.next: Block = self


@mypyc_attr(allow_interpreted_subclasses=True)
class BlockRing:
    """A queue's buffers, `depth` of which may be enqueued at a time."""

    def __init__(self, depth: int, enque_event: int, free_event: int) -> None:
        self.depth = depth
        self._room = depth or 1
        self._enque_number, self._free_number = enque_event, free_event
        self.label = "queue"
        self._stream: Any = None  # the program whose buffers these are
        self._blocks: list[Block] = []
        self._first: Block | None = None  # where the search for a free one starts
        self._by_owner: dict[Any, Block] = {}
        self._filled: list[tuple[Block, int]] = []  # enqueued, with the event's id

    def _known(self, block: Block, dtype: Any) -> Any:
        """Return the tensor that stands for a buffer; None where there is none, or the kernel has changed it."""
        if type(dtype) is not _DTYPE:
            return None
        known = block.tensors.get(dtype)
        if known is None:
            return None
        tensor, key = known
        return tensor if tensor.key is key else None

    def _allocate(self, dtype: Any) -> Any:
        """Take the next buffer, once its last user is done with it."""
        block = self._first
        if block is None or block.state is not FREE:
            return None
        stream = _running(None)
        free_id = block.free_id
        if free_id is None or stream is not self._stream:
            return None
        tensor = self._known(block, dtype)
        if tensor is not None:
            program: Program = stream
            self._first = block.next
            block.state = OCCUPIED
            program.freed.pop(block.serial, None)
            block.free_id = None
            program.queue_wait(self._free_number, free_id, block, _BUFFER, block.bytes)
        return tensor

    def _enqueue(self, tensor: Any) -> bool:
        """Hand a buffer to the consumer."""
        stream = _running(None)
        if stream is not self._stream or type(tensor) is not _LOCAL:
            return False
        block = self._by_owner.get(tensor.owner)
        if block is None or len(self._filled) >= self._room:
            return False
        if block.state is not OCCUPIED and block.state is not DEQUE:
            return False
        program: Program = stream
        block.state = ENQUE
        self._filled.append((block, program.queue_set(self._enque_number, self.label, block)))
        return True

    def _dequeue(self, dtype: Any) -> Any:
        """Take the buffer that was enqueued first, once its producer is done with it."""
        stream = _running(None)
        if stream is not self._stream or not self._filled:
            return None
        block, event_id = self._filled[0]
        tensor = self._known(block, dtype)
        if tensor is not None:
            program: Program = stream
            del self._filled[0]
            block.state = DEQUE
            program.queue_wait(self._enque_number, event_id, block, _FLAG)
        return tensor

    def _give_back(self, tensor: Any) -> bool:
        """Let a buffer be taken again when its consumer is done with it."""
        stream = _running(None)
        if stream is not self._stream or type(tensor) is not _LOCAL:
            return False
        block = self._by_owner.get(tensor.owner)
        if block is None or block.state is FREE or block.state is ENQUE:
            return False
        program: Program = stream
        block.free_id = program.queue_set(self._free_number, self.label, block)
        block.state = FREE
        program.freed[block.serial] = block.site
        return True
