"""What cores know of each other: vector clocks over all cores, advanced by flags between cores.

It follows programs, not time: a set takes what its pipe knows along, the k-th wait for a flag learns what all senders
of the k-th round knew. What a core knows of others only changes at such a wait, so it is kept as a list of epochs;
inside a core, an epoch's number is one more entry of the pipes' clocks.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ascend_sim.mailbox import DIRECT
from ascend_sim.soft_flags import SOFT
from isa.types import Pipe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascend_sim.core import Core
    from ascend_sim.hazards import Order
    from ascend_sim.session import Session
    from ascend_sim.soft_flags import Key, SoftSet
    from ascend_sim.trace import Item

Row = tuple[int, ...]
"""How many accesses of each pipe of one unit are known to be complete, and how many of its waits for other cores."""
_WAITS = len(Pipe)


class Epoch:
    """What one core knows of others between two waits.

    `row` says it by unit (a block, or one core's part of it). What cores learned when all of them met is one table
    for all, `common`; `rows` is what has come since. `level` counts waits along the longest chain that leads here:
    what is ordered before something on another core has a lower level than that.
    """

    __slots__ = ("common", "level", "rows")

    def __init__(self, rows: dict[int, Row], level: int, common: dict[int, Row]) -> None:
        self.rows = rows
        self.level = level
        self.common = common

    def row(self, unit: int) -> Row | None:
        """Return what is known of a unit."""
        return self.rows.get(unit) or self.common.get(unit)

    def with_row(self, unit: int, row: Row) -> Epoch:
        """Return the same with another row for a unit."""
        return Epoch({**self.rows, unit: row}, self.level, self.common)

    def covers(self, other: Epoch) -> bool:
        """Return whether this is all that another epoch knows, and perhaps more."""
        for unit, row in {**other.common, **other.rows}.items():
            mine = self.row(unit)
            if mine is not row and (mine is None or _larger(mine, row) is not mine):
                return False
        return True


NOTHING = Epoch({}, 0, {})
"""What a core knows of others at the start."""


class _Token:
    """One core's set: what it knows, and where it comes from."""

    __slots__ = ("item", "knows", "source", "unit")

    def __init__(self, knows: Epoch, unit: int, item: Item) -> None:
        self.knows = knows
        self.unit = unit
        self.item = item
        self.source = (item.mode, item.core, item.pipe)

    def known_to(self, epoch: Epoch) -> bool:
        """Return whether what this set stands behind is known to be complete, so that it comes first."""
        mine, row = self.knows.row(self.unit), epoch.row(self.unit)
        assert mine is not None
        return row is not None and row[self.item.pipe] >= mine[self.item.pipe] > 0


class CoreOrder:
    """Sets and waits between the cores of one launch, as far as programs have been followed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sets: dict[tuple[int, int, int, object], dict[int, deque[_Token]]] = {}
        self._last: dict[
            tuple[int, int], list[_Token]
        ] = {}  # sets that arrived last, by receiver and flag
        self._arrived: dict[tuple[int, int], deque[Epoch]] = {}
        self._rounds: dict[Key, dict[int, deque[Epoch]]] = {}
        self._counts: dict[tuple[int, int], int] = {}  # sets by receiver and flag
        self._taken: dict[tuple[int, int], list[tuple[int, int]]] = {}  # waits likewise
        self._woken: list[Order] = []
        self._asleep: dict[int, list[Order]] = {}  # by what they wait for, of sets through GM
        self._waking = False

    def set(self, core: Core, item: Item, unit: int, row: Sequence[int], epoch: Epoch) -> None:
        """Take a set of a cross-core flag, with what its pipe knows of its own core and of others."""
        cross = self._session.cross
        mode, flag_id = item.mode, item.event_id
        knows = epoch.with_row(unit, tuple(row))
        if mode == DIRECT:
            self.deliver([self._session.cores[item.call.receiver]], flag_id, knows)
            return
        if mode == SOFT:
            self._set_soft(item.call, knows)
            return
        senders = cross.senders(core, mode)
        if mode == 0 and self._session.not_started():
            return
        token = _Token(knows, unit, item)
        tokens = [token]
        if len(senders) > 1:
            group = -1 if mode == 0 else core.cluster
            sets = self._sets.setdefault((mode, flag_id, group, core.kind), {})
            sets.setdefault(core.index, deque()).append(token)
            if any(not sets.get(sender.index) for sender in senders):
                return
            tokens = [sets[sender.index].popleft() for sender in senders]
            knows = join([one.knows for one in tokens])
        receivers = cross.receivers(core, mode)
        for receiver in receivers:
            self._look_at_counter(receiver, tokens, item, knows)
        self.deliver(receivers, flag_id, knows)

    def _look_at_counter(
        self, receiver: Core, tokens: list[_Token], item: Item, knows: Epoch
    ) -> None:
        """Report a set that may find the receiver's counter full, or that may pass for one from elsewhere."""
        key = (receiver.index, item.event_id)
        count = self._counts[key] = self._counts.get(key, 0) + 1
        cross = self._session.cross
        before = self._last.get(key)
        self._last[key] = tokens
        if count > cross.limit and not self._has_taken(key, count - cross.limit, knows):
            cross.overflow(receiver, item)
        if before is None or [one.source for one in before] == [one.source for one in tokens]:
            return
        in_order = all(one.known_to(knows) for one in before)
        if not in_order and not self._has_taken(key, count - 1, knows):
            cross.mixed(receiver, before[0].item, item)

    def _has_taken(self, key: tuple[int, int], number: int, knows: Epoch) -> bool:
        """Return whether a receiver is known to be through its `number`-th wait for a flag."""
        taken = self._taken.get(key, ())
        if number > len(taken):
            return False
        unit, position = taken[number - 1]
        row = knows.row(unit)
        return row is not None and row[_WAITS] >= position

    def waited(self, core: Core, item: Item, unit: int, number: int) -> None:
        """Take note of a wait that has been followed, as the `number`-th of its unit."""
        if item.mode != SOFT:
            self._taken.setdefault((core.index, item.event_id), []).append((unit, number))

    def deliver(self, receivers: Sequence[Core], key: int, knows: Epoch) -> None:
        """Let what came with a flag be learned by the next wait for it on each of some cores."""
        for receiver in receivers:
            self._arrived.setdefault((receiver.index, key), deque()).append(knows)
            program = receiver.program
            if program is not None and program.order is not None:
                self._woken.append(program.order)
        self._wake()

    def _wake(self) -> None:
        if not self._waking:  # else whoever is at it gets to them
            self._waking = True
            while self._woken:
                self._woken.pop().go_on()
            self._waking = False

    def _set_soft(self, soft: SoftSet, knows: Epoch) -> None:
        """Take a set through GM; whoever waits for what it completes learns it."""
        sets = self._rounds.setdefault(soft.group, {})
        sets.setdefault(soft.index, deque()).append(knows)
        if any(not sets.get(member) for member in range(soft.count)):
            return
        knows = join([sets[member].popleft() for member in range(soft.count)])
        for number in soft.numbers:
            self._arrived.setdefault((-1, number), deque()).append(knows)
            self._woken += self._asleep.pop(number, ())
        self._wake()

    def wait(self, order: Order, core: Core, item: Item) -> Epoch | None:
        """Return what a wait learns, None where its set has not been followed yet: then the order is woken later."""
        soft = item.mode == SOFT
        key = (-1, item.flag) if soft else (core.index, item.event_id)
        arrived = self._arrived.get(key)
        if arrived:
            return arrived.popleft()
        if soft:
            self._asleep.setdefault(item.flag, []).append(order)
        return None


_FEW = 8
"""Rows beyond the common table up to which epochs stay apart from it."""


def join(epochs: Sequence[Epoch]) -> Epoch:
    """Return what several cores know together."""
    first = epochs[0]
    level = max(epoch.level for epoch in epochs)
    if any(epoch.common is not first.common for epoch in epochs):
        for epoch in epochs:
            if all(epoch is other or epoch.covers(other) for other in epochs):
                return Epoch(epoch.rows, level, epoch.common)
        tables = [{**epoch.common, **epoch.rows} for epoch in epochs]
        return Epoch({}, level, _merged(tables))
    rows = _merged([epoch.rows for epoch in epochs])
    for unit in rows:
        base = first.common.get(unit)
        if base is not None:
            rows[unit] = _larger(rows[unit], base)
    if len(rows) > _FEW:
        return Epoch({}, level, {**first.common, **rows})
    return Epoch(rows, level, first.common)


def _merged(tables: Sequence[dict[int, Row]]) -> dict[int, Row]:
    rows = dict(tables[0])
    for table in tables[1:]:
        for unit, row in table.items():
            mine = rows.get(unit)
            if mine is not row:
                rows[unit] = row if mine is None else _larger(mine, row)
    return rows


def _larger(mine: Row, other: Row) -> Row:
    """Return the larger of each pair; one of the two rows itself where it has all of them."""
    both = tuple(map(max, mine, other))
    return mine if both == mine else other if both == other else both
