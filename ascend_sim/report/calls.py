"""What reports know of a bound instruction: its operands in words and as byte ranges, and what of GM it touches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isa.types import Space

READS_GM, WRITES_GM, UNKNOWN = 1, 2, 4
"""Bits of `directions`; UNKNOWN where the log has no operands."""


class Operand(NamedTuple):
    """Bytes [low, high) of a memory, or of the tensor `name` in GM."""

    write: bool
    space: Space
    low: int
    high: int
    name: str


def directions(calls: Sequence[Any]) -> NDArray[np.uint8]:
    """Return for each bound instruction whether it reads and whether it writes GM."""
    stored = getattr(calls, "directions", None)
    if stored is not None:
        return stored  # type: ignore[no-any-return]
    return np.fromiter((direction(call) for call in calls), np.uint8, len(calls))


def direction(call: Any) -> int:
    """Return whether one bound instruction reads and whether it writes GM."""
    reads, writes = getattr(call, "reads", ()), getattr(call, "writes", ())
    if not reads and not writes:
        return UNKNOWN
    read = any(access.space is Space.GM for access in reads)
    return READS_GM * read + WRITES_GM * any(access.space is Space.GM for access in writes)


def operands(call: Any) -> list[Operand]:
    """Return the operands of one bound instruction, those that are written first."""
    sides = ((True, getattr(call, "writes", ())), (False, getattr(call, "reads", ())))
    return [
        Operand(write, access.space, access.low, access.high, access.name)
        for write, accesses in sides
        for access in accesses
    ]
