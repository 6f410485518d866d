"""A core's items as columns: what reports on millions of items compute with.

`columns_of` makes them of the items of a live run; a log that was read back from disk has them already.
Both hold the same numbers, so a report made of columns does not know where its log came from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ascend_sim.trace import Cause, CoreLog, Item, Log, MemoryCause, Stall, Step, Transfer

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

CAUSES = tuple(Cause)
SUB_CAUSES = (None, *MemoryCause)
CAUSE_CODE = {cause: code for code, cause in enumerate(CAUSES)}
SUB_CODE = {sub: code for code, sub in enumerate(SUB_CAUSES)}
"""Causes and sub-causes as numbers, in the order of their definition; no sub-cause is 0."""

TIMES = ("issue", "head", "start", "accept", "end")
COUNTS = ("bytes", "work")

ITEM = np.dtype(
    [(name, "<i8") for name in (*TIMES, *COUNTS)]
    + [
        ("index", "<i4"),  # program order on its core
        ("site", "<i4"),
        ("call", "<i4"),  # number of the bound instruction, -1: none
        ("partner_core", "<i4"),  # of a wait: where the set is that released it, -1: none
        ("partner", "<i4"),  # and its place in program order there
        ("name", "<u2"),
        ("phase", "<u2"),
        ("event_id", "<i2"),
        ("event", "i1"),  # -1: none
        ("mode", "i1"),
        ("pipe", "u1"),
        ("kind", "u1"),
        ("cause", "u1"),
        ("inserted", "u1"),
        ("latency", "<i4"),  # of a transfer: how long a byte is on its way
        ("began", "<i8"),  # of a transfer: when its bytes began to pass the port, -1: no transfer
        ("moved", "<i8"),  # and when all had passed it
    ]
)
"""One item as a record; the fields mean what those of `ascend_sim.trace.Item` do."""

PART = np.dtype([("item", "<i4"), ("cause", "u1"), ("sub", "u1"), ("end", "<i8")])
"""What an item's cycles were spent on, in order; `item` is the item's row."""

STALL = np.dtype(
    [("start", "<i8"), ("end", "<i8"), ("site", "<i4"), ("name", "<u2"), ("cause", "u1")]
)
"""A stretch in which the scalar unit stood still; `name` says what for."""


@dataclass(slots=True)
class Columns:
    """The items of one core in program order, their parts and the scalar unit's stalls."""

    items: NDArray[Any]
    parts: NDArray[Any]
    stalls: NDArray[Any]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return one column of the items."""
        column: NDArray[Any] = self.items[name]
        return column

    def row(self, index: int) -> int:
        """Return the row of the item with this place in program order; -1 where it is not in the log."""
        indices = self.items["index"]
        if 0 <= index < len(indices) and indices[index] == index:
            return index
        row = int(np.searchsorted(indices, index))
        return row if row < len(indices) and indices[row] == index else -1


class Numbering(Protocol):
    """Gives numbers to things."""

    def of(self, thing: Any) -> int:
        """Return the number of a thing; None has -1."""
        ...


class Numbers:
    """Numbers for things that many items share, in order of appearance."""

    def __init__(self, key: Callable[[Any], Any] = lambda thing: thing) -> None:
        self.things: list[Any] = []
        self._key = key
        self._known: dict[Any, int] = {}

    def of(self, thing: Any) -> int:
        """Return the number of a thing; None has -1."""
        if thing is None:
            return -1
        key = self._key(thing)
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self.things)
            self.things.append(thing)
        return number


def numbers_of(log: Log) -> tuple[Numbers, Numbers]:
    """Return what numbers the names and the bound instructions of a log."""
    stored = getattr(log, "numbers", None)
    return stored if stored is not None else (Numbers(), Numbers(id))


def columns_of(core: CoreLog, names: Numbers, calls: Numbers) -> Columns:
    """Return the columns of a core; `names` and `calls` number what the cores of a log share."""
    stored = getattr(core, "columns", None)
    if stored is not None:
        return stored()  # type: ignore[no-any-return]
    items = core.items
    return Columns(item_rows(items, names, calls), part_rows(items), stall_rows(core.stalls, names))


def item_rows(items: Sequence[Item], names: Numbering, calls: Numbering) -> NDArray[Any]:
    """Return items as records."""
    rows = np.zeros(len(items), ITEM)
    if not items:
        return rows
    # Items share their steps, and a run has items by the million: what is a step's is looked up once.
    ids = [id(step) for step in map(_STEP_OF, items)]
    steps = dict(zip(ids, map(_STEP_OF, items), strict=True))
    place = dict(zip(steps, range(len(steps)), strict=True))
    own = np.fromiter(map(place.__getitem__, ids), np.int64, len(ids))
    shared = _step_rows(list(steps.values()), names)
    for field in (*_STEP, "name", "event", "cause"):
        rows[field] = shared[field][own]
    table = np.array(list(map(_NUMBERS_OF, items)), np.int64)
    for column, field in enumerate(_NUMBERS):
        rows[field] = table[:, column]
    rows["call"] = np.fromiter(map(calls.of, map(_CALL_OF, items)), np.int64, len(items))
    rows["partner"] = rows["partner_core"] = rows["began"] = -1
    released = [(row, item.partner) for row, item in enumerate(items) if item.partner is not None]
    if released:
        where = [row for row, _ in released]
        rows["partner_core"][where] = [partner.core for _, partner in released]
        rows["partner"][where] = [partner.index for _, partner in released]
    moved = [
        (row, spent) for row, spent in enumerate(map(_SPENT_OF, items)) if type(spent) is Transfer
    ]
    if moved:
        where = [row for row, _ in moved]
        for field, name in (("began", "began"), ("latency", "latency"), ("moved", "passed")):
            rows[field][where] = [getattr(spent, name) for _, spent in moved]
    return rows


def _step_rows(steps: Sequence[Step], names: Numbering) -> NDArray[Any]:
    """Return what of an item's record is its step's, for some steps."""
    rows = np.zeros(len(steps), ITEM)
    table = np.array([_STEP_NUMBERS(step) for step in steps], np.int64)
    for column, field in enumerate(_STEP):
        rows[field] = table[:, column]
    rows["name"] = [names.of(step.name) for step in steps]
    rows["event"] = [-1 if step.event is None else step.event for step in steps]
    rows["cause"] = [CAUSE_CODE[step.cause] for step in steps]
    return rows


_NUMBERS = (*TIMES, "index")
_STEP = (*COUNTS, "site", "phase", "event_id", "mode", "pipe", "kind", "inserted")
_NUMBERS_OF, _STEP_NUMBERS = attrgetter(*_NUMBERS), attrgetter(*_STEP)
_STEP_OF, _CALL_OF, _SPENT_OF = (attrgetter(name) for name in ("step", "call", "spent"))


def part_rows(items: Sequence[Item]) -> NDArray[Any]:
    """Return the parts of all items that have any, as records."""
    rows = []
    for row, item in enumerate(items):
        if item.spent is not None:
            for cause, sub, end in item.parts or ():
                rows.append((row, CAUSE_CODE[cause], SUB_CODE[sub], end))
    return np.array(rows, PART)


def stall_rows(stalls: Sequence[Stall], names: Numbers) -> NDArray[Any]:
    """Return the scalar unit's stalls as records."""
    return np.array(
        [
            (stall.start, stall.end, stall.site, names.of(stall.detail), CAUSE_CODE[stall.cause])
            for stall in stalls
        ],
        STALL,
    )


def rows_of(columns: Columns, indices: Ints) -> Ints:
    """Return the rows of the items with these places in program order; -1 where one is not in the log."""
    known = columns["index"]
    place = np.minimum(np.searchsorted(known, indices), max(len(known) - 1, 0))
    return np.where(known[place] == indices, place, -1) if len(known) else indices * 0 - 1


def trips(columns: Columns) -> Ints:
    """Return for each item how often its instruction was issued at its place before: the loop trip."""
    key = columns["site"].astype(np.int64) * (1 << 16) + columns["name"]
    order = np.argsort(key, kind="stable")
    first = np.ones(len(key), bool)
    first[1:] = key[order][1:] != key[order][:-1]
    begins = np.flatnonzero(first)
    trip = np.empty(len(key), np.int64)
    trip[order] = np.arange(len(key)) - np.repeat(begins, np.diff([*begins, len(key)]))
    return trip
