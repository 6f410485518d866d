"""What the trips that a sampled run left out would have taken, from those that it made.

All cores that run a loop are looked at together: their trips are alike but for what the kernel says that they depend
on. This module knows no machine; it is given marks and counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ascend_sim.trips import DRAIN, FILLING, START, WARM, Counts, Stretch

if TYPE_CHECKING:
    from numpy.typing import NDArray

OVERLAP = 3
"""Trips that run at a time, at most: what passes between two marks is some of each, and each has its own slopes."""
LOOKED_AT = 400
"""Trips of a gap whose features are asked for; the others are like them."""
AT_LEAST = 0.05
"""Error of what was left out at least: several times what comparisons with full runs show (docs/tuning.md)."""
CERTAIN = 3.0
"""Standard errors from which on a core's own pace is not chance."""


_Place = tuple[int, bool]
"""A window, and whether dirty sectors leave L2 by then."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What one core would have done in the trips that were left out of a loop."""

    core: int
    phase: int
    arrival: int
    """When the core left the loop in the sampled run."""
    trips: int
    cycles: float
    error: float
    counts: Counts


def left_out(stretches: Sequence[Stretch]) -> list[LeftOut]:
    """Return what each core left out of one loop; `stretches` has that loop on each core."""
    fit = _Fit(stretches)
    return [fit.extrapolate(stretch) for stretch in stretches]


class _Fit:
    """Times and counts of a trip as a line in its features, with a level of its own for each window.

    A window is what was measured between two gaps. The trips of a gap lie between the levels of the windows on
    either side: half way on average, nearer to the later one where cores drew level (`Stretch.settling`). A window in
    which dirty sectors begin to leave L2 has two levels, and a gap's trips have those of their own side of that.
    """

    def __init__(self, stretches: Sequence[Stretch]) -> None:
        self._columns = sorted(
            {name for one in stretches for count in one.counts for name in count}
        )
        rows: list[tuple[_Place, int, NDArray[Any], NDArray[Any]]] = []
        for stretch in stretches:
            features = [_features(stretch, trip) for trip in stretch.trips]
            for window, position in _measured(stretch):
                near = np.concatenate([features[max(0, position - lag)] for lag in range(OVERLAP)])
                place = window, stretch.trips[position] >= stretch.full_from
                rows.append((place, stretch.core, near, self._values(stretch, position)))
        self._known = sorted({row[0] for row in rows})
        windows = np.array([[row[0] == known for known in self._known] for row in rows], float)
        features_ = np.array([row[2] for row in rows])
        values = np.array([row[3] for row in rows])
        self._center = features_.mean(axis=0)
        design = np.hstack([windows, features_ - self._center])
        solution = np.linalg.lstsq(design, values, rcond=None)[0]
        self._levels, self._slopes = solution[: len(self._known)], solution[len(self._known) :]
        rest = values[:, 0] - design @ solution[:, 0]
        self._noise = float(rest.std() / np.sqrt(len(rest)))
        self._own = _own_pace(
            rest, np.array([row[1] for row in rows]), np.array([row[0][0] for row in rows])
        )

    def _values(self, stretch: Stretch, position: int) -> NDArray[Any]:
        times, counts = stretch.times, stretch.counts[position]
        length = times[position + 1] - times[position]
        return np.array([length, *(counts[name] for name in self._columns)], float)

    def extrapolate(self, stretch: Stretch) -> LeftOut:
        """Return what a core left out."""
        total = np.zeros(1 + len(self._columns))
        trips, error = 0, 0.0
        for window, (first, end) in _parts(stretch):
            full = first >= stretch.full_from
            before, after = self._level((window, full)), self._level((window + 1, full))
            step = max(1, (end - first) // LOOKED_AT) | 1  # odd: in no step with buffers in turn
            features = np.mean([_features(stretch, t) for t in range(first, end, step)], axis=0)
            near = np.tile(features, OVERLAP)
            earlier = _share(stretch, window, first, end)
            one = earlier * before + (1 - earlier) * after + (near - self._center) @ self._slopes
            one[0] += self._own.get(stretch.core, 0.0)
            number = end - first
            trips += number
            total += number * one
            spread = abs(after[0] - before[0]) / 2 + 2 * self._noise
            error += number * max(spread, AT_LEAST * abs(one[0]))
        counts: Counts = Counter(
            {name: round(value) for name, value in zip(self._columns, total[1:], strict=True)}
        )
        return LeftOut(
            stretch.core, stretch.phase, stretch.times[-1], trips, float(total[0]), error, counts
        )

    def _level(self, place: _Place) -> NDArray[Any]:
        """Return the level of a place, or of the nearest one, on the same side of L2's being full if there is one."""
        window, full = place
        nearest = min(self._known, key=lambda known: (known[1] != full, abs(known[0] - window)))
        found: NDArray[Any] = self._levels[self._known.index(nearest)]
        return found


def _parts(stretch: Stretch) -> list[tuple[int, tuple[int, int]]]:
    """Return the trips left out, first and end, behind each window: those before and those after L2 is full."""
    found = []
    for window, gap in enumerate(stretch.gaps):
        first, end = stretch.trips[gap] + 1, stretch.trips[gap + 1]
        middle = int(min(max(first, stretch.full_from), end))
        found += [(window, part) for part in ((first, middle), (middle, end)) if part[0] < part[1]]
    return found


def _features(stretch: Stretch, trip: int) -> NDArray[Any]:
    if stretch.features is None:
        return np.zeros(0)
    return np.atleast_1d(np.asarray(stretch.features(trip), float))


def _measured(stretch: Stretch) -> list[tuple[int, int]]:
    """Return window and position of the trips that count: settled, with others before and behind them."""
    ends = [*stretch.gaps, len(stretch.trips) - 1 - DRAIN * stretch.scale]
    found = []
    first = 0
    for window, last in enumerate(ends):
        # At the first gap cores may have waited for each other.
        stop = last if window == 0 else last + 1
        settled = first + (WARM if window else START) * stretch.scale
        found += [
            (window, position)
            for position in range(settled, stop)
            if not 0 <= stretch.trips[position] + 1 - stretch.full_from < FILLING
        ]
        first = stretch.gaps[window] + 1 if window < len(stretch.gaps) else stop
    return found


def _share(stretch: Stretch, window: int, first: int, end: int) -> float:
    """Return how much of the level before a gap some of its trips have on average; the level behind it has the rest.

    What is not settled yet shrinks by the same factor in each trip. Levels are those of the middle of their windows.
    """
    stays = stretch.settling[window] if stretch.settling else 1.0
    gap = stretch.gaps[window]
    edges = (window, stretch.trips[gap]), (window + 1, stretch.trips[gap + 1])
    middles = [
        float(
            np.mean([stretch.trips[at] for side, at in _measured(stretch) if side == one] or [edge])
        )
        for one, edge in edges
    ]
    length = middles[1] - middles[0]
    places = np.arange(first, end) - middles[0]
    if stays >= 1 - 1e-6:
        return float(np.clip(1 - places / length, 0, 1).mean())
    left = stays**length
    return float(np.clip((stays**places - left) / (1 - left), 0, 1).mean())


def _own_pace(rest: NDArray[Any], cores: NDArray[Any], windows: NDArray[Any]) -> dict[int, float]:
    """Return by how much cores differ from what their trips' features say, where that is no chance.

    A pace shows in every window: what a core loses once, at one gap, is none.
    """
    spread = float(rest.std())
    found = {}
    for core in np.unique(cores):
        mine = cores == core
        pace = float(rest[mine].mean())
        parts = [rest[mine & (windows == window)] for window in np.unique(windows)]
        if all(
            np.sign(pace) * p.mean() > CERTAIN * spread / np.sqrt(len(p)) for p in parts if len(p)
        ):
            found[int(core)] = pace
    return found
