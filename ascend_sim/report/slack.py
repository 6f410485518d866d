"""How much longer each item may take before the run does: 0 along the critical path.

Computed backwards from the last core's end with the links that `critical_path` walks: how late may each time
be, if all other durations stay as they were.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ascend_sim.config import Chip
from ascend_sim.report.columns import Ints, rows_of
from ascend_sim.report.ledger import Ledger
from ascend_sim.report.links import Links
from ascend_sim.trace import Kind
from isa.types import Pipe

_FAR = 1 << 62


def slack(ledger: Ledger, chip: Chip) -> list[Ints]:
    """Return the slack of every item in cycles, by core and row; -1 for items that never began."""
    return _Latest(ledger, chip).slack


class _Latest:
    """Goes through all cores backwards. A core pauses at a set until every wait for it, on any core, is done."""

    def __init__(self, ledger: Ledger, chip: Chip) -> None:
        self.ledger = ledger
        self.hand_over = int(chip.sync.visible + 0.5)
        self.between_cores = int(chip.sync.cross_core + 0.5)
        self.move_issue = int(chip.gm.move_issue + 0.5)
        self.last_barrier = int(chip.scalar.barrier_issue + 0.5)
        self.last_end = max((core.end for core in ledger.log.cores), default=0)
        self.chip = chip
        lengths = ledger.lengths
        # Compact arrays, and each core's own only once it runs: a run has items by the million.
        self.slack = [np.full(count, -1, np.int64) for count in lengths]
        self.waiters = [array("i", [0]) * count for count in lengths]  # by set: waits not yet done
        self.latest_set = [array("q", [_FAR]) * count for count in lengths]  # by set: its end
        self.followers: list[dict[int, list[int]]] = [
            {} for _ in lengths
        ]  # by what unit flags name
        self.sets = [self._sets(number) for number in range(len(ledger))]
        running = [self._core(number) for number in range(len(ledger))]
        while running:
            going = [core for core in running if next(core, None) is not None]
            if len(going) == len(running) and not self._progress:
                break  # a log that no machine can have made
            self._progress = False
            running = going

    _progress = True

    def _sets(self, number: int) -> tuple[array[int], array[int], array[int]]:
        """Return for each wait the core, the row and the end of its set, -1 where there is none, and count them."""
        columns = self.ledger[number].columns
        cores, rows, ends = (np.full(len(columns), -1, np.int64) for _ in range(3))
        for core in np.unique(columns["partner_core"]).tolist():
            if core < 0:
                continue
            others = self.ledger[core].columns
            mine = np.flatnonzero(columns["partner_core"] == core)
            found = rows_of(others, columns["partner"][mine])
            mine, found = mine[found >= 0], found[found >= 0]
            follows = columns["kind"][mine] == Kind.INSTRUCTION
            for row, setter in zip(mine[follows].tolist(), found[follows].tolist(), strict=True):
                self.followers[number].setdefault(setter, []).append(row)
            mine, found = mine[~follows], found[~follows]
            cores[mine], rows[mine], ends[mine] = core, found, others["end"][found]
            np.add.at(np.frombuffer(self.waiters[core], np.int32), found, 1)
        return _lean(cores.astype(np.int32)), _lean(rows.astype(np.int32)), _lean(ends)

    def _core(self, number: int) -> Iterator[int]:
        """Go through one core backwards; yields where it has to wait for another one."""
        links = Links(self.ledger[number], self.chip, self.ledger.log.cycles)
        pipes, kinds, held_by_bytes = (
            one.tobytes() for one in (links.pipe, links.kind, links.held)
        )
        issue, head, start, accept, end, began, moved, landed, places, blocks, free, cost = map(
            _lean,
            (
                links.issue, links.head, links.start, links.accept, links.end, links.began, links.moved,
                links.landed, links.place, links.block, links.free,
                links.issue - links.waited_for_place(),
            ),
        )  # fmt: skip
        del links
        leave = array("q", [_FAR]) * len(pipes)
        waiters, latest_set, result = (
            self.waiters[number],
            self.latest_set[number],
            self.slack[number],
        )
        followers = self.followers[number]
        spans = sorted(self.ledger.log.cores[number].blocks, key=lambda block: block[1])
        block, at_end = len(spans), self.last_end
        result_of = array("q", [-1]) * len(pipes)
        need_end, next_head, port, scalar = [_FAR], [_FAR], [_FAR], _FAR
        for row in range(len(pipes) - 1, -1, -1):
            if blocks[row] != block:
                if block < len(
                    spans
                ):  # the block before may end so late that this one begins in time
                    at_end = scalar - (spans[block][1] - spans[block - 1][2])
                block = blocks[row]
                need_end, next_head, port = ([at_end] * len(Pipe) for _ in range(3))
                # Behind a program's last item the scalar unit waits for all pipes.
                ending = spans[block][2] - max(end[row], issue[row]) if spans else 0
                scalar = at_end - max(min(self.last_barrier, ending), 0)
            pipe, kind, began_at = pipes[row], kinds[row], start[row]
            if began_at < 0:
                continue
            if kind == Kind.SET_FLAG:
                while waiters[row]:
                    yield row
                latest = latest_set[row]
                if latest == _FAR:  # nobody waits for it
                    latest = max(at_end, end[row])
                older = end[landed[row]] if landed[row] >= 0 else -1
                latest -= end[row] - max(head[row], older)
                need_end[pipe] = min(need_end[pipe], latest)
                spare = end[row] - max(head[row], older) + latest - end[row]
                late_head = min(latest, next_head[pipe], leave[row]) if pipe else latest
                result_of[row] = max(min(spare, late_head - head[row]), 0)
            elif kind == Kind.INSTRUCTION and pipe:
                late_end = need_end[pipe]
                held = held_by_bytes[row]
                own = self.move_issue if held else accept[row] - began_at
                late_start = min(next_head[pipe] - own, leave[row])
                if began_at <= began[row]:
                    late_end = min(late_end - (end[row] - moved[row]), port[pipe])
                    spare = late_end - moved[row]
                    port[pipe] = late_end - (moved[row] - began[row])
                    if held:
                        port[pipe] = min(port[pipe], next_head[pipe])
                    late_head = min(late_start, port[pipe])
                    # What waits for the port may start later for nothing.
                    result_of[row] = min(spare, late_start - began_at)
                else:
                    late_head = min(late_start, late_end - (end[row] - began_at))
                    result_of[row] = late_head - began_at
                for follower in followers.get(row, ()):  # starts as much later as this one
                    spare = max(result_of[follower], 0)
                    late_head = min(late_head, began_at + spare)
                    result_of[row] = min(result_of[row], spare)
            elif kind == Kind.INSTRUCTION:
                late_head = scalar - (end[row] - began_at)
                result_of[row] = late_head - began_at
            else:
                late_head = min(next_head[pipe], leave[row]) if pipe else scalar
                result_of[row] = late_head - began_at
                if kind == Kind.BARRIER:
                    for one in range(len(Pipe)) if pipe == Pipe.S else (pipe,):
                        need_end[one] = min(need_end[one], late_head)
                        if pipe == Pipe.S:
                            next_head[one] = min(next_head[one], late_head)
                else:
                    self._wait(number, row, late_head, began_at, head[row])
            next_head[pipe] = late_head
            if pipe:
                scalar = min(scalar, late_head)
                if places[row] >= 0:
                    leave[places[row]] = scalar - cost[row]
                scalar -= cost[row]
            else:
                ahead = head[row] if kind != Kind.INSTRUCTION else issue[row]
                scalar = min(late_head, scalar) - max(ahead - free[row], 0)
        result[:] = np.frombuffer(result_of, np.int64)
        self._progress = True

    def _wait(self, number: int, row: int, late: int, released: int, head: int) -> None:
        cores, rows, ends = self.sets[number]
        core, at, end = cores[row], rows[row], ends[row]
        if core < 0:
            return
        own = self.between_cores if core != number else self.hand_over
        way = released - end if released > head else min(own, released - end)
        self.latest_set[core][at] = min(self.latest_set[core][at], late - way)
        self.waiters[core][at] -= 1
        self._progress = True


def _lean(values: NDArray[Any]) -> array[int]:
    """Return whole numbers as an array that gives out Python's own."""
    lean = array("q" if values.dtype.itemsize == 8 else "i")
    lean.frombytes(values.tobytes())
    return lean
