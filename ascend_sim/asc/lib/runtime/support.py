"""pyasc's `asc.lib.runtime.support`: the types of the runtime."""

from ascend_sim.lang.device_types import (
    CoreType,
    DeviceInfoType,
    DeviceModuleType,
    Function,
    Kernel,
    MagicElf,
    MallocPolicy,
    MemcpyKind,
    Memory,
    MemorySizes,
    MemoryType,
    MsprofTaskType,
    ProfilingCommandHandle,
    Stream,
)

__all__ = [
    "CoreType",
    "DeviceInfoType",
    "DeviceModuleType",
    "Function",
    "Kernel",
    "MagicElf",
    "MallocPolicy",
    "MemcpyKind",
    "Memory",
    "MemorySizes",
    "MemoryType",
    "MsprofTaskType",
    "ProfilingCommandHandle",
    "Stream",
]
