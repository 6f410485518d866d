"""Tiles that are forgotten, done by nobody, done twice, or put where others lie."""

from __future__ import annotations

import numpy as np

from ascend_sim import asc
from tests.user_cases.kit import (
    F16,
    F32,
    E,
    Told,
    V,
    Want,
    case,
    fill,
    flag,
    ramp,
    told,
    ub,
    window,
    zeros,
)  # fmt: skip


@case(
    "TIL-02",
    Want("COVERAGE", "output-not-written", "", "y", None, ("rows 1 to 3",)),
    Want("RACE", "race-blocks-waw", "store", "y"),
)
def always_batch_zero(wrong: bool) -> Told:
    """The index is divided once too often."""
    batches, size = 4, 64
    y = zeros(batches, size)

    def kernel(y: asc.GlobalAddress) -> None:
        bh = asc.get_block_idx()
        b = (bh % 1) // 1 if wrong else bh
        t = ub(F32, size, 0)
        fill(t)
        asc.data_copy(window(y)[b * size :], t, size)  # store

    return told(kernel, y, cores=batches)


@case(
    "TIL-07",
    Want("PERF", "advice", says=("20 cores work 6", "% as long as the slowest", "finer tiles")),
    slower=(1.2, 2.0),
)
def tiles_over_cores(wrong: bool) -> Told:
    """25 tiles on 20 cores take as long as 40; 100 quarter tiles do not."""
    tiles = 25 if wrong else 100
    size = 25 * 40960 // tiles
    y = zeros(tiles, size)

    def kernel(y: asc.GlobalAddress) -> None:
        t = ub(F32, size, 0)
        for tile in range(asc.get_block_idx(), tiles, 20):
            for _ in range(40):
                asc.duplicate(t, 1.0, size)
                asc.pipe_barrier(V)
            flag(E.V_MTE3)
            asc.data_copy(window(y)[tile * size :], t, size)
            flag(E.MTE3_V)

    return told(kernel, y, cores=20, chip="ascend910b1", advice=wrong)


@case(
    "TIL-08",
    Want(
        "LAYOUT",
        "groups-within-a-fractal",
        "load",
        "",
        None,
        ("dst_nz_c0_stride 4", "fractals of 16 rows", "rounded up to 16: 16"),
    ),
    beside=("uninitialised-read",),
)
def rows_not_padded_to_a_fractal(wrong: bool) -> Told:
    """Four rows still take sixteen in NZ."""
    a, b, c = np.ones((4, 32), np.float16), np.ones((32, 16), np.float16), zeros(4, 16)

    def kernel(a: asc.GlobalAddress, b: asc.GlobalAddress, c: asc.GlobalAddress) -> None:
        P = asc.TPosition
        a1, b1 = asc.LocalTensor(F16, P.A1, 0, 512), asc.LocalTensor(F16, P.B1, 65536, 512)
        a2, b2 = asc.LocalTensor(F16, P.A2, 0, 512), asc.LocalTensor(F16, P.B2, 0, 512)
        co = asc.LocalTensor(F32, P.CO1, 0, 256)
        stride = 4 if wrong else 16
        asc.data_copy(a1, window(a), asc.Nd2NzParams(1, 4, 32, 0, 32, stride, 1, 0))  # load
        asc.data_copy(b1, window(b), asc.Nd2NzParams(1, 32, 16, 0, 16, 32, 1, 0))
        flag(E.MTE2_MTE1)
        asc.load_data(a2, a1, asc.LoadData2DParams(repeat_times=2, src_stride=1))
        asc.load_data(b2, b1, asc.LoadData2DParams(repeat_times=2, src_stride=1, if_transpose=True))
        flag(E.MTE1_M)
        asc.mmad(co, a2, b2, asc.MmadParams(4, 16, 32))
        flag(E.M_FIX)
        asc.fixpipe(
            window(c), co, asc.FixpipeParamsV220(16, 4, 16, 16), asc.FixpipeConfig.cfg_row_major()
        )

    said = told(kernel, a, b, c, kernel_type="AIC_ONLY")
    assert wrong or (c == 32).all()
    return said


@case(
    "TIL-09",
    Want("COVERAGE", "input-not-read", "", "mask", None, ("elements 512 to 519",)),
)
def mask_ends_with_its_first_tile(wrong: bool) -> Told:
    """Every tile takes the mask's first one."""
    total, tile = 520, 512
    mask, s = ramp(total), zeros(total)

    def kernel(mask: asc.GlobalAddress, s: asc.GlobalAddress) -> None:
        m = ub(F32, tile, 0)
        for start in range(0, total, tile):
            count = min(tile, total - start)
            asc.data_copy(m, window(mask)[0 if wrong else start :], count)
            flag(E.MTE2_V)
            asc.adds(m, m, 1.0, count)
            flag(E.V_MTE3)
            asc.data_copy(window(s)[start:], m, count)
            flag(E.MTE3_MTE2)

    return told(kernel, mask, s, whole=("mask",))
