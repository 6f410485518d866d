"""What instructions themselves show that costs time: short copies, odd starts, one element at a time, empty fractals.

Each habit is told with its share of the kernel's time and what would be without it. Moves are looked at by sample, at
equal distances, so that a run of millions of copies costs no more than a small one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ascend_sim.report.calls import operands
from ascend_sim.report.columns import CAUSE_CODE, Columns, Ints
from ascend_sim.report.ledger import CoreLedger, Ledger, Totals
from ascend_sim.trace import Cause, Kind
from isa.types import Pipe, Space

REQUEST = 512
"""Bytes of one request to GM."""
_SAMPLE = 1024
_NEAR = 256
"""Copies in a row that are looked at to see whether each goes on where the last one ended."""
_SHORT = 256
_FEW = 16
_FRACTAL = 16
_BANK_GROUPS = 16
"""Blocks this far apart, or a multiple of it, lie in one group of UB banks."""
_BURSTS = re.compile(r"bursts:(\d+)x")
_FIELD = re.compile(r"\b([mnk]):(\d+)")
_STRIDE = re.compile(r"blk:(?:\d+/)*(\d+)")
_REDUCTIONS = ("whole_reduce_", "repeat_reduce_", "block_reduce_", "pair_reduce_")


class Habit(NamedTuple):
    """Something to say: `about` names it, `weight` is the share of the kernel's time that it is about."""

    about: str
    weight: float
    text: str


def habits(ledger: Ledger, totals: Totals, cores: dict[str, int]) -> list[Habit]:
    """Return the habits of a run, each of the core that shows it most; `cores` are those of the chip, by kind."""
    found: list[Habit] = [*_idle_cores(ledger, totals, cores), *_no_cube(totals)]
    for entry in _busiest(ledger):
        span = entry.core.end - entry.core.start
        if span > 0:
            found += [
                *_moves(ledger, entry, span),
                *_scalars(ledger, entry, span),
                *_reductions(ledger, entry, span),
                *_fractals(ledger, entry, span),
                *_strides(ledger, entry, span),
            ]
    return found


def _busiest(ledger: Ledger) -> Iterator[CoreLedger]:
    """Yield the core of each kind that has most items."""
    best: dict[Any, CoreLedger] = {}
    for entry in ledger:
        kind = entry.core.kind
        if kind not in best or len(entry.columns) > len(best[kind].columns):
            best[kind] = entry
    yield from best.values()


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


# ---- copies ---------------------------------------------------------------------------------


class _Move(NamedTuple):
    bytes: int
    bursts: int
    low: int
    high: int


def _moves(ledger: Ledger, entry: CoreLedger, span: int) -> Iterator[Habit]:
    columns = entry.columns
    for pipe in (Pipe.MTE2, Pipe.MTE3):
        rows = np.flatnonzero(
            (columns["pipe"] == pipe)
            & (columns["kind"] == Kind.INSTRUCTION)
            & (columns["bytes"] > 0)
        )
        if len(rows) < _FEW:
            continue
        share = min(_held(columns, rows) / span, 1.0)
        moves = _sampled(ledger, columns, rows)
        if len(moves) < _FEW:
            continue
        total, bursts = sum(one.bytes for one in moves), sum(one.bursts for one in moves)
        mean = total / bursts
        if mean < _SHORT:
            near = _sampled(ledger, columns, rows[:_NEAR])
            behind = sum(b.low == a.high for a, b in pairwise(near))
            contiguous = behind >= 0.8 * (len(near) - 1)
            yield Habit(
                "bursts",
                1.5 * share,
                f"{pipe.name} moves {mean:.0f} bytes at a time, 1/{REQUEST / mean:.0f} of the {REQUEST} bytes of one "
                f"request to GM, and that takes {_percent(share)} of the kernel's time. "
                + (
                    "They are contiguous in GM: one copy takes all of them."
                    if contiguous
                    else "Let one copy take what lies together, or a layout whose rows are longer."
                ),
            )
            continue
        yield from _odd_starts(pipe, moves, share)


def _odd_starts(pipe: Pipe, moves: list[_Move], share: float) -> Iterator[Habit]:
    long = [one for one in moves if one.bytes >= REQUEST and one.bursts == 1]
    odd = sum(one.low % REQUEST != 0 for one in long)
    if not long or odd < len(moves) / 2:
        return
    needed = sum(-(-one.bytes // REQUEST) for one in long)
    taken = sum(-(-one.high // REQUEST) - one.low // REQUEST for one in long)
    yield Habit(
        "starts",
        0.6 * share,
        f"{odd} of {len(long)} copies of {pipe.name} start off a {REQUEST}-byte border of GM and take {taken} requests "
        f"where {needed} would do; on the hardware such copies reach about 70 % of the bandwidth. Pad the pitch of the "
        f"rows to a multiple of {REQUEST} bytes.",
    )


def _sampled(ledger: Ledger, columns: Columns, rows: Ints) -> list[_Move]:
    """Return moves from or to GM, at equal distances in program order."""
    step = max(len(rows) // _SAMPLE, 1)
    things = ledger.calls.things
    found = []
    for row in rows[::step].tolist():
        number = int(columns["call"][row])
        if number < 0:
            continue
        call = things[number]
        outside = [one for one in operands(call) if one.space is Space.GM]
        if len(outside) == 1:
            bursts = _BURSTS.search(call.detail())
            found.append(
                _Move(
                    int(columns["bytes"][row]),
                    max(int(bursts.group(1)), 1) if bursts else 1,
                    outside[0].low,
                    outside[0].high,
                )
            )
    return found


def _held(columns: Columns, rows: Ints) -> int:
    """Return how many cycles a pipe was with some of its instructions, counted once where they overlap."""
    start, end = columns["start"][rows], columns["end"][rows]
    done = (start >= 0) & (end >= start)
    start, end = start[done], end[done]
    reached = np.maximum.accumulate(np.concatenate([[0], end[:-1]])) if len(end) else start
    return int(np.maximum(end - np.maximum(start, reached), 0).sum())


# ---- the scalar unit, V and M ---------------------------------------------------------------


def _named(ledger: Ledger, columns: Columns, names: tuple[str, ...]) -> Ints:
    """Return the rows of instructions whose names begin with one of some words."""
    wanted = [number for number, name in enumerate(ledger.names.things) if name.startswith(names)]
    return np.flatnonzero(np.isin(columns["name"], wanted) & (columns["kind"] == Kind.INSTRUCTION))


def _scalars(ledger: Ledger, entry: CoreLedger, span: int) -> Iterator[Habit]:
    rows = _named(ledger, entry.columns, ("get_value", "set_value"))
    share = _held(entry.columns, rows) / span
    if len(rows) >= _FEW:
        yield Habit(
            "scalar",
            1.2 * share,
            f"The scalar unit spends {_percent(share)} of the kernel's time on {len(rows):,} calls of set_value and "
            f"get_value, one element each. Vector instructions move a repeat of them at once: gather with a table of "
            f"offsets, strided copies, duplicate.",
        )


def _reductions(ledger: Ledger, entry: CoreLedger, span: int) -> Iterator[Habit]:
    columns = entry.columns
    rows = _named(ledger, columns, _REDUCTIONS)
    rows = rows[columns["work"][rows] <= 1]
    if len(rows) < _FEW:
        return
    share = _held(columns, rows) / span
    name = ledger.names.things[int(columns["name"][rows[0]])]
    yield Habit(
        "reductions",
        1.2 * share,
        f"{name} runs {len(rows):,} times on one repeat each and takes {_percent(share)} of the kernel's time. Add "
        f"first, reduce last: adding the repeats to each other leaves one reduction for all of them.",
    )


def _fractals(ledger: Ledger, entry: CoreLedger, span: int) -> Iterator[Habit]:
    columns = entry.columns
    rows = _named(ledger, columns, ("mmad",))
    useful = whole = 0
    shape: dict[str, int] = {}
    for number in np.unique(columns["call"][rows]).tolist()[:_SAMPLE]:
        if number < 0:
            continue
        fields = {
            key: int(value) for key, value in _FIELD.findall(ledger.calls.things[number].detail())
        }
        if len(fields) == 3:
            count = int(np.count_nonzero(columns["call"][rows] == number))
            useful += count * fields["m"] * fields["n"] * fields["k"]
            padded = 1
            for size in fields.values():
                padded *= -(-size // _FRACTAL) * _FRACTAL
            whole += count * padded
            shape = shape or fields
    if not whole or useful > whole / 2:
        return
    share = _held(columns, rows) / span
    yield Habit(
        "fractals",
        share * (1 - useful / whole) * 2,
        f"Only {_percent(useful / whole)} of the products that M computes are asked for: it works on fractals of "
        f"{_FRACTAL} x {_FRACTAL} x {_FRACTAL}, and here m {shape['m']}, n {shape['n']}, k {shape['k']} leave the rest "
        f"of them empty. Put several small products into one, or compute them on the vector cores.",
    )


def _strides(ledger: Ledger, entry: CoreLedger, span: int) -> Iterator[Habit]:
    """Say which block stride keeps the blocks of a repeat in one bank group, where that costs time."""
    columns = entry.columns
    parts = columns.parts
    conflicts = parts["cause"] == CAUSE_CODE[Cause.BANK_CONFLICT]
    rows = np.unique(parts["item"][conflicts])
    if not len(rows):
        return
    begin = np.where(
        np.diff(parts["item"], prepend=-1) == 0,
        np.roll(parts["end"], 1),
        columns["start"][parts["item"]],
    )
    cycles = np.where(conflicts, parts["end"] - begin, 0)
    by_call: dict[int, int] = {}
    for item, spent in zip(
        parts["item"][conflicts].tolist(), cycles[conflicts].tolist(), strict=True
    ):
        call = int(columns["call"][item])
        by_call[call] = by_call.get(call, 0) + spent
    lost = 0
    for number, spent in by_call.items():
        found = _STRIDE.search(ledger.calls.things[number].detail()) if number >= 0 else None
        if found and int(found.group(1)) % _BANK_GROUPS == 0 and int(found.group(1)):
            lost += spent
            blocks = int(found.group(1))
    if lost:
        yield Habit(
            "stride",
            2 * lost / span,
            f"V repeats accesses for {_percent(lost / span)} of the kernel's time because a block stride of "
            f"{32 * blocks} bytes puts the 8 blocks of a repeat into one group of UB banks. A pitch one block longer, "
            f"block stride {blocks + 1}, spreads them.",
        )


# ---- cores ----------------------------------------------------------------------------------


def _idle_cores(ledger: Ledger, totals: Totals, cores: dict[str, int]) -> Iterator[Habit]:
    """Say that most of the chip has nothing to do, in a kernel that runs much longer than its launch."""
    log = ledger.log
    if log.cycles < 20 * max(log.launch_cycles, 1):
        return
    for kind, word in (("aiv", "vector"), ("aic", "cube")):
        used = sum(core.name.rpartition(".")[2].startswith(kind) for core in log.cores)
        there = cores.get(kind, 0)
        if 0 < used <= there / 2 and any(
            name.rpartition(".")[2].startswith(kind) for name in totals
        ):
            yield Habit(
                "cores",
                1 - used / there,
                f"{used} of {there} {word} core{'s' * (there > 1)} of the chip take part: as many blocks as cores, "
                f"each with a share of the rows, would be up to {there // used} times as fast.",
            )


def _no_cube(totals: Totals) -> Iterator[Habit]:
    kinds: dict[str, int] = {}
    count = 0
    for name, pipes in totals.items():
        kind = name.rpartition(".")[2].rstrip("0123456789")
        count += kind == "aic"
        work = sum(entry["instructions"] for pipe, entry in pipes.items() if pipe != "S")
        kinds[kind] = kinds.get(kind, 0) + work
    if kinds.get("aiv") and kinds.get("aic") == 0:
        yield Habit(
            "kernel type",
            0.5,
            f"no cube core executes an instruction, and {count} {'was' if count == 1 else 'were'} started: "
            f"kernel_type AIV_ONLY spares the launch of them.",
        )
