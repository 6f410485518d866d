"""pyasc's `asc.lib`: what a program calls on the host."""

from ascend_sim.asc.lib import host, runtime

__all__ = ["host", "runtime"]
