"""Kernels of which no more than a sentence is published: what they must move and compute, before and after a change."""

from __future__ import annotations

import re
from functools import partial

import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, sweep, time_launch, times, total

from ._kit import (
    EVENTS,
    Buffers,
    gelu_chain,
    hand_over,
    load_rows,
    pieces,
    scale,
    share,
    store_rows,
    then_barrier,
    window,
)
from ._matmul import run_part
from ._stream import run_walk, tile_for
from ._tiles import Plan, cyclic

PART = 1 << 22
"""Elements that are simulated at most; the rest is in proportion."""


def simulate(record: Record) -> dict:
    return {
        "polar": polar, "squaresum": square_sum, "add4": add_four, "gelu_9362": gelu, "tl_gemm": product, "tail": tail,
    }[record.name](record)  # fmt: skip


def numbers(record: Record) -> list[int]:
    """Return the numbers in a shape that is told in words; 4M is 4 · 2^20."""
    found = re.findall(r"(\d[\d,]*)(M?)\b", str(record.shape))
    return [int(digits.replace(",", "")) << (20 if mega else 0) for digits, mega in found]


# ---- polar: a complex number of length and angle --------------------------------------------


INNER = 64
"""Elements over which one angle is repeated (the inner broadcast); the number is not published."""


def polar_chain(loaded, result, room, count: int) -> None:
    """Cosine and sine by polynomials of nine steps, times the length, real and imaginary part in turn."""
    length, angle = loaded
    square, cosine, sine = room
    then_barrier(asc.mul, square, angle, angle, count)
    for part in (cosine, sine):
        then_barrier(asc.duplicate, part, 1.0, count)
        for _ in range(5):
            then_barrier(asc.mul, part, part, square, count)
            then_barrier(asc.adds, part, part, 1.0, count)
        then_barrier(asc.mul, part, part, length, count)
    asc.copy(result, cosine, 64, -(-count // 64), asc.CopyRepeatParams(1, 1, 16, 8))
    asc.copy(result[64:], sine, 64, -(-count // 64), asc.CopyRepeatParams(1, 1, 16, 8))
    asc.pipe_barrier(asc.PipeID.PIPE_V)


def polar_kernel(length, angle, y, count: int, tile: int, inner: int):
    """Walk tiles; before the change the angle is repeated by copies of `inner` elements, after it by one load."""
    first, own = share(count, asc.get_block_idx(), asc.get_block_num())
    buffers = Buffers()
    lengths, angles = (buffers.take(tile, asc.float32) for _ in range(2))
    room = [buffers.take(tile, asc.float32) for _ in range(3)]
    result = buffers.take(2 * tile, asc.float32)
    left, right, target = window(length), window(angle), window(y)
    for start, amount in pieces(own, tile):
        place = first + start
        load_rows(lengths, left[place:], 1, amount, amount)
        if inner:
            for at, part in pieces(amount, inner):
                load_rows(angles[at:], right[place // inner :], 1, part, part)
        else:
            load_rows(angles, right[place:], 1, amount, amount)
        hand_over(EVENTS.MTE2_V)
        polar_chain([lengths, angles], result, room, amount)
        hand_over(EVENTS.V_MTE3)
        store_rows(target[2 * place :], result, 1, 2 * amount, 2 * amount)
        hand_over(EVENTS.MTE3_MTE2)


def polar(record: Record) -> dict:
    rows = []
    for elements in numbers(record)[:2]:
        few = min(elements, PART)
        both = {}
        for name, inner in (("before_us", INNER), ("after_us", 0)):
            length, angle = (np.zeros(few + 8192, np.float32) for _ in range(2))
            y = np.zeros(2 * few + 16384, np.float32)
            kernel = partial(polar_kernel, count=few, tile=4096, inner=inner)
            run = time_launch(kernel, length, angle, y, record=record, cores=record.cores)
            both |= scaled(run, elements, few)
            both[name] = both["task_us"]
        rows.append(both)
    return sweep(rows)


def scaled(run, whole: int, part: int) -> dict:
    """Return a run's times, in proportion where only a part was simulated."""
    if part == whole:
        return times(run)
    return scale(run, whole / part, whole / part) | {
        "simulated_part": f"{part} of {whole} elements, scaled"
    }


# ---- sum of squares over a middle axis ------------------------------------------------------

MIDDLE = 256
"""Length of the axis that is summed; not published."""


def square_kernel(x, y, outer: int, middle: int, inner: int, together: int):
    """Add up squares of rows of `inner` numbers, `together` of them in one load, in float32."""
    first, own = share(outer, asc.get_block_idx(), asc.get_block_num())
    pitch = -(-inner // 16) * 16
    buffers = Buffers()
    loaded = buffers.take(together * pitch, x.dtype)
    value = buffers.take(together * pitch, asc.float32)
    kept = buffers.take(pitch, asc.float32)
    narrow = buffers.take(pitch, x.dtype)
    source, target = window(x), window(y)
    for group in range(first, first + own):
        then_barrier(asc.duplicate, kept, 0.0, pitch)
        for start, rows in pieces(middle, together):
            load_rows(loaded, source[(group * middle + start) * inner :], rows, inner, inner)
            hand_over(EVENTS.MTE2_V)
            n = rows * pitch
            then_barrier(asc.cast, value, loaded, asc.RoundMode.CAST_NONE, n)
            then_barrier(asc.mul, value, value, value, n)
            count = rows
            while count > 1:
                half = -(-count // 2)
                then_barrier(asc.add, value, value, value[half * pitch :], (count - half) * pitch)
                count = half
            then_barrier(asc.add, kept, kept, value, pitch)
            hand_over(EVENTS.V_MTE2)
        then_barrier(asc.cast, narrow, kept, asc.RoundMode.CAST_RINT, pitch)
        hand_over(EVENTS.V_MTE3)
        store_rows(target[group * inner :], narrow, 1, inner, inner)
        hand_over(EVENTS.MTE3_V)


def square_sum(record: Record) -> dict:
    elements, inner = numbers(record)
    outer = elements // (MIDDLE * inner)
    result = {}
    for name, together, most in (("before_us", 1, 2), ("after_us", MIDDLE, outer)):
        few = min(outer, most * record.cores)
        x, y = np.zeros(few * MIDDLE * inner, np.float16), np.zeros(few * inner, np.float16)
        kernel = partial(square_kernel, outer=few, middle=MIDDLE, inner=inner, together=together)
        result |= scaled(time_launch(kernel, x, y, record=record, cores=record.cores), outer, few)
        result[name] = result["task_us"]
    return result


# ---- sum of four, GELU, product -------------------------------------------------------------


def four(loaded, result, room, count: int) -> None:
    first, second, third, fourth = loaded
    then_barrier(asc.add, result, first, second, count)
    then_barrier(asc.add, result, result, third, count)
    then_barrier(asc.add, result, result, fourth, count)


def add_four(record: Record) -> dict:
    sizes = re.search(r"\[B,(\d+),(\d+)\]", record.shape)
    each = int(sizes[1]) * int(sizes[2])
    batches = [int(n) for n in re.search(r"B = (.*)", record.shape)[1].replace("and", " ").split()]
    rows, steady = [], None
    for batch in batches:
        run = partial(
            run_walk, record, batch * each, [np.float16] * 5, four, cores=record.cores,
            tile=record.params["tile_elems"], sets=record.params["buffers"],
        )  # fmt: skip
        rows.append(times(run()))
        steady = steady or run(l2="warm").time_us
    return sweep(rows) | {"steady_b1_us": steady}


def gelu_tile(loaded, result, room, count: int) -> None:
    (x,), (other,) = loaded, room
    gelu_chain(x, other, result, count)


def gelu(record: Record) -> dict:
    elements = int(np.prod(record.shape))
    few = min(elements, 16 * PART)
    types, room = [np.float32, np.float32], [asc.float32]
    tile = tile_for(types, room, few, record.cores)
    run = run_walk(record, few, types, gelu_tile, cores=record.cores, tile=tile, room=room)
    return scaled(run, elements, few)


def product(record: Record) -> dict:
    size = tuple(record.shape[name] for name in "MNK")
    result: dict = {}
    for name, unit_flag in (("tilelang_ms", False), ("library_ms", True)):
        plan = Plan(size, (128, 256, 64), (4, 4), ahead=1, unit_flag=unit_flag, stored_b="KN")
        tiles = cyclic(plan, record.cores, swizzle=4, stagger=True)
        result |= run_part(record, plan, tiles, np.float16, np.float16, 4)
        result[name] = result["task_us"] / 1000
    return result


# ---- tails: counter mask against normal mask ------------------------------------------------


def add_with_tail(x, y, count: int, loops: int, counter: bool):
    """Add the same numbers again and again: by one instruction that counts, or by full repeats and a tail."""
    buffers = Buffers()
    room = -(-count // 128) * 128
    a, b, c = (buffers.take(room, x.dtype) for _ in range(3))
    for tensor in (a, b):
        load_rows(tensor, window(x), 1, count, count)
    hand_over(EVENTS.MTE2_V)
    params = asc.BinaryRepeatParams(1, 1, 1, 8, 8, 8)
    repeats, tail_count = divmod(count, 128)
    for _ in range(loops):
        if counter:
            asc.set_mask_count()
            asc.set_vector_mask(0, count)
            asc.add(c, a, b, 0, 1, params, is_set_mask=False)
            asc.reset_mask()
            asc.set_mask_norm()
        else:
            asc.add(c, a, b, 128, repeats, params)
            if tail_count:
                at = repeats * 128
                asc.add(c[at:], a[at:], b[at:], tail_count, 1, params)
    hand_over(EVENTS.V_MTE3)
    store_rows(window(y), c, 1, count, count)


def tail(record: Record) -> dict:
    count, loops = numbers(record)[:2]
    x, y = (np.zeros(count, np.float16) for _ in range(2))
    runs = []
    result: dict = {}
    for name, counter in (("normal", False), ("counter", True)):
        kernel = partial(add_with_tail, count=count, loops=loops, counter=counter)
        one = times(time_launch(kernel, x, y, record=record, cores=record.cores))
        runs.append(one)
        result |= {f"{name}_scalar_us": one["scalar_us"], f"{name}_vec_us": one["vec_us"]}
    return total(runs) | result
