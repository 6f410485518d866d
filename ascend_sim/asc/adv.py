"""pyasc's `asc.adv`, the high-level part: libraries over the basic instructions."""
