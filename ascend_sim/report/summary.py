"""The summary of a run: the dictionary that `summary.json` holds and other people's scripts read.

A pure function of log, chip and what the caller knows besides. Every value is plain JSON: what is read
back from the file equals what was written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ascend_sim.config import Chip
from ascend_sim.errors import Finding
from ascend_sim.report.advice import advise, gather_facts
from ascend_sim.report.bounds import as_written, gm_work, lower_bound, roofline
from ascend_sim.report.habits import habits
from ascend_sim.report.ledger import (
    Ledger,
    build_ledger,
    overlap_cycles,
    pipe_totals,
    stall_totals,
)
from ascend_sim.report.names import short_path
from ascend_sim.report.traffic import tally
from ascend_sim.trace import Log

SCHEMA_VERSION = 1

FINDING_KEYS = (
    "kind", "code", "message", "file", "line", "core", "pipe", "tensor", "bytes", "struck",
)  # fmt: skip


def build_summary(
    log: Log,
    chip: Chip,
    findings: Sequence[Finding],
    numerics: Mapping[str, Any] | None,
    extra: Mapping[str, Any],
    ledger: Ledger | None = None,
) -> dict[str, Any]:
    """Return the summary of a run.

    `numerics` is None where nothing was compared, else max_abs_error, max_rel_error, mismatches,
    bit_exact and reference; further references stand in it as mappings of the same keys. `extra` gives
    `op` (name of operator or kernel), `block_dim` and `l2_start` (here or in `options`); its other keys
    are appended as they are. `ledger` saves building it again. Raises `SimulatorBug` where the log's time
    does not tile.
    """
    ledger = build_ledger(log) if ledger is None else ledger
    totals = pipe_totals(log, ledger)
    whole, phases = tally(ledger)
    l2_start = extra.get("l2_start") or extra.get("options", {}).get("l2_start", "cold")
    cold = l2_start != "warm"
    gm = gm_work(ledger, chip, whole, cold=cold)
    bound = lower_bound(ledger, totals, gm)
    known = {
        "schema_version": SCHEMA_VERSION,
        "op": extra.get("op", ""),
        "chip": chip.name,
        "block_dim": extra.get("block_dim", sum(len(core.blocks) for core in log.cores)),
        "cycles": log.cycles,
        "launch_cycles": log.launch_cycles,
        "time_us": round(log.cycles / log.clock_mhz, 6),
        "l2_start": l2_start,
        "numerics": plain(numerics),
        "pipes": totals,
        **whole.as_dict(),
        "phases": {
            name: {"cycles": counts.cycles, **counts.as_dict()} for name, counts in phases.items()
        },
        "stalls": stall_totals(totals),
        "overlap": overlap_cycles(ledger),
        "bound": bound,
        "as_written": as_written(ledger, chip, bound),
        "roofline": roofline(ledger, chip, whole, totals, cold=cold),
        "findings": [finding_entry(finding, FINDING_KEYS) for finding in findings],
        "advice": advise(
            totals,
            log.cycles,
            log.launch_cycles,
            gather_facts(ledger, max(gm.values())),
            habits(ledger, totals, {"aic": chip.cores.aic, "aiv": chip.cores.aiv}),
        ),
    }
    return known | {key: value for key, value in extra.items() if key not in known}


def finding_entry(finding: Finding, keys: Sequence[str]) -> dict[str, Any]:
    """Return a finding as plain JSON: its file shortened, its byte range a list."""
    entry = {key: getattr(finding, key) for key in keys}
    entry["file"] = short_path(finding.file)
    if finding.edit:
        entry["edit"] = finding.edit
    entry["bytes"] = list(finding.bytes) if finding.bytes is not None else None
    return entry


def plain(value: Any) -> Any:
    """Return mappings and sequences as dicts and lists, numpy scalars as Python's numbers.

    JSON has no NaN and no infinity: they become None.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    number = value.item() if hasattr(value, "item") else value
    return None if isinstance(number, float) and not math.isfinite(number) else number
