"""Who made the numbers wrong: one seeded fault a kernel, its line by name, and silence about kernels without one."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.blame import watch
from ascend_sim.departed import _whole
from ascend_sim.errors import Finding
from ascend_sim.stage import Rehearsal, rehearsing
from ops import Context, find_operator

E, V = asc.HardEvent, asc.PipeID.PIPE_V
F16, F32, BF16 = asc.float16, asc.float32, asc.bfloat16
NARROW, WIDE = asc.RoundMode.CAST_RINT, asc.RoundMode.CAST_NONE
N = 64


def ub(dtype: asc.DataType, place: int) -> asc.LocalTensor:
    return asc.LocalTensor(dtype, asc.TPosition.VECCALC, 1024 * place, N)


def window(address: asc.GlobalAddress) -> asc.GlobalTensor:
    tensor = asc.GlobalTensor()
    tensor.set_global_buffer(address)
    return tensor


def hand_over(event: asc.HardEvent) -> None:
    asc.set_flag(event, 0)
    asc.wait_flag(event, 0)


def on_v(body: Any) -> Any:
    """A kernel that loads x, lets `body` make float32 numbers in UB of it, and stores them."""

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        wide = ub(F32, 0)
        asc.data_copy(wide, window(x), N)
        hand_over(E.MTE2_V)
        result = body(wide)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z), result, N)

    return kernel


def told(body: Any, x: Any, **options: Any) -> list[Finding]:
    x = np.broadcast_to(np.asarray(x, np.float32), N).copy()
    found = sim.blame(on_v(body), x, np.zeros(N, np.float32), chip="toy", **options)
    assert all(one.kind == "INFO" for one in found.run.findings)
    return found.findings


def line_of(function: Any, mark: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return next(first + n for n, line in enumerate(lines) if line.rstrip().endswith(f"# {mark}"))


NEAR = 100 + 0.1 * np.random.default_rng(0).normal(size=N)
AROUND = np.random.default_rng(1).normal(size=N)


def cancels(wide: Any, dtype: asc.DataType) -> Any:
    narrow, result = ub(dtype, 1), ub(F32, 2)
    if dtype is F32:
        asc.adds(narrow, wide, 0.0, N)
        asc.pipe_barrier(V)
    else:
        asc.cast(narrow, wide, NARROW, N)  # rounded
        asc.pipe_barrier(V)
        asc.cast(wide, narrow, WIDE, N)
        asc.pipe_barrier(V)
        narrow = wide
    asc.adds(result, narrow, -100.0, N)  # here
    asc.pipe_barrier(V)
    return result


def test_a_difference_of_rounded_numbers() -> None:
    (found,) = told(lambda wide: cancels(wide, F16), NEAR)
    assert (found.kind, found.code) == ("NUMERIC", "precision-loss")
    assert found.line == line_of(cancels, "here") and found.pipe == "V"
    assert "Numbers of up to 100.2 all but cancel out" in found.message
    assert "it reaches z: 6" in found.message and "of 64 elements" in found.message
    assert told(lambda wide: cancels(wide, F32), NEAR) == []


def through(wide: Any, dtype: asc.DataType, scale: float) -> Any:
    narrow, result = ub(dtype, 1), ub(F32, 2)
    asc.muls(wide, wide, scale, N)
    asc.pipe_barrier(V)
    asc.cast(narrow, wide, NARROW, N)  # here
    asc.pipe_barrier(V)
    asc.cast(result, narrow, WIDE, N)
    asc.pipe_barrier(V)
    asc.muls(result, result, 1 / scale, N)
    asc.pipe_barrier(V)
    return result


@pytest.mark.parametrize("dtype", [F16, BF16])
def test_a_cast_that_underflows(dtype: asc.DataType) -> None:
    found = told(lambda wide: through(wide, dtype, 2.0**-22), AROUND)
    if dtype is BF16:  # it has the exponents of float32
        assert found == []
        return
    assert [one.code for one in found] == ["cast-underflow"]
    assert found[0].line == line_of(through, "here")
    assert "none below 6e-08" in found[0].message and "Scale it up first" in found[0].message
    assert told(lambda wide: through(wide, dtype, 2.0**-8), AROUND) == []


def test_a_few_small_numbers_beside_large_ones_are_no_loss() -> None:
    """A softmax's tail becomes 0 in float16, and nobody misses it."""
    spread = np.exp(-np.arange(N) / 2.0)
    assert told(lambda wide: through(wide, F16, 1.0), spread) == []


def overflows(wide: Any, scale: float) -> Any:
    narrow, result = ub(F16, 1), ub(F32, 2)
    asc.muls(wide, wide, scale, N)
    asc.pipe_barrier(V)
    asc.cast(narrow, wide, NARROW, N)  # here
    asc.pipe_barrier(V)
    asc.reciprocal(narrow, narrow, N)
    asc.pipe_barrier(V)
    asc.cast(result, narrow, WIDE, N)
    asc.pipe_barrier(V)
    return result


def test_a_cast_that_overflows_and_leaves_no_infinity() -> None:
    """1 / infinity is 0: what is wrong in the end is a finite number."""
    found = told(lambda wide: overflows(wide, 1e5), 2.0)
    assert [(one.kind, one.code) for one in found] == [
        ("INFO", "infinity-born"), ("NUMERIC", "cast-overflow"),
    ]  # fmt: skip
    assert found[1].line == line_of(overflows, "here")
    assert "float16 ends at 65504" in found[1].message
    assert told(lambda wide: overflows(wide, 1e2), 2.0) == []


def sums(wide: Any, dtype: asc.DataType, times: int) -> Any:
    narrow, total, result = ub(dtype, 1), ub(dtype, 2), ub(F32, 3)
    if dtype is F16:
        asc.cast(narrow, wide, NARROW, N)
        asc.pipe_barrier(V)
    else:
        asc.adds(narrow, wide, 0.0, N)
        asc.pipe_barrier(V)
    asc.duplicate(total, 0.0, N)
    asc.pipe_barrier(V)
    for _ in range(times):
        asc.add(total, total, narrow, N)  # here
        asc.pipe_barrier(V)
    if dtype is F32:
        return total
    asc.cast(result, total, WIDE, N)
    asc.pipe_barrier(V)
    return result


def test_sums_in_half_precision() -> None:
    (found,) = told(lambda wide: sums(wide, F16, 300), 0.1)
    assert (found.code, found.line) == ("half-accumulation", line_of(sums, "here"))
    assert "Accumulate in float32" in found.message
    assert told(lambda wide: sums(wide, F16, 8), 0.1) == []
    assert told(lambda wide: sums(wide, F32, 300), 0.1) == []


def test_what_never_reaches_the_output_is_no_loss() -> None:
    def body(wide: Any) -> Any:
        lost, result = ub(F16, 1), ub(F32, 2)
        asc.muls(result, wide, 1e6, N)
        asc.pipe_barrier(V)
        asc.cast(lost, result, NARROW, N)
        asc.pipe_barrier(V)
        asc.adds(result, wide, 1.0, N)
        asc.pipe_barrier(V)
        return result

    assert [(one.kind, one.code) for one in told(body, 1.0)] == [("INFO", "infinity-born")]


def branches(wide: Any, wrong: bool) -> Any:
    result = ub(F32, 2)
    asc.muls(result, wide, 2.0, N)
    asc.pipe_barrier(V)
    half = result[N // 2 :]
    asc.muls(half, wide[N // 2 :], 3.0 if wrong else 2.0, N // 2)  # here
    asc.pipe_barrier(V)
    return result


def test_the_line_that_only_wrong_elements_come_through() -> None:
    def kernel(wrong: bool) -> Any:
        def body(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
            wide = ub(F32, 0)
            asc.data_copy(wide, window(x), N)
            hand_over(E.MTE2_V)
            result = branches(wide, wrong)
            hand_over(E.V_MTE3)
            asc.data_copy(window(z), result, N // 2)
            asc.data_copy(window(z)[N // 2 :], result[N // 2 :], N // 2)

        return body

    x = AROUND.astype(np.float32)
    right = {"z": 2 * x}
    found = sim.blame(kernel(True), x, np.zeros_like(x), chip="toy", reference=right).findings
    assert [one.code for one in found] == ["output-differs"]
    assert found[0].line == line_of(branches, "here")
    assert "32 of 64 elements are not what the reference says, all from element 32 on" in found[0].message  # fmt: skip
    assert "only wrong elements come through muls at" in found[0].message
    assert "in float32 throughout it would be wrong too" in found[0].message
    assert sim.blame(kernel(False), x, np.zeros_like(x), chip="toy", reference=right).findings == []


def test_a_reference_tells_lost_digits_from_another_calculation() -> None:
    found = told(lambda wide: cancels(wide, F16), NEAR, reference={"z": NEAR - 100})
    assert [one.code for one in found] == ["precision-loss", "output-differs"]
    assert "it is precision that is missing" in found[1].message


def test_an_element_that_nothing_wrote() -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        asc.duplicate(ub(F32, 0), 1.0, N)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z), ub(F32, 0), N // 2)

    z = np.zeros(N, np.float32)
    found = sim.blame(kernel, z, chip="toy", reference={"z": np.ones(N)}).findings
    assert "No instruction has written it" in found[0].message


def test_references_that_fit_nothing() -> None:
    x = np.ones(N, np.float32)
    with pytest.raises(sim.ConfigError, match=r"no argument of .*did you mean 'z'"):
        told(lambda wide: wide, x, reference={"zz": x})
    with pytest.raises(sim.ConfigError, match=r"the reference of z has shape \[3\]"):
        told(lambda wide: wide, x, reference={"z": np.ones(3)})


@pytest.mark.parametrize(
    ("operator", "options"),
    [
        ("rope_grad", {"seq": "5,1,3", "hidden": "256"}),
        ("rope_grad", {"seq": "5,1,3", "hidden": "256", "variant": "tuned"}),
        pytest.param(
            "laser_attention_grad", {"seq": "256", "heads": "1"}, marks=pytest.mark.slow
        ),
    ],
)  # fmt: skip
def test_operators_lose_nothing_and_are_seen_throughout(operator: str, options: Any) -> None:
    """Every element of every output has its second value, and none departs from it."""
    seen: dict[str, float] = {}

    def look(rehearsal: Rehearsal) -> None:
        found = watch(rehearsal)
        assert found.findings == []
        for name in rehearsal.run.outputs.named:
            address = rehearsal.run.addresses[name]
            known = found.shadow.in_the_end(_whole(name, address), address.buffer.data)
            if known is not None:
                seen[name] = float(np.isfinite(known[0]).mean())

    with rehearsing(look):
        find_operator(operator).run(options, Context(cores=2), 0, None)
    outputs = {name: share for name, share in seen.items() if name.endswith("grad")}
    assert outputs and all(share == 1.0 for share in outputs.values()), seen
