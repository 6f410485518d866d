"""The garbage collector at rest while a run makes objects by the million, and hardly a cycle among them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_MANY = 3_000_000
"""Objects of earlier runs after which they are looked through before the next one."""

_unseen = 0


@contextmanager
def no_collection() -> Iterator[None]:
    """Let no garbage be collected inside.

    What is left afterwards counts as old: the collector would begin with a pass through all of it, which takes a
    run's time again, and find it in use.
    """
    global _unseen  # noqa: PLW0603  as the collector, there is one of it
    collecting = gc.isenabled()
    if collecting and _unseen > _MANY:
        gc.collect()
        _unseen = 0
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            _unseen += gc.get_count()[0]
            if not gc.get_freeze_count():  # nobody else has frozen anything
                gc.freeze()
                gc.unfreeze()
            gc.enable()
