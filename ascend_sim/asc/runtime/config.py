"""pyasc's `asc.runtime.config`: which chip a program runs on."""

from ascend_sim.lang.device import Backend, Platform, set_platform
from ascend_sim.placement import KernelType

__all__ = ["Backend", "KernelType", "Platform", "set_platform"]
