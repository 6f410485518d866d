"""Logs made by hand or at random, as a machine that keeps the rules of `ascend_sim.trace` leaves them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ascend_sim.trace import Cause, CoreLog, Item, Kind, Log, MemoryCause, Site, Stall, Step
from isa.types import PIPES_OF, CoreKind, HardEvent, Pipe

DELAYS = (
    (Cause.MEMORY, MemoryCause.LATENCY),
    (Cause.MEMORY, MemoryCause.L2_MISS),
    (Cause.MEMORY, MemoryCause.SHARE),
    (Cause.MEMORY, MemoryCause.SAME_LINE),
    (Cause.BANK_CONFLICT, None),
    (Cause.BUSY, None),
)


class Call:
    """Stands in for a bound instruction: reports ask it only for `detail()`."""

    def __init__(self, text: str) -> None:
        self.text = text

    def detail(self) -> str:
        return self.text


OWN = {
    "accept",
    "call",
    "core",
    "end",
    "head",
    "index",
    "issue",
    "partner",
    "spent",
    "start",
    "parts",
}
"""Fields of an item that are not its step's."""


def item(core: CoreLog, pipe: Pipe, kind: Kind, start: int, end: int, **fields: Any) -> Item:
    """Append an item to `core`; head, accept and issue default to start, end and 0."""
    name = {Kind.SET_FLAG: "set_flag", Kind.WAIT_FLAG: "wait_flag", Kind.BARRIER: "pipe_barrier"}
    entry = Item(Step(pipe, kind, fields.pop("name", name.get(kind, "op")), 0), 0, len(core.items))
    entry.issue, entry.head, entry.start, entry.accept, entry.end = 0, start, start, end, end
    for field, value in fields.items():
        setattr(entry if field in OWN else entry.step, field, value)
    core.items.append(entry)
    return entry


def add_log() -> Log:
    """Return a small run of one vector core: copy in, wait, add, wait, copy out; every cause by hand.

    Launch 0-100 and 410-420. MTE2 reads 120-300 (latency to 220, a share of bandwidth to 240, then
    busy). V waits for the flag 130-301, adds 305-340 with a bank conflict in its last 5 cycles. MTE3
    waits 140-341, stores 341-400. The scalar unit waits for a queue place from 150 to 160.
    """
    core = CoreLog("core0.aiv0", CoreKind.AIV, start=100, end=410, blocks=[(0, 100, 410)])
    core.stalls.append(Stall(150, 160, Cause.QUEUE_FULL, 1, "MTE2"))
    load = item(
        core, Pipe.MTE2, Kind.INSTRUCTION, 120, 300, name="data_copy", bytes=8192, issue=118
    )
    load.parts = (
        (Cause.MEMORY, MemoryCause.LATENCY, 220),
        (Cause.MEMORY, MemoryCause.SHARE, 240),
        (Cause.BUSY, None, 300),
    )
    load.accept, load.call = 140, Call("dst UB[0:8192], src x[0:8192]")
    event = {"event": HardEvent.MTE2_V, "event_id": 0}
    ready = item(core, Pipe.MTE2, Kind.SET_FLAG, 300, 301, issue=119, **event)
    wait = item(core, Pipe.V, Kind.WAIT_FLAG, 301, 301, head=130, partner=ready, **event)
    add = item(core, Pipe.V, Kind.INSTRUCTION, 305, 340, name="add", work=16, issue=131)
    add.parts = ((Cause.BUSY, None, 335), (Cause.BANK_CONFLICT, None, 340))
    event = {"event": HardEvent.V_MTE3, "event_id": 1}
    done = item(core, Pipe.V, Kind.SET_FLAG, 340, 341, **event)
    item(
        core,
        Pipe.MTE3,
        Kind.WAIT_FLAG,
        341,
        341,
        head=140,
        partner=done,
        cause=Cause.BUFFER,
        **event,
    )
    item(core, Pipe.MTE3, Kind.INSTRUCTION, 341, 400, name="data_copy", bytes=4096, accept=350)
    for index, entry in enumerate(core.items):
        entry.step.site = index % 3
    sites = [
        Site((("kernel.py", 10 + index, "kernel"), ("main.py", 5, "<module>")))
        for index in range(3)
    ]
    assert wait.partner is ready
    log = Log("toy", 1000.0, [core], sites, cycles=420, launch_cycles=110)
    return log


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Draw a log of up to three cores: in-order pipes, overlapping tails, waits, barriers, stalls."""
    log = Log("toy", draw(st.sampled_from([1000.0, 1850.0])))
    log.sites = [Site((("kernel.py", line, "kernel"),)) for line in range(1, 6)]
    log.phases = ["", "pre", "main"]
    for index in range(draw(st.integers(0, 3))):
        log.cores.append(draw(_cores(index)))
    last = max((core.end for core in log.cores), default=0)
    log.cycles = last + draw(st.integers(0, 30))
    log.launch_cycles = min((core.start for core in log.cores), default=0) + log.cycles - last
    return log


@st.composite
def _cores(draw: st.DrawFn, index: int) -> CoreLog:
    kind = draw(st.sampled_from(list(CoreKind)))
    name = f"core{index // 2}.aic" if kind is CoreKind.AIC else f"core{index // 2}.aiv{index % 2}"
    core = CoreLog(f"{name}" if kind is CoreKind.AIV else f"core{index}.aic", kind)
    position = core.start = draw(st.integers(0, 40))
    for block in range(draw(st.integers(1, 2))):
        position += draw(st.integers(0, 10)) if block else 0
        start = position
        position = draw(_blocks(core, index, start))
        core.blocks.append((block, start, position))
    core.end = position
    core.items.sort(key=lambda entry: entry.issue)
    for number, entry in enumerate(core.items):
        entry.index = number
    return core


@st.composite
def _blocks(draw: st.DrawFn, core: CoreLog, core_index: int, start: int) -> int:
    """Fill one block of `core` and return the cycle at which it ends."""
    small = st.integers(0, 12)
    ends = [start]
    for pipe in draw(st.sets(st.sampled_from(PIPES_OF[core.kind][1:]))):
        free = retired = issue = start
        for _ in range(draw(st.integers(0, 6))):
            head = free + draw(small)
            entry = Item(Step(pipe, draw(st.sampled_from(list(Kind))), "op", 0), core_index, 0)
            step = entry.step
            step.site, step.phase = draw(st.integers(0, 4)), draw(st.integers(0, 2))
            issue = max(issue, head - draw(small))
            entry.issue, entry.head = issue, head
            if entry.kind is Kind.INSTRUCTION:
                _draw_instruction(draw, entry, retired)
            else:
                entry.start = head + draw(small)
                entry.accept = entry.end = entry.start + draw(st.integers(0, 1))
                step.cause = draw(st.sampled_from([Cause.FLAG, Cause.BUFFER, Cause.CROSS_CORE]))
            free, retired = entry.accept, max(retired, entry.end)
            core.items.append(entry)
        ends.append(retired)
    position = start
    for _ in range(draw(st.integers(0, 4))):
        position += draw(small)
        length = draw(small)
        cause = draw(st.sampled_from([Cause.QUEUE_FULL, Cause.FLAG, Cause.BARRIER]))
        core.stalls.append(Stall(position, position + length, cause, draw(st.integers(0, 4))))
        position += length
    return max([position, *ends]) + draw(st.integers(1, 12))


def _draw_instruction(draw: st.DrawFn, entry: Item, retired: int) -> None:
    entry.start = entry.head
    entry.accept = entry.start + draw(st.integers(1, 8))
    entry.end = max(entry.accept, retired) + draw(st.integers(0, 20))
    step = entry.step
    step.bytes, step.work = draw(st.sampled_from([0, 512, 8192])), draw(st.integers(0, 4))
    if draw(st.booleans()):
        cuts = sorted(draw(st.lists(st.integers(entry.start + 1, entry.end), max_size=4)))
        cuts.append(entry.end)
        entry.parts = tuple((*draw(st.sampled_from(DELAYS)), cut) for cut in cuts)
