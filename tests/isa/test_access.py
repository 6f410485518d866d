"""Access patterns, byte ranges and views against loops over elements and sets of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isa_kit import gm, stream, ub

from isa.access import (
    GM_PLACE,
    Access,
    check_bounds,
    contiguous,
    intersect_ranges,
    merge_ranges,
    ranges_overlap,
    repeats,
)
from isa.faults import IsaFault
from isa.tensor import GlobalAddress, GlobalTensor, GmBuffer, LocalTensor
from isa.types import DType, Space, TPosition, float16, float32, int8, int64

thorough = settings(deadline=None, max_examples=400, derandomize=True)
SIZES = [int8, float16, float32, int64]
MEMORY = 4096


def bytes_of(access: Access) -> set[int]:
    """Return every byte that takes part, element by element."""
    found = set()
    lanes = access.lanes
    if lanes is not None:
        lanes = np.broadcast_to(lanes, access.shape)
    for index in np.ndindex(*access.shape):
        if lanes is not None and not lanes[index]:
            continue
        at = access.base + sum(i * stride for i, stride in zip(index, access.strides, strict=True))
        found |= set(range(at, at + access.dtype.size))
    return found


def as_ranges(found: set[int]) -> list[tuple[int, int]]:
    """Return a set of bytes as sorted ranges, none next to another."""
    ranges: list[tuple[int, int]] = []
    for byte in sorted(found):
        if ranges and ranges[-1][1] == byte:
            ranges[-1] = (ranges[-1][0], byte + 1)
        else:
            ranges.append((byte, byte + 1))
    return ranges


@st.composite
def accesses(draw: st.DrawFn) -> Access:
    dtype = draw(st.sampled_from(SIZES))
    dimensions = draw(st.integers(1, 3))
    shape = tuple(draw(st.integers(1, 5)) for _ in range(dimensions))
    strides = tuple(draw(st.integers(0, 12)) * dtype.size for _ in range(dimensions - 1))
    strides += (draw(st.sampled_from([dtype.size, dtype.size, 0, 2 * dtype.size])),)
    lanes = None
    if draw(st.booleans()):
        axes = draw(st.integers(1, dimensions))
        inner = shape[-axes:]
        count = int(np.prod(inner))
        chosen = draw(st.lists(st.booleans(), min_size=count, max_size=count).filter(any))
        lanes = np.array(chosen).reshape(inner)
    base = draw(st.integers(0, 40)) * dtype.size
    tensor = draw(st.sampled_from(PLACES))
    return Access(tensor, base, shape, strides, dtype, lanes)


def _windows() -> list[Any]:
    buffers = [GmBuffer(name, np.zeros(MEMORY, np.uint8), i) for i, name in enumerate("xy")]
    windows: list[Any] = [ub(float16), LocalTensor(float16, TPosition.A1, 0, 64)]
    for buffer in buffers:
        window = GlobalTensor()
        window.set_global_buffer(GlobalAddress(buffer, float16))
        windows.append(window)
    return windows


PLACES = _windows()


@thorough
@given(accesses())
def test_ranges_are_the_bytes_of_the_elements(access: Access) -> None:
    found = bytes_of(access)
    assert [tuple(row) for row in access.ranges().tolist()] == as_ranges(found)
    assert (access.low, access.high) == (min(found), max(found) + 1)
    if access.contiguous:
        assert found == set(range(access.low, access.high))
    assert access.elements == np.prod(access.shape)


@thorough
@given(accesses())
def test_without_a_mask_contiguous_is_exact(access: Access) -> None:
    if access.lanes is None:
        found = bytes_of(access)
        assert access.contiguous == (found == set(range(access.low, access.high)))


@thorough
@given(accesses(), st.integers(0, 60))
def test_moved_repeats_the_pattern(access: Access, distance: int) -> None:
    other = access.moved(access.base + distance * access.dtype.size)
    shift = other.base - access.base
    assert bytes_of(other) == {byte + shift for byte in bytes_of(access)}
    assert other.ranges().tolist() == (access.ranges() + shift).tolist()
    again = other.moved(access.base)
    assert again.ranges().tolist() == access.ranges().tolist()
    for name in ("low", "high", "contiguous", "layered", "shape", "strides", "place", "dtype"):
        assert getattr(again, name) == getattr(access, name)
    assert again.origin is access


def _place(access: Access) -> Any:
    return access.space, id(access.buffer)


@thorough
@given(accesses(), accesses())
def test_overlaps_and_covers(one: Access, other: Access) -> None:
    same_memory = _place(one) == _place(other)
    mine, theirs = bytes_of(one), bytes_of(other)
    assert one.overlaps(other) == (same_memory and bool(mine & theirs))
    assert other.overlaps(one) == one.overlaps(other)
    if one.covers(other):  # it may not know that it does
        assert same_memory
        assert theirs <= mine
    if same_memory and one.contiguous:
        assert one.covers(other) == (theirs <= mine)
    assert one.covers(one)


@thorough
@given(accesses())
def test_views_are_the_elements(access: Access) -> None:
    data = np.random.default_rng(1).integers(0, 256, MEMORY, np.uint8)
    view = access.view(data)
    every = access.byte_view(data)
    assert every.shape == (*access.shape, access.dtype.size)
    for index in np.ndindex(*access.shape):
        at = access.base + sum(i * stride for i, stride in zip(index, access.strides, strict=True))
        element = data[at : at + access.dtype.size]
        assert view[index].tobytes() == element.tobytes()
        assert np.array_equal(every[index], element)


@thorough
@given(accesses())
def test_rows_share_no_byte_where_an_access_is_not_layered(access: Access) -> None:
    if access.layered or access.lanes is not None or len(access.shape) == 1:
        return
    seen: set[int] = set()
    for row in range(access.shape[0]):
        base = access.base + row * access.strides[0]
        one = Access(PLACES[0], base, (1, *access.shape[1:]), access.strides, access.dtype)
        assert not bytes_of(one) & seen
        seen |= bytes_of(one)


def test_places_are_numbered_apart() -> None:
    accessed = [contiguous(tensor, 4) for tensor in PLACES]
    assert [access.place for access in accessed] == [
        int(Space.UB),
        int(Space.L1),
        GM_PLACE,
        GM_PLACE + 1,
    ]
    assert "UB[0:8]" in repr(accessed[0])


@pytest.mark.parametrize("dtype", SIZES, ids=str)
def test_repeats_leave_whole_idle_blocks_out(dtype: DType) -> None:
    per_block = 32 // dtype.size
    lanes = np.zeros(8 * per_block, bool)
    lanes[per_block + 1] = True  # the second element of the second block
    access = repeats(ub(dtype, 64), 3, 2, 5, lanes, 8)
    assert access.shape == (3, 2, per_block)
    expected = set()
    for repeat in range(3):
        at = 64 + 32 * (repeat * 5 + 2) + dtype.size
        expected |= set(range(at, at + dtype.size))
    assert bytes_of(access) == expected
    full = repeats(ub(dtype), 1, 1, 8, np.ones(8 * per_block, bool), 8)
    assert full.lanes is None


# ---- lists of ranges ----------------------------------------------------------------------------


@st.composite
def range_lists(draw: st.DrawFn, *, tidy: bool) -> Any:
    pairs = draw(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), min_size=0, max_size=9))
    found = np.array([(low, low + length) for low, length in pairs], np.int64).reshape(-1, 2)
    if not tidy:
        return found
    return np.array(as_ranges(_bytes(found)), np.int64).reshape(-1, 2)


def _bytes(ranges: Any) -> set[int]:
    return {byte for low, high in ranges.tolist() for byte in range(low, high)}


@thorough
@given(range_lists(tidy=False))
def test_merge_ranges(ranges: Any) -> None:
    assert [tuple(row) for row in merge_ranges(ranges).tolist()] == as_ranges(_bytes(ranges))


@thorough
@given(range_lists(tidy=True), range_lists(tidy=True))
def test_overlap_and_intersection_of_ranges(a: Any, b: Any) -> None:
    shared = _bytes(a) & _bytes(b)
    assert ranges_overlap(a, b) == bool(shared)
    common = intersect_ranges(a, b)
    assert _bytes(common) == shared
    assert len(common) == 0 or np.all(np.diff(common.ravel()) >= 0)


# ---- bounds -------------------------------------------------------------------------------------


@thorough
@given(
    st.sampled_from(SIZES),
    st.integers(0, 12),
    st.integers(0, 60),
    st.integers(1, 70),
    st.booleans(),
)
def test_bounds_of_tensor_memory_and_allocation(
    dtype: DType, start: int, size: int, count: int, local: bool
) -> None:
    capacity = 256
    tensor: Any
    if local:
        tensor = ub(dtype, 32 * start, size)
        first = tensor.addr
    else:
        data = np.zeros(capacity, np.uint8)
        tensor = gm(data, dtype=dtype)[start:]
        tensor.length = size * dtype.size
        first = start * dtype.size
    access = contiguous(tensor, count)
    end = first + count * dtype.size
    with stream(size=capacity):
        expected = None
        if end > capacity:
            expected = "memory-out-of-bounds" if local else "gm-out-of-bounds"
        elif count > size:
            expected = "tensor-out-of-bounds"
        if expected is None:
            check_bounds(access, tensor, "test: src", capacity, "V")
            return
        with pytest.raises(IsaFault) as caught:
            check_bounds(access, tensor, "test: src", capacity, "V")
        fault = caught.value
        assert (fault.kind, fault.code) == ("BOUNDS", expected)
        assert fault.byte_range == (first, end)
        over = end - capacity if end > capacity else (count - size) * dtype.size
        assert str(over) in fault.message


def test_an_address_before_the_allocation() -> None:
    data = np.zeros(64, np.float16)
    buffer = GmBuffer("x", data.view(np.uint8))
    window = GlobalTensor()
    window.set_global_buffer(GlobalAddress(buffer, float16) + -4)
    with pytest.raises(
        IsaFault, match=r"bytes -8 to 24 of a GM allocation of 128 bytes: 8 bytes outside"
    ):
        check_bounds(contiguous(window, 16), window, "data_copy: src", 0, "MTE2")
