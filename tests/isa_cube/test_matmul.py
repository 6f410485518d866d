"""Whole products, GM to GM: every way from a layout in GM to L0, with tails, bias and tiles of k.

Values are small whole numbers, so that every sum is exact in float32 and results must be equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isa.cube import mmad
from isa.cube_params import (
    FixpipeConfig,
    FixpipeParamsV220,
    LoadData2DParams,
    LoadData2dTransposeParams,
    LoadData3DParamsV2,
    MmadParams,
    Nd2NzParams,
    QuantModes,
)
from isa.fixpipe import fixpipe
from isa.load import load_data, load_data_with_transpose
from isa.move import data_copy
from isa.tensor import GlobalTensor, LocalTensor
from isa.types import DType, Pipe, Space, bfloat16, float16, float32, int8, int32
from tests.isa_cube.kit import bits, cube, gm, local

L1, L0A, L0B, L0C, BT = Space.L1, Space.L0A, Space.L0B, Space.L0C, Space.BT
A_PLACE, B_PLACE, BIAS_PLACE = 0, 1 << 18, 400 * 1024  # bytes in L1


def _up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _per_fractal(dtype: DType) -> int:
    return 512 // dtype.size


def _to_nz(
    target: LocalTensor, source: GlobalTensor, rows: int, columns: int, pitch: int, padded: int
) -> None:
    data_copy(target, source, Nd2NzParams(1, rows, columns, 0, pitch, padded, 1, 0))


def rows_to_l0a(
    fm: LocalTensor, l1: LocalTensor, a: GlobalTensor, m: int, k: int, pitch: int
) -> None:
    """A [M, K], any type: one 2D load for each block of rows."""
    c0 = 32 // fm.dtype.size
    _to_nz(l1, a, m, k, pitch, _up(m, 16))
    m1, k1 = -(-m // 16), -(-k // c0)
    for block in range(m1):
        load_data(fm[block * k1 * _per_fractal(fm.dtype) :], l1, LoadData2DParams(block, k1, m1))


def rows_to_l0a_3d(
    fm: LocalTensor, l1: LocalTensor, a: GlobalTensor, m: int, k: int, pitch: int
) -> None:
    """A [M, K], any type: one 3D load."""
    _to_nz(l1, a, m, k, pitch, _up(m, 16))
    load_data(fm, l1, LoadData3DParamsV2(
        l1_h=_up(m, 16), channel_size=k, k_extension=k, m_extension=m))  # fmt: skip


def columns_to_l0a(
    fm: LocalTensor, l1: LocalTensor, a: GlobalTensor, m: int, k: int, pitch: int
) -> None:
    """A stored as [K, M]: transposed on the way, by 2D loads (16 bits) or square blocks (8 and 32 bits)."""
    per = _per_fractal(fm.dtype)
    if fm.dtype.size == 2:
        _to_nz(l1, a, k, m, pitch, _up(k, 16))
        k1 = -(-k // 16)
        for block in range(-(-m // 16)):
            load_data(fm[block * k1 * per :], l1,
                      LoadData2DParams(block * k1, k1, 1, if_transpose=True))  # fmt: skip
    elif fm.dtype.size == 1:
        _to_nz(l1, a, k, m, pitch, _up(k, 32))
        k1 = -(-k // 32)
        for group in range(-(-m // 32)):
            load_data_with_transpose(fm[2 * group * k1 * per :], l1,
                                     LoadData2dTransposeParams(group * k1, k1, 1, 0, k1 - 1))  # fmt: skip
    else:
        k1, m1 = -(-k // 8), -(-m // 16)
        # A block spans 16 of k. Where k ends in the middle of one, its second half lands on the next row of blocks,
        # which a later load puts right: hence the steps from last to first and the blocks from first to last.
        for step in reversed(range(-(-k // 16))):
            part = l1[step * 16 * 64 :]
            _to_nz(part, a[step * 16 * pitch :], min(16, k - 16 * step), m, pitch, 16)
            if k1 % 2 == 0:
                load_data_with_transpose(
                    fm[2 * step * per :], part, LoadData2dTransposeParams(0, m1, 1, k1 - 1, 0)
                )
                continue
            for block in range(m1):
                load_data_with_transpose(
                    fm[(block * k1 + 2 * step) * per :],
                    part,
                    LoadData2dTransposeParams(block, 1, 1),
                )


def columns_to_l0b(
    b: LocalTensor, l1: LocalTensor, source: GlobalTensor, k: int, n: int, pitch: int
) -> None:
    """B stored as [N, K], any type: NZ of it is ZN of B already."""
    c0 = 32 // b.dtype.size
    _to_nz(l1, source, n, k, pitch, _up(n, 16))
    fractals = -(-k // c0) * -(-n // 16)
    for first in range(0, fractals, 255):
        load_data(b[first * _per_fractal(b.dtype) :], l1,
                  LoadData2DParams(first, min(255, fractals - first), 1))  # fmt: skip


def rows_to_l0b(
    b: LocalTensor, l1: LocalTensor, source: GlobalTensor, k: int, n: int, pitch: int
) -> None:
    """B [K, N]: transposed on the way."""
    per = _per_fractal(b.dtype)
    n1 = -(-n // 16)
    if b.dtype.size == 2:
        _to_nz(l1, source, k, n, pitch, _up(k, 16))
        k1 = -(-k // 16)
        for block in range(k1):
            load_data(b[block * n1 * per :], l1,
                      LoadData2DParams(block, n1, k1, if_transpose=True))  # fmt: skip
    elif b.dtype.size == 1:
        _to_nz(l1, source, k, n, pitch, _up(k, 32))
        k1, groups = -(-k // 32), -(-n // 32)
        for block in range(k1):
            load_data_with_transpose(b[block * 2 * groups * per :], l1,
                                     LoadData2dTransposeParams(block, groups, k1, 1, 0))  # fmt: skip
    else:
        for step in range(-(-k // 16)):
            part = l1[step * 16 * 64 :]
            _to_nz(part, source[step * 16 * pitch :], min(16, k - 16 * step), n, pitch, 16)
            load_data_with_transpose(b[2 * step * n1 * per :], part,
                                     LoadData2dTransposeParams(0, n1, 1, 0, n1 - 1))  # fmt: skip


def rows_to_l0b_3d(
    b: LocalTensor, l1: LocalTensor, source: GlobalTensor, k: int, n: int, pitch: int
) -> None:
    """B [K, N] of 16 or 32 bits: one 3D load, which transposes into L0B."""
    _to_nz(l1, source, k, n, pitch, _up(k, 16))
    load_data(b, l1, LoadData3DParamsV2(
        l1_h=1, l1_w=_up(k, 16), channel_size=n, k_extension=n, m_extension=k))  # fmt: skip


Way = Callable[[LocalTensor, LocalTensor, GlobalTensor, int, int, int], None]
LEFT: dict[str, tuple[Way, bool]] = {
    "MK": (rows_to_l0a, False), "MK 3d": (rows_to_l0a_3d, False), "KM": (columns_to_l0a, True),
}  # fmt: skip
RIGHT: dict[str, tuple[Way, bool]] = {
    "KN": (rows_to_l0b, False), "KN 3d": (rows_to_l0b_3d, False), "NK": (columns_to_l0b, True),
}  # fmt: skip


def product(
    a: np.ndarray,
    b: np.ndarray,
    dtype: DType,
    left: str,
    right: str,
    tile: int,
    bias: np.ndarray | None,
) -> np.ndarray:
    """C = A · B (+ bias) on the cube core, `tile` of k at a time; A and B are given in their GM layout."""
    to_l0a, a_turned = LEFT[left]
    to_l0b, b_turned = RIGHT[right]
    k, m = a.shape if a_turned else a.shape[::-1]
    n = b.shape[0] if b_turned else b.shape[1]
    kind = int32 if dtype is int8 else float32
    out = np.zeros((m, n), kind.numpy)
    a_gm, b_gm = gm(a, "a"), gm(b, "b")
    n_computed = _up(n, 32) if dtype is int8 and right == "KN" else n
    fm, weights, c = local(L0A, dtype), local(L0B, dtype), local(L0C, kind)
    table = local(BT, kind, n_computed)
    if bias is not None:
        padded = np.zeros(_up(n_computed, 16), kind.numpy)
        padded[:n] = bias
        inside = local(L1, kind, padded.size, BIAS_PLACE)
        data_copy(inside, gm(padded, "bias"), padded.size)
        data_copy(local(BT, kind), inside, padded.size)
    for low in range(0, k, tile):
        depth = min(tile, k - low)
        to_l0a(fm, local(L1, dtype, None, A_PLACE), a_gm[low * m if a_turned else low :],
               m, depth, m if a_turned else k)  # fmt: skip
        to_l0b(weights, local(L1, dtype, None, B_PLACE), b_gm[low if b_turned else low * n :],
               depth, n, k if b_turned else n)  # fmt: skip
        if low == 0 and bias is not None:
            mmad(c, fm, weights, table, MmadParams(m, n_computed, depth))
        else:
            mmad(c, fm, weights, MmadParams(m, n_computed, depth, 0, False, low == 0))
    fixpipe(gm(out, "c"), c, FixpipeParamsV220(n, m, _up(m, 16), n))
    return out


@pytest.mark.parametrize("dtype", [float16, bfloat16, int8, float32], ids=str)
@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("right", RIGHT)
@given(
    m=st.integers(2, 64),
    n=st.integers(1, 64),
    k=st.integers(1, 96),
    tiles=st.sampled_from([1, 2, 3]),
    with_bias=st.booleans(),
    exact=st.booleans(),
)
@settings(max_examples=12, deadline=None)
def test_products_are_exact(
    dtype: DType,
    left: str,
    right: str,
    m: int,
    n: int,
    k: int,
    tiles: int,
    with_bias: bool,
    exact: bool,
) -> None:
    if dtype is int8 and right == "KN 3d":
        right = "KN"
    random = np.random.default_rng(m * 10007 + n * 101 + k)
    a = random.integers(-8, 9, (m, k))
    b = random.integers(-8, 9, (k, n))
    bias = random.integers(-50, 50, n) if with_bias else None
    expected = a @ b + (0 if bias is None else bias)
    stored_a = (a.T if LEFT[left][1] else a).astype(dtype.numpy).copy()
    stored_b = (b.T if RIGHT[right][1] else b).astype(dtype.numpy).copy()
    tile = _up(-(-k // tiles), 32)
    with cube(exact=exact):
        out = product(stored_a, stored_b, dtype, left, right, tile, bias)
    assert np.array_equal(out, expected)


@given(k=st.integers(1, 200), n=st.integers(1, 80))
@settings(max_examples=20, deadline=None)
def test_one_row_is_read_as_it_lies_in_memory(k: int, n: int) -> None:
    random = np.random.default_rng(k)
    a = random.integers(-8, 9, (1, k)).astype(np.float16)
    b = random.integers(-8, 9, (k, n)).astype(np.float16)
    out = np.zeros((1, n), np.float32)
    row = np.zeros(_up(k, 256), np.float16)
    row[:k] = a
    with cube():
        fm, weights, c = local(L0A, float16), local(L0B, float16), local(L0C, float32)
        load_data(fm, gm(row), LoadData2DParams(0, row.size // 256, 1))
        rows_to_l0b(weights, local(L1, float16, None, B_PLACE), gm(b), k, n, n)
        mmad(c, fm, weights, MmadParams(1, n, k))
        fixpipe(gm(out), c, FixpipeParamsV220(n, 1, 16, n))
    assert np.array_equal(out, a.astype(np.int64) @ b.astype(np.int64))


def test_a_result_in_l1_is_the_next_products_left_side() -> None:
    random = np.random.default_rng(5)
    a, b, d = (
        random.integers(-3, 4, shape).astype(np.float16) for shape in ((48, 32), (32, 64), (64, 16))
    )
    out = np.zeros((48, 16), np.float32)
    with cube() as stream:
        fm, weights, c = local(L0A, float16), local(L0B, float16), local(L0C, float32)
        rows_to_l0a(fm, local(L1, float16, None, A_PLACE), gm(a), 48, 32, 32)
        rows_to_l0b(weights, local(L1, float16, None, B_PLACE), gm(b), 32, 64, 64)
        mmad(c, fm, weights, MmadParams(48, 64, 32))
        chained = local(L1, float16, 48 * 64, A_PLACE)
        fixpipe(
            chained,
            c,
            FixpipeParamsV220(64, 48, 48, 48, QuantModes.F322F16),
            FixpipeConfig.cfg_nz(),
        )
        load_data(
            fm,
            chained,
            LoadData3DParamsV2(l1_h=48, channel_size=64, k_extension=64, m_extension=48),
        )
        rows_to_l0b(weights, local(L1, float16, None, B_PLACE), gm(d), 64, 16, 16)
        mmad(c, fm, weights, MmadParams(48, 16, 64))
        fixpipe(gm(out), c, FixpipeParamsV220(16, 48, 48, 16))
        pipes = [call.pipe for call in stream.issued]
        assert pipes.count(Pipe.FIX) == 2
    assert np.array_equal(out, (a.astype(int) @ b.astype(int)) @ d.astype(int))


def test_a_full_tile_of_a_hundred_and_twenty_eight() -> None:
    random = np.random.default_rng(6)
    a = random.standard_normal((128, 128)).astype(np.float16)
    b = random.standard_normal((128, 128)).astype(np.float16)
    with cube():
        first = product(a, b.T.copy(), float16, "MK", "NK", 128, None)
        again = product(a, b, float16, "MK 3d", "KN 3d", 128, None)
    assert bits(first) == bits(again)
    assert np.allclose(first, a.astype(np.float64) @ b.astype(np.float64), atol=1e-4)
