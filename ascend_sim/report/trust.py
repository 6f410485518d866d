"""How far a run's time can be trusted: what its critical path rests on, by the confidence of the chip's figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ascend_sim.config import Chip
from ascend_sim.report.critical_path import CriticalPath

_ORDER = "HML"
_MEMORY = {
    "latency": ("gm.latency_l2_read",),
    "l2_miss": ("gm.latency_hbm", "gm.window_aiv"),
    "share": ("hbm.gbps", "l2.read_gbps"),
    "same_line": ("gm.same_line", "hbm.row_cycle"),
}
_PORT = {
    ("MTE2", "aiv"): ("gm.read_port_aiv",),
    ("MTE2", "aic"): ("gm.read_port_aic",),
    ("MTE3", "aiv"): ("gm.write_port_aiv", "gm.write_head"),
    ("MTE3", "aic"): ("gm.write_port_aic", "gm.write_head"),
    ("FIX", "aic"): ("fixpipe.gm_port", "fixpipe.gm_head"),
    ("MTE1", "aic"): ("mte1.l0a_port", "mte1.l0b_port"),
    ("M", "aic"): ("cube.issue", "cube.depth"),
}
_SCALAR = {
    "V": "scalar.vector_issue", "M": "scalar.cube_issue", "MTE1": "scalar.cube_issue",
    "MTE2": "scalar.move_issue", "MTE3": "scalar.move_issue", "FIX": "scalar.move_issue",
}  # fmt: skip
_OWN = {
    "set_value": ("scalar.ub_access",), "get_value": ("scalar.ub_access",), "tpipe": ("scalar.pipe_init",),
    "sync_all": ("sync.sync_all_us",),
}  # fmt: skip


def trust(path: CriticalPath, chip: Chip) -> dict[str, Any]:
    """Return cycles of the critical path by the confidence of the figures that they rest on.

    `low_share`: the part of the run's time that rests on a figure of low confidence; `low_keys` those figures with
    their cycles, the most first. What no figure of the chip decides counts as high.
    """
    cycles = dict.fromkeys(_ORDER, 0)
    low: dict[str, int] = {}
    known: dict[tuple[str, ...], tuple[str, str]] = {}
    for row in path.rows():
        kind = row["core"].rpartition(".")[2][:3]
        features = (row["pipe"], row["name"], row["what"], row["cause"], row["sub_cause"], kind)
        found = known.get(features)
        if found is None:
            found = known[features] = _weakest(_keys(*features), chip)
        letter, key = found
        cycles[letter] += row["cycles"]
        if letter == "L":
            low[key] = low.get(key, 0) + row["cycles"]
    whole = sum(cycles.values())
    return {
        "cycles": cycles,
        "low_share": round(cycles["L"] / whole, 6) if whole else 0.0,
        "low_keys": dict(sorted(low.items(), key=lambda entry: (-entry[1], entry[0]))),
    }


def _keys(pipe: str, name: str, what: str, cause: str, sub: str, kind: str) -> Iterable[str]:
    """Return the chip's figures that decide a row of the critical path."""
    if what == "launch":
        return ("launch.base_us", "launch.per_core_us")
    if what == "fetch":
        return ("icache.call_bytes", "icache.miss")
    if what == "issue":
        return (_SCALAR.get(pipe, "scalar.flag_issue"),)
    if what in ("set", "handover"):
        return ("sync.set", "sync.visible") if cause != "cross_core" else ("sync.cross_core",)
    if cause == "memory":
        return _MEMORY.get(sub, ("gm.latency_l2_read",))
    if cause == "bank_conflict":
        return ("ub_banks.groups",)
    if pipe == "V":
        return (f"vector_costs.{name}", "vector.drain")
    if pipe == "S":
        return _OWN.get(name, ("scalar.flag_issue",))
    return _PORT.get((pipe, kind), ())


def _weakest(keys: Iterable[str], chip: Chip) -> tuple[str, str]:
    """Return the lowest confidence among some figures, and which one has it."""
    worst = ("H", "")
    for key in keys:
        for letter in _confidences(key, chip):
            if _ORDER.index(letter) > _ORDER.index(worst[0]):
                worst = (letter, key)
    return worst


def _confidences(key: str, chip: Chip) -> Iterable[str]:
    """Return the confidence of a figure; of a vector instruction's prices those of the types with one of their own."""
    section, _, name = key.partition(".")
    if section != "vector_costs":
        return (chip.source_of(key).confidence,)
    costs: Mapping[str, Any] = chip.vector_costs.get(name, {})
    types = [of for of in costs if of != "any"] or list(costs)
    return [chip.source_of(f"{key}.{of}.slope").confidence for of in types]
