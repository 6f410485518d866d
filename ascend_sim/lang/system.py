"""Who and where a kernel is: block indices, cycle counter, phases, small helpers of the language."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from typing import Any

from ascend_sim.lang.queues import program
from ascend_sim.placement import task_ratio
from ascend_sim.trips import Features, trips_of
from isa.faults import fault
from isa.stream import current
from isa.tensor import GlobalAddress
from isa.types import CoreKind, uint8


def get_block_idx() -> int:
    """Return the index of this block; on a vector core of a mix kernel, of this core's part of it."""
    return program().number


def get_block_num() -> int:
    """Return how many blocks the kernel was launched with."""
    return program().session.blocks


def get_sub_block_idx() -> int:
    """Return which vector core of its AI Core this is in a mix kernel; 0 in others."""
    return program().sub_block


def get_sub_block_num() -> int:
    """Return how many vector cores share a block: 1 outside mix kernels, and on a cube core."""
    stream = program()
    return 1 if stream.core_kind is CoreKind.AIC else task_ratio(stream.session.kernel_type)


def get_task_ratio() -> int:
    """Return how many vector cores a block has for each cube core: 1 outside mix kernels."""
    stream = program()
    return 1 if stream.core_kind is CoreKind.AIC else task_ratio(stream.session.kernel_type)


def get_system_cycle() -> int:
    """Return the cycle at which the scalar unit gets here."""
    return program().cycle_counter()


def get_data_block_size_in_bytes() -> int:
    """Return the size of a data block."""
    return 32


def ascend_is_aic() -> bool:
    """Return whether this is a cube core."""
    return program().core_kind is CoreKind.AIC


def ascend_is_aiv() -> bool:
    """Return whether this is a vector core."""
    return program().core_kind is CoreKind.AIV


def phase(name: str) -> None:
    """Open a phase: instructions issued from here on count for it. Costs no time."""
    program().open_phase(name)


def ceildiv(x: int, y: int) -> int:
    """Return x / y rounded up."""
    return -(-x // y)


def kernel_range(*bounds: int) -> Any:
    """Count like Python's range (pyasc's name for a loop that its compiler keeps). `--sampled` leaves trips out."""
    numbers = builtins.range(*bounds)
    stream = current.get(None)
    if getattr(stream, "has_queues", False) and stream.session.sampler is not None:
        return map(numbers.__getitem__, trips_of(stream, len(numbers)))
    return numbers


def trips(count: int, features: Features | None = None) -> Iterable[int]:
    """Count the trips of a loop: 0 to `count` - 1. `--sampled` leaves some of them out (see docs/tuning.md).

    Where trips differ, `features(trip)` gives a number, or several, that the time of a trip grows with.
    """
    return trips_of(program(), count, features)


def static_range(*bounds: int) -> Any:
    """Count like Python's range (pyasc's name for a loop that its compiler unrolls)."""
    return builtins.range(*bounds)


def set_sys_workspace(workspace: GlobalAddress) -> None:
    """Say where the system's workspace is: GM that libraries share between cores."""
    if not isinstance(workspace, GlobalAddress):
        fault(
            "HOST",
            "not-an-address",
            f"set_sys_workspace needs a GM address (a tensor argument of the kernel), got {workspace!r}",
        )
    program().session.sys_workspace = workspace.copy()


def get_sys_workspace() -> GlobalAddress:
    """Return what `set_sys_workspace` set in this launch, as an address of bytes."""
    workspace = program().session.sys_workspace
    if workspace is None:
        fault(
            "HOST",
            "no-workspace",
            "get_sys_workspace: nothing has set it; pass GM to the kernel and call set_sys_workspace with it",
        )
    return GlobalAddress(workspace.buffer, uint8, workspace.offset, workspace.length)
