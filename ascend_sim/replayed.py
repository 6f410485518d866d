"""The run of a recording: its cycles at once, its records when somebody asks for them."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ascend_sim.chip_file import nearest
from ascend_sim.config import Chip, load_chip
from ascend_sim.errors import CapacityError, ConfigError, DeadlockError, Finding, SimulatorBug
from ascend_sim.garbage import no_collection
from ascend_sim.l2 import STARTS
from ascend_sim.placement import places
from ascend_sim.playback import play
from ascend_sim.quick import NotQuick, quick_cycles
from ascend_sim.recording import Origin, Recording
from ascend_sim.run import Outputs, Run

if TYPE_CHECKING:
    from ascend_sim.trace import Log


def replay(
    recording: Recording,
    chip: str | os.PathLike[str] | Chip,
    *,
    l2: str = "cold",
    physical_cores: int | None = None,
) -> Run:
    """Return the run of a recording on a chip: see `Recording.replay`."""
    loaded = load_chip(chip)
    if l2 not in STARTS:
        raise ConfigError(f"l2 is {l2!r}{nearest(l2, STARTS)} (allowed: {', '.join(STARTS)})")
    cores = places(recording.kernel_type, loaded) if physical_cores is None else physical_cores
    if isinstance(cores, bool) or not isinstance(cores, int) or cores < 1:
        raise ConfigError(f"physical_cores is {cores!r}; it must be a whole number of at least 1")
    _check_room(recording, loaded)
    try:
        with no_collection():
            found = quick_cycles(recording, loaded, l2=l2, physical_cores=cores)
    except (NotQuick, DeadlockError):  # the machine knows all steps, and what to say of a hang
        found = None
    if found is None:
        return play(recording, loaded, l2=l2, physical_cores=cores)
    return Replayed(recording, loaded, l2, cores, *found)


def _check_room(recording: Recording, chip: Chip) -> None:
    for name, used in (*recording.needs.items(), *recording.reserved.items()):
        memory = chip.memories[name]
        limit = memory.usable if recording.reserved.get(name) == used else memory.bytes
        if used > limit:
            message = (
                f"{recording.op} uses {used} bytes of {name}, {chip.name} has {limit}: {used - limit} too many. "
                f"Record it with smaller buffers"
            )
            raise CapacityError(message, Finding("CAPACITY", "memory-overflow", message))


class Replayed(Run):
    """A replayed run. Its cycles are known; the log and all that is made of it come from the machine when asked for."""

    def __init__(
        self,
        recording: Recording,
        chip: Chip,
        l2: str,
        cores: int,
        cycles: int,
        memory: dict[str, int],
    ) -> None:
        options: dict[str, Any] = {
            "numerics": "off", "checks": "off", "l2_start": l2, "cores": cores, "replayed": True,
        }  # fmt: skip
        super().__init__(
            recording.op,
            chip,
            None,  # type: ignore[arg-type]
            [],
            Outputs({}),
            blocks=recording.blocks,
            options=options,
            coverage={},
            memory=memory,
            origin=Origin(recording.kernel_type, {}, set(), recording.reserved, recording),
        )
        del self.log
        self._cycles = cycles

    @property
    def cycles(self) -> int:
        """Cycles from the launch to the last core's end, launch cost included."""
        return self._cycles

    @property
    def time_us(self) -> float:
        """The same in microseconds."""
        return self.chip.us(self._cycles)

    @cached_property
    def log(self) -> Log:  # type: ignore[override]
        """All that happened, item by item."""
        assert self.origin is not None
        assert self.origin.recording is not None
        run = play(
            self.origin.recording,
            self.chip,
            l2=self.options["l2_start"],
            physical_cores=self.options["cores"],
        )
        if (run.cycles, run.memory) != (self._cycles, self.memory):
            raise SimulatorBug(
                f"{self.op} takes {self._cycles} cycles in the quick replay and {run.cycles} on the machine"
            )
        return run.log
