"""One thread for the matrix library while a run or a reference multiplies many small matrices.

A library shares even 128 x 128 products among threads, which takes tens of times as long where other processes keep the
processor busy (measured: 27 ms instead of 0.06). Whoever wants more cores runs several launches side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let the matrix library use one thread inside; the number from before is back afterwards."""
    with _controller().limit(limits=1, user_api="blas"):
        yield
