"""How much longer each item may take before the run does: 0 along the critical path.

Computed backwards from the last core's end with the links that `critical_path` walks: how late may each time
be, if all other durations stay as they were.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ascend_sim.config import Chip
from ascend_sim.report.columns import Ints
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
        self.slack = [np.full(len(entry.columns), -1, np.int64) for entry in ledger]
        self.waiters: list[dict[int, int]] = [{} for _ in ledger]  # by set: waits not yet done
        self.latest_set: list[dict[int, int]] = [{} for _ in ledger]  # by set: its latest end
        self.followers: list[dict[int, list[int]]] = [{} for _ in ledger]  # by what unit flags name
        links = [Links(entry, chip) for entry in ledger]
        self.partners = [self._partners(number) for number in range(len(ledger))]
        running = [self._core(number, one) for number, one in enumerate(links)]
        while running:
            going = [core for core in running if next(core, None) is not None]
            if len(going) == len(running) and not self._progress:
                break  # a log that no machine can have made
            self._progress = False
            running = going

    _progress = True

    def _partners(self, number: int) -> list[tuple[int, int] | None]:
        """Return for each wait its set as (core, row), and count the waits of each set."""
        columns = self.ledger[number].columns
        found: list[tuple[int, int] | None] = [None] * len(columns)
        for row in np.flatnonzero(columns["partner_core"] >= 0).tolist():
            core = int(columns["partner_core"][row])
            setter = self.ledger[core].columns.row(int(columns["partner"][row]))
            if setter >= 0 and columns["kind"][row] == Kind.INSTRUCTION:
                self.followers[number].setdefault(setter, []).append(row)
            elif setter >= 0:
                found[row] = core, setter
                self.waiters[core][setter] = self.waiters[core].get(setter, 0) + 1
        return found

    def _core(self, number: int, links: Links) -> Iterator[int]:
        """Go through one core backwards; yields where it has to wait for another one."""
        pipes, kinds, free = links.pipe.tolist(), links.kind.tolist(), links.waited_for_place()
        issue, head, start = links.issue.tolist(), links.head.tolist(), links.start.tolist()
        held_by_bytes = links.held.tolist()
        accept, end, began = links.accept.tolist(), links.end.tolist(), links.began.tolist()
        moved, landed, places = links.moved.tolist(), links.landed.tolist(), links.place.tolist()
        cost, blocks = (links.issue - free).tolist(), links.block.tolist()
        leave = [_FAR] * len(pipes)
        waiters, latest_set, result = (
            self.waiters[number],
            self.latest_set[number],
            self.slack[number],
        )
        followers = self.followers[number]
        spans = sorted(self.ledger.log.cores[number].blocks, key=lambda block: block[1])
        block, at_end = len(spans), self.last_end
        result_of = [-1] * len(pipes)
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
                while waiters.get(row, 0):
                    yield row
                latest = latest_set.get(row, max(at_end, end[row]))  # nobody waits for it
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
                scalar = min(late_head, scalar) - max(ahead - int(links.free[row]), 0)
        result[:] = result_of
        self._progress = True

    def _wait(self, number: int, row: int, late: int, released: int, head: int) -> None:
        setter = self.partners[number][row]
        if setter is None:
            return
        core, at = setter
        end = int(self.ledger[core].columns["end"][at])
        own = self.between_cores if core != number else self.hand_over
        way = released - end if released > head else min(own, released - end)
        known = self.latest_set[core].get(at, _FAR)
        self.latest_set[core][at] = min(known, late - way)
        self.waiters[core][at] -= 1
        self._progress = True
