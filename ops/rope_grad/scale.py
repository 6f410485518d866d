"""Parts of a `rope_grad`: fewer rows of the same kind, to estimate large shapes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ascend_sim.config import Chip
from isa.types import float16
from ops.rope_grad.program import DEFAULT_HIDDEN, DEFAULT_SEQ

MANY_SAMPLES = 8
"""From this number on parts have fewer samples, below it shorter ones."""
TURNS = 1.0
"""How often the bytes of a part fill L2, after which it is in the state that it stays in."""
LEAST_ROWS = 4096
"""Rows of a part at least: so many that filling and draining the pipes is none of the slope."""


class RopeGradScale:
    """The rows of a run's samples, and parts of them."""

    unit = "rows"

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = dict(options)
        self.lengths = list(options.get("seq", DEFAULT_SEQ))
        self.hidden = int(options.get("hidden", DEFAULT_HIDDEN))

    @property
    def total(self) -> int:
        """All rows."""
        return sum(self.lengths)

    def enough(self, chip: Chip) -> int:
        """Return how many rows bring L2 into its steady state; the rewritten kernel reads gradients past it."""
        tensors = 4 if self.options.get("variant", "library") == "library" else 2
        row = tensors * self.hidden * float16.size
        return max(LEAST_ROWS, int(TURNS * chip.l2.bytes / row))

    def size(self, rows: int) -> int:
        """Return the number of rows of the part that is nearest to `rows`."""
        return sum(self._part(rows))

    def part(self, rows: int) -> dict[str, Any]:
        """Return the options of a part of about so many rows."""
        lengths = self._part(rows)
        return {**self.options, "seq": lengths, "max_seq": max(self.lengths)}

    def _part(self, rows: int) -> list[int]:
        if rows >= self.total:
            return self.lengths
        share = rows / self.total
        if len(self.lengths) >= MANY_SAMPLES:
            found = []  # the same mixture of lengths, as nearly as whole samples allow
            owed = 0.0
            for length, count in sorted(Counter(self.lengths).items()):
                owed += count * share
                taken = min(count, round(owed))
                owed -= taken
                found += [length] * taken
            return found or [min(self.lengths)]
        return [max(1, round(length * share)) for length in self.lengths]
