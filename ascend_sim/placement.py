"""Which cores run a block: kernel types, and where the blocks of a launch go.

A block of a vector kernel runs on one vector core (block b on core{b//2}.aiv{b%2}), a block of a cube kernel on a
cube core, a block of a mix kernel on a cube core and one or two of its vector cores.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ascend_sim.config import Chip
from isa.types import CoreKind


class KernelType(Enum):
    """Which cores a kernel starts (pyasc's names and values)."""

    AIV_ONLY = 0
    AIC_ONLY = 1
    MIX_AIV_HARD_SYNC = 2
    MIX_AIC_HARD_SYNC = 3
    MIX_AIV_1_0 = 4
    MIX_AIC_1_0 = 5
    MIX_AIC_1_1 = 6
    MIX_AIC_1_2 = 7


_VECTOR = (KernelType.AIV_ONLY, KernelType.MIX_AIV_HARD_SYNC, KernelType.MIX_AIV_1_0)
_VECTORS_A_BLOCK = {KernelType.MIX_AIC_1_1: 1, KernelType.MIX_AIC_1_2: 2}


@dataclass(frozen=True, slots=True)
class Seat:
    """One core that takes part in a block: `cluster` is its AI Core, `sub_block` its number among the block's AIVs."""

    name: str
    kind: CoreKind
    cluster: int
    sub_block: int


def vector_only(kernel_type: KernelType) -> bool:
    """Return whether a kernel of this type runs on vector cores alone."""
    return kernel_type in _VECTOR


def has_cross_core_flags(kernel_type: KernelType) -> bool:
    """Return whether the scheduler that carries cross-core flags is on for this type."""
    return kernel_type not in (KernelType.AIV_ONLY, KernelType.AIC_ONLY)


def places(kernel_type: KernelType, chip: Chip) -> int:
    """Return how many blocks of this type a chip runs at once."""
    return chip.cores.aiv if vector_only(kernel_type) else chip.cores.aic


def task_ratio(kernel_type: KernelType) -> int:
    """Return the vector cores of a block, 1 where there are none or one."""
    return _VECTORS_A_BLOCK.get(kernel_type, 1)


def seats(kernel_type: KernelType, place: int) -> list[Seat]:
    """Return the cores of the place-th block that runs at once, cube core first."""
    if vector_only(kernel_type):
        return [Seat(f"core{place // 2}.aiv{place % 2}", CoreKind.AIV, place // 2, 0)]
    found = [Seat(f"core{place}.aic", CoreKind.AIC, place, 0)]
    vectors = range(_VECTORS_A_BLOCK.get(kernel_type, 0))
    return found + [
        Seat(f"core{place}.aiv{number}", CoreKind.AIV, place, number) for number in vectors
    ]
