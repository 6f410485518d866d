"""pyasc's `asc.lib.host`: the tiling of the high-level part, and the platform that it asks."""
