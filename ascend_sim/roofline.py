"""The least time that a recorded kernel can take on a chip, without simulating it.

Every term is certain: a pipe needs the sum of its instructions' intervals, a port its bytes at its own rate, the
scalar unit what issuing costs, L2 and HBM all bytes at their best rate. No schedule is faster, so a tuner may
leave out what cannot win.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascend_sim.cost import price
from ascend_sim.recording import Recording, Scalar, gm_side
from ascend_sim.trace import Kind
from isa.access import merge_ranges
from isa.instruction import Call
from isa.types import CoreKind, Pipe

import numpy as np  # isort: skip

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascend_sim.config import Chip

_LOADS, _STORES = (Pipe.MTE2,), (Pipe.MTE3, Pipe.FIX)


def lower_bound(
    recording: Recording, chip: Chip, *, l2: str = "cold", physical_cores: int
) -> tuple[int, str]:
    """Return cycles that no run of the recording on this chip can go below, and what sets them.

    `physical_cores` is the number of places for blocks, as in `launch`.
    """
    costs = _costs(recording, chip)
    blocks: dict[int, dict[str, float]] = {}
    work: dict[tuple[CoreKind, int, str], float] = {}
    for part in recording.parts:
        counts = np.bincount(part.steps, minlength=len(recording.steps))
        for pipe in Pipe:
            cycles = float(counts @ costs[part.kind][pipe])
            place = f"{part.kind.value}.{pipe.name}"
            own = blocks.setdefault(part.block, {})
            own[place] = max(own.get(place, 0.0), cycles)
            key = (part.kind, part.sub_block, place)
            work[key] = work.get(key, 0.0) + cycles
    terms = {
        place: max(own[place] for own in blocks.values() if place in own)
        for place in {place for own in blocks.values() for place in own}
    }
    at_once = min(physical_cores, recording.blocks)
    for (_, _, place), cycles in work.items():
        terms[place] = max(terms[place], cycles / at_once)
    terms |= _memory(recording, chip, cold=l2 != "warm")
    limit = max(terms, key=lambda name: terms[name])
    launch = chip.cycles(chip.launch.base_us / 2 + chip.launch.per_core_us)
    end = chip.cycles(chip.launch.base_us / 2)
    return launch + int(terms[limit]) + end, limit


def gm_bytes(recording: Recording) -> tuple[int, int]:
    """Return the bytes that the moves of all blocks read from GM, and those that they write to it."""
    sizes = np.zeros((len(recording.steps), 2), np.int64)
    for number, step in enumerate(recording.steps):
        call = recording.calls[step.call] if step.call >= 0 else None
        side = gm_side(call) if isinstance(call, Call) and step.pipe is not Pipe.S else None
        if side is not None:
            assert isinstance(call, Call)
            sizes[number, int(bool(call.writes) and side is call.writes[0])] = call.bytes
    total = np.zeros(2, np.int64)
    for part in recording.parts:
        total += np.bincount(part.steps, minlength=len(sizes)) @ sizes
    return int(total[0]), int(total[1])


def _costs(recording: Recording, chip: Chip) -> dict[CoreKind, dict[Pipe, NDArray[np.float64]]]:
    """Return for both kinds of core what each step costs each pipe at least; the scalar unit issues all of them."""
    found = {kind: {pipe: np.zeros(len(recording.steps)) for pipe in Pipe} for kind in CoreKind}
    scalar = chip.scalar
    issue = {
        Pipe.V: scalar.vector_issue, Pipe.M: scalar.cube_issue, Pipe.MTE1: scalar.cube_issue,
        Pipe.MTE2: scalar.move_issue, Pipe.MTE3: scalar.move_issue, Pipe.FIX: scalar.move_issue,
    }  # fmt: skip
    least = min(issue.values())
    for number, step in enumerate(recording.steps):
        call = recording.calls[step.call] if step.call >= 0 else None
        for kind in CoreKind:
            rows = found[kind]
            if step.kind is Kind.BARRIER:
                rows[Pipe.S][number] = scalar.barrier_issue
            elif step.kind is not Kind.INSTRUCTION:
                rows[Pipe.S][number] = scalar.flag_issue
            elif isinstance(call, Call):
                rows[Pipe.S][number] = min(issue.get(step.pipe, least), least)
                rows[step.pipe][number] = _interval(call, step.pipe, kind, chip)
            elif isinstance(call, Scalar) and call.access is not None:
                gm = call.access.buffer is not None
                rows[Pipe.S][number] = scalar.gm_hit if gm else scalar.ub_access
    return found


def _interval(call: Call, pipe: Pipe, kind: CoreKind, chip: Chip) -> float:
    """Return the cycles for which an instruction keeps its pipe, or its port, to itself."""
    if not call.writes or gm_side(call) is None:
        if pipe in _LOADS or (pipe in _STORES and not call.writes):
            return 0.0
        interval = float(price(call, chip).interval)
        return interval
    gm, vector = chip.gm, kind is CoreKind.AIV
    if pipe in _LOADS:
        return call.bytes / (gm.read_port_aiv if vector else gm.read_port_aic)
    if pipe is Pipe.FIX:
        return chip.fixpipe.gm_head + call.bytes / chip.fixpipe.gm_port
    return gm.write_head + call.bytes / (gm.write_port_aiv if vector else gm.write_port_aic)


def _memory(recording: Recording, chip: Chip, *, cold: bool) -> dict[str, float]:
    """Return what the bytes of all cores together need of L2, and those that HBM has to give of HBM."""
    loaded = stored = 0.0
    reads: dict[int, list[NDArray[np.int64]]] = {}
    writes: dict[int, list[NDArray[np.int64]]] = {}
    sides = [gm_side(call) if isinstance(call, Call) else None for call in recording.calls]
    moves = np.array([step.call >= 0 and sides[step.call] is not None for step in recording.steps])
    numbers = np.array([step.call for step in recording.steps])
    seen: set[tuple[int, int]] = set()
    for part in recording.parts:
        used = numbers[part.steps[moves[part.steps]]]
        for number, address in zip(used.tolist(), part.addresses.tolist(), strict=True):
            call = recording.calls[number]
            assert isinstance(call, Call)
            side = sides[number]
            assert side is not None and side.buffer is not None
            write = bool(call.writes) and side is call.writes[0]
            if write:
                stored += call.bytes
            else:
                loaded += call.bytes
            if (number, address) in seen:
                continue
            seen.add((number, address))
            where = writes if write else reads
            where.setdefault(side.buffer.index, []).append(side.ranges() + (address - side.base))
    mixed = max(chip.l2.read_gbps, chip.l2.mixed_gbps)
    terms = {
        "gm": max(
            loaded / chip.bytes_per_cycle(chip.l2.read_gbps),
            (loaded + stored) / chip.bytes_per_cycle(mixed),
        )
    }
    if cold:
        first = sum(_first_read(parts, writes.get(index, [])) for index, parts in reads.items())
        terms["hbm"] = first / chip.bytes_per_cycle(chip.hbm.gbps)
    return terms


def _first_read(reads: list[NDArray[np.int64]], writes: list[NDArray[np.int64]]) -> int:
    """Return how many bytes are read that the kernel does not write."""
    return _size(reads + writes) - _size(writes)


def _size(parts: list[NDArray[np.int64]]) -> int:
    if not parts:
        return 0
    ranges = merge_ranges(np.concatenate(parts))
    return int((ranges[:, 1] - ranges[:, 0]).sum())
