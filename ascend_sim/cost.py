"""The price of an instruction on one chip: work from the call, numbers from the chip file."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from ascend_sim.prices import Price
from isa.types import Pipe

if TYPE_CHECKING:
    from ascend_sim.config import Chip, UbBanks
    from isa.instruction import Call

Geometry = tuple[tuple[bool, int, int, int, int], ...]
"""`Call.geometry` of a vector call."""


def whole(cycles: float) -> int:
    """Return a time as whole cycles, half a cycle rounded up."""
    return math.floor(cycles + 0.5)


def price(call: Call, chip: Chip) -> Price:
    """Price a call whose time nothing shared decides: vector, Mmad, moves between on-chip memories."""
    if call.pipe is Pipe.V:
        return vector_price(call, chip)
    if call.pipe is Pipe.M:
        return _cube_price(call, chip)
    return _local_move_price(call, chip)


def _cube_price(call: Call, chip: Chip) -> Price:
    """Price an Mmad: the issue cost, then a time for each fractal; results are visible after the pipeline's depth."""
    cube = chip.cube
    if not call.writes:
        return Price(whole(cube.issue), whole(cube.issue), 0, 0)
    interval = whole(cube.issue) + cube_cycles(call, chip)
    return Price(interval, interval + whole(cube.depth), 0, 0)


def cube_cycles(call: Call, chip: Chip) -> int:
    """Return the cycles that the cube unit itself works on a call: fractals by the input type's rate."""
    return whole(call.work * chip.cube.cycles_per_fractal[call.cost[1]])


def _local_move_price(call: Call, chip: Chip) -> Price:
    """Price a move between on-chip memories: a head, then bytes at the path's rate; the pipe is taken meanwhile."""
    mte1, fixpipe = chip.mte1, chip.fixpipe
    head, rate = {
        "l0a": (mte1.head, mte1.l0a_port),
        "l0b": (mte1.head, mte1.l0b_port),
        "bt": (mte1.bt_head, mte1.bt_port),
        "fb": (mte1.fb_head, mte1.fb_port),
        "l1": (fixpipe.l1_head, fixpipe.l1_port),
    }.get(call.cost[1], (mte1.bt_head, mte1.bt_port))  # constant fills go at the rate of BT
    cycles = max(whole(head + call.bytes / rate), 1)
    return Price(cycles, cycles, 0, 0)


def beside_writes(cost: Price, rate: float, chip: Chip) -> Price:
    """Return the price of a move out of L1 while `rate` bytes a cycle are written to it: they share L1's port.

    Each of the two has at least half of it.
    """
    width = chip.mte1.l1_port
    rate = min(rate, width / 2)
    extra = whole(cost.interval * rate / (width - rate))
    return Price(cost.interval + extra, cost.duration + extra, cost.conflict, cost.lead)


def load_limit(call: Call, chip: Chip) -> float:
    """Return the rate of a load that re-lays rows as fractals, in bytes a cycle; 0 where the port's own rate holds."""
    return chip.gm.nd2nz_port if call.extra.startswith("nd2nz") else 0.0


def vector_price(call: Call, chip: Chip) -> Price:
    """Price a vector call: startup + repeats · cycles a repeat, at least the minimum issue, then the drain."""
    vector = chip.vector
    if not call.writes:  # a call that does nothing still passes through the pipe
        interval = whole(vector.min_issue)
        return Price(interval, interval, 0, 0)
    cost = chip.vector_cost(*call.cost)
    plain = cost.slope * call.work
    extra = bank_conflict_cycles(call, chip, cost.slope)
    interval = max(whole(vector.min_issue), whole(plain + extra))
    lead = whole(max(cost.startup + plain, vector.min_issue))
    body = whole(max(cost.startup + plain + extra, vector.min_issue))
    # Conflicts hold up the repeats, so they come before the next instruction may start; the startup's share of the
    # time is then still to come.
    conflict = body - lead
    return Price(interval, body + whole(vector.drain), conflict, max(interval - conflict, 0))


def bank_conflict_cycles(call: Call, chip: Chip, slope: float) -> float:
    """Return the extra cycles that UB bank conflicts add to a call.

    A bank group serves one read and one write a cycle: a repeat takes as many cycles as the busiest group
    has reads, or writes. A read and a write in one bank add a part of a cycle, except where the write trails the
    read through the same banks at the same stride.
    """
    if not call.geometry:
        return 0.0
    return _conflicts(call.geometry, call.work, chip.ub_banks, slope)


@lru_cache(1 << 14)  # loops and launches come to the same few again and again
def _conflicts(geometry: Geometry, work: int, banks: UbBanks, slope: float) -> float:
    row, groups = banks.row_bytes, banks.groups
    period = groups  # a repeat stride moves the pattern by whole rows, so it comes back after `groups` repeats
    total = 0.0
    phases = min(work, period)
    span = groups * banks.bank_bytes
    if any(_last_byte(operand, work) // span != operand[1] // span for operand in geometry):
        phases = work  # an operand comes into another bank of its groups: each repeat by itself
    elif len({step % (row * groups) for _, _, _, step, _ in geometry}) == 1:
        phases = 1  # all operands move on alike: every repeat has the same pattern
    known: dict[tuple[tuple[int, ...], ...], float] = {}
    for phase in range(phases):
        weight = 1 if phases == work else (work - phase + phases - 1) // phases
        pattern = tuple([_pattern(operand, phase, row * groups, span) for operand in geometry])
        extra = known.get(pattern)
        if extra is None:
            extra = known[pattern] = _repeat_extra(geometry, banks, phase, slope)
        total += weight * extra
    return total


def _pattern(
    operand: tuple[bool, int, int, int, int], repeat: int, row: int, span: int
) -> tuple[int, ...]:
    """Return all that the groups and banks of one repeat of an operand depend on."""
    _, address, block_stride, step, blocks = operand
    first = address + repeat * step
    last = first + (blocks - 1) * block_stride
    bank = first // span
    return (first % row, bank) if last // span == bank else (first,)


def _last_byte(operand: tuple[bool, int, int, int, int], repeats: int) -> int:
    _, address, block_stride, step, blocks = operand
    return address + (repeats - 1) * step + (blocks - 1) * block_stride


def _repeat_extra(geometry: Geometry, banks: UbBanks, repeat: int, slope: float) -> float:
    row, groups = banks.row_bytes, banks.groups
    span = groups * banks.bank_bytes  # bytes that one bank of every group covers
    reads = [0] * groups
    writes = [0] * groups
    read_banks: set[tuple[int, int]] = set()
    write_banks: set[tuple[int, int]] = set()
    read_walks: list[tuple[int, int, int, int]] = []
    write_walk: tuple[int, int, int, int] | None = None
    for is_write, address, block_stride, step, blocks in geometry:
        start = address + repeat * step
        count = 1 if block_stride == 0 else blocks
        walk = ((address // row) % groups, address // span, block_stride, step)
        if is_write:
            write_walk = walk
        else:
            read_walks.append(walk)
        for block in range(count):
            position = start + block * block_stride
            group = (position // row) % groups
            if is_write:
                writes[group] += 1
                write_banks.add((group, position // span))
            else:
                reads[group] += 1
                read_banks.add((group, position // span))
    extra = max(slope, *reads, *writes) - slope
    if write_walk is not None and write_walk not in read_walks and read_banks & write_banks:
        extra += banks.read_write_conflict
    return extra
