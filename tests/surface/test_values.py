"""Structures, arrays, shapes and constants that kernels use in their scalar unit; tensors' smaller methods."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.asc.language.core.struct import Field, Struct, StructField


class Inner(Struct):
    """Two members whose alignment leaves a gap."""

    flag = Field(asc.int8, default=3)
    ratio = Field(asc.float32, default=2.5)


class Tiling(Struct):
    """Members of several sizes, and a structure among them."""

    length = Field(asc.int32)
    inner = StructField(Inner)
    total = Field(asc.int64, default=-1)
    last = Field(asc.uint8, default=7)


class Packed(Struct, pack=1):
    """Without gaps."""

    flag = Field(asc.int8)
    length = Field(asc.int32)


def _inside(function: Callable[[], Any]) -> Any:
    """Call something inside a kernel; return what it returned."""
    found: list[Any] = []

    def kernel() -> None:
        found.append(function())

    sim.launch(kernel)
    return found[0]


# ---- structures -----------------------------------------------------------------------------


def test_a_structure_lies_as_in_c() -> None:
    class CInner(ctypes.Structure):
        _fields_ = [("flag", ctypes.c_int8), ("ratio", ctypes.c_float)]

    class CTiling(ctypes.Structure):
        _fields_ = [
            ("length", ctypes.c_int32), ("inner", CInner), ("total", ctypes.c_int64), ("last", ctypes.c_uint8),
        ]  # fmt: skip

    ours = Tiling(length=5, total=1 << 40)
    theirs = CTiling(5, CInner(3, 2.5), 1 << 40, 7)
    assert ours.pack() == bytes(theirs)
    assert ctypes.string_at(ours.addressof(), len(ours.pack())) == ours.pack()
    assert Packed(flag=1, length=2).pack() == b"\x01\x02\x00\x00\x00"


def test_members() -> None:
    tiling = Tiling(length=5, inner=Inner(flag=1))
    assert (tiling.length, tiling.inner.flag, tiling.inner.ratio, tiling.last) == (5, 1, 2.5, 7)
    tiling.inner.ratio = 0.1
    tiling.length = 6
    assert tiling.inner.ratio == float(np.float32(0.1))
    copy = tiling.create_local()
    copy.length = 9
    assert (tiling.length, copy.length) == (6, 9)
    assert repr(Inner()) == "Inner(flag=3, ratio=2.5)"
    assert Tiling.get_field("length").dtype is asc.int32  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Tiling(), "Tiling: length has no default, give it a value"),
        (lambda: Tiling(length=1, width=2), "Tiling has no member 'width' .members: length, inner, total, last."),
        (lambda: Tiling(length=1 << 31), "does not fit int32"),
        (lambda: Tiling(length="1"), "Tiling.length is a number .int32., got '1'"),
        (lambda: Tiling(length=1, inner=2), "Tiling.inner is a Inner, got 2"),
        (lambda: Tiling.get_field("width"), "Tiling has no member 'width'"),
        (lambda: type("Empty", (Struct,), {}), "structure Empty has no Field"),
    ],
)  # fmt: skip
def test_mistakes_with_structures(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(sim.HostError, match=words):
        make()


def test_each_block_has_a_structure_of_its_own_and_pays_for_reading_it() -> None:
    seen: list[int] = []

    @asc.jit
    def kernel(tiling: Tiling) -> None:
        seen.append(tiling.length)
        tiling.length += asc.get_block_idx() + 1

    tiling = Tiling(length=40)
    run = kernel[3](tiling)
    assert seen == [40, 40, 40]
    assert tiling.length == 40
    words = -(-len(tiling.pack()) // 8)
    loads = [item.name for core in run.log.cores for item in core.items]
    assert loads.count("get_value") == 3 * words
    assert run.findings == []


CONSTANTS = (asc.DEFAULT_C0_SIZE, asc.ONE_BLK_SIZE, asc.TOTAL_L1_SIZE, asc.TOTAL_L0C_SIZE)

# ---- arrays, shapes, numbers, constants -----------------------------------------------------


def test_arrays() -> None:
    def use() -> Any:
        counts = asc.array(asc.int32, 3, 4)
        counts[1] = 7.9  # as C++ converts it
        values = asc.array(asc.half, [0.1, 2])
        return list(counts), list(values), len(values), counts.dtype, repr(counts)

    counts, values, length, dtype, text = _inside(use)
    assert (counts, length, dtype, text) == ([4, 7, 4], 2, asc.int32, "array(int32, [4, 7, 4])")
    assert values == [float(np.float16(0.1)), 2.0]


@pytest.mark.parametrize(
    ("use", "code"),
    [
        (lambda: asc.array(asc.int32, 3)[0], "uninitialised-read"),
        (lambda: asc.array(asc.int32, 3, 0)[3], "array-index"),
        (lambda: asc.array(asc.int32, 3, 0)[-1], "array-index"),
        (lambda: asc.array(asc.int32, [1 << 40]), "scalar-range"),
        (lambda: asc.array(asc.void, 3), "not-a-dtype"),
        (lambda: asc.array(asc.int32, 0), "length-limit"),
        (lambda: asc.array(asc.int32, [1], 2), "form"),
        (lambda: asc.ShapeInfo([1] * 9), "shape-dimensions-limit"),
        (lambda: asc.ShapeInfo([2]).shape(1), "shape-dimension"),
        (lambda: asc.get_shape_size([2, 3]), "wrong-params"),  # type: ignore[arg-type]
        (lambda: asc.property(3), "wrong-params"),  # type: ignore[arg-type]
        (lambda: asc.number("3", asc.half), "not-a-number"),  # type: ignore[arg-type]
        (lambda: asc.static_assert(False, "tiles must fit"), "static-assert"),
        (lambda: asc.LocalTensor(asc.half, asc.TPosition.VECIN, 0, 8).get_shape_info(), "no-shape-info"),
    ],
)  # fmt: skip
def test_mistakes_with_values(use: Callable[[], Any], code: str) -> None:
    with pytest.raises(sim.KernelError) as caught:
        _inside(use)
    assert caught.value.finding.code == code


def test_shapes_numbers_and_constants() -> None:
    def use() -> Any:
        shape = asc.ShapeInfo(asc.array(asc.uint32, [2, 3, 4]), asc.array(asc.uint32, [24]))
        tensor = asc.LocalTensor(asc.half, asc.TPosition.VECIN, 0, 24)
        tensor.set_shape_info(shape)
        asc.static_assert(True)
        return (
            asc.get_shape_size(tensor.get_shape_info()), shape.shape(2), shape.original_shape(0),
            asc.number(0.1, asc.half), asc.ceildiv(7, 2),
            [asc.property(one) for one in CONSTANTS],
        )  # fmt: skip

    size, last, original, tenth, half, constants = _inside(use)
    assert (size, last, original, half) == (24, 4, 24, 4)
    assert tenth == float(np.float16(0.1))
    assert constants == [32, 32, 524288, 131072]
    assert list(asc.range(1, 7, 2)) == list(asc.static_range(1, 7, 2)) == [1, 3, 5]


@pytest.mark.parametrize(
    ("function", "arguments", "result"),
    [
        ("scalar_get_sff_value", (28, 1), 2),
        ("scalar_get_sff_value", (7, 0), 3),
        ("scalar_get_sff_value", (0, 1), -1),
        ("scalar_get_sff_value", ((1 << 64) - 1, 0), -1),
        ("scalar_get_count_of_value", (0xFFFF, 1), 16),
        ("scalar_get_count_of_value", (0xFFFF, 0), 48),
        ("scalar_count_leading_zero", (0x0FFFFFFFFFFFFFFF,), 4),
        ("scalar_count_leading_zero", (0,), 64),
        ("count_bits_cnt_same_as_sign_bit", (0x0F00000000000000,), 3),
        ("count_bits_cnt_same_as_sign_bit", (0,), -1),
        ("count_bits_cnt_same_as_sign_bit", (-1,), -1),
        ("count_bits_cnt_same_as_sign_bit", (-2,), 62),
        ("scalar_cast", (2.5, asc.int32, asc.RoundMode.CAST_ROUND), 3),
        ("scalar_cast", (2.5, asc.int32, asc.RoundMode.CAST_RINT), 2),
        ("scalar_cast", (-2.5, asc.int32, asc.RoundMode.CAST_FLOOR), -3),
        ("scalar_cast", (2.1, asc.int32, asc.RoundMode.CAST_CEIL), 3),
        ("scalar_cast", (1.0 + 2**-11 + 2**-20, asc.half, asc.RoundMode.CAST_ODD), 1.0 + 2**-10),
        ("get_icache_preload_status", (), 0),
    ],
)  # fmt: skip
def test_what_the_scalar_unit_computes(
    function: str, arguments: tuple[Any, ...], result: Any
) -> None:
    """Results are those of the vendor's pages for these functions, and what follows from their sentences."""
    assert _inside(lambda: getattr(asc, function)(*arguments)) == result


@pytest.mark.parametrize(
    "arguments",
    [
        (2.5, asc.int32, asc.RoundMode.CAST_TRUNC),
        (2.5, asc.half, asc.RoundMode.CAST_RINT),
        (2, asc.int8, asc.RoundMode.CAST_RINT),
    ],
)  # fmt: skip
def test_roundings_that_scalar_cast_does_not_have(arguments: Any) -> None:
    with pytest.raises(sim.KernelError, match="scalar_cast to"):
        _inside(lambda: asc.scalar_cast(*arguments))


def test_hints_are_marks_in_the_trace() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        x_gm = asc.GlobalTensor()
        x_gm.set_global_buffer(x)
        asc.icache_preload(2)
        asc.set_mm_layout_transform(True)
        asc.data_cache_preload(x_gm, 64)
        x_gm.get_value(16)

    run = sim.launch(kernel, np.zeros(64, np.float32))
    names = [item.name for item in run.log.cores[0].items]
    assert names == ["icache_preload", "set_mm_layout_transform", "data_cache_preload", "get_value"]
    loads = run.log.cores[0].items[-1]
    bare = sim.launch(_one_load, np.zeros(64, np.float32)).log.cores[0].items[-1]
    assert loads.end - loads.start < bare.end - bare.start  # the line is there already


def _one_load(x: asc.GlobalAddress) -> None:
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    x_gm.get_value(16)


# ---- tensors and their makers ---------------------------------------------------------------


def test_an_allocator_hands_out_bytes_in_order() -> None:
    def use() -> Any:
        allocator = asc.LocalMemAllocator()
        first = allocator.alloc(asc.TPosition.VECIN, asc.half, 10)
        second = allocator.alloc(asc.TPosition.VECCALC, float, asc.ConstExpr(8))
        cube = asc.LocalMemAllocator(asc.Hardware.L1)
        return [
            (first.addr, first.get_length()), (second.addr, second.dtype), allocator.get_cur_addr(),
            cube.get_cur_addr(),
        ]  # fmt: skip

    assert _inside(use) == [(0, 20), (32, asc.float32), 64, 0]


@pytest.mark.parametrize(
    ("use", "code"),
    [
        (lambda: asc.LocalMemAllocator(asc.Hardware.GM), "wrong-position"),
        (lambda: asc.LocalMemAllocator().alloc(asc.TPosition.A1, asc.half, 8), "wrong-position"),
        (lambda: asc.LocalMemAllocator().alloc(asc.TPosition.VECIN, asc.half, 98305), "memory-overflow"),
        (lambda: asc.LocalMemAllocator().alloc(asc.TPosition.VECIN, "half", 8), "not-a-dtype"),
        (lambda: asc.LocalMemAllocator().alloc(asc.TPosition.VECIN, asc.half, 0), "tile-size-limit"),
    ],
)  # fmt: skip
def test_mistakes_with_allocators(use: Callable[[], Any], code: str) -> None:
    with pytest.raises(sim.KernelError) as caught:
        _inside(use)
    assert caught.value.finding.code == code


def test_a_queue_may_fill_a_tensor_that_is_there(tmp_path: Path) -> None:
    seen: list[Any] = []

    def kernel() -> None:
        pipe = asc.TPipe()
        queue = asc.TQueBind(asc.TPosition.VECIN, asc.TPosition.VECOUT, 0)
        pipe.init_buffer(que=queue, num=2, len=256)
        tensor = asc.LocalTensor(asc.int32)
        for number in range(3):
            queue.alloc_tensor(tensor)
            seen.append((tensor.addr, tensor.get_size(), queue.has_idle_buffer()))
            tensor.set_value(0, number)
            queue.enque(tensor)
            queue.deque(tensor=tensor)
            seen.append(tensor.get_value(0))
            queue.free_tensor(tensor)
        assert pipe.get_base_addr(asc.TPosition.VECIN) == 0

    run = sim.launch(kernel)
    assert seen == [(0, 64, True), 0, (256, 64, True), 1, (0, 64, True), 2]
    assert {finding.kind for finding in run.findings} <= {
        "RACE"
    }  # S and the copies: not the subject


def test_hints_for_reads_and_for_writes() -> None:
    def use() -> Any:
        tensor = asc.GlobalTensor()
        tensor.set_l2_cache_hint(asc.CacheMode.CACHE_MODE_DISABLE, asc.CacheRwMode.READ)
        first = (tensor.read_cache, tensor.write_cache)
        tensor.set_l2_cache_hint(rw_mode=asc.CacheRwMode.RW)
        tensor.set_l2_cache_hint(asc.CacheMode.CACHE_MODE_LAST, rw_mode=asc.CacheRwMode.WRITE)
        return *first, tensor.read_cache, tensor.write_cache

    disable, normal, last = (
        asc.CacheMode.CACHE_MODE_DISABLE, asc.CacheMode.CACHE_MODE_NORMAL, asc.CacheMode.CACHE_MODE_LAST,
    )  # fmt: skip
    assert _inside(use) == (disable, normal, normal, last)


def test_the_systems_workspace() -> None:
    seen: list[Any] = []

    def kernel(x: asc.GlobalAddress, workspace: asc.GlobalAddress) -> None:
        asc.set_sys_workspace(workspace + 2)
        address = asc.get_sys_workspace()
        seen.append((address.dtype, address.offset, address.buffer.name))

    sim.launch(kernel, np.zeros(4, np.float32), np.zeros(64, np.float32))
    assert seen == [(asc.uint8, 8, "workspace")]
    with pytest.raises(sim.KernelError, match="nothing has set it"):
        sim.launch(lambda: asc.get_sys_workspace())


def test_the_atomic_mode_by_its_numbers() -> None:
    def use() -> Any:
        before = asc.get_store_atomic_config()
        asc.set_store_atomic_config(asc.AtomicDtype.ATOMIC_F16, asc.AtomicOp.ATOMIC_SUM)
        during = asc.get_store_atomic_config()
        asc.set_store_atomic_config(asc.AtomicDtype.ATOMIC_NONE, asc.AtomicOp.ATOMIC_SUM)
        return before, during, asc.get_store_atomic_config()

    assert _inside(use) == ((0, 0), (2, 0), (0, 0))
