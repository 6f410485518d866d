"""`insert_sync`: what pyasc's pass takes out and puts in, seen in its C++ for kernels like these (release 1.1.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.run import Run
from tests.machine.kit import items, local, window

N = 256


@asc.jit
def automatic(x: asc.GlobalAddress, y: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
    """Tensors that the compiler places: no flag and no barrier of the kernel's own."""
    a = asc.LocalTensorAuto(asc.float32, [N])
    b = asc.LocalTensorAuto(asc.float32, N)
    c = asc.LocalTensorAuto(asc.float32, [2, N // 2])
    asc.data_copy(a, window(x), N)
    asc.data_copy(b, window(y), N)
    asc.add(c, a, b, N)
    asc.adds(c, c, c.get_value(0), N)
    asc.data_copy(window(z), c, N)


def by_hand(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
    """A tensor that the kernel places, and flags of its own."""
    a = local(0, N)
    asc.data_copy(a, window(x), N)
    asc.set_flag(asc.HardEvent.MTE2_V, 0)
    asc.wait_flag(asc.HardEvent.MTE2_V, 0)
    asc.adds(a, a, 1.0, N)
    asc.set_flag(asc.HardEvent.V_MTE3, 0)
    asc.wait_flag(asc.HardEvent.V_MTE3, 0)
    asc.data_copy(window(z), a, N)


def _put_in(run: Run) -> list[str]:
    return [
        item.event.name if item.event is not None else f"barrier {item.pipe.name}"
        for item in items(run)
        if item.inserted and item.name != "wait_flag"
    ]


def _floats() -> np.ndarray[Any, Any]:
    return np.arange(N, dtype=np.float32)


def test_tensors_that_the_compiler_places_are_ordered() -> None:
    x, y, z = _floats(), _floats() + 1, np.zeros(N, np.float32)
    run = sim.launch(automatic, x, y, z)
    assert run.findings == []
    np.testing.assert_array_equal(z, x + y + (x + y)[0])
    # a and b come before V reads them; V and the scalar unit meet around get_value, which orders add and adds as well;
    # V comes before the store; all pipes end before the kernel does
    assert _put_in(run) == ["MTE2_V", "MTE2_V", "V_S", "S_V", "V_MTE3", "barrier S"]


def test_the_kernels_own_flags_are_taken_out() -> None:
    """On tensors that the kernel places, the pass puts barriers of V only: the copies race with V, as on the device."""
    x, z = _floats(), np.zeros(N, np.float32)
    run = sim.launch(asc.jit(insert_sync=True)(by_hand), x, z)
    assert _put_in(run) == [*["barrier V"] * 3, "barrier S"]
    assert {finding.code for finding in run.findings} >= {"race-raw"}
    plain = sim.launch(asc.jit(by_hand), x, z)
    assert plain.findings == []


def test_a_tensor_that_is_loaded_and_stored_is_told() -> None:
    @asc.jit
    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        a = asc.LocalTensorAuto(asc.float32, N)
        asc.data_copy(a, window(x), N)
        asc.adds(a, a, 1.0, N)
        asc.data_copy(window(z), a, N)

    run = sim.launch(kernel, _floats(), np.zeros(N, np.float32))
    assert [finding.code for finding in run.findings] == ["insert-sync-event"]


def test_nothing_orders_the_one_who_overwrites() -> None:
    @asc.jit
    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        a = asc.LocalTensorAuto(asc.float32, N)
        b = asc.LocalTensorAuto(asc.float32, N)
        for part in range(2):
            asc.data_copy(a, window(x)[part * N :], N)
            asc.adds(b, a, 1.0, N)
            asc.data_copy(window(z)[part * N :], b, N)

    x = np.arange(2 * N, dtype=np.float32)
    run = sim.launch(kernel, x, np.zeros_like(x))
    assert {finding.code for finding in run.findings} == {"race-war", "race-waw"}


def test_the_kernel_may_say_no() -> None:
    x, y, z = _floats(), _floats(), np.zeros(N, np.float32)
    run = sim.launch(asc.jit(insert_sync=False)(automatic.function), x, y, z)
    assert {finding.kind for finding in run.findings} == {"RACE"}


@pytest.mark.parametrize("shape", [0, [4, 0], "4"])
def test_a_shape_that_is_none(shape: Any) -> None:
    def kernel() -> None:
        asc.LocalTensorAuto(asc.float32, shape)

    with pytest.raises(sim.KernelError, match="LocalTensorAuto"):
        sim.launch(kernel)
