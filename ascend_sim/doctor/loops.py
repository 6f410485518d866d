"""What a loop counts, and which of its trips could be the first to wait."""

from __future__ import annotations

import ast

from ascend_sim.doctor.source import Key, Source
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


def first_trips(log: Log, source: Source, loop: Key, left: dict[int, int]) -> list[int]:
    """Return the trips of a loop that could be the first to wait, if each from there on is to take one of what is left.

    How many trips there are nobody has counted: it is how often one of the loop's lines came.
    """
    lines = {one.lineno for one in source.statements[loop].body}  # type: ignore[attr-defined]
    found: set[int] = set()
    for number, core in enumerate(log.cores):
        trips: dict[int, int] = {}
        for item in core.items if left.get(number, 0) > 0 else ():
            for file, line, _ in log.sites[item.site].frames:
                if line in lines and file == source.file:
                    trips[line] = trips.get(line, 0) + 1
        found |= {count - left[number] for count in trips.values()}
    return sorted(number for number in found if number > 0)[:MOST_GUESSES]
