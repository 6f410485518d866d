"""Large shapes from small ones: three parts of the work are simulated exactly, the rest is their steady rate.

Once the pipes are full and L2 has turned over, every further piece of the work takes the same time. So the time of
n pieces is a straight line from some n on; two parts beyond it give the line, a third one says how straight it is.
This module knows no operator: it is given how long n pieces take.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ascend_sim.errors import ConfigError

GOOD_ENOUGH = 0.01
"""Relative error that is not made smaller by simulating more."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the whole takes: cycles, and by how many they may be off.

    `parts` are the pieces that were simulated and their cycles. Where all pieces were, the cycles are exact and
    `error` is 0.
    """

    cycles: int
    error: int
    parts: tuple[tuple[int, int], ...]
    total: int

    @property
    def exact(self) -> bool:
        """Whether everything was simulated."""
        return self.parts[-1][0] == self.total

    @property
    def error_share(self) -> float:
        """The possible error, relative to the cycles."""
        return self.error / self.cycles if self.cycles else 0.0


def estimate(
    total: int,
    enough: int,
    sizes: Callable[[int], int],
    measure: Callable[[int], int],
) -> Estimate:
    """Return what `total` pieces take.

    `enough` is how many it takes until nothing changes any more (L2 has turned over), `sizes(n)` the number of pieces
    nearest to n that can be run, `measure(n)` the cycles of n of them. Where the lines through the parts differ by more
    than a hundredth of the result, parts twice as large are simulated, until half of the whole is.

    Raises `ConfigError` for no pieces at all.
    """
    if total < 1:
        raise ConfigError(f"{total} pieces of work cannot be sampled")
    known: dict[int, int] = {}

    def cycles(number: int) -> int:
        if number not in known:
            known[number] = measure(number)
        return known[number]

    largest = 2 * max(enough, 1)  # so that the smallest part has enough
    while 2 * largest < total:
        parts = sorted({sizes(max(largest * share // 4, 1)) for share in (2, 3, 4)})
        if len(parts) == 3 and parts[-1] < total:
            found = _extrapolate([(number, cycles(number)) for number in parts], total)
            if found.error_share <= GOOD_ENOUGH:
                return found
        largest *= 2
    return Estimate(cycles(total), 0, ((total, cycles(total)),), total)


def _extrapolate(parts: list[tuple[int, int]], total: int) -> Estimate:
    """Return the line through the last two parts at `total`; twice what the line before it differs by is the error."""
    (first, a), (second, b), (third, c) = parts
    before, rate = (b - a) / (second - first), (c - b) / (third - second)
    left = total - third
    spread = abs(rate - before)
    return Estimate(round(c + rate * left), round(2 * spread * left) + 1, tuple(parts), total)
