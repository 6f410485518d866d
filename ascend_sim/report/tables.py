"""The tables of a run folder: every item, every pipe, every stall, as CSV with a header line.

Times are core cycles since the launch; a field that does not apply is empty.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any, TextIO

from ascend_sim.config import Chip
from ascend_sim.report.columns import Ints
from ascend_sim.report.ledger import Ledger, build_ledger, pipe_totals
from ascend_sim.report.names import Details, short_path
from ascend_sim.report.slack import slack
from ascend_sim.report.stalls import Texts, core_rows, grouped
from ascend_sim.trace import Cause, Item, Kind, Log, MemoryCause, Site
from isa.types import Pipe

INSTRUCTION_COLUMNS = (
    "core",  # core0.aiv0
    "index",  # program order on its core
    "pipe",
    "kind",  # instruction, set_flag, wait_flag, barrier
    "name",
    "phase",
    "file",  # of the innermost frame of the call
    "line",
    "issue",  # the scalar unit has put it into the pipe's queue
    "head",  # it came to the head of the queue
    "start",  # it began; a wait or barrier: it was released
    "accept",  # the pipe may begin its successor
    "end",  # its results are visible
    "busy",  # cycles of [start, end) of each kind; empty for flags and barriers
    "memory",
    "bank_conflict",
    "bytes",  # payload of a move
    "work",  # repeats (V), fractal cycles (M)
    "event",  # MTE2_V, …
    "event_id",
    "cause",  # of a wait or barrier
    "set_file",  # the set that released a wait
    "set_line",
    "inserted",  # 1: put in by automatic synchronisation
    "slack",  # how much longer it may take before the run does
    "detail",  # the operands
)
"""Columns of `instructions.csv`: one row an item, by core and in program order."""

PIPE_COLUMNS = (
    "core", "pipe", "cycles", "busy", "wait", "idle", "occupied", "utilization", "instructions", "items",
    "bytes", *(cause.value for cause in Cause if cause not in (Cause.BUSY, Cause.IDLE)),
    *(f"memory_{cause.value}" for cause in MemoryCause),
)  # fmt: skip
"""Columns of `pipes.csv`: one row a pipe of a core. `busy` + `wait` + `idle` = `cycles`; the causes from
`memory` to `launch` add up to `wait`, the `memory_…` columns to `memory`."""

STALL_COLUMNS = (
    "core",
    "pipe",
    "cause",
    "sub_cause",  # of memory
    "file",  # of the item that waited, or of the one that was not issued yet
    "line",
    "name",
    "set_pipe",  # the set that ended the wait
    "set_file",
    "set_line",
    "late",  # what that pipe did meanwhile: a cause, or handover once the set was done
    "count",  # in how many stretches
    "cycles",  # their sum
)
"""Columns of `stalls.csv`: every cycle that no pipe was busy in, by place; the longest first in each pipe."""


_KIND = [kind.name.lower() for kind in Kind]
_PIPE = [pipe.name for pipe in Pipe]


def write_instructions(
    log: Log, chip: Chip, stream: TextIO, spare: Sequence[Ints] | None = None
) -> None:
    """Write `instructions.csv`; `spare` is what `slack` returned, to save doing it again."""
    spare = slack(build_ledger(log), chip) if spare is None else spare
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(INSTRUCTION_COLUMNS)
    places = _places(log.sites)
    details = Details()
    for core, slacks in zip(log.cores, spare, strict=True):
        name = core.name
        writer.writerows(
            _instruction_row(name, item, places, log.phases, details, own)
            for item, own in zip(core.items, slacks.tolist(), strict=True)
        )


def _instruction_row(
    core: str,
    item: Item,
    places: list[tuple[str, int]],
    phases: list[str],
    details: Details,
    own_slack: int,
) -> tuple[Any, ...]:
    file, line = _place(item.site, places)
    issue, head, start, accept, end = item.issue, item.head, item.start, item.accept, item.end
    event, partner = item.event, item.partner
    set_file, set_line = _place(partner.site, places) if partner is not None else ("", "")
    return (
        core, item.index, _PIPE[item.pipe], _KIND[item.kind], item.name, phases[item.phase], file, line,
        issue if issue >= 0 else "", head if head >= 0 else "", start if start >= 0 else "",
        accept if accept >= 0 else "", end if end >= 0 else "", *_spent(item), item.bytes or "",
        item.work or "", event.name if event is not None else "",
        item.event_id if item.event_id >= 0 else "",
        item.cause.value if item.kind in _WAITS else "", set_file, set_line, int(item.inserted),
        own_slack if own_slack >= 0 else "", details.of(item),
    )  # fmt: skip


_BUSY = Cause.BUSY.value
_WAITS = (Kind.WAIT_FLAG, Kind.BARRIER)
_NOTHING = ("", "", "")


def _spent(item: Item) -> tuple[int | str, int | str, int | str]:
    """Return the item's own cycles: busy, waiting for memory, repeated for bank conflicts."""
    if item.kind is not Kind.INSTRUCTION or item.start < 0 or item.end < 0:
        return _NOTHING
    parts = item.parts
    if parts is None:
        return item.end - item.start, 0, 0
    busy = memory = conflict = 0
    position = item.start
    for cause, _, end in parts:
        if cause is Cause.BUSY:
            busy += end - position
        elif cause is Cause.MEMORY:
            memory += end - position
        else:
            conflict += end - position
        position = end
    return busy, memory, conflict


def write_pipes(log: Log, chip: Chip, stream: TextIO, ledger: Ledger | None = None) -> None:
    """Write `pipes.csv`; `ledger` saves building it again."""
    del chip
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(PIPE_COLUMNS)
    causes = [cause.value for cause in Cause if cause not in (Cause.BUSY, Cause.IDLE)]
    for core, pipes in pipe_totals(log, ledger).items():
        for pipe, entry in pipes.items():
            row = [
                core, pipe, log.cycles, entry["busy"], entry["wait"], entry["idle"], entry["occupied"],
                f"{entry['utilization']:.6f}", entry["instructions"], entry["items"], entry["bytes"],
            ]  # fmt: skip
            row += [entry["causes"].get(cause, 0) for cause in causes]
            row += [entry["memory"].get(cause.value, 0) for cause in MemoryCause]
            writer.writerow(row)


def write_stalls(log: Log, chip: Chip, stream: TextIO, ledger: Ledger | None = None) -> None:
    """Write `stalls.csv`; `ledger` saves building it again."""
    del chip
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(STALL_COLUMNS)
    ledger = build_ledger(log) if ledger is None else ledger
    text = Texts(ledger)
    keys = ("pipe", "cause", "sub_cause", "line", "name", "set_pipe", "set_line", "late")
    for number, entry in enumerate(ledger):
        order = {pipe.name: place for place, pipe in enumerate(entry.segments)}
        rows = grouped(core_rows(number, ledger), keys, text)
        for key, cycles, count in sorted(rows, key=lambda row: (order[row[0][0]], -row[1])):
            pipe, cause, sub, line, name, set_pipe, set_line, late = key
            if cause != _BUSY:
                writer.writerow(
                    [entry.core.name, pipe, cause, sub, *_split(line), name, set_pipe,
                     *_split(set_line), late, count, cycles]
                )  # fmt: skip


def _split(line: str) -> tuple[str, str]:
    file, _, number = line.rpartition(":")
    return file, number


def _places(sites: list[Site]) -> list[tuple[str, int]]:
    return [(short_path(site.file), site.line) for site in sites]


def _place(site: int, places: list[tuple[str, int]]) -> tuple[str, int | str]:
    """Return file and line; empty for what stands nowhere in the user's program."""
    return places[site] if 0 <= site < len(places) and places[site][0] else ("", "")
