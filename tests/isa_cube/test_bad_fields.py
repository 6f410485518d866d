"""Any value in any field of any parameter structure is taken or refused; nothing breaks, and nothing leaks out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isa.cube import mmad
from isa.cube_params import (
    DataCopyCO12DstParams,
    FixpipeParamsV220,
    InitConstValueParams,
    LoadData2DParams,
    LoadData2dTransposeParams,
    LoadData3DParamsV2,
    LoadDataRepeatParam,
    MmadParams,
    Nd2NzParams,
    Nz2NdParamsFull,
    QuantModes,
)
from isa.faults import IsaFault
from isa.fixpipe import fixpipe
from isa.instruction import REGISTRY
from isa.load import (
    init_const_value,
    load_data,
    load_data_with_transpose,
    set_load_data_repeat,
)
from isa.move import data_copy
from isa.params import DataCopyParams
from isa.stream import EagerStream
from isa.tensor import GlobalTensor
from isa.types import Pipe, Space, float16, float32, int32, uint64
from tests.isa_cube.kit import cube, gm, local, refusal, vector

A2, B2 = local(Space.L0A, float16), local(Space.L0B, float16)
CO1, L1, UB = local(Space.L0C, float32), local(Space.L1, float16), local(Space.UB, float16)
X, OUT = gm(np.zeros(4096, np.float16)), gm(np.zeros(4096, np.float32))
WAYS: dict[str, tuple[Callable[[], EagerStream], Any, Callable[[Any], None]]] = {
    "load_data 2D": (cube, LoadData2DParams(), lambda p: load_data(A2, L1, p)),
    "load_data 2D from GM": (cube, LoadData2DParams(), lambda p: load_data(A2, X, p)),
    "load_data 3D": (
        cube,
        LoadData3DParamsV2(
            l1_h=16, l1_w=1, channel_size=16, k_extension=16, m_extension=16
        ),
        lambda p: load_data(B2, L1, p),
    ),
    "load_data_with_transpose": (
        cube, LoadData2dTransposeParams(), lambda p: load_data_with_transpose(B2, L1, p)
    ),
    "init_const_value": (cube, InitConstValueParams(1, 1, 0, 1), lambda p: init_const_value(L1, p)),
    "init_const_value of integers": (
        cube,
        InitConstValueParams(1, 1, 0, 1),
        lambda p: init_const_value(local(Space.L0A, int32), p),
    ),
    "set_load_data_repeat": (cube, LoadDataRepeatParam(), lambda p: set_load_data_repeat(p)),
    "mmad": (cube, MmadParams(16, 16, 16), lambda p: mmad(CO1, A2, B2, p)),
    "fixpipe": (cube, FixpipeParamsV220(16, 16, 16, 16), lambda p: fixpipe(OUT, CO1, p)),
    "fixpipe by columns": (
        cube,
        FixpipeParamsV220(16, 16, 16, 16, QuantModes.VREQ8),
        lambda p: fixpipe(
            gm(np.zeros(4096, np.int8)), local(Space.L0C, int32), local(Space.L1, uint64), p
        ),
    ),
    "data_copy ND2NZ": (
        cube, Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0), lambda p: data_copy(L1, X, p)
    ),
    "data_copy ND2NZ to UB": (
        vector, Nd2NzParams(1, 4, 16, 0, 16, 4, 1, 0), lambda p: data_copy(UB, X, p)
    ),
    "data_copy NZ2ND": (
        vector, Nz2NdParamsFull(1, 4, 16, 0, 4, 16, 0), lambda p: data_copy(X, UB, p)
    ),
    "data_copy out of L0C": (
        cube,
        DataCopyCO12DstParams(16, 16, 16, 16, nz2nd_en=True),
        lambda p: data_copy(OUT, CO1, p),
    ),
    "data_copy to BT": (
        cube,
        DataCopyParams(1, 1),
        lambda p: data_copy(local(Space.BT, float32), local(Space.L1, float32), p),
    ),
}  # fmt: skip
VALUES = st.one_of(
    st.integers(-3, 40), st.integers(-(2**40), 2**40), st.floats(), st.text(max_size=2), st.none(),
    st.booleans(), st.lists(st.integers(0, 3), max_size=5), st.just(np.int64(3)), st.just(1j),
)  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_one_bad_field(way: str, data: st.DataObject) -> None:
    core, good, act = WAYS[way]
    names = [field.name for field in fields(good)]
    params = type(good)(**{name: getattr(good, name) for name in names})
    setattr(params, data.draw(st.sampled_from(names)), data.draw(VALUES))
    with core():
        try:
            act(params)
        except IsaFault as fault:
            assert fault.message
            assert fault.kind in {"ILLEGAL_PARAM", "BOUNDS", "ALIGNMENT"}


@pytest.mark.parametrize("way", WAYS)
def test_the_unchanged_structure_is_taken(way: str) -> None:
    core, good, act = WAYS[way]
    with core():
        act(good)


TENSORS = [
    A2,
    B2,
    CO1,
    L1,
    UB,
    X,
    OUT,
    local(Space.BT, float32),
    local(Space.FB, uint64),
    None,
    7,
    "x",
]
CALLS: list[Callable[[Any, Any, Any], None]] = [
    lambda a, b, c: load_data(a, b, LoadData2DParams()),
    lambda a, b, c: load_data(a, b, LoadData3DParamsV2()),
    lambda a, b, c: load_data_with_transpose(a, b, LoadData2dTransposeParams()),
    lambda a, b, c: init_const_value(a, InitConstValueParams(1, 1)),
    lambda a, b, c: mmad(a, b, c, MmadParams(16, 16, 16)),
    lambda a, b, c: fixpipe(a, b, FixpipeParamsV220(16, 16, 16, 16)),
    lambda a, b, c: fixpipe(a, b, c, FixpipeParamsV220(16, 16, 16, 16, QuantModes.VREQ8)),
    lambda a, b, c: data_copy(a, b, Nd2NzParams(1, 4, 16, 0, 16, 4, 1, 0)),
    lambda a, b, c: data_copy(a, b, Nz2NdParamsFull(1, 4, 16, 0, 4, 16, 0)),
    lambda a, b, c: data_copy(a, b, DataCopyCO12DstParams(16, 16, 16, 16)),
    lambda a, b, c: data_copy(a, b, 32),
]


@given(
    call=st.sampled_from(CALLS),
    operands=st.tuples(*[st.sampled_from(TENSORS)] * 3),
    core=st.sampled_from([cube, vector]),
)
@settings(max_examples=400, deadline=None)
def test_any_operand_anywhere(
    call: Callable[[Any, Any, Any], None],
    operands: tuple[Any, Any, Any],
    core: Callable[[], EagerStream],
) -> None:
    with core():
        try:
            call(*operands)
        except IsaFault as fault:
            assert fault.message


def test_gm_tensors_start_on_an_element_and_are_bound() -> None:
    halves = gm(np.zeros(64, np.float16))[1:].reinterpret_cast(float32)
    with cube():
        fault = refusal(lambda: fixpipe(halves, CO1, FixpipeParamsV220(1, 1, 16, 1)))
        assert (fault.kind, fault.code) == ("ALIGNMENT", "gm-misaligned")
        assert "no multiple of the 4 bytes of float32" in fault.message
        fault = refusal(lambda: load_data(A2, GlobalTensor(), LoadData2DParams()))
        assert fault.code == "unbound-tensor"
        fault = refusal(lambda: fixpipe(GlobalTensor(), CO1, FixpipeParamsV220(1, 1, 16, 1)))
        assert fault.code == "unbound-tensor"


def test_a_call_that_does_nothing_may_be_repeated_anywhere() -> None:
    with cube() as stream:
        for tile in range(3):
            data_copy(L1, X[tile * 16 :], Nd2NzParams(1, 0, 16, 0, 16, 16, 1, 0))
        assert [call.writes for call in stream.issued] == [()] * 3


@pytest.mark.parametrize(
    ("name", "pipe", "cost"),
    [
        ("mmad", Pipe.M, "mmad"),
        ("fixpipe", Pipe.FIX, "fixpipe"),
        ("load_data", Pipe.MTE1, "mte1"),
        ("load_data_with_transpose", Pipe.MTE1, "mte1"),
        ("init_const_value", Pipe.MTE1, "mte1"),
    ],
)
def test_the_registry_has_them(name: str, pipe: Pipe, cost: str) -> None:
    record = REGISTRY[name]
    assert (record.pipe, record.cost) == (pipe, cost)
    assert "=" in record.doc
    a = np.array([[1, 2], [3, 4]], np.float32)
    operands = (a, a) if name == "mmad" else (a,)
    assert np.array_equal(record.meaning(*operands), a @ a if name == "mmad" else a)
