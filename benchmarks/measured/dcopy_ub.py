"""Loads from GM to UB without compute: one matrix in tiles of different shape, alignment and order."""

from __future__ import annotations

from functools import partial

import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, time_launch, times

from ._kit import local, pieces, scale, share, window

Walk = list[tuple[int, int, int, int]]
"""Tiles in the order of their loads: first row, rows, first column, columns."""


def load_tiles(x, width: int, walks: list[Walk], bypass: bool):
    """Load a core's tiles one behind the other to the same place."""
    source = window(x, bypass=bypass)
    for row, rows, column, columns in walks[asc.get_block_idx()]:
        tile = local(0, rows * -(-columns // 16) * 16, x.dtype)
        start = source[row * width + column :]
        length, gap = columns * 2, (width - columns) * 2
        if length % 32 or gap % 32:
            params = asc.DataCopyExtParams(rows, length, gap, 0, 0)
            asc.data_copy_pad(
                tile, start, params, asc.DataCopyPadExtParams(asc.float16, False, 0, 0, 0)
            )
        else:
            params = asc.DataCopyParams(rows, length // 32, gap // 32, 0)
            asc.data_copy(tile, start, params)


def walk_own_rows(
    height: int, width: int, tile: tuple[int, int], cores: int, passes: int, split: int
) -> list[Walk]:
    """Return each core's walk over its own rows; each of `split` parts of the columns is read `passes` times."""
    walks = []
    for core in range(cores):
        first, rows = share(height, core, cores)
        part = width // split
        walks.append(
            [
                (first + row, count, start * part + column, columns)
                for start in range(split)
                for _ in range(passes)
                for row, count in pieces(rows, tile[0])
                for column, columns in pieces(
                    part if start < split - 1 else width - part * start, tile[1]
                )
            ]
        )
    return walks


MOST = 4096
"""Copies of each core that are simulated of a stream; the rest is in proportion."""
STREAMED = {"tile", "bytes_per_copy", "burst_bytes"}
"""Parameters of a record that reads its matrix once and nothing else."""


def walk_all(
    height: int, width: int, tile: tuple[int, int], cores: int, rotated: bool
) -> list[Walk]:
    """Return walks over the whole matrix, all from the first tile or each core from another."""
    tiles = [
        (row, rows, column, columns)
        for row, rows in pieces(height, tile[0])
        for column, columns in pieces(width, tile[1])
    ]
    steps = [core * len(tiles) // cores if rotated else 0 for core in range(cores)]
    return [tiles[step:] + tiles[:step] for step in steps]


def walks_of(record: Record, tile: tuple[int, int]) -> list[Walk]:
    """Return the walks of a record."""
    height, width = record.shape
    params = record.params
    if params.get("all_cores_read_all"):
        return walk_all(height, width, tile, record.cores, params["order"] == "rotated")
    split = 4 if params.get("order") == "split4" else 1
    return walk_own_rows(height, width, tile, record.cores, params.get("passes", 1), split)


def simulate(record: Record) -> dict:
    height, width = record.shape
    tile = tuple(record.params.get("tile", (64, 1024)))
    walks = walks_of(record, tile)
    whole = len(walks[0])
    # One pass that reads nothing twice is a stream: part of it says what all of it takes.
    part = min(whole, MOST) if record.params.keys() <= STREAMED else whole
    kernel = partial(
        load_tiles,
        width=width,
        walks=[walk[:part] for walk in walks],
        bypass=record.params.get("l2_hint") == "disabled",
    )
    x = np.zeros((height, width), np.float16)
    run = time_launch(kernel, x, record=record, cores=record.cores)
    if part == whole:
        return times(run)
    return scale(run, whole / part, whole / part) | {
        "simulated_part": f"{part} of {whole} copies a core, scaled"
    }
