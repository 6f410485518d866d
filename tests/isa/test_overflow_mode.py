"""Conversions beyond a 16-bit float's range in both overflow modes: every target, every rounding mode."""

from __future__ import annotations

from typing import Any

import exact
import numpy as np
import pytest
from isa_kit import stream, ub, write

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.errors import ConfigError
from isa.types import DType, RoundMode, Space, bfloat16, float16, float32, int32
from isa.vector.convert import add_deq_relu, add_relu_cast
from isa.vector.dequantise import cast_deq, set_deq_scale
from isa.vector.fill import CAST_MODES, cast

VALUES = [
    0.0,
    -0.0,
    1.5,
    65504.0,
    65519.9,
    65520.0,
    -65536.0,
    1e6,
    3.3e38,
    -3.4e38,
    np.inf,
    -np.inf,
    np.nan,
]


def bits_of(target: DType, call: Any, sources: list[Any], saturate: bool) -> list[int]:
    """Run a call on tensors of the sources' values and return dst's bits."""
    with stream(size=4096) as eager:
        eager.registers.saturate = saturate
        tensors = []
        for place, (dtype, values) in enumerate(sources):
            tensor = ub(dtype, 512 * (place + 1), len(values))
            write(eager, tensor, values)
            tensors.append(tensor)
        dst = ub(target, 0, len(sources[0][1]))
        call(dst, *tensors)
        return eager.memories[Space.UB][: 2 * len(sources[0][1])].view(np.uint16).tolist()


@pytest.mark.parametrize("mode", CAST_MODES[float32, float16], ids=lambda mode: mode.name)
@pytest.mark.parametrize("target", [float16, bfloat16], ids=str)
def test_cast(target: DType, mode: RoundMode) -> None:
    if mode not in CAST_MODES[float32, target]:
        pytest.skip(f"{target} has no {mode.name}")
    values = np.array(VALUES, np.float32)

    def call(dst: Any, src: Any) -> None:
        cast(dst, src, mode, len(values))

    plain = bits_of(target, call, [(float32, values)], False)
    kept = bits_of(target, call, [(float32, values)], True)
    fmt = exact.FORMATS[target.name]
    for value, one, other in zip(values, plain, kept, strict=True):
        magnitude = one & 0x7FFF
        if np.isnan(value):
            assert magnitude > fmt.infinity
            assert other == 0
        elif magnitude == fmt.infinity:
            assert other == (one & 0x8000) | (fmt.infinity - 1)
        else:
            assert other == one


def test_the_other_conversions_to_half() -> None:
    large = np.array([1 << 30, -(1 << 30), 7], np.int32)
    set_scale = [(int32, large)]

    def dequantise(dst: Any, src: Any) -> None:
        set_deq_scale(1.0)
        cast_deq(dst, src, 3)

    def add(dst: Any, a: Any, b: Any) -> None:
        set_deq_scale(1.0)
        add_deq_relu(dst, a, b, 3)

    def relu(dst: Any, a: Any, b: Any) -> None:
        add_relu_cast(dst, a, b, 2)

    seven, fourteen = 0x4700, 0x4B00
    assert bits_of(float16, dequantise, set_scale, False) == [0x7C00, 0xFC00, seven]
    assert bits_of(float16, dequantise, set_scale, True) == [0x7BFF, 0xFBFF, seven]
    assert bits_of(float16, add, set_scale * 2, True) == [0x7BFF, 0, fourteen]
    wide = [(float32, np.array([1e30, 3.0], np.float32))] * 2
    assert bits_of(float16, relu, wide, False)[0] == 0x7C00
    assert bits_of(float16, relu, wide, True)[0] == 0x7BFF


@asc.jit(auto_sync=True)
def narrow(x, z):
    x_gm, z_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    z_gm.set_global_buffer(z)
    asc.TPipe()  # resets the special registers, but not this mode
    a = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 64)
    b = asc.LocalTensor(asc.float16, asc.TPosition.VECOUT, 512, 64)
    asc.data_copy(a, x_gm, 64)
    asc.set_flag(asc.HardEvent.MTE2_V, 0)
    asc.wait_flag(asc.HardEvent.MTE2_V, 0)
    asc.cast(b, a, asc.RoundMode.CAST_RINT, 64)
    asc.set_flag(asc.HardEvent.V_MTE3, 0)
    asc.wait_flag(asc.HardEvent.V_MTE3, 0)
    asc.data_copy(z_gm, b, 64)


def test_the_mode_is_the_launchs() -> None:
    x = np.full(64, 1e6, np.float32)
    for overflow, expected in (("saturate", 65504.0), ("inf_nan", np.inf), (None, np.inf)):
        z = np.zeros(64, np.float16)
        run = sim.launch(narrow, x, z, overflow=overflow, chip="toy")
        assert (z == expected).all()
        assert not [finding for finding in run.findings if finding.kind == "ILLEGAL_PARAM"]
    with pytest.raises(ConfigError, match=r"overflow is 'saturat'; did you mean 'saturate'\?"):
        sim.launch(narrow, x, z, overflow="saturat")
