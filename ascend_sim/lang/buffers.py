"""TBuf and TBufPool: on-chip bytes without events, and parts of a memory that are handed out more than once."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ascend_sim.lang.queues import TQueBind, program
from ascend_sim.lang.refused import OwnPool
from isa.arguments import check_integer, is_whole
from isa.faults import fault
from isa.tensor import LocalTensor, Owner, element_type
from isa.types import BLOCK_BYTES, EVENT_IDS, POSITION_SPACE, DType, Space, TPosition

if TYPE_CHECKING:
    from types import FrameType

MAX_BLOCKS = 64
"""Blocks that one TPipe manages."""
MAX_POOL_BUFFERS = 16
"""Buffers that one TBufPool manages."""


class TBuf(OwnPool):
    """A plain buffer without events: `get` gives its bytes, the kernel synchronises by itself."""

    def __init__(self, pos: TPosition = TPosition.VECCALC) -> None:
        self.position = TPosition(pos)
        self.label = "buffer"
        self.length = 0
        self._owner: Owner | None = None
        self._address = 0

    def _take(self, label: str, address: int, length: int) -> int:
        """Get the bytes; return the serial number of their owner."""
        self.label, self.length, self._address = label, length, address
        space = POSITION_SPACE[self.position]
        stream = program()
        self._owner = stream.session.owner(label, space, address, length)
        stream.plain.add(self._owner.serial)
        return self._owner.serial

    def get(self, dtype: DType, len: int | None = None, shape: Any = None) -> LocalTensor:
        """Return the buffer as `len` elements of a type (all that fit where None); no instruction reads `shape`."""
        if len is None and type(dtype) is DType and self._owner is not None:  # the usual form
            size = self.length // dtype.size
            return LocalTensor(dtype, self.position, self._address, size, owner=self._owner)
        dtype = element_type("get", dtype)
        return self.get_with_offset(len or self.length // dtype.size, 0, dtype)

    def get_with_offset(self, size: int, buf_offset: int, dtype: DType) -> LocalTensor:
        """Return `size` elements from byte `buf_offset` of the buffer."""
        if self._owner is None:
            fault(
                "QUEUE",
                "no-buffer",
                f"{self.label}: get before pipe.init_buffer gave the TBuf its bytes",
            )
        dtype = element_type("get_with_offset", dtype)
        size = check_integer("get_with_offset", "size", size, 0, None)
        buf_offset = check_integer("get_with_offset", "buf_offset", buf_offset, 0, None)
        last = int(buf_offset) + int(size) * dtype.size
        if buf_offset < 0 or last > self.length:
            fault(
                "BOUNDS",
                "buffer-bounds",
                f"{self.label}: {size} elements of {dtype} from byte {buf_offset} end at byte {last}, the buffer has "
                f"{self.length}",
                self.label,
                (int(buf_offset), last),
            )
        return LocalTensor(
            dtype, self.position, self._address + int(buf_offset), int(size), owner=self._owner
        )


class Buffers:
    """A share of the on-chip memories that buffers get their bytes from: what TPipe and TBufPool have in common."""

    def __init__(self) -> None:
        self._queues: list[TQueBind] = []
        self._pools: list[TBufPool] = []
        self._plain: list[int] = []  # owners of TBufs' bytes

    def init_buffer(self, que: Any = None, num: int = 0, len: int = 0, *, buf: Any = None) -> None:
        """Give a queue `num` blocks of `len` bytes (rounded up to 32), or a TBuf `num` bytes."""
        target = que if que is not None else buf
        frame = sys._getframe(1)
        if isinstance(target, TBuf):
            count, length = 1, len or num
        elif isinstance(target, TQueBind):
            count, length = num, len
        else:
            fault(
                "QUEUE",
                "init-buffer",
                f"init_buffer takes a TQue or a TBuf, got {type(target).__name__}",
            )
        for what, value in (("num", count), ("len", length)):
            if not is_whole(value) or value < 1:
                fault(
                    "QUEUE",
                    "init-buffer",
                    f"init_buffer: {what} must be a whole number of at least 1, got {value!r}",
                )
        count, rounded = int(count), _in_blocks(int(length))
        label = _name_in(frame, target) or ("buffer" if isinstance(target, TBuf) else "queue")
        if isinstance(target, TQueBind):
            _check_events(target, label, count)
        space = POSITION_SPACE[target.position]
        address = self._reserve(label, space, count, rounded)
        if isinstance(target, TBuf):
            self._plain.append(target._take(label, address, rounded))
        else:
            target._take(label, address, count, rounded)
            self._queues.append(target)

    def init_buf_pool(
        self, buf_pool: TBufPool, len: int = 0, share_buf: TBufPool | None = None
    ) -> None:
        """Give a TBufPool `len` bytes (rounded up to 32): of its own, or those that `share_buf` begins with."""
        if not isinstance(buf_pool, TBufPool):
            fault(
                "QUEUE",
                "init-buffer",
                f"init_buf_pool takes a TBufPool, got {type(buf_pool).__name__}",
            )
        length = _in_blocks(check_integer("init_buf_pool", "len", len, 1, None))
        label = _name_in(sys._getframe(1), buf_pool) or "pool"
        space = POSITION_SPACE[buf_pool.position]
        if share_buf is None:
            address = self._reserve(label, space, 1, length, whole_memory=True)
        else:
            if not isinstance(share_buf, TBufPool) or share_buf not in self._pools:
                fault(
                    "QUEUE",
                    "foreign-pool",
                    f"init_buf_pool({label}): share_buf is a TBufPool that came from the same place before",
                )
            address = share_buf._share(label, space, length)
        buf_pool._take(label, address, length)
        self._pools.append(buf_pool)

    def _all_queues(self) -> list[TQueBind]:
        """Return the queues that have their bytes from here, those of pools among them."""
        found = list(self._queues)
        for pool in self._pools:
            found += pool._all_queues()
        return found

    def _forget(self) -> None:
        """Wait for all events of the queues, then take every buffer back."""
        stream = program()
        for queue in self._all_queues():
            queue._drain(stream)
        taken_back = dict.fromkeys(self._owners(), stream.site())
        stream.freed |= taken_back
        stream.taken_back |= taken_back.keys()
        self._queues, self._pools, self._plain = [], [], []

    def _owners(self) -> list[int]:
        """Return the serial numbers of the owners of all bytes that were handed out here."""
        found = [*self._plain, *(block.serial for queue in self._queues for block in queue._blocks)]
        for pool in self._pools:
            found += pool._owners()
        return found

    def _reserve(
        self, label: str, space: Space, count: int, length: int, *, whole_memory: bool = False
    ) -> int:
        """Return the address of `count` times `length` bytes; fault where they do not fit."""
        raise NotImplementedError


class TBufPool(Buffers):
    """A part of one memory that hands out its own bytes, and takes them back with `reset`.

    Pools that share bytes serve stages of a kernel that follow each other.
    """

    def __init__(self, pos: TPosition = TPosition.VECCALC, buf_id_size: int = 4) -> None:
        super().__init__()
        if POSITION_SPACE.get(pos) not in (Space.UB, Space.L1):
            fault(
                "QUEUE",
                "queue-position",
                f"TBufPool: pos must be a position in UB or L1, got {pos!r}",
            )
        self.position = TPosition(pos)
        self.buffers = check_integer("TBufPool", "buf_id_size", buf_id_size, 1, MAX_POOL_BUFFERS)
        self.label = "pool"
        self._start = self._end = self._next = 0
        self._blocks = 0

    def _take(self, label: str, address: int, length: int) -> None:
        """Get the bytes."""
        self.label = label
        self._start = self._next = address
        self._end = address + length
        self._blocks = 0

    def _share(self, label: str, space: Space, length: int) -> int:
        """Return the address of bytes that another pool is to have as well."""
        if space is not POSITION_SPACE[self.position] or length > self._end - self._start:
            fault(
                "CAPACITY",
                "memory-overflow",
                f"init_buf_pool({label}, {length}): {self.label}, whose bytes it shares, has "
                f"{self._end - self._start} bytes of {POSITION_SPACE[self.position].name}",
                label,
            )
        return self._start

    def reset(self) -> None:
        """Wait for all events, then hand the bytes out anew."""
        self._forget()
        self._next, self._blocks = self._start, 0

    def _reserve(
        self, label: str, space: Space, count: int, length: int, *, whole_memory: bool = False
    ) -> int:
        mine = POSITION_SPACE[self.position]
        if self._end == self._start:
            fault(
                "QUEUE",
                "no-buffer",
                f"init_buffer({label}): init_buf_pool gives {self.label} its bytes first",
            )
        if space is not mine:
            fault(
                "QUEUE",
                "queue-position",
                f"init_buffer({label}): {self.label} is a part of {mine.name}, the buffer belongs in {space.name}",
                label,
            )
        self._blocks += count
        if self._blocks > self.buffers:
            fault(
                "QUEUE",
                "too-many-blocks",
                f"init_buffer({label}): {self.label} manages {self.buffers} buffers, {self._blocks} asked. Make it "
                f"TBufPool(pos, {self._blocks}); {MAX_POOL_BUFFERS} is the most",
                label,
            )
        address, asked = self._next, count * length
        if address + asked > self._end:
            fault(
                "CAPACITY",
                "memory-overflow",
                f"init_buffer({label}, {count} x {length}): {asked} bytes asked, {self.label} has "
                f"{self._end - address} left of {self._end - self._start}",
                label,
            )
        self._next += asked
        return address


def _check_events(queue: TQueBind, label: str, count: int) -> None:
    """Fault where a queue's buffers and those before would need more event ids, or blocks, than there are."""
    pipe = program().tpipe
    queues = pipe._all_queues() if pipe is not None else []
    sharing = [other for other in queues if other.free_event is queue.free_event]
    taken = sum(len(other._blocks) for other in sharing)
    if taken + count > EVENT_IDS:
        holders = ", ".join(f"{other.label} {len(other._blocks)}" for other in sharing)
        fault(
            "QUEUE",
            "too-many-buffers",
            f"init_buffer({label}, {count}): {taken + count} buffers would share the event ids of "
            f"{queue.enque_event.name} and {queue.free_event.name}, {EVENT_IDS} exist"
            + (f" (held: {holders})" if holders else "")
            + f". Use at most {max(EVENT_IDS - taken, 0)} buffers here, or fewer queues at {queue.position.name}",
            label,
        )
    total = sum(len(other._blocks) for other in queues) + count
    if total > MAX_BLOCKS:
        fault(
            "QUEUE",
            "too-many-blocks",
            f"init_buffer({label}): a TPipe manages {MAX_BLOCKS} blocks, {total} asked",
        )


def _in_blocks(length: int) -> int:
    return -(-length // BLOCK_BYTES) * BLOCK_BYTES


def _name_in(frame: FrameType, target: Any) -> str | None:
    """Return the name of an object in the frame that passed it: a local, or an attribute of one."""
    for name, value in frame.f_locals.items():
        if value is target:
            return name
    for value in list(frame.f_locals.values()):
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict):
            for attribute, inner in attributes.items():
                if inner is target:
                    return str(attribute)
    return None
