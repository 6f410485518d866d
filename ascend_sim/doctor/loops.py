"""What a loop counts, and which of its trips could be the first to wait."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cached_property

from ascend_sim.doctor.source import Source
from ascend_sim.trace import Log

MOST_GUESSES = 3
"""Numbers of trips that are tried for one loop."""


def counter_of(loop: ast.AST) -> tuple[str, str] | None:
    """Return what a loop counts its trips with, from 0 on, and how many there are; None where it does not."""
    call = loop.iter if isinstance(loop, ast.For) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or len(call.args) != 1:
        return None
    target, argument = loop.target, ast.unparse(call.args[0])  # type: ignore[attr-defined]
    if call.func.id == "enumerate" and isinstance(target, ast.Tuple):
        target, argument = target.elts[0], f"len({argument})"
    elif not call.func.id.endswith("range"):
        return None
    return (target.id, argument) if isinstance(target, ast.Name) else None


class Visits:
    """How often each core of a run has come to each line, calls that lead there included."""

    def __init__(self, log: Log) -> None:
        self._log = log

    @cached_property
    def _lines(self) -> list[Counter[tuple[str, int]]]:
        found = []
        for core in self._log.cores:
            lines: Counter[tuple[str, int]] = Counter()
            for site, count in Counter(item.site for item in core.items).items():
                for line in {frame[:2] for frame in self._log.sites[site].frames}:
                    lines[line] += count
            found.append(lines)
        return found

    def first_trips(self, source: Source, loop: ast.For, left: dict[int, int]) -> list[int]:
        """Return the trips of a loop that may be the first to wait, if each from there on takes one of what is left.

        `left` is that by core. How many trips there are nobody has counted: as many as visits to one of its lines.
        """
        lines = {(source.file, one.lineno) for one in loop.body}
        found = {
            self._lines[core][line] - count
            for core, count in left.items()
            for line in lines
            if count > 0
        }
        return sorted(number for number in found if number > 0)[:MOST_GUESSES]
