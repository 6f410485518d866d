"""What came of a run, and its exit code: 0 good, 1 usage or internal, 2 findings, 3 deadlock, 4 address fault."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ascend_sim.errors import Finding, KernelError, exit_code

if TYPE_CHECKING:
    from ascend_sim.run import Run


@dataclass(slots=True)
class OtherRun:
    """A launch of a program that is not the one reported: its kernel and its findings."""

    kernel: str
    findings: list[Finding]


@dataclass(slots=True)
class Outcome:
    """The run that is reported (None: nothing ran), the error that ended it, the other launches.

    `notes` is what else the user has to know.
    """

    run: Run | None = None
    error: BaseException | None = None
    others: list[OtherRun] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def code(self) -> int:
        """The exit code: the highest of 4, 3, 2, 1 that anything earned."""
        codes = [exit_code(other.findings) for other in self.others]
        if self.run is not None:
            codes.append(exit_code(self.run.findings))
            numerics = self.run.summary["numerics"]
            codes.append(2 if numerics and numerics.get("mismatches") else 0)
        if isinstance(self.error, KernelError):
            codes.append(exit_code([self.error.finding]))
        elif self.error is not None:
            codes.append(1)
        return max(codes, default=0)
