"""Where two runs differ: along their critical paths, and in what each kind of pipe spent its time on.

The critical path of a run adds up to its cycles, and so do the causes of every pipe: the columns of both
tables add up to the difference of the two runs. Lines that moved between two versions of a file are matched by
their text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
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
_SHOWN = 8
NO_CORE = "no core"
"""Stands for a cause in the run that has no core of a kind."""


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
    of pipe, line, cause and sub-cause, as the mean over the cores that have it; a run without such cores has a row of
    the cause `no core`. The changes of `path`, and those of each pipe in `pipes`, add up to the change of the
    cycles. The largest change comes first, `no core` last.

    `same_kernel` is false where the two share no source: then rows have no lines. `launch` has by name what differs
    in how they were launched, `renamed` the second run's files that are versions of files with another name.
    """

    names: tuple[str, str]
    cycles: tuple[int, int]
    time_us: tuple[float, float]
    path: list[Row]
    pipes: list[Row]
    totals: dict[str, tuple[float, float]]
    same_kernel: bool
    launch: dict[str, tuple[Any, Any]]
    renamed: dict[str, str]

    @property
    def title(self) -> str:
        """What was compared: the kernel, or both."""
        before, after = self.names
        return before if before == after else f"{before} -> {after}"

    @property
    def notes(self) -> list[str]:
        """What a reader must know before the figures: whether these are two kernels, what differs in the launch."""
        found = []
        if not self.same_kernel:
            found.append(
                f"{self.names[0]} and {self.names[1]} are different kernels that share no source: their pipes and "
                "causes are compared, lines would mean nothing."
            )
        found += [
            f"{after} is compared as a new version of {before}; lines are those of {before}."
            for after, before in self.renamed.items()
        ]
        changed = [
            f"{name} {_said(before)} -> {_said(after)}"
            for name, (before, after) in self.launch.items()
            if name != "op" and (self.same_kernel or None not in (before, after))
        ]
        if changed:
            rest = f", and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
            found.append(f"Launched differently: {', '.join(changed[:_SHOWN])}{rest}.")
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return the difference as plain JSON."""
        return {
            "schema_version": 1,
            "runs": list(self.names),
            "same_kernel": self.same_kernel,
            "launch": {name: list(values) for name, values in self.launch.items()},
            "renamed": self.renamed,
            "cycles": list(self.cycles),
            "time_us": list(self.time_us),
            "change": self.cycles[1] - self.cycles[0],
            "critical_path": _as_dicts(self.path),
            "pipes": _as_dicts(self.pipes),
            "totals": {name: list(values) for name, values in self.totals.items()},
        }


def _said(value: Any) -> str:
    return "-" if value is None else str(value)


def _as_dicts(rows: Iterable[Row]) -> list[dict[str, Any]]:
    return [
        dict(zip(_KEYS, row.key, strict=True))
        | {"before": row.before, "after": row.after, "change": row.change}
        for row in rows
    ]


def diff(first: Comparable, second: Comparable) -> Difference:
    """Return where two runs differ. Of two kernels that share no source, pipes and causes are compared, not lines."""
    lines = Lines(first.sources, second.sources)
    alike = first.op == second.op or lines.shared
    names: list[_Name] = [str, lines.old] if alike else [_no_line, _no_line]
    runs = list(zip((first, second), names, strict=True))
    pipes = [_pipes(run.ledger, name) for run, name in runs]
    _fill(pipes, (first.cycles, second.cycles))
    return Difference(
        (first.op, second.op),
        (first.cycles, second.cycles),
        (first.time_us, second.time_us),
        _rows(*[_path(run, name) for run, name in runs]),
        _rows(*pipes),
        _totals(first, second),
        alike,
        launch_changes(first.summary, second.summary),
        lines.renamed if alike else {},
    )


_Name = Callable[[str], str]


def _no_line(_: str) -> str:
    return ""


def _path(run: Comparable, name: _Name) -> dict[tuple[str, ...], float]:
    sums: dict[tuple[str, ...], float] = {}
    for row in run.critical_path().by("pipe", "place", "cause", "sub_cause"):
        key = (row["pipe"], name(row["place"]), row["cause"], row["sub_cause"])
        sums[key] = sums.get(key, 0) + row["cycles"]
    return sums


def _pipes(ledger: Ledger, name: _Name) -> dict[tuple[str, ...], float]:
    sums: dict[tuple[str, ...], float] = {}
    text = Texts(ledger)
    kinds = [entry.core.kind for entry in ledger]
    for number, entry in enumerate(ledger):
        kind = entry.core.kind
        for values, cycles, _ in grouped(core_rows(number, ledger), _KEYS, text):
            pipe, line, cause, sub = values
            key = (f"{kind.value}.{pipe}", name(line), cause, sub)
            sums[key] = sums.get(key, 0) + cycles / kinds.count(kind)
    return sums


def _fill(pipes: Sequence[dict[tuple[str, ...], float]], cycles: Sequence[int]) -> None:
    """Give a run that has no core of some kind a row for each pipe of it, so that its columns add up as well."""
    there = [{key[0] for key in own} for own in pipes]
    for own, known, whole, other in zip(pipes, there, cycles, reversed(there), strict=True):
        for pipe in other - known:
            own[pipe, "", NO_CORE, ""] = whole


_LAUNCH = ("op", "chip", "block_dim", "l2_start", "options", "shape", "tiling")


def launch_changes(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> dict[str, tuple[Any, Any]]:
    """Return by name what differs in how two runs were launched: chip, blocks, options, tiling."""
    one, two = (
        dict(pair for name in _LAUNCH for pair in _flat(name, summary.get(name)))
        for summary in (before, after)
    )
    return {
        name: (one.get(name), two.get(name))
        for name in dict.fromkeys((*one, *two))
        if one.get(name) != two.get(name)
    }


def _flat(name: str, value: Any) -> Iterable[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        return [(name, value)]
    return [(key, entry) for key, entry in value.items() if not isinstance(entry, (Mapping, list))]


def _rows(
    before: Mapping[tuple[str, ...], float], after: Mapping[tuple[str, ...], float]
) -> list[Row]:
    keys = dict.fromkeys((*before, *after))
    rows = [Row(key, before.get(key, 0), after.get(key, 0)) for key in keys]
    return sorted(rows, key=lambda row: (row.key[2] == NO_CORE, -abs(row.change)))


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
