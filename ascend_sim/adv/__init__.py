"""The high-level part of the kernel language: libraries over the basic instructions.

Nothing here has a time or a meaning of its own: every call becomes the basic instructions, flags and barriers that
`asc` offers, so a trace shows what really runs on which pipe. The host side, which chooses tilings, is in `host`.
"""
