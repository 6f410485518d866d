"""The vector unit as loops over bytes, written from the address formula, and the rules as sets of bytes.

byte(operand) = base + 32 · (repeat · repeat stride + block · block stride) + element · size
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from isa.types import DType

UB_BYTES = 8192


@dataclass(frozen=True)
class Place:
    """One operand: where it starts, how long its tensor is (bytes), its strides (data blocks)."""

    dtype: DType
    addr: int
    length: int
    block_stride: int = 1
    repeat_stride: int = 8

    def byte(self, repeat: int, lane: int) -> int:
        """Return the first byte of a lane's element."""
        per_block = 32 // self.dtype.size
        block, element = divmod(lane, per_block)
        return (
            self.addr
            + 32 * (repeat * self.repeat_stride + block * self.block_stride)
            + element * self.dtype.size
        )

    def bytes_of(self, repeat: int, lanes: list[int]) -> set[int]:
        """Return all bytes of some lanes of a repeat."""
        return {self.byte(repeat, lane) + i for lane in lanes for i in range(self.dtype.size)}


def lanes_per_repeat(places: list[Place]) -> int:
    """Return the lanes of one repeat: 256 bytes of the widest operand."""
    return 256 // max(place.dtype.size for place in places)


def counted(number: int, lanes: int) -> list[list[int]]:
    """Return the active lanes of each repeat in counter mode."""
    return [list(range(min(lanes, number - first))) for first in range(0, number, lanes)]


def side_by_side(place: Place, lanes: int) -> Place:
    """Return an operand with the strides of the count form."""
    return Place(place.dtype, place.addr, place.length, 1, lanes * place.dtype.size // 32)


def run(
    memory: bytearray,
    places: list[Place],
    repeats: list[list[int]],
    lane: Callable[..., int],
) -> None:
    """Execute repeat by repeat, lane by lane: `places[0]` is the destination; `lane` works on bit patterns."""
    dst, *sources = places
    for number, lanes in enumerate(repeats):
        before = bytes(memory)
        for active in lanes:
            patterns = [
                _load(before, place.byte(number, active), place.dtype.size) for place in sources
            ]
            at = dst.byte(number, active)
            memory[at : at + dst.dtype.size] = lane(*patterns).to_bytes(dst.dtype.size, "little")


def _load(memory: bytes, at: int, size: int) -> int:
    return int.from_bytes(memory[at : at + size], "little")


def broken_rules(
    places: list[Place], repeats: list[list[int]], *, accumulates: bool, own: int | None = None
) -> set[str]:
    """Return the codes of the faults that a call must end in, one of them; none where it is legal.

    `accumulates`: dst may gather all repeats if its last source is the same. `own`: the source that is dst itself.
    """
    dst, *sources = places
    codes = set()
    for place in places:
        touched = set().union(*[place.bytes_of(r, lanes) for r, lanes in enumerate(repeats)])
        if touched and max(touched) >= UB_BYTES:
            codes.add("memory-out-of-bounds")
        if touched and max(touched) >= place.addr + place.length:
            codes.add("tensor-out-of-bounds")
    blocks = {lane * dst.dtype.size // 32 for lanes in repeats for lane in lanes}
    if dst.block_stride == 0 and blocks and max(blocks) > 0:
        codes.add("dst-block-stride-zero")
    gathers = False
    if dst.repeat_stride == 0 and len(repeats) > 1:
        last = sources[-1] if sources else None
        gathers = (
            accumulates
            and last is not None
            and own is None
            and (last.addr, last.block_stride, last.repeat_stride)
            == (dst.addr, dst.block_stride, dst.repeat_stride)
        )
        if not gathers:
            codes.add("dst-repeat-stride-zero")
    for index, source in enumerate(sources):
        if gathers and index == len(sources) - 1:
            continue
        if any(_clashes(dst, source, repeats)):
            codes.add("operand-overlap")
    return codes


def _clashes(dst: Place, source: Place, repeats: list[list[int]]) -> Iterator[bool]:
    earlier: set[int] = set()
    for number, lanes in enumerate(repeats):
        written, read = dst.bytes_of(number, lanes), source.bytes_of(number, lanes)
        if written & read and written != read:
            narrowing = dst.dtype.size < source.dtype.size and min(written) == min(read)
            yield not narrowing
        yield bool(read & earlier)
        earlier |= written
