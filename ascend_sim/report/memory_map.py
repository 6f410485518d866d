"""Which tensor lives where in a core's memories, and when: from its first write to its last use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ascend_sim.report.calls import Operand, operands
from ascend_sim.report.ledger import CoreLedger
from isa.types import Space


@dataclass(slots=True)
class Resident:
    """Bytes [low, high) of a memory hold one tensor's value from `start` (its first write) to `end` (its last use)."""

    space: Space
    low: int
    high: int
    name: str
    start: int
    end: int
    read: bool = False


def residents(entry: CoreLedger, calls: Sequence[Any], most: int = 1 << 62) -> list[Resident]:
    """Return what lived in the memories of a core, by start; of the first `most` items only.

    A write that follows a read of the same tensor, and does not read it itself, begins a new value.
    """
    columns = entry.columns
    known: dict[int, list[Operand]] = {}
    living: dict[tuple[Space, str, int], Resident] = {}
    found: list[Resident] = []
    starts, ends = columns["start"].tolist(), columns["end"].tolist()
    for row, call in enumerate(columns["call"][:most].tolist()):
        if call < 0 or starts[row] < 0:
            continue
        own = known.get(call)
        if own is None:
            own = known[call] = [one for one in operands(calls[call]) if one.space is not Space.GM]
        reads = {_key(one) for one in own if not one.write}
        for one in own:
            key = _key(one)
            value = living.get(key)
            fresh = one.write and (value is None or (value.read and key not in reads))
            if fresh or value is None:
                value = living[key] = Resident(
                    one.space, one.low, one.high, one.name, starts[row], ends[row]
                )
                found.append(value)
            value.low, value.high = min(value.low, one.low), max(value.high, one.high)
            value.end = max(value.end, ends[row])
            value.read = value.read or not one.write
    return found


def _key(one: Operand) -> tuple[Space, str, int]:
    """Return what tells tensors apart: a queue's buffer by its name, anything else by its place, too."""
    return one.space, one.name, -1 if one.name.endswith("]") else one.low


def live_bytes(found: Sequence[Resident], space: Space) -> list[tuple[int, int]]:
    """Return (cycle, bytes that hold a value from then on) of one memory, in order, where it changes."""
    changes: dict[int, int] = {}
    for one in found:
        if one.space is space:
            changes[one.start] = changes.get(one.start, 0) + one.high - one.low
            changes[one.end] = changes.get(one.end, 0) - (one.high - one.low)
    live, steps = 0, []
    for cycle in sorted(changes):
        if changes[cycle]:
            live += changes[cycle]
            steps.append((cycle, live))
    return steps
