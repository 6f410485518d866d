"""Which queries look at which keys, in tiles, and which core takes them."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ._tiles import round_up

ROWS = 128
"""Queries of a cube core, and keys of one product."""


@dataclass(frozen=True)
class Task:
    """A block of 128 queries of one head and the keys that it looks at, as rows of Q, K, V."""

    query: int
    key: int
    keys: int
    masked: int = 0
    """Tiles at the end of the keys to which a mask is added."""


@dataclass(frozen=True)
class Shape:
    """Head size, keys of a tile, how far scores are ahead, tiles of the rings."""

    depth: int
    tile: int = 256
    ahead: int = 4
    fifo: int = 8

    def tiles(self, task: Task) -> int:
        return -(-task.keys // self.tile)


@dataclass(frozen=True)
class Step:
    """A tile of a task: which task, which tile of it, whether it is the first or the last."""

    task: Task
    number: int
    first: bool
    last: bool


def steps_of(tasks: Sequence[Task], shape: Shape) -> list[Step]:
    """Return the tiles of a core in order."""
    return [
        Step(task, number, number == 0, number == shape.tiles(task) - 1)
        for task in tasks
        for number in range(shape.tiles(task))
    ]


def whole_tasks(
    queries: int, keys: int, batch: int, heads: int, key_heads: int, shape: Shape
) -> list[Task]:
    """Return the tasks where each query looks at all keys; few queries of a group of heads share a block."""
    group = heads // key_heads
    rows = group * queries if queries < ROWS else queries
    repeat = 1 if queries < ROWS else group
    pitch, long = round_up(rows, ROWS), round_up(keys, shape.tile)
    return [
        Task((head * repeat + member) * pitch + row, head * long, keys)
        for head in range(batch * key_heads)
        for member in range(repeat)
        for row in range(0, rows, ROWS)
    ]


def causal_tasks(
    queries: int, keys: int, batch: int, heads: int, key_heads: int, shape: Shape
) -> list[Task]:
    """Return the tasks where a query looks at the keys up to its own, the last query at the last key."""
    pitch, long = round_up(queries, ROWS), round_up(keys, shape.tile)
    group = heads // key_heads
    return [
        Task(
            head * pitch + row,
            head // group * long,
            max(ROWS, min(keys, keys - queries + row + ROWS)),
            masked=1,
        )
        for head in range(batch * heads)
        for row in range(0, queries, ROWS)
    ]


def deal_tasks(tasks: Sequence[Task], cores: int, shape: Shape) -> list[list[Task]]:
    """Return each core's tasks: the longest first, always to the core that has least."""
    dealt: list[list[Task]] = [[] for _ in range(cores)]
    load = [(0, core) for core in range(cores)]
    for task in sorted(tasks, key=shape.tiles, reverse=True):
        sum_, core = heapq.heappop(load)
        dealt[core].append(task)
        heapq.heappush(load, (sum_ + shape.tiles(task), core))
    return [own for own in dealt if own]


def cut(tasks: Sequence[Task], shape: Shape, limit: int) -> list[Task]:
    """Return the first tasks of a core with `limit` tiles in all; the last of them may be shortened."""
    result, left = [], limit
    for task in tasks:
        tiles = min(left, shape.tiles(task))
        if tiles:
            result.append(replace(task, keys=min(task.keys, tiles * shape.tile)))
        left -= tiles
    return result
