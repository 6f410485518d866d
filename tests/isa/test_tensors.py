"""Tensors, views, the scalar unit's accesses, the mask register, flags, and the eager stream itself."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isa_kit import gm, read, stream, ub, write

import isa.vector.forms  # noqa: F401  registers the instructions
from isa.faults import IsaFault
from isa.instruction import REGISTRY, Instruction, register
from isa.move import data_copy
from isa.params import UnaryRepeatParams
from isa.stream import EagerStream
from isa.sync import (
    init_soc_state,
    pipe_barrier,
    reset_mask,
    set_flag,
    set_mask_count,
    set_mask_norm,
    set_pad_value,
    set_vector_mask,
    wait_flag,
)
from isa.tensor import GlobalAddress, GlobalTensor, GmBuffer, LocalTensor, Owner
from isa.types import (
    DTYPES,
    PIPE_OF_ID,
    POSITION_SPACE,
    CacheMode,
    CoreKind,
    DType,
    HardEvent,
    MaskMode,
    Pipe,
    PipeID,
    Space,
    TPosition,
    bfloat16,
    bool_,
    dtype_named,
    dtype_of,
    float16,
    float32,
    int8,
    int16,
    int64,
    uint8,
    uint64,
)
from isa.vector.arithmetic import exp, muls

ALL_ONES = (1 << 64) - 1
quick = settings(deadline=None, max_examples=200, derandomize=True)
NUMBERS = [dtype for dtype in DTYPES if dtype is not bool_]


# ---- views --------------------------------------------------------------------------------------


@quick
@given(
    st.sampled_from(DTYPES),
    st.integers(0, 20),
    st.integers(1, 40),
    st.lists(st.tuples(st.integers(0, 9), st.one_of(st.none(), st.integers(0, 9))), max_size=4),
    st.booleans(),
)
def test_views_of_views(dtype: DType, block: int, size: int, cuts: Any, local: bool) -> None:
    tensor: Any
    if local:
        tensor = ub(dtype, 32 * block, size)
        base = tensor.addr
    else:
        data = np.zeros(block * dtype.size + size * dtype.size, np.uint8)
        tensor = gm(data, dtype=dtype)[block:]
        base = block * dtype.size
    elements = range(size)
    for start, length in cuts:
        if start > len(elements):
            break
        stop = None if length is None else min(start + length, len(elements))
        elements = elements[start:stop]
        tensor = tensor[start:] if stop is None else tensor[start:stop]
    if len(elements):
        at = tensor.addr if local else tensor.offset
        assert at == base + elements[0] * dtype.size
        assert tensor(0).length == dtype.size
    assert tensor.length == len(elements) * dtype.size
    assert tensor.dtype is dtype
    if local:
        assert (tensor.get_size(), tensor.get_length()) == (len(elements), tensor.length)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_reinterpret_cast_keeps_the_bytes(dtype: DType) -> None:
    local, window = ub(float16, 64, 32), gm(np.zeros(32, np.float16))[8:]
    other, seen = local.reinterpret_cast(dtype), window.reinterpret_cast(dtype)
    assert (other.addr, other.length, other.dtype) == (64, 64, dtype)
    assert (seen.offset, seen.length, seen.dtype) == (16, 48, dtype)
    assert other.get_size() == 64 // dtype.size
    assert (other.key == local.key) == (dtype is float16)
    assert (seen.key == window.key) == (dtype is float16)


def test_a_global_tensor_takes_type_and_limits_from_its_address() -> None:
    data = np.arange(64, dtype=np.float32)
    address = GlobalAddress(GmBuffer("x", data.view(np.uint8)), float32, 16, 64)
    window = GlobalTensor()
    window.set_global_buffer(4 + address)
    assert (window.dtype, window.offset, window.length) == (float32, 32, 48)
    assert window.get_size() == 0  # as AscendC does where no size was given
    window.set_global_buffer(address + 4, 7)
    assert (window.length, window.get_size()) == (28, 7)
    assert window.get_phy_addr(2).offset == 40
    assert window[3:].get_size() == 4
    assert repr(window) == "<GlobalTensor x+32 B, 28 B of float32>"
    assert repr(GlobalTensor()) == "<GlobalTensor unbound>"
    assert repr(address + 1) == "<GlobalAddress x+20 B float32>"
    assert repr(address.buffer) == "<GM x: 256 B>"


def test_the_cache_hint_goes_with_the_copies() -> None:
    with stream() as eager:
        x = gm(np.zeros(64, np.float16))
        hinted = x[0:]
        hinted.set_l2_cache_hint(CacheMode.CACHE_MODE_DISABLE)
        for window in (x, hinted, hinted[16:], x[16:]):
            data_copy(ub(float16), window, 16)
        modes = [call.cache_mode for call in eager.issued]
        disable, normal = CacheMode.CACHE_MODE_DISABLE, CacheMode.CACHE_MODE_NORMAL
        assert modes == [normal, disable, disable, normal]


def test_a_local_tensor_by_hand() -> None:
    tensor = LocalTensor(float16, TPosition.VECOUT, 128, 64)
    assert (tensor.addr, tensor.length, tensor.space) == (128, 128, Space.UB)
    assert tensor.get_position() is TPosition.VECOUT
    assert tensor.get_phy_addr(3) == 134
    assert tensor.name == "UB[128:256]"
    tensor.set_size(8)
    assert tensor.get_length() == 16
    tensor.set_buffer_len(32)
    assert tensor.get_size() == 16
    tensor.set_user_tag(7)
    assert tensor[4:].get_user_tag() == 7
    other = LocalTensor(float32, TPosition.VECIN, 0, 4)
    before = other.key
    other.set_addr_with_offset(tensor, 16)
    assert (other.addr, other.position) == (160, TPosition.VECOUT)
    assert other.key != before
    tensor.label = "t"
    assert repr(tensor) == "<LocalTensor t UB[128:160] float16>"
    owned = LocalTensor(float16, owner=Owner("queue block 0"))
    assert owned[0:].name == "queue block 0"
    assert (owned.addr, owned.length, owned.position) == (0, 0, TPosition.VECIN)


@pytest.mark.parametrize("position", list(POSITION_SPACE))
def test_every_position_has_a_memory(position: TPosition) -> None:
    if position is not TPosition.GM:
        assert LocalTensor(float16, position).space is POSITION_SPACE[position]


# ---- the scalar unit ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@pytest.mark.parametrize("local", [True, False], ids=["UB", "GM"])
def test_elements_one_by_one(dtype: DType, local: bool) -> None:
    data = np.zeros(64, np.uint8)
    with stream() as eager:
        tensor: Any = ub(dtype, 64, 8) if local else gm(data, dtype=dtype)
        values = [0, 1, 100, 3] if not dtype.is_signed() else [0, -1, 100, -3]
        for index, value in enumerate(values):
            tensor.set_value(index, value)
        assert [tensor.get_value(i) for i in range(4)] == values
        assert tensor[2:].get_value() == 100
        assert isinstance(tensor.get_value(1), float if dtype.is_float() else int)
        raw = eager.memories[Space.UB][64:] if local else data
        stored = raw[: 4 * dtype.size].copy().view(dtype.numpy)
        assert stored.astype(np.float64).tolist() == values


def test_set_value_converts_as_the_type_does() -> None:
    with stream():
        whole, half, brain = ub(int8, 0, 4), ub(float16, 32, 4), ub(bfloat16, 64, 4)
        whole.set_value(0, -2.9)
        half.set_value(0, 1 + 2.0**-11 + 2.0**-40)
        brain.set_value(0, 1 + 2.0**-8 + 2.0**-40)
        half.set_value(1, 1e9)
        assert whole.get_value(0) == -2
        assert half.get_value(0) == 1 + 2.0**-10
        assert brain.get_value(0) == 1 + 2.0**-7
        assert half.get_value(1) == float("inf")


def test_wide_integers_keep_every_bit() -> None:
    with stream():
        signed, unsigned = ub(int64, 0, 4), ub(uint64, 64, 4)
        signed.set_value(0, -(1 << 63))
        unsigned.set_value(0, (1 << 64) - 1)
        signed.set_value(1, (1 << 62) + 1)
        assert signed.get_value(0) == -(1 << 63)
        assert unsigned.get_value(0) == (1 << 64) - 1
        assert signed.get_value(1) == (1 << 62) + 1


# ---- the mask register --------------------------------------------------------------------------


def _mask(eager: EagerStream) -> tuple[int, int, bool]:
    registers = eager.registers
    return registers.mask_high, registers.mask_low, registers.counter_mode


def test_the_mask_register() -> None:
    with stream() as eager:
        assert _mask(eager) == (ALL_ONES, ALL_ONES, False)
        set_vector_mask(5, 9)
        assert _mask(eager) == (5, 9, False)
        set_mask_count()
        set_vector_mask(200)
        assert _mask(eager) == (0, 200, True)
        set_vector_mask(300, dtype=float16, mode=MaskMode.COUNTER)
        assert _mask(eager) == (0, 300, True)
        set_mask_norm()
        for dtype, lanes, high, low in [
            (float16, 70, 63, ALL_ONES),
            (float16, 500, ALL_ONES, ALL_ONES),
            (float32, 70, 0, ALL_ONES),
            (float32, 3, 0, 7),
            (int64, 40, 0, (1 << 32) - 1),
            (uint8, 128, ALL_ONES, ALL_ONES),
        ]:
            set_vector_mask(lanes, dtype=dtype, mode=MaskMode.NORMAL)
            assert _mask(eager) == (high, low, False)
        reset_mask()
        assert _mask(eager) == (ALL_ONES, ALL_ONES, False)
        set_mask_count()
        set_pad_value(3)
        init_soc_state()
        assert _mask(eager) == (ALL_ONES, ALL_ONES, False)
        assert eager.registers.pad_value is None


def test_a_count_form_destroys_a_mask() -> None:
    dst, src = ub(float16, 0, 64), ub(float16, 1024, 64)
    with stream() as eager:
        for _ in range(2):  # bound anew, and bound before
            set_vector_mask(0, 1)
            set_mask_count()
            exp(dst, src, 16)
            assert _mask(eager) == (ALL_ONES, ALL_ONES, False)
            set_vector_mask(0, 1)
            muls(dst, src, 2, 16)
            assert _mask(eager) == (ALL_ONES, ALL_ONES, False)


def test_a_mask_form_leaves_its_mask_or_uses_what_is_there() -> None:
    dst, src, strides = ub(float16, 0, 128), ub(float16, 1024, 128), UnaryRepeatParams()
    with stream() as eager:
        write(eager, src, np.ones(128))
        for _ in range(2):
            write(eager, dst, np.zeros(128))
            muls(dst, src, 2, 3, 1, strides)
            assert _mask(eager) == (0, 7, False)
            muls(dst, src, 3, 0, 1, strides, False)
            assert read(eager, dst, 5).tolist() == [3, 3, 3, 0, 0]
            set_vector_mask(0, 16)
            muls(dst, src, 4, 99, 1, strides, False)
            assert read(eager, dst, 6).tolist() == [3, 3, 3, 0, 4, 0]
            assert _mask(eager) == (0, 16, False)


def test_the_register_is_read_at_each_call() -> None:
    # A call without its own mask is bound once for each state of the register.
    dst, src, strides = ub(float16, 0, 128), ub(float16, 1024, 128), UnaryRepeatParams()
    with stream() as eager:
        write(eager, src, np.ones(128))
        for lanes in (4, 2, 4):
            write(eager, dst, np.zeros(128))
            set_vector_mask(0, (1 << lanes) - 1)
            muls(dst, src, 5, 0, 1, strides, is_set_mask=False)
            assert read(eager, dst, 8).tolist() == [5] * lanes + [0] * (8 - lanes)
            write(eager, dst, np.zeros(128))
            muls(dst, src, 6, 128, is_set_mask=False)  # the count form too
            assert read(eager, dst, 8).tolist() == [6] * lanes + [0] * (8 - lanes)


def test_one_call_in_both_mask_modes() -> None:
    # The same arguments: 100 lanes of each of two repeats, or 100 elements in all.
    dst, src, strides = ub(float16, 0, 256), ub(float16, 1024, 256), UnaryRepeatParams()
    with stream() as eager:
        write(eager, src, np.ones(256))
        for counting in (False, True, False, True):
            write(eager, dst, np.zeros(256))
            if counting:
                set_mask_count()
            muls(dst, src, 2, 100, 2, strides)
            set_mask_norm()
            got = np.flatnonzero(read(eager, dst))
            expected = range(100) if counting else [*range(100), *range(128, 228)]
            assert got.tolist() == list(expected)


# ---- binding once -------------------------------------------------------------------------------


def test_calls_are_bound_once_for_equal_operands() -> None:
    dst, src = ub(float16, 0, 64), ub(float16, 1024, 64)
    with stream() as eager:
        for _ in range(3):
            exp(dst, src, 16)
            muls(dst[0:], src[0:], 2.5, 16)
            muls(dst, src, 2.5, 16, 1, UnaryRepeatParams())
        assert len(set(map(id, eager.issued))) == 3


def test_scalars_with_equal_values_and_unequal_bits_are_bound_apart() -> None:
    dst, src = ub(float16, 0, 16), ub(float16, 1024, 16)
    with stream() as eager:
        write(eager, src, np.zeros(16))
        for scalar in (0.0, -0.0, 0.0, 0, -0.0):
            muls(dst, src, scalar, 16)
            assert np.signbit(read(eager, dst)).all() == np.signbit(scalar)
        muls(dst, src, float("nan"), 16)
        assert np.isnan(read(eager, dst)).all()


def test_calls_do_not_outlive_a_change_of_the_tensor() -> None:
    dst, src = ub(float16, 0, 64), ub(float16, 1024, 64)
    with stream() as eager:
        exp(dst, src, 64)
        dst.set_size(32)
        with pytest.raises(Exception, match="the tensor has 64"):
            exp(dst, src, 64)
        assert len(eager.issued) == 1


# ---- flags, the stream, the registry ------------------------------------------------------------


def test_flags_reach_the_stream() -> None:
    seen: list[Any] = []

    class Listening(EagerStream):
        def set_flag(self, event: HardEvent, event_id: int) -> None:
            seen.append(("set", event, event_id))

        def wait_flag(self, event: HardEvent, event_id: int) -> None:
            seen.append(("wait", event, event_id))

        def pipe_barrier(self, pipe: Pipe | None) -> None:
            seen.append(("barrier", pipe))

    with Listening({Space.UB: 64}):
        set_flag(HardEvent.MTE2_V)
        wait_flag(HardEvent.V_MTE3, 3)
        set_flag(4, np.int64(2))  # type: ignore[arg-type]  # pyasc's enumerations are whole numbers
        for pipe in PipeID:
            if pipe is PipeID.PIPE_ALL or (pipe in PIPE_OF_ID and pipe is not PipeID.PIPE_S):
                pipe_barrier(pipe)
    assert seen[:3] == [
        ("set", HardEvent.MTE2_V, 0),
        ("wait", HardEvent.V_MTE3, 3),
        ("set", HardEvent.MTE2_V, 2),
    ]
    assert [event[1] for event in seen[3:]] == [
        Pipe.V, Pipe.M, Pipe.MTE1, Pipe.MTE2, Pipe.MTE3, None, Pipe.FIX,
    ]  # fmt: skip


def test_the_eager_stream() -> None:
    eager = EagerStream({Space.UB: 64, Space.L1: 32})
    assert np.all(eager.memories[Space.UB] == 0xFF)
    assert [eager.capacity(space) for space in (Space.UB, Space.L1, Space.L0A)] == [64, 32, 0]
    with eager:
        eager.set_flag(HardEvent.MTE2_V, 0)
        eager.wait_flag(HardEvent.MTE2_V, 0)
        eager.pipe_barrier(None)
        tensor = ub(float16, 0, 16)
        assert np.isnan(tensor.get_value(3))
        exp(tensor, tensor, 16)
        assert "exp dst:UB+0x0" in repr(eager.issued[0])
        assert eager.issued[0].detail().endswith("repeat:1,count:16")
    assert EagerStream({}, CoreKind.AIC).core_kind is CoreKind.AIC


def test_calls_describe_themselves() -> None:
    with stream() as eager:
        data_copy(ub(float16, 32, 64), gm(np.zeros(64, np.float16))[16:], 20)
        exp(ub(float16), ub(float16, 1024), 16, is_set_mask=True)
        exp(ub(float16), ub(float16, 1024), 16, True)  # type: ignore[arg-type]  # pyasc's order
        move, *rest = eager.issued
        assert move.detail() == ("dst:UB+0x20 UB[32:160],src:GM x[32:64],len:32,count:20,dropped:8")
        assert move.touches_gm
        assert not rest[0].touches_gm
        assert rest[0] is rest[1]


def test_streams_nest() -> None:
    outer, inner = stream(), stream()
    with outer:
        with inner:
            exp(ub(float16), ub(float16, 1024), 16)
        exp(ub(float16), ub(float16, 1024), 16)
    assert (len(outer.issued), len(inner.issued)) == (1, 1)


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ValueError, match="instruction 'exp' is registered twice"):
        register(Instruction("exp", Pipe.V, "exp", (), lambda: None, ""))


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_instruction_says_what_it_does(name: str) -> None:
    record = REGISTRY[name]
    if record.meaning.__module__ in ("isa.vector.arithmetic", "isa.vector.fill", "isa.move"):
        assert record.doc.startswith("dst = ")
        assert record.doc.endswith(".")
        assert record.forms


@pytest.mark.parametrize("function", [exp, muls, data_copy])
def test_functions_document_themselves(function: Any) -> None:
    text = inspect.getdoc(function)
    assert text is not None
    if function is not data_copy:
        assert "Element types: " in text
        assert "Call it with count; mask" in text
    assert function.__name__ in ("exp", "muls", "data_copy")


# ---- types --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_types_by_name_and_by_numpy(dtype: DType) -> None:
    import pickle

    assert dtype_named(dtype.name) is dtype
    assert dtype_of(np.dtype(dtype.numpy)) is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert dtype.sizeof() == dtype.size == dtype.numpy.itemsize
    assert dtype.is_int() != dtype.is_float()


def test_ascendc_names_of_types() -> None:
    assert [dtype_named(name) for name in ("half", "float", "bf16")] == [float16, float32, bfloat16]
    with pytest.raises(KeyError):
        dtype_named("int4")
    assert int16.is_signed()
    assert not uint8.is_signed()
    assert not float16.is_signed()  # as pyasc has it: a question about integer types


def test_a_type_made_by_its_name_is_the_type() -> None:
    assert DType("float16") is float16
    assert (DType("uint64").bitwidth, DType("uint64").kind) == (64, DType.Kind.UInt)
    assert DType("void").is_void()
    assert not DType("void").is_numeric()
    with pytest.raises(IsaFault, match="no element type 'float8'"):
        DType("float8")
    with pytest.raises(AttributeError, match="does not change"):
        int8.size = 2  # type: ignore[misc]
