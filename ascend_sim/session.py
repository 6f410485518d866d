"""One launch: builds the machine, starts the blocks, runs the clock, gathers what there is to tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ascend_sim import deadlock, messages
from ascend_sim.agenda import PROGRAM, Agenda
from ascend_sim.core import Core
from ascend_sim.core_order import CoreOrder
from ascend_sim.cross_core import CrossFlags
from ascend_sim.errors import DeadlockError, Finding, KernelError, RaceError, UninitializedRead
from ascend_sim.gm import GlobalMemory
from ascend_sim.output import Output
from ascend_sim.placement import KernelType, seats
from ascend_sim.program import POLLS, Program
from ascend_sim.soft_flags import SoftFlags
from ascend_sim.trace import CoreLog, Item, Log, Site, Step
from ascend_sim.unit_flags import UnitMap
from isa.tensor import Owner
from isa.types import CoreKind, Space

if TYPE_CHECKING:
    from pathlib import Path
    from types import CodeType, FrameType, TracebackType

    from ascend_sim.config import Chip
    from ascend_sim.gm_order import Conflict, GmUse
    from ascend_sim.hazards import _Entry
    from isa.access import Access
    from isa.instruction import Call
    from isa.tensor import GlobalAddress

_STOPPING = {"RACE": RaceError, "UNINIT": UninitializedRead}
_CONFLICTS = {
    "RAW": (
        "RACE", "race-blocks-raw", "a block, or another core, reads bytes that one writes, and nothing orders them",
    ),
    "WAR": (
        "RACE", "race-blocks-war", "a block, or another core, overwrites bytes that one reads, and nothing orders them",
    ),
    "WAW": ("RACE", "race-blocks-waw", "two blocks, or cores, write the same bytes, and nothing orders them"),
    "stale": (
        "COHERENCE", "cache-stale-read", "get_value finds a line of the data cache that came in before others wrote it",
    ),
    "kept": (
        "COHERENCE", "cache-store-kept", "something reads or overwrites what set_value stored, which is still in the "
        "data cache",
    ),
    "line": (
        "COHERENCE", "cache-line-shared", "a line of the data cache goes back whole and overwrites what others stored "
        "into other bytes of it",
    ),
}  # fmt: skip
"""Kind, code and meaning of a finding about two accesses to GM, by the verdict on them."""
MAX_PAIRS = 4096
"""Pairs of racing instructions kept for each finding, to say whether the hazard struck."""


class Session:
    """Everything of one launch that is not one core's own."""

    core_type = Core
    agenda_type = Agenda

    def __init__(
        self,
        chip: Chip,
        *,
        blocks: int,
        physical_cores: int,
        kernel_type: KernelType,
        numerics: bool,
        exact: bool,
        checks: str,
        auto_sync: bool,
        insert_sync: bool | None = None,
        saturate: bool = False,
        shuffle: int | None,
        library: tuple[Path, ...],
    ) -> None:
        self.chip = chip
        self.blocks = blocks
        self.kernel_type = kernel_type
        self._seats_a_block = len(seats(kernel_type, 0))
        self.numerics = numerics
        self.exact = exact
        self.checks = checks
        self.auto_sync = auto_sync
        self.insert_sync = insert_sync
        self.saturate = saturate
        self.calls: dict[CoreKind, dict[Any, Call]] = {}
        self._steps: dict[tuple[int, int], dict[int, Step]] = {}
        self.agenda = self.agenda_type(shuffle)
        self.memory = GlobalMemory(chip, self.agenda)
        self.log = Log(chip.name, chip.clock_mhz)
        self.sites = self.log.sites
        self.sites.append(Site(()))
        self.findings: dict[Any, Finding] = {}
        self.written_buffers: set[int] = set()
        self.reserved: dict[str, int] = {}  # bytes that a TPipe has handed out at most, by memory
        self.gm_uses: list[Sequence[Any]] = []  # fields of GmUse
        self.phases = {"": 0}
        self.cores: list[Core] = []
        self._physical = physical_cores
        self.places: dict[
            tuple[int, ...], dict[int, int]
        ] = {}  # call sites by the chain of callers
        self.library_code: dict[int, CodeType] = {}
        self._owners: dict[tuple[str, int, int, int], Owner] = {}
        self._codes: list[CodeType] = []  # kept, so that no id is used again
        self._site_index: dict[Site, int] = {self.sites[0]: 0}
        self._library = tuple(str(path) for path in library)
        self._pairs: dict[Any, list[tuple[str, Item, Item]]] = {}
        self._told: dict[tuple[int, int], bool] = {}
        self._queue: list[int] = []
        self._body: Callable[[int], Callable[[], None]] = lambda _: lambda: None
        self._done = 0
        self._ended: dict[int, list[Core]] = {}
        self.soft = SoftFlags(self)
        self.cross = CrossFlags(self)
        self.core_order = CoreOrder(self)
        self.units = UnitMap(chip.fixpipe.unit_flag_granule)
        self.output = Output()
        self.sys_workspace: GlobalAddress | None = None

    # ---- call sites -------------------------------------------------------------------------

    def new_site(self, frame: FrameType | None, root: CodeType) -> int:
        """Give a call site its index; -1 after learning of frames that belong to the simulator itself."""
        frames = []
        learned = False
        while frame is not None and frame.f_code is not root:
            code = frame.f_code
            if code.co_filename.startswith(self._library):
                learned = learned or id(code) not in self.library_code
                self.library_code[id(code)] = code
            else:
                frames.append((code.co_filename, frame.f_lineno, code.co_name))
                self._codes.append(code)
            frame = frame.f_back
        if learned:
            return -1
        site = Site(tuple(frames))
        index = self._site_index.get(site)
        if index is None:
            index = self._site_index[site] = len(self.sites)
            self.sites.append(site)
        return index

    def kernel_frames(self, trace: TracebackType) -> list[TracebackType]:
        """Return the entries of a traceback that are the kernel's own, outermost first."""
        frames = []
        entry: TracebackType | None = trace
        while entry is not None:
            if not entry.tb_frame.f_code.co_filename.startswith(self._library):
                frames.append(entry)
            entry = entry.tb_next
        return frames

    def site_of(self, frames: list[TracebackType]) -> int:
        """Return the call site that the kernel's entries of a traceback lead to."""
        site = Site(
            tuple(
                (entry.tb_frame.f_code.co_filename, entry.tb_lineno, entry.tb_frame.f_code.co_name)
                for entry in reversed(frames)
            )
        )
        index = self._site_index.get(site)
        if index is None:
            index = self._site_index[site] = len(self.sites)
            self.sites.append(site)
        return index

    def steps_of(self, kind: CoreKind, phase: int) -> dict[int, Step]:
        """Return the steps of flags and barriers that cores of a kind have made so far in a phase, by their keys."""
        return self._steps.setdefault((kind is CoreKind.AIC, phase), {})

    def where_text(self, site: int) -> str:
        """Return "kernel.py:41 in compute" for messages."""
        return messages.place(self.sites[site])

    def where(self, site: int) -> str:
        """Return the place as a line of its own."""
        return f"\n  at {self.where_text(site)}"

    def owner(self, label: str, space: Space, address: int, length: int) -> Owner:
        """Return who holds some bytes: one object for all cores, so that they share their bound calls."""
        key = (label, int(space), address, length)
        owner = self._owners.get(key)
        if owner is None:
            owner = self._owners[key] = Owner(label)
        return owner

    # ---- findings ---------------------------------------------------------------------------

    def report(
        self,
        kind: str,
        code: str,
        message: str,
        site: int,
        core: str = "",
        pipe: str = "",
        tensor: str = "",
        byte_range: tuple[int, int] | None = None,
        struck: bool | None = None,
    ) -> None:
        """Record a finding once for each place; raise it where the launch asked for errors."""
        if self.checks == "off":
            return
        key = (code, site, tensor)
        known = self.findings.get(key)
        if known is not None:
            known.hits += 1
            known.struck = known.struck or struck
            return
        place = self.sites[site]
        finding = Finding(
            kind, code, message, place.file, place.line, core, pipe, tensor, byte_range, struck
        )
        self._record(key, finding)

    def _record(self, key: Any, finding: Finding) -> None:
        self.findings[key] = finding
        if self.checks == "error" and finding.kind not in ("INFO", "PERF"):
            place = (
                f"\n  at {finding.file}:{finding.line}, {finding.core}, pipe {finding.pipe}"
                if finding.file
                else ""
            )
            raise _STOPPING.get(finding.kind, KernelError)(finding.message + place, finding)

    def race(
        self, program: Program, entry: _Entry, item: Item, access: Access, write: bool
    ) -> None:
        """Record two accesses that nothing orders, once for each pair of places."""
        what = ("RAW" if entry.write else "WAR") if not (write and entry.write) else "WAW"
        earlier = entry.item
        key = ("race", what, earlier.site, item.site, earlier.name, item.name)
        pairs = self._pairs.setdefault(key, [])
        if len(pairs) < MAX_PAIRS:
            pairs.append((what, earlier, item))
        known = self.findings.get(key)
        if known is not None:
            known.hits += 1
            return
        message = messages.race(
            what, earlier, item, entry.access, access, program.core.log, self.sites
        )
        place = self.sites[item.site]
        finding = Finding(
            "RACE",
            f"race-{what.lower()}",
            message,
            place.file,
            place.line,
            program.core.name,
            item.pipe.name,
            access.name,
            (max(access.low, entry.access.low), min(access.high, entry.access.high))
            if access.low >= 0
            else None,
        )
        other = self.sites[earlier.site]
        finding.related.append(
            {
                "file": other.file,
                "line": other.line,
                "pipe": earlier.pipe.name,
                "instruction": earlier.name,
            }
        )
        self._record(key, finding)

    def conflict(self, conflict: Conflict) -> None:
        """Record two accesses to GM that are not in order, or not past the data cache, once for each pair of places."""
        what, first, second = conflict
        earlier, later = first.item, second.item
        race = what in ("RAW", "WAR", "WAW")
        place, other = self.sites[later.site], self.sites[earlier.site]
        pair = (earlier.site, later.site)
        if what == "line" and self._told.get(pair):
            return  # the same two accesses have a nearer fault
        self._told[pair] = True
        key = ("conflict", what, *pair, earlier.name, later.name)
        if race and (
            what != "WAW" or first.epoch.level != second.epoch.level
        ):  # else neither is the later one
            pairs = self._pairs.setdefault(key, [])
            if len(pairs) < MAX_PAIRS:
                pairs.append((what, earlier, later))
        known = self.findings.get(key)
        if known is not None:
            known.hits += 1
            return
        names = (self._unit_name(first), self._unit_name(second))
        kind, code, _ = _CONFLICTS[what]
        finding = Finding(
            kind,
            code,
            (messages.race_of_cores if race else messages.coherence)(conflict, names, self.sites),
            place.file,
            place.line,
            self.log.cores[later.core].name,
            later.pipe.name,
            second.access.name,
            conflict.bytes(),
        )
        finding.related.append(
            {
                "file": other.file,
                "line": other.line,
                "pipe": earlier.pipe.name,
                "instruction": earlier.name,
            }
        )
        self._record(key, finding)

    def _unit_name(self, use: GmUse) -> str:
        """Return "block 3", in a mix kernel the core that runs its part of a block."""
        if self._seats_a_block == 1:
            return f"block {use.unit}"
        return self.log.cores[use.item.core].name

    # ---- running ----------------------------------------------------------------------------

    def unit(self, block: int, kind: CoreKind, sub_block: int) -> int:
        """Return a number for what runs unordered with everything else: a block, or one core's part of it."""
        if self._seats_a_block == 1:
            return block
        return block * self._seats_a_block + (0 if kind is CoreKind.AIC else 1 + sub_block)

    def run(self, body: Callable[[int], Callable[[], None]]) -> None:
        """Run all blocks of a kernel; blocks beyond the cores follow on the cores that are free first."""
        self._body = body
        launch = self.chip.launch
        at_once = min(self.blocks, self._physical)
        groups = [self._make_cores(place) for place in range(at_once)]
        head = launch.base_us / 2
        for block, group in enumerate(groups):
            for core in group:
                time = self.chip.cycles(head + launch.per_core_us * (core.index + 1))
                self.agenda.at(time, PROGRAM, core.scalar_rank, self._start, (core, block))
        self._queue = list(range(at_once, self.blocks))
        self.log.launch_cycles = (
            self.chip.cycles(head + launch.per_core_us * len(self.cores)) + self._tail_cycles()
        )
        with np.errstate(all="ignore"):
            self.agenda.run()
        if self._done < self.blocks:
            self._deadlock()
        self._check_counters()
        self.log.cycles = max(core.log.end for core in self.cores) + self._tail_cycles()

    def not_started(self) -> list[int]:
        """Return the blocks that wait for a core to become free."""
        return self._queue

    def _make_cores(self, place: int) -> list[Core]:
        group = []
        for seat in seats(self.kernel_type, place):
            log = CoreLog(seat.name, seat.kind)
            index = len(self.cores)
            core = self.core_type(
                self.chip,
                self.agenda,
                self.memory,
                log,
                index=index,
                rank=index,
                cluster=seat.cluster,
                numerics=self.numerics,
                cross=self.cross,
                units=self.units,
                sub_block=seat.sub_block,
            )
            self.log.cores.append(log)
            self.cores.append(core)
            group.append(core)
        return group

    def _tail_cycles(self) -> int:
        return self.chip.cycles(self.chip.launch.base_us / 2)

    def _start(self, what: tuple[Core, int]) -> None:
        core, block = what
        program = Program(self, core, block, self._body(block), core.sub_block)
        core.start_block(program, self.agenda.now)

    def block_done(self, program: Program, core: Core, time: int) -> None:
        """Check what a core's part of a block leaves behind; when all parts are done, start the next block."""
        self._leftovers(core)
        group = self._ended.setdefault(program.block, [])
        group.append(core)
        if len(group) < self._seats_a_block:
            return
        self._done += 1
        del self._ended[program.block]
        if self._queue:
            block = self._queue.pop(0)
            begin = time + self.chip.cycles(self.chip.launch.per_core_us)
            for member in group:
                self.agenda.at(
                    max(begin, self.agenda.now + 1),
                    PROGRAM,
                    member.scalar_rank,
                    self._start,
                    (member, block),
                )

    def _check_counters(self) -> None:
        """Report cross-core counters that a kernel leaves above zero."""
        for core in self.cores:
            for flag in core.cross_flags.values():
                if flag.tokens:
                    item = flag.tokens[0][1]
                    if len(flag.tokens) > self.cross.limit:
                        self.cross.check_counter(core, flag.tokens, self.agenda.now)
                    self.report(
                        "FLAG_BALANCE",
                        "cross-core-counter-left",
                        f"the counter of cross-core flag {item.event_id} on {core.name} is {len(flag.tokens)} when the "
                        f"kernel ends: more sets than cross_core_wait_flag({item.event_id}). The next kernel's first "
                        f"wait on it passes too early",
                        item.site,
                        core.name,
                        item.pipe.name,
                    )

    def _leftovers(self, core: Core) -> None:
        filled_by = core.unit_flags.left_full() if core.unit_flags is not None else None
        if filled_by is not None:
            access = filled_by.call.writes[0]
            self.report(
                "FLAG_BALANCE",
                "unit-flag-left",
                f"mmad with unit_flag 3 leaves L0C[{access.low}:{access.high}] full, and no fixpipe with unit_flag 3 "
                f"takes it before the kernel ends: the next mmad with unit flags hangs. Give the fixpipe unit_flag 3, "
                f"or mmad none",
                filled_by.site,
                core.name,
                filled_by.pipe.name,
                access.name,
                (access.low, access.high),
            )
        for flag in core.flags.values():
            if flag.tokens:
                item = flag.tokens[0][1]
                event, event_id = item.event, item.event_id
                assert event is not None
                self.report(
                    "FLAG_BALANCE",
                    "flag-left-set",
                    f"{event.name} id {event_id} is still set when the kernel ends: {len(flag.tokens)} more set_flag "
                    f"than wait_flag. The next kernel's first wait on it passes too early. Add wait_flag({event.name}, "
                    f"{event_id}) at the end, or drop the last set_flag",
                    item.site,
                    core.name,
                    item.pipe.name,
                )

    def look_at_polls(self) -> None:
        """Raise a deadlock where every core that still runs polls GM or stands: nobody changes what they poll."""
        for core in self.cores:
            program = core.program
            if not core.stands() and (program is None or program.polls < POLLS):
                return
        self.agenda.now = max(self.agenda.now, *(core.time for core in self.cores))
        message, finding = deadlock.report(self, self.agenda.now)
        raise DeadlockError(message, finding)

    def _deadlock(self) -> None:
        for core in self.cores:  # units may have worked ahead of the last event
            times = [core.time, *(max(pipe.accept, pipe.landed) for pipe in core.pipes.values())]
            waits = [pipe.blocked.head for pipe in core.pipes.values() if pipe.blocked is not None]
            self.agenda.now = max(self.agenda.now, *times, *waits)
        message, finding = deadlock.report(self, self.agenda.now)
        raise DeadlockError(message, finding)

    def close(self) -> None:
        """Let go of the kernels that did not come to their end."""
        for core in self.cores:
            if core.program is not None:
                core.program.dismiss()

    def abort(self) -> None:
        """Cut the log at the present cycle: the kernel could not go on."""
        now = self.agenda.now
        for core in self.cores:
            log = core.log
            log.items = [
                item for item in log.items if 0 <= item.start <= now or 0 <= item.head <= now
            ]
            for item in log.items:
                if item.start < 0 or item.start > now:  # a wait that is still open
                    item.start = now
                if item.end < 0 or item.end > now:
                    item.end = max(now, item.start)
                    item.parts = None
                item.accept = (
                    item.end if item.accept < 0 else min(item.accept, max(now, item.start))
                )
            if core.program is not None:
                if not log.blocks:
                    log.start = core.block_start
                log.blocks.append((core.program.block, core.block_start, now))
                log.end = now
            log.stalls = [stall for stall in log.stalls if stall.start < now]
            for stall in log.stalls:
                stall.end = min(stall.end, now)
        self.log.cores = [core for core in self.log.cores if core.blocks]
        self.log.cycles = now

    def finish(self) -> list[Finding]:
        """Return the findings in a fixed order, with what only the whole run can tell."""
        self.output.close()
        for key, pairs in self._pairs.items():
            self.findings[key].struck = any(
                _struck(what, first, second) for what, first, second in pairs
            )
        return sorted(
            self.findings.values(),
            key=lambda f: (f.kind, f.code, f.file, f.line, f.core, f.pipe, f.tensor, f.message),
        )


def _struck(what: str, earlier: Item, later: Item) -> bool:
    """Return whether the hazard changed what happened: the later access came before the earlier one was through."""
    if later.start < 0 or earlier.start < 0:
        return False
    if what == "RAW":
        return later.start < earlier.end or earlier.end < 0
    if what == "WAR":
        return 0 <= later.end <= earlier.start
    return 0 <= later.end <= earlier.end
