"""pyasc's `asc.runtime.config`: which chip a program runs on."""
