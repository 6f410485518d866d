"""Which bytes of one core's memories hold something that somebody wrote, and reads of those that do not."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from mypy_extensions import mypyc_attr

from isa.access import Access
from isa.cube_forms import LoadCall
from isa.types import BLOCK_BYTES, Space

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascend_sim.program import Program
    from ascend_sim.trace import Item
    from isa.instruction import Call
    from isa.tensor import Owner


_left: Final[Any] = bisect_left
_right: Final[Any] = bisect_right
_NZ_AXES: Final = 4
"""Axes of what a copy to NZ writes: matrices, column groups, rows, a block."""
FRACTAL: Final = 16
"""Rows of a fractal."""
_RECENT: Final = 32
"""Copies with filler that are remembered, to say where a byte of it came from."""


@mypyc_attr(allow_interpreted_subclasses=True)
class _Ranges:
    """Some bytes of a memory as disjoint ranges in order."""

    __slots__ = ("ends", "starts")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []

    def covers(self, low: int, high: int) -> bool:
        """Return whether all bytes from `low` to `high` are among them."""
        place: int = _right(self.starts, low)
        return place > 0 and self.ends[place - 1] >= high

    def meets(self, low: int, high: int) -> bool:
        """Return whether a byte from `low` to `high` is among them."""
        first: int = _right(self.ends, low)
        past: int = _left(self.starts, high)
        return first < past

    def add(self, low: int, high: int) -> None:
        """Add the bytes from `low` to `high`."""
        starts, ends = self.starts, self.ends
        first: int = _left(ends, low)
        past: int = _right(starts, high)
        if first == past:
            starts.insert(first, low)
            ends.insert(first, high)
            return
        if starts[first] < low:  # they meet others
            low = starts[first]
        if ends[past - 1] > high:
            high = ends[past - 1]
        if past > first + 1:
            del starts[first + 1 : past]
            del ends[first + 1 : past]
        starts[first] = low
        ends[first] = high

    def remove(self, low: int, high: int) -> None:
        """Take the bytes from `low` to `high` out."""
        starts, ends = self.starts, self.ends
        first: int = _right(ends, low)
        past: int = _left(starts, high)
        if first < past:
            before, after = starts[first], ends[past - 1]
            del starts[first:past]
            del ends[first:past]
            if after > high:
                starts.insert(first, high)
                ends.insert(first, after)
            if before < low:
                starts.insert(first, before)
                ends.insert(first, low)


@mypyc_attr(allow_interpreted_subclasses=True)
class _Memory(_Ranges):
    """The written bytes of one memory: ranges without gaps, and what patterns with gaps add, a bit for each byte."""

    __slots__ = ("_bits", "_lit", "_size")

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size
        self._bits: NDArray[np.bool_] | None = None
        self._lit = _Ranges()  # where bits may be set

    def forget(self, low: int, high: int) -> None:
        """Take the bytes from `low` to `high` for unwritten."""
        self.remove(low, high)
        if self._bits is not None and self._lit.meets(low, high):
            self._bits[low:high] = False
            self._lit.remove(low, high)

    def bits(self) -> NDArray[np.bool_]:
        """Return a bit for each byte, to look at."""
        if self._bits is None:
            self._bits = np.zeros(self._size, bool)
        for low, high in zip(self.starts, self.ends, strict=True):
            self._bits[low:high] = True
            self._lit.add(low, high)
        return self._bits

    def change(self, low: int, high: int) -> NDArray[np.bool_]:
        """Return a bit for each byte, of which those from `low` to `high` may be changed."""
        bits = self.bits()
        self.remove(low, high)  # the bits alone tell of them
        self._lit.add(low, high)
        return bits


class Written:
    """What has been written of a core's memories from the start of its block on.

    Most instructions read and write bytes without gaps between them, which are looked up as ranges. What needs more
    is remembered for as long as nothing that it used becomes unwritten.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._session = program.session
        self._memories = {space: _Memory(size) for space, size in program.core.memory_sizes.items()}
        by_space = [self._memories.get(space) for space in Space]
        self._by_space: list[_Memory | None] = by_space  # a number is looked up faster
        self._hollow: list[tuple[Access, int]] = []  # loads of bytes that nothing had written
        self._narrow: deque[tuple[Call, int]] = deque(maxlen=_RECENT)  # see `_note_groups`
        self._padded: deque[tuple[Call, int]] = deque(maxlen=_RECENT)  # copies with filler
        self._known: set[Access] = set()  # reads found written, and writes marked, bit by bit
        self._known_of: dict[int, set[Access]] = {}  # those that use an owner's bytes

    def scalar(self, item: Item, access: Access, *, write: bool) -> None:
        """Take an access of the scalar unit."""
        memory = self._memories[access.space]
        if write:
            memory.add(access.low, access.high)
        elif not memory.covers(access.low, access.high):
            self._check_written(item, access)

    def instruction(self, item: Item) -> None:
        """Look over what an instruction reads, and mark what it writes."""
        call = item.call
        memories = self._by_space
        if self._narrow and call.extra.startswith("fractals:"):
            self._look_at_fractals(item, call.reads[0])
        for access in call.reads:
            if access.buffer is not None:
                continue
            space: int = access.space
            source = memories[space]
            assert source is not None
            if not source.covers(access.low, access.high) and not self._look_at_source(
                item, access
            ):
                return
        target = call.writes[0]
        if target.buffer is not None:
            return
        where: int = target.space
        memory = memories[where]
        assert memory is not None
        if len(target.shape) == _NZ_AXES and target.shape[1] > 1:
            self._note_groups(call, item.site)
        undefined = call.template.undefined
        if undefined:
            self._mark_but(memory, target, undefined)
            self._padded.append((call, item.site))
        elif (
            target.contiguous and target.low >= 0
        ):  # else a special register, which always holds something
            memory.add(target.low, target.high)
        elif not memory.covers(target.low, target.high) and target.low >= 0:
            self._mark(memory, target)

    def _look_at_source(self, item: Item, access: Access) -> bool:
        """Check that what a call reads has been written; return False where it has marked its writes itself."""
        if access in self._known:
            return True
        if isinstance(item.call, LoadCall):
            written: Any = access.byte_view(self._memories[access.space].bits()).all(axis=-1)
            if not written.all():
                self._load_partly(item, written)
                return False
        else:
            self._check_written(item, access)
        self._remember(access)
        return True

    def _note_groups(self, call: Call, site: int) -> None:
        """Take note of a copy to L1 whose column groups are closer together than the 16 rows of a fractal."""
        target = call.writes[0]
        rows, pitch = target.shape[2], target.strides[2]
        if target.space is Space.L1 and target.strides[1] < -(-rows // FRACTAL) * FRACTAL * pitch:
            self._narrow.append((call, site))

    def _look_at_fractals(self, item: Item, source: Access) -> None:
        """Report a load of whole fractals from where column groups begin within each other's."""
        for call, site in self._narrow:
            target = call.writes[0]
            if not target.overlaps(source):
                continue
            stride = target.strides[1] // BLOCK_BYTES
            self._session.report(
                "LAYOUT",
                "groups-within-a-fractal",
                f"{call.name} puts the column groups of {target.name} dst_nz_c0_stride {stride} blocks apart, and "
                f"{item.name} at {self._session.where_text(item.site)} takes fractals of {FRACTAL} rows there: rows "
                f"from {stride} on of one group are the first of the next. dst_nz_c0_stride is the rows rounded up to "
                f"{FRACTAL}: {-(-target.shape[2] // FRACTAL) * FRACTAL}",
                site,
                self._program.core.name,
                call.pipe.name,
                target.name,
                (target.low, target.high),
                struck=True,
            )

    def _remember(self, access: Access) -> None:
        self._known.add(access)
        if access.owner is not None:
            self._known_of.setdefault(access.owner.serial, set()).add(access)

    def _mark(self, memory: _Memory, target: Access) -> None:
        """Mark bytes with gaps between them."""
        if target not in self._known:
            _set(memory, target)
            self._remember(target)

    def _mark_but(self, memory: _Memory, target: Access, undefined: tuple[Access, ...]) -> None:
        """Mark what an instruction writes, but for bytes with values that must not be used."""
        bits = memory.bits()
        lost = any(access.byte_view(bits).any() for access in undefined)
        _set(memory, target)
        for access in undefined:
            access.byte_view(memory.change(access.low, access.high))[...] = False
        if lost:
            self._known.clear()

    def _load_partly(self, item: Item, written: NDArray[np.bool_]) -> None:
        """Take a load of elements of which only some have been written: the others arrive as unwritten ones."""
        target = item.call.writes[0]
        memory = self._memories[target.space]
        view = target.byte_view(memory.change(target.low, target.high))
        arrived = item.call.arrives(written)[..., None]
        lost = bool((view & ~arrived).any())
        view[...] = arrived
        if lost:
            self._known.clear()
        self._hollow = [load for load in self._hollow if not target.covers(load[0])]
        self._hollow.append((target, item.site))

    def forget(self, owner: Owner, space: Space, address: int, length: int) -> None:
        """Take a buffer's bytes for unwritten: a queue has handed them out anew."""
        self._memories[space].forget(address, address + length)
        for access in self._known_of.pop(owner.serial, ()):
            self._known.discard(access)

    def _check_written(self, item: Item, access: Access) -> None:
        memory = self._memories[access.space]
        view = access.byte_view(memory.bits())
        written = (
            view.all()
            if access.lanes is None
            else view[np.broadcast_to(access.lanes, access.shape)].all()
        )
        if not written:
            self._uninitialised(item, access)
        elif (
            access.contiguous and type(access) is Access
        ):  # others look at their bytes in ways of their own
            memory.add(access.low, access.high)  # now that it is known

    def _uninitialised(self, item: Item, access: Access) -> None:
        bits = self._memories[access.space].bits()
        for low, high in access.ranges().tolist():
            missing = np.flatnonzero(~bits[low:high])
            if len(missing):
                first = low + int(missing[0])
                cure = self._padding(access.space, first)
                for load, site in list(self._hollow)[::-1]:
                    if load.space is access.space and load.low <= first < load.high:
                        cure = (
                            f"The load at {self._session.where_text(site)} took it from L1 bytes that nothing had "
                            f"written: fill them, or shorten the operand"
                        )
                        break
                order = self._program.order
                names = order.variables() if order is not None else None
                name = names.of(access) if names else ""
                called = f"{access.name} ({name})" if name and access.owner is None else access.name
                self._session.report(
                    "UNINIT",
                    "uninitialised-read",
                    f"{item.name} reads {called}, {access.space.name} bytes {access.low} to {access.high}, but "
                    f"nothing has written byte {first} (byte {first - access.low} of the operand). {cure}",
                    item.site,
                    self._program.core.name,
                    item.pipe.name,
                    access.name,
                    (first, low + int(missing[-1]) + 1),
                    struck=True,
                )
                return

    def _padding(self, space: Space, byte: int) -> str:
        """Say what gives a byte a value: where it is filler of a copy's rows, where the next row is instead."""
        for call, site in reversed(self._padded):
            target = call.writes[0]
            if target.space is not space or not target.low <= byte < target.high:
                continue
            filler = call.template.undefined[-1]
            rows, pitch = filler.shape[0], filler.strides[0]
            row, length = (byte - target.low) // pitch, call.bytes // rows
            text = (
                f"It is padding of {call.name} at {self._session.where_text(site)}, which gives each row of {length} "
                f"bytes a place on a {BLOCK_BYTES}-byte border and leaves what is behind it undefined"
            )
            if row + 1 < rows:
                text += (
                    f": row {row + 1} starts at {space.name} byte {target.low + (row + 1) * pitch}. For rows side by "
                    f"side copy them as one, block_count 1, block_len {rows * length}"
                )
            else:
                text += ". Shorten the operand to the row's elements, or give pad_params with is_pad and a value"
            return text
        return "Load or fill it first, or shorten the operand"


def _set(memory: _Memory, target: Access) -> None:
    """Set the bits of bytes with gaps between them."""
    view = target.byte_view(memory.change(target.low, target.high))
    if target.lanes is None:
        view[...] = True
    else:
        np.copyto(view, True, where=target.lanes[..., None])
