"""What a run leaves behind: one record for each item that passed through a pipe.

Records are plain data. Nothing here touches the machine, and reports read nothing else: a report made
from a saved log equals one made from a live run.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any, Final

from mypy_extensions import mypyc_attr

from isa.types import CoreKind, HardEvent, Pipe

PIPES: Final = len(Pipe)


class Kind(IntEnum):
    """What an item is. Only `INSTRUCTION` counts in `instructions`; all of them count in `items`."""

    INSTRUCTION = 0
    SET_FLAG = 1
    WAIT_FLAG = 2
    BARRIER = 3


class Cause(Enum):
    """Why a pipe spent a cycle: the one vocabulary of ledger, reports and docs."""

    BUSY = "busy"
    MEMORY = "memory"
    BANK_CONFLICT = "bank_conflict"
    FLAG = "flag"
    BUFFER = "buffer"
    BARRIER = "barrier"
    QUEUE_FULL = "queue_full"
    SCALAR = "scalar"
    CROSS_CORE = "cross_core"
    TAIL = "tail"
    LAUNCH = "launch"
    IDLE = "idle"


class MemoryCause(Enum):
    """Sub-causes of `Cause.MEMORY`."""

    LATENCY = "latency"
    L2_MISS = "l2_miss"
    SHARE = "share"
    SAME_LINE = "same_line"


@dataclass(slots=True, frozen=True)
class Site:
    """A place in the user's program: the call stack, innermost frame first, as (file, line, function)."""

    frames: tuple[tuple[str, int, str], ...]

    def __reduce__(self) -> tuple[type[Site], tuple[Any]]:
        return Site, (self.frames,)  # compiled, it could not be filled in after it is made

    @property
    def file(self) -> str:
        """File of the innermost frame."""
        return self.frames[0][0] if self.frames else ""

    @property
    def line(self) -> int:
        """Line of the innermost frame."""
        return self.frames[0][1] if self.frames else 0


Parts = tuple[tuple[Cause, MemoryCause | None, int], ...]
"""(cause, sub-cause, end cycle) in order: what an item's cycles were spent on."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Spent:
    """Tells what the cycles of an item were spent on."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def parts(self, item: Item) -> Parts:
        """Return the parts of the item's time, in order."""
        return self._parts


@mypyc_attr(allow_interpreted_subclasses=True)
class Conflicts(Spent):
    """A vector instruction with bank conflicts: `cycles` of them after its first `lead` cycles."""

    __slots__ = ("cycles", "lead")

    def __init__(self, lead: int, cycles: int) -> None:
        self.lead = lead
        self.cycles = cycles

    def parts(self, item: Item) -> Parts:
        """Return the parts of the item's time, in order."""
        until = item.start + self.lead
        return (
            (Cause.BUSY, None, until),
            (Cause.BANK_CONFLICT, None, until + self.cycles),
            (Cause.BUSY, None, item.end),
        )


@mypyc_attr(allow_interpreted_subclasses=True)
class Transfer(Spent):
    """One MTE instruction's bytes on their way: `size` of a kind, then `rest` of another one.

    Bytes use the memory system from `began` on and have passed at `passed`; what they fetch is there `latency` later,
    of which `miss_latency` is due to misses; a store is `complete` that many cycles after its start at the earliest.
    `ideal`: cycles to move the bytes at the port's own rate; `alone`: the
    same with nobody else about, where misses are limited by the window; `queued`: the same behind those that move the
    same lines.
    """

    __slots__ = (
        "alone", "began", "complete", "ideal", "kind", "latency", "miss_latency", "passed", "queued",
        "rest", "size",
    )  # fmt: skip

    def __init__(self, size: int, kind: int, latency: int, ideal: float) -> None:
        self.size = size
        self.kind = kind
        self.rest = 0
        self.complete = 0
        self.latency = latency
        self.miss_latency = 0
        self.ideal = self.alone = ideal
        self.queued = 0.0
        self.began = self.passed = 0

    def parts(self, item: Item) -> Parts:
        """Return latency, misses, sharing, and moving bytes at the port's own rate."""
        moved = self.passed - self.began
        moving = min(math.ceil(self.ideal), moved)
        unshared = min(math.ceil(max(self.alone, self.ideal)), moved)
        queued = min(max(math.ceil(self.queued), unshared), moved)
        there = self.passed + self.latency
        first = item.start + self.latency  # when the first byte could be there
        found = []
        last = item.start
        for cause, sub, until in (
            (Cause.MEMORY, MemoryCause.LATENCY, first - self.miss_latency),
            (Cause.MEMORY, MemoryCause.L2_MISS, first),
            (Cause.MEMORY, MemoryCause.SHARE, there - queued),
            (Cause.MEMORY, MemoryCause.SAME_LINE, there - unshared),
            (Cause.MEMORY, MemoryCause.L2_MISS, there - moving),
            (Cause.BUSY, None, there),
            (Cause.MEMORY, MemoryCause.LATENCY, item.end),
        ):
            if until > last:
                found.append((cause, sub, until))
                last = until
        return tuple(found)


class Step:
    """What an item is, apart from its time: the same for all items of one instruction at one place.

    Items share their steps, so a step must not change any more once a second item has it.
    """

    __slots__ = (
        "bytes", "cause", "event", "event_id", "flag", "forget", "inserted", "kind", "mode", "name", "owners", "phase",
        "pipe", "polls", "price", "site", "slot", "work",
    )  # fmt: skip

    def __init__(self, pipe: Pipe, kind: Kind, name: str, site: int) -> None:
        self.pipe = pipe
        self.kind = kind
        self.name = name  # "add", "data_copy", "set_flag", "wait_flag", "pipe_barrier"
        self.site = site  # index into Log.sites
        self.slot: int = kind * PIPES + pipe  # both in one plain number
        self.phase = 0  # index into Log.phases; 0 is the unnamed phase
        self.bytes = 0  # payload of a move
        self.work = 0  # repeats (V) or fractal cycles (M)
        self.event: HardEvent | None = None  # of SET_FLAG and WAIT_FLAG
        self.event_id = -1
        self.flag: int = (
            -1
        )  # event and id in one number; of PIPE_ALL the pipes waited for, a bit each
        self.forget: Any = None  # of the wait of alloc_tensor: owner, memory, address, length
        self.mode = -1  # of a set between cores (`event` is None then)
        self.cause = Cause.FLAG  # of WAIT_FLAG and BARRIER: how the ledger names the wait
        self.inserted = False  # put in by automatic synchronisation, not by the user
        self.polls = False  # reads GM again and again until it finds what it waits for
        self.owners: tuple[int, ...] = ()  # of an instruction's bytes: serial numbers of buffers
        self.price: Any = None  # what the machine knows of its time


class Item:
    """One item that passed through a pipe (or, with `pipe` S, that the scalar unit executed).

    Times are core cycles since the launch: `issue` (the scalar unit has put it into the pipe's queue),
    `head` (it came to the head of its queue), `start` (it began; a wait or barrier: it was released),
    `accept` (the pipe may begin its successor), `end` (its results are visible). `parts` says what the
    cycles from `start` to `end` were spent on, as (cause, sub-cause or None, end cycle) in order; None
    means all of them were busy. An item has the attributes of its `step` too.
    """

    __slots__ = (
        "accept", "call", "core", "end", "head", "index", "issue", "partner", "spent", "start", "step",
    )  # fmt: skip

    def __init__(self, step: Step, core: int, index: int, call: Any = None) -> None:
        self.step = step
        self.core = core  # index into Log.cores
        self.index = index  # program order on its core
        self.call = call  # the bound instruction: `call.detail()` describes the operands
        self.issue = self.head = self.start = self.accept = self.end = -1
        # Of a wait: the set that released it; of an instruction: that which unit flags name, or a store let go first.
        self.partner: Item | None = None
        self.spent: Spent | None = None  # tells `parts`, when somebody asks

    @property
    def parts(self) -> Parts | None:
        """What the cycles from start to end were spent on; None means all were busy."""
        return self.spent.parts(self) if self.spent is not None else None

    @parts.setter
    def parts(self, value: Parts | None) -> None:
        self.spent = None if value is None else Spent(value)

    @property
    def pipe(self) -> Pipe:
        """Which pipe it passes through."""
        return self.step.pipe

    @property
    def kind(self) -> Kind:
        """What it is."""
        return self.step.kind

    @property
    def name(self) -> str:
        """What it is called."""
        return self.step.name

    @property
    def site(self) -> int:
        """Its place in the program: index into Log.sites."""
        return self.step.site

    @property
    def phase(self) -> int:
        """Index into Log.phases."""
        return self.step.phase

    @property
    def bytes(self) -> int:
        """Payload of a move."""
        return self.step.bytes

    @property
    def work(self) -> int:
        """Repeats (V) or fractal cycles (M)."""
        return self.step.work

    @property
    def event(self) -> HardEvent | None:
        """Of a set or wait inside a core."""
        return self.step.event

    @property
    def event_id(self) -> int:
        """Number of a flag."""
        return self.step.event_id

    @property
    def flag(self) -> int:
        """Event and id in one number; of PIPE_ALL the pipes waited for, a bit each."""
        return self.step.flag

    @property
    def forget(self) -> Any:
        """Of the wait of alloc_tensor: the bytes that are nobody's from then on."""
        return self.step.forget

    @property
    def mode(self) -> int:
        """Of a set between cores."""
        return self.step.mode

    @property
    def cause(self) -> Cause:
        """How the ledger names a wait."""
        return self.step.cause

    @property
    def inserted(self) -> bool:
        """Whether automatic synchronisation has put it in."""
        return self.step.inserted

    @property
    def polls(self) -> bool:
        """Whether it reads GM again and again until it finds what it waits for."""
        return self.step.polls

    def __repr__(self) -> str:
        return (
            f"<Item {self.index} {self.pipe.name} {self.name} {self.issue}/{self.start}-{self.end}>"
        )


class Stall:
    """The scalar unit of one core stood still from `start` to `end`."""

    __slots__ = ("cause", "detail", "end", "site", "start")

    def __init__(self, start: int, end: int, cause: Cause, site: int, detail: str = "") -> None:
        self.start = start
        self.end = end
        self.cause = cause
        self.site = site
        self.detail = detail


@dataclass(slots=True)
class CoreLog:
    """All that one core did. `start` and `end` bound its programs; the scalar unit is busy between
    them except in `stalls`. `blocks` lists (block index, start, end), `firsts` where in `items` each begins;
    between two blocks of one core the core waits for the launcher (`Cause.LAUNCH`).

    While a long run goes on, `spill` is called where there are more than `limit` items: it writes the oldest to disk
    and takes them away. `spilled` is how many it took, `between` its waits for other cores.
    """

    name: str  # "core0.aiv1"
    kind: CoreKind
    items: list[Item] = field(default_factory=list)
    stalls: list[Stall] = field(default_factory=list)
    blocks: list[tuple[int, int, int]] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    start: int = 0
    end: int = 0
    limit: int = sys.maxsize
    spill: Callable[[CoreLog, int], None] | None = None
    spilled: int = 0
    between: list[Item] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many items there were so far: the place of the next one."""
        return self.spilled + len(self.items)

    def make_room(self, now: int) -> None:
        """Let the oldest items go to disk if there are too many; `now` is the present cycle."""
        if len(self.items) > self.limit and self.spill is not None:
            self.spill(self, now)


@mypyc_attr(allow_interpreted_subclasses=True)
@dataclass(slots=True)
class Log:
    """A whole run. `cycles` runs from the launch to the last core's end, launch cost included."""

    chip_name: str
    clock_mhz: float
    cores: list[CoreLog] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)
    phases: list[str] = field(default_factory=lambda: [""])
    cycles: int = 0
    launch_cycles: int = 0
