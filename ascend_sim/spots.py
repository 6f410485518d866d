"""How the functions of a kernel were called: what finding a call site again needs."""

from __future__ import annotations

from typing import Any


class Spot:
    """A function of a kernel, called in one way: `below` it those that it calls, `sites` its own call sites.

    Functions by code and the caller's instruction, sites by instruction; both as their offsets. A code goes by its id:
    a hash would go over all its constants.
    """

    __slots__ = ("below", "sites")

    def __init__(self) -> None:
        self.below: dict[tuple[int, int], Spot] = {}
        self.sites: dict[Any, int] = {}
