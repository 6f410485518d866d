"""Bytes beyond a tensor, a buffer or a memory, and bytes that somebody else still needs."""

from __future__ import annotations

import numpy as np

from ascend_sim import asc
from ascend_sim.compare import compare
from tests.user_cases.kit import (
    ALL,
    F32,
    I32,
    U32,
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
    "BND-03",
    Want(
        "BOUNDS", "tensor-out-of-bounds", "brcb", "scale8", (0, 256),
        ("touches 256 bytes", "has 64", "192 bytes too many", "out_l"),
    ),
)  # fmt: skip
def brcb_fills_whole_blocks(wrong: bool) -> Told:
    """brcb writes eight blocks a repeat, whatever the number of elements that matter."""
    count = 2 if wrong else 8

    def kernel() -> None:
        scale = ub(F32, 64, 4096)
        scale8 = ub(F32, count * 8, 0)
        out_l = ub(F32, 64, count * 32)
        fill(scale, out_l)
        asc.brcb(scale8, scale, 1, asc.BrcbRepeatParams())  # brcb
        asc.pipe_barrier(V)
        asc.adds(out_l, out_l, 1.0, 64)

    return told(kernel)


@case(
    "BND-04",
    Want(
        "CAPACITY", "temporary-too-small", "sin", "temporary of sin",
        None, ("are needed at least for its temporaries", "hold 196352 of 196352 bytes of UB (tb", "temp_buffer"),
    ),
)  # fmt: skip
def hidden_work_buffer(wrong: bool) -> Told:
    """A call without a work buffer of its own takes one from what no TBuf holds."""

    def kernel(x: asc.GlobalAddress) -> None:
        pipe = asc.TPipe()
        tb = asc.TBuf()
        pipe.init_buffer(tb, 196352 if wrong else 65536)
        data = tb.get(F32)
        asc.data_copy(data, window(x), 8192)
        flag(E.MTE2_V)
        asc.adv.sin(data[8192:], data, 8192)  # sin

    return told(kernel, ramp(8192))


@case(
    "BND-05",
    Want(
        "BOUNDS", "work-buffer", "sum", "tmp",
        None, ("has 8 bytes", "needs 32 (8 elements of float32)"),
    ),
)  # fmt: skip
def scratch_counted_in_bytes(wrong: bool) -> Told:
    """The work buffer was asked for in elements, and got as many bytes."""
    repeats = 8

    def kernel() -> None:
        x, out = ub(F32, 64 * repeats, 0), ub(F32, 8, 8192)
        tmp = ub(asc.uint8, repeats if wrong else 4 * repeats, 16384).reinterpret_cast(F32)
        fill(x)
        asc.reduce_sum(out, x, tmp, repeat_time=repeats, src_rep_stride=8, mask=64)  # sum

    return told(kernel)


@case(
    "BND-09",
    Want(
        "BOUNDS", "memory-out-of-bounds", "touch", "t1",
        (0x20800, 0x30800), ("touches UB bytes 133120 to 198656", "UB has 196608", "2048 are outside"),
    ),
)  # fmt: skip
def oversize_tile(wrong: bool) -> Told:
    """A tile that ends behind UB is no hang."""

    def kernel() -> None:
        x, t0 = ub(I32, 64 * 256, 0), ub(I32, 64 * 256, 0x10000)
        t1 = ub(I32, 64 * 256, 0x20800 if wrong else 0x20000)
        fill(x, t0)
        asc.add(t1, x, t0, 64 * 256)  # touch

    return told(kernel)


@case(
    "BND-10",
    Want(
        "ALIAS",
        "live-tensors-overlap",
        "again",
        "UB[0:256]",
        (0, 256),
        ("(idx)", "(tmp)", "muls at", "duplicate at"),
    ),
)
def buffer_planned_twice(wrong: bool) -> Told:
    """Two tensors got the same bytes, and the first is read again."""

    def kernel() -> None:
        idx, src = ub(U32, 64, 0), ub(F32, 64, 4096)
        a, b = ub(F32, 64, 8192), ub(F32, 64, 12288)
        tmp = ub(F32, 64, 0 if wrong else 16384)
        fill(src)
        asc.duplicate(idx, 4, 64)  # create
        asc.pipe_barrier(V)
        asc.gather(a, src, idx, 0, 64)
        asc.pipe_barrier(V)
        asc.muls(tmp, a, 0.0, 64)  # muls
        asc.pipe_barrier(V)
        asc.gather(b, src, idx, 0, 64)  # again

    return told(kernel)


@case(
    "BND-11",
    Want("RACE", "race-raw", "sqrt", "", (0, 4), ("S_V",)),
    Want("NUMERIC", "mismatch", says=("index 0 of every 64", "z")),
    beside=("race-war", "race-waw"),
)
def scratch_pad_in_live_data(wrong: bool) -> Told:
    """A single number went through element 0 of the tensor that still holds the data."""
    groups = 3
    x, z = ramp(64 * groups) + 3, zeros(64 * groups)

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress, flags: bool) -> None:
        for group in range(groups):
            g = ub(F32, 64, 0)
            pad = g if wrong else ub(F32, 8, 4096)
            asc.data_copy(g, window(x)[64 * group :], 64)
            flag(E.MTE2_S)
            pad.set_value(0, 4.0)
            if flags:
                flag(E.S_V)
            asc.sqrt(pad, pad, 1)  # sqrt
            flag(E.V_S)
            rs = 1 / pad.get_value(0)
            asc.muls(g, g, rs, 64)
            flag(E.V_MTE3)
            asc.data_copy(window(z)[64 * group :], g, 64)
            flag(E.MTE3_MTE2)
            asc.pipe_barrier(ALL)

    said = told(kernel, x, z, not wrong)
    told(kernel, x, z, True)
    said.findings += compare(z, x / 2, name="z").findings
    return said


@case(
    "BND-12",
    Want(
        "ALIGNMENT", "gather-offset", "gather", "",
        None, ("number 1 is 1 bytes", "not a multiple of 4", "multiply an element's index by 4"),
    ),
)  # fmt: skip
def gather_by_elements(wrong: bool) -> Told:
    """Offsets of gather are bytes."""
    table = np.arange(8, dtype=np.uint32) * (1 if wrong else 4)
    z = zeros(8)

    def kernel(x: asc.GlobalAddress, table: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        src, off, dst = ub(F32, 16, 0), ub(U32, 8, 4096), ub(F32, 8, 8192)
        asc.data_copy(src, window(x), 16)
        asc.data_copy(off, window(table), 8)
        flag(E.MTE2_V)
        asc.gather(dst, src, off, 0, 8)  # gather
        flag(E.V_MTE3)
        asc.data_copy(window(z), dst, 8)

    said = told(kernel, ramp(16) - 1, table, z)
    assert wrong or z.tolist() == list(range(8))
    return said
