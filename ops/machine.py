"""What an operation runs on: a chip and the options of the launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ascend_sim
from ascend_sim.chip_file import nearest
from ascend_sim.config import Chip
from ascend_sim.errors import ConfigError
from isa.types import CoreKind

if TYPE_CHECKING:
    from ascend_sim import Run


@dataclass(frozen=True, slots=True)
class TilingConstant:
    """A constant of a kernel that a user may set: a positive integer."""

    name: str
    default: int
    meaning: str


@dataclass(frozen=True, slots=True)
class Machine:
    """The chip and how a launch on it runs. `cores` replaces the number of cores that the chip has."""

    chip: Chip
    numerics: str = "on"
    checks: str = "collect"
    l2: str = "cold"
    auto_sync: bool | None = None
    cores: int | None = None

    def core_count(self, kind: CoreKind) -> int:
        """Return how many cores of this kind the platform reports to tiling."""
        present = self.chip.cores.aiv if kind is CoreKind.AIV else self.chip.cores.aic
        return present if self.cores is None else self.cores

    def launch(
        self,
        kernel: Callable[..., Any],
        arguments: Sequence[Any],
        block_dim: int,
        kind: CoreKind,
        outputs: Sequence[str],
    ) -> Run:
        """Run `kernel` on `block_dim` blocks of cores of this kind. Raises what `ascend_sim.launch` does.

        `outputs` names the kernel's parameters that the operator itself looks over for unwritten places.
        """
        return ascend_sim.launch(
            kernel,
            *arguments,
            cores=block_dim,
            chip=self.chip,
            numerics=self.numerics,
            checks=self.checks,
            l2=self.l2,
            auto_sync=self.auto_sync,
            physical_cores=self.core_count(kind),
            outputs=list(outputs),
        )


def resolve_constants(
    declared: Sequence[TilingConstant], given: Mapping[str, Any], owner: str
) -> dict[str, int]:
    """Return the value of each declared constant: the one given, else the default.

    Raises `ConfigError` for a constant that `owner` does not have and for a value that is no positive integer.
    """
    values = {constant.name: constant.default for constant in declared}
    for name, value in given.items():
        if name not in values:
            hint = nearest(name, values)
            known = ", ".join(values) or "none"
            raise ConfigError(f"{owner} has no tiling constant {name!r}{hint} (it has: {known})")
        if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
            raise ConfigError(f"{owner}: {name} is {value!r}; it must be an integer above 0")
        values[name] = value
    return values
