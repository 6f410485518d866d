"""Time that is spent for nothing: its cause in words, and what would save it."""

from __future__ import annotations

from typing import Any

import numpy as np

import ascend_sim as sim
from ascend_sim import asc
from tests.user_cases.kit import (
    F16,
    F32,
    MIX,
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

B1 = {"chip": "ascend910b1"}


def pipeline(x: Any, z: Any, tiles: int, size: int, buffers: int, work: int = 1) -> None:
    """Copy in, compute, copy out, through queues."""
    pipe = asc.TPipe()
    qx, qz = asc.TQue(asc.TPosition.VECIN, 1), asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(que=qx, num=buffers, len=4 * size)
    pipe.init_buffer(que=qz, num=buffers, len=4 * size)
    for tile in range(tiles):
        t = qx.alloc_tensor(F32)
        asc.data_copy(t, window(x)[size * tile :], size)
        qx.enque(t)
        t, r = qx.deque(F32), qz.alloc_tensor(F32)
        asc.adds(r, t, 1.0, size)
        for _ in range(work):
            asc.pipe_barrier(V)
            asc.adds(r, r, 1.0, size)
        qx.free_tensor(t)
        qz.enque(r)
        r = qz.deque(F32)
        asc.data_copy(window(z)[size * tile :], r, size)
        qz.free_tensor(r)


@case(
    "PRF-02",
    Want(
        "PERF",
        "advice",
        says=("free buffer", "One more buffer in each queue", "overlap can win at most"),
    ),
    slower=(1.15, 4.0),
)
def no_overlap_with_one_buffer(wrong: bool) -> Told:
    """With one buffer everything goes in turn."""
    tiles, size = 32, 4096

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        pipeline(x, z, tiles, size, 1 if wrong else 2, work=6)

    return told(kernel, ramp(tiles * size), zeros(tiles * size), advice=wrong, **B1)


@case(
    "PRF-05",
    Want("PERF", "advice", says=("UB banks", "block stride of 512 bytes", "17")),
    slower=(1.2, 9.0),
)
def one_bank_group(wrong: bool) -> Told:
    """Blocks 512 bytes apart lie in one group of banks."""
    stride = 16 if wrong else 17

    def kernel() -> None:
        s, d = ub(F32, 40960, 0), ub(F32, 1024, 163840)
        fill(s)
        for _ in range(64):
            asc.adds(d, s, 0.0, 64, 16, asc.UnaryRepeatParams(1, stride, 8, 8))
            asc.pipe_barrier(V)

    return told(kernel, advice=wrong, **B1)


@case(
    "PRF-07",
    Want(
        "PERF",
        "advice",
        says=("63 of 64", "512-byte border", "3135 requests where 3072 would do", "pitch"),
    ),
)
def rows_off_their_border(wrong: bool) -> Told:
    """Rows of 12287 elements start anywhere."""
    pitch = 12287 if wrong else 12288
    x = np.zeros(64 * 12288, np.float16)

    def kernel(x: asc.GlobalAddress) -> None:
        for r in range(64):
            t = ub(F16, 12288, 32768 * (r % 2))
            if r > 1:
                asc.wait_flag(E.V_MTE2, r % 2)
            asc.data_copy_pad(
                t, window(x)[r * pitch :], asc.DataCopyExtParams(1, 12287 * 2, 0, 0, 0)
            )
            flag(E.MTE2_V, r % 2)
            asc.adds(ub(F16, 128, 98304), t, 1.0, 128)
            asc.pipe_barrier(V)
            if r < 62:
                asc.set_flag(E.V_MTE2, r % 2)

    return told(kernel, x, advice=wrong, **B1)


@case(
    "PRF-13",
    Want(
        "PERF",
        "advice",
        says=("MTE2 waits", "free buffer", "alone needs", "overlap can win at most"),
    ),
    slower=(1.02, 2.0),
)
def bubbles_between_copies(wrong: bool) -> Told:
    """Copies wait for buffers, not for memory: a third one helps."""
    tiles, size = 24, 8192

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        start = asc.get_block_idx() * tiles * size
        parts = 1 if wrong else 2
        pipeline(x + start, z + start, tiles * parts, size // parts, parts, work=2)

    count = 8 * tiles * size
    return told(kernel, ramp(count), zeros(count), advice=wrong, cores=8, **B1)


@case(
    "PRF-15",
    Want("PERF", "advice", says=("another core",)),
    slower=(1.5, 20.0),
)
def hand_shake_for_every_tile(wrong: bool) -> Told:
    """Cube and vector cores wait for each other after every 16 x 16."""
    every = 1 if wrong else 8

    def kernel(ws: asc.GlobalAddress) -> None:
        P = asc.TPosition
        if asc.ascend_is_aic():
            a1 = asc.LocalTensor(F16, P.A1, 0, 256)
            a2, b2 = asc.LocalTensor(F16, P.A2, 0, 256), asc.LocalTensor(F16, P.B2, 0, 256)
            c = asc.LocalTensor(F32, P.CO1, 0, 256)
            asc.data_copy(a1, window(ws), 256)
            flag(E.MTE2_MTE1)
            asc.load_data(a2, a1, asc.LoadData2DParams())
            asc.load_data(b2, a1, asc.LoadData2DParams())
            flag(E.MTE1_M)
            for tile in range(64):
                asc.mmad(c, a2, b2, asc.MmadParams(16, 16, 16))
                asc.pipe_barrier(asc.PipeID.PIPE_M)
                if tile % every == every - 1:
                    asc.cross_core_set_flag(1, 2, asc.PipeID.PIPE_M)
                    asc.cross_core_wait_flag(2)
            return
        t = ub(F32, 256, 0)
        fill(t)
        for tile in range(64):
            if tile % every == every - 1:
                asc.cross_core_wait_flag(1)
            asc.adds(t, t, 1.0, 256)
            asc.pipe_barrier(V)
            if tile % every == every - 1:
                asc.cross_core_set_flag(2, 2, V)

    return told(kernel, np.zeros(256, np.float16), advice=wrong, **MIX, **B1)


@case(
    "PRF-16",
    Want(
        "RACE",
        "race-blocks-waw",
        "",
        "y",
        None,
        ("8 blocks write there (0, 8, 16, 24", "one would do"),
    ),
    slower=(2.0, 12.0),
)
def grid_for_blocks(wrong: bool) -> Told:
    """The kernel goes through the tiles itself, and every eighth block does the same ones."""
    columns, tiles = 8, 64
    y = zeros(tiles, 64)

    def kernel(y: asc.GlobalAddress) -> None:
        t = ub(F32, 64, 0)
        fill(t)
        for tile in range(asc.get_block_idx() % columns, tiles, columns):
            asc.data_copy(window(y)[64 * tile :], t, 64)

    return told(kernel, y, cores=64 if wrong else columns, physical_cores=8, **B1)


@case(
    "PRF-17",
    Want("PERF", "advice", says=("1 of 48", "core")),
    slower=(8.0, 60.0),
)
def one_block(wrong: bool) -> Told:
    """All rows on one core."""
    rows, blocks = 480, 1 if wrong else 48

    def kernel(x: asc.GlobalAddress) -> None:
        for row in range(asc.get_block_idx(), rows, blocks):
            t = ub(F32, 2048, 0)
            asc.data_copy(t, window(x)[2048 * row :], 2048)
            flag(E.MTE2_V)
            asc.adds(t, t, 1.0, 2048)
            flag(E.V_MTE3)
            asc.data_copy(window(x)[2048 * row :], t, 2048)
            flag(E.MTE3_MTE2)

    return told(kernel, zeros(rows * 2048), advice=wrong, cores=blocks, **B1)


@case("PRF-18", Want("PERF", "advice", says=("no cube core", "AIV_ONLY")))
def vector_kernel_as_mix(wrong: bool) -> Told:
    """Cube cores are started for nothing."""

    def kernel() -> None:
        if asc.ascend_is_aiv():
            t = ub(F32, 16384, 0)
            for _ in range(64):
                fill(t)

    kind = {"kernel_type": "MIX_AIC_1_2"} if wrong else {}
    said = told(kernel, advice=True, **kind, **B1)
    said.findings = [one for one in said.findings if "cube" in one.message]
    return said


@case("PRF-19", Want("PERF", "advice", says=("6 % of the products", "16 x 16", "m 4")))
def little_of_the_cube(wrong: bool) -> Told:
    """4 x 4 by 4 x 256 fills a sixteenth of the fractals."""
    m, k = (4, 4) if wrong else (16, 16)

    def kernel(a: asc.GlobalAddress) -> None:
        P = asc.TPosition
        a1, b1 = asc.LocalTensor(F16, P.A1, 0, 256), asc.LocalTensor(F16, P.B1, 65536, 4096)
        a2, b2 = asc.LocalTensor(F16, P.A2, 0, 256), asc.LocalTensor(F16, P.B2, 0, 4096)
        c = asc.LocalTensor(F32, P.CO1, 0, 4096)
        asc.data_copy(a1, window(a), 256)
        asc.data_copy(b1, window(a), 4096)
        flag(E.MTE2_MTE1)
        asc.load_data(a2, a1, asc.LoadData2DParams())
        asc.load_data(
            b2, b1, asc.LoadData2DParams(repeat_times=16, src_stride=1, if_transpose=True)
        )
        flag(E.MTE1_M)
        for _ in range(256):
            asc.mmad(c, a2, b2, asc.MmadParams(m, 256, k))
            asc.pipe_barrier(asc.PipeID.PIPE_M)

    said = told(kernel, zeros(4096, dtype=np.float16), advice=True, kernel_type="AIC_ONLY", **B1)
    said.findings = [one for one in said.findings if "products" in one.message]
    return said


@case(
    "PRF-21",
    Want("PERF", "advice", says=("whole_reduce_sum runs 1,024 times", "Add first, reduce last")),
    Want("INFO", "copy-only", "copy", "qz[0]", None, ("only copies qx[0]", "TQueBind")),
    slower=(1.1, 12.0),
)
def costly_reductions(wrong: bool) -> Told:
    """64 reductions of one repeat each; and a copy from queue to queue that one bound queue saves."""

    def reductions() -> None:
        x, o = ub(F32, 4096, 0), ub(F32, 512, 32768)
        fill(x)
        for _ in range(16):
            if wrong:
                for i in range(64):
                    asc.whole_reduce_sum(o[8 * i], x[64 * i], 64, 1, 1, 1, 8)
            else:
                size = 2048
                while size >= 64:
                    asc.add(x, x, x[size:], size)
                    asc.pipe_barrier(V)
                    size //= 2
                asc.whole_reduce_sum(o, x, 64, 1, 1, 1, 8)
            asc.pipe_barrier(V)

    def copy(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        pipe = asc.TPipe()
        if wrong:
            qx, qz = asc.TQue(asc.TPosition.VECIN, 1), asc.TQue(asc.TPosition.VECOUT, 1)
            pipe.init_buffer(que=qx, num=2, len=4096)
            pipe.init_buffer(que=qz, num=2, len=4096)
        else:
            qx = qz = asc.TQueBind(asc.TPosition.VECIN, asc.TPosition.VECOUT, 1)
            pipe.init_buffer(que=qx, num=2, len=4096)
        for tile in range(4):
            t = qx.alloc_tensor(F32)
            asc.data_copy(t, window(x)[1024 * tile :], 1024)
            qx.enque(t)
            t = qx.deque(F32)
            if wrong:
                r = qz.alloc_tensor(F32)
                asc.data_copy(r, t, 1024)  # copy
                qx.free_tensor(t)
                qz.enque(r)
                t = qz.deque(F32)
            asc.data_copy(window(z)[1024 * tile :], t, 1024)
            qz.free_tensor(t)

    said = told(reductions, advice=wrong, **B1)
    said.findings += told(copy, ramp(4096), zeros(4096), **B1).findings
    return said


@case(
    "PRF-23",
    Want("PERF", "advice", says=("4 bytes", "512", "contiguous")),
    slower=(4.0, 100.0),
)
def short_bursts(wrong: bool) -> Told:
    """One copy of 4 bytes a row, where all rows lie behind one another."""
    rows = 2048
    x = zeros(rows * 2, dtype=np.float16)

    def kernel(x: asc.GlobalAddress) -> None:
        t = ub(F16, 16 * 256 if wrong else rows * 2, 0)
        if wrong:
            for first in range(0, rows, 256):
                for row in range(256):
                    copy = asc.DataCopyExtParams(1, 4, 0, 0, 0)
                    asc.data_copy_pad(t[16 * row :], window(x)[2 * (first + row) :], copy)
                flag(E.MTE2_V)
                asc.adds(t, t, 1.0, 2)
                flag(E.V_MTE2)
        else:
            asc.data_copy(t, window(x), rows * 2)
            flag(E.MTE2_V)
            asc.adds(t, t, 1.0, rows * 2)

    return told(kernel, x, advice=wrong, **B1)


@case(
    "PRF-25",
    Want("PERF", "advice", says=("scalar unit", "set_value", "get_value", "gather")),
    slower=(1.5, 60.0),
)
def interleaved_by_scalar(wrong: bool) -> Told:
    """Even and odd results go back one by one."""
    d, z = 512, zeros(1024)
    places = np.arange(1024, dtype=np.uint32)
    table = (places % 2 * 512 + places // 2) * 4

    def kernel(x: asc.GlobalAddress, table: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        e, o, off = ub(F32, 2 * d, 0), ub(F32, 2 * d, 8192), ub(asc.uint32, 2 * d, 16384)
        asc.data_copy(e, window(x), 2 * d)
        if wrong:
            flag(E.MTE2_S)
            for i in range(d):
                o.set_value(2 * i, e.get_value(i))
                o.set_value(2 * i + 1, e.get_value(d + i))
            flag(E.S_MTE3)
        else:
            asc.data_copy(off, window(table), 2 * d)
            flag(E.MTE2_V)
            asc.gather(o, e, off, 0, 2 * d)
            flag(E.V_MTE3)
        asc.data_copy(window(z), o, 2 * d)

    x = ramp(2 * d)
    said = told(kernel, x, table, z, advice=wrong, **B1)
    assert z.tolist() == x.reshape(2, d).T.ravel().tolist()
    return said


@case("PRF-26")
def realistic_sizes(wrong: bool) -> Told:
    """Some trips of a long loop are simulated; the estimate says so, and by how much it may be off."""
    tiles, size = 400, 2048

    def kernel(x: asc.GlobalAddress) -> None:
        pipe = asc.TPipe()
        queue = asc.TQue(asc.TPosition.VECIN, 1)
        pipe.init_buffer(que=queue, num=2, len=4 * size)
        for tile in sim.trips(tiles):
            t = queue.alloc_tensor(F32)
            asc.data_copy(t, window(x)[size * tile :], size)
            queue.enque(t)
            t = queue.deque(F32)
            asc.exp(t, t, size)
            queue.free_tensor(t)

    x = zeros(tiles * size)
    said = told(kernel, x, **B1)
    found = sim.sample(kernel, x, **B1)
    assert not found.exact
    assert all(part.number < tiles for part in found.parts)
    assert abs(found.cycles - said.cycles) <= max(found.error, 0.02 * said.cycles)
    return said
