"""A context: where and how operations run, and the runners they share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ascend_sim.chip_file import nearest
from ascend_sim.config import Chip, load_chip
from ascend_sim.errors import ConfigError
from ascend_sim.l2 import STARTS
from ops.machine import Machine
from ops.runner import RUNNER_TYPES, RunnerPool
from ops.soc import chip_of
from ops.status import Refusal, Status

_CHOICES = {
    "numerics": ("on", "off", "exact"),
    "checks": ("error", "collect", "off"),
    "l2": STARTS,
}


class Context:
    """The chip, the options of a launch and one runner pool for each runner type.

    `chip` is a name, a path or a `Chip`; without one the operation's SoC picks it. `tiling` sets constants of
    the kernels by name. `cores` is the number of cores that the platform reports to tiling and that is
    simulated (vector cores for vector kernels, else cube cores). `numerics`, `checks`, `l2` and `auto_sync`
    are those of `ascend_sim.launch`. Raises `ConfigError` for a value that is not allowed.
    """

    def __init__(
        self,
        chip: str | os.PathLike[str] | Chip | None = None,
        numerics: str = "on",
        checks: str = "collect",
        tiling: Mapping[str, Any] | None = None,
        cores: int | None = None,
        l2: str = "cold",
        auto_sync: bool | None = None,
    ) -> None:
        for option, value in (("numerics", numerics), ("checks", checks), ("l2", l2)):
            _choose(option, value)
        if cores is not None and (
            isinstance(cores, bool) or not isinstance(cores, int) or cores < 1
        ):
            raise ConfigError(f"cores is {cores!r}; it must be an integer above 0")
        if auto_sync is not None and not isinstance(auto_sync, bool):
            raise ConfigError(
                f"auto_sync is {auto_sync!r}; it must be True, False or None (what the kernel says)"
            )
        self.chip = None if chip is None else load_chip(chip)
        self.numerics = numerics
        self.checks = checks
        self.tiling = dict(tiling or {})
        self.cores = cores
        self.l2 = l2
        self.auto_sync = auto_sync
        self._pools: dict[str, RunnerPool] = {}
        self._machines: dict[str, Machine] = {}

    def machine_for(self, soc: str) -> Machine:
        """Return the machine: the context's chip, else the one that `soc` stands for."""
        if soc not in self._machines:
            chip = self.chip if self.chip is not None else load_chip(chip_of(soc))
            self._machines[soc] = Machine(
                chip, self.numerics, self.checks, self.l2, self.auto_sync, self.cores
            )
        return self._machines[soc]

    def pool(self, runner_type: str) -> RunnerPool:
        """Return the pool of a registered runner type. Raises `Refusal` for one that is not registered."""
        if runner_type not in RUNNER_TYPES:
            raise Refusal(
                Status.ERROR_OPERATION_NULL_RUNNER,
                f"no runner type is registered as {runner_type!r}",
            )
        if runner_type not in self._pools:
            self._pools[runner_type] = RunnerPool(RUNNER_TYPES[runner_type])
        return self._pools[runner_type]


def _choose(option: str, value: str) -> None:
    allowed = _CHOICES[option]
    if value not in allowed:
        raise ConfigError(
            f"{option} is {value!r}{nearest(str(value), allowed)} (allowed: {', '.join(allowed)})"
        )
