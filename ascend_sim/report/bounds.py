"""How short the run could be: what each resource needs for its work, as written and for an ideal kernel.

Every roof of the chip that the run's work meets: HBM and L2, the paths of the core that moves most, the
vector, cube and scalar unit of the core that works most. A bound is never above the simulated time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ascend_sim.config import Chip
from ascend_sim.report.calls import READS_GM, WRITES_GM
from ascend_sim.report.chain import longest_chain
from ascend_sim.report.ledger import Ledger, Totals
from ascend_sim.report.traffic import Tally, distinct_bytes, gm_directions
from ascend_sim.trace import Kind
from isa.types import CoreKind, Pipe


@dataclass(slots=True)
class Roof:
    """One resource: its work, the rate at which it does it at best, and how many cycles that takes at least."""

    name: str
    kind: str  # memory, path, compute or issue
    work: float
    unit: str  # bytes, repeats, fractal cycles or cycles
    per_cycle: float
    cycles: float


def lower_bound(ledger: Ledger, totals: Totals, gm: Mapping[str, int]) -> dict[str, str | int]:
    """Return the time that no reordering of this run's work can beat, and what sets it.

    A core begins when the launch has reached it, and the end of the launch comes after the last core's
    end: both are certain. Between them lies the longest of: what a pipe has to do, and what the bytes
    need of the shared memory (`gm_work`). `limit` is `gm`,
    `hbm` or the pipe (`core0.aiv0.MTE2`); `launch` where that is the larger part, `none` without a core.
    """
    log = ledger.log
    if not log.cores:
        return {"limit": "none", "lower_bound_cycles": 0}
    end_cost = log.cycles - max(
        (core.end for core in log.cores if core.end > 0), default=log.cycles
    )
    begin = {core.name: core.start for core in log.cores}
    work = {
        f"{core}.{pipe}": (begin[core], entry["busy"])
        for core, pipes in totals.items()
        for pipe, entry in pipes.items()
    }
    first = min(begin.values())
    work |= {name: (first, cycles) for name, cycles in gm.items()}
    limit = max(work, key=lambda name: sum(work[name]))
    start, busy = work[limit]
    bound = min(start + busy + end_cost, log.cycles)
    return {
        "limit": limit if busy > start + end_cost else "launch",
        "lower_bound_cycles": bound,
    }


def as_written(ledger: Ledger, chip: Chip, bound: Mapping[str, Any]) -> dict[str, str | int]:
    """Return what the kernel as written cannot beat: its work and data (`bound`), or its dependences, if longer.

    `dependences_cycles` is the longest chain of dependences, see `ascend_sim.report.chain`.
    """
    log = ledger.log
    chain = min(longest_chain(ledger, chip), log.cycles)
    longer = chain > bound["lower_bound_cycles"]
    return {
        "limit": "dependences" if longer else bound["limit"],
        "lower_bound_cycles": max(chain, bound["lower_bound_cycles"]),
        "dependences_cycles": chain,
    }


def gm_work(ledger: Ledger, chip: Chip, whole: Tally, *, cold: bool) -> dict[str, int]:
    """Return the cycles that a run's bytes need at least, by server.

    `gm`: all bytes over the best rate that L2 has; `hbm`, with a cold L2: the bytes that HBM has to give at
    least once.
    """
    mixed = max(chip.l2.read_gbps, chip.l2.mixed_gbps)
    loads = whole.gm_read / chip.bytes_per_cycle(chip.l2.read_gbps)
    both = (whole.gm_read + whole.gm_write) / chip.bytes_per_cycle(mixed)
    work = {"gm": int(max(loads, both))}
    if cold:
        work["hbm"] = int(distinct_bytes(ledger.log)[0] / chip.bytes_per_cycle(chip.hbm.gbps))
    return work


def operator_bound(ledger: Ledger, chip: Chip, *, cold: bool) -> dict[str, str | int]:
    """Return what no kernel of the operator can beat: one core launched, each byte of GM moved once.

    Inputs come from HBM where L2 is cold, inputs and outputs pass L2. How much work the operator is, is not known here:
    a kernel with less of it than this one may exist, so work counts nothing.
    """
    log = ledger.log
    if not log.cores:
        return {"limit": "none", "lower_bound_cycles": 0}
    launch = chip.launch
    fixed = chip.cycles(launch.base_us / 2 + launch.per_core_us) + chip.cycles(launch.base_us / 2)
    read, written = distinct_bytes(log)
    mixed = max(chip.l2.read_gbps, chip.l2.mixed_gbps)
    needs = {"l2": int((read + written) / chip.bytes_per_cycle(mixed))}
    if cold:
        needs["hbm"] = int(read / chip.bytes_per_cycle(chip.hbm.gbps))
    limit = max(needs, key=lambda name: needs[name])
    return {
        "limit": limit if needs[limit] > fixed else "launch",
        "lower_bound_cycles": min(fixed + needs[limit], log.cycles),
    }


def roofs(ledger: Ledger, chip: Chip, whole: Tally, totals: Totals, *, cold: bool) -> list[Roof]:
    """Return every roof that the run's work meets, the nearest first."""
    read, _ = distinct_bytes(ledger.log)
    l2, gm = chip.l2, chip.gm
    found = [
        _shared("HBM", read if cold else 0, chip.bytes_per_cycle(chip.hbm.gbps)),
        _shared("L2 reads", whole.gm_read, chip.bytes_per_cycle(l2.read_gbps)),
        _shared(
            "L2 reads and writes", whole.gm_read + whole.gm_write,
            chip.bytes_per_cycle(max(l2.mixed_gbps, l2.read_gbps)),
        ),
    ]  # fmt: skip
    most: dict[str, Roof] = {}
    for entry, directions in zip(ledger, gm_directions(ledger), strict=True):
        items, vector = entry.columns.items, entry.core.kind is CoreKind.AIV
        own = items["kind"] == Kind.INSTRUCTION
        paths = {
            "GM to UB" if vector else "GM to L1": (
                own & (items["pipe"] == Pipe.MTE2) & (directions & READS_GM > 0),
                gm.read_port_aiv if vector else gm.read_port_aic,
            ),
            "UB to GM" if vector else "L1 to GM": (
                own & (items["pipe"] == Pipe.MTE3) & (directions & WRITES_GM > 0),
                gm.write_port_aiv if vector else gm.write_port_aic,
            ),
            "L0C to GM": (
                own & (items["pipe"] == Pipe.FIX) & (directions & WRITES_GM > 0),
                chip.fixpipe.gm_port,
            ),
        }
        for name, (which, rate) in paths.items():
            size = int(items["bytes"][which].sum())
            _keep(most, Roof(f"{name}, one core", "path", size, "bytes", rate, size / rate))
        for pipe, name, unit in (
            (Pipe.V, "vector unit", "repeats"), (Pipe.M, "cube unit", "fractal cycles"),
        ):  # fmt: skip
            work = int(items["work"][own & (items["pipe"] == pipe)].sum())
            _keep(most, Roof(f"{name}, one core", "compute", work, unit, 1, work))
        issued = totals[entry.core.name]["S"]["busy"]
        _keep(most, Roof("scalar unit, one core", "issue", issued, "cycles", 1, issued))
    found += most.values()
    return sorted((roof for roof in found if roof.work), key=lambda roof: -roof.cycles)


def _shared(name: str, size: int, rate: float) -> Roof:
    return Roof(name, "memory", size, "bytes", rate, size / rate)


def _keep(most: dict[str, Roof], roof: Roof) -> None:
    known = most.get(roof.name)
    if known is None or roof.cycles > known.cycles:
        most[roof.name] = roof


def roofline(
    ledger: Ledger, chip: Chip, whole: Tally, totals: Totals, *, cold: bool
) -> dict[str, Any]:
    """Return the roofs as plain JSON, which is the nearest, and how far the run is from it.

    `distance` is the kernel's own cycles (without the launch) over what the nearest roof needs. `point`: work of V
    and M per byte of GM, and per cycle, summed over cores; `peak`: the most that the cores used could do.
    """
    log = ledger.log
    found = roofs(ledger, chip, whole, totals, cold=cold)
    start = min((core.start for core in log.cores), default=0)
    inner = max(max((core.end for core in log.cores), default=0) - start, 1)
    moved = whole.gm_read + whole.gm_write
    work = sum(float(np.sum(counts.work)) for counts in whole.kinds.values())
    return {
        "roofs": [
            {
                "name": roof.name, "kind": roof.kind, "work": roof.work, "unit": roof.unit,
                "per_cycle": round(roof.per_cycle, 6), "cycles": round(roof.cycles, 3),
                "share": round(roof.cycles / inner, 6),
            }
            for roof in found
        ],
        "nearest": found[0].name if found else "",
        "distance": round(inner / found[0].cycles, 6) if found else None,
        "kernel_cycles": inner,
        "point": [round(work / moved, 9) if moved else None, round(work / inner, 6)],
        "peak": len(log.cores),
        "operator": operator_bound(ledger, chip, cold=cold),
    }  # fmt: skip
