"""Large shapes from small ones: what an estimate says, and how to make one from runs of fewer pieces.

Once the pipes are full and L2 has turned over, every further piece of the work takes the same time. So the time of
n pieces is a straight line from some n on; two parts beyond it give the line, a third one says how straight it is.
This module knows no operator: it is given how long n pieces take. (`sampling` makes estimates from one run that leaves
trips of its loops out.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ascend_sim.errors import ConfigError

GOOD_ENOUGH = 0.01
"""Relative error that is not made smaller by simulating more."""
LEAST = 0.008
"""Error of what was left out, at least, relative to it: parts of neighbouring sizes agree by chance, too."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """What was simulated: `number` of `total`; `cycles` where that was a run of its own."""

    what: str
    number: int
    total: int
    cycles: int | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the whole takes: cycles, and by how many they may be off.

    `parts` say what was simulated. Where all was, the cycles are `exact` and `error` is 0. `counts` has instructions
    and bytes by core and pipe, where they are known.
    """

    cycles: int
    error: int
    parts: tuple[Simulated, ...]
    exact: bool
    counts: Mapping[tuple[str, str, str], int] = field(default_factory=dict)

    @property
    def error_share(self) -> float:
        """The possible error, relative to the cycles."""
        return self.error / self.cycles if self.cycles else 0.0


def estimate(
    total: int,
    enough: int,
    sizes: Callable[[int], int],
    measure: Callable[[int], int],
    unit: str = "pieces",
) -> Estimate:
    """Return what `total` pieces take.

    `enough` is how many it takes until nothing changes any more (L2 has turned over), `sizes(n)` the number of pieces
    nearest to n that can be run, `measure(n)` the cycles of n of them. Where the lines through the parts differ by more
    than a hundredth of the result, parts twice as large are simulated, until half of the whole is.

    Raises `ConfigError` for no pieces at all.
    """
    if total < 1:
        raise ConfigError(f"{total} {unit} of work cannot be sampled")
    known: dict[int, int] = {}

    def part(number: int) -> Simulated:
        if number not in known:
            known[number] = measure(number)
        return Simulated(unit, number, total, known[number])

    largest = 2 * max(enough, 1)  # so that the smallest part has enough
    while 2 * largest < total:
        parts = sorted({sizes(max(largest * share // 4, 1)) for share in (2, 3, 4)})
        if len(parts) == 3 and parts[-1] < total:
            found = _extrapolate(tuple(part(number) for number in parts))
            if found.error_share <= GOOD_ENOUGH:
                return found
        largest *= 2
    whole = part(total)
    return Estimate(known[total], 0, (whole,), True)


def _extrapolate(parts: tuple[Simulated, ...]) -> Estimate:
    """Return the line through the last two parts; twice what the line before it differs by is the error, or `LEAST`."""
    first, second, third = parts
    before, rate = _rate(first, second), _rate(second, third)
    left = third.total - third.number
    cycles = (third.cycles or 0) + round(rate * left)
    off = max(2 * abs(rate - before), LEAST * rate)
    return Estimate(cycles, round(off * left) + 1, parts, False)


def _rate(part: Simulated, larger: Simulated) -> float:
    return ((larger.cycles or 0) - (part.cycles or 0)) / (larger.number - part.number)
