"""What the simulator told each pipe of one block, in the words of `cpp`."""

from __future__ import annotations

import re
from typing import Any

from ascend_sim.instructions.names import ascendc_name
from ascend_sim.run import Run
from ascend_sim.trace import Item, Kind
from isa.types import Pipe, Space
from tests.export.cpp import Told
from tests.export.cpp import told as made

READS_DST = {"axpy", "mul_add_dst", "fused_mul_add", "fused_mul_add_relu", "mmad"}
"""Instructions whose destination is a source too: C++ names it once."""


def told(run: Run, core: str) -> list[Told]:
    """Return what the first core of that name was told, in program order."""
    (log,) = [log for log in run.log.cores if log.name == core]
    items = sorted(log.items, key=lambda item: item.index)
    return [_told(item) for item in items if not item.inserted and not _aside(item)]


def _aside(item: Item) -> bool:
    """Whether the scalar unit does it alone, without a memory: registers, block numbers, the TPipe."""
    scalar = item.pipe is Pipe.S and item.kind is Kind.INSTRUCTION
    return scalar and item.name not in ("get_value", "set_value")


def _told(item: Item) -> Told:
    if item.kind in (Kind.SET_FLAG, Kind.WAIT_FLAG):
        assert item.event is not None
        return Told(item.name, detail=f"{item.event.name} {item.event_id}")
    if item.kind is Kind.BARRIER:
        return Told(item.name, detail=item.pipe.name)
    call: Any = item.call
    if item.pipe is Pipe.S:
        return Told(item.name, (_scalar_place(call.detail()),))
    reads = list(call.reads)
    if item.name in READS_DST and len(reads) > 1 and _place(reads[-1]) == _place(call.writes[0]):
        del reads[-1]
    accesses = [
        access for access in (*call.writes, *reads) if access.low >= 0
    ]  # no special registers
    places = [_place(access) for access in accesses]
    return made(ascendc_name(item.name), places, item.bytes or item.work)


def _scalar_place(detail: str) -> tuple[str, int]:
    """Return the place of `src:GM x[8:16]`, or of `dst:UB c[32:34]`."""
    found = re.fullmatch(r"\w+:(\w+) (.+)\[(\d+):\d+\]", detail)
    assert found is not None, detail
    return found[2] if found[1] == "GM" else found[1], int(found[3])


def _place(access: Any) -> tuple[str, int]:
    name = access.name if access.space is Space.GM else access.space.name
    return name, access.low
