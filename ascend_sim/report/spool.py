"""The log of a long run on its way to disk: what the machine no longer needs leaves memory while the run goes on.

A core that has more than its share of items hands its oldest over. They are written as the columns that reports
compute with, in pieces, to a nameless temporary file (in `TMPDIR`), which is gone when the run is. Afterwards the
log reads as one that was never in pieces: names and instructions are numbered anew in the order of a log in memory,
so that both leave equal files.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ascend_sim.report.calls import direction, operands
from ascend_sim.report.columns import (
    ITEM,
    PART,
    STALL,
    Ints,
    Numbers,
    item_rows,
    part_rows,
    stall_rows,
)
from ascend_sim.report.shelf import Temporary
from ascend_sim.report.store import OPERAND, TEXTS, StoredLog
from ascend_sim.report.traffic import GmBytes
from ascend_sim.trace import CoreLog, Item, Kind, Log
from isa.types import Pipe

ITEMS = 1 << 20
"""How many items of a run stay in memory, over all cores."""
_LEAST = 2048
_FEW = 512
_DTYPES = {"items": ITEM, "parts": PART, "stalls": STALL}

Taker = Callable[[CoreLog, int, Sequence[Item]], None]
"""Sees the items of a core that leave, and the place of the first of them."""


class _Piece(NamedTuple):
    """Where a piece stands in the file, and how many records (or texts) it has."""

    offset: int
    size: int
    records: int


class _File:
    """Pieces of bytes, packed."""

    def __init__(self) -> None:
        self._file = Temporary("the log")

    def append(self, content: bytes, count: int) -> _Piece:
        packed = zlib.compress(content, 1)
        return _Piece(self._file.append(packed), len(packed), count)

    def read(self, piece: _Piece) -> bytes:
        return zlib.decompress(self._file.read(piece.offset, piece.size))


class _Core:
    """What of one core is on disk, and in which order names and instructions came up in it."""

    def __init__(self) -> None:
        self.pieces: dict[str, list[_Piece]] = {name: [] for name in _DTYPES}
        self.names: dict[str, dict[int, None]] = {"items": {}, "stalls": {}}
        self.calls: list[Ints] = []


class _Calls:
    """Numbers for bound instructions as they come. Those that many items share are kept, the rest is forgotten."""

    def __init__(self) -> None:
        self._kept: list[Any] = []
        self._known: dict[int, int] = {}
        self.count = 0
        self.fresh: list[Any] = []

    def of(self, thing: Any) -> int:
        """Return the number of an instruction; None has -1."""
        if thing is None:
            return -1
        number = self._known.get(id(thing))
        if number is None:
            number = self._known[id(thing)] = self.count
            self.count += 1
            self.fresh.append(thing)
        return number

    def take(self) -> list[Any]:
        """Return the instructions that are new since the last time. A move at an address of its own comes once only."""
        fresh, self.fresh = self.fresh, []
        for call in fresh:
            if getattr(call, "template", None) is call:
                self._kept.append(call)
            else:
                del self._known[id(call)]
        return fresh


class Spool:
    """Takes items of a run's cores. `taker` sees them first; `items` is how many may stay in memory."""

    def __init__(self, taker: Taker, items: int | None = None) -> None:
        self._taker = taker
        self._items = ITEMS if items is None else items
        self._file: _File | None = None
        self._cores: dict[str, _Core] = {}
        self._names = Numbers()
        self._calls = _Calls()
        self._gm = GmBytes()
        self._directions: list[NDArray[np.uint8]] = []
        self._texts: list[_Piece] = []
        self._operands: list[_Piece] = []
        self._tensors = Numbers()

    def share(self, cores: int) -> int:
        """Return how many items each of so many cores may keep."""
        return max(self._items // max(cores, 1), min(_LEAST, self._items))

    @property
    def used(self) -> bool:
        """Whether anything has left memory."""
        return self._file is not None

    # ---- while the run goes on ----------------------------------------------------------------

    def spill(self, core: CoreLog, now: int) -> None:
        """Take the oldest items of a core, as far as nothing will change them after cycle `now`."""
        items, count = core.items, 0
        for item in items:
            if not 0 <= item.end <= now or item.accept > now:
                break
            count += 1
        if count >= min(_FEW, core.limit):
            self._take(core, count, [stall for stall in core.stalls if stall.end <= now])

    def _take(self, core: CoreLog, count: int, stalls: list[Any]) -> None:
        file = self._file = self._file or _File()
        known = self._cores.get(core.name)
        if known is None:
            known = self._cores[core.name] = _Core()
        items = core.items[:count]
        self._taker(core, core.spilled, items)
        rows = item_rows(items, self._names, self._calls)
        known.calls.append(_in_order(rows["call"]))
        known.names["items"] |= dict.fromkeys(_in_order(rows["name"]).tolist())
        parts = part_rows(items)
        parts["item"] += core.spilled
        stopped = stall_rows(stalls, self._names)
        known.names["stalls"] |= dict.fromkeys(_in_order(stopped["name"]).tolist())
        for name, array in (("items", rows), ("parts", parts), ("stalls", stopped)):
            if len(array):
                known.pieces[name].append(file.append(array.tobytes(), len(array)))
        self._write_calls(file)
        for item in items:
            item.spent = item.partner = None  # who still has the item need not keep these
            if item.kind is Kind.WAIT_FLAG and item.event is None:
                core.between.append(item)
        del core.items[:count]
        del core.stalls[: len(stalls)]
        core.spilled += count

    def _write_calls(self, file: _File) -> None:
        first = self._calls.count - len(self._calls.fresh)
        calls = self._calls.take()
        if not calls:
            return
        directions = np.fromiter((direction(call) for call in calls), np.uint8, len(calls))
        self._directions.append(directions)
        text = "\n".join(call.detail().replace("\n", " ") for call in calls)
        self._texts.append(file.append(text.encode(), len(calls)))
        rows = [
            (
                number, one.low, one.high, self._tensors.of(one.name), int(one.space), int(one.write),
            )
            for number, call in enumerate(calls, first)
            for one in operands(call)
        ]  # fmt: skip
        self._operands.append(file.append(np.array(rows, OPERAND).tobytes(), len(rows)))
        for call in calls:
            if getattr(call, "pipe", Pipe.S) is not Pipe.S:
                self._gm.add(call)

    # ---- when it is over ----------------------------------------------------------------------

    def finish(self, log: Log) -> Log:
        """Return the log; it reads what is on disk where anything is, and then nothing stays in memory."""
        if self._file is None:
            return log
        for core in log.cores:
            self._take(core, len(core.items), list(core.stalls))
        names = _first_come([
            np.array([*order["items"], *order["stalls"]], np.int64)
            for order in (self._cores[core.name].names for core in log.cores)
        ])  # fmt: skip
        calls = _first_come([one for core in log.cores for one in self._cores[core.name].calls])
        read = _Reader(
            self, self._file, [self._cores[core.name] for core in log.cores], names, calls
        )
        meta = {
            "chip_name": log.chip_name,
            "clock_mhz": log.clock_mhz,
            "cycles": log.cycles,
            "launch_cycles": log.launch_cycles,
            "phases": log.phases,
            "sites": [site.frames for site in log.sites],
            "distinct_bytes": self._gm.distinct(),
            "names": [self._names.things[number] for number in names.tolist()],
            "cores": [
                {
                    "name": core.name, "kind": core.kind.value, "start": core.start, "end": core.end,
                    "blocks": core.blocks,
                }
                for core in log.cores
            ],
        }  # fmt: skip
        return StoredLog(read, meta)


def _in_order(numbers: NDArray[Any]) -> Ints:
    """Return each number once, in the order of first appearance; -1 is none."""
    found, first = np.unique(numbers.astype(np.int64), return_index=True)
    ordered: Ints = found[np.argsort(first)]
    return ordered[ordered >= 0]


def _first_come(orders: Sequence[Ints]) -> Ints:
    """Return all numbers in the order in which they first appear in several lists."""
    return _in_order(np.concatenate([np.empty(0, np.int64), *orders]))


def _places(order: Ints, count: int) -> Ints:
    """Return for each old number its new one; the last is that of -1."""
    places = np.full(count + 1, -1, np.int64)
    places[order] = np.arange(len(order))
    return places


class _Reader:
    """Has what a file of events has (see `ascend_sim.report.store`), put together from the pieces."""

    def __init__(
        self, spool: Spool, file: _File, cores: Sequence[_Core], names: Ints, calls: Ints
    ) -> None:
        self._file, self._cores = file, cores
        self._calls = calls
        self._new = {
            "call": _places(calls, spool._calls.count),
            "name": _places(names, len(spool._names.things)),
        }
        self._texts, self._operands, self._tensors = spool._texts, spool._operands, spool._tensors
        self._directions = spool._directions
        self._begins = np.cumsum([0, *(piece.records for piece in spool._texts)])
        self._lines = lru_cache(8)(self._read_lines)

    def array(self, name: str) -> NDArray[Any]:
        """Return `core3/items` and the like, `calls/directions` or `calls/operands`."""
        if name == "calls/directions":
            joined: NDArray[Any] = np.concatenate([np.empty(0, np.uint8), *self._directions])
            return joined[self._calls]
        if name == "calls/operands":
            rows = self._joined(self._operands, OPERAND)
            rows["call"] = self._new["call"][rows["call"]]
            return rows[np.argsort(rows["call"], kind="stable")]
        core, _, what = name.partition("/")
        rows = self._joined(self._cores[int(core.removeprefix("core"))].pieces[what], _DTYPES[what])
        for field in self._new.keys() & set(rows.dtype.names or ()):
            rows[field] = self._new[field][rows[field]]
        return rows

    def length(self, name: str) -> int:
        """Return how many records an array of a core has."""
        core, _, what = name.partition("/")
        pieces = self._cores[int(core.removeprefix("core"))].pieces[what]
        return sum(piece.records for piece in pieces)

    def _joined(self, pieces: Sequence[_Piece], dtype: np.dtype[Any]) -> NDArray[Any]:
        rows = np.empty(sum(piece.records for piece in pieces), dtype)
        begin = 0
        for piece in pieces:
            rows[begin : begin + piece.records] = np.frombuffer(self._file.read(piece), dtype)
            begin += piece.records
        return rows

    def read(self, name: str) -> str:
        """Return `calls/tensors.json` or a group of texts, `calls/texts3.txt`."""
        if name == "calls/tensors.json":
            return json.dumps(self._tensors.things, ensure_ascii=False)
        first = TEXTS * int(name.removeprefix("calls/texts").removesuffix(".txt"))
        return "\n".join(self._group(first))

    def _group(self, first: int) -> Iterator[str]:
        for number in self._calls[first : first + TEXTS].tolist():
            piece = int(np.searchsorted(self._begins, number, "right")) - 1
            yield self._lines(piece)[number - int(self._begins[piece])]

    def _read_lines(self, piece: int) -> list[str]:
        return self._file.read(self._texts[piece]).decode().split("\n")
