"""`events.npz`: the whole log of a run on disk, written and read core by core and piece by piece.

A zip of numpy arrays (`numpy.load` opens it) and one JSON text, `meta.json`. For each core `items`, `parts`
and `stalls`, in the record types of `ascend_sim.report.columns`; for all of them the texts and operands of
the bound instructions. What is read back looks like the log of a live run: reports cannot tell them apart.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast, overload

import numpy as np
from numpy.typing import NDArray

from ascend_sim.errors import ConfigError
from ascend_sim.report.calls import directions, operands
from ascend_sim.report.columns import CAUSES, ITEM, PART, STALL, SUB_CAUSES, Columns, Numbers
from ascend_sim.report.ledger import Ledger
from ascend_sim.report.names import short_path
from ascend_sim.report.traffic import distinct_bytes
from ascend_sim.trace import Cause, CoreLog, Item, Kind, Log, MemoryCause, Site, Stall, Step
from isa.types import CoreKind, HardEvent, Pipe, Space

FORMAT = 1
WHOLE = 1 << 20
"""A log of no more items stays in memory, once it was read."""
_PIECE = 1 << 18
TEXTS = 1 << 12
_THEN = (1980, 1, 1, 0, 0, 0)  # equal runs leave equal bytes

OPERAND = np.dtype(
    [
        ("call", "<i4"),
        ("low", "<i8"),
        ("high", "<i8"),
        ("name", "<i4"),
        ("space", "u1"),
        ("write", "u1"),
    ]
)


class EventsWriter:
    """Writes the file member by member; nothing is kept but what the cores share."""

    def __init__(self, stream: BinaryIO) -> None:
        self._zip = zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1)

    def array(self, name: str, array: NDArray[Any]) -> None:
        """Write an array, in pieces."""
        info = zipfile.ZipInfo(f"{name}.npy", _THEN)
        info.compress_type = zipfile.ZIP_DEFLATED
        with self._zip.open(info, "w", force_zip64=True) as member:
            header = io.BytesIO()
            np.lib.format.write_array_header_2_0(
                header, np.lib.format.header_data_from_array_1_0(array)
            )
            member.write(header.getvalue())
            for first in range(0, len(array), _PIECE):
                member.write(array[first : first + _PIECE].tobytes())

    def text(self, name: str, text: str) -> None:
        """Write a text."""
        info = zipfile.ZipInfo(name, _THEN)
        info.compress_type = zipfile.ZIP_DEFLATED
        self._zip.writestr(info, text)

    def close(self) -> None:
        """Finish the file."""
        self._zip.close()


def write_events(ledger: Ledger, about: Mapping[str, Any], stream: BinaryIO) -> None:
    """Write a run's log; `about` is what else there is to know of the run, as plain JSON."""
    writer = EventsWriter(stream)
    for number, entry in enumerate(ledger):
        columns = entry.columns
        writer.array(f"core{number}/items", columns.items)
        writer.array(f"core{number}/parts", columns.parts)
        writer.array(f"core{number}/stalls", columns.stalls)
    _write_calls(ledger.calls.things, writer)
    writer.text("meta.json", json.dumps(_meta(ledger, about), ensure_ascii=False))
    writer.close()


def _meta(ledger: Ledger, about: Mapping[str, Any]) -> dict[str, Any]:
    log = ledger.log
    return {
        "format": FORMAT,
        "chip_name": log.chip_name,
        "clock_mhz": log.clock_mhz,
        "cycles": log.cycles,
        "launch_cycles": log.launch_cycles,
        "phases": log.phases,
        "sites": [
            [[short_path(file), line, name] for file, line, name in site.frames]
            for site in log.sites
        ],
        "cores": [
            {
                "name": core.name, "kind": core.kind.value, "start": core.start, "end": core.end,
                "blocks": core.blocks,
            }
            for core in log.cores
        ],
        "names": list(ledger.names.things),
        "distinct_bytes": list(distinct_bytes(log)),
        **about,
    }  # fmt: skip


def _write_calls(calls: Sequence[Any], writer: EventsWriter) -> None:
    """Write the operands of all bound instructions, and their texts in groups."""
    writer.array("calls/directions", directions(calls))
    if isinstance(calls, StoredCalls):  # as they were read
        calls.write_again(writer)
        return
    tensors = Numbers()
    rows: list[tuple[int, int, int, int, int, int]] = []
    pieces: list[NDArray[Any]] = []
    for first in range(0, len(calls), TEXTS):
        texts = []
        for number in range(first, min(first + TEXTS, len(calls))):
            call = calls[number]
            texts.append(call.detail().replace("\n", " "))
            rows += [
                (number, one.low, one.high, tensors.of(one.name), int(one.space), int(one.write))
                for one in operands(call)
            ]
        writer.text(f"calls/texts{first // TEXTS}.txt", "\n".join(texts))
        pieces.append(np.array(rows, OPERAND))
        rows = []
    writer.array("calls/operands", np.concatenate(pieces) if pieces else np.empty(0, OPERAND))
    writer.text("calls/tensors.json", json.dumps(tensors.things, ensure_ascii=False))


# ---- reading ------------------------------------------------------------------------------------


def read_events(path: Path) -> tuple[Log, dict[str, Any]]:
    """Return the log in a file, and what else was written about the run.

    Items are read when they are asked for, a core at a time. Raises `ConfigError` for a file that is not there,
    is no log of a run, or is one of another version.
    """
    try:
        file = _File(path)
        meta = json.loads(file.read("meta.json"))
        version = meta["format"]
    except FileNotFoundError:
        raise ConfigError(
            f"{path} is not there: a run folder has the log of its run in events.npz"
        ) from None
    except (OSError, zipfile.BadZipFile, KeyError, ValueError) as error:
        raise ConfigError(f"{path} is not the log of a run: {error}") from error
    if version != FORMAT:
        raise ConfigError(
            f"{path} is a log of version {version}, this simulator reads version {FORMAT}: run again"
        )
    try:
        return StoredLog(file, meta), meta
    except (KeyError, ValueError) as error:
        raise ConfigError(f"{path} is not the whole log of a run: {error}") from error


class Source(Protocol):
    """Where a log on disk is read from."""

    def read(self, name: str) -> str:
        """Return a text."""
        ...

    def array(self, name: str) -> NDArray[Any]:
        """Return an array."""
        ...

    def length(self, name: str) -> int:
        """Return how many records an array of a core has."""
        ...


class _File:
    def __init__(self, path: Path) -> None:
        self._zip = zipfile.ZipFile(path)

    def read(self, name: str) -> str:
        return self._zip.read(name).decode()

    def array(self, name: str) -> NDArray[Any]:
        with self._zip.open(f"{name}.npy") as member:
            array: NDArray[Any] = np.lib.format.read_array(member)
        return array

    def length(self, name: str) -> int:
        with self._zip.open(f"{name}.npy") as member:
            np.lib.format.read_magic(member)
            ((count,), _, _) = np.lib.format.read_array_header_2_0(member)
        return int(count)


class StoredLog(Log):
    """A log whose items are on disk. What was read of one that is `long` is not kept."""

    def __init__(self, file: Source, meta: Mapping[str, Any]) -> None:
        super().__init__(meta["chip_name"], meta["clock_mhz"])
        self.sites = [
            Site(tuple((name, line, function) for name, line, function in frames))
            for frames in meta["sites"]
        ]
        self.phases = list(meta["phases"])
        self.cycles, self.launch_cycles = meta["cycles"], meta["launch_cycles"]
        self.distinct_bytes = tuple(meta["distinct_bytes"])
        names = Numbers()
        for name in meta["names"]:
            names.of(name)
        calls = StoredCalls(file)
        counts = [file.length(f"core{number}/items") for number in range(len(meta["cores"]))]
        self.long = sum(counts) > WHOLE
        self.items_of = lru_cache(1 if self.long else 3)(
            lambda number: _make_items(cast("StoredCore", self.cores[number]))
        )
        self.columns_of = lru_cache(2 if self.long else None)(lambda number: _read(file, number))
        numbered = Numbers(id)
        numbered.things = cast("list[Any]", calls)
        self.numbers = names, numbered
        self.cores = cast(
            "list[CoreLog]",
            [
                StoredCore(file, self, number, about, names.things, calls)
                for number, about in enumerate(meta["cores"])
            ],
        )

    __slots__ = ("columns_of", "distinct_bytes", "items_of", "long", "numbers")


def _read(file: Source, number: int) -> Columns:
    arrays = [file.array(f"core{number}/{name}") for name in ("items", "parts", "stalls")]
    for array, dtype in zip(arrays, (ITEM, PART, STALL), strict=True):
        if array.dtype != dtype:
            raise ConfigError("the log of the run was written by another version: run again")
    return Columns(*arrays)


class StoredCore:
    """A core whose items are on disk; has what `CoreLog` has."""

    def __init__(
        self, file: Source, log: StoredLog, number: int, about: Mapping[str, Any], names: list[str],
        calls: StoredCalls,
    ) -> None:  # fmt: skip
        self._log, self.number = log, number
        self.names, self.calls = names, calls
        self.name, self.kind = about["name"], CoreKind(about["kind"])
        self.start, self.end = about["start"], about["end"]
        self.blocks = [(block, start, end) for block, start, end in about["blocks"]]
        self.items: Sequence[Item] = StoredItems(self)
        self.columns: Callable[[], Columns] = lambda: log.columns_of(number)
        self.made: Callable[[], list[Item]] = lambda: log.items_of(number)

    @property
    def stalls(self) -> list[Stall]:
        """When the scalar unit stood still."""
        return [
            Stall(start, end, CAUSES[cause], site, self.names[name])
            for start, end, site, name, cause in self.columns().stalls.tolist()
        ]

    def of(self, number: int) -> StoredCore:
        """Return another core of the log."""
        return cast("StoredCore", self._log.cores[number])


class StoredItems(Sequence[Item]):
    """The items of a core. They are made when one is asked for; the log keeps those of the last few cores."""

    def __init__(self, core: StoredCore) -> None:
        self._core = core

    def __len__(self) -> int:
        return len(self._core.columns())

    @overload
    def __getitem__(self, row: int) -> Item: ...
    @overload
    def __getitem__(self, row: slice) -> list[Item]: ...
    def __getitem__(self, row: int | slice) -> Item | list[Item]:
        return self._core.made()[row]

    def __iter__(self) -> Iterator[Item]:
        return iter(self._core.made())


def _make_items(core: StoredCore) -> list[Item]:
    columns, names, calls = core.columns(), core.names, core.calls
    items: list[Item] = []
    rows = columns.items[list(_FIELDS)].tolist()
    for index, pipe, kind, name, site, inserted, cause, event, call, *copied in rows:
        step = Step(_PIPES[pipe], _KINDS[kind], names[name], site)
        item = Item(step, core.number, index)
        _copy(item, copied)
        step.inserted = bool(inserted)
        step.cause = CAUSES[cause]
        if event >= 0:
            step.event = HardEvent(event)
        if call >= 0:
            item.call = calls[call]
        items.append(item)
    _join_parts(columns, items)
    for row in np.flatnonzero(columns["partner_core"] >= 0).tolist():
        other, index = core.of(int(columns["partner_core"][row])), int(columns["partner"][row])
        partner = other.columns().row(index)
        if partner >= 0:
            items[row].partner = items[partner] if other is core else _make_set(other, partner)
    return items


def _join_parts(columns: Columns, items: list[Item]) -> None:
    parts: dict[int, list[tuple[Cause, MemoryCause | None, int]]] = {}
    for row, cause, sub, end in columns.parts.tolist():
        parts.setdefault(row, []).append((CAUSES[cause], SUB_CAUSES[sub], end))
    for row, own in parts.items():
        items[row].parts = tuple(own)


def _make_set(core: StoredCore, row: int) -> Item:
    """Make a set on another core by itself."""
    record = core.columns().items[row]
    pipe, kind, name = _PIPES[record["pipe"]], _KINDS[record["kind"]], core.names[record["name"]]
    item = Item(Step(pipe, kind, name, int(record["site"])), core.number, int(record["index"]))
    _copy(item, [int(record[name]) for name in _COPIED])
    return item


def _copy(item: Item, values: list[int]) -> None:
    """Take up the fields `_COPIED` of an item and its step."""
    step = item.step
    (
        step.phase, item.issue, item.head, item.start, item.accept, item.end, step.bytes, step.work, step.event_id,
        step.mode,
    ) = values  # fmt: skip


_PIPES, _KINDS = tuple(Pipe), tuple(Kind)
_COPIED = (
    "phase", "issue", "head", "start", "accept", "end", "bytes", "work", "event_id", "mode",
)  # fmt: skip
_FIELDS = (
    "index", "pipe", "kind", "name", "site", "inserted", "cause", "event", "call", *_COPIED,
)  # fmt: skip


class StoredAccess:
    """An operand that was read back: its space, its bytes, its name."""

    __slots__ = ("high", "low", "name", "space")

    def __init__(self, space: Space, low: int, high: int, name: str) -> None:
        self.space, self.low, self.high, self.name = space, low, high, name


class StoredCall:
    """A bound instruction that was read back: what reports ask of one."""

    __slots__ = ("_calls", "_number")

    def __init__(self, calls: StoredCalls, number: int) -> None:
        self._calls, self._number = calls, number

    def detail(self) -> str:
        """Describe the operands."""
        return self._calls.text(self._number)

    @property
    def reads(self) -> list[StoredAccess]:
        """What it reads."""
        return self._calls.accesses(self._number, write=False)

    @property
    def writes(self) -> list[StoredAccess]:
        """What it writes."""
        return self._calls.accesses(self._number, write=True)


class StoredCalls(Sequence[StoredCall]):
    """The bound instructions of a log; one object each, so that their texts are worked out once."""

    def __init__(self, file: Source) -> None:
        self._file = file
        self.directions = file.array("calls/directions")
        self._known: dict[int, StoredCall] = {}
        self._texts = lru_cache(64)(self._read_texts)
        self._operands = lru_cache(1)(self._read_operands)

    def __len__(self) -> int:
        return len(self.directions)

    @overload
    def __getitem__(self, number: int) -> StoredCall: ...
    @overload
    def __getitem__(self, number: slice) -> list[StoredCall]: ...
    def __getitem__(self, number: int | slice) -> StoredCall | list[StoredCall]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        if not 0 <= number < len(self):
            raise IndexError(number)
        call = self._known.get(number)
        if call is None:
            call = self._known[number] = StoredCall(self, number)
        return call

    def _read_texts(self, group: int) -> list[str]:
        return self._file.read(f"calls/texts{group}.txt").split("\n")

    def _read_operands(self) -> tuple[NDArray[Any], list[str], NDArray[np.int64]]:
        """Return the operands of all instructions, the tensors' names, and where each instruction's operands begin."""
        rows = self._file.array("calls/operands")
        first = np.searchsorted(np.ascontiguousarray(rows["call"]), np.arange(len(self) + 1))
        return rows, json.loads(self._file.read("calls/tensors.json")), first

    def write_again(self, writer: EventsWriter) -> None:
        """Write operands and texts as they stand in the log."""
        for group in range(-(-len(self) // TEXTS)):
            writer.text(f"calls/texts{group}.txt", self._file.read(f"calls/texts{group}.txt"))
        writer.array("calls/operands", self._file.array("calls/operands"))
        writer.text("calls/tensors.json", self._file.read("calls/tensors.json"))

    def text(self, number: int) -> str:
        """Return the operands of an instruction in words."""
        return self._texts(number // TEXTS)[number % TEXTS]

    def accesses(self, number: int, *, write: bool) -> list[StoredAccess]:
        """Return what an instruction reads or writes."""
        rows, tensors, begins = self._operands()
        return [
            StoredAccess(Space(space), first, last, tensors[name])
            for _, first, last, name, space, writes in rows[
                begins[number] : begins[number + 1]
            ].tolist()
            if bool(writes) is write
        ]
