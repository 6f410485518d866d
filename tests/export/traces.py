"""What the simulator told each pipe of one block, in the words of `cpp`."""

from __future__ import annotations

from typing import Any

from ascend_sim.instructions.names import ascendc_name
from ascend_sim.run import Run
from ascend_sim.trace import Item, Kind
from isa.types import Pipe, Space
from tests.export.cpp import Told
from tests.export.cpp import told as made

READS_DST = {"axpy", "mul_add_dst", "fused_mul_add", "fused_mul_add_relu"}
"""Instructions whose destination is a source too: C++ names it once."""


def told(run: Run, core: str) -> list[Told]:
    """Return what the first core of that name was told, in program order."""
    (log,) = [log for log in run.log.cores if log.name == core]
    items = sorted(log.items, key=lambda item: item.index)
    return [_told(item) for item in items if not item.inserted and item.name not in ("TPipe",)]


def _told(item: Item) -> Told:
    if item.kind in (Kind.SET_FLAG, Kind.WAIT_FLAG):
        assert item.event is not None
        return Told(item.name, detail=f"{item.event.name} {item.event_id}")
    if item.kind is Kind.BARRIER:
        return Told(item.name, detail=item.pipe.name)
    call: Any = item.call
    if item.pipe is Pipe.S:
        place = call.detail().removeprefix("src:GM ").partition(":")[0]
        name, _, low = place.partition("[")
        return Told(item.name, ((name, int(low)),))
    reads = call.reads[:-1] if item.name in READS_DST else call.reads
    places = [_place(access) for access in (*call.writes, *reads)]
    return made(ascendc_name(item.name), places, item.bytes or item.work)


def _place(access: Any) -> tuple[str, int]:
    name = access.name if access.space is Space.GM else access.space.name
    return name, access.low
