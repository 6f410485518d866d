"""A launch of which some trips of its loops are left out: how long all of it takes, and how far off that may be."""

from __future__ import annotations

import gc
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from ascend_sim.errors import DeadlockError, UnsupportedError
from ascend_sim.placement import vector_only
from ascend_sim.sampled import Estimate, Simulated
from ascend_sim.session import Session
from ascend_sim.steady import LeftOut, left_out
from ascend_sim.trips import Counts, Sampler, Stretch, counted
from isa.types import CoreKind

if TYPE_CHECKING:
    from ascend_sim.recorder import Asked


def sample(asked: Asked) -> Estimate:
    """Return what a launch takes, numbers and checks off.

    Cores are expected to meet where a phase ends (`sim.phase`), and nowhere else.

    Raises UnsupportedError for a kernel that hangs when trips are left out or that ends a loop early, and what the
    kernel itself raises.
    """
    session = asked.session(Session)
    buffers = list({a.buffer.index: a.buffer for a in asked.addresses.values()}.values())
    leading = CoreKind.AIV if vector_only(asked.kernel_type) else CoreKind.AIC
    session.sampler = sampler = Sampler(session.memory.l2, buffers, leading)
    session.memory.l2.start(asked.l2, buffers)
    collecting = gc.isenabled()
    gc.disable()
    try:
        session.run(asked.body)
    except DeadlockError as error:
        if not sampler.stretches:
            raise
        raise UnsupportedError(
            f"{asked.label} hangs when trips of its loops are left out, because its cores do not make the same ones: "
            f"run it without --sampled.\n{error}"
        ) from error
    finally:
        if collecting:
            gc.enable()
    if sampler.left_early:
        raise UnsupportedError(
            f"the loop at {min(sampler.left_early)} ends early, at a trip that may have been left out: count its trips "
            "with Python's range, or run without --sampled"
        )
    sampler.settle()
    totals = sampler.totals
    for log in session.log.cores:
        totals += counted(log)
    last = len(session.log.phases) - 1
    ends = {core.index: core.log.end for core in session.cores}
    return _whole(session.log.cycles, sampler.stretches, totals, {last: ends})


def _whole(
    cycles: int, stretches: list[Stretch], totals: Counts, ends: dict[int, dict[int, int]]
) -> Estimate:
    """Return the whole of what was simulated and what was left out: a phase lasts until its last core is through.

    `ends` has the end of each core in the last phase; in others that is when a core left its last loop.
    """
    groups: dict[tuple[str, int, object, int], list[Stretch]] = defaultdict(list)
    for stretch in stretches:
        groups[stretch.site, stretch.ordinal, stretch.kind, len(stretch.gaps)].append(stretch)
    parts = []
    by_phase: dict[int, list[LeftOut]] = defaultdict(list)
    for (site, *_), group in groups.items():
        found = left_out(group)
        for one in found:
            by_phase[one.phase].append(one)
            totals += one.counts
        made, all_ = sum(len(s.trips) for s in group), sum(s.count for s in group)
        parts.append(Simulated(f"trips of the loop at {site}", made, all_))
    more, error = 0.0, 0.0
    for phase, left in by_phase.items():
        longer, off = _phase(left, ends.get(phase, {}))
        more += longer
        error += off
    return Estimate(
        cycles + round(more), round(error), tuple(_together(parts)), exact=not parts, counts=totals
    )


def _phase(found: list[LeftOut], ends: dict[int, int]) -> tuple[float, float]:
    """Return by how much a phase is longer than in the sampled run, and how far off that may be."""
    arrival: Counter[int] = Counter(ends)
    longer: dict[int, float] = defaultdict(float)
    error: dict[int, float] = defaultdict(float)
    for one in found:
        arrival[one.core] = max(arrival[one.core], one.arrival)
        longer[one.core] += one.cycles
        error[one.core] += one.error
    last = max(arrival, key=lambda core: arrival[core] + longer[core])
    return arrival[last] + longer[last] - max(arrival.values()), error[last]


def _together(parts: list[Simulated]) -> list[Simulated]:
    """Return one entry for a place, whatever the cores and however often the kernel gets there."""
    found: dict[str, Simulated] = {}
    for part in parts:
        known = found.get(part.what)
        made = part.number + (known.number if known else 0)
        total = part.total + (known.total if known else 0)
        found[part.what] = Simulated(part.what, made, total)
    return list(found.values())
