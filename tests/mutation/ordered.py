"""Which accesses of a run are in order, by brute force from its log: nothing here is shared with the checks.

An instruction knows of others that they are through: what its pipe knew before, what the scalar unit knew when it
issued it, and, behind a barrier or a wait, all that the barrier or the flag's set stands for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ascend_sim.trace import Item, Kind, Log
from isa.types import Pipe

Pair = tuple[tuple[Any, ...], tuple[Any, ...]]


def unordered(log: Log) -> set[Pair]:
    """Return the pairs of places whose instructions share bytes, one of them writing, with nothing that orders them."""
    items = [item for core in log.cores for item in core.items if item.start >= 0]
    number = {
        id(item): n for n, item in enumerate(one for one in items if one.kind is Kind.INSTRUCTION)
    }
    knows = _knowledge(items, number)
    accesses = [
        (number[id(item)], item, access, writes)
        for item in items
        if id(item) in number
        for writes in (True, False)
        for access in getattr(item.call, "writes" if writes else "reads", None) or ()
    ]
    groups: dict[Any, list[Any]] = {}
    for one in accesses:
        access = one[2]
        where = access.buffer.index if access.buffer is not None else (one[1].core, access.space)
        groups.setdefault(where, []).append(one)
    found: set[Pair] = set()
    masks: dict[Any, Any] = {}
    for group in groups.values():
        low = np.array([one[2].low for one in group])
        high = np.array([one[2].high for one in group])
        writes = np.array([one[3] for one in group])
        for place, (mine, item, _, write) in enumerate(group):
            rest = slice(place + 1, None)
            meets = (low[rest] < high[place]) & (high[rest] > low[place]) & (writes[rest] | write)
            for other in np.flatnonzero(meets) + place + 1:
                theirs, partner = group[other][:2]
                if mine == theirs or knows[mine] >> theirs & 1 or knows[theirs] >> mine & 1:
                    continue
                pair = sorted([_place(log, item), _place(log, partner)])
                both = (pair[0], pair[1])
                if both not in found and _share(group[place][2], group[other][2], masks):
                    found.add(both)
    return found


def _share(one: Any, other: Any, masks: dict[Any, Any]) -> bool:
    """Return whether two accesses whose extents meet share a byte: element by element."""
    plain = all(access.lanes is None and len(access.shape) == 1 for access in (one, other))
    if plain and all(access.strides[0] <= access.dtype.size for access in (one, other)):
        return True
    (first, mine), (second, theirs) = _mask(one, masks), _mask(other, masks)
    low, high = max(first, second), min(first + len(mine), second + len(theirs))
    return bool((mine[low - first : high - first] & theirs[low - second : high - second]).any())


def _mask(access: Any, masks: dict[Any, Any]) -> tuple[int, Any]:
    """Return the first byte of an access, and for each from there on whether it belongs to it."""
    lanes = None if access.lanes is None else (access.lanes.shape, access.lanes.tobytes())
    key = access.shape, access.strides, access.dtype.size, lanes
    if key not in masks:
        places = _bytes(access) - access.base
        mask = np.zeros(int(places.max(initial=-1)) + 1, bool)
        mask[places] = True
        masks[key] = mask
    return access.base, masks[key]


def _bytes(access: Any) -> Any:
    """Return the addresses of all bytes of the elements that take part."""
    places = np.full((1,) * len(access.shape), access.base, np.int64)
    for axis, (count, stride) in enumerate(zip(access.shape, access.strides, strict=True)):
        steps = np.arange(count, dtype=np.int64) * stride
        places = places + steps.reshape([-1 if n == axis else 1 for n in range(len(access.shape))])
    if access.lanes is not None:
        places = places[np.broadcast_to(access.lanes, access.shape)]
    return (places.reshape(-1, 1) + np.arange(access.dtype.size)).ravel()


def _place(log: Log, item: Item) -> tuple[Any, ...]:
    site = log.sites[item.site]
    return site.file, site.line, item.name, item.pipe.name


def _knowledge(items: list[Item], number: dict[int, int]) -> dict[int, int]:
    """Return for each instruction the others that are through when it starts, as bits."""
    known: dict[tuple[int, Pipe], int] = {}
    before: dict[tuple[int, Pipe], int] = {}  # a pipe's instructions so far
    told: dict[int, int] = {}  # by a set
    result: dict[int, int] = {}
    scalar: dict[
        int, list[tuple[int, int]]
    ] = {}  # by core: (index, what the scalar unit knows from there on)
    for item in sorted(items, key=lambda one: (one.start, one.core, one.index)):
        lane = item.core, item.pipe
        mine = known.get(lane, 0)
        for index, what in reversed(scalar.get(item.core, [])):
            if index < item.index:
                mine |= what
                break
        own = before.get(lane, 0)
        if item.kind is Kind.WAIT_FLAG and item.partner is not None:
            mine |= told.get(id(item.partner), 0)
        elif item.kind is Kind.BARRIER and item.pipe is not Pipe.S:
            mine |= own
        elif item.kind is Kind.BARRIER:
            for (core, _), bits in [*before.items(), *known.items()]:
                mine |= bits if core == item.core else 0
        elif item.kind is Kind.SET_FLAG:
            told[id(item)] = mine | own
        known[lane] = mine
        if item.pipe is Pipe.S:
            if id(item) in number:  # the scalar unit does one thing after the other
                known[lane] = mine | 1 << number[id(item)]
            scalar.setdefault(item.core, []).append((item.index, known[lane]))
        if id(item) in number:
            result[number[id(item)]] = mine
            before[lane] = own | 1 << number[id(item)]
    return result
