"""The nearest name for a name that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the nearest known name, or the known names when none is near."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, 1, 0.5)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known: {', '.join(names)}" if names else ""
