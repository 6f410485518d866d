"""What every cycle of a core went to, with its place: by pipe, cause, line, loop trip, and the flag behind it.

A wait for a flag is split by what the pipe that set it did meanwhile: its own causes say why the flag was
late, and `handover` is the way from the set to the wait. Nothing is counted twice: the rows of a pipe
add up to the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ascend_sim.errors import ConfigError
from ascend_sim.report.columns import CAUSE_CODE, CAUSES, SUB_CAUSES, Ints, rows_of, trips
from ascend_sim.report.ledger import CoreLedger, Ledger
from ascend_sim.report.names import short_path
from ascend_sim.report.segments import ITEM, STALL, Segments
from ascend_sim.trace import Cause, Kind
from isa.types import Pipe

BY = (
    "core", "pipe", "cause", "sub_cause", "line", "name", "set_pipe", "set_line", "late", "trip",
    "phase",
)  # fmt: skip
"""What the cycles can be told apart by."""

HANDOVER = len(CAUSES)
"""Why a flag was late, where nothing was late any more: it was on its way from the set to the wait."""

LATE = (*(cause.value for cause in CAUSES), "handover")
_WAITS_FOR_A_SET = [CAUSE_CODE[cause] for cause in (Cause.FLAG, Cause.BUFFER, Cause.CROSS_CORE)]


@dataclass(slots=True)
class Rows:
    """Cycles of one core in columns, by name; -1 stands for nothing. A segment may have several rows."""

    columns: dict[str, Ints]
    cycles: Ints

    def __len__(self) -> int:
        return len(self.cycles)


def core_rows(number: int, ledger: Sequence[CoreLedger]) -> Rows:
    """Return what every cycle of every pipe of a core went to; `number` is its place in `ledger`."""
    entry = ledger[number]
    trip = trips(entry.columns)
    parts = [_pipe_rows(number, pipe, entry, ledger, trip) for pipe in entry.segments]
    return Rows(
        {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns},
        np.concatenate([part.cycles for part in parts]),
    )


def _pipe_rows(
    number: int, pipe: Pipe, entry: CoreLedger, ledger: Sequence[CoreLedger], trip: Ints
) -> Rows:
    segments, columns = entry.segments[pipe], entry.columns
    count = len(segments)
    item, stall = segments.behind == ITEM, segments.behind == STALL
    at_item, at_stall = segments.row[item], segments.row[stall]
    own = {name: np.full(count, -1, np.int64) for name in ("site", "name", "trip", "phase")}
    for name in ("site", "name", "phase"):
        own[name][item] = columns[name][at_item]
    own["trip"][item] = trip[at_item]
    for name in ("site", "name"):
        own[name][stall] = columns.stalls[name][at_stall]
    waits = _waits(pipe, entry)
    wait = waits >= 0
    own["set_core"], own["set"] = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    own["set_core"][wait] = columns["partner_core"][waits[wait]]
    own["set"][wait] = columns["partner"][waits[wait]]
    for name in ("set_pipe", "set_site", "late", "late_sub"):
        own[name] = np.full(count, -1, np.int64)
    own["core"], own["pipe"] = np.full(count, number), np.full(count, int(pipe))
    own["segment"] = np.arange(count)
    own["cause"], own["sub"] = segments.cause.astype(np.int64), segments.sub.astype(np.int64)
    return _split_by_lateness(own, segments, ledger)


def _waits(pipe: Pipe, entry: CoreLedger) -> Ints:
    """Return for each segment of a pipe the row of the wait that it belongs to, -1 where it is none."""
    segments, columns = entry.segments[pipe], entry.columns
    rows = np.where(segments.behind == ITEM, segments.row, -1)
    if pipe is Pipe.S:
        # The scalar unit's stall ends when its wait is released.
        own = entry.rows[pipe]
        own = own[columns["kind"][own] == Kind.WAIT_FLAG]
        stopped = np.flatnonzero(segments.behind == STALL)
        if len(own) and len(stopped):
            ends = columns.stalls["end"][segments.row[stopped]]
            place = np.minimum(np.searchsorted(columns["start"][own], ends), len(own) - 1)
            match = columns["start"][own[place]] == ends
            rows[stopped[match]] = own[place[match]]
    known = (rows >= 0) & np.isin(segments.cause, _WAITS_FOR_A_SET)
    waits = known & (columns["partner_core"][np.maximum(rows, 0)] >= 0) if len(columns) else known
    return np.where(waits, rows, -1)


def _split_by_lateness(
    own: dict[str, Ints], segments: Segments, ledger: Sequence[CoreLedger]
) -> Rows:
    """Split each wait by what the pipe that set its flag did until the set took effect."""
    base = Rows(own, segments.length)
    pieces: list[tuple[Ints, Ints, int, int]] = []  # segments, cycles, why, refined
    for core in distinct(own["set_core"]):
        if core < 0:
            continue
        other = ledger[core]
        waits = np.flatnonzero(own["set_core"] == core)
        sets = rows_of(other.columns, own["set"][waits])
        waits, sets = waits[sets >= 0], sets[sets >= 0]
        own["set_site"][waits] = other.columns["site"][sets]
        own["set_pipe"][waits] = other.columns["pipe"][sets]
        until = np.clip(other.columns["end"][sets], segments.start[waits], segments.end[waits])
        pieces.append((waits, segments.end[waits] - until, HANDOVER, 0))
        for pipe in distinct(own["set_pipe"][waits]):
            of_pipe = own["set_pipe"][waits] == pipe
            which = waits[of_pipe]
            pieces += [
                (which, cycles, cause, sub)
                for cause, sub, cycles in spent(
                    other.segments[Pipe(pipe)], segments.start[which], until[of_pipe]
                )
            ]
    return _with_pieces(base, pieces)


def _with_pieces(base: Rows, pieces: list[tuple[Ints, Ints, int, int]]) -> Rows:
    pieces = [
        (which[cycles > 0], cycles[cycles > 0], cause, sub) for which, cycles, cause, sub in pieces
    ]
    split = np.concatenate([np.empty(0, np.int64), *(which for which, *_ in pieces)])
    whole = np.ones(len(base), bool)
    whole[split] = False
    order = np.concatenate([np.flatnonzero(whole), split])
    columns = {name: column[order] for name, column in base.columns.items()}
    late = [np.full(len(which), cause) for which, _, cause, _ in pieces]
    late_sub = [np.full(len(which), sub) for which, _, _, sub in pieces]
    kept = int(whole.sum())
    columns["late"][kept:] = np.concatenate([np.empty(0, np.int64), *late])
    columns["late_sub"][kept:] = np.concatenate([np.empty(0, np.int64), *late_sub])
    cycles = np.concatenate([base.cycles[whole], *(cycles for _, cycles, _, _ in pieces)])
    return Rows(columns, cycles)


def distinct(numbers: Ints) -> list[int]:
    """Return the small whole numbers (from -1) that occur, sorted."""
    return (np.flatnonzero(np.bincount(numbers + 1)) - 1).tolist()


def spent(segments: Segments, start: Ints, end: Ints) -> Iterator[tuple[int, int, Ints]]:
    """Yield for each (cause, sub-cause) code of a pipe how many cycles of each window [start, end) it has."""
    label = segments.cause.astype(np.int64) * len(SUB_CAUSES) + segments.sub
    for code in distinct(label):
        of_it = label == code
        before = np.concatenate([[0], np.cumsum(np.where(of_it, segments.length, 0))])
        cycles = _reached(segments, of_it, before, end) - _reached(segments, of_it, before, start)
        yield code // len(SUB_CAUSES), code % len(SUB_CAUSES), cycles


def _reached(segments: Segments, of_it: NDArray[np.bool_], before: Ints, time: Ints) -> Ints:
    place = np.clip(np.searchsorted(segments.start, time, "right") - 1, 0, len(segments) - 1)
    inside = np.minimum(time - segments.start[place], segments.length[place])
    reached: Ints = before[place] + np.where(of_it[place], np.maximum(inside, 0), 0)
    return reached


def group(columns: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Return the number of the group of each row, and a row of each group, in the order of the columns."""
    order = np.lexsort(tuple(reversed(columns)))
    new = np.zeros(len(order), bool)
    for column in columns:
        new[1:] |= np.diff(column[order]) != 0
    groups = np.empty(len(order), np.int64)
    groups[order] = np.cumsum(new)
    first = np.concatenate([order[:1], order[new]])
    return groups, first


_COLUMNS_OF = {
    "line": "site", "sub_cause": "sub", "set_line": "set_site", "late": "late",
}  # fmt: skip


def stall_table(ledger: Ledger, by: Iterable[str]) -> list[dict[str, Any]]:
    """Return cycles by the names in `by` (of `BY`), the largest first.

    Each row has the asked names, `cycles`, and `count`: in how many stretches. Nothing is left out: the cycles
    of all rows are the run's cycles times the pipes. `late` says what the pipe that sets a flag did
    while another waited for it, `handover` that the set was done. Raises `ConfigError` for a name that
    is not in `BY`.
    """
    keys = list(by)
    for key in keys:
        if key not in BY:
            raise ConfigError(
                f"stalls cannot be told apart by {key!r} (there are: {', '.join(BY)})"
            )
    text = Texts(ledger)
    sums: dict[tuple[Any, ...], list[int]] = {}
    for number in range(len(ledger)):
        for values, cycles, count in grouped(core_rows(number, ledger), keys, text):
            total = sums.setdefault(values, [0, 0])
            total[0] += cycles
            total[1] += count
    ordered = sorted(sums.items(), key=lambda entry: -entry[1][0])
    return [
        dict(zip(keys, key, strict=True)) | {"cycles": cycles, "count": count}
        for key, (cycles, count) in ordered
    ]


def grouped(
    rows: Rows, keys: Sequence[str], text: Texts
) -> Iterator[tuple[tuple[Any, ...], int, int]]:
    """Yield (words of the keys, cycles, segments) for each combination that occurs in one core's rows."""
    if not len(rows):
        return
    used = [rows.columns[_COLUMNS_OF.get(key, key)] for key in keys]
    if "late" in keys:
        used.append(rows.columns["late_sub"])
    groups, first = group(used or [rows.columns["core"]])
    cycles = np.bincount(groups, rows.cycles).astype(np.int64)
    _, pairs = group([groups, rows.columns["pipe"], rows.columns["segment"]])
    count = np.bincount(groups[pairs])
    for at, total, times in zip(first.tolist(), cycles.tolist(), count.tolist(), strict=True):
        yield tuple(text.of(key, rows.columns, at) for key in keys), total, times


class Texts:
    """The words for the numbers in rows."""

    def __init__(self, ledger: Ledger) -> None:
        log = ledger.log
        self._cores = [core.name for core in log.cores]
        self._names = ledger.names.things
        self._phases = log.phases
        self._lines = [
            f"{short_path(site.file)}:{site.line}" if site.file else "" for site in log.sites
        ]

    def of(self, key: str, columns: dict[str, Ints], row: int) -> Any:
        """Return what a row says under a key of `BY`: a word, empty for nothing; of `trip` a number."""
        number = int(columns[_COLUMNS_OF.get(key, key)][row])
        if key == "trip":
            return number
        if number < 0:
            return ""
        if key in ("line", "set_line"):
            return self._lines[number] if number < len(self._lines) else ""
        if key == "late":
            sub = SUB_CAUSES[int(columns["late_sub"][row])] if number < HANDOVER else None
            return LATE[number] if sub is None else f"{LATE[number]}/{sub.value}"
        if key == "sub_cause":
            cause = SUB_CAUSES[number]
            return "" if cause is None else cause.value
        words: dict[str, Any] = {
            "core": self._cores, "name": self._names, "phase": self._phases,
        }  # fmt: skip
        if key == "cause":
            return CAUSES[number].value
        return Pipe(number).name if key in ("pipe", "set_pipe") else words[key][number]
