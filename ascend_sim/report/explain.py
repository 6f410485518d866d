"""Why a line is slow, in plain sentences: what it does, what its time went to, what waited and for whom."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from ascend_sim.errors import ConfigError
from ascend_sim.report.critical_path import CriticalPath
from ascend_sim.report.ledger import Ledger
from ascend_sim.report.names import short_path
from ascend_sim.report.slack import slack
from ascend_sim.report.stalls import stall_table
from ascend_sim.trace import Kind
from isa.types import Pipe

Suggest = Callable[[str, Iterable[str]], str]
"""Says which of some names is meant by another one: "; did you mean 'x'?", or nothing."""


class Explainable(Protocol):
    """What a run has to have so that a line of it can be explained."""

    chip: Any

    @property
    def cycles(self) -> int:
        """Its cycles."""
        ...

    @property
    def ledger(self) -> Ledger:
        """Where its cycles went."""
        ...

    def critical_path(self) -> CriticalPath:
        """Its critical path."""
        ...


_WHY = {
    "busy": "was busy",
    "memory/latency": "waited for GM to answer",
    "memory/l2_miss": "waited for HBM (the bytes were not in L2)",
    "memory/share": "had to share the way to GM with other transfers",
    "memory/same_line": "waited because others used the same line of GM",
    "bank_conflict": "repeated accesses (operands lie in the same UB banks)",
    "flag": "waited for a flag",
    "buffer": "waited for a buffer of a queue to be freed",
    "barrier": "stood at a barrier until earlier results were there",
    "queue_full": "found no room in the pipe's instruction queue",
    "scalar": "had nothing to do (the scalar unit had not issued it yet)",
    "cross_core": "waited for another core",
    "handover": "the flag was on its way",
    "idle": "had no work left",
    "launch": "had not begun",
    "tail": "was done",
}
_WHY_SCALAR = "waited for its own code (instruction cache misses)"
"""What cause `scalar` is on the scalar unit itself."""


def explain_line(run: Explainable, place: str, nearest: Suggest) -> dict[str, Any]:
    """Return what there is to say of a line `FILE:N`: figures, and `text`, sentences made of them.

    Raises `ConfigError` for a line on which the run did nothing, with the lines that there are.
    """
    rows = stall_table(
        run.ledger,
        ("line", "pipe", "cause", "sub_cause", "name", "set_pipe", "set_line", "late"),
    )
    line = _find(place, rows, nearest)
    own = [row for row in rows if row["line"] == line]
    counts = _counts(run, line)
    path = _on_path(run, line)
    waited_on = [row for row in rows if row["set_line"] == line and row["line"] != line]
    return {
        "line": line,
        "instructions": counts,
        "cycles": _sum(own, "pipe", "cause", "sub_cause"),
        "waits": _sum(
            [row for row in own if row["set_pipe"]], "pipe", "set_pipe", "set_line", "late"
        ),
        "waited_on": _sum(waited_on, "pipe", "line", "late"),
        "critical_path": path,
        "text": [
            _what(line, counts),
            *_where(own, max((one["cores"] for one in counts), default=len(run.ledger))),
            *_late(own),
            *_blocks(line, waited_on),
            _critical(path, run.cycles, counts),
        ],
    }


def _find(place: str, rows: list[dict[str, Any]], nearest: Suggest) -> str:
    lines = sorted({row["line"] for row in rows if row["line"]})
    file, _, number = place.rpartition(":")
    if not number.isdigit():
        raise ConfigError(f"--line takes FILE:N, such as kernel.py:41, and got {place!r}")
    matches = [line for line in lines if line == place or line.endswith(f"/{place}")]
    if len(matches) == 1:
        return str(matches[0])
    if matches:
        raise ConfigError(f"{place} stands for several lines: {', '.join(matches)}")
    near = [line for line in lines if line.rpartition(":")[0].endswith(file)]
    if near:
        near.sort(key=lambda line: abs(int(line.rpartition(":")[2]) - int(number)))
        raise ConfigError(
            f"the run issued nothing at {place}; the nearest lines that did: {', '.join(near[:3])}"
        )
    files = sorted({line.rpartition(":")[0] for line in lines})
    raise ConfigError(
        f"the run has no line of {file}{nearest(file, files)} (files: {', '.join(files) or 'none'})"
    )


def _counts(run: Explainable, line: str) -> list[dict[str, Any]]:
    """Return how often each instruction of the line ran, its bytes and work, and its least slack."""
    log, spare = run.ledger.log, slack(run.ledger, run.chip)
    sites = [
        number
        for number, site in enumerate(log.sites)
        if site.file and f"{short_path(site.file)}:{site.line}" == line
    ]
    sums: dict[tuple[str, str], dict[str, Any]] = {}
    for number, entry in enumerate(run.ledger):
        columns = entry.columns
        for row in np.flatnonzero(np.isin(columns["site"], sites)).tolist():
            item = columns.items[row]
            name = run.ledger.names.things[item["name"]]
            key = (name, Pipe(item["pipe"]).name)
            known = sums.setdefault(
                key,
                {"name": name, "pipe": key[1], "count": 0, "bytes": 0, "work": 0, "cores": set(),
                 "instruction": item["kind"] == Kind.INSTRUCTION, "slack": None},
            )  # fmt: skip
            known["count"] += 1
            known["bytes"] += int(item["bytes"])
            known["work"] += int(item["work"])
            known["cores"].add(number)
            own = int(spare[number][row])
            if own >= 0:
                known["slack"] = own if known["slack"] is None else min(known["slack"], own)
    for known in sums.values():
        known["cores"] = len(known["cores"])
        known["instruction"] = bool(known["instruction"])
    return list(sums.values())


def _on_path(run: Explainable, line: str) -> dict[str, int]:
    sums: dict[str, int] = {}
    for row in run.critical_path().by("place", "cause", "sub_cause"):
        if row["place"] == line:
            word = _word(row)
            sums[word] = sums.get(word, 0) + row["cycles"]
    return sums


def _sum(rows: list[dict[str, Any]], *keys: str) -> list[dict[str, Any]]:
    sums: dict[tuple[Any, ...], int] = {}
    for row in rows:
        key = tuple(row[name] for name in keys)
        sums[key] = sums.get(key, 0) + row["cycles"]
    ordered = sorted(sums.items(), key=lambda entry: -entry[1])
    return [dict(zip(keys, key, strict=True)) | {"cycles": cycles} for key, cycles in ordered]


def _word(row: Mapping[str, Any]) -> str:
    return f"{row['cause']}/{row['sub_cause']}" if row["sub_cause"] else str(row["cause"])


def _what(line: str, counts: list[dict[str, Any]]) -> str:
    parts = []
    for one in counts:
        part = f"{one['name']} on {one['pipe']} {one['count']:,} times on {_cores(one['cores'])}"
        if one["bytes"]:
            part += f", {one['bytes'] // one['count']:,} bytes each"
        parts.append(part)
    return f"{line} issues {'; '.join(parts)}."


def _where(own: list[dict[str, Any]], cores: int) -> list[str]:
    """Say what the pipes did at this line, the largest first."""
    sentences = []
    for pipe in [row["pipe"] for row in _sum(own, "pipe")]:
        rows = _sum([row for row in own if row["pipe"] == pipe], "cause", "sub_cause")
        whole = sum(row["cycles"] for row in rows)
        told = [
            f"{100 * row['cycles'] / whole:.0f} % of it {_why(pipe, _word(row))}"
            for row in rows[:4]
            if row["cycles"] >= 0.02 * whole
        ]
        sentences.append(
            f"{pipe} spent {whole:,} cycles on it ({_cores(cores)} together): {_list(told)}."
        )
    return sentences


def _why(pipe: str, word: str) -> str:
    return _WHY_SCALAR if (pipe, word) == ("S", "scalar") else _WHY[word]


def _late(own: list[dict[str, Any]]) -> list[str]:
    """Say for whom the line waited, and what that pipe did meanwhile."""
    sentences = []
    waits = [row for row in own if row["set_pipe"]]
    for wait in _sum(waits, "pipe", "set_pipe", "set_line")[:3]:
        keys = ("pipe", "set_pipe", "set_line")
        rows = _sum([row for row in waits if all(row[k] == wait[k] for k in keys)], "late")
        told = [
            f"{_WHY.get(row['late'], row['late'])} ({100 * row['cycles'] / wait['cycles']:.0f} %)"
            for row in rows[:4]
            if row["cycles"] >= 0.02 * wait["cycles"]
        ]
        sentences.append(
            f"{wait['pipe']} waited {wait['cycles']:,} cycles for the flag that {wait['set_pipe']} sets at "
            f"{wait['set_line']}; meanwhile {wait['set_pipe']}: {_list(told)}."
        )
    return sentences


def _blocks(line: str, waited_on: list[dict[str, Any]]) -> list[str]:
    rows = _sum(waited_on, "pipe", "line")
    if not rows:
        return []
    told = [f"{row['pipe']} {_at(row['line'])} ({row['cycles']:,} cycles)" for row in rows[:3]]
    return [f"What waits for the flag set here: {_list(told)}."]


def _at(line: str) -> str:
    return f"at {line}" if line else "where the kernel ends"


def _critical(path: Mapping[str, int], cycles: int, counts: list[dict[str, Any]]) -> str:
    on_it = sum(path.values())
    if on_it:
        main = max(path, key=lambda word: path[word])
        return (
            f"On the critical path it takes {on_it:,} of {cycles:,} cycles ({100 * on_it / cycles:.1f} %), most of "
            f"them because it {_WHY.get(main, main)}."
        )
    spare = [one["slack"] for one in counts if one["slack"] is not None]
    if not spare:
        return "It is not on the critical path."
    return f"It is not on the critical path: it could take {min(spare):,} cycles longer before the run would."


def _cores(count: int) -> str:
    return "1 core" if count == 1 else f"{count} cores"


def _list(parts: list[str]) -> str:
    if len(parts) < 2:
        return parts[0] if parts else "nothing worth a word"
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
