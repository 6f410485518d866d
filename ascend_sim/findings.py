"""What a launch has found: each finding once for the places that it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ascend_sim import messages
from ascend_sim.allowed import is_allowed
from ascend_sim.call_sites import CallSites
from ascend_sim.coverage import axis_text
from ascend_sim.errors import Finding, KernelError, RaceError, UninitializedRead

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ascend_sim.gm_order import Conflict, GmUse
    from ascend_sim.hazards import _Entry
    from ascend_sim.program import Program
    from ascend_sim.trace import Item, Log
    from isa.access import Access
    from isa.tensor import GlobalAddress
    from isa.types import CoreKind

_STOPPING = {"RACE": RaceError, "UNINIT": UninitializedRead}
_CONFLICTS = {
    "RAW": (
        "RACE", "race-blocks-raw", "a block, or another core, reads bytes that one writes, and nothing orders them",
    ),
    "WAR": (
        "RACE", "race-blocks-war", "a block, or another core, overwrites bytes that one reads, and nothing orders them",
    ),
    "WAW": ("RACE", "race-blocks-waw", "two blocks, or cores, write the same bytes, and nothing orders them"),
    "stale": (
        "COHERENCE", "cache-stale-read", "get_value finds a line of the data cache that came in before others wrote it",
    ),
    "kept": (
        "COHERENCE", "cache-store-kept", "something reads or overwrites what set_value stored, which is still in the "
        "data cache",
    ),
    "line": (
        "COHERENCE", "cache-line-shared", "a line of the data cache goes back whole and overwrites what others stored "
        "into other bytes of it",
    ),
}  # fmt: skip
"""Kind, code and meaning of a finding about two accesses to GM, by the verdict on them."""
_MANY_WRITERS = 3
"""Blocks that write one place from which on their number is told."""
MAX_PAIRS = 4096
"""Pairs of racing instructions kept for each finding, to say whether the hazard struck."""


class Findings(CallSites):
    """The findings of a launch: told by whoever notices them, kept once for each place.

    `checks` is "error" (raise the first one), "collect" or "off"; `seats` is how many cores run a block together.
    """

    def __init__(self, log: Log, checks: str, seats: int, library: tuple[Path, ...]) -> None:
        super().__init__(log.sites, library)
        self.log = log
        self.checks = checks
        self.findings: dict[Any, Finding] = {}
        self._seats_a_block = seats
        self._pairs: dict[Any, list[tuple[str, Item, Item]]] = {}
        self._told: dict[tuple[int, int], bool] = {}
        self.needed: set[int] = set()  # places of waits that order something
        self.looked_over: set[CoreKind] = (
            set()
        )  # kinds of cores whose results were looked for readers
        self.gm_uses: list[Sequence[Any]] = []  # fields of GmUse
        self.tensors: dict[int, GlobalAddress] = {}  # the kernel's arguments, by allocation

    def report(
        self,
        kind: str,
        code: str,
        message: str,
        site: int,
        core: str = "",
        pipe: str = "",
        tensor: str = "",
        byte_range: tuple[int, int] | None = None,
        struck: bool | None = None,
        about: Any = None,
    ) -> None:
        """Record a finding once for each place and thing `about` there; raise it where errors are asked for."""
        if self.checks == "off":
            return
        key = (code, site, tensor, about)
        known = self.findings.get(key)
        if known is not None:
            known.hits += 1
            known.struck = known.struck or struck
            return
        place = self.sites[site]
        finding = Finding(
            kind, code, message, place.file, place.line, core, pipe, tensor, byte_range, struck
        )
        self._record(key, finding)

    def drop_needed(self) -> None:
        """Drop what was found spare at a line that is needed another time."""
        lines = {(self.sites[site].file, self.sites[site].line) for site in self.needed}
        for key, finding in list(self.findings.items()):
            if finding.code == "redundant-flag" and (finding.file, finding.line) in lines:
                del self.findings[key]

    def _record(self, key: Any, finding: Finding) -> None:
        self.findings[key] = finding
        counts = self.checks == "error" and finding.kind not in ("INFO", "PERF")
        if counts and not is_allowed(finding):
            place = (
                f"\n  at {finding.file}:{finding.line}, {finding.core}, pipe {finding.pipe}"
                if finding.file
                else ""
            )
            raise _STOPPING.get(finding.kind, KernelError)(finding.message + place, finding)

    def race(
        self, program: Program, entry: _Entry, item: Item, access: Access, write: bool
    ) -> None:
        """Record two accesses that nothing orders, once for each pair of places."""
        what = ("RAW" if entry.write else "WAR") if not (write and entry.write) else "WAW"
        earlier = entry.item
        key = ("race", what, earlier.site, item.site, earlier.name, item.name)
        pairs = self._pairs.setdefault(key, [])
        if len(pairs) < MAX_PAIRS:
            pairs.append((what, earlier, item))
        known = self.findings.get(key)
        if known is not None:
            known.hits += 1
            return
        order = program.order
        names = order.variables() if order is not None else None
        message = messages.race(
            what, earlier, item, entry.access, access, program.core.log, self.sites, names
        )
        place = self.sites[item.site]
        finding = Finding(
            "RACE",
            f"race-{what.lower()}",
            message,
            place.file,
            place.line,
            program.core.name,
            item.pipe.name,
            access.name,
            (max(access.low, entry.access.low), min(access.high, entry.access.high))
            if access.low >= 0
            else None,
        )
        finding.related.append(self._related(earlier))
        self._record(key, finding)

    def conflict(self, conflict: Conflict) -> None:
        """Record two accesses to GM that are not in order, or not past the data cache, once for each pair of places."""
        what, first, second = conflict
        earlier, later = first.item, second.item
        race = what in ("RAW", "WAR", "WAW")
        place = self.sites[later.site]
        pair = (earlier.site, later.site)
        if what == "line" and self._told.get(pair):
            return  # the same two accesses have a nearer fault
        self._told[pair] = True
        key = ("conflict", what, *pair, earlier.name, later.name)
        if race and (
            what != "WAW" or first.epoch.level != second.epoch.level
        ):  # else neither is the later one
            pairs = self._pairs.setdefault(key, [])
            if len(pairs) < MAX_PAIRS:
                pairs.append((what, earlier, later))
        known = self.findings.get(key)
        if known is not None:
            known.hits += 1
            return
        names = (self._unit_name(first), self._unit_name(second))
        kind, code, _ = _CONFLICTS[what]
        finding = Finding(
            kind,
            code,
            messages.race_of_cores(conflict, names, self.log, self._part(conflict))
            + (self._writers(conflict) if what == "WAW" else "")
            if race
            else messages.coherence(conflict, names, self.sites),
            place.file,
            place.line,
            self.log.cores[later.core].name,
            later.pipe.name,
            second.access.name,
            conflict.bytes(),
        )
        finding.related.append(self._related(earlier))
        self._record(key, finding)

    def _related(self, earlier: Item) -> dict[str, Any]:
        """Return the other one of two accesses, as a finding names it."""
        place = self.sites[earlier.site]
        return {
            "file": place.file,
            "line": place.line,
            "pipe": earlier.pipe.name,
            "instruction": earlier.name,
        }

    def _part(self, conflict: Conflict) -> str:
        """Return which rows or columns of an argument two accesses share, as " (row 3)"; "" where nobody knows."""
        buffer = conflict.second.access.buffer
        address = self.tensors.get(buffer.index) if buffer is not None else None
        if address is None:
            return ""
        first = np.array([conflict.bytes()], np.int64) - address.offset
        return f" ({axis_text(first, address.shape, address.dtype.size)})"

    def _writers(self, conflict: Conflict) -> str:
        """Say how many blocks or cores write what two of them write."""
        low, high = conflict.bytes()
        place = conflict.second.access.place
        writers = {
            use[0]
            for use in self.gm_uses
            if use[2] and use[1].place == place and use[1].low < high and low < use[1].high
        }
        if len(writers) < _MANY_WRITERS:
            return ""
        unit = "blocks" if self._seats_a_block == 1 else "cores"
        shown = ", ".join(str(one) for one in sorted(writers)[:4])
        return (
            f"\n  {len(writers)} {unit} write there ({shown}, …), of which one would do: if the kernel goes through "
            f"all tiles by itself, launch it with as many {unit} as it was made for"
        )

    def _unit_name(self, use: GmUse) -> str:
        """Return "block 3", in a mix kernel the core that runs its part of a block."""
        if self._seats_a_block == 1:
            return f"block {use.unit}"
        return self.log.cores[use.item.core].name

    def sorted_findings(self) -> list[Finding]:
        """Return the findings in a fixed order, with what only the whole run can tell."""
        for key, pairs in self._pairs.items():
            self.findings[key].struck = any(
                _struck(what, first, second) for what, first, second in pairs
            )
        return sorted(
            self.findings.values(),
            key=lambda f: (f.kind, f.code, f.file, f.line, f.core, f.pipe, f.tensor, f.message),
        )


def _struck(what: str, earlier: Item, later: Item) -> bool:
    """Return whether the hazard changed what happened: the later access came before the earlier one was through."""
    if later.start < 0 or earlier.start < 0:
        return False
    if what == "RAW":
        return later.start < earlier.end or earlier.end < 0
    if what == "WAR":
        return 0 <= later.end <= earlier.start
    return 0 <= later.end <= earlier.end
