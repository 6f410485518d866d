"""pyasc's `asc.lib.runtime`: streams, memory and the device, as a program on the host sees them."""
