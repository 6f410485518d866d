"""Synchronisation of vector cores through words of GM: soft sync_all, ib_set and ib_wait, notify and wait.

On the hardware a core stores a word and others poll it. Here the word is stored as well, but whoever waits for it
sleeps until it is there and one more poll would have found it, so that a wait that nobody ends is known as such.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from ascend_sim.cost import whole
from ascend_sim.pipes import Flag

if TYPE_CHECKING:
    from ascend_sim.core import Core
    from ascend_sim.session import Session
    from ascend_sim.trace import Item

SOFT = 4
"""`Item.mode` of a set and of a wait through GM; `Item.flag` of the wait numbers what it waits for."""
_FIRST = 1 << 20

Key = tuple[Any, ...]


class SoftSet:
    """What a set through GM says. It stands in `Item.call` of the set.

    A round of `group` is complete when `count` members have set, of which this is number `index`; each of them can
    wait for it then, under (group, index). `numbers` are those of these waits.
    """

    __slots__ = ("bytes", "count", "group", "index", "numbers", "text", "work")

    def __init__(self, group: Key, index: int, count: int, text: str) -> None:
        self.group = group
        self.index = index
        self.count = count
        self.text = text
        self.bytes = self.work = 0
        self.numbers: tuple[int, ...] = ()

    def detail(self) -> str:
        """Describe it for traces."""
        return self.text


class SoftFlags:
    """All words of one launch through which cores synchronise."""

    def __init__(self, session: Session) -> None:
        chip = session.chip
        self._session = session
        self._poll = whole(chip.gm.latency_l2_read)
        self._all = chip.cycles(chip.sync.sync_all_soft_us)
        self._numbers: dict[Key, int] = {}
        self._names: list[str] = []
        self._flags: dict[int, Flag] = {}
        self._sleeping: dict[int, list[Core]] = {}
        self._rounds: dict[Key, dict[int, deque[tuple[int, Item]]]] = {}
        self._counts: dict[Key, int] = {}
        self.used: dict[Key, int] = {}
        """How often each word has been set, as programs have been followed."""

    def number(self, key: Key, name: str = "") -> int:
        """Return the number of what a wait is for; `name` describes it for messages."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = _FIRST + len(self._names)
            self._names.append(name)
        elif name and not self._names[number - _FIRST]:
            self._names[number - _FIRST] = name
        return number

    def flag(self, number: int) -> Flag:
        """Return the tokens of what a wait is for."""
        return self._flags.setdefault(number, Flag())

    def sleep(self, number: int, core: Core) -> None:
        """Wake a core when something has come for a wait."""
        self._sleeping.setdefault(number, []).append(core)

    def fire(self, item: Item, time: int) -> None:
        """Take a set whose word is in GM at a cycle."""
        call: SoftSet = item.call
        sets = self._rounds.setdefault(call.group, {})
        self._counts[call.group] = call.count
        sets.setdefault(call.index, deque()).append((time, item))
        if any(not sets.get(member) for member in range(call.count)):
            return
        arrivals = [sets[member].popleft() for member in range(call.count)]
        last, by = max(arrivals, key=lambda arrival: (arrival[0], arrival[1].core))
        visible = last + (self._all if call.group[0] == "sync_all" else self._poll)
        for number in call.numbers:
            self.flag(number).tokens.append((visible, by))
            for core in self._sleeping.pop(number, ()):
                core.wake_scalar()
                core.pump()

    def missing(self, number: int) -> tuple[str, list[int]]:
        """Say what a wait is for and which blocks have not come; return these too."""
        if number - _FIRST >= len(self._names):  # a replay does not know what it was for
            return "a word in GM: nobody sets it any more", []
        name = self._names[number - _FIRST]
        (group, _) = next(key for key, known in self._numbers.items() if known == number)
        count = self._counts.get(group, 1)
        if count == 1:
            return f"{name}: nobody sets it any more", []
        sets = self._rounds.get(group, {})
        behind = [member for member in range(count) if not sets.get(member)]
        shown = ", ".join(str(member) for member in behind[:8])
        more = f" and {len(behind) - 8} more" if len(behind) > 8 else ""
        come = count - len(behind)
        return f"{name}: {come} of {count} blocks have come, missing: block {shown}{more}", behind
