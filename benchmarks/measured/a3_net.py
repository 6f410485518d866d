"""The library's kernels inside a network: their shapes are published, their steps not. These are what they must do."""

from __future__ import annotations

import math
import re
from functools import partial

import ml_dtypes
import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, sweep, time_launch, times

from ._kit import (
    EVENTS,
    Buffers,
    hand_over,
    load_rows,
    pieces,
    scale,
    share,
    store_rows,
    then_barrier,
    window,
)
from ._stream import run_walk, tile_for
from .aclnn_gemm import product
from .rms_norm import KEPT, fold, part, together
from .swiglu import swiglu

BF16 = ml_dtypes.bfloat16
SAME, ROUND = asc.RoundMode.CAST_NONE, asc.RoundMode.CAST_RINT
VECTORS = 48
CORE_BYTES = 16384
"""What the library gives a vector core at least before it takes another one."""
ROWS = (1, 32, 96, 128, 256, 1024)
"""Rows, or tokens, where a record does not say which were measured."""
PRODUCTS = (
    (1, 7168, 2112),
    (32, 7168, 2112),
    (128, 7168, 2112),
    (1024, 7168, 2112),
    (128, 1536, 3072),
)
"""M, K and N, likewise."""
SOFTMAX_ROWS = 2
"""Rows of the softmax of each core that are simulated at most; the rest is in proportion."""
FLOOR = (
    "cast_1_int32_us", "fill_1_us", "cast_1x8_us", "muls_1x7168_bf16_us", "add_1x1536_bf16_us",
    "add_1x7168_bf16_us", "rmsnorm_1x1536_us", "swiglu_1x4096_us",
)  # fmt: skip


def simulate(record: Record) -> dict:
    if record.name == "floor":
        return floor(record)
    one = {
        "muls": muls, "addrms": add_rms_norm, "rms": rms_norm, "softmax": softmax, "move": move, "mm": matmul,
        "qmm": quantised_matmul,
    }[record.name]  # fmt: skip
    points = record.points("R", "T", "M", "tokens", "rows") or given(record)
    if points is None:
        points = PRODUCTS if record.name in ("mm", "qmm") else ROWS
    return sweep(one(record, point) for point in points)


def given(record: Record) -> list[int] | None:
    """Return the points that a shape names in words: "R = 1, 2, 32"."""
    found = re.search(r"\b[RT] = ([\d, ]+)", str(record.shape))
    return [int(number) for number in found[1].split(",")] if found else None


def first_of(point) -> int:
    return int(point[0] if isinstance(point, list) else point)


def columns_of(record: Record, default: int) -> int:
    """Return what multiplies rows to elements in a shape like [R,7168] or [T,4,128]."""
    found = re.search(r"\[[RT]((?:,\d+)+)\]", str(record.shape))
    return math.prod(int(n) for n in found[1][1:].split(",")) if found else default


def cores_for(record: Record, count: int, size: int) -> int:
    """Return the cores that a kernel of one array takes: as the record says, else by the bytes."""
    if isinstance(record.cores, int) and record.cores < VECTORS:
        return record.cores
    return max(1, min(VECTORS, count * size // CORE_BYTES))


# ---- elementwise ----------------------------------------------------------------------------


def wide_muls(loaded, result, room, count: int) -> None:
    then_barrier(asc.cast, room[0], loaded[0], SAME, count)
    then_barrier(asc.muls, room[0], room[0], 2.0, count)
    then_barrier(asc.cast, result, room[0], ROUND, count)


def wide_add(loaded, result, room, count: int) -> None:
    then_barrier(asc.cast, room[0], loaded[0], SAME, count)
    then_barrier(asc.cast, room[1], loaded[1], SAME, count)
    then_barrier(asc.add, room[0], room[0], room[1], count)
    then_barrier(asc.cast, result, room[0], ROUND, count)


def to_int(loaded, result, room, count: int) -> None:
    then_barrier(asc.cast, result, loaded[0], ROUND, count)


def fill(loaded, result, room, count: int) -> None:
    then_barrier(asc.duplicate, result, 1.0, count)


KINDS = {
    "cast": ([np.float32, np.int32], to_int, []),
    "fill": ([np.float32], fill, []),
    "muls": ([BF16, BF16], wide_muls, [asc.float32]),
    "add": ([BF16, BF16, BF16], wide_add, [asc.float32] * 2),
}


def elementwise(record: Record, kind: str, count: int, cores: int) -> dict:
    types, chain, room = KINDS[kind]
    tile = tile_for(types, room, count, cores)
    return times(run_walk(record, count, types, chain, cores=cores, tile=tile, room=room))


def muls(record: Record, point) -> dict:
    count = first_of(point) * columns_of(record, 7168)
    return elementwise(record, "muls", count, cores_for(record, count, 2))


def move(record: Record, point) -> dict:
    count = first_of(point) * columns_of(record, 512)
    cores = cores_for(record, count, 2)
    tile = min(32768, tile_for([BF16], [], count, cores))
    return times(run_walk(record, count, [BF16, BF16], None, cores=cores, tile=tile))


# ---- rows -----------------------------------------------------------------------------------


def rms_norm(record: Record, point) -> dict:
    """Norm rows, several at once on the vector unit alone."""
    rows, columns = first_of(point), columns_of(record, 1536)
    most = (196608 - 4096) // (16 * columns + 260)
    x, y = (np.zeros((rows, columns), BF16) for _ in range(2))
    gamma, factors = np.zeros(columns, BF16), np.zeros(rows, np.float32)
    kernel = partial(together, rows=rows, columns=columns, most=most)
    cores = min(rows, VECTORS)
    return times(time_launch(kernel, x, gamma, y, factors, record=record, cores=cores))


def add_norm(x, residual, gamma, bias, y, total, factors, rows: int, columns: int):
    """Add two rows, keep the sum, norm it and add a bias: row by row, the sum of squares by the scalar unit."""
    first, own = part(rows)
    left, right, target, kept_gm = (window(one) for one in (x, residual, y, total))
    buffers = Buffers()
    a, b, out, scale, offset = (buffers.take(columns, x.dtype) for _ in range(5))
    value, square = (buffers.take(columns, asc.float32) for _ in range(2))
    kept = buffers.take(KEPT, asc.float32)
    for tensor, source in ((scale, gamma), (offset, bias)):
        load_rows(tensor, window(source), 1, columns, columns)
    for start, count in pieces(own, KEPT):
        for number in range(count):
            place = (first + start + number) * columns
            load_rows(a, left[place:], 1, columns, columns)
            load_rows(b, right[place:], 1, columns, columns)
            hand_over(EVENTS.MTE2_V)
            then_barrier(asc.cast, value, a, SAME, columns)
            then_barrier(asc.cast, square, b, SAME, columns)
            then_barrier(asc.add, value, value, square, columns)
            then_barrier(asc.cast, out, value, ROUND, columns)
            hand_over(EVENTS.V_MTE3)
            store_rows(kept_gm[place:], out, 1, columns, columns)
            then_barrier(asc.mul, square, value, value, columns)
            fold(square, columns)
            hand_over(EVENTS.V_S)
            factor = 1 / math.sqrt(float(square.get_value(0)) / columns + 1e-6)
            kept.set_value(number, factor)
            hand_over(EVENTS.S_V)
            then_barrier(asc.muls, value, value, factor, columns)
            for instruction, operand in ((asc.mul, scale), (asc.add, offset)):
                then_barrier(asc.cast, square, operand, SAME, columns)
                then_barrier(instruction, value, value, square, columns)
            hand_over(EVENTS.MTE3_V)
            then_barrier(asc.cast, out, value, ROUND, columns)
            hand_over(EVENTS.V_MTE3)
            store_rows(target[place:], out, 1, columns, columns)
            hand_over(EVENTS.MTE3_V)
            hand_over(EVENTS.V_MTE2)
        hand_over(EVENTS.S_MTE3)
        store_rows(window(factors)[first + start :], kept, 1, count, count)
        hand_over(EVENTS.MTE3_S)


def add_rms_norm(record: Record, point) -> dict:
    rows, columns = first_of(point), columns_of(record, 5120)
    x, residual, y, total = (np.zeros((rows, columns), BF16) for _ in range(4))
    gamma, bias, factors = (
        np.zeros(columns, BF16),
        np.zeros(columns, BF16),
        np.zeros(rows, np.float32),
    )
    kernel = partial(add_norm, rows=rows, columns=columns)
    run = time_launch(
        kernel, x, residual, gamma, bias, y, total, factors, record=record, cores=min(rows, VECTORS),
        numerics="on",
    )  # fmt: skip
    return times(run)


def soft(x, y, rows: int, columns: int, tile: int):
    """Softmax of rows longer than UB: their maximum, the sum of exponentials, the quotients, in three passes."""
    first, own = share(rows, asc.get_block_idx(), asc.get_block_num())
    source, target = window(x), window(y)
    buffers = Buffers()
    slots = [buffers.take(tile, asc.float32) for _ in range(2)]
    room = buffers.take(tile, asc.float32)
    for row in range(first, first + own):
        most, total = -math.inf, 0.0
        for what in ("most", "total", "store"):
            for slot in range(2):
                asc.set_flag(EVENTS.MTE3_MTE2, slot)
            for turn, (start, count) in enumerate(pieces(columns, tile)):
                slot = turn % 2
                values, place = slots[slot], row * columns + start
                asc.wait_flag(EVENTS.MTE3_MTE2, slot)
                load_rows(values, source[place:], 1, count, count)
                hand_over(EVENTS.MTE2_V, slot)
                if what != "most":
                    then_barrier(asc.adds, values, values, -most, count)
                    then_barrier(asc.exp, values, values, count)
                if what == "store":
                    then_barrier(asc.muls, values, values, 1 / total, count)
                    hand_over(EVENTS.V_MTE3, slot)
                    store_rows(target[place:], values, 1, count, count)
                    asc.set_flag(EVENTS.MTE3_MTE2, slot)
                    continue
                reduce = asc.reduce_max if what == "most" else asc.reduce_sum
                reduce(room, values, room[64:], count)
                hand_over(EVENTS.V_S, slot)
                found = float(room.get_value(0))
                most, total = (max(most, found), total) if what == "most" else (most, total + found)
                hand_over(EVENTS.V_MTE3, slot)
                asc.set_flag(EVENTS.MTE3_MTE2, slot)
            for slot in range(2):
                asc.wait_flag(EVENTS.MTE3_MTE2, slot)


def softmax(record: Record, point) -> dict:
    rows, columns = first_of(point), columns_of(record, 151936)
    few = min(rows, SOFTMAX_ROWS * VECTORS)
    x, y = (np.zeros((few, columns), np.float32) for _ in range(2))
    kernel = partial(soft, rows=few, columns=columns, tile=16384)
    run = time_launch(kernel, x, y, record=record, cores=min(rows, VECTORS), numerics="on")
    if few == rows:
        return times(run)
    return scale(run, -(-rows // VECTORS) / SOFTMAX_ROWS, rows / few) | {
        "simulated_part": f"{few} of {rows} rows, scaled"
    }


# ---- products -------------------------------------------------------------------------------


def matmul(record: Record, point) -> dict:
    m, k, n = point[:3]
    return product(record, m, k, n, "bf16", "NZ")


def quantised_matmul(record: Record, point) -> dict:
    m, k, n = point[:3]
    return product(record, m, k, n, "i8", "NZ")


# ---- the smallest kernels -------------------------------------------------------------------


def floor(record: Record) -> dict:
    """Return the times of kernels of one element or one row, each under its own name, too."""
    names = [name for name in record.measured if name.endswith("_us")] or FLOOR
    rows = [smallest(record, name) for name in names]
    return sweep(rows) | {name: row["task_us"] for name, row in zip(names, rows, strict=True)}


def smallest(record: Record, name: str) -> dict:
    kind, sizes = re.match(r"([a-z]+)_([\dx]+)", name).groups()
    count = math.prod(int(size) for size in sizes.split("x"))
    if kind == "rmsnorm":
        return rms_norm(
            Record(id="a3_net.rms", family="a3_net", chip=record.chip, shape=f"[R,{count}]"), 1
        )
    if kind == "swiglu":
        x, y = np.zeros((1, count), BF16), np.zeros((1, count // 2), BF16)
        kernel = partial(swiglu, shape=(1, count // 2), tile=(1, count // 2))
        return times(time_launch(kernel, x, y, record=record, cores=1))
    return elementwise(record, kind, count, 1)
