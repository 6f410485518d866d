"""What a kernel leaves on in the core for the next one, and calls that no core of the kernel does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ascend_sim import asc
from ascend_sim.errors import HostError, OperandError
from tests.machine.kit import local, toy_run


def codes(kernel: Callable[[], None], **options: object) -> list[str]:
    return [f"{f.kind} {f.code}" for f in toy_run(kernel, **options).findings]


@pytest.mark.parametrize(
    ("setting", "code"),
    [
        (lambda: asc.set_atomic_add(asc.float32), "STATE atomic-left-on"),
        (lambda: asc.set_atomic_max(asc.float16), "STATE atomic-left-on"),
        (asc.set_mask_count, "STATE counter-mode-left-on"),
    ],
)
def test_a_setting_that_outlives_the_kernel(setting: Callable[[], None], code: str) -> None:
    def left() -> None:
        setting()

    def taken_back() -> None:
        setting()
        asc.set_atomic_none()
        asc.set_mask_norm()

    def reset() -> None:
        setting()
        asc.TPipe()

    assert codes(left) == [code]
    assert codes(taken_back) == []
    assert codes(reset) == []


def test_a_vector_call_where_no_vector_core_runs() -> None:
    def kernel() -> None:
        asc.duplicate(local(0, 64), 1.0, 64)

    assert codes(kernel, kernel_type="AIC_ONLY") == ["STATE call-without-effect"]
    assert codes(kernel, kernel_type="MIX_AIC_1_0") == ["STATE call-without-effect"]
    assert codes(kernel, kernel_type="MIX_AIC_1_2") == []  # its vector cores do it
    assert codes(kernel, kernel_type="AIV_ONLY") == []


def test_a_barrier_within_one_line_of_a_loop() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        gm = asc.GlobalTensor()
        gm.set_global_buffer(x)
        for part in range(2):
            asc.data_copy(local(0, 64), gm[64 * part :], 64)

    (finding,) = toy_run(kernel, np.zeros(128, np.float32)).findings
    assert finding.code == "race-waw"
    line = finding.line
    assert (
        f"put pipe_barrier(PIPE_MTE2) behind line {line}, before it runs again" in finding.message
    )


@pytest.mark.parametrize(
    ("use", "code", "cure"),
    [
        (lambda t: t[0] > 0, "tensor-as-number", "get_value"),
        (lambda t: t + t, "tensor-as-number", "an instruction"),
        (lambda t: 2.0 * t, "tensor-as-number", "an instruction"),
        (lambda t: t.__setitem__(0, 1.0), "tensor-assignment", "set_value"),
    ],
)
def test_a_tensor_is_no_number(use: Callable[[object], object], code: str, cure: str) -> None:
    def kernel() -> None:
        use(local(0, 64))

    with pytest.raises(OperandError, match=cure) as caught:
        toy_run(kernel)
    assert caught.value.finding.code == code


def test_a_store_into_an_array_that_is_read_only() -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        gm = asc.GlobalTensor()
        gm.set_global_buffer(z)
        asc.duplicate(local(0, 64), 1.0, 64)
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        asc.data_copy(gm, local(0, 64), 64)

    z = np.zeros(64, np.float32)
    z.flags.writeable = False
    with pytest.raises(
        HostError,
        match="kernel writes into an array that numpy holds read-only \\(z\\): pass a copy",
    ):
        toy_run(kernel, z)


@pytest.mark.parametrize(
    ("leave", "clean", "code", "text"),
    [
        (lambda: asc.set_vector_mask(0, 0xFF), asc.reset_mask, "mask-left-narrow", "0x0, 0xff"),
        (asc.set_mask_count, asc.set_mask_norm, "counter-mode-left-on", "set_mask_norm()"),
        (
            lambda: asc.set_atomic_add(asc.float32), asc.set_atomic_none, "atomic-left-on", "set at tests/machine",
        ),
    ],
)  # fmt: skip
def test_registers_left_changed(
    leave: Callable[[], None], clean: Callable[[], None], code: str, text: str
) -> None:
    def kernel(cleanly: bool) -> None:
        leave()  # leave
        if cleanly:
            clean()

    (finding,) = toy_run(kernel, False).findings
    assert (finding.kind, finding.code) == ("STATE", code)
    assert finding.line > 0
    assert text in finding.message
    assert toy_run(kernel, True).findings == []


def test_a_mask_that_a_call_itself_narrows_is_nothing_left_behind() -> None:
    def kernel() -> None:
        asc.duplicate(local(0, 64), 1.0, 64)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.adds(local(0, 64), local(0, 64), 1.0, 8, 1, asc.UnaryRepeatParams(1, 1, 8, 8))

    assert toy_run(kernel).findings == []


@pytest.mark.parametrize("left", [True, False])
def test_hf32_mode_left_on(left: bool) -> None:
    def kernel() -> None:
        asc.set_hf32_mode(True)
        if not left:
            asc.set_hf32_mode(False)

    codes = [finding.code for finding in toy_run(kernel, kernel_type="AIC_ONLY").findings]
    assert codes == (["hf32-left-on"] if left else [])
