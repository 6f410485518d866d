"""The order checker of one core: which accesses nothing orders.

It follows the program without any time: pipes as queues, flags as tokens, each pipe with a vector of what it
knows to be complete on the others. So a verdict does not depend on how fast anything happens to be. Edges: a
set raises what its pipe has completed, a wait learns it; a barrier teaches a pipe about itself; an instruction
knows what the scalar unit knew when it issued it; a wait for another core's flag adds what that core knew
(`ascend_sim.core_order`). Inside a pipe instructions start in order but overlap, so two
conflicting neighbours need a barrier as well.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from ascend_sim.core_order import NOTHING, join
from ascend_sim.gm_order import NEVER, READS, CachedLine, whole_line
from ascend_sim.trace import Item, Kind
from ascend_sim.unit_flags import FINISH, UnitOrder
from ascend_sim.written import Written
from isa.access import GM_PLACE
from isa.instruction import MovedCall
from isa.types import PIPES_OF, CoreKind, Pipe, Space

if TYPE_CHECKING:
    from ascend_sim.naming import Variables
    from ascend_sim.program import Program
    from isa.access import Access
    from isa.tensor import GmBuffer

_S: Final = Pipe.S
_M: Final = Pipe.M
_FIX: Final = Pipe.FIX
_L0C: Final[int] = int(Space.L0C)
_GM: Final[int] = GM_PLACE
_MOVED: Final[Any] = MovedCall
_FINISH: Final[int] = FINISH
_S_NUMBER: Final[int] = int(Pipe.S)
_INSTRUCTION: Final = Kind.INSTRUCTION
_SET: Final = Kind.SET_FLAG
_WAIT: Final = Kind.WAIT_FLAG
_BARRIER: Final = Kind.BARRIER
_WAITS: Final[int] = len(Pipe)
_EPOCH: Final[int] = READS + 1
"""Places in a clock behind those of the pipes: waits for other cores; behind its own reads, an epoch of theirs."""
SAME_PIPE_WINDOW: Final = 16
"""Instructions of one pipe further apart than this do not overlap (the vendor's sanitizer draws the line here)."""
_PRUNE_AT: Final = 64


class _Lane:
    """One pipe in program order: what waits to be followed, and what it knows to be complete.

    `number` is the pipe as a plain number, its place in a clock.
    """

    __slots__ = ("count", "freed", "known", "number", "pending", "pipe", "snapshot")

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self.number: int = int(pipe)
        self.pending: deque[tuple[Item, list[int]]] = deque()
        self.known = [0] * (_EPOCH + 1)
        self.count = 0
        self.freed = 0  # of M: up to which Fixpipe unit flags say that L0C has been read
        self.snapshot: list[int] | None = None


class _Entry:
    """One access that later ones may conflict with."""

    __slots__ = ("access", "covered", "high", "item", "low", "number", "write")

    def __init__(self, access: Access, write: bool, number: int, item: Item) -> None:
        self.access = access
        self.low: int = access.low
        self.high: int = access.high
        self.covered = (
            False  # a later write has taken all its bytes: that one stands for it from then on
        )
        self.write = write
        self.number = number
        self.item = item


class _Log:
    """The accesses to one memory by one pipe, in program order.

    What a pipe knows to be complete of another one is always a beginning of its list, so only the end of the list
    has to be looked at.
    """

    __slots__ = ("entries", "last", "last_write", "limit")

    def __init__(self) -> None:
        self.entries: list[_Entry] = []
        self.last = self.last_write = 0  # numbers of the last access and the last write
        self.limit = _PRUNE_AT


class Order:
    """Happens-before of one block on one core."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._session = program.session
        self._lanes = {pipe: _Lane(pipe) for pipe in PIPES_OF[program.core_kind]}
        lanes = [None if pipe is _S else self._lanes.get(pipe) for pipe in Pipe]
        self._lane_of: list[_Lane | None] = lanes * len(
            Kind
        )  # by `Step.slot`; None: the scalar unit
        self._behind = 0  # items that are pending
        self._scalar = self._lanes[Pipe.S]
        self._scalar.snapshot = self._scalar.known
        self._tokens: dict[int, list[list[int]]] = {}
        self._logs: dict[int, dict[int, _Log]] = {}  # by memory or allocation
        self._written = Written(program)
        self._units = UnitOrder(program) if program.core_kind is CoreKind.AIC else None
        self._enough_cells: int = program.core.enough_cells
        self._cores = program.session.core_order
        self._uses = program.session.gm_uses
        self._epochs = [NOTHING]  # what other cores are known to have done, wait after wait
        self._unit: int = program.unit
        self._waits = 0  # for flags of other cores
        self._backlog: deque[tuple[Any, ...]] = deque()  # steps to take once it does so no longer
        self._stopped: Item | None = None  # the scalar unit's wait for a flag of another core
        self._line_bytes = program.core.dcache.line
        self._lines: dict[
            tuple[int, int], CachedLine
        ] = {}  # in the data cache, by place and number
        self._line: CachedLine | None = None  # that of the scalar access that is being looked at

    # ---- following the program --------------------------------------------------------------

    def issue(self, item: Item) -> None:
        """Take the next item of the program."""
        if self._stopped is not None:
            self._backlog.append((self.issue, item))
            return
        snapshot = self._scalar.known
        lane = self._lane_of[item.step.slot]
        if lane is None:
            self._scalar_item(item)
        elif lane.pending or not self._step(lane, item, snapshot):
            lane.pending.append((item, snapshot))
            self._behind += 1
        elif self._behind and _moves_others(item):
            self._follow()

    def go_on(self) -> None:
        """Follow what has piled up behind a wait for another core, now that its set has been followed."""
        while True:
            stopped = self._stopped
            if stopped is not None:
                if not self._learn(stopped):
                    return
                self._stopped = None
            elif self._backlog:
                step, *arguments = self._backlog.popleft()
                step(*arguments)
            else:
                return

    def _learn(self, item: Item) -> bool:
        """Learn what a wait for a flag of another core says; return False where that is not known yet."""
        program = self._program
        came = self._cores.wait(self, program.core, item)
        if came is None:
            return False
        now = self._epochs[-1]
        epoch = join([now, came])
        epoch.level += 1  # it is a new one, whatever it shares
        known = self._scalar.known.copy()
        own = epoch.row(program.unit)
        if own is not None:  # others know what this core did, and tell it so
            _join(known, list(own))
        self._waits += 1
        known[_WAITS] = self._waits
        known[_EPOCH] = len(self._epochs)
        self._epochs.append(epoch)
        self._cores.waited(program.core, item, program.unit, self._waits)
        self._scalar.known = known
        return True

    def _follow(self) -> None:
        moved = True
        while moved:
            moved = False
            for lane in self._lanes.values():
                while lane.pending:
                    item, snapshot = lane.pending[0]
                    if not self._step(lane, item, snapshot):
                        break
                    lane.pending.popleft()
                    self._behind -= 1
                    moved = moved or _moves_others(item)

    def _step(self, lane: _Lane, item: Item, snapshot: list[int]) -> bool:
        if snapshot is not lane.snapshot:
            lane.snapshot = snapshot
            _join(lane.known, snapshot)
        step = item.step
        kind = step.kind
        if kind is _INSTRUCTION:
            call = item.call
            if type(call) is _MOVED:
                call.bind()
            flagged = call.unit_flag
            if flagged and not self._units.may_start(lane.pipe, lane, call):  # type: ignore[union-attr]
                return False
            lane.count += 1
            if call.writes:
                for access in call.reads:
                    self._access(access, False, lane, item)
                access = call.writes[0]
                self._access(access, True, lane, item)
                self._written.instruction(item)
            if flagged and flagged == _FINISH:
                self._units.finish(lane.pipe, lane, call)  # type: ignore[union-attr]
        elif kind is _SET:
            token = lane.known.copy()
            token[lane.number] = lane.count
            if step.event is None:
                program = self._program
                epoch = self._epochs[token[_EPOCH]]
                self._cores.set(program.core, item, program.unit, token[:_EPOCH], epoch)
            else:
                tokens = self._tokens.get(step.flag)
                if tokens is None:
                    self._tokens[step.flag] = [token]
                else:
                    tokens.append(token)
        elif kind is _WAIT:
            tokens = self._tokens.get(step.flag)
            if not tokens:
                return False
            _join(lane.known, tokens.pop(0))
            if step.forget is not None:
                self._written.forget(*step.forget)
        else:
            lane.known[lane.number] = lane.count
        return True

    def _scalar_item(self, item: Item) -> None:
        lane = self._scalar
        kind = item.kind
        if kind is _SET:
            token = lane.known.copy()
            token[Pipe.S] = lane.count
            if item.event is None:  # a message
                program = self._program
                epoch = self._epochs[token[_EPOCH]]
                self._cores.set(program.core, item, program.unit, token[:_EPOCH], epoch)
                return
            self._tokens.setdefault(item.flag, []).append(token)
            self._follow()
        elif kind is _WAIT:
            if item.event is None:
                if not self._learn(item):
                    self._stopped = item
                return
            tokens = self._tokens.get(item.flag)
            if tokens:
                known = lane.known.copy()
                _join(known, tokens.pop(0))
                lane.known = known
        elif kind is _BARRIER:
            known = lane.known.copy()
            for pipe, other in self._lanes.items():
                if item.flag >> pipe & 1:
                    known[pipe] = other.count
            lane.known = known
            if item.flag < 0:
                self._forget()

    def _forget(self) -> None:
        """Drop everything: after PIPE_ALL no earlier access can conflict with a later one."""
        if all(not lane.pending for lane in self._lanes.values()):
            self._logs.clear()

    # ---- accesses ---------------------------------------------------------------------------

    def scalar(self, item: Item, access: Access, write: bool) -> None:
        """Take an access of the scalar unit."""
        if self._stopped is not None:
            self._backlog.append((self.scalar, item, access, write))
            return
        lane = self._scalar
        lane.count += 1
        if access.buffer is None:
            self._access(access, write, lane, item)
            self._written.scalar(item, access, write=write)
            return
        self._line = self.fill(access.buffer, access.low)
        self._access(access, write, lane, item)
        if write and self._line is not None and self._line.written is None:
            self._line.written = (item, access)
        self._line = None

    def fill(self, buffer: GmBuffer, offset: int) -> CachedLine | None:
        """Take a use of a line of the data cache; return it."""
        if self._stopped is not None:
            self._backlog.append((self.fill, buffer, offset))
            return None
        key = (buffer.index, offset // self._line_bytes)
        line = self._lines.get(key)
        if line is None:
            low = key[1] * self._line_bytes
            high = min(low + self._line_bytes, buffer.nbytes)
            line = CachedLine(low, high, self._scalar.known, self._epochs[-1])
            self._lines[key] = line
        return line

    def clean(self, buffer: GmBuffer | None, offset: int) -> None:
        """Take the cleaning of a line of the data cache; of all of them where there is no buffer."""
        if self._stopped is not None:
            self._backlog.append((self.clean, buffer, offset))
            return
        self._scalar.count += 1
        if buffer is None:
            lines = list(self._lines.values())
            self._lines.clear()
        else:
            line = self._lines.pop((buffer.index, offset // self._line_bytes), None)
            lines = [] if line is None else [line]
        known = self._scalar.known.copy()
        known[_S] = self._scalar.count  # the scalar unit goes on when they are out
        self._scalar.known = known
        for line in lines:
            line.cleaned = self._scalar.count
            self._goes_back(line, line.cleaned)

    def close(self) -> None:
        """Take the end of the program, where lines go back by themselves."""
        if self._stopped is not None:
            self._backlog.append((self.close,))
            return
        for line in self._lines.values():
            self._goes_back(line, NEVER)

    def _goes_back(self, line: CachedLine, number: int) -> None:
        if line.written is not None:
            item, access = line.written
            line.whole = whole_line(access, line.low, line.high)
            known = self._scalar.known
            epoch = self._epochs[known[_EPOCH]]
            unit = self._program.unit
            self._uses.append((unit, line.whole, True, item, _S, number, epoch, known, line))

    def _access(self, access: Access, write: bool, lane: _Lane, item: Item) -> None:
        place: int = access.place
        pipe = lane.number
        logs = self._logs.get(place)
        if logs is None:
            logs = self._logs[place] = {}
        known = lane.known
        number = lane.count
        if place >= _GM and not item.step.polls:
            epoch = self._epochs[known[_EPOCH]]
            line = self._line
            knows: Any = known[_S_NUMBER] if line is None else known
            if pipe == _S_NUMBER and not write:
                # The scalar unit has what it reads before it issues anything further, a set for others too.
                number = known[READS] + 1
                lane.known = known.copy()
                lane.known[READS] = number
            self._uses.append(
                (self._unit, access, write, item, lane.pipe, number, epoch, knows, line)
            )
            number = lane.count
        low: int = access.low
        high: int = access.high
        sums = place == _L0C and lane.pipe is _M
        for other_pipe, log in logs.items():
            limit = known[other_pipe]
            if other_pipe == pipe:
                if pipe == _S_NUMBER:
                    continue
                if limit < number - SAME_PIPE_WINDOW - 1:
                    limit = number - SAME_PIPE_WINDOW - 1
            elif sums and lane.freed > limit:  # only FIX is beside M there
                limit = lane.freed
            if (log.last if write else log.last_write) <= limit:
                continue
            entries = log.entries
            behind = len(entries)
            while behind > 0:
                behind -= 1
                entry = entries[behind]
                if entry.number <= limit:
                    break
                if (
                    low < entry.high
                    and entry.low < high
                    and (write or entry.write)
                    and not entry.covered
                    and (other_pipe != pipe or entry.number != number)
                    and self._meets(entry, access, write, item, sums and other_pipe == pipe)
                    and entry.write
                    and entry.access.covers(access)
                ):
                    break  # what lies before it has been overwritten: its own hazard says so
        if pipe == _S_NUMBER and not write:
            return  # the scalar unit has the value before it issues anything further
        own = logs.get(pipe)
        if own is None:
            own = logs[pipe] = _Log()
        own.last = number
        if write:
            own.last_write = number
        own.entries.append(_Entry(access, write, number, item))
        if len(own.entries) > own.limit:
            self._prune(pipe, own)

    def _meets(self, entry: _Entry, access: Access, write: bool, item: Item, sums: bool) -> bool:
        """Report a hazard where two accesses of which one writes, and that nothing orders, share bytes."""
        other = entry.access
        if write and entry.write and _combine(entry.item, item):
            return False
        if sums and min(other.elements, access.elements) >= self._enough_cells:
            return False  # M comes to each fractal of L0C in turn: with enough of them the last sum is there by then
        if not other.overlaps(access):
            return False
        self._session.race(self._program, entry, item, access, write)
        entry.covered = write and access.covers(other)
        return True

    def variables(self) -> Variables | None:
        """Return what the kernel calls its tensors, where it stands at the item that is looked at.

        Behind a wait for another core items may be followed later, when others are at work; what messages say must not
        depend on that.
        """
        if self._waits or self._stopped is not None:
            return None
        return self._program.variables()

    def _prune(self, pipe: int, log: _Log) -> None:
        """Drop what every pipe knows to be complete."""
        floor = min(lane.known[pipe] for lane in self._lanes.values())
        log.entries = [entry for entry in log.entries if entry.number > floor]
        log.limit = max(_PRUNE_AT, 2 * len(log.entries))


def _combine(first: Item, second: Item) -> bool:
    """Return whether two stores are atomic ones of one kind, whose order does not matter."""
    kind = first.call.atomic
    return kind is not None and kind == second.call.atomic


def _moves_others(item: Item) -> bool:
    """Return whether pipes may wait for an item: a set, or the last user of unit flags."""
    return item.kind is _SET or (item.kind is _INSTRUCTION and item.call.unit_flag == FINISH)


def _join(known: list[int], other: list[int]) -> None:
    for place in range(len(other)):
        number = other[place]
        if number > known[place]:
            known[place] = number
