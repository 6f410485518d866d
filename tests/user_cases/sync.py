"""Accesses that nothing orders, though something that looks like an order stands there."""

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

OTHERS = ("race-war", "race-waw")


@case(
    "SYN-01",
    Want("RACE", "race-raw", "sub", "m", (8192, 8448), ("max", "pipe_barrier(PIPE_V)")),
    Want("RACE", "race-raw", "exp", "d", (12288, 12544), ("sub", "pipe_barrier(PIPE_V)")),
    Want("RACE", "race-raw", "mul", "e", (16384, 16640), ("exp", "pipe_barrier(PIPE_V)")),
)
def chain_without_barriers(wrong: bool) -> Told:
    """One finding for each missing edge."""

    def kernel() -> None:
        a, b, m, d, e, s = (ub(F32, 64, 4096 * i) for i in range(6))
        fill(a, b)
        asc.max(m, a, b, 64)
        if not wrong:
            asc.pipe_barrier(V)
        asc.sub(d, a, m, 64)  # sub
        if not wrong:
            asc.pipe_barrier(V)
        asc.exp(e, d, 64)  # exp
        if not wrong:
            asc.pipe_barrier(V)
        asc.mul(s, e, b, 64)  # mul

    return told(kernel)


@case(
    "SYN-03",
    Want("RACE", "race-raw", "first", "xf", (4096, 4352), ("cast",)),
    Want(
        "UNINIT",
        "uninitialised-read",
        "second",
        "ring[3]",
        (0x8C00, 0x8D00),
        ("nothing has written",),
    ),
)
def cast_and_an_empty_slot(wrong: bool) -> Told:
    """A missing barrier, and a slot of a ring that nobody filled."""

    def kernel(x: asc.GlobalAddress) -> None:
        xh, xf, acc = ub(F16, 64, 0), ub(F32, 64, 4096), ub(F32, 64, 8192)
        ring = [ub(F32, 64, 0x8000 + 0x400 * i) for i in range(4)]
        asc.data_copy(xh, window(x), 64)
        fill(acc, *ring[: 3 if wrong else 4])
        flag(E.MTE2_V)
        asc.cast(xf, xh, asc.RoundMode.CAST_NONE, 64)
        if not wrong:
            asc.pipe_barrier(V)
        asc.mul_add_dst(acc, xf, ring[0], 64)  # first
        asc.pipe_barrier(V)
        asc.mul_add_dst(acc, ring[3], ring[0], 64)  # second

    return told(kernel, np.ones(64, np.float16))


@case(
    "SYN-08",
    Want(
        "RACE",
        "race-raw",
        "load",
        "ws",
        (0, 256),
        ("GM ws[0:256]", "MTE3_MTE2", "may still be writing"),
    ),
    Want("RACE", "race-raw", "add", "u", (4096, 4352), ("MTE2_V",)),
)
def stored_and_read_back(wrong: bool) -> Told:
    """Through GM, a load does not wait for a store."""

    def kernel(ws: asc.GlobalAddress) -> None:
        t, u, v = ub(F32, 64, 0), ub(F32, 64, 4096), ub(F32, 64, 8192)
        fill(t)
        asc.data_copy(window(ws), t, 64)
        if not wrong:
            flag(E.MTE3_MTE2)
        asc.data_copy(u, window(ws), 64)  # load
        if not wrong:
            flag(E.MTE2_V)
        asc.adds(v, u, 1.0, 64)  # add

    return told(kernel, zeros(64))


@case(
    "SYN-09",
    Want(
        "RACE", "race-raw", "store", "e", (4096, 4352),
        ("V_MTE3", "S_MTE3 id 0", "stands between them, but it orders S, not V"),
    ),
)  # fmt: skip
def flag_from_the_wrong_pipe(wrong: bool) -> Told:
    """V produces, and the flag comes from the scalar unit."""

    def kernel(y: asc.GlobalAddress) -> None:
        x, e = ub(F32, 64, 0), ub(F32, 64, 4096)
        fill(x)
        asc.exp(e, x, 64)
        flag(E.S_MTE3 if wrong else E.V_MTE3)
        asc.data_copy(window(y), e, 64)  # store

    return told(kernel, zeros(64))


@case(
    "SYN-10",
    Want("RACE", "race-war", "again", "", None, ("V_MTE2",)),
    Want("FLAG_BALANCE", "flag-left-set", "set", "", None, ("MTE2_V id 0", "1 more set_flag")),
    Want("FLAG_BALANCE", "flag-left-set", "set", "", None, ("MTE2_V id 1",)),
    beside=("race-raw", "race-waw"),
)
def both_slots_primed(wrong: bool) -> Told:
    """The last two turns load and set for nobody, and no load waits for its slot: the same for 6 and 7 turns."""
    said = Told()
    for trips in (6, 7):

        def kernel(x: asc.GlobalAddress) -> None:
            slots = [ub(F32, 64, 0), ub(F32, 64, 4096)]
            out = ub(F32, 64, 8192)
            for slot in range(2):
                asc.data_copy(slots[slot], window(x), 64)
                asc.set_flag(E.MTE2_V, slot)
            for i in range(trips):  # noqa: B023  called at once
                slot = i % 2
                asc.wait_flag(E.MTE2_V, slot)
                asc.pipe_barrier(V)
                asc.adds(out, slots[slot], 1.0, 64)
                if wrong or i + 2 < trips:  # noqa: B023
                    if not wrong:
                        flag(E.V_MTE2, slot)
                    asc.data_copy(slots[slot], window(x), 64)  # again
                    asc.set_flag(E.MTE2_V, slot)  # set

        one = told(kernel, ramp(64))
        if said.run is not None:
            same = [(f.kind, f.code, f.line) for f in said.findings]
            assert same == [(f.kind, f.code, f.line) for f in one.findings]
        said = one
    return said


@case(
    "SYN-12",
    Want("RACE", "race-raw", "read", "mx", None, ("set_flag(V_S", "orders V only")),
)
def barrier_of_v_for_the_scalar_unit(wrong: bool) -> Told:
    """A barrier of V says nothing to the scalar unit."""
    x = (np.arange(256) % 7 - 5).astype(np.float32)
    scales = []

    def kernel(gm: asc.GlobalAddress) -> None:
        x, mx, tmp = ub(F32, 256, 0), ub(F32, 8, 4096), ub(F32, 64, 8192)
        asc.data_copy(x, window(gm), 256)
        flag(E.MTE2_V)
        asc.abs(x, x, 256)
        asc.pipe_barrier(V)
        asc.reduce_max(mx, x, tmp, 256)
        asc.pipe_barrier(V)
        if not wrong:
            flag(E.V_S)
        scales.append(mx.get_value(0))  # read

    said = told(kernel, x)
    assert wrong or scales == [5.0]
    return said


@case(
    "SYN-15",
    Want("RACE", "race-raw", "mul", "t", None, ("set_flag(S_V", "pipe_barrier(PIPE_ALL)")),
)
def table_of_the_scalar_unit(wrong: bool) -> Told:
    """The scalar unit fills a table, V reads it; a copy behind a barrier of MTE2 stays silent in both."""

    def kernel() -> None:
        x, t, z = ub(F32, 64, 0), ub(F32, 64, 4096), ub(F32, 64, 8192)
        fill(x)
        for i in range(64):
            t.set_value(i, float(i))
        asc.pipe_barrier(V)
        if not wrong:
            flag(E.S_V)
        asc.mul(z, x, t, 64)  # mul

    return told(kernel)


@case(
    "SYN-16",
    Want(
        "RACE", "race-raw", "load", "ws",
        None, ("data cache", "data_cache_clean_and_invalid", "set_flag(S_MTE2"),
    ),
)  # fmt: skip
def scalar_stores_and_a_load(wrong: bool) -> Told:
    """What the scalar unit stored is in its cache, where no copy looks."""
    out = zeros(64)

    def kernel(ws: asc.GlobalAddress, out: asc.GlobalAddress) -> None:
        t, words = ub(F32, 64, 0), window(ws)
        for i in range(64):
            words.set_value(i, float(i))
        if not wrong:
            asc.data_cache_clean_and_invalid(
                asc.CacheLine.ENTIRE_DATA_CACHE, asc.DcciDst.CACHELINE_OUT, words
            )
            flag(E.S_MTE2)
        asc.data_copy(t, words, 64)  # load
        flag(E.MTE2_MTE3)
        asc.data_copy(window(out), t, 64)

    said = told(kernel, zeros(64), out)
    assert wrong or out.tolist() == list(range(64))
    return said


@case(
    "SYN-17",
    Want("INFO", "redundant-flag", "second", "", None, ("V_MTE2", "nothing", "cycles")),
)
def doubled_pair(wrong: bool) -> Told:
    """The second pair orders nothing that the first did not. An unpaired set is a mistake, though."""

    def kernel(x: asc.GlobalAddress) -> None:
        t = ub(F32, 64, 0)
        fill(t)
        asc.adds(ub(F32, 64, 4096), t, 1.0, 64)
        flag(E.V_MTE2)
        if wrong:
            asc.set_flag(E.V_MTE2, 0)
            asc.wait_flag(E.V_MTE2, 0)  # second
        asc.data_copy(t, window(x), 64)

    return told(kernel, ramp(64))
