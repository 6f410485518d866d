"""Where in a tensor elements are, in words: "index 0 of every 64", "columns 512 to 519 of every row"."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ascend_sim.coverage import axis_text

Mask = NDArray[np.bool_]
_FEWEST = 3
"""Elements at equal distances that are a pattern; two always are."""


def pattern_of(marked: Mask) -> str:
    """Say which elements of a tensor are marked: all, one place of each stretch, rows, columns, a part, or scattered.

    >>> pattern_of(np.arange(192) % 64 == 0)
    'index 0 of every 64'
    """
    flat = np.flatnonzero(marked)
    if not len(flat):
        return "none"
    if len(flat) == marked.size:
        return "all elements"
    return _periodic(flat, marked) or _part(flat, marked)


def _periodic(flat: NDArray[np.int64], marked: Mask) -> str:
    """Say at which places of stretches of one length the elements are, where they are that all along."""
    starts = flat[np.flatnonzero(np.diff(flat, prepend=-2) != 1)]
    if len(starts) < _FEWEST:
        return ""
    steps = np.unique(np.diff(starts))
    if len(steps) != 1 or len(flat) % len(starts):
        return ""
    period, width = int(steps[0]), len(flat) // len(starts)
    whole = starts[0] < period and marked.size - starts[-1] <= period
    if not whole or np.any(np.diff(np.append(starts, starts[-1] + period)) != period):
        return ""
    if marked.ndim > 1 and period % marked.shape[-1] == 0 and width % marked.shape[-1] == 0:
        return ""  # whole rows: say so
    if marked.ndim > 1 and period == marked.shape[-1]:
        return ""  # columns
    first = int(starts[0])
    if width == 1:
        return f"index {first} of every {period}"
    return f"indices {first} to {first + width - 1} of every {period}"


def _part(flat: NDArray[np.int64], marked: Mask) -> str:
    ends = np.flatnonzero(np.diff(flat) != 1)
    low = flat[np.append(0, ends + 1)]
    high = flat[np.append(ends, len(flat) - 1)] + 1
    text = axis_text(np.stack([low, high], axis=1), marked.shape, 1)
    if len(low) == 1 and high[0] == marked.size and marked.ndim == 1:
        return f"all from element {int(low[0])} on"
    return text


def constant_ratio(given: NDArray[Any], wanted: NDArray[Any]) -> float | None:
    """Return the factor that all of `given` are of `wanted`, to a part in a thousand; None where there is none."""
    used = np.isfinite(given) & np.isfinite(wanted) & (wanted != 0)
    if np.count_nonzero(used) < _FEWEST or np.any(given[~used & np.isfinite(wanted)] != 0):
        return None
    ratios = given[used] / wanted[used]
    middle = float(np.median(ratios))
    if middle == 0 or not np.all(np.abs(ratios - middle) <= 1e-3 * abs(middle)):
        return None
    return middle
