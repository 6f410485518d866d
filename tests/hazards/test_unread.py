"""Results that something overwrites before anybody has read them, and what looks like that and is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ascend_sim import asc
from ascend_sim.errors import Finding
from ascend_sim.unread import _Bytes, _Result
from tests.machine.kit import E, hand_over, local, toy_run, window

V, M = asc.PipeID.PIPE_V, asc.PipeID.PIPE_M
P = asc.TPosition
F32 = asc.float32
N = 64


def unread(kernel: Any, *args: Any, **options: Any) -> list[Finding]:
    run = toy_run(kernel, *args, **options)
    assert all(one.code == "overwritten-unread" for one in run.findings), run.findings
    return run.findings


def arrays() -> Any:
    x, y = np.random.default_rng(0).normal(size=(2, N)).astype(np.float32)
    return x, y, np.zeros(N, np.float32)


def two_tiles(place: int) -> Any:
    def kernel(x: asc.GlobalAddress, y: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        a, b, c = local(0, N), local(place, N), local(4096, N)
        asc.data_copy(a, window(x), N)
        asc.pipe_barrier(asc.PipeID.PIPE_MTE2)
        asc.data_copy(b, window(y), N)
        hand_over(E.MTE2_V)
        asc.add(c, a, b, N)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z), c, N)

    return kernel


def test_two_tiles_in_one_buffer() -> None:
    (found,) = unread(two_tiles(0), *arrays())
    assert (found.kind, found.line) == ("INFO", two_tiles.__code__.co_firstlineno + 3)
    assert found.bytes == (0, 256) and found.pipe == "MTE2"
    assert "data_copy at" in found.message and f":{found.line + 2} in" in found.message
    assert unread(two_tiles(1024), *arrays()) == []


def test_a_part_that_is_left_is_enough() -> None:
    """Tiles that overlap but for 32 bytes: the first one may be needed for those."""
    assert unread(two_tiles(32), *arrays()) == []


def product(anew: bool, ahead: bool) -> Any:
    def kernel(a: asc.GlobalAddress, c: asc.GlobalAddress) -> None:
        a1 = asc.LocalTensor(asc.float16, P.A1, 0, 1024)
        a2, b2 = (asc.LocalTensor(asc.float16, one, 0, 256) for one in (P.A2, P.B2))
        sums = asc.LocalTensor(F32, P.CO1, 0, 256)
        asc.data_copy(a1, window(a), 1024)
        hand_over(E.MTE2_MTE1)
        for k in range(4):
            if k == 0 or ahead:
                asc.load_data(a2, a1[256 * k :], asc.LoadData2DParams())
                asc.load_data(b2, a1[256 * k :], asc.LoadData2DParams())
                hand_over(E.MTE1_M)
            asc.mmad(sums, a2, b2, asc.MmadParams(16, 16, 16, cmatrix_init_val=k == 0 or anew))
            asc.pipe_barrier(M)
            hand_over(E.M_MTE1)
        hand_over(E.M_FIX)
        asc.fixpipe(window(c), sums, asc.FixpipeParamsV220(16, 16, 16, 16))

    return kernel


@pytest.mark.parametrize(("anew", "ahead"), [(True, True), (True, False), (False, True)])
def test_products_that_start_anew(anew: bool, ahead: bool) -> None:
    """Each step has operands of its own: only the last one would count. The same again is a measurement's loop."""
    a, c = np.ones(1024, np.float16), np.zeros(256, np.float32)
    found = unread(product(anew, ahead), a, c, kernel_type="AIC_ONLY")
    assert c[0] == (16 if anew else 64)
    if not (anew and ahead):
        assert found == []
        return
    assert len(found) == 1 and "3 times" in found[0].message
    assert "give cmatrix_init_val False from the second step on" in found[0].message


def on_v(body: Any) -> Any:
    def kernel(x: asc.GlobalAddress, y: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        a, b, t = (local(1024 * k, N) for k in range(3))
        asc.data_copy(a, window(x), N)
        asc.data_copy(b, window(y), N)
        hand_over(E.MTE2_V)
        body(a, b, t)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z), t, N)

    return kernel


def wrong_target(a: Any, b: Any, t: Any) -> None:
    asc.muls(t, a, 2.0, N)
    asc.pipe_barrier(V)
    asc.adds(t, b, 1.0, N)


def fill_and_take_all(a: Any, b: Any, t: Any) -> None:
    asc.duplicate(t, 0.0, N)
    asc.pipe_barrier(V)
    asc.adds(t, b, 1.0, N)


def another_way(a: Any, b: Any, t: Any) -> None:
    asc.muls(t, a, 2.0, N)
    asc.pipe_barrier(V)
    if N == 64:
        asc.adds(t, b, 1.0, N)


def in_place(a: Any, b: Any, t: Any) -> None:
    asc.muls(t, a, 2.0, N)
    asc.pipe_barrier(V)
    asc.add(t, t, b, N)


def again_and_again(a: Any, b: Any, t: Any) -> None:
    for _ in range(5):
        asc.add(t, a, b, N)
        asc.pipe_barrier(V)


def once_of_two_times(a: Any, b: Any, t: Any) -> None:
    for trip in range(2):
        asc.muls(t, a, 2.0, N)
        asc.pipe_barrier(V)
        if trip:
            asc.add(b, b, t, N)
        asc.pipe_barrier(V)
        asc.adds(t, b, 1.0, N)
        asc.pipe_barrier(V)


def read_by_the_scalar_unit(a: Any, b: Any, t: Any) -> None:
    asc.muls(t, a, 2.0, N)
    hand_over(E.V_S)
    top = t.get_value(0)
    asc.adds(t, b, top, N)


def with_a_mask_of_all(a: Any, b: Any, t: Any) -> None:
    asc.muls(t, a, 2.0, N)
    asc.pipe_barrier(V)
    asc.adds(t, b, 1.0, 64, 1, asc.UnaryRepeatParams(1, 1, 8, 8))
    asc.pipe_barrier(V)
    asc.adds(t, t, 1.0, N)


def with_a_mask(a: Any, b: Any, t: Any) -> None:
    asc.muls(t, a, 2.0, N)
    asc.pipe_barrier(V)
    asc.adds(t, b, 1.0, 48, 1, asc.UnaryRepeatParams(1, 1, 8, 8))
    asc.pipe_barrier(V)
    asc.adds(t, t, 1.0, N)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (wrong_target, 1), (fill_and_take_all, 0), (another_way, 0), (in_place, 0), (again_and_again, 0),
        (once_of_two_times, 0), (read_by_the_scalar_unit, 0), (with_a_mask_of_all, 1), (with_a_mask, 0),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)  # fmt: skip
def test_on_v(body: Any, code: int) -> None:
    found = unread(on_v(body), *arrays())
    assert len(found) == code, found
    if code:
        assert found[0].line == body.__code__.co_firstlineno + 1 and found[0].pipe == "V"


def test_pieces() -> None:
    """Whose bytes stand where, against one entry for each byte."""
    draw = np.random.default_rng(0)
    for _ in range(200):
        memory, plain, results = _Bytes(), np.full(64, -1), []
        gone: set[int] = set()
        for number in range(30):
            low, high = sorted(draw.choice(64, 2, replace=False).tolist())
            if draw.random() < 0.3:
                memory.read(low, high)
                for one in np.unique(plain[low:high]):
                    assert one < 0 or results[one].read
                continue
            result: Any = _Result(number, None, high - low, read=False)  # type: ignore[arg-type]
            results += [result] * (number + 1 - len(results))
            before = set(np.unique(plain[plain >= 0]).tolist())
            plain[low:high] = number
            gone = before - set(np.unique(plain).tolist())
            assert {one.item for one in memory.write(low, high, result)} == gone
            for one in np.unique(plain[plain >= 0]):
                assert results[one].left == np.count_nonzero(plain == one)
