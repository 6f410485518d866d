"""What a recording needs of a long run, taken item by item while the run goes on and its log goes to disk."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ascend_sim.errors import UnsupportedError
from ascend_sim.reader import Reader
from ascend_sim.recording import Part

if TYPE_CHECKING:
    from ascend_sim.recording import Origin, Recording
    from ascend_sim.trace import CoreLog, Item, Log, Site


class _Block:
    """What was taken of one block on one core: see `Part`, and `Recording.frees`."""

    __slots__ = ("addresses", "frees", "queues", "steps")

    def __init__(self) -> None:
        self.steps = array("I")
        self.addresses = array("q")
        self.frees: list[tuple[int, int, int]] = []
        self.queues: dict[str, int] = {}


class Tape:
    """Takes the items of each core in program order. What cannot be recorded is told at the end."""

    def __init__(self, origin: Origin, sites: list[Site]) -> None:
        self._reader = Reader(origin, sites)
        self._blocks: dict[str, list[_Block]] = {}  # by core
        self.refusal: str | None = None

    def take(self, core: CoreLog, first: int, items: Sequence[Item]) -> None:
        """Take the next items of a core; `first` is the place of the first of them."""
        if self.refusal is not None:
            return
        end = first + len(items)
        inside = [place for place in core.firsts if first < place < end]
        known = sum(place <= first for place in core.firsts)
        bounds = [first, *inside, end]
        for number, (low, high) in enumerate(pairwise(bounds), known - 1):
            try:
                self._take(core, number, items[low - first : high - first])
            except UnsupportedError as error:
                self.refusal = str(error)
                return

    def _take(self, core: CoreLog, number: int, items: Sequence[Item]) -> None:
        blocks = self._blocks.setdefault(core.name, [])
        while len(blocks) <= number:
            blocks.append(_Block())
        block, start, step = blocks[number], core.firsts[number], self._reader.step
        block.steps.extend([step(item, block.addresses) for item in items])
        for item in items:
            if item.forget is not None and item.partner is not None:
                label = item.forget[0].label.rpartition("[")[0]
                queue = block.queues.setdefault(label, len(block.queues))
                block.frees.append((item.index - start, item.partner.index - start, queue))

    def recording(self, op: str, blocks: int, log: Log) -> Recording | None:
        """Return what was taken; None, with the reason in `refusal`, where it cannot be replayed."""
        if self.refusal is not None:
            return None
        parts, frees = [], []
        for core in log.cores:
            taken = self._blocks.get(core.name, [])
            taken += [_Block() for _ in range(len(core.blocks) - len(taken))]
            for (number, _, _), block in zip(core.blocks, taken, strict=True):
                steps = np.array(block.steps, np.uint32)
                addresses = np.array(block.addresses, np.int64)
                sub_block = self._reader.sub_block(core)
                parts.append(Part(number, core.kind, sub_block, steps, addresses))
                frees.append(block.frees)
        try:
            recording = self._reader.recording(op, blocks, log.phases, parts)
        except UnsupportedError as error:
            self.refusal = str(error)
            return None
        recording.frees = frees
        return recording
