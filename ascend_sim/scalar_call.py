"""What the scalar unit itself does: the calls of a program that go through no pipe, and their price."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ascend_sim.agenda import READ
from ascend_sim.cost import whole

if TYPE_CHECKING:
    from ascend_sim.core import Core
    from isa.access import Access


class ScalarCall:
    """Something that the scalar unit itself does: `cost(core)` cycles, then `action(core)`.

    `wanted` says that the program waits for the action's value. What a recording needs to know of the call:
    `access`, the element that it reads or writes, or `spent`, its fixed cycles (a number, or the name of one in the
    chip's section `scalar`), and `line`, the place in GM that it brings into the data cache besides.
    """

    __slots__ = (
        "access", "action", "bytes", "cost", "line", "name", "phase", "spent", "text", "wanted", "work",
    )  # fmt: skip
    atomic = None  # the scalar unit's stores are plain

    def __init__(
        self,
        name: str,
        cost: Callable[[Core], int],
        action: Callable[[Core], Any] | None = None,
        *,
        phase: int = READ,
        wanted: bool = False,
        text: str = "",
        access: Access | None = None,
        spent: float | str | None = None,
        line: tuple[Any, int] | None = None,
    ) -> None:
        self.name = name
        self.cost = cost
        self.action = action
        self.phase = phase
        self.wanted = wanted
        self.text = text
        self.access = access
        self.spent = spent
        self.line = line
        self.bytes = 0
        self.work = 0

    def cycles(self, core: Core) -> int:
        """Return what the scalar unit spends on it."""
        return self.cost(core)

    def detail(self) -> str:
        """Describe it for traces."""
        return self.text


def flag_priced(
    name: str,
    action: Callable[[Core], Any] | None = None,
    *,
    phase: int = READ,
    wanted: bool = False,
    text: str = "",
) -> ScalarCall:
    """Return what costs the scalar unit as much as a flag."""
    cost = "flag_issue"
    return ScalarCall(
        name, spending(cost), action, phase=phase, wanted=wanted, text=text, spent=cost
    )


def spending(cycles: float | str) -> Callable[[Core], int]:
    """Return the cost of a fixed time: cycles, or the name of a number in the chip's section `scalar`."""
    if isinstance(cycles, str):
        return lambda core: whole(getattr(core.chip.scalar, cycles))
    return lambda _: whole(cycles)


def scalar_cost(access: Access) -> Callable[[Core], int]:
    """Return the cost of the scalar unit's access to one element of GM or UB."""
    if access.buffer is not None:
        return lambda core: core.scalar_gm_cycles(access.buffer, access.low)
    return lambda core: whole(core.chip.scalar.ub_access)
