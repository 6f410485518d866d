"""`with ….iterate() as n:` under asc.jit: a loop with the source's own lines, names and closures."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.errors import KernelError
from ascend_sim.lang.iteration import with_loops
from tests.adv.kit import Case, body, product


class Three:
    """Something that iterates three times."""

    def iterate(self, first: int = 0) -> Iterator[int]:
        return iter(range(first, first + 3))

    def __enter__(self) -> int:
        return 7

    def __exit__(self, *_: object) -> None:
        return None


outer = 100


def loops(steps: Three, scale: int = 2, *, start: int = 1) -> list[int]:
    """What it says."""
    seen = []
    with steps.iterate(start) as count:
        if count != start + 1:
            seen.append(count * scale + outer)
            with steps.iterate() as _:
                seen.append(-1)
    with steps as once:
        seen.append(once)
    return seen


def test_the_body_runs_for_each_round() -> None:
    made = with_loops(loops)
    assert made is not loops
    assert made(Three()) == [102, -1, -1, -1, 106, -1, -1, -1, 7]
    assert made(Three(), 1, start=0) == [100, -1, -1, -1, 102, -1, -1, -1, 7]
    assert (made.__name__, made.__doc__, made.__defaults__) == ("loops", loops.__doc__, (2,))


def test_closures_and_returns() -> None:
    limit = 1

    def inner(steps: Three) -> int:
        with steps.iterate() as count:
            if count > limit:
                return count
        return -1

    assert with_loops(inner)(Three()) == 2
    limit = 5
    assert with_loops(inner)(Three()) == -1


def test_lines_are_those_of_the_source() -> None:
    def fails(steps: Three) -> None:
        with steps.iterate() as _:
            raise ValueError("here")

    first = fails.__code__.co_firstlineno
    with pytest.raises(ValueError, match="here") as caught:
        with_loops(fails)(Three())
    frame = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (frame.filename, frame.lineno) == (__file__, first + 2)


def test_a_function_without_such_a_loop_is_left_alone() -> None:
    def plain(steps: Three) -> None:
        with steps:
            steps.iterate()

    assert with_loops(plain) is plain


def test_without_jit_the_statement_is_refused() -> None:
    with pytest.raises(KernelError, match=r"this one has no asc\.jit"):
        product(body, Case(32, 32, 32), blocks=True, kernel_type="MIX_AIC_1_2")


@asc.jit
def helper(mm: Any, tiling: Any, workspace: Any) -> None:
    asc.adv.register_matmul(asc.get_tpipe_ptr(), workspace, mm, tiling)


def test_a_kernel_that_registers_in_a_helper_is_a_mix_kernel() -> None:
    @asc.jit
    def kernel(workspace: Any, tiling: Any) -> None:
        asc.TPipe()
        kind = asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, asc.float16)
        out = asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, asc.float32)
        helper(asc.adv.Matmul(kind, kind, out), tiling, workspace)

    @asc.jit
    def other(workspace: Any) -> None:
        asc.TPipe()

    tiling = asc.adv.TCubeTiling(
        single_core_m=16, single_core_n=16, single_core_k=16, base_m=16, base_n=16, base_k=16
    )
    run = sim.launch(kernel, np.zeros(1 << 16, np.uint8), tiling)
    assert {core.name for core in run.log.cores} == {"core0.aic", "core0.aiv0", "core0.aiv1"}
    assert run.findings == []
    run = sim.launch(other, np.zeros(64, np.uint8))
    assert {core.name for core in run.log.cores} == {"core0.aiv0"}
