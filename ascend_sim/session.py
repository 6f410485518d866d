"""One launch: builds the machine, starts the blocks, runs the clock, gathers what there is to tell."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ascend_sim import deadlock
from ascend_sim.agenda import PROGRAM, Agenda
from ascend_sim.core import Core
from ascend_sim.core_order import CoreOrder
from ascend_sim.cross_core import CrossFlags
from ascend_sim.errors import DeadlockError, Finding
from ascend_sim.findings import Findings
from ascend_sim.gm import GlobalMemory
from ascend_sim.output import Output
from ascend_sim.placement import KernelType, seats
from ascend_sim.program import Program
from ascend_sim.scalar_items import POLLS
from ascend_sim.soft_flags import SoftFlags
from ascend_sim.trace import CoreLog, Log, Step
from ascend_sim.unit_flags import UnitMap
from isa.tensor import Owner
from isa.types import CoreKind, DType, Space

if TYPE_CHECKING:
    from pathlib import Path

    from ascend_sim.config import Chip
    from ascend_sim.trips import Sampler
    from isa.instruction import Call
    from isa.tensor import GlobalAddress


class Session(Findings):
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
        ids_by_source: bool = False,
        shuffle: int | None,
        library: tuple[Path, ...],
    ) -> None:
        log = Log(chip.name, chip.clock_mhz)
        super().__init__(log, checks, len(seats(kernel_type, 0)), library)
        self.chip = chip
        self.blocks = blocks
        self.kernel_type = kernel_type
        self.numerics = numerics
        self.exact = exact
        self.auto_sync = auto_sync
        self.insert_sync = insert_sync
        self.saturate = saturate
        self.ids_by_source = ids_by_source
        self.calls: dict[CoreKind, dict[Any, Call]] = {}
        self._steps: dict[tuple[int, int], dict[int, Step]] = {}
        self.agenda = self.agenda_type(shuffle)
        self.memory = GlobalMemory(chip, self.agenda)
        self.written_buffers: set[int] = set()
        self.tensor_names: dict[tuple[CoreKind, str, DType], str] = {}  # the kernel's variables
        self.reserved: dict[str, int] = {}  # bytes that a TPipe has handed out at most, by memory
        self.spill: Callable[[CoreLog, int], None] | None = None  # takes items of a long run
        self.spill_above = sys.maxsize
        self.phases = {"": 0}
        self.cores: list[Core] = []
        self._physical = physical_cores
        self._owners: dict[tuple[str, int, int, int], Owner] = {}
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
        self.sampler: Sampler | None = None  # leaves trips of loops out

    def steps_of(self, kind: CoreKind, phase: int) -> dict[int, Step]:
        """Return the steps of flags and barriers that cores of a kind have made so far in a phase, by their keys."""
        return self._steps.setdefault((kind is CoreKind.AIC, phase), {})

    def owner(self, label: str, space: Space, address: int, length: int) -> Owner:
        """Return who holds some bytes: one object for all cores, so that they share their bound calls."""
        key = (label, int(space), address, length)
        owner = self._owners.get(key)
        if owner is None:
            owner = self._owners[key] = Owner(label)
        return owner

    # ---- running ----------------------------------------------------------------------------

    @property
    def cores_at_once(self) -> int:
        """How many cores the launch uses."""
        return min(self.blocks, self._physical) * self._seats_a_block

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
            for core in self.cores:
                core.deeds.finish()
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
            log = CoreLog(seat.name, seat.kind, limit=self.spill_above, spill=self.spill)
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
                    about=item.flag,
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
                    item.start, item.partner = now, None
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
        self.drop_needed()
        return self.sorted_findings()
