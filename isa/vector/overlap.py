"""Which overlaps of a destination with a source one vector instruction allows.

Within a repeat the two must be the same bytes or share none; a later repeat must not read what an earlier one
wrote (the unit overlaps their work). Reading what a later repeat overwrites is fine. A conversion to a narrower type
may work in place: both start at the same byte of every repeat that they share, and it reads all of a repeat before
it writes there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isa.faults import fault
from isa.types import BLOCK_BYTES
from isa.vector.checks import PIPE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isa.tensor import LocalTensor
    from isa.vector.masks import Lanes


class Footprint:
    """The bytes that one operand touches, repeat by repeat.

    `lanes` says which lanes of a repeat take part, `last` which of the last repeat; strides are in bytes.
    """

    __slots__ = ("base", "full", "name", "repeats", "short", "size", "step")

    def __init__(
        self,
        tensor: LocalTensor,
        strides: tuple[int, int],
        repeats: int,
        lanes: Lanes,
        last: Lanes,
    ) -> None:
        self.name = tensor.name
        self.size = tensor.dtype.size
        self.base = tensor.addr
        block_stride, self.step = strides
        self.repeats = repeats
        self.full = self._offsets(lanes, block_stride)
        self.short = self.full if last is lanes else self._offsets(last, block_stride)

    def _offsets(self, lanes: Lanes, block_stride: int) -> NDArray[np.int64]:
        per_block = BLOCK_BYTES // self.size
        active = np.flatnonzero(lanes.active)
        starts = active // per_block * block_stride + active % per_block * self.size
        return np.unique(starts[:, None] + np.arange(self.size))

    @property
    def high(self) -> int:
        """One past the last byte of all repeats."""
        high = int(self.short[-1]) + (self.repeats - 1) * self.step
        if self.repeats > 1:
            high = max(high, int(self.full[-1]) + (self.repeats - 2) * self.step)
        return self.base + high + 1

    @property
    def disjoint(self) -> bool:
        """Whether no two repeats can share a byte."""
        return self.repeats == 1 or int(self.full[-1]) - int(self.full[0]) < self.step

    def repeat(self, number: int) -> NDArray[np.int64]:
        """Return the bytes of one repeat, in order."""
        offsets = self.short if number == self.repeats - 1 else self.full
        return offsets + (self.base + number * self.step)

    def same(self, other: Footprint) -> bool:
        """Return whether both touch the same bytes in every repeat."""
        return (
            self.base == other.base
            and (self.step == other.step or self.repeats == 1)
            and np.array_equal(self.full, other.full)
            and np.array_equal(self.short, other.short)
        )


def check_overlap(name: str, dst: Footprint, source: Footprint, what: str) -> None:
    """Fault where a destination and a source overlap in a way that the instruction does not allow.

    `what` names the source for the message ("src0 x").
    """
    if dst.high <= source.base or source.high <= dst.base:
        return
    if dst.same(source) and dst.disjoint:
        return
    if not _clash_within(dst, source) and not _clash_between(dst, source):
        return
    low, high = max(dst.base, source.base), min(dst.high, source.high)
    fault(
        "ILLEGAL_PARAM",
        "operand-overlap",
        f"{name}: dst {dst.name} (UB bytes {dst.base} to {dst.high}) and {what} (UB bytes "
        f"{source.base} to {source.high}) overlap, but are not the same addresses repeat by repeat: a "
        f"repeat would read what it, or an earlier one, writes. Use equal addresses or separate bytes",
        dst.name,
        (low, high),
        PIPE,
    )


def _clash_within(dst: Footprint, source: Footprint) -> bool:
    """Return whether some repeat writes a part of what it reads, and not just that."""
    for number in range(dst.repeats):
        written, read = dst.repeat(number), source.repeat(number)
        if written[-1] < read[0] or read[-1] < written[0] or np.array_equal(written, read):
            continue
        if dst.size < source.size and written[0] == read[0]:
            continue
        if len(np.intersect1d(written, read, assume_unique=True)):
            return True
    return False


def _clash_between(dst: Footprint, source: Footprint) -> bool:
    """Return whether some repeat reads what an earlier one wrote."""
    first = np.full(dst.high - dst.base, dst.repeats)  # the first repeat that writes each byte
    for number in reversed(range(dst.repeats)):
        first[dst.repeat(number) - dst.base] = number
    for number in range(1, source.repeats):
        read = source.repeat(number) - dst.base
        read = read[(read >= 0) & (read < len(first))]
        if np.any(first[read] < number):
            return True
    return False
