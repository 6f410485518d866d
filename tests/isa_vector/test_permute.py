"""transpose and trans_data_to_5hd, one element at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ascend_sim import asc
from isa.faults import IsaFault
from isa.types import DType
from tests.isa_vector.kit import DST, SRC, SRC1, TMP, UB_BYTES, Bench, local, seeds, whole

HALVES = [asc.int16, asc.uint16, asc.float16, asc.bfloat16]
TYPES = [
    asc.int8, asc.uint8, asc.int16, asc.uint16, asc.float16, asc.int32, asc.uint32, asc.float32,
]  # fmt: skip
Kind = asc.TransposeType


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize("start", [SRC, DST])
def test_square(dtype: DType, extended: bool, start: int) -> None:
    """In place as well."""
    bench = Bench(1, dtype)
    bench.freeze()
    more = (whole(TMP, asc.uint8), asc.TransposeParamsExt()) if extended else ()
    bench.run(asc.transpose, local(start, 256, dtype), local(SRC, 256, dtype), *more)
    for i in range(16):
        for j in range(16):
            value = bench.read_first(SRC + (16 * i + j) * 2, dtype)
            bench.write_bits(start + (16 * j + i) * 2, value, dtype)
    bench.check()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("n", "c", "h", "w"), [(1, 3, 4, 8), (2, 5, 8, 4), (3, 16, 2, 16)])
@pytest.mark.parametrize("last", [True, False])
def test_images(dtype: DType, n: int, c: int, h: int, w: int, last: bool) -> None:
    check_images(dtype, n, c, h, w, last)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    st.sampled_from(TYPES),
    st.integers(1, 4),
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(1, 40),
    st.booleans(),
)
def test_images_of_any_size(dtype: DType, n: int, c: int, h: int, w: int, last: bool) -> None:
    assume(h * w * dtype.size % 32 == 0 and n * c * h * w * dtype.size <= DST - SRC1)
    check_images(dtype, n, c, h, w, last)


def check_images(dtype: DType, n: int, c: int, h: int, w: int, last: bool) -> None:
    bench = Bench(2, dtype, size=2 * UB_BYTES)
    kind = Kind.TRANSPOSE_NCHW2NHWC if last else Kind.TRANSPOSE_NHWC2NCHW
    need = (c + 2) * 1024 if dtype.size == 1 else (2 * c + 1) * 256 * dtype.size
    tmp = local(UB_BYTES, need, asc.uint8)
    bench.run(
        asc.transpose,
        local(DST, n * c * h * w, dtype),
        whole(SRC, dtype),
        tmp,
        asc.TransposeParamsExt(n, c, h, w, kind),
    )
    size = dtype.size
    for image in range(n):
        for channel in range(c):
            for pixel in range(h * w):
                first = (image * c + channel) * h * w + pixel
                second = (image * h * w + pixel) * c + channel
                source, target = (first, second) if last else (second, first)
                value = bench.read(SRC + source * size, dtype)
                bench.write_bits(DST + target * size, value, dtype)
    np.testing.assert_array_equal(bench.ub[: tmp.addr], bench.want[: tmp.addr])
    assert (bench.ub[tmp.addr : tmp.addr + need] == 0xFF).all()


def listed(starts: list[int], dtype: DType) -> list[Any]:
    return [local(start, 1024 // dtype.size, dtype) for start in starts]


@settings(max_examples=50, deadline=None)
@given(
    seeds(),
    st.sampled_from(TYPES),
    st.integers(0, 4),
    st.permutations(range(16)),
    st.permutations(range(16)),
    st.booleans(),
    st.booleans(),
)
def test_5hd(
    seed: int, dtype: DType, repeat: int, to: Any, source: Any, high_dst: bool, high_src: bool
) -> None:
    bench = Bench(seed, dtype)
    high_dst, high_src = high_dst and dtype.size == 1, high_src and dtype.size == 1
    dst = [DST + 1024 * k for k in to]
    src = [SRC + 1024 * k for k in source]
    step = (3, 2) if repeat != 1 else (0, 0)
    params = asc.TransDataTo5HDParams(high_dst, high_src, repeat, *step)
    bench.run(asc.trans_data_to_5hd, listed(dst, dtype), listed(src, dtype), params)
    size = dtype.size
    for r in range(repeat):
        at, out = 32 * step[1] * r + 16 * high_src, 32 * step[0] * r + 16 * high_dst
        for i in range(16):
            for j in range(8 if size == 4 else 16):
                value = bench.read(src[i] + at + j * size, dtype)
                block, element = (2 * j + i // 8, i % 8) if size == 4 else (j, i)
                bench.write_bits(dst[block] + out + element * size, value, dtype)
    bench.check()


def test_5hd_in_place() -> None:
    bench = Bench(3, asc.float16)
    bench.freeze()
    blocks = listed([SRC + 32 * k for k in range(16)], asc.float16)
    bench.run(asc.trans_data_to_5hd, blocks, blocks, asc.TransDataTo5HDParams())
    got = bench.ub[:512].view(np.uint16).reshape(16, 16)
    np.testing.assert_array_equal(got, bench.before[:512].view(np.uint16).reshape(16, 16).T)


A, D = local(SRC, 1024, asc.float16), local(DST, 1024, asc.float16)
W = local(TMP, 8192, asc.uint8)
BLOCKS = listed([SRC + 32 * k for k in range(16)], asc.float16)
OTHERS = listed([DST + 32 * k for k in range(16)], asc.float16)
Ext, Par = asc.TransposeParamsExt, asc.TransDataTo5HDParams


@pytest.mark.parametrize(
    ("call", "code", "part"),
    [
        (lambda: asc.transpose(local(0, 256), local(4096, 256)), "dtype-not-supported", "takes int16, uint16, float16"),
        (lambda: asc.transpose(A[16:], A), "operand-overlap", "use separate bytes"),
        (lambda: asc.transpose(D, A, W), "form", "shared_tmp_buffer and params"),
        (lambda: asc.transpose(D, A, W, Ext(1, 1, 1, 1, 3)), "transpose-type", "not available on the 910B"),
        (lambda: asc.transpose(D, A, W, Ext(1, 1, 1, 1, 99)), "not-a-mode", "must be a TransposeType"),
        (lambda: asc.transpose(D, A, W, Ext(1, 2, 3, 5, 11)), "image-size", "Pad the image"),
        (lambda: asc.transpose(D, A, W, Ext(1, 16, 4, 4, 11)), "work-buffer", "needs 16896"),
        (lambda: asc.transpose(D, A, W, Ext(1, 0, 4, 4, 11)), "c-size-limit", "c_size is 0"),
        (lambda: asc.transpose(A, A, W, Ext(1, 4, 4, 4, 12)), "operand-overlap", "use separate bytes"),
        (lambda: asc.trans_data_to_5hd(BLOCKS[:3], OTHERS, Par()), "block-list", "list of 16 LocalTensors, got 3"),
        (lambda: asc.trans_data_to_5hd([0] * 16, OTHERS, Par()), "block-list", "holds addresses"),
        (lambda: asc.trans_data_to_5hd(A, A, Par()), "block-list", "two lists of 16"),
        (lambda: asc.trans_data_to_5hd(OTHERS, BLOCKS, Par(dst_rep_stride=8)), "single-repeat-stride", "set it to 0"),
        (lambda: asc.trans_data_to_5hd(OTHERS, BLOCKS, Par(True)), "block-list", "8-bit elements"),
        (lambda: asc.trans_data_to_5hd(OTHERS, BLOCKS, Par(repeat_times=2)), "block-list", "dst_rep_stride 0"),
        (lambda: asc.trans_data_to_5hd(OTHERS, BLOCKS, Par(False, False, 80, 1)), "tensor-out-of-bounds", "[0]"),
        (lambda: asc.trans_data_to_5hd(BLOCKS, BLOCKS, Par(False, False, 2, 16, 1)), "operand-overlap", "earlier one"),
        (lambda: asc.trans_data_to_5hd(OTHERS, BLOCKS, 3), "wrong-params", "must be TransDataTo5HDParams"),
    ],
)  # fmt: skip
def test_messages(call: Any, code: str, part: str) -> None:
    with Bench(0).stream, pytest.raises(IsaFault) as caught:
        call()
    assert caught.value.code == code
    assert part in caught.value.message
