"""softmax, rmsnorm, quant, concat and extract against float64 and exact integers; layernorm and gelu of basic calls."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_sim import asc
from ascend_sim.errors import KernelError
from tests.adv.vectors import run

adv = asc.adv
BOUND = {np.float32: 1e-6, np.float16: 2.0**-10}


def _normal(shape: Any, dtype: Any, seed: int = 1) -> Any:
    return (np.random.default_rng(seed).normal(size=shape) * 4).astype(dtype)


def _softmax(
    x: Any, *, wide: Any = None, temporary: int | None = None, split: int = 0
) -> tuple[Any, Any, Any]:
    rows, width = x.shape
    kind = wide or x.dtype
    out = np.zeros_like(x)
    largest, sums = np.zeros((2, rows, 32 // np.dtype(kind).itemsize), kind)
    tiling = adv.SoftmaxTiling(src_m=rows, src_k=width, split_m=split)
    run(lambda dst, top, total, src, **named: adv.softmax(dst, total, top, src, tiling, **named),
        [out, largest, sums], [x], temporary)  # fmt: skip
    return out, largest, sums


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(
    "shape", [(8, 64), (5, 32), (17, 128), (20, 208), (3, 2048), (2, 4096), (260, 16)]
)
def test_softmax(dtype: Any, shape: tuple[int, int]) -> None:
    x = _normal(shape, dtype)
    out, largest, sums = _softmax(x)
    true = x.astype(np.float64)
    top = true.max(axis=1, keepdims=True)
    weights = np.exp(true - top)
    total = weights.sum(axis=1, keepdims=True)
    seen = weights / total > 1e-3
    assert np.max(np.abs(out / (weights / total) - 1)[seen]) <= BOUND[dtype]
    assert np.array_equal(largest, np.broadcast_to(top, largest.shape))
    assert np.max(np.abs(sums / total - 1)) <= BOUND[dtype]
    assert len(np.unique(sums[0])) == 1


def test_softmax_of_float16_with_wide_sums() -> None:
    x = _normal((9, 64), np.float16)
    _, largest, sums = _softmax(x, wide=np.float32)
    true = x.astype(np.float64)
    total = np.exp(true - true.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True)
    assert np.array_equal(largest[:, 0], true.max(axis=1))
    assert np.max(np.abs(sums / total - 1)) <= 1e-6


@given(rows=st.integers(1, 40), blocks=st.integers(1, 30), temporary=st.sampled_from([None, 9000, 30000]),
       split=st.sampled_from([0, 3, 8]))  # fmt: skip
@settings(max_examples=25, deadline=None)
def test_softmax_in_any_rounds(rows: int, blocks: int, temporary: int | None, split: int) -> None:
    x = _normal((rows, 8 * blocks), np.float32, rows)
    out, _, _ = _softmax(x, temporary=temporary, split=split)
    true = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    assert np.allclose(out, true / true.sum(axis=1, keepdims=True), rtol=2e-6, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("shape", [(8, 64), (5, 32), (17, 128), (20, 208), (3, 2048), (260, 16)])
def test_rmsnorm(dtype: Any, shape: tuple[int, int]) -> None:
    x, gamma = _normal(shape, dtype), _normal(shape[1], dtype, 2)
    out = np.zeros_like(x)
    tiling = adv.RmsNormTiling(b_length=1, s_length=shape[0], h_length=shape[1])
    run(lambda dst, src, factors: adv.rmsnorm(dst, src, factors, 1e-5, tiling), [out], [x, gamma])
    true = x.astype(np.float64)
    expected = true / np.sqrt((true**2).mean(axis=1, keepdims=True) + 1e-5) * gamma
    seen = np.abs(expected) > 1e-3
    assert np.max(np.abs(out / expected - 1)[seen]) <= BOUND[dtype]


def test_rmsnorm_of_padded_rows() -> None:
    """The mean is over the elements that were there before padding."""
    x, gamma = _normal((6, 64), np.float32), np.ones(64, np.float32)
    x[:, 50:] = 0
    out = np.zeros_like(x)
    tiling = adv.RmsNormTiling(
        b_length=2, s_length=3, h_length=64, original_h_length=50, main_bs_length=2
    )
    run(lambda dst, src, factors: adv.rmsnorm(dst, src, factors, 0, tiling), [out], [x, gamma])
    true = x[:, :50].astype(np.float64)
    assert np.allclose(
        out[:, :50], true / np.sqrt((true**2).mean(axis=1, keepdims=True)), rtol=1e-6
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("temporary", [None, 600])
def test_quant(dtype: Any, temporary: int | None) -> None:
    x = np.concatenate([_normal(480, dtype), np.array([300, -300, 0.25, 0.75] * 8, dtype)])
    out = np.zeros(512, np.int8)
    run(
        lambda dst, src, **named: adv.quant(dst, src, 0.5, 3.0, 512, **named), [out], [x], temporary
    )
    sums = (x * np.array(0.5, dtype) + np.array(3.0, dtype)).astype(np.float16)
    assert np.array_equal(out, np.clip(np.rint(sums.astype(np.float64)), -128, 127))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_sort_taken_apart(dtype: Any) -> None:
    """concat, sort and extract as the vendor's page on sorting puts them together."""
    scores = np.random.default_rng(7).permutation(128).astype(dtype)
    indices = np.arange(128, dtype=np.uint32)
    values, places = np.zeros_like(scores), np.zeros_like(indices)
    records = 128 * 8 // np.dtype(dtype).itemsize

    def call(top: Any, where: Any, src: Any, index: Any, room: Any, merged: Any) -> None:
        kind = src.dtype
        joined = asc.LocalTensor(kind, asc.TPosition.VECCALC, 0, 0)
        adv.concat(joined, src, room, 8)
        asc.sort(merged, joined, index, room, 4, True)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        adv.extract(top, where, merged, 4)

    rooms = [np.zeros(records, dtype), np.zeros(records, dtype)]
    run(call, [values, places], [scores, indices, *rooms])
    order = np.argsort(-scores.astype(np.float64), kind="stable")
    assert np.array_equal(values, scores[order])
    assert np.array_equal(places, order)


def test_layernorm_of_the_same_steps() -> None:
    """Rows less their mean over their deviation, from basic calls: one row a repeat, its values spread by brcb."""
    x = _normal((16, 64), np.float32)
    out = np.zeros_like(x)

    def call(dst: Any, src: Any, values: Any, blocks: Any, square: Any) -> None:
        barrier = asc.pipe_barrier
        v = asc.PipeID.PIPE_V
        by_row = asc.BinaryRepeatParams(1, 1, 0, 8, 8, 1)
        for part in ("mean", "deviation"):
            asc.whole_reduce_sum(values, src if part == "mean" else square, 64, 16, 1, 1, 8)
            barrier(v)
            asc.muls(values, values, 1 / 64, 16)
            barrier(v)
            if part == "deviation":
                asc.adds(values, values, 1e-5, 16)
                barrier(v)
                asc.sqrt(values, values, 16)
                barrier(v)
            asc.brcb(blocks, values, 2, asc.BrcbRepeatParams(1, 8))
            barrier(v)
            if part == "mean":
                asc.sub(dst, src, blocks, 64, 16, by_row)
                barrier(v)
                asc.mul(square, dst, dst, 1024)
            else:
                asc.div(dst, dst, blocks, 64, 16, by_row)
            barrier(v)

    run(
        call,
        [out],
        [x, np.zeros(16, np.float32), np.zeros(128, np.float32), np.zeros(1024, np.float32)],
    )
    true = x.astype(np.float64)
    centred = true - true.mean(axis=1, keepdims=True)
    assert np.allclose(
        out,
        centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5),
        rtol=1e-5,
        atol=1e-6,
    )


def test_gelu_of_erf() -> None:
    x = np.linspace(-6, 6, 512).astype(np.float32)
    out = np.zeros_like(x)

    def call(dst: Any, src: Any, half: Any) -> None:
        v = asc.PipeID.PIPE_V
        asc.muls(half, src, math.sqrt(0.5), 512)
        asc.pipe_barrier(v)
        adv.erf(dst, half, 512)
        asc.adds(dst, dst, 1.0, 512)
        asc.pipe_barrier(v)
        asc.muls(half, src, 0.5, 512)
        asc.pipe_barrier(v)
        asc.mul(dst, dst, half, 512)

    run(call, [out], [x, np.zeros_like(x)])
    expected = [value / 2 * (1 + math.erf(value / math.sqrt(2))) for value in x.astype(np.float64)]
    assert np.allclose(out, expected, rtol=1e-5, atol=1e-6)


def test_what_does_not_fit_is_told() -> None:
    x = _normal((4, 60), np.float32)
    with pytest.raises(
        KernelError, match="softmax: src_k of the tiling is 60; rows of float32 are a multiple of 8"
    ):
        _softmax(x)
    with pytest.raises(
        KernelError, match=r"softmax: temp_buffer \S+ has 512 bytes, \d+ are needed at least"
    ):
        _softmax(_normal((4, 64), np.float32), temporary=512)
