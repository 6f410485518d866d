"""pyasc's `asc.runtime`: how kernels are compiled and launched."""

from ascend_sim.asc.runtime import config

__all__ = ["config"]
