"""Cores that wait for each other, and rows that two of them change."""

from __future__ import annotations

import numpy as np

from ascend_sim import asc
from tests.user_cases.kit import (
    F32,
    I32,
    MIX,
    MTE3,
    E,
    Told,
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
    "XCR-03",
    Want(
        "DEADLOCK", "deadlock", "sync", "",
        None, ("24 of 48", "missing", "core0.aiv1", "ended"),
    ),
)  # fmt: skip
def half_of_the_vector_cores(wrong: bool) -> Told:
    """The barrier counts every vector core, and only the first of each pair comes."""

    def kernel() -> None:
        if asc.ascend_is_aiv() and (asc.get_sub_block_idx() == 0 or not wrong):
            asc.sync_all()  # sync

    return told(kernel, cores=24, chip="ascend910b1", **MIX)


@case(
    "XCR-06",
    Want(
        "DEADLOCK", "deadlock", "wait", "",
        None, ("cross-core flag 2", "mode 2", "1 of 2 have set", "core0.aiv1"),
    ),
)  # fmt: skip
def two_sets_one_wait(wrong: bool) -> Told:
    """In mode 2 one wait of the cube core takes one set of each vector core: no race; with one set alone it waits."""
    y = zeros(128)

    def kernel(y: asc.GlobalAddress) -> None:
        if asc.ascend_is_aiv():
            sub, t = asc.get_sub_block_idx(), ub(F32, 64, 0)
            fill(t)
            asc.data_copy(window(y)[64 * sub :], t, 64)
            if not (wrong and sub == 1):
                asc.cross_core_set_flag(2, 2, MTE3)
        else:
            asc.cross_core_wait_flag(2)  # wait
            asc.data_copy(asc.LocalTensor(F32, asc.TPosition.A1, 0, 128), window(y), 128)

    return told(kernel, y, **MIX)


@case(
    "XCR-08",
    Want("COHERENCE", "cache-stale-read", "read", "cnt"),
    Want("FLAG_BALANCE", "cross-core-counter-left", "set", "", None, ("flag 1", "core0.aiv0")),
)
def trip_counts_that_disagree(wrong: bool) -> Told:
    """Both sides read the trip count from GM, and one of them an old value."""
    cnt = np.full(16, 3, np.int32)

    def kernel(cnt: asc.GlobalAddress) -> None:
        words = window(cnt)
        if asc.ascend_is_aic():
            asc.cross_core_wait_flag(4)
            n = words.get_value(0)
            for _ in range(n):
                asc.cross_core_set_flag(1, 2, asc.PipeID.PIPE_FIX)  # set
            return
        first = asc.get_sub_block_idx() == 0
        old = words.get_value(0) if wrong or first else 0
        asc.cross_core_set_flag(5, 1, MTE3)
        asc.cross_core_wait_flag(5)
        if first:
            t = ub(I32, 16, 0)
            asc.duplicate(t, 4, 16)
            flag(E.V_MTE3)
            asc.data_copy(words, t, 16)
        asc.cross_core_set_flag(3, 1, MTE3)
        asc.cross_core_wait_flag(3)
        asc.cross_core_set_flag(4, 2, MTE3)
        if not wrong:
            asc.data_cache_clean_and_invalid(
                asc.CacheLine.ENTIRE_DATA_CACHE, asc.DcciDst.CACHELINE_OUT, words
            )
        n = words.get_value(0)  # read
        assert n == (3 if wrong else 4) and old in (0, 3)
        for _ in range(n):
            asc.cross_core_wait_flag(1)

    return told(kernel, cnt, **MIX)


@case(
    "XCR-09",
    Want(
        "STATE", "sync-word-not-zero", "sync", "ws",
        None, ("was not zero when the kernel began", "Zero it before the launch"),
    ),
    beside=("race-blocks-raw",),
)  # fmt: skip
def signals_of_the_last_run(wrong: bool) -> Told:
    """The words of a barrier through GM keep their values from launch to launch."""
    ws, z, y = zeros(32, dtype=np.int32), zeros(4 * 8), zeros(4 * 8)

    def kernel(ws: asc.GlobalAddress, z: asc.GlobalAddress, y: asc.GlobalAddress) -> None:
        block, t = asc.get_block_idx(), ub(F32, 8, 0)
        fill(t)
        asc.data_copy(window(z)[8 * block :], t, 8)
        asc.sync_all(window(ws), ub(I32, 32, 4096))  # sync
        asc.data_copy(t, window(z)[8 * (3 - block) :], 8)
        flag(E.MTE2_MTE3)
        asc.data_copy(window(y)[8 * block :], t, 8)

    told(kernel, ws, z, y, cores=4)
    return told(kernel, ws, z, y, cores=4, memset=[] if wrong else ["ws"])


@case("XCR-11")
def cube_waits_for_vector(wrong: bool) -> Told:
    """All cores run at once: the same result in every order."""
    results = []
    for seed in (None, 1, 2):
        x, y = ramp(64), zeros(64)

        def kernel(x: asc.GlobalAddress, y: asc.GlobalAddress) -> None:
            if asc.ascend_is_aic():
                asc.cross_core_wait_flag(1)
                t = asc.LocalTensor(F32, asc.TPosition.A1, 0, 64)
                asc.data_copy(t, window(y), 64)
            else:
                if asc.get_sub_block_idx() == 0:
                    t = ub(F32, 64, 0)
                    asc.data_copy(t, window(x), 64)
                    flag(E.MTE2_MTE3)
                    asc.data_copy(window(y), t, 64)
                asc.cross_core_set_flag(1, 2, MTE3)

        said = told(kernel, x, y, **{**MIX, "shuffle": seed})
        results.append((y.tolist(), said.cycles))
    assert results[0] == results[1] == results[2]
    return said


@case(
    "XCR-12",
    Want("RACE", "race-blocks-raw", "", "y", None, ("(row 3)", "blocks 0 and 1", "atomic stores")),
    beside=("race-blocks-war", "race-blocks-waw"),
)
def one_row_from_two_cores(wrong: bool) -> Told:
    """Split by the source, two blocks read, change and write one row; split by the target, they do not."""
    y, table = zeros(8, 8), [3, 7, 3, 3]

    def kernel(y: asc.GlobalAddress) -> None:
        block = asc.get_block_idx()
        row, one = ub(F32, 8, 0), ub(F32, 8, 4096)
        fill(one)
        for number, target in enumerate(table):
            if (number // 2 if wrong else target // 4) != block:
                continue
            asc.data_copy(row, window(y)[8 * target :], 8)
            flag(E.MTE2_V)
            asc.add(row, row, one, 8)
            flag(E.V_MTE3)
            asc.data_copy(window(y)[8 * target :], row, 8)
            flag(E.MTE3_MTE2)

    said = told(kernel, y, cores=2)
    assert wrong or (y[3, 0], y[7, 0]) == (3, 1)
    return said
