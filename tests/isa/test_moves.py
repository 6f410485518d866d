"""data_copy and data_copy_pad against loops over bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isa_kit import gm, stream, ub

from isa.access import Access
from isa.faults import IsaFault
from isa.instruction import Call
from isa.move import data_copy, data_copy_pad
from isa.params import (
    DataCopyExtParams,
    DataCopyPadExtParams,
    DataCopyPadParams,
    DataCopyParams,
)
from isa.stream import EagerStream
from isa.sync import set_pad_value
from isa.tensor import GlobalAddress, GlobalTensor, GmBuffer, LocalTensor
from isa.types import DTYPES, CoreKind, DType, Pipe, Space, TPosition, float16, float32, int8, int64

GM_BYTES = 4096
UB_BYTES = 8192
TYPES = [dtype for dtype in DTYPES if dtype.name != "bool"]
fast = settings(deadline=None, max_examples=150, derandomize=True)


def gm_bytes(seed: int = 1, size: int = GM_BYTES) -> Any:
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)


def window(data: Any, dtype: DType, offset: int = 0, length: int | None = None) -> GlobalTensor:
    """Return a window on bytes: `offset` and `length` in bytes."""
    tensor = GlobalTensor()
    address = GlobalAddress(GmBuffer("x", data), dtype, offset)
    tensor.set_global_buffer(address)
    if length is not None:
        tensor.length = length
    return tensor


def rows(base: int, count: int, length: int, pitch: int) -> list[int]:
    """Return the byte addresses of `count` runs of `length` bytes, in order."""
    return [base + row * pitch + byte for row in range(count) for byte in range(length)]


def bytes_of(accesses: tuple[Access, ...]) -> set[int]:
    return {
        byte for access in accesses for low, high in access.ranges() for byte in range(low, high)
    }


def last(eager: EagerStream) -> Call:
    return eager.issued[-1]


# ---- the count form -----------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["in", "out", "inside"])
@fast
@given(st.sampled_from(TYPES), st.integers(0, 300), st.integers(0, 30), st.integers(0, 8))
def test_count_moves_whole_blocks(
    direction: str, dtype: DType, count: int, offset: int, block: int
) -> None:
    data = gm_bytes()
    with stream(2) as eager:
        memory = eager.memories[Space.UB]
        local = LocalTensor(dtype, TPosition.VECIN, 32 * block)
        local.set_buffer_len(2880)
        other: Any = window(data, dtype, offset * dtype.size)
        gm_base: int | None = offset * dtype.size
        if direction == "inside":
            other = LocalTensor(dtype, TPosition.VECOUT, 4096)
            other.set_buffer_len(2880)
            gm_base = None
        before_ub, before_gm = memory.copy(), data.copy()
        dst, src = (other, local) if direction == "out" else (local, other)
        data_copy(dst, src, count)
        moved = count * dtype.size // 32 * 32
        expected_ub, expected_gm = before_ub.copy(), before_gm.copy()
        local_bytes = rows(32 * block, 1, moved, moved)
        other_bytes = rows(4096 if gm_base is None else gm_base, 1, moved, moved)
        for here, there in zip(local_bytes, other_bytes, strict=True):
            if direction == "in":
                expected_ub[here] = before_gm[there]
            elif direction == "out":
                expected_gm[there] = before_ub[here]
            else:
                expected_ub[here] = before_ub[there]
        assert np.array_equal(memory, expected_ub)
        assert np.array_equal(data, expected_gm)
        call = last(eager)
        dropped = count * dtype.size - moved
        assert (call.lint is not None) == (dropped > 0)
        if call.lint is not None:
            kind, code, message = call.lint
            assert (kind, code) == ("LAYOUT", "copy-tail-dropped")
            assert f"last {dropped} bytes are not copied" in message
        pipe = {"in": Pipe.MTE2, "out": Pipe.MTE3, "inside": Pipe.V}[direction]
        assert call.pipe is pipe
        assert call.bytes == (0 if pipe is Pipe.V else moved)
        assert call.work == (-(-moved // 256) if pipe is Pipe.V else 0)
        assert bytes_of(call.writes) == set(local_bytes if direction != "out" else other_bytes)
        assert bytes_of(call.reads) == set(other_bytes if direction != "out" else local_bytes)


# ---- bursts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["in", "out", "inside"])
@fast
@given(
    st.sampled_from(TYPES),
    st.integers(0, 6),
    st.integers(0, 5),
    st.integers(0, 4),
    st.integers(0, 4),
    st.integers(0, 20),
)
def test_bursts_with_gaps(
    direction: str, dtype: DType, count: int, blocks: int, src_gap: int, dst_gap: int, offset: int
) -> None:
    data = gm_bytes()
    with stream(3) as eager:
        memory = eager.memories[Space.UB]
        local = ub(dtype, 64, 4000 // dtype.size)
        other: Any = window(data, dtype, offset * dtype.size)
        base = offset * dtype.size
        if direction == "inside":
            other, base = ub(dtype, 4096, 4000 // dtype.size), 4096
        expected_ub, expected_gm = memory.copy(), data.copy()
        dst, src = (other, local) if direction == "out" else (local, other)
        dst_base, src_base = (base, 64) if direction == "out" else (64, base)
        data_copy(dst, src, DataCopyParams(count, blocks, src_gap, dst_gap))
        length = 32 * blocks
        to = rows(dst_base, count, length, length + 32 * dst_gap)
        source = rows(src_base, count, length, length + 32 * src_gap)
        for there, here in zip(to, source, strict=True):
            if direction == "in":
                expected_ub[there] = data[here]
            elif direction == "out":
                expected_gm[there] = memory[here]
            else:
                expected_ub[there] = memory[here]
        assert np.array_equal(memory, expected_ub)
        assert np.array_equal(data, expected_gm)
        call = last(eager)
        assert bytes_of(call.writes) == set(to)
        assert bytes_of(call.reads) == set(source)
        assert call.bytes == (0 if direction == "inside" else count * length)
        assert call.lint is None


@fast
@given(
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(-9, 9),
)
def test_copies_inside_ub_may_not_read_what_they_wrote(
    count: int, blocks: int, src_gap: int, dst_gap: int, distance: int
) -> None:
    length = 32 * blocks
    to = rows(1024 + 32 * distance, count, length, length + 32 * dst_gap)[::32]
    source = rows(1024, count, length, length + 32 * src_gap)[::32]
    clash = any(read in to[:order] for order, read in enumerate(source))
    with stream(4) as eager:
        memory = eager.memories[Space.UB]
        expected = memory.copy()
        for there, here in zip(to, source, strict=True):
            expected[there : there + 32] = expected[here : here + 32].copy()
        dst, src = ub(float16, 1024 + 32 * distance, 512), ub(float16, 1024, 512)
        params = DataCopyParams(count, blocks, src_gap, dst_gap)
        if clash:
            with pytest.raises(IsaFault, match=r"^data_copy: dst .* overlaps src .* written"):
                data_copy(dst, src, params)
        else:
            data_copy(dst, src, params)
            assert np.array_equal(memory, expected)


def test_a_copy_bound_before_moves_along_in_gm() -> None:
    data = np.arange(2048, dtype=np.float16)
    with stream() as eager:
        x = gm(data)
        local = ub(float16, 0, 64)
        for first in (0, 100, 64, 0, 1984):
            data_copy(local, x[first:], 64)
            got = eager.memories[Space.UB][:128].view(np.float16)
            assert np.array_equal(got, data[first : first + 64])
            assert bytes_of(last(eager).reads) == set(range(2 * first, 2 * first + 128))
        assert last(eager).template is eager.issued[0].template
        with pytest.raises(IsaFault, match=r"GM allocation of 4096 bytes"):
            data_copy(local, x[1985:], 64)
        limited = x[0:63]
        with pytest.raises(IsaFault, match=r"data_copy: src x touches 128 bytes .* has 126"):
            data_copy(local, limited, 64)
        data_copy(x[32:], local, 64)
        assert np.array_equal(data[32:96], np.arange(1984, 2048))


def test_a_copy_bound_before_is_checked_at_its_new_place() -> None:
    data = np.arange(64, dtype=np.float16)
    buffer = GmBuffer("x", data.view(np.uint8))
    local = ub(float16, 0, 16)
    with stream():
        window = GlobalTensor()
        window.set_global_buffer(GlobalAddress(buffer, float16), 1000)  # says more than there is
        data_copy(local, window, 16)
        data_copy(local, window[48:], 16)
        with pytest.raises(IsaFault, match=r"GM allocation of 128 bytes: 32 bytes outside"):
            data_copy(local, window[64:], 16)
        window.set_global_buffer(GlobalAddress(buffer, float16, 3))
        with pytest.raises(IsaFault, match=r"starts at GM byte 3"):
            data_copy(local, window, 16)
        window.set_global_buffer(GlobalAddress(buffer, float16) + -1)
        with pytest.raises(IsaFault, match=r"bytes -2 to 30"):
            data_copy(local, window, 16)


def test_l1_on_a_cube_core() -> None:
    data = np.arange(256, dtype=np.float16)
    eager = EagerStream({Space.L1: 1024}, CoreKind.AIC)
    with eager:
        x = gm(data)
        a1 = LocalTensor(float16, TPosition.A1, 64, 128)
        data_copy(a1, x[128:], 128)
        assert eager.issued[-1].pipe is Pipe.MTE2
        data_copy(x, a1, 128)
        assert eager.issued[-1].pipe is Pipe.MTE3
        assert np.array_equal(data[:128], np.arange(128, 256))
        data_copy(ub(float16), x, 16)  # a cube core has no UB: nothing happens
        assert len(eager.issued) == 2
    with stream(), pytest.raises(IsaFault, match=r"in L1, which only a cube core has"):
        data_copy(LocalTensor(float16, TPosition.A1, 0, 128), gm(data), 128)


# ---- padding ------------------------------------------------------------------------------------


@st.composite
def paddings(draw: st.DrawFn, dtype: DType) -> tuple[Any, Any]:
    """Return pad_params and the filler: a value's bytes, "first" or None (undefined)."""
    kind = draw(st.sampled_from(["none", "plain", "sided", "value", "old", "register"]))
    limit = 32 // dtype.size
    left, right = draw(st.integers(0, limit)), draw(st.integers(0, limit))
    if kind == "none":
        return None, "first"
    if kind == "plain":
        return DataCopyPadExtParams(dtype, False), "first"
    if kind in ("sided", "register") and left + right:
        return DataCopyPadExtParams(dtype, False, left, right), None
    value = 0 if dtype.size == 8 else draw(st.integers(0, 100))
    filler = np.array([value], np.float64).astype(dtype.numpy).tobytes()
    if kind == "old":
        bits = 0 if dtype.size == 8 else draw(st.integers(0, (1 << (8 * dtype.size)) - 1))
        return DataCopyPadParams(True, left, right, bits), bits.to_bytes(dtype.size, "little")
    return DataCopyPadExtParams(dtype, True, left, right, value), filler


@pytest.mark.parametrize("dtype", [int8, float16, float32, int64], ids=str)
def test_padding_on_the_way_in(dtype: DType) -> None:
    @fast
    @given(
        paddings(dtype),
        st.integers(0, 5),
        st.integers(0, 40),
        st.integers(0, 70),
        st.integers(0, 3),
        st.integers(0, 20),
        st.booleans(),
    )
    def property_of(
        padding: Any, count: int, elements: int, gap: int, dst_gap: int, offset: int, wide: bool
    ) -> None:
        pad, filler = padding
        size = dtype.size
        length = elements * size
        data = gm_bytes()
        structure = DataCopyExtParams if wide else DataCopyParams
        with stream(5) as eager:
            memory = eager.memories[Space.UB]
            expected = memory.copy()
            src = window(data, dtype, offset * size)
            data_copy_pad(
                ub(dtype, 96, 4096 // size), src, structure(count, length, gap, dst_gap), pad
            )
            left = pad.left_padding if pad is not None else 0
            right = pad.right_padding if pad is not None else 0
            padded = -(-(left * size + length + right * size) // 32) * 32 if length else 0
            undefined: set[int] = set()
            for row in range(count if length else 0):
                at = 96 + row * (padded + 32 * dst_gap)
                start = offset * size + row * (length + gap)
                body = data[start : start + length]
                fill = body[:size].tobytes() if filler == "first" else filler
                if fill is None:
                    fill = b"\xff" * size
                line = np.frombuffer(fill * (padded // size), np.uint8).copy()
                line[left * size : left * size + length] = body
                expected[at : at + padded] = line
                if filler is None or filler == "first":
                    undefined |= set(range(at, at + left * size))
                    undefined |= set(range(at + left * size + length, at + padded))
            assert np.array_equal(memory, expected)
            call = last(eager)
            assert bytes_of(call.undefined) == undefined
            assert call.bytes == count * length
            assert call.pipe is Pipe.MTE2

    property_of()


@fast
@given(
    st.sampled_from([int8, float16, float32]),
    st.integers(0, 5),
    st.integers(0, 40),
    st.integers(0, 3),
    st.integers(0, 70),
    st.integers(0, 20),
)
def test_exactly_the_bytes_on_the_way_out(
    dtype: DType, count: int, elements: int, gap: int, dst_gap: int, offset: int
) -> None:
    length = elements * dtype.size
    data = gm_bytes()
    with stream(6) as eager:
        memory = eager.memories[Space.UB]
        expected = data.copy()
        dst = window(data, dtype, offset * dtype.size)
        params = DataCopyExtParams(count, length, gap, dst_gap)
        data_copy_pad(dst, ub(dtype, 64, 4096 // dtype.size), params)
        pitch = -(-length // 32) * 32 + 32 * gap
        written = set()
        for row in range(count if length else 0):
            at = offset * dtype.size + row * (length + dst_gap)
            expected[at : at + length] = memory[64 + row * pitch : 64 + row * pitch + length]
            written |= set(range(at, at + length))
        assert np.array_equal(data, expected)
        assert bytes_of(last(eager).writes) == written
        assert last(eager).pipe is Pipe.MTE3


def test_the_pad_value_register() -> None:
    # Without is_pad, left and right padding take what set_pad_value gave, if it gave anything.
    data = np.arange(1, 9, dtype=np.float16)
    pad = DataCopyPadExtParams(float16, False, 2, 1)
    with stream() as eager:
        dst = ub(float16, 0, 16)
        data_copy_pad(dst, gm(data), DataCopyExtParams(1, 16), pad)
        assert bytes_of(last(eager).undefined) == {0, 1, 2, 3} | set(range(20, 32))
        set_pad_value(7)
        data_copy_pad(dst, gm(data), DataCopyExtParams(1, 16), pad)
        got = eager.memories[Space.UB][:32].view(np.float16)
        assert got.tolist() == [7, 7, *range(1, 9), 7, 7, 7, 7, 7, 7]
        assert last(eager).undefined == ()
        eager.registers.reset()  # as a TPipe's construction does
        data_copy_pad(dst, gm(data), DataCopyExtParams(1, 16), pad)
        assert last(eager).undefined != ()


def test_gaps_of_the_source_need_no_alignment() -> None:
    data = gm_bytes(7)
    with stream() as eager:
        data_copy_pad(ub(float16, 0, 64), window(data, float16), DataCopyExtParams(3, 4, 5, 0))
        memory = eager.memories[Space.UB]
        for row in range(3):
            assert np.array_equal(memory[32 * row : 32 * row + 4], data[9 * row : 9 * row + 4])
