"""Errors of simulated against measured figures: per record, per pair, and by grade and kind."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, median, quantiles
from typing import Any

from ascend_sim.accuracy.cases import CaseFile, Pair, Record
from ascend_sim.accuracy.measure import PIPES, TIMES

WHOLE = (
    "task_us", "total_us", "after_us", "cycles", "ticks_50mhz", "ns_per_add", "gbps_per_core", "gbps", "gib_s",
    "l0a_gib_s", "l0b_gib_s", "cached_gbps", "bypass_gbps", "cached_us", "bypass_us", "both_us", "flop_per_cycle",
    "aic_us", "aiv_us", "aic_max_us", "aiv_max_us",
)  # fmt: skip
"""Figures that stand for the whole of a record; the first that both sides have is its whole time."""

NO_CHANGE = 0.03
"""A measured gain closer to 1 than this has no sign."""


Ratio = float | list[float | None] | dict[str, float]


def ln_ratio(simulated: Any, measured: Any) -> Ratio | None:
    """Return ln(simulated / measured); of two lists (or mappings) a list (mapping) of those of their points.

    A measured [low, high] range against one simulated number counts as its middle; a fraction may be written
    "128/7". None where there is nothing to compare.
    """
    measured = _plain(measured)
    if isinstance(simulated, Mapping) and isinstance(measured, Mapping):
        common = {
            key: _point(simulated[key], measured[key]) for key in measured if key in simulated
        }
        there = {key: ratio for key, ratio in common.items() if ratio is not None}
        return there or None
    if isinstance(simulated, (list, tuple)) and isinstance(measured, (list, tuple)):
        points = [_point(one, other) for one, other in zip(simulated, measured, strict=False)]
        return points if any(point is not None for point in points) else None
    if isinstance(measured, (list, tuple)) and _number(simulated):
        values = [value for value in measured if _number(value)]
        measured = sum(values) / len(values) if values else None
    return _point(simulated, measured)


def _point(simulated: Any, measured: Any) -> float | None:
    measured = _plain(measured)
    if not (_number(simulated) and _number(measured)) or simulated <= 0 or measured <= 0:
        return None
    return math.log(simulated / measured)


def points(ratio: Ratio) -> list[float]:
    """Return the ratios of all points there are: one where it is no sweep."""
    values = ratio.values() if isinstance(ratio, Mapping) else ratio
    if not isinstance(values, Iterable):
        return [values]
    return [value for value in values if value is not None]


def error(ratio: Ratio) -> float:
    """Return how far off a figure is: |ln ratio|, of a sweep the mean over its points."""
    return mean(abs(point) for point in points(ratio))


def shift(ratio: Ratio) -> float:
    """Return to which side a figure is off: the ln ratio, of a sweep the mean over its points."""
    return mean(points(ratio))


def _plain(value: Any) -> Any:
    """Return a fraction written as text as a number, everything else as it is."""
    if isinstance(value, str):
        top, slash, bottom = value.partition("/")
        if slash and top.strip().isdigit() and bottom.strip().isdigit():
            return int(top) / int(bottom)
    return value


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def record_row(record: Record, simulated: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known of a record: id, grade, simulated, measured and the ln ratio of each common figure.

    `whole` names the figure that stands for its whole time, `whole_error` is how far that is off; a record that gives
    times of several kernels instead has the mean over them.
    """
    figures = record.figures
    ratios = {
        key: ratio
        for key, value in figures.items()
        if (ratio := ln_ratio(simulated.get(key), value)) is not None
    }
    whole = next((key for key in WHOLE if key in ratios), None)
    times = [key for key in ratios if key.endswith(("_us", "_ms")) and key[4:] not in PIPES]
    parts = [whole] if whole else [key for key in times if key not in PIPES]
    return {
        "id": record.id,
        "family": record.family,
        "grade": record.grade,
        "chip": record.config,
        "simulated": dict.fromkeys(TIMES) | dict(simulated),
        "measured": dict(figures) or None,
        "ln_ratio": ratios,
        "whole": whole or next(iter(parts), None),
        "whole_error": mean(error(ratios[key]) for key in parts) if parts else None,
    }


def pair_row(
    cases: CaseFile, pair: Pair, simulated: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any] | None:
    """Return measured and simulated gain of a pair; None where one of its records was not simulated."""
    if pair.before not in simulated or pair.after not in simulated:
        return None
    gain = simulated_gain(pair, simulated[pair.before], simulated[pair.after])
    row: dict[str, Any] = {
        "id": pair.id, "grade": cases.grade(pair), "metric": pair.metric, "what_changed": pair.what_changed,
        "measured": pair.gain, "simulated": gain, "ln_ratio": None, "sign": None,
    }  # fmt: skip
    if gain is not None and pair.gain is not None:
        row["ln_ratio"] = math.log(gain / pair.gain)
        if abs(pair.gain - 1) > NO_CHANGE:
            row["sign"] = (gain > 1) == (pair.gain > 1)
    return row


def simulated_gain(pair: Pair, before: Mapping[str, Any], after: Mapping[str, Any]) -> float | None:
    """Return time before over time after, of rates the other way round."""
    metric = {"aic_avg_us": "aic_us"}.get(pair.metric, pair.metric)
    old, new = before.get(metric), after.get(metric)
    ratio = ln_ratio(new, old)
    gain = None if ratio is None else math.exp(-shift(ratio))
    return 1 / gain if gain and metric == "tflops" else gain


def summary(
    rows: Sequence[Mapping[str, Any]], pairs: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return median and ninth decile of the errors, by grade and kind."""
    result: dict[str, Any] = {}
    for grade in ("A", "B", "C"):
        mine = [row for row in rows if row["grade"] == grade]
        whole = [row["whole_error"] for row in mine if row["whole_error"] is not None]
        parts = [
            error(row["ln_ratio"][pipe])
            for row in mine
            for pipe in PIPES
            if pipe in row["ln_ratio"]
        ]
        both = [row for row in pairs if row["grade"] == grade and row["ln_ratio"] is not None]
        signs = [row["sign"] for row in both if row["sign"] is not None]
        result[grade] = {
            "records": len(mine),
            "whole": spread(whole),
            "pipes": spread(parts),
            "pairs": spread([abs(row["ln_ratio"]) for row in both]),
            "signs_right": sum(signs),
            "signs": len(signs),
        }
    return result


def spread(values: Sequence[float]) -> dict[str, float | int | None]:
    """Return count, median and the value that nine in ten stay under."""
    if not values:
        return {"count": 0, "median": None, "p90": None}
    high = values[0] if len(values) == 1 else quantiles(values, n=10, method="inclusive")[-1]
    return {"count": len(values), "median": median(values), "p90": high}
