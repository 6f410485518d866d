"""Kernels as people write them, correctly synchronised: right numbers and not a word, on every chip tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from tests.machine.kit import ALL, E, V, hand_over, local, window

F32 = asc.float32
P = asc.TPosition
N = 512
TILES = 6
X, Y, Z = 0, 0x8100, 0x12000

Array = np.ndarray[Any, Any]


@dataclass
class Case:
    """A kernel, its arguments after the inputs and the output, and what it must compute."""

    kernel: Callable[..., None]
    expected: Callable[[Array, Array], Array]
    extra: tuple[Any, ...] = ()
    blocks: int = 1
    size: int = N * TILES


CASES: dict[str, Case] = {}


def case(name: str, expected: Callable[[Array, Array], Array], *extra: Any, **options: Any) -> Any:
    def register(kernel: Callable[..., None]) -> Callable[..., None]:
        CASES[name] = Case(kernel, expected, extra, **options)
        return kernel

    return register


def queue(pipe: Any, position: Any, buffers: int, length: int = 4 * N, depth: int = 1) -> Any:
    made = asc.TQue(position, depth)
    pipe.init_buffer(que=made, num=buffers, len=length)
    return made


# ---- queues ---------------------------------------------------------------------------------


@case("queues, one buffer", lambda x, y: x + y, 1)
@case("queues, two buffers", lambda x, y: x + y, 2)
@case("queues, four buffers", lambda x, y: x + y, 4)
@case("queues, three blocks", lambda x, y: x + y, 2, blocks=3)
@case("queues, a shorter last tile", lambda x, y: x + y, 2, size=N * 2 + 264)
def queues(x: Any, y: Any, z: Any, buffers: int) -> None:
    total = x.length // 4 // asc.get_block_num()
    first = total * asc.get_block_idx()
    pipe = asc.TPipe()
    in_x, in_y = queue(pipe, P.VECIN, buffers), queue(pipe, P.VECIN, buffers)
    out = queue(pipe, P.VECOUT, buffers)
    for start in range(0, total, N):
        count = min(N, total - start)
        a, b = in_x.alloc_tensor(F32), in_y.alloc_tensor(F32)
        asc.data_copy(a, window(x)[first + start :], count)
        asc.data_copy(b, window(y)[first + start :], count)
        in_x.enque(a)
        in_y.enque(b)
        a, b, c = in_x.deque(F32), in_y.deque(F32), out.alloc_tensor(F32)
        asc.add(c, a, b, count)
        out.enque(c)
        in_x.free_tensor(a)
        in_y.free_tensor(b)
        c = out.deque(F32)
        asc.data_copy(window(z)[first + start :], c, count)
        out.free_tensor(c)


@case("queues, the next tile loaded ahead", lambda x, y: x * 2 + 1)
def prefetch(x: Any, y: Any, z: Any) -> None:
    """Two tiles are enqueued at once: the queue has depth 2."""
    pipe = asc.TPipe()
    source, target = queue(pipe, P.VECIN, 2, depth=2), queue(pipe, P.VECOUT, 2)

    def load(tile: int) -> None:
        t = source.alloc_tensor(F32)
        asc.data_copy(t, window(x)[N * tile :], N)
        source.enque(t)

    load(0)
    for tile in range(TILES):
        if tile + 1 < TILES:
            load(tile + 1)
        a, c = source.deque(F32), target.alloc_tensor(F32)
        asc.muls(c, a, 2.0, N)
        asc.pipe_barrier(V)
        asc.adds(c, c, 1.0, N)
        source.free_tensor(a)
        target.enque(c)
        c = target.deque(F32)
        asc.data_copy(window(z)[N * tile :], c, N)
        target.free_tensor(c)


@case("queues, tails by padded copies", lambda x, y: x * x, size=N * 2 + 61)
def padded(x: Any, y: Any, z: Any) -> None:
    total = x.length // 4
    pipe = asc.TPipe()
    source, target = queue(pipe, P.VECIN, 2), queue(pipe, P.VECOUT, 2)
    for start in range(0, total, N):
        count = min(N, total - start)
        row = asc.DataCopyExtParams(1, 4 * count, 0, 0, 0)
        a = source.alloc_tensor(F32)
        asc.data_copy_pad(a, window(x)[start:], row, asc.DataCopyPadExtParams(F32, False, 0, 0, 0))
        source.enque(a)
        a, c = source.deque(F32), target.alloc_tensor(F32)
        asc.mul(c, a, a, count)
        source.free_tensor(a)
        target.enque(c)
        c = target.deque(F32)
        asc.data_copy_pad(window(z)[start:], c, row)
        target.free_tensor(c)


@case("a copy through one queue", lambda x, y: x)
def through(x: Any, y: Any, z: Any) -> None:
    pipe = asc.TPipe()
    both = asc.TQueBind(P.VECIN, P.VECOUT, 1)
    pipe.init_buffer(que=both, num=2, len=4 * N)
    for tile in range(TILES):
        t = both.alloc_tensor(F32)
        asc.data_copy(t, window(x)[N * tile :], N)
        both.enque(t)
        t = both.deque(F32)
        asc.data_copy(window(z)[N * tile :], t, N)
        both.free_tensor(t)


@case("a work buffer with barriers", lambda x, y: (x + y) * (x - y))
def work_buffer(x: Any, y: Any, z: Any) -> None:
    """Dependent instructions through a TBuf, and its reuse by the next tile."""
    pipe = asc.TPipe()
    in_x, in_y = queue(pipe, P.VECIN, 2), queue(pipe, P.VECIN, 2)
    out = queue(pipe, P.VECOUT, 2)
    work = asc.TBuf(P.VECCALC)
    pipe.init_buffer(work, 8 * N)
    for tile in range(TILES):
        a, b = in_x.alloc_tensor(F32), in_y.alloc_tensor(F32)
        asc.data_copy(a, window(x)[N * tile :], N)
        asc.data_copy(b, window(y)[N * tile :], N)
        in_x.enque(a)
        in_y.enque(b)
        a, b, c = in_x.deque(F32), in_y.deque(F32), out.alloc_tensor(F32)
        plus, minus = work.get_with_offset(N, 0, F32), work.get_with_offset(N, 4 * N, F32)
        asc.add(plus, a, b, N)
        asc.sub(minus, a, b, N)
        asc.pipe_barrier(V)
        asc.mul(c, plus, minus, N)
        asc.pipe_barrier(V)
        out.enque(c)
        in_x.free_tensor(a)
        in_y.free_tensor(b)
        c = out.deque(F32)
        asc.data_copy(window(z)[N * tile :], c, N)
        out.free_tensor(c)


@case("in place with barriers", lambda x, y: np.maximum(x + 1, 0) * 2)
def in_place(x: Any, y: Any, z: Any) -> None:
    pipe = asc.TPipe()
    source, target = queue(pipe, P.VECIN, 2), queue(pipe, P.VECOUT, 2)
    for tile in range(TILES):
        a = source.alloc_tensor(F32)
        asc.data_copy(a, window(x)[N * tile :], N)
        source.enque(a)
        a, c = source.deque(F32), target.alloc_tensor(F32)
        asc.adds(a, a, 1.0, N)
        asc.pipe_barrier(V)
        asc.relu(a, a, N)
        asc.pipe_barrier(V)
        asc.muls(c, a, 2.0, N)
        source.free_tensor(a)
        target.enque(c)
        c = target.deque(F32)
        asc.data_copy(window(z)[N * tile :], c, N)
        target.free_tensor(c)


@case(
    "a sum over tiles kept in a buffer",
    lambda x, y: np.tile(np.add.reduce(x.reshape(TILES, N)), TILES),
)
def accumulate(x: Any, y: Any, z: Any) -> None:
    pipe = asc.TPipe()
    source, target = queue(pipe, P.VECIN, 2), queue(pipe, P.VECOUT, 1)
    total = asc.TBuf()
    pipe.init_buffer(total, 4 * N)
    asc.duplicate(total.get(F32), 0.0, N)
    for tile in range(TILES):
        a = source.alloc_tensor(F32)
        asc.data_copy(a, window(x)[N * tile :], N)
        source.enque(a)
        a = source.deque(F32)
        asc.pipe_barrier(V)
        asc.add(total.get(F32), total.get(F32), a, N)
        source.free_tensor(a)
    asc.pipe_barrier(V)
    c = target.alloc_tensor(F32)
    asc.adds(c, total.get(F32), 0.0, N)
    target.enque(c)
    c = target.deque(F32)
    for tile in range(TILES):
        asc.data_copy(window(z)[N * tile :], c, N)
    target.free_tensor(c)


@case("a second pipe object", lambda x, y: x + 1)
def two_pipe_objects(x: Any, y: Any, z: Any) -> None:
    for half in range(2):
        pipe = asc.TPipe()
        source, target = queue(pipe, P.VECIN, 2), queue(pipe, P.VECOUT, 2)
        for tile in range(3 * half, 3 * half + 3):
            a = source.alloc_tensor(F32)
            asc.data_copy(a, window(x)[N * tile :], N)
            source.enque(a)
            a, c = source.deque(F32), target.alloc_tensor(F32)
            asc.adds(c, a, 1.0, N)
            source.free_tensor(a)
            target.enque(c)
            c = target.deque(F32)
            asc.data_copy(window(z)[N * tile :], c, N)
            target.free_tensor(c)
        pipe.destroy()


# ---- flags by hand --------------------------------------------------------------------------


@case("ping-pong, flags back preset before the loop", lambda x, y: x + y)
def ping_pong(x: Any, y: Any, z: Any) -> None:
    for slot in range(2):
        asc.set_flag(E.V_MTE2, slot)
        asc.set_flag(E.MTE3_V, slot)
    for tile in range(TILES):
        slot = tile % 2
        a, b, c = (local(place + 4 * N * slot, N) for place in (X, Y, Z))
        asc.wait_flag(E.V_MTE2, slot)
        asc.data_copy(a, window(x)[N * tile :], N)
        asc.data_copy(b, window(y)[N * tile :], N)
        asc.set_flag(E.MTE2_V, slot)
        asc.wait_flag(E.MTE2_V, slot)
        asc.wait_flag(E.MTE3_V, slot)
        asc.add(c, a, b, N)
        asc.set_flag(E.V_MTE2, slot)
        asc.set_flag(E.V_MTE3, slot)
        asc.wait_flag(E.V_MTE3, slot)
        asc.data_copy(window(z)[N * tile :], c, N)
        asc.set_flag(E.MTE3_V, slot)
    for slot in range(2):
        asc.wait_flag(E.V_MTE2, slot)
        asc.wait_flag(E.MTE3_V, slot)


@case("one slot, everything handed on", lambda x, y: x * y + x)
def hand_to_hand(x: Any, y: Any, z: Any) -> None:
    a, b, c = (local(place, N) for place in (X, Y, Z))
    for tile in range(TILES):
        asc.data_copy(a, window(x)[N * tile :], N)
        asc.data_copy(b, window(y)[N * tile :], N)
        hand_over(E.MTE2_V)
        asc.mul(c, a, b, N)
        asc.pipe_barrier(V)
        asc.add(c, c, a, N)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z)[N * tile :], c, N)
        hand_over(E.MTE3_V)
        hand_over(E.V_MTE2)


@case("barriers of all pipes and nothing else", lambda x, y: (x + y) * 0.5)
def all_barriers(x: Any, y: Any, z: Any) -> None:
    a, b, c = (local(place, N) for place in (X, Y, Z))
    for tile in range(TILES):
        asc.data_copy(a, window(x)[N * tile :], N)
        asc.data_copy(b, window(y)[N * tile :], N)
        asc.pipe_barrier(ALL)
        asc.add(c, a, b, N)
        asc.pipe_barrier(ALL)
        asc.muls(c, c, 0.5, N)
        asc.pipe_barrier(ALL)
        asc.data_copy(window(z)[N * tile :], c, N)
        asc.pipe_barrier(ALL)


@case("a table loaded once and used by every tile", lambda x, y: x + np.tile(y[:N], TILES))
def table(x: Any, y: Any, z: Any) -> None:
    t = local(Y, N)
    asc.data_copy(t, window(y), N)
    hand_over(E.MTE2_V)
    for tile in range(TILES):
        a, c = local(X + 4 * N * tile, N), local(Z + 4 * N * tile, N)
        asc.data_copy(a, window(x)[N * tile :], N)
        hand_over(E.MTE2_V)
        asc.add(c, a, t, N)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z)[N * tile :], c, N)


# ---- shapes of access -----------------------------------------------------------------------


@case(
    "halves swapped by strided copies", lambda x, y: np.roll(x.reshape(-1, 64), 32, axis=1).ravel()
)
def swap_halves(x: Any, y: Any, z: Any) -> None:
    """Rows of 64: the left half goes right and the right half left, inside UB, without a barrier between them."""
    rows = N * TILES // 64
    a, c = local(X, 64 * rows), local(Z, 64 * rows)
    half = asc.DataCopyParams(rows, 4, 4, 4)
    asc.data_copy(a, window(x), 64 * rows)
    hand_over(E.MTE2_V)
    asc.data_copy(c, a[32:], half)
    asc.data_copy(c[32:], a, half)
    hand_over(E.V_MTE3)
    asc.data_copy(window(z), c, 64 * rows)


@case("each of four blocks its columns", lambda x, y: x * 2, blocks=4, size=16 * 128)
def columns(x: Any, y: Any, z: Any) -> None:
    width, rows = 32, 16
    a = local(X, rows * width)
    inward = asc.DataCopyParams(rows, 4, 12, 0)
    outward = asc.DataCopyParams(rows, 4, 0, 12)
    start = width * asc.get_block_idx()
    asc.data_copy(a, window(x)[start:], inward)
    hand_over(E.MTE2_V)
    asc.muls(a, a, 2.0, rows * width)
    hand_over(E.V_MTE3)
    asc.data_copy(window(z)[start:], a, outward)


def row_sums(x: Array, _: Array) -> Array:
    """The tree's order of addition: halves onto one another."""
    rows = x.reshape(-1, 64)
    for width in (32, 16, 8):
        rows = rows[:, :width] + rows[:, width : 2 * width]
    return np.repeat(rows[:, None, :], 8, axis=1).ravel()


@case("a tree of adds under shrinking masks, and a broadcast", row_sums, size=64 * 12)
def tree(x: Any, y: Any, z: Any) -> None:
    rows = 12
    a, c = local(X, 64 * rows), local(Z, 64 * rows)
    asc.data_copy(a, window(x), 64 * rows)
    hand_over(E.MTE2_V)
    for width in (32, 16, 8):
        asc.add(
            a, a, a[width:], mask=width, repeat_times=rows, repeat_params=asc.BinaryRepeatParams()
        )
        asc.pipe_barrier(V)
    asc.adds(c, a, 0.0, mask=64, repeat_times=rows, repeat_params=asc.UnaryRepeatParams(1, 0, 8, 8))
    hand_over(E.V_MTE3)
    asc.data_copy(window(z), c, 64 * rows)


@case("a scalar in the loop", lambda x, y: x * np.repeat(y[::N], N) + 1)
def scalar(x: Any, y: Any, z: Any) -> None:
    """The factor of a tile is read from GM, the offset is written and read in UB by the scalar unit."""
    a, c, one = local(X, N), local(Z, N), local(Y, 8)
    one.set_value(0, 1.0)
    for tile in range(TILES):
        asc.data_copy(a, window(x)[N * tile :], N)
        hand_over(E.MTE2_V)
        asc.muls(c, a, window(y).get_value(N * tile), N)
        asc.pipe_barrier(V)
        asc.adds(c, c, one.get_value(0), N)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z)[N * tile :], c, N)
        hand_over(E.MTE3_V)
        hand_over(E.V_MTE2)


@case("a value of the vector unit steers the scalar unit", lambda x, y: np.where(x[0] > 0, x, -x))
def branch(x: Any, y: Any, z: Any) -> None:
    a, c = local(X, N * TILES), local(Z, N * TILES)
    asc.data_copy(a, window(x), N * TILES)
    hand_over(E.MTE2_V)
    asc.muls(c, a, 1.0, N * TILES)
    hand_over(E.V_S)
    if c.get_value(0) <= 0:
        asc.muls(c, a, -1.0, N * TILES)
    hand_over(E.V_MTE3)
    asc.data_copy(window(z), c, N * TILES)


@case("stored and loaded again", lambda x, y: (x + 1) * 2)
def by_way_of_gm(x: Any, y: Any, z: Any) -> None:
    a = local(X, N * TILES)
    asc.data_copy(a, window(x), N * TILES)
    hand_over(E.MTE2_V)
    asc.adds(a, a, 1.0, N * TILES)
    hand_over(E.V_MTE3)
    asc.data_copy(window(z), a, N * TILES)
    hand_over(E.MTE3_MTE2)
    asc.data_copy(local(Z, N * TILES), window(z), N * TILES)
    hand_over(E.MTE2_V)
    asc.muls(a, local(Z, N * TILES), 2.0, N * TILES)
    hand_over(E.V_MTE3)
    asc.data_copy(window(z), a, N * TILES)


@case("many independent instructions in a row", lambda x, y: x + 3)
def independent(x: Any, y: Any, z: Any) -> None:
    a, c = local(X, N * TILES), local(Z, N * TILES)
    asc.data_copy(a, window(x), N * TILES)
    hand_over(E.MTE2_V)
    for part in range(N * TILES // 64):
        asc.adds(c[64 * part :], a[64 * part :], 3.0, 64)
    hand_over(E.V_MTE3)
    asc.data_copy(window(z), c, N * TILES)


@pytest.mark.parametrize("chip", ["toy", "ascend910b1", "ascend910b4"])
@pytest.mark.parametrize("name", CASES)
def test_silent_and_right(name: str, chip: str) -> None:
    what = CASES[name]
    generator = np.random.default_rng(1)
    x, y = (generator.normal(size=what.size).astype(np.float32) for _ in range(2))
    z = np.zeros_like(x)
    run = sim.launch(what.kernel, x, y, z, *what.extra, cores=what.blocks, chip=chip)
    assert run.findings == []
    assert run.exit_code == 0
    np.testing.assert_array_equal(z, what.expected(x, y).astype(np.float32))
