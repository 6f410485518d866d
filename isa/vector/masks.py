"""Which lanes of a repeat take part: mask arguments and the vector mask register."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from isa.faults import fault
from isa.stream import ALL_LANES, Registers
from isa.types import BLOCK_BYTES
from isa.vector.checks import PIPE, check_integer

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_COUNT = (1 << 32) - 1
"""Counter mode reads the low 32 bits of the mask register."""


class Lanes:
    """The lanes of one repeat that take part: bit i of `bits` is lane i of `total`.

    Block b, element e of an operand whose elements have `size` bytes is lane b · (32 / size) + e.
    """

    __slots__ = ("_blocks", "active", "bits", "total")

    def __init__(self, bits: int, total: int) -> None:
        self.bits = bits & ((1 << total) - 1)
        self.total = total
        self.active = np.array([(bits >> lane) & 1 for lane in range(total)], bool)
        self.active.flags.writeable = False  # shared by all who ask for the same lanes
        self._blocks: dict[int, NDArray[np.bool_] | None] = {}

    @property
    def first(self) -> int:
        """The lowest active lane."""
        return (self.bits & -self.bits).bit_length() - 1

    @property
    def last(self) -> int:
        """The highest active lane; -1 where there is none."""
        return self.bits.bit_length() - 1

    @property
    def words(self) -> tuple[int, int]:
        """The mask register's (low, high) words."""
        return self.bits & ALL_LANES, self.bits >> 64

    def blocks(self, size: int) -> int:
        """Return how many data blocks of an operand hold lanes up to the last active one."""
        return self.last * size // BLOCK_BYTES + 1

    def pattern(self, size: int) -> NDArray[np.bool_] | None:
        """Return the lanes of these blocks, blocks × elements; None where all are active."""
        if size not in self._blocks:
            per_block = BLOCK_BYTES // size
            blocks = self.blocks(size)
            used = self.active[: blocks * per_block].reshape(blocks, per_block)
            self._blocks[size] = None if used.all() else used
        return self._blocks[size]

    def reach(self, size: int, block_stride: int) -> tuple[int, int]:
        """Return the first byte and the one past the last of a repeat, from its start; strides in bytes."""
        per_block = BLOCK_BYTES // size
        if block_stride:
            first, last = self.first, self.last
            low = first // per_block * block_stride + first % per_block * size
            return low, last // per_block * block_stride + (last % per_block + 1) * size
        elements = np.flatnonzero(self.active) % per_block
        return int(elements.min()) * size, (int(elements.max()) + 1) * size

    def __str__(self) -> str:
        """Describe the mask as traces show it: the number of leading lanes, or "bits"."""
        return "bits" if self.bits & (self.bits + 1) else str(self.bits.bit_length())


@lru_cache(maxsize=1024)
def leading_lanes(count: int, total: int) -> Lanes:
    """Return the first `count` lanes of a repeat of `total`."""
    return Lanes((1 << min(count, total)) - 1, total)


@lru_cache(maxsize=1024)
def lanes_of_words(words: tuple[int, ...], total: int) -> Lanes:
    """Return the lanes that 64-bit words select, low lanes first."""
    return Lanes(sum(word << (64 * place) for place, word in enumerate(words)), total)


def lanes_of_mask(name: str, mask: Any, total: int) -> Lanes:
    """Return the lanes that a mask argument selects: a number of leading lanes, or a list of 64-bit words."""
    if not isinstance(mask, (list, tuple)):
        return leading_lanes(check_integer(name, "mask", mask, 0, None), total)
    words = 2 if total > 64 else 1
    if len(mask) not in (words, 2):
        fault(
            "ILLEGAL_PARAM",
            "mask-length",
            f"{name}: a bit mask for {total} lanes has {words} words of 64 bits, low lanes first, "
            f"got {len(mask)}",
            pipe=PIPE,
        )
    return lanes_of_words(
        tuple(check_integer(name, "mask_word", word, 0, ALL_LANES) for word in mask), total
    )


def lane_mask(name: str, mask: Any, lanes: int) -> NDArray[np.bool_]:
    """Return which of `lanes` lanes a mask argument selects, as an array that is not to be written to."""
    return lanes_of_mask(name, mask, lanes).active


def register_lanes(registers: Registers, total: int) -> Lanes:
    """Return the lanes that the mask register selects in normal mode."""
    return lanes_of_words((registers.mask_low, registers.mask_high), total)


def register_count(registers: Registers) -> int:
    """Return the number of elements that the mask register asks for in counter mode."""
    return registers.mask_low & MAX_COUNT


def freeze(mask: Any) -> Any:
    """Return a count or a mask as a dictionary key, plain ints throughout; other things as they are."""
    if type(mask) is int:
        return mask
    if isinstance(mask, (list, tuple)):
        words = [int(word) if isinstance(word, np.integer) else word for word in mask]
        return tuple(words) if all(type(word) is int for word in words) else words
    return int(mask) if isinstance(mask, np.integer) else mask
