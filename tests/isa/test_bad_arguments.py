"""Whatever an instruction is given, it works or says why not: never a bare Python error from inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isa_kit import function, gm, stream, ub
from meanings import MEANINGS

from isa import sync
from isa.faults import IsaFault
from isa.move import data_copy, data_copy_pad
from isa.params import (
    BinaryRepeatParams,
    CopyRepeatParams,
    DataCopyExtParams,
    DataCopyPadExtParams,
    DataCopyPadParams,
    DataCopyParams,
    UnaryRepeatParams,
)
from isa.tensor import GlobalAddress, GlobalTensor, GmBuffer, LocalTensor
from isa.types import (
    DTYPES,
    HardEvent,
    MaskMode,
    PipeID,
    RoundMode,
    TPosition,
    bfloat16,
    float16,
    float32,
    int16,
    int32,
)
from isa.vector.fill import cast

X = np.arange(64, dtype=np.float16)

ODD: list[Any] = [
    None, True, False, "16", b"x", "", 0, 1, -1, 3, 16, 255, 256, 4096, 65536, 1 << 31, 1 << 32, 1 << 64, -(1 << 63),
    10**400, 0.0, -0.0, 1.0, 1.5, 16.0, 1e300, float("inf"), float("nan"), 1j, np.int8(-3), np.int64(16),
    np.uint64(1 << 63), np.float16(2), np.float32(0.5), np.float64(1e308), np.bool_(True), bfloat16.numpy.type(3),
    [], [1], [1, 2], [1, 2, 3], ["a", "b"], [1.5, 2], [None, None], [1 << 64, 0], [-1, 0], (7, 0), (True, 0),
    [np.uint64(5), np.int64(3)], {}, set(), object(), int, np.array(3), np.arange(4), np.array("x"), float16, "half",
    RoundMode.CAST_RINT, HardEvent.MTE2_V, PipeID.PIPE_V, TPosition.VECIN, MaskMode.NORMAL,
    UnaryRepeatParams(), BinaryRepeatParams(), CopyRepeatParams(1, 1, 8, 8), DataCopyParams(1, 1),
    DataCopyExtParams(1, 32), DataCopyPadExtParams(float16, True, 1, 1, 2), DataCopyPadParams(True, 1, 1, 1 << 70),
    UnaryRepeatParams(None, "x", 1.5, True), BinaryRepeatParams(1, 1, 300, -1, [1], 8),  # type: ignore[arg-type]
    CopyRepeatParams("a", 1, 2.0, None), DataCopyParams(2.0, "1", None, True),  # type: ignore[arg-type]
    DataCopyExtParams(1, 3.0, [], -1), DataCopyPadExtParams("f", "yes", 1.5, 99, "z"),  # type: ignore[arg-type]
]  # fmt: skip


def _tensors() -> list[Any]:
    unbound = GlobalTensor()
    address = GlobalAddress(GmBuffer("y", X.copy().view(np.uint8)), float16)
    return [
        ub(float16, 0, 256),
        ub(float16, 1024, 256),
        ub(float16, 2, 16),
        ub(float32, 2048, 256),
        ub(int16, 4096, 64),
        ub(int32, 4096, 64),
        ub(bfloat16, 4096, 64),
        ub(float16, 8160, 4096),
        ub(float16, 0, 0),
        LocalTensor(float16, TPosition.A1, 0, 64),
        gm(X),
        gm(X)[32:],
        unbound,
        address,
        address.dtype,
    ]


anything = st.one_of(st.sampled_from(ODD), st.sampled_from(_tensors()))
operands = st.one_of(st.sampled_from(_tensors()[:6]), anything)
numbers = st.one_of(st.integers(-3, 300), st.integers(), st.floats(), anything)
often = settings(deadline=None, max_examples=150, derandomize=True)


def attempt(act: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Call something; only a fault of the instruction set may come out of it."""
    with stream(1), np.errstate(all="ignore"):
        try:
            act(*args, **kwargs)
        except IsaFault as fault:
            assert fault.message


@pytest.mark.parametrize("name", sorted(MEANINGS))
def test_vector_instructions(name: str) -> None:
    counts = {"binary": 3, "unary": 2, "scalar": 2, "shift": 2, "fill": 1, "copy": 2}
    tensors = counts[MEANINGS[name].kind]

    @settings(often, max_examples=60)
    @given(
        st.lists(operands, min_size=tensors, max_size=tensors),
        st.lists(numbers, max_size=5),
        st.dictionaries(
            st.sampled_from(
                ["count", "mask", "repeat_times", "repeat_params", "is_set_mask", "scalar"]
            ),
            anything,
            max_size=3,
        ),
        st.booleans(),
    )
    def property_of(given_tensors: Any, rest: Any, named: Any, counting: bool) -> None:
        def act() -> None:
            if counting:
                sync.set_mask_count()
            try:
                function(name)(*given_tensors, *rest, **named)
            except TypeError as error:  # Python's own: a parameter twice, missing, or one too many
                assert f"{name}()" in str(error)

        attempt(act)

    property_of()


@often
@given(operands, operands, numbers, st.lists(numbers, min_size=1, max_size=4))
def test_cast(dst: Any, src: Any, mode: Any, rest: Any) -> None:
    attempt(cast, dst, src, mode, *rest)


@often
@given(anything, anything, numbers, anything, anything, anything)
def test_data_copy(dst: Any, src: Any, count: Any, enhanced: Any, repeat: Any, intri: Any) -> None:
    attempt(data_copy, dst, src, count)
    attempt(data_copy, dst, src, count, enhanced, repeat_params=repeat, intri_params=intri)
    attempt(data_copy, ub(float16, 0, 256), gm(X), count)


@often
@given(anything, anything, anything, anything)
def test_data_copy_pad(dst: Any, src: Any, params: Any, pad: Any) -> None:
    attempt(data_copy_pad, dst, src, params, pad)
    attempt(data_copy_pad, ub(float16, 0, 256), gm(X), params, pad)
    attempt(data_copy_pad, gm(X), ub(float16, 0, 256), params)


@often
@given(st.lists(numbers, min_size=4, max_size=4), st.lists(numbers, min_size=4, max_size=4))
def test_fields_of_the_copies(values: Any, padding: Any) -> None:
    local, data = ub(float16, 0, 256), gm(X)
    attempt(data_copy, local, data, DataCopyParams(*values))
    for structure in (DataCopyExtParams, DataCopyParams):
        attempt(data_copy_pad, local, data, structure(*values))
        attempt(data_copy_pad, data, local, structure(*values))
    few = DataCopyExtParams(1, 8)
    attempt(data_copy_pad, local, data, few, DataCopyPadExtParams(float16, *padding))
    attempt(data_copy_pad, local, data, few, DataCopyPadParams(*padding))


@often
@given(st.lists(numbers, min_size=6, max_size=6), st.integers(0, 300))
def test_fields_of_the_strides(values: Any, mask: int) -> None:
    a, b, c = (ub(float16, 2048 * i, 512) for i in range(3))
    attempt(function("add"), a, b, c, mask, 2, BinaryRepeatParams(*values))
    attempt(function("exp"), a, b, mask, 2, UnaryRepeatParams(*values[:4]))
    attempt(function("copy"), a, b, mask, 2, CopyRepeatParams(*values[:4]))
    attempt(function("duplicate"), a, 1.5, mask, 2, *values[:2])


@often
@given(st.sampled_from(_tensors()[:12]), numbers, numbers, numbers)
def test_tensors(tensor: Any, first: Any, second: Any, third: Any) -> None:
    attempt(lambda: tensor[first])
    attempt(lambda: tensor[first:second])
    attempt(lambda: tensor[first:second:third])
    attempt(tensor, first)
    attempt(tensor.get_value, first)
    attempt(tensor.set_value, first, second)
    attempt(tensor.set_value, 0, second)
    attempt(tensor.get_phy_addr, first)
    attempt(tensor.reinterpret_cast, first)
    if isinstance(tensor, LocalTensor):
        fresh = tensor[0:]
        attempt(fresh.set_size, first)
        attempt(fresh.set_buffer_len, first)
        attempt(fresh.set_user_tag, first)
        attempt(fresh.set_addr_with_offset, second, first)
        attempt(fresh.set_addr_with_offset, tensor, first)
    else:
        fresh = GlobalTensor()
        attempt(fresh.set_l2_cache_hint, first)
        attempt(fresh.set_global_buffer, second, first)
        attempt(fresh.set_global_buffer, GlobalAddress(tensor.buffer, float16), first)


@often
@given(anything, anything, numbers, numbers)
def test_making_tensors(dtype: Any, position: Any, addr: Any, size: Any) -> None:
    attempt(LocalTensor, dtype, position, addr, size)
    attempt(LocalTensor, float16, TPosition.VECIN, addr, size)
    attempt(lambda: GlobalAddress(GmBuffer("x", X.view(np.uint8)), float16) + addr)
    attempt(lambda: addr + GlobalAddress(GmBuffer("x", X.view(np.uint8)), float16))


@often
@given(anything, numbers, anything, anything)
def test_flags_and_registers(first: Any, second: Any, dtype: Any, mode: Any) -> None:
    attempt(sync.set_flag, first, second)
    attempt(sync.set_flag, HardEvent.MTE2_V, second)
    attempt(sync.wait_flag, first, second)
    attempt(sync.pipe_barrier, first)
    attempt(sync.set_vector_mask, second)
    attempt(sync.set_vector_mask, second, first, dtype, mode)
    attempt(sync.set_vector_mask, 16, dtype=dtype, mode=mode)
    attempt(sync.set_pad_value, first, second)
    attempt(sync.set_pad_value, 1, second)


def test_a_call_bound_before_does_not_excuse_wrong_arguments() -> None:
    # True == 1 == 1.0 as keys of a dictionary.
    dst, src, strides = ub(float16, 0, 64), ub(float16, 1024, 64), UnaryRepeatParams()
    good: list[tuple[Any, ...]] = [(1,), (1, 1, strides), ([1, 0], 1, strides)]
    bad: list[tuple[Any, ...]] = [
        (True,), (1.0,), (1, 1.0, strides), (1.0, 1, strides), (True, 1, strides), ([True, 0], 1, strides),
        ([1.0, 0], 1, strides), (1, True, strides),
    ]  # fmt: skip
    with stream():
        for name, scalar in (("exp", ()), ("muls", (2,))):
            for rest in good:
                function(name)(dst, src, *scalar, *rest)
            for rest in bad:
                with pytest.raises(IsaFault):
                    function(name)(dst, src, *scalar, *rest)
        function("muls")(dst, src, 1, 16)
        with pytest.raises(IsaFault, match="scalar must be a number, got True"):
            function("muls")(dst, src, True, 16)
        data_copy(dst, gm(X), 16)
        for count in (16.0, True):
            with pytest.raises(IsaFault):
                data_copy(dst, gm(X), count)


def test_numpy_integers_are_whole_numbers() -> None:
    dst, src = ub(float16, 0, 64), ub(float16, 1024, 64)
    with stream() as eager:
        function("exp")(dst, src, np.int32(16))
        function("exp")(dst, src, np.uint8(16), np.int64(1), UnaryRepeatParams())
        function("exp")(dst, src, [np.uint64(255), 0], 1, UnaryRepeatParams())
        function("muls")(dst, src, np.float32(2), np.int64(16))
        data_copy(dst, gm(X), np.int64(16))
        assert len(eager.issued) == 5


def test_every_type_has_a_name_for_messages() -> None:
    assert [str(dtype) for dtype in DTYPES] == [dtype.name for dtype in DTYPES]
    assert repr(float16) == "asc.float16"
