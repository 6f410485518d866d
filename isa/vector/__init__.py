"""Vector instructions (pipe V of a vector core)."""
