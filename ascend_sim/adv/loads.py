"""Loads of the product loop: tiles of a matrix from GM to L1, base blocks of a tile from L1 to L0A and L0B.

In L1 a tile lies as NZ: groups of C0 columns (32 bytes), each with all rows of the tile. Rows and columns here are
those of the stored matrix, which may be the transposed operand. `isa.layout` has the formulas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascend_sim.adv.job import Job, Matrix
from ascend_sim.lang.enums import CubeFormat
from isa.cube_params import (
    InitConstValueParams,
    LoadData2DParams,
    LoadData2dTransposeParams,
    LoadData3DParamsV2,
    Nd2NzParams,
)
from isa.layout import FRACTAL_BYTES, round_up
from isa.load import init_const_value, load_data, load_data_with_transpose
from isa.move import data_copy
from isa.params import DataCopyParams
from isa.stream import current
from isa.types import BLOCK_BYTES, Pipe, int16

if TYPE_CHECKING:
    from ascend_sim.adv.cube import Block
    from isa.tensor import GlobalTensor, LocalTensor

_FIELD = 65535
_REPEATS = 255


@dataclass(slots=True)
class Tile:
    """A part of a stored matrix: its first row and column there, its real size, and how it lies in L1."""

    row: int
    column: int
    rows: int
    columns: int
    height: int
    """Rows of each group of columns in L1."""
    c0: int

    @classmethod
    def of(cls, matrix: Matrix, size: int, depth: int, first: tuple[int, int] = (0, 0)) -> Tile:
        """Return the part of `size` along M or N and `depth` along K from `first` on, as it is stored."""
        wide = matrix.c0 == 32
        by_size = matrix.rows_are_size
        rows, columns = (size, depth) if by_size else (depth, size)
        row, column = first if by_size else first[::-1]
        unit = 32 if wide and not by_size else 16
        return cls(row, column, rows, columns, round_up(rows, unit), matrix.c0)

    @property
    def width(self) -> int:
        """Columns that the tile has in L1."""
        return round_up(self.columns, max(self.c0, 16))

    @property
    def elements(self) -> int:
        """Elements that the tile takes in L1."""
        return self.height * self.width


def tile_to_l1(dst: LocalTensor, matrix: Matrix, tile: Tile, job: Job, *, left: bool) -> None:
    """Copy a tile from GM to L1 (MTE2), ND to NZ where need be.

    Rows that a later instruction needs and the matrix does not have are zeroed first.
    """
    missing = _missing_rows(tile, job, left=left)
    if missing:
        fill_rows(dst, tile, missing)
    elif job.pad_columns and not left and tile.width > round_up(tile.columns, tile.c0):
        _fill_group(dst, tile)
    if matrix.format == CubeFormat.NZ:
        _groups(dst, matrix, tile)
        return
    source = matrix.tensor[tile.row * matrix.pitch + tile.column :]
    if matrix.pitch <= _FIELD:
        params = Nd2NzParams(1, tile.rows, tile.columns, 0, matrix.pitch, tile.height, 1, 0)
        data_copy(dst, source, params)
        return
    for row in range(tile.rows):  # the pitch has 16 bits
        params = Nd2NzParams(1, 1, tile.columns, 0, tile.columns, tile.height, 1, 0)
        data_copy(dst[row * tile.c0 :], source[row * matrix.pitch :], params)


def _missing_rows(tile: Tile, job: Job, *, left: bool) -> int:
    """Return how many rows behind the tile's own must be zero: for one row of A, and columns of a padded result."""
    if left:
        return 15 if not job.a.turned and tile.rows % job.base_m == 1 else 0
    if job.pad_columns and job.b.turned:
        return round_up(tile.rows, 16) - tile.rows
    return 0


def fill_rows(dst: LocalTensor, tile: Tile, count: int) -> None:
    """Zero the last block of 16 rows of every group (MTE2); rows with values are copied over it."""
    groups = round_up(tile.columns, tile.c0) // tile.c0
    first = round_up(tile.rows + count, 16) - 16
    bytes_ = dst.reinterpret_cast(int16)[first * BLOCK_BYTES // 2 :]
    init_const_value(bytes_, InitConstValueParams(groups, 16, tile.height - 16, 0))
    current.get().pipe_barrier(Pipe.MTE2)


def _fill_group(dst: LocalTensor, tile: Tile) -> None:
    """Zero the group of 8 columns that a width of 16 has besides the matrix's own (MTE2)."""
    start = round_up(tile.columns, tile.c0) * tile.height
    init_const_value(dst[start:], InitConstValueParams(1, tile.height, 0, 0))
    current.get().pipe_barrier(Pipe.MTE2)


def _groups(dst: LocalTensor, matrix: Matrix, tile: Tile) -> None:
    """Copy a tile of an NZ matrix: one burst for each group of columns."""
    groups = -(-tile.columns // tile.c0)
    source = matrix.tensor[(tile.column // tile.c0 * matrix.pitch + tile.row) * tile.c0 :]
    gap = matrix.pitch - tile.rows
    if gap <= _FIELD:
        data_copy(dst, source, DataCopyParams(groups, tile.rows, gap, tile.height - tile.rows))
        return
    for group in range(groups):
        data_copy(
            dst[group * tile.height * tile.c0 :],
            source[group * matrix.pitch * tile.c0 :],
            DataCopyParams(1, tile.rows, 0, 0),
        )


def load_row(dst: LocalTensor, src: GlobalTensor, count: int, unit: int) -> None:
    """Copy a row of `count` elements from GM to L1 (MTE2); up to a multiple of `unit` bytes it is zero."""
    size = dst.dtype.size
    if count * size % unit:
        whole = round_up(count * size, unit)
        target = dst.reinterpret_cast(int16)
        init_const_value(target, InitConstValueParams(1, whole // BLOCK_BYTES, 0, 0))
        current.get().pipe_barrier(Pipe.MTE2)
    data_copy(dst, src, Nd2NzParams(1, 1, count, 0, count, 1, 1, 0))


def load_left(
    dst: LocalTensor,
    where: tuple[LocalTensor, Tile],
    job: Job,
    block: Block,
    number: int,
    height: int,
) -> None:
    """Load a base block of A to L0A as ZZ (MTE1)."""
    src, tile = where
    row = block.row * job.base_m
    k = number * job.base_k
    depth = min(job.base_k, job.k - k)
    if not job.a.turned:
        rows = height if block.m == 1 else block.m
        params = _image(tile, (row - tile.row, rows), (k - tile.column, depth))
        load_data(dst, src, params)
    elif job.dtype.size > 1:
        params = _image(tile, (k - tile.row, depth), (row - tile.column, block.m))
        params.en_transpose = True
        load_data(dst, src, params)
    else:
        _left_bytes(dst, src, tile, (row - tile.column, block.m), (k - tile.row, depth))


def _image(tile: Tile, rows: tuple[int, int], columns: tuple[int, int]) -> LoadData3DParamsV2:
    """Return the load of some rows and columns, each as (first, how many), of a tile."""
    return LoadData3DParamsV2(
        l1_h=1,
        l1_w=tile.height,
        channel_size=tile.width,
        k_extension=columns[1],
        m_extension=rows[1],
        k_start_pt=columns[0],
        m_start_pt=rows[0],
    )


def _left_bytes(
    dst: LocalTensor, src: LocalTensor, tile: Tile, m: tuple[int, int], k: tuple[int, int]
) -> None:
    """Load 8-bit A stored as [K, M]: squares of 32, transposed."""
    steps = -(-k[1] // 32)
    for group in range(-(-m[1] // 32)):
        start = (m[0] // 32 + group) * (tile.height // 32) + k[0] // 32
        load_data_with_transpose(
            dst[2 * group * steps * FRACTAL_BYTES :],
            src,
            LoadData2dTransposeParams(start, steps, 1, 0, steps - 1),
        )


def load_right(
    dst: LocalTensor,
    where: tuple[LocalTensor, Tile],
    job: Job,
    block: Block,
    number: int,
    width: int,
) -> None:
    """Load a base block of B to L0B as ZN (MTE1)."""
    src, tile = where
    column = block.column * job.base_n
    k = number * job.base_k
    depth = min(job.base_k, job.k - k)
    if job.b.turned:
        _right_fractals(dst, src, tile, (column - tile.row, width), (k - tile.column, depth))
    elif job.dtype.size > 1:
        load_data(dst, src, _image(tile, (k - tile.row, depth), (column - tile.column, width)))
    else:
        _right_bytes(dst, src, tile, (column - tile.column, width), (k - tile.row, depth))


def _right_fractals(
    dst: LocalTensor, src: LocalTensor, tile: Tile, n: tuple[int, int], k: tuple[int, int]
) -> None:
    """Load B stored as [N, K]: its fractals in L1 are those of L0B already."""
    across, pitch = -(-n[1] // 16), tile.height // 16
    groups = -(-k[1] // tile.c0)
    first = k[0] // tile.c0 * pitch + n[0] // 16
    per = FRACTAL_BYTES // dst.dtype.size
    if across == pitch:
        across, groups = across * groups, 1
    for group in range(groups):
        for low in range(0, across, _REPEATS):
            count = min(_REPEATS, across - low)
            params = LoadData2DParams(first + group * pitch + low, count, 1)
            load_data(dst[(group * across + low) * per :], src, params)


def _right_bytes(
    dst: LocalTensor, src: LocalTensor, tile: Tile, n: tuple[int, int], k: tuple[int, int]
) -> None:
    """Load 8-bit B stored as [K, N]: squares of 32, transposed."""
    groups, pitch = -(-n[1] // 32), tile.height // 32
    for step in range(-(-k[1] // 32)):
        start = n[0] // 32 * pitch + k[0] // 32 + step
        load_data_with_transpose(
            dst[step * 2 * groups * FRACTAL_BYTES :],
            src,
            LoadData2dTransposeParams(start, groups, pitch, 1, 0),
        )
