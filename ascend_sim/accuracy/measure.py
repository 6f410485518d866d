"""What a profiler would print of a simulated run: task time, busy span of each core type, occupation of each pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from statistics import mean
from typing import Any

import numpy as np

import ascend_sim as sim
from ascend_sim.accuracy.cases import Record
from ascend_sim.run import Run
from ascend_sim.trace import CoreLog, Kind
from isa.types import Pipe

PIPES = {
    "mac_us": "M",
    "vec_us": "V",
    "scalar_us": "S",
    "mte1_us": "MTE1",
    "mte2_us": "MTE2",
    "mte3_us": "MTE3",
    "fix_us": "FIX",
}
"""The profilers' names of the pipes' times."""

TIMES = ("task_us", "aic_us", "aiv_us", *PIPES)
"""What every record's simulated figures have; None where no core of the type runs."""

VECTOR_PIPES = ("vec_us", "mte3_us")
"""Pipes that a profiler counts on vector cores; all others on cube cores, scalar unit and MTE2 on those that run."""


def times(run: Run) -> dict[str, float | None]:
    """Return a run's times in microseconds, under a profiler's names.

    `task_us` from the launch to the end; `aic_us` and `aiv_us` from a core's first cycle to its last, averaged
    over the cores of the type; each pipe the time for which it is occupied (waiting for memory included),
    averaged over cores. In a mix kernel `scalar_us` and `mte2_us` are the cube cores', as profilers print them first;
    `aic_…` and `aiv_…` before a pipe's name say which type is meant. None where no core of the type ran. A load that
    lets a store of its core go first does not occupy MTE2 meanwhile: the profilers' times of both add up.
    `total_cycles` sums the spans of all cores.
    """
    chip, log = run.chip, run.log
    spans: dict[str, list[int]] = {"aic": [], "aiv": []}
    for core in log.cores:
        spans[_kind(core.name)].append(core.end - core.start)
    result: dict[str, float | None] = {"task_us": run.time_us}
    for kind in ("aic", "aiv"):
        result[f"{kind}_us"] = chip.us(mean(spans[kind])) if spans[kind] else None
        result[f"{kind}_max_us"] = chip.us(max(spans[kind])) if spans[kind] else None
    for name, pipe in PIPES.items():
        by_kind: dict[str, list[int]] = {"aic": [], "aiv": []}
        for core_name, pipes in run.pipes.items():
            if pipe in pipes:
                by_kind[_kind(core_name)].append(_occupied(pipes[pipe]))
        own = by_kind["aiv"] if name in VECTOR_PIPES else by_kind["aic"] or by_kind["aiv"]
        result[name] = chip.us(mean(own)) if own else None
        for kind, values in by_kind.items():
            result[f"{kind}_{name}"] = chip.us(mean(values)) if values else None
    if result["fix_us"] is not None:
        waited = chip.us(
            mean(_waited_for_flags(core) for core in log.cores if _kind(core.name) == "aic")
        )
        result["fix_us"] += waited
        result["aic_fix_us"] = result["fix_us"]
    if result["aiv_mte2_us"] is not None:
        yielded = chip.us(mean(_yielded(run, number) for number in _numbers(run, "aiv")))
        result["aiv_mte2_us"] -= yielded
        if not spans["aic"]:
            result["mte2_us"] = result["aiv_mte2_us"]
    result["total_cycles"] = float(sum(spans["aic"]) + sum(spans["aiv"]))
    return result


def _numbers(run: Run, kind: str) -> list[int]:
    return [number for number, core in enumerate(run.log.cores) if _kind(core.name) == kind]


def _yielded(run: Run, number: int) -> int:
    """Return the cycles for which loads of a core waited for a store of its own."""
    columns = run.ledger[number].columns
    loads = (columns["pipe"] == Pipe.MTE2) & (columns["kind"] == Kind.INSTRUCTION)
    rows = np.flatnonzero(loads & (columns["partner"] >= 0) & (columns["began"] >= 0))
    return int((columns["began"][rows] - columns["start"][rows]).sum())


def _kind(core: str) -> str:
    return "aic" if core.endswith("aic") else "aiv"


def _occupied(entry: Mapping[str, Any]) -> int:
    """Return the cycles a profiler counts as a pipe's time."""
    value = entry.get("occupied")
    return int(entry["busy"] if value is None else value) + int(
        entry["causes"].get("bank_conflict", 0)
    )


def _waited_for_flags(core: CoreLog) -> int:
    """Return the cycles that Fixpipes of a cube core waited for their unit flags: profilers count them as FIX's."""
    return sum(
        max(0, item.start - item.head)
        for item in core.items
        if item.pipe is Pipe.FIX and item.kind is Kind.INSTRUCTION and item.head >= 0
    )


def time_launch(
    kernel: Callable[..., Any], *args: Any, record: Record, cores: int, **options: Any
) -> Run:
    """Launch a kernel for its time only, on the record's chip; options as `launch` has them."""
    given: dict[str, Any] = {"chip": record.config, "numerics": "off", "checks": "off"} | options
    return sim.launch(kernel, *args, cores=cores, **given)


def sweep(points: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one mapping of lists from the mappings of a sweep's points, in their order; None for all-None lists."""
    rows = list(points)
    columns = {key: [row.get(key) for row in rows] for key in (rows[0] if rows else {})}
    return {
        key: None if all(value is None for value in column) else column
        for key, column in columns.items()
    }


def total(kernels: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sums of several kernels' times; None where none of them has a figure."""
    rows = list(kernels)
    result: dict[str, Any] = {}
    for key in {key: None for row in rows for key in row}:
        there = [row[key] for row in rows if isinstance(row.get(key), (int, float))]
        result[key] = sum(there) if there else None
    return result


def average(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are there."""
    there = [value for value in values if value is not None]
    return mean(there) if there else None
