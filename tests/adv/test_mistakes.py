"""Mistakes with Matmul objects: what is said, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.errors import DeadlockError, KernelError, UnsupportedError
from tests.adv.kit import (
    GM,
    ND,
    WORKSPACE,
    Case,
    cube_only,
    mix,
    operands,
    product,
    stored,
    tensor,
    tiling_of,
    types_of,
)

CASE = Case(64, 64, 64, bias=True, base=(32, 32, 32))
KIND = asc.adv.MatmulType


def attempt(
    act: Any, *, types: list[Any] | None = None, tiling: Any = None, **options: Any
) -> KernelError:
    """The error of a cube-only kernel that acts on an object (mm, a, b, bias, c) before it computes."""

    @asc.jit(matmul_cube_only=True, auto_sync=False)
    def kernel(a: Any, b: Any, bias: Any, c: Any, given: Any) -> None:
        pipe = asc.TPipe()
        mm = asc.adv.Matmul(*(types or types_of(CASE)))
        asc.adv.register_matmul(pipe, None, mm, given)
        act(mm, tensor(a), tensor(b), tensor(bias), tensor(c))

    a, b, bias = operands(CASE)
    with pytest.raises(KernelError) as caught:
        sim.launch(
            kernel, *stored(CASE, a, b), bias.astype(np.float32), np.zeros((64, 64), np.float32),
            tiling_of(CASE) if tiling is None else tiling, **options,
        )  # fmt: skip
    return caught.value


def _ready(mm: Any, a: Any, b: Any) -> None:
    mm.set_tensor_a(a)
    mm.set_tensor_b(b)


MISTAKES = {
    "no operand": (lambda mm, a, b, bias, c: mm.iterate_all(c), "set_tensor_a has not been called"),
    "transpose not announced": (
        lambda mm, a, b, bias, c: mm.set_tensor_a(a, True),
        "transpose is True, but the MatmulType says is_trans=False",
    ),
    "type of an operand": (
        lambda mm, a, b, bias, c: mm.set_tensor_a(bias),
        "set_tensor_a: bias is float32, the MatmulType says float16",
    ),
    "type of C": (
        lambda mm, a, b, bias, c: (_ready(mm, a, b), mm.iterate_all(a)),
        "iterate_all: a is float16, the MatmulType of C says float32",
    ),
    "atomic": (
        lambda mm, a, b, bias, c: (_ready(mm, a, b), mm.iterate_all(c, 4)),
        "en_atomic is 4; 0 plain, 1 add, 2 maximum, 3 minimum",
    ),
    "wait": (
        lambda mm, a, b, bias, c: mm.iterate_all(c, 0, True, False, True),
        "wait_iterate_all goes with sync=False",
    ),
    "ahead without workspace": (
        lambda mm, a, b, bias, c: (_ready(mm, a, b), mm.iterate(sync=False)),
        "call set_workspace with 4096 elements of float32 before",
    ),
    "size": (lambda mm, a, b, bias, c: mm.set_tail(0), "single_m must be at least 1, got 0"),
    "scale": (lambda mm, a, b, bias, c: mm.set_quant_scalar(0.5), "takes the bits of a float32"),
    "callback": (
        lambda mm, a, b, bias, c: mm.set_self_define_data(0),
        "callback functions is not simulated",
    ),
    "nothing ahead": (
        lambda mm, a, b, bias, c: (_ready(mm, a, b), mm.get_tensor_c(sync=False)),
        "needs an iterate\\(sync=False\\) before",
    ),
    "ub on a cube core": (
        lambda mm, a, b, bias, c: mm.set_tensor_a(
            asc.LocalTensor(asc.float16, asc.TPosition.VECIN, 0, 64)
        ),
        "is in UB, the MatmulType says GM",
    ),
}


@pytest.mark.parametrize(("act", "text"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_told(act: Any, text: str) -> None:
    error = attempt(act)
    assert __import__("re").search(text, str(error)), str(error)
    assert error.finding.file == __file__


def test_scales_that_are_missing_are_told() -> None:
    kinds = [KIND(GM, ND, asc.int8), KIND(GM, ND, asc.int8), KIND(GM, ND, asc.float16)]

    def act(mm: Any, a: Any, b: Any, bias: Any, c: Any) -> None:
        eights = [one.reinterpret_cast(asc.int8) for one in (a, b)]
        _ready(mm, *eights)
        mm.iterate_all(c)

    assert "C is float16 and the sums are int32, which takes a scale" in str(
        attempt(act, types=kinds)
    )


def test_a_tiling_that_failed_is_told() -> None:
    error = attempt(lambda *_: None, tiling=asc.adv.TCubeTiling())
    assert "single_core_m of the tiling is 0; did get_tiling return 0?" in str(error)


def test_blocks_that_do_not_fit_are_told() -> None:
    tiling = tiling_of(CASE)
    tiling.base_m, tiling.base_n, tiling.base_k = 256, 256, 64
    tiling.single_core_m = tiling.single_core_n = 64
    error = attempt(lambda mm, a, b, bias, c: (_ready(mm, a, b), mm.iterate_all(c)), tiling=tiling)
    assert error.finding.kind == "CAPACITY"
    assert "L0C" in str(error)


def test_base_sizes_that_no_fractal_fits_are_told() -> None:
    tiling = tiling_of(CASE)
    tiling.base_k = 24
    error = attempt(lambda mm, a, b, bias, c: (_ready(mm, a, b), mm.iterate_all(c)), tiling=tiling)
    assert "base_k is 24; for float16 operands as they are set it must be a multiple of 16" in str(
        error
    )


def test_a_workspace_that_is_too_small_is_told() -> None:
    case = Case(64, 64, 64, base=(32, 32, 32))

    @asc.jit(auto_sync=False)
    def kernel(a: Any, b: Any, workspace: Any, tiling: Any) -> None:
        pipe = asc.TPipe()
        mm = asc.adv.Matmul(*types_of(case, asc.TPosition.VECIN)[:3])
        asc.adv.register_matmul(pipe, workspace, mm, tiling)
        buffer = asc.TBuf(asc.TPosition.VECCALC)
        pipe.init_buffer(buffer, 16384)
        mm.set_tensor_a(tensor(a))
        mm.set_tensor_b(tensor(b))
        mm.iterate_all(buffer.get(asc.float32))

    a, b, _ = operands(case)
    with pytest.raises(
        KernelError, match=r"the workspace has 4096 bytes, 2048 for each of 2 vector cores"
    ):
        sim.launch(kernel, *stored(case, a, b), np.zeros(4096, np.uint8), tiling_of(case))


def test_a_vector_core_that_never_registers_is_told() -> None:
    @asc.jit(auto_sync=False)
    def kernel(workspace: Any, tiling: Any) -> None:
        pipe = asc.TPipe()
        if asc.ascend_is_aiv() and asc.get_sub_block_idx() == 1:
            return
        mm = asc.adv.Matmul(*types_of(CASE))
        asc.adv.register_matmul(pipe, workspace, mm, tiling)

    with pytest.raises(DeadlockError, match=r"core0\.aiv1 has ended without one"):
        sim.launch(kernel, np.zeros(WORKSPACE, np.uint8), tiling_of(CASE))


def test_a_kernel_without_a_cube_core_is_told() -> None:
    with pytest.raises(KernelError, match="a AIV_ONLY kernel has no cube core"):
        product(mix, CASE, kernel_type="AIV_ONLY")


def test_the_fifth_object_is_told() -> None:
    @asc.jit(auto_sync=False)
    def kernel(workspace: Any, tiling: Any) -> None:
        pipe = asc.TPipe()
        for _ in range(5):
            asc.adv.register_matmul(pipe, workspace, asc.adv.Matmul(*types_of(CASE)), tiling)

    with pytest.raises(KernelError, match="a kernel may have 4 Matmul objects"):
        sim.launch(kernel, np.zeros(WORKSPACE, np.uint8), tiling_of(CASE))


def test_a_result_that_nobody_waited_for_is_a_race() -> None:
    """The vector core reads C although iterate_all with sync=False says nothing about when it is there."""

    @asc.jit(auto_sync=False)
    def kernel(a: Any, b: Any, workspace: Any, tiling: Any, c: Any) -> None:
        pipe = asc.TPipe()
        mm = asc.adv.Matmul(*types_of(CASE)[:3])
        asc.adv.register_matmul(pipe, workspace, mm, tiling)
        buffer = asc.TBuf(asc.TPosition.VECCALC)
        pipe.init_buffer(buffer, 16384)
        mm.set_tensor_a(tensor(a))
        mm.set_tensor_b(tensor(b))
        mm.iterate_all(tensor(c), 0, sync=False)
        asc.data_copy(buffer.get(asc.float32), tensor(c), 4096)

    a, b, _ = operands(CASE)
    c = np.zeros((64, 64), np.float32)
    run = sim.launch(kernel, *stored(CASE, a, b), np.zeros(WORKSPACE, np.uint8), tiling_of(CASE), c,
                     kernel_type="MIX_AIC_1_1")  # fmt: skip
    assert {finding.kind for finding in run.findings} == {"RACE"}, run.findings


def test_messages_are_not_recorded() -> None:
    _, _, run = product(mix, CASE)
    with pytest.raises(UnsupportedError, match="messages between cores cannot be recorded"):
        run.recording()
    _, _, run = product(cube_only, CASE)
    assert run.recording().replay("ascend910b1").cycles == run.cycles


def test_commands_carry_the_line_that_gave_them() -> None:
    """The cube core's instructions stand at the vector core's call, not inside register_matmul."""
    _, _, run = product(mix, CASE)
    [core] = [core for core in run.log.cores if core.name == "core0.aic"]
    lines = {
        run.log.sites[item.site].line for item in core.items if item.name in ("mmad", "fixpipe")
    }
    [line] = lines
    source = Path(__file__).with_name("kit.py").read_text(encoding="utf-8").splitlines()
    assert "mm.iterate_all(out)" in source[line - 1]
