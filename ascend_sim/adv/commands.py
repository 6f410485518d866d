"""What a Matmul object asks of a cube core. In a mix kernel these travel as messages, else they run at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascend_sim.adv.store import Out, store

if TYPE_CHECKING:
    from ascend_sim.adv.cube import CubeUnit
    from ascend_sim.adv.job import Job


@dataclass(slots=True)
class Compute:
    """Compute the `number`-th block of a product into L0C; with `add`, onto what is there."""

    job: Job
    number: int
    add: bool = False

    def run(self, unit: CubeUnit) -> None:
        """Do it on a cube core."""
        if unit.job is not self.job or unit.next_block != self.number:
            unit.start(self.job, self.number, keep=self.add and not unit.stored)
        unit.compute(add=self.add)

    def text(self) -> str:
        """Describe it for traces."""
        return f"block {self.number} of {self.job.m}x{self.job.n}x{self.job.k}"


@dataclass(slots=True)
class Store:
    """Send the block that was computed last to GM, to one or two places."""

    job: Job
    outs: tuple[Out, ...]
    name: str

    def run(self, unit: CubeUnit) -> None:
        """Do it on a cube core."""
        assert unit.block is not None and unit.job is self.job
        for out in self.outs:
            store(unit, unit.block, out, self.name)
        unit.stored = True

    def text(self) -> str:
        """Describe it for traces."""
        return f"block to {', '.join(out.tensor.name for out in self.outs)}"


@dataclass(slots=True)
class ComputeAll:
    """Compute the blocks of a product from the `first`-th on and send each to its place.

    With `apart`, each block goes to a place of its own, base_m × base_n elements behind the last one.
    """

    job: Job
    out: Out
    name: str
    first: int = 0
    apart: bool = False

    def run(self, unit: CubeUnit) -> None:
        """Do it on a cube core."""
        job = self.job
        unit.start(job, self.first)
        while not unit.done:
            out = self.out
            if self.apart:
                out = Out(out.tensor[unit.next_block * job.base_m * job.base_n :], out.format,
                          out.pitch, out.atomic, True)  # fmt: skip
            store(unit, unit.compute(alone=True), out, self.name)
        unit.stored = True

    def text(self) -> str:
        """Describe it for traces."""
        return f"{self.job.m}x{self.job.n}x{self.job.k} to {self.out.tensor.name}"


@dataclass(slots=True)
class Finish:
    """Give up what a product holds."""

    def run(self, unit: CubeUnit) -> None:
        """Do it on a cube core."""
        unit.finish()

    def text(self) -> str:
        """Describe it for traces."""
        return "end"


Command = Compute | Store | ComputeAll | Finish
