"""The on-chip memories of one core, with poison in what nobody has written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isa.memories import Memories
from isa.types import Space

if TYPE_CHECKING:
    from numpy.typing import NDArray

POISON = 0xFF
"""What fresh on-chip memory is filled with: NaN in every floating type."""


class OwnMemories(Memories):
    """The bytes of some memories, poisoned; made when somebody first asks. Those without a size are `others`' own."""

    def __init__(self, sizes: dict[Space, int], others: Memories | None = None) -> None:
        super().__init__()
        self._sizes = sizes
        self._others = others

    def __missing__(self, space: Space) -> NDArray[np.uint8]:
        if space not in self._sizes and self._others is not None:
            return self._others[space]
        memory = self[space] = np.full(self._sizes[space], POISON, np.uint8)
        return memory

    def poison(self) -> None:
        """Fill what has been made so far with poison."""
        for memory in self.values():
            memory.fill(POISON)
