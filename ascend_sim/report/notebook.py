"""A run in a notebook: head, bars of its pipes, findings and advice as one piece of HTML without scripts."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from ascend_sim.errors import EXIT_CODE
from ascend_sim.trace import Cause

COLOURS = {
    Cause.BUSY: "#0072B2", Cause.MEMORY: "#E69F00", Cause.BANK_CONFLICT: "#CC79A7", Cause.FLAG: "#8d99a6",
    Cause.BUFFER: "#56B4E9", Cause.BARRIER: "#1b2430", Cause.QUEUE_FULL: "#7b3294",
    Cause.SCALAR: "#cfd6dd", Cause.CROSS_CORE: "#009E73", Cause.TAIL: "#eceff2",
    Cause.LAUNCH: "#eceff2", Cause.IDLE: "#ffffff",
}  # fmt: skip
"""Colours that stay apart for colour-blind eyes (Okabe and Ito); the page uses the same."""

_MOST_CORES = 4


def run_html(summary: Mapping[str, Any]) -> str:
    """Return a run's summary as HTML."""
    bound = summary["bound"]
    facts = [
        f"<b>{escape(str(summary['op']))}</b> on {escape(summary['chip'])}",
        f"{summary['cycles']:,} cycles, {summary['time_us']:,.3f} µs",
    ]
    if bound["lower_bound_cycles"]:
        times = summary["cycles"] / bound["lower_bound_cycles"]
        facts.append(f"{times:.2f} times the bound that {escape(bound['limit'])} sets")
    parts = [f"<p>{' · '.join(facts)}</p>", _pipes(summary), _legend()]
    parts += [f"<p>→ {escape(text)}</p>" for text in summary["advice"]]
    for finding in summary["findings"]:
        colour = "#b3261e" if EXIT_CODE.get(finding["kind"], 2) else "#0b5fa5"
        place = f" {finding['file']}:{finding['line']}" if finding["file"] else ""
        parts.append(
            f'<div style="border-left:4px solid {colour};padding-left:8px;margin:4px 0"><b>{finding["kind"]}</b> '
            f'{escape(finding["code"] + place)}<pre style="margin:0">{escape(finding["message"])}</pre></div>'
        )
    return f'<div style="font:13px system-ui,sans-serif">{"".join(parts)}</div>'


def _pipes(summary: Mapping[str, Any]) -> str:
    rows = []
    cores = list(summary["pipes"].items())
    for core, pipes in cores[:_MOST_CORES]:
        for pipe, entry in pipes.items():
            rows.append(
                f"<tr><td>{escape(core)}</td><td>{pipe}</td><td>{_bar(entry['causes'], summary['cycles'])}</td>"
                f'<td style="text-align:right">{100 * entry["utilization"]:.0f} % busy</td></tr>'
            )
    more = f"<p>and {len(cores) - _MOST_CORES} more cores</p>" if len(cores) > _MOST_CORES else ""
    return f"<table>{''.join(rows)}</table>{more}"


def _bar(causes: Mapping[str, int], cycles: int) -> str:
    pieces = [
        f'<i style="display:block;width:{100 * causes[cause.value] / cycles:.3f}%;background:{COLOURS[cause]}" '
        f'title="{cause.value}: {causes[cause.value]:,} cycles"></i>'
        for cause in Cause
        if causes.get(cause.value) and cycles
    ]
    return (
        '<span style="display:flex;width:360px;height:13px;border:1px solid #d9dfe6">'
        f"{''.join(pieces)}</span>"
    )


def _legend() -> str:
    return "<p>" + " ".join(
        f'<span style="margin-right:10px"><i style="display:inline-block;width:11px;height:11px;background:'
        f'{COLOURS[cause]};border:1px solid #0002"></i> {cause.value}</span>'
        for cause in Cause
        if cause is not Cause.IDLE
    ) + "</p>"  # fmt: skip


def what_if_html(found: Mapping[str, Any]) -> str:
    """Return the table of `what_if` as HTML."""
    cycles = found["cycles"] or 1
    rows = []
    for row in (*found["ideals"], *found["pairs"]):
        path = row["critical_path"]
        share = "" if path is None else f"{100 * path / cycles:.1f} %"
        rows.append(
            f'<tr><td><b>{"+".join(row["ideal"])}</b></td><td style="text-align:left">{escape(row["means"])}</td>'
            f"<td>{100 * row['gain'] / cycles:.1f} %</td><td>{share}</td></tr>"
        )
    head = "<tr><th>ideal</th><th>means</th><th>gain</th><th>on the critical path</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"
