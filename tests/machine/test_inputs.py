"""Inputs without a result that the hardware promises, and instructions that it only approximates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ascend_sim import asc
from ascend_sim.errors import Finding
from tests.machine.kit import A, B, C, hand_over, local, toy_run, window

FUNCTIONS: dict[str, Callable[..., None]] = {
    "ln": asc.ln,
    "sqrt": asc.sqrt,
    "rsqrt": asc.rsqrt,
    "reciprocal": asc.reciprocal,
}


def findings(name: str, values: np.ndarray, **form: Any) -> list[Finding]:
    """What a run says about the inputs of one instruction over these values."""
    dtype = {"float16": asc.float16, "float32": asc.float32}[values.dtype.name]

    def kernel(x: Any) -> None:
        src = local(A, values.size, dtype)
        asc.data_copy(src, window(x), values.size)
        hand_over(asc.HardEvent.MTE2_V)
        FUNCTIONS[name](local(B, values.size, dtype), src, **(form or {"count": values.size}))

    found = toy_run(kernel, values).findings
    return [finding for finding in found if finding.code == "undefined-input"]


@pytest.mark.parametrize(
    ("name", "outside", "inside"),
    [
        ("ln", [0.0, -0.0, -1.0, -np.inf], [1e-3, np.inf, np.nan]),
        ("sqrt", [-1.0, -np.inf], [0.0, -0.0, np.inf, np.nan]),
        ("rsqrt", [0.0, -0.0, -1.0], [1e-3, np.inf, np.nan]),
        ("reciprocal", [0.0, -0.0], [-1.0, np.inf, np.nan]),
    ],
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_what_has_no_result(
    name: str, outside: list[float], inside: list[float], dtype: Any
) -> None:
    for value in outside:
        values = np.ones(64, dtype)
        values[[3, 60]] = value
        (finding,) = findings(name, values)
        assert (finding.kind, finding.core, finding.pipe) == ("INFO", "core0.aiv0", "V")
        assert f"{name}({value:g}) is not specified" in finding.message
        assert "2 such elements" in finding.message
    for value in inside:
        assert findings(name, np.full(64, value, dtype)) == []


def test_lanes_outside_the_mask_do_not_count() -> None:
    values = np.zeros(128, np.float32)
    values[:64] = values[64:80] = 2.0
    one = {"repeat_times": 1, "repeat_params": asc.UnaryRepeatParams(1, 1, 8, 8)}
    assert findings("ln", values, mask=64, **one) == []
    assert findings("ln", values, count=80) == []
    (finding,) = findings("ln", values, count=81)
    assert "one such element" in finding.message
    assert findings("ln", values, mask=[1 << 3, 0], **one | {"repeat_times": 2}) == []


def test_without_numbers_nobody_looks() -> None:
    def kernel() -> None:
        asc.duplicate(local(A, 64), 0.0, 64)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.ln(local(B, 64), local(A, 64), 64)

    assert [f.code for f in toy_run(kernel).findings] == ["undefined-input"]
    assert toy_run(kernel, numerics="off").findings == []
    assert toy_run(kernel, checks="off").findings == []


@pytest.mark.parametrize("name", ["rsqrt", "reciprocal"])
def test_an_approximation_is_named_once_for_its_line(name: str) -> None:
    def kernel() -> None:
        asc.duplicate(local(A, 64), 2.0, 64)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        for _ in range(3):
            FUNCTIONS[name](local(B, 64), local(A, 64), 64)
            FUNCTIONS["sqrt"](local(C, 64), local(A, 64), 64)

    (finding,) = [f for f in toy_run(kernel).findings if f.kind == "INFO"]
    assert (finding.code, finding.hits) == ("low-precision", 3)
    assert "approximates" in finding.message and "div" in finding.message
