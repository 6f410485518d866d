"""The host side of the high-level part: which chip there is, and how a product is cut for it."""
