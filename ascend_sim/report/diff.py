"""Where two runs differ: along their critical paths, and in what each kind of pipe spent its time on.

The critical path of a run adds up to its cycles, and so do the causes of every pipe: the columns of both
tables add up to the difference of the two runs. Lines that moved between two versions of a file are matched by
their text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ascend_sim.errors import ConfigError
from ascend_sim.report.critical_path import CriticalPath
from ascend_sim.report.ledger import Ledger
from ascend_sim.report.sources import Lines
from ascend_sim.report.stalls import Texts, core_rows, grouped
from ascend_sim.trace import Cause
from isa.types import Pipe

_KEYS = ("pipe", "line", "cause", "sub_cause")


class Comparable(Protocol):
    """What a run has to have to be compared."""

    op: str

    @property
    def cycles(self) -> int:
        """Its cycles."""
        ...

    @property
    def time_us(self) -> float:
        """Its time in microseconds."""
        ...

    @property
    def ledger(self) -> Ledger:
        """Where its cycles went."""
        ...

    @property
    def summary(self) -> Mapping[str, Any]:
        """What `summary.json` holds."""
        ...

    @property
    def sources(self) -> Mapping[str, str]:
        """The text of its files."""
        ...

    def critical_path(self) -> CriticalPath:
        """Its critical path."""
        ...


@dataclass(slots=True)
class Row:
    """Cycles of the two runs under one key."""

    key: tuple[str, ...]
    before: float
    after: float

    @property
    def change(self) -> float:
        """How many cycles more the second run has."""
        return self.after - self.before


@dataclass(slots=True)
class Difference:
    """Two runs beside each other.

    `path` has a row for each pipe, line, cause and sub-cause on either critical path, `pipes` one for each kind
    of pipe, line, cause and sub-cause, as the mean over the cores that have it. The changes of `path`, and those of
    each pipe in `pipes`, add up to the change of the cycles. The largest change comes first.
    """

    names: tuple[str, str]
    cycles: tuple[int, int]
    time_us: tuple[float, float]
    path: list[Row]
    pipes: list[Row]
    totals: dict[str, tuple[float, float]]

    def as_dict(self) -> dict[str, Any]:
        """Return the difference as plain JSON."""
        return {
            "schema_version": 1,
            "runs": list(self.names),
            "cycles": list(self.cycles),
            "time_us": list(self.time_us),
            "change": self.cycles[1] - self.cycles[0],
            "critical_path": _as_dicts(self.path),
            "pipes": _as_dicts(self.pipes),
            "totals": {name: list(values) for name, values in self.totals.items()},
        }


def _as_dicts(rows: Iterable[Row]) -> list[dict[str, Any]]:
    return [
        dict(zip(_KEYS, row.key, strict=True))
        | {"before": row.before, "after": row.after, "change": row.change}
        for row in rows
    ]


def diff(first: Comparable, second: Comparable) -> Difference:
    """Return where two runs differ."""
    same = Lines({}, {})
    lines = Lines(first.sources, second.sources)
    path = [_path(run, names) for run, names in ((first, same), (second, lines))]
    pipes = [_pipes(run.ledger, names) for run, names in ((first, same), (second, lines))]
    return Difference(
        (first.op, second.op),
        (first.cycles, second.cycles),
        (first.time_us, second.time_us),
        _rows(*path),
        _rows(*pipes),
        _totals(first, second),
    )


def _path(run: Comparable, lines: Lines) -> dict[tuple[str, ...], float]:
    sums: dict[tuple[str, ...], float] = {}
    for row in run.critical_path().by("pipe", "place", "cause", "sub_cause"):
        key = (row["pipe"], lines.old(row["place"]), row["cause"], row["sub_cause"])
        sums[key] = sums.get(key, 0) + row["cycles"]
    return sums


def _pipes(ledger: Ledger, lines: Lines) -> dict[tuple[str, ...], float]:
    sums: dict[tuple[str, ...], float] = {}
    text = Texts(ledger)
    kinds = [entry.core.kind for entry in ledger]
    for number, entry in enumerate(ledger):
        kind = entry.core.kind
        for values, cycles, _ in grouped(core_rows(number, ledger), _KEYS, text):
            pipe, line, cause, sub = values
            key = (f"{kind.value}.{pipe}", lines.old(line), cause, sub)
            sums[key] = sums.get(key, 0) + cycles / kinds.count(kind)
    return sums


def _rows(
    before: Mapping[tuple[str, ...], float], after: Mapping[tuple[str, ...], float]
) -> list[Row]:
    keys = dict.fromkeys((*before, *after))
    rows = [Row(key, before.get(key, 0), after.get(key, 0)) for key in keys]
    return sorted(rows, key=lambda row: -abs(row.change))


def _totals(first: Comparable, second: Comparable) -> dict[str, tuple[float, float]]:
    """Return what a gate can be set on: time, causes over all pipes, what pipes were occupied, bytes of GM."""
    one, two = first.summary, second.summary
    totals: dict[str, tuple[float, float]] = {"total": (first.time_us, second.time_us)}
    totals["cycles"] = (first.cycles, second.cycles)
    for cause in Cause:
        totals[cause.value] = (one["stalls"][cause.value], two["stalls"][cause.value])
    for pipe in Pipe:
        totals[pipe.name] = (_occupied(one, pipe), _occupied(two, pipe))
    for name in ("gm_read", "gm_write"):
        totals[name] = (one["bytes"][name], two["bytes"][name])
    return totals


def _occupied(summary: Mapping[str, Any], pipe: Pipe) -> float:
    cycles: float = sum(
        core[pipe.name]["occupied"] for core in summary["pipes"].values() if pipe.name in core
    )
    return cycles


# ---- gates ----------------------------------------------------------------------------------

_GATE = re.compile(r"\s*([A-Za-z_0-9]+)\s*:\s*([+-]?\d+(?:\.\d+)?)\s*(%?)\s*")


def read_gate(text: str, suggest: Callable[[str, Iterable[str]], str]) -> tuple[str, float, bool]:
    """Return name, limit and whether it is a percentage of a gate such as `total:+2%`.

    Raises `ConfigError` for a text of another form and for a name that no total has.
    """
    match = _GATE.fullmatch(text)
    if match is None:
        raise ConfigError(
            f"--fail-on takes NAME:+LIMIT, such as total:+2% or cycles:+100, and got {text!r}"
        )
    name, limit, percent = match.groups()
    known = [
        "total", "cycles", *(cause.value for cause in Cause), *(pipe.name for pipe in Pipe),
        "gm_read", "gm_write",
    ]  # fmt: skip
    if name not in known:
        raise ConfigError(
            f"--fail-on {text}: there is no total {name!r}{suggest(name, known)} (there are: {', '.join(known)})"
        )
    return name, float(limit), percent == "%"


def broken(difference: Difference, gate: tuple[str, float, bool]) -> str | None:
    """Return what a gate says where the second run is beyond it, else None."""
    name, limit, percent = gate
    before, after = difference.totals[name]
    allowed = before * (1 + limit / 100) if percent else before + limit
    if after <= allowed + 1e-9 * max(abs(allowed), 1):
        return None
    grown = f"{100 * (after - before) / before:+.2f} %" if before else f"{after - before:+g}"
    unit = " us" if name == "total" else ""
    return (
        f"{name} went from {before:,.6g}{unit} to {after:,.6g}{unit} ({grown}); the limit is "
        f"{limit:+g}{' %' if percent else unit}"
    )


# ---- text -----------------------------------------------------------------------------------


def markdown(difference: Difference, most: int = 15) -> str:
    """Return the difference as Markdown, for a pull request."""
    before, after = difference.cycles
    share = f" ({100 * (after - before) / before:+.2f} %)" if before else ""
    lines = [
        f"**{difference.names[1]}**: {before:,} → {after:,} cycles, {after - before:+,}{share}; "
        f"{difference.time_us[0]:,.3f} → {difference.time_us[1]:,.3f} µs",
        "",
    ]
    for title, rows in (
        ("Critical path", difference.path), ("Pipes, mean of their cores", difference.pipes),
    ):  # fmt: skip
        changed = [row for row in rows if round(row.change)]
        if not changed:
            continue
        lines += [f"{title}", "", "| pipe | line | cause | before | after | change |"]
        lines += ["|---|---|---|---:|---:|---:|"]
        for row in changed[:most]:
            pipe, line, *cause = row.key
            word = "/".join(part for part in cause if part)
            lines.append(
                f"| {pipe} | {line} | {word} | {row.before:,.0f} | {row.after:,.0f} | {row.change:+,.0f} |"
            )
        rest = sum(row.change for row in changed[most:])
        if changed[most:]:
            lines.append(f"| | {len(changed) - most} more | | | | {rest:+,.0f} |")
        lines.append("")
    return "\n".join(lines)
