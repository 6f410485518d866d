"""Which set belongs to which wait, for the pairs and arrows of both traces; a run has flags by the million."""

from __future__ import annotations

import numpy as np

from ascend_sim.report.columns import Flags, Ints
from ascend_sim.report.ledger import Ledger
from ascend_sim.trace import Kind


def _sets_of_waits(ledger: Ledger, number: int) -> tuple[Ints, Ints, Ints]:
    """Return the rows of a core's waits, and of each the core and the row of its set; -1 where it is not in the log."""
    columns = ledger[number].columns
    waits = np.flatnonzero(columns["kind"] == Kind.WAIT_FLAG)
    cores = columns["partner_core"][waits].astype(np.int64)
    index = columns["partner"][waits].astype(np.int64)
    rows = np.full(len(waits), -1, np.int64)
    for core in np.unique(cores).tolist():
        if 0 <= core < len(ledger):
            known = ledger[core].columns["index"]
            mine = cores == core
            place = np.minimum(np.searchsorted(known, index[mine]), max(len(known) - 1, 0))
            found = known[place] == index[mine] if len(known) else np.zeros(mine.sum(), bool)
            rows[mine] = np.where(found, place, -1)
    return waits, np.where(rows >= 0, cores, -1), rows


class FlagNames:
    """A name for each set and wait, `core0.veccore0_7`: a wait has that of its set, unless another wait has it."""

    def __init__(self, ledger: Ledger, cores: list[str]) -> None:
        self._cores = cores
        self._owner: list[Ints] = []
        self._number: list[Ints] = []
        counts = []
        for number, entry in enumerate(ledger):
            sets = entry.columns["kind"] == Kind.SET_FLAG
            self._number.append((np.cumsum(sets) - 1).astype(np.int32))
            self._owner.append(np.full(len(sets), number, np.int16))
            counts.append(int(sets.sum()))
        taken: list[Flags] = [np.zeros(len(entry.columns), bool) for entry in ledger]
        for number in range(len(ledger)):
            waits, cores_of, rows = _sets_of_waits(ledger, number)
            first = np.zeros(len(waits), bool)
            for core in np.unique(cores_of[cores_of >= 0]).tolist():
                mine = np.flatnonzero(cores_of == core)
                found, at = np.unique(rows[mine], return_index=True)
                free = (ledger[core].columns["kind"][found] == Kind.SET_FLAG) & ~taken[core][found]
                first[mine[at[free]]] = True
                taken[core][found[free]] = True
                which = mine[first[mine]]
                self._number[number][waits[which]] = self._number[core][rows[which]]
                self._owner[number][waits[which]] = core
            own = waits[~first]
            self._number[number][own] = counts[number] + np.arange(len(own))

    def of(self, core: int, row: int) -> str:
        """Return the name of the item in a row of a core."""
        return f"{self._cores[self._owner[core][row]]}_{self._number[core][row]}"


class Arrows:
    """Arrows from the last instruction before a set to the first one behind the wait that it released, numbered."""

    def __init__(self, ledger: Ledger) -> None:
        before = [_neighbours(ledger, number, Kind.SET_FLAG) for number in range(len(ledger))]
        ends = []
        for number in range(len(ledger)):
            waits, cores, rows = _sets_of_waits(ledger, number)
            target = _neighbours(ledger, number, Kind.WAIT_FLAG)[waits]
            source = np.full(len(waits), -1, np.int64)
            for core in np.unique(cores[cores >= 0]).tolist():
                mine = cores == core
                source[mine] = before[core][rows[mine]]
            there = (source >= 0) & (target >= 0) & ((source != target) | (cores != number))
            core_of = np.full(int(there.sum()), number, np.int64)
            ends.append(np.stack([cores[there], source[there], core_of, target[there]], axis=1))
        self._ends = np.concatenate(ends) if ends else np.empty((0, 4), np.int64)

    def of(self, core: int) -> dict[int, list[tuple[int, bool]]]:
        """Return for each row of a core that arrows touch their numbers, and whether they begin there."""
        touched: dict[int, list[tuple[int, bool]]] = {}
        begins, ends = (np.flatnonzero(self._ends[:, column] == core) for column in (0, 2))
        rows = np.concatenate([self._ends[begins, 1], self._ends[ends, 3]])
        numbers = np.concatenate([begins, ends]) + 1
        starts = np.arange(len(rows)) < len(begins)
        for at in np.lexsort((~starts, numbers)).tolist():
            touched.setdefault(int(rows[at]), []).append((int(numbers[at]), bool(starts[at])))
        return touched


def _neighbours(ledger: Ledger, number: int, kind: Kind) -> Ints:
    """Return by row of each set the instruction of its pipe before it, of each wait the one behind it; else -1."""
    entry = ledger[number]
    columns = entry.columns
    found = np.full(len(columns), -1, np.int64)
    for rows in entry.rows.values():
        kinds = columns["kind"][rows]
        begun = rows[(kinds == Kind.INSTRUCTION) & (columns["start"][rows] >= 0)]
        own = rows[kinds == kind]
        if not len(begun) or not len(own):
            continue
        place = np.searchsorted(begun, own) - (kind is Kind.SET_FLAG)
        inside = (place >= 0) & (place < len(begun))
        found[own[inside]] = begun[place[inside]]
    return found
