"""Where a kernel's frames end: the one function that all of them are under."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ascend_sim.program import Program


def run(program: Program, _: Any = None) -> None:
    """Run a block's program in its greenlet."""
    program.perform()
