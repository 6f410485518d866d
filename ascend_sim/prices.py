"""What an instruction costs whose time nothing shared decides."""

from __future__ import annotations


class Price:
    """What one vector call costs, in cycles.

    `interval`: until the pipe takes the next instruction; `duration`: until the results are visible, drain
    included; `conflict`: the share of both that UB bank conflicts cause, after the first `lead` cycles.
    """

    __slots__ = ("conflict", "duration", "interval", "lead")

    def __init__(self, interval: int, duration: int, conflict: int, lead: int) -> None:
        self.interval = interval
        self.duration = duration
        self.conflict = conflict
        self.lead = lead
