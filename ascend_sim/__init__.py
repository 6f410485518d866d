"""A cycle-approximate simulator of the Ascend AI Core: numbers, time, the reason for every stall."""

# ruff: noqa: E402  the modules that are compiled come after what decides about them
from ascend_sim.compiled import use_sources_that_changed

use_sources_that_changed()

from ascend_sim import asc
from ascend_sim.blame import blame
from ascend_sim.compare import compare
from ascend_sim.config import Chip, list_chips, load_chip
from ascend_sim.errors import (
    AlignmentError,
    AscendSimError,
    BoundsError,
    CapacityError,
    ConfigError,
    DeadlockError,
    Finding,
    HostError,
    KernelError,
    OperandError,
    QueueError,
    RaceError,
    SimulatorBug,
    SyncError,
    UninitializedRead,
    UnsupportedError,
)
from ascend_sim.lang.system import phase, trips
from ascend_sim.launch import launch, record, sample
from ascend_sim.recording import Recording
from ascend_sim.run import Run
from ascend_sim.tuning import sweep

__all__ = [
    "AlignmentError", "AscendSimError", "BoundsError", "CapacityError", "Chip", "ConfigError", "DeadlockError",
    "Finding", "HostError", "KernelError", "OperandError", "QueueError", "RaceError", "Recording", "Run",
    "SimulatorBug", "SyncError", "UninitializedRead", "UnsupportedError", "asc", "blame", "compare", "launch",
    "list_chips", "load_chip", "phase", "record", "sample", "sweep", "trips",
]  # fmt: skip
