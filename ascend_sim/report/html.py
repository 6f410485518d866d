"""`report.html`: the whole run in one file that opens anywhere, without a network.

This module gathers the data; what the page does with them stands in `page/`. BokehJS comes from the installed
package and is embedded; the package itself is not imported.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, TextIO

import numpy as np

from ascend_sim.config import Chip
from ascend_sim.errors import ConfigError
from ascend_sim.report.critical_path import CriticalPath
from ascend_sim.report.ledger import Ledger
from ascend_sim.report.memory_map import residents
from ascend_sim.report.names import short_path
from ascend_sim.report.slices import LABELS, Lane, lanes, pack, packed
from ascend_sim.report.stalls import stall_table
from ascend_sim.trace import Kind
from isa.types import Pipe, Space

_PAGE = Path(__file__).parent / "page"
_TEXTS = 40_000
_RESIDENTS = 20_000
_CORES_WITH_A_MAP = 2


class Showable(Protocol):
    """What a run has to have to be shown."""

    @property
    def chip(self) -> Chip:
        """Where it ran."""
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


def write_html(run: Showable, stream: TextIO, what_if: Mapping[str, Any] | None = None) -> None:
    """Write the page; `what_if` is the table of `what-if`, where somebody has asked for it.

    Raises `ConfigError` where the package bokeh is not installed.
    """
    data = json.dumps(_data(run, what_if), ensure_ascii=False, allow_nan=False)
    text = (_PAGE / "page.html").read_text(encoding="utf-8")
    parts = {
        "TITLE": f"{run.summary['op']} on {run.summary['chip']}",
        "STYLE": (_PAGE / "page.css").read_text(encoding="utf-8"),
        "BOKEH": "\n".join(_bokeh(name) for name in ("bokeh.min.js", "bokeh-api.min.js")),
        "DATA": data.replace("</", "<\\/"),
        "SCRIPT": "\n".join(
            (_PAGE / name).read_text(encoding="utf-8")
            for name in ("timeline.js", "panes.js", "page.js")
        ),
    }
    for piece in text.split("@@"):
        stream.write(parts.get(piece, piece))


def has_bokeh() -> bool:
    """Return whether the plotting library is installed."""
    return find_spec("bokeh") is not None


def _bokeh(name: str) -> str:
    spec = find_spec("bokeh")
    if spec is None or spec.origin is None:
        raise ConfigError("report.html needs the package bokeh: pip install bokeh")
    path = Path(spec.origin).parent / "server" / "static" / "js" / name
    return path.read_text(encoding="utf-8").replace("</script", "<\\/script")


def _data(run: Showable, what_if: Mapping[str, Any] | None) -> dict[str, Any]:
    ledger, summary = run.ledger, run.summary
    log = ledger.log
    found, resolution = lanes(ledger)
    texts, numbers = _texts(ledger, found)
    path = run.critical_path()
    return {
        "summary": {key: value for key, value in summary.items() if key != "pipes"},
        "pipes": summary["pipes"],
        "clock_mhz": log.clock_mhz,
        "cycles": log.cycles,
        "cores": [
            {"name": core.name, "start": core.start, "end": core.end, "blocks": len(core.blocks)}
            for core in log.cores
        ],
        "lanes": [[lane.core, lane.pipe.name] for lane in found],
        "labels": LABELS,
        "resolution": resolution,
        "names": list(ledger.names.things),
        "sites": [
            f"{short_path(site.file)}:{site.line}" if site.file else "" for site in log.sites
        ],
        "stacks": [
            [f"{short_path(file)}:{line} {function}" for file, line, function in site.frames[1:]]
            for site in log.sites
        ],
        "texts": texts,
        "slices": packed(found, numbers),
        "path": _path(path, found),
        "path_rows": path.by("core", "pipe", "place", "name", "cause", "sub_cause"),
        "stalls": stall_table(
            ledger, ("line", "pipe", "cause", "sub_cause", "set_pipe", "set_line", "late")
        ),
        "lines": _lines(ledger),
        "sources": dict(run.sources),
        "memory": _memory(ledger, path),
        "memories": {
            space.name: run.chip.memories[space.name].bytes
            for space in Space
            if space is not Space.GM and space.name in type(run.chip.memories).model_fields
        },
        "what_if": what_if,
    }


def _texts(ledger: Ledger, found: Sequence[Lane]) -> tuple[list[str], dict[int, int]]:
    """Return the operands of the instructions on the page in words, and their numbers."""
    used = [np.unique(lane.arrays["call"]) for lane in found]
    calls = sorted({call for one in used for call in one.tolist() if call >= 0})[:_TEXTS]
    known = ledger.calls.things
    texts: dict[str, int] = {}
    numbers = {call: texts.setdefault(known[call].detail(), len(texts)) for call in calls}
    return list(texts), numbers


def _path(path: CriticalPath, found: Sequence[Lane]) -> dict[str, str]:
    lane_of = {(lane.core, lane.pipe): number for number, lane in enumerate(found)}
    rows = []
    for step in path.steps:
        if step.row >= 0:
            pipe = Pipe(path.ledger[step.core].columns["pipe"][step.row])
            rows.append((lane_of.get((step.core, pipe), -1), step.start, step.end))
    table = np.array(rows, np.int64).reshape(-1, 3)
    return {name: pack(table[:, column]) for column, name in enumerate(("lane", "start", "end"))}


def _lines(ledger: Ledger) -> list[dict[str, Any]]:
    """Return for each line how many instructions it issued and the bytes that they moved."""
    log = ledger.log
    count = np.zeros(len(log.sites) + 1, np.int64)
    size = np.zeros(len(log.sites) + 1, np.int64)
    for entry in ledger:
        items = entry.columns.items
        own = items[items["kind"] == Kind.INSTRUCTION]
        count += np.bincount(own["site"], minlength=len(count))
        size += np.bincount(own["site"], own["bytes"], len(size)).astype(np.int64)
    sums: dict[str, list[int]] = {}
    for site, instructions, moved in zip(log.sites, count.tolist(), size.tolist(), strict=False):
        if site.file:
            line = sums.setdefault(f"{short_path(site.file)}:{site.line}", [0, 0])
            line[0] += instructions
            line[1] += moved
    return [
        {"line": line, "instructions": instructions, "bytes": moved}
        for line, (instructions, moved) in sums.items()
    ]


def _memory(ledger: Ledger, path: CriticalPath) -> list[dict[str, Any]]:
    """Return the memory map of a core on the critical path, and of the first one."""
    on_path = [step.core for step in path.steps if step.row >= 0]
    wanted = list(dict.fromkeys([*on_path[-1:], *range(len(ledger))]))[:_CORES_WITH_A_MAP]
    maps = []
    for number in wanted:
        found = residents(ledger[number], ledger.calls.things, _RESIDENTS)
        maps.append(
            {
                "core": ledger.log.cores[number].name,
                "whole": len(ledger[number].columns) <= _RESIDENTS,
                "rows": [
                    [one.space.name, one.low, one.high, one.name, one.start, one.end]
                    for one in found
                ],
            }
        )
    return maps
