"""Copies inside UB that a bound queue would save: from a queue that only loads fill to one that only stores empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isa.types import Pipe, Space

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascend_sim.program import Program
    from isa.access import Access
    from isa.instruction import Call

_COPIES = ("data_copy", "copy")
Use = tuple[str, Pipe, bool]
"""An instruction's name, its pipe, and whether it writes."""


class QueueUses:
    """What instructions do with the buffers of each queue of a program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._uses: dict[str, set[Use]] = {}
        self._copies: dict[tuple[str, str], tuple[int, Access, Access]] = {}

    def note(self, call: Call, accesses: Sequence[Access], site: int) -> None:
        """Take note of an instruction that is new at a place; of its `accesses` the written one comes first."""
        names = []
        for number, access in enumerate(accesses):
            name = access.owner.label.partition("[")[0] if access.owner is not None else ""
            names.append(name)
            if name:
                self._uses.setdefault(name, set()).add((call.name, call.pipe, number == 0))
        if call.name in _COPIES and call.pipe is Pipe.V and len(names) == 2 and all(names):
            self._copies.setdefault((names[1], names[0]), (site, accesses[1], accesses[0]))

    def look_over(self) -> None:
        """Report copies from one queue to another that do nothing but pass bytes through."""
        for (source, target), (site, read, written) in self._copies.items():
            into, out = self._uses[source], self._uses[target]
            passes = all(
                pipe is Pipe.MTE2 if write else name in _COPIES for name, pipe, write in into
            ) and all(name in _COPIES if write else pipe is Pipe.MTE3 for name, pipe, write in out)
            if passes and read.space is Space.UB:
                self._program.session.report(
                    "INFO",
                    "copy-only",
                    f"this copy only copies {read.name} to {written.name}: nothing else reads what {source} loads, and "
                    f"nothing else writes what {target} stores. One TQueBind(VECIN, VECOUT) in place of both saves the "
                    f"copy and half of the bytes in UB",
                    site,
                    self._program.core.name,
                    "V",
                    written.name,
                )
