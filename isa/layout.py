"""Matrix layouts of the cube side: conversions between plain rows and NZ, ZZ, ZN, numpy to numpy.

A fractal is a block of 16 rows by C0 columns, C0 = 32 bytes of elements, so 512 bytes. The first letter
of a layout says how fractals follow each other, the second how elements do inside one: Z by rows, N by columns.

- **NZ**, in L1: columns of fractals. Element (m, k) at `(k // C0) * Mp * C0 + m * C0 + k % C0`.
- **ZZ**, A in L0A: rows of fractals. `(m // 16) * Kp * 16 + (k // C0) * 16 * C0 + (m % 16) * C0 + k % C0`.
- **ZN**, B in L0B: `(k // C0) * Np * C0 + (n // 16) * 16 * C0 + (n % 16) * C0 + k % C0`.
- **NZ with 16 columns**, C in L0C: NZ with C0 = 16 whatever the type, `nd_to_nz(c, c0=16)`.

Mp, Kp, Np are the sizes rounded up to whole fractals. The functions that build a layout return a flat array,
padding filled with zero; the inverse ones drop the padding. Nothing here belongs to an instruction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isa.types import BLOCK_BYTES, DType

if TYPE_CHECKING:
    from numpy.typing import NDArray

FRACTAL_BYTES = 512
"""One fractal of L1, L0A and L0B; the unit of `load_data`."""
FRACTAL_ROWS = 16


def c0_size(dtype: DType) -> int:
    """Return C0, the elements of 32 bytes: 32 for 8-bit types, 16 for 16-bit, 8 for 32-bit."""
    return BLOCK_BYTES // dtype.size


def fractal_shape(dtype: DType) -> tuple[int, int]:
    """Return the rows and columns of one fractal in L1 and L0A: 16 × C0 (L0B holds its transpose).

    >>> from isa.types import float16, float32, int8
    >>> fractal_shape(float16), fractal_shape(float32), fractal_shape(int8)
    ((16, 16), (16, 8), (16, 32))
    """
    return FRACTAL_ROWS, c0_size(dtype)


def round_up(size: int, unit: int) -> int:
    """Return the smallest multiple of `unit` that is at least `size`."""
    return -(-size // unit) * unit


def _c0(values: NDArray[Any], c0: int | None) -> int:
    return BLOCK_BYTES // values.dtype.itemsize if c0 is None else c0


def _matrix(values: NDArray[Any], name: str) -> tuple[int, int]:
    if values.ndim != 2:
        raise ValueError(f"{name} takes a matrix (2 axes), got an array with {values.ndim}")
    return values.shape[0], values.shape[1]


def _padded(values: NDArray[Any], rows: int, columns: int) -> NDArray[Any]:
    result = np.zeros((rows, columns), values.dtype)
    result[: values.shape[0], : values.shape[1]] = values
    return result


def _blocks(values: NDArray[Any], shape: tuple[int, ...], name: str) -> NDArray[Any]:
    needed = int(np.prod(shape))
    if values.size < needed:
        raise ValueError(f"{name}: the layout has {needed} elements, the array {values.size}")
    return values.reshape(-1)[:needed].reshape(shape)


def nd_to_nz(matrix: NDArray[Any], c0: int | None = None) -> NDArray[Any]:
    """Return a row-major [M, K] matrix as NZ: what ND2NZ leaves in L1. `c0` defaults to 32 bytes of elements.

    Raises `ValueError` unless the array has two axes.

    >>> a = np.arange(32, dtype=np.float32).reshape(2, 16)   # C0 = 8: two column groups
    >>> nz = nd_to_nz(a)
    >>> nz.size, nz[:9].tolist()        # row 0, columns 0 to 7; then row 1
    (256, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 16.0])
    >>> nz[128].item()                  # column 8 opens the second group, 16 rows of 8 further on
    8.0
    """
    rows, columns = _matrix(matrix, "nd_to_nz")
    c0 = _c0(matrix, c0)
    rows, columns = round_up(rows, FRACTAL_ROWS), round_up(columns, c0)
    grouped = _padded(matrix, rows, columns).reshape(rows, columns // c0, c0)
    return np.ascontiguousarray(grouped.transpose(1, 0, 2)).reshape(-1)


def nz_to_nd(values: NDArray[Any], rows: int, columns: int, c0: int | None = None) -> NDArray[Any]:
    """Return the [rows, columns] matrix that an NZ array holds. Raises `ValueError` when the array is too short."""
    c0 = _c0(values, c0)
    padded = round_up(rows, FRACTAL_ROWS), round_up(columns, c0)
    blocks = _blocks(values, (padded[1] // c0, padded[0], c0), "nz_to_nd")
    return np.ascontiguousarray(blocks.transpose(1, 0, 2).reshape(padded)[:rows, :columns])


def nd_to_zz(matrix: NDArray[Any]) -> NDArray[Any]:
    """Return a row-major A [M, K] as ZZ: what mmad reads from L0A. Raises `ValueError` unless 2 axes."""
    rows, columns = _matrix(matrix, "nd_to_zz")
    c0 = _c0(matrix, None)
    rows, columns = round_up(rows, FRACTAL_ROWS), round_up(columns, c0)
    shape = (rows // FRACTAL_ROWS, FRACTAL_ROWS, columns // c0, c0)
    blocks = _padded(matrix, rows, columns).reshape(shape)
    return np.ascontiguousarray(blocks.transpose(0, 2, 1, 3)).reshape(-1)


def zz_to_nd(values: NDArray[Any], rows: int, columns: int) -> NDArray[Any]:
    """Return the [rows, columns] matrix that a ZZ array holds. Raises `ValueError` when the array is too short."""
    c0 = _c0(values, None)
    padded = round_up(rows, FRACTAL_ROWS), round_up(columns, c0)
    shape = (padded[0] // FRACTAL_ROWS, padded[1] // c0, FRACTAL_ROWS, c0)
    blocks = _blocks(values, shape, "zz_to_nd")
    return np.ascontiguousarray(blocks.transpose(0, 2, 1, 3).reshape(padded)[:rows, :columns])


def nd_to_zn(matrix: NDArray[Any]) -> NDArray[Any]:
    """Return a row-major B [K, N] as ZN: what mmad reads from L0B. Raises `ValueError` unless 2 axes."""
    _matrix(matrix, "nd_to_zn")
    rows, columns = matrix.shape  # K, N
    c0 = _c0(matrix, None)
    rows, columns = round_up(rows, c0), round_up(columns, FRACTAL_ROWS)
    shape = (rows // c0, c0, columns // FRACTAL_ROWS, FRACTAL_ROWS)
    blocks = _padded(matrix, rows, columns).reshape(shape)
    return np.ascontiguousarray(blocks.transpose(0, 2, 3, 1)).reshape(-1)


def zn_to_nd(values: NDArray[Any], rows: int, columns: int) -> NDArray[Any]:
    """Return the [rows, columns] matrix that a ZN array holds. Raises `ValueError` when the array is too short."""
    c0 = _c0(values, None)
    padded = round_up(rows, c0), round_up(columns, FRACTAL_ROWS)
    shape = (padded[0] // c0, padded[1] // FRACTAL_ROWS, FRACTAL_ROWS, c0)
    blocks = _blocks(values, shape, "zn_to_nd")
    return np.ascontiguousarray(blocks.transpose(0, 3, 1, 2).reshape(padded)[:rows, :columns])
