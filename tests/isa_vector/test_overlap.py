"""Operands at any addresses: a fault that changes nothing, or what repeats that follow one another give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_sim import asc
from isa.faults import IsaFault
from isa.types import DType
from tests.isa_vector.kit import Bench, local, seeds

F16, F32, U32 = asc.float16, asc.float32, asc.uint32
HERE, ELSEWHERE = 4096, 24576
"""Where operands meet, and where nothing else is."""
SPAN = 8192


def place(address: int, dtype: DType) -> Any:
    return local(address, SPAN // dtype.size, dtype)


def compare_runs(
    seed: int, whole: Callable[[], None], single: Callable[[int], None], repeat: int
) -> None:
    """The instruction, against its repeats one after the other on another copy of UB."""
    bench, other = Bench(seed, F32), Bench(seed, F32)
    try:
        bench.run(whole)
    except IsaFault as error:
        assert error.code == "operand-overlap"
        bench.check()
        return
    with other.stream:
        for r in range(repeat):
            single(r)
    np.testing.assert_array_equal(bench.ub, other.ub)


OFFSETS = st.integers(0, 40)
REPEATS = st.integers(1, 4)


@settings(max_examples=60, deadline=None)
@given(seeds(), OFFSETS, OFFSETS, REPEATS, st.integers(1, 3), st.integers(0, 20))
def test_brcb(seed: int, dst: int, src: int, repeat: int, block: int, step: int) -> None:
    step = max(step, 1)
    to, source = HERE + 32 * dst, HERE + 32 * src

    def whole() -> None:
        asc.brcb(place(to, F32), place(source, F32), repeat, asc.BrcbRepeatParams(block, step))

    def single(r: int) -> None:
        params = asc.BrcbRepeatParams(block, 8)
        asc.brcb(place(to + 32 * step * r, F32), place(source + 32 * r, F32), 1, params)

    compare_runs(seed, whole, single, repeat)


@settings(max_examples=60, deadline=None)
@given(seeds(), OFFSETS, OFFSETS, REPEATS, st.integers(1, 3), st.integers(0, 10), st.integers(1, 2))
def test_block_reduce(
    seed: int, dst: int, src: int, repeat: int, block: int, step: int, stride: int
) -> None:
    to, source = HERE + 32 * dst, HERE + 32 * src

    def whole() -> None:
        asc.block_reduce_sum(place(to, F32), place(source, F32), repeat, 64, stride, block, step)

    def single(r: int) -> None:
        asc.block_reduce_sum(
            place(to + 32 * stride * r, F32), place(source + 32 * step * r, F32), 1, 64, 1, block, 8
        )

    compare_runs(seed, whole, single, repeat)


@settings(max_examples=60, deadline=None)
@given(seeds(), OFFSETS, OFFSETS, REPEATS, st.integers(1, 7), st.integers(0, 10))
def test_gather_mask(seed: int, dst: int, src: int, repeat: int, pattern: int, step: int) -> None:
    to, source = HERE + 32 * dst, HERE + 32 * src
    kept = {1: 32, 2: 32, 7: 64}.get(pattern, 16)

    def whole() -> None:
        params = asc.GatherMaskParams(1, repeat, step)
        asc.gather_mask(place(to, F32), place(source, F32), pattern, False, 0, params)

    def single(r: int) -> None:
        params = asc.GatherMaskParams(1, 1, 0)
        asc.gather_mask(
            place(to + 4 * kept * r, F32),
            place(source + 32 * step * r, F32),
            pattern,
            False,
            0,
            params,
        )

    compare_runs(seed, whole, single, repeat)


@settings(max_examples=60, deadline=None)
@given(seeds(), OFFSETS, OFFSETS, REPEATS)
def test_sort32(seed: int, dst: int, src: int, repeat: int) -> None:
    to, source = HERE + 32 * dst, HERE + 32 * src

    def whole() -> None:
        asc.sort32(place(to, F32), place(source, F32), place(ELSEWHERE, U32), repeat)

    def single(r: int) -> None:
        asc.sort32(
            place(to + 256 * r, F32),
            place(source + 128 * r, F32),
            place(ELSEWHERE + 128 * r, U32),
            1,
        )

    compare_runs(seed, whole, single, repeat)


@settings(max_examples=60, deadline=None)
@given(
    seeds(),
    st.lists(OFFSETS, min_size=32, max_size=32),
    REPEATS,
    st.integers(1, 9),
    st.integers(0, 9),
)
def test_5hd(seed: int, blocks: list[int], repeat: int, to_step: int, step: int) -> None:
    """Lists whose blocks do not overlap among the destinations."""
    to = [HERE + 1024 * k for k in range(16)]
    source = [HERE + 32 * (blocks[k] + 32 * (blocks[16 + k] % 12)) for k in range(16)]
    strides = (to_step, step) if repeat > 1 else (0, 0)

    def lists(r: int) -> tuple[list[Any], list[Any]]:
        return (
            [local(a + 32 * to_step * r, 512, F16) for a in to],
            [local(a + 32 * step * r, 512, F16) for a in source],
        )

    def whole() -> None:
        params = asc.TransDataTo5HDParams(False, False, repeat, *strides)
        asc.trans_data_to_5hd(*lists(0), params)

    def single(r: int) -> None:
        asc.trans_data_to_5hd(*lists(r), asc.TransDataTo5HDParams())

    compare_runs(seed, whole, single, repeat)


@settings(max_examples=60, deadline=None)
@given(seeds(), OFFSETS, OFFSETS, st.integers(0, 6))
def test_compare(seed: int, dst: int, src: int, repeat: int) -> None:
    to, source = HERE + 32 * dst, HERE + 32 * src
    bits, other = place(to, asc.uint8), place(ELSEWHERE, F32)

    def whole() -> None:
        asc.compare(bits, place(source, F32), other, asc.CMPMODE.GT, 64 * repeat)

    # A single repeat may write 8 bytes off a 32-byte border, which no tensor may start on: compare by hand.
    bench = Bench(seed, F32)
    try:
        bench.run(whole)
    except IsaFault as error:
        assert error.code == "operand-overlap"
        bench.check()
        return
    for r in range(repeat):
        a = bench.want[source + 256 * r : source + 256 * (r + 1)].view(np.float32)
        b = bench.want[ELSEWHERE + 256 * r : ELSEWHERE + 256 * (r + 1)].view(np.float32)
        bench.want[to + 8 * r : to + 8 * r + 8] = np.packbits(a > b, bitorder="little")
    bench.check()


@settings(max_examples=60, deadline=None)
@given(seeds(), OFFSETS, OFFSETS, st.integers(1, 700), st.booleans())
def test_reduce_all(seed: int, dst: int, src: int, count: int, index: bool) -> None:
    """dst, source and work buffer anywhere: the work buffer may hold dst; rounds keep the rules themselves."""
    to, source = HERE + 8 * dst, HERE + 32 * src
    bench, other = Bench(seed, F32), Bench(seed, F32)
    with bench.stream:
        asc.reduce_max(place(to, F32), place(source, F32), place(ELSEWHERE, F32), count, index)
    with other.stream:
        asc.reduce_max(local(40960, 8), place(source, F32), place(ELSEWHERE, F32), count, index)
    size = 8 if index else 4
    np.testing.assert_array_equal(bench.ub[to : to + size], other.ub[40960 : 40960 + size])
