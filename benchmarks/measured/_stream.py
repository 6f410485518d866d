"""Kernels that walk flat arrays tile by tile on vector cores: load, compute, store, two buffers of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, time_launch
from ascend_sim.run import Run

from ._kit import EVENTS, Buffers, load_rows, pieces, share, store_rows, window

Chain = Callable[[list[Any], Any, list[Any], int], None]
"""(loaded tensors, result, room, elements): what is computed of a tile."""
UB_BYTES = 196608


def walk(
    *arrays: Any,
    count: int,
    tile: int,
    chain: Chain | None,
    room: Sequence[tuple[Any, int]] = (),
    sets: int = 2,
) -> None:
    """Take this core's part of `count` elements of all arrays but the last, which gets the results.

    Without a chain the first array is copied. `room` is (type, elements) of tensors that the chain may use.
    """
    *sources, target = (window(array) for array in arrays)
    first, own = share(count, asc.get_block_idx(), asc.get_block_num())
    asc.TPipe()
    buffers = Buffers()
    loaded = [[buffers.take(tile, array.dtype) for array in arrays[:-1]] for _ in range(sets)]
    results = [buffers.take(tile, arrays[-1].dtype) if chain else loaded[i][0] for i in range(sets)]
    used = [buffers.take(size, dtype) for dtype, size in room]
    free = EVENTS.V_MTE2 if chain else EVENTS.MTE3_MTE2
    for index in range(sets):
        asc.set_flag(free, index)
        if chain:
            asc.set_flag(EVENTS.MTE3_V, index)
    for turn, (start, length) in enumerate(pieces(own, tile)):
        index, place = turn % sets, first + start
        asc.wait_flag(free, index)
        for tensor, source in zip(loaded[index], sources, strict=True):
            load_rows(tensor, source[place:], 1, length, length)
        ready = EVENTS.MTE2_V if chain else EVENTS.MTE2_MTE3
        asc.set_flag(ready, index)
        asc.wait_flag(ready, index)
        if chain:
            asc.wait_flag(EVENTS.MTE3_V, index)
            chain(loaded[index], results[index], used, length)
            asc.set_flag(free, index)
            asc.set_flag(EVENTS.V_MTE3, index)
            asc.wait_flag(EVENTS.V_MTE3, index)
        store_rows(target[place:], results[index], 1, length, length)
        asc.set_flag(EVENTS.MTE3_V if chain else free, index)
    for index in range(sets):
        asc.wait_flag(free, index)
        if chain:
            asc.wait_flag(EVENTS.MTE3_V, index)


def run_walk(
    record: Record,
    count: int,
    types: Sequence[Any],
    chain: Chain | None,
    *,
    cores: int,
    tile: int,
    room: Sequence[Any] = (),
    sets: int = 2,
    **options: Any,
) -> Run:
    """Launch a walk over `count` elements of arrays of these types, the result last; `room`: types of further tiles."""
    arrays = [np.zeros(count, dtype) for dtype in types]
    kernel = partial(
        walk, count=count, tile=tile, chain=chain, room=[(dtype, tile) for dtype in room], sets=sets
    )
    return time_launch(kernel, *arrays, record=record, cores=cores, **options)


def tile_for(
    types: Sequence[Any], room: Sequence[Any], count: int, cores: int, sets: int = 2
) -> int:
    """Return the elements of a tile that fill UB, or all that a core has, in whole 256 bytes of float32."""
    each = sets * sum(np.dtype(dtype).itemsize for dtype in types)
    each += sum(dtype.sizeof() for dtype in room)
    own = -(-count // cores)
    most = (UB_BYTES - 4096) // each // 128 * 128
    return min(most, -(-own // 128) * 128)
