"""The scalar unit's instruction cache: code that a core runs for the first time comes from L2.

Only the first touch has a price. A call of the kernel stands for `icache.call_bytes` of code, in the order in which the
core comes to its calls; the function's callers belong to it, as a device function is inlined. A miss brings in its line
and those that are fetched ahead with it. Lines do not leave: what a kernel loses whose loops are larger than the cache
is not simulated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascend_sim.cost import whole

if TYPE_CHECKING:
    from ascend_sim.config import ICache


class CodeCache:
    """What one core has fetched of its program in this launch."""

    def __init__(self, cache: ICache) -> None:
        self.known: list[bool] = [
            True
        ]  # by call site; the first one stands for the simulator's own items
        self._miss = whole(cache.miss)
        self._call = cache.call_bytes
        self._portion = cache.line * (1 + cache.prefetch)
        self._bytes = 0  # code of all calls so far
        self._fetched = 0

    def fetch(self, site: int) -> int:
        """Take note of a call site that the core has not come to before; return the cycles until its code is there."""
        known = self.known
        while len(known) <= site:
            known.append(False)
        known[site] = True
        self._bytes += self._call
        cycles = 0
        while self._fetched < self._bytes:
            self._fetched += self._portion
            cycles += self._miss
        return cycles
