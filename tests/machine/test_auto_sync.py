"""Automatic synchronisation: barriers of V, flags around scalar accesses, nothing else; all marked as inserted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.errors import ConfigError
from ascend_sim.run import Run
from tests.machine.kit import (
    A,
    B,
    C,
    E,
    V,
    hand_over,
    instructions,
    items,
    kinds,
    line_of,
    local,
    toy_run,
    window,
)

N = 256


def floats(count: int = N) -> np.ndarray[Any, Any]:
    return np.arange(count, dtype=np.float32)


def inserted(run: Run) -> list[tuple[str, str]]:
    """What was put in: pipe and name or event, in program order."""
    return [
        (item.pipe.name, item.event.name if item.event is not None else item.name)
        for item in items(run)
        if item.inserted
    ]


def chain(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
    """Four dependent vector instructions, without a barrier."""
    a, b, c = local(A, N), local(B, N), local(C, N)
    asc.data_copy(a, window(x), N)
    hand_over(E.MTE2_V)
    asc.adds(b, a, 1.0, N)
    asc.mul(c, b, b, N)
    asc.add(a, c, b, N)
    asc.muls(a, a, 2.0, N)
    hand_over(E.V_MTE3)
    asc.data_copy(window(z), a, N)


def test_dependent_vector_instructions_get_barriers() -> None:
    z = np.zeros(N, np.float32)
    run = toy_run(chain, floats(), z, auto_sync=True)
    b = floats() + 1
    np.testing.assert_array_equal(z, (b * b + b) * 2)
    assert run.findings == []
    assert inserted(run) == [("V", "pipe_barrier")] * 3
    sites = [run.log.sites[item.site].line for item in items(run, "V", "pipe_barrier")]
    assert sites == [line_of(chain, text) for text in ("asc.mul(", "asc.add(", "asc.muls(")]


def test_without_it_the_same_kernel_is_wrong() -> None:
    z = np.zeros(N, np.float32)
    run = toy_run(chain, floats(), z, auto_sync=False)
    b = floats() + 1
    assert not np.array_equal(z, (b * b + b) * 2)
    assert {kind for kind, _ in kinds(run)} >= {"RACE"}
    assert inserted(run) == []


def test_it_costs_what_the_same_barriers_by_hand_cost() -> None:
    def by_hand(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        a, b, c = local(A, N), local(B, N), local(C, N)
        asc.data_copy(a, window(x), N)
        hand_over(E.MTE2_V)
        asc.adds(b, a, 1.0, N)
        asc.pipe_barrier(V)
        asc.mul(c, b, b, N)
        asc.pipe_barrier(V)
        asc.add(a, c, b, N)
        asc.pipe_barrier(V)
        asc.muls(a, a, 2.0, N)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z), a, N)

    z = np.zeros(N, np.float32)
    automatic = toy_run(chain, floats(), z, auto_sync=True)
    manual = toy_run(by_hand, floats(), z, auto_sync=False)
    assert automatic.cycles == manual.cycles
    both = toy_run(by_hand, floats(), z, auto_sync=True)
    assert both.findings == []


def test_independent_instructions_get_none() -> None:
    def kernel() -> None:
        for part in range(4):
            asc.duplicate(local(A + 1024 * part, N), 1.0, N)
        for part in range(4):
            asc.duplicate(local(C + 1024 * part, N), 1.0, N)

    assert inserted(toy_run(kernel, auto_sync=True)) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            lambda t: asc.duplicate(t, 1.0, N), lambda t: asc.adds(local(C, N), t, 1.0, N), id="RAW"
        ),
        pytest.param(
            lambda t: asc.adds(local(C, N), t, 1.0, N), lambda t: asc.duplicate(t, 1.0, N), id="WAR"
        ),
        pytest.param(
            lambda t: asc.duplicate(t, 1.0, N), lambda t: asc.duplicate(t, 2.0, N), id="WAW"
        ),
    ],
)
def test_every_kind_of_dependence(first: Any, second: Any) -> None:
    def kernel() -> None:
        asc.duplicate(local(A, N), 0.0, N)
        hand_over(E.V_S)
        hand_over(E.S_V)
        first(local(A, N))
        second(local(A, N))

    assert toy_run(kernel, auto_sync=True).findings == []
    assert "RACE" in {kind for kind, _ in kinds(toy_run(kernel, auto_sync=False))}


def test_a_scalar_read_of_ub_waits_for_the_vector_unit() -> None:
    seen: list[float] = []

    def kernel() -> None:
        asc.duplicate(local(A, N), 3.0, N)
        seen.append(local(A, N).get_value(5))

    run = toy_run(kernel, auto_sync=True)
    assert seen == [3.0]
    assert inserted(run) == [("V", "V_S"), ("S", "V_S")]
    assert run.findings == []


def test_a_scalar_read_of_ub_waits_for_a_load() -> None:
    seen: list[float] = []

    def kernel(x: asc.GlobalAddress) -> None:
        asc.data_copy(local(A, N), window(x), N)
        seen.append(local(A, N).get_value(5))

    run = toy_run(kernel, floats(), auto_sync=True)
    assert seen == [5.0]
    assert inserted(run) == [("MTE2", "MTE2_S"), ("S", "MTE2_S")]
    assert run.findings == []


def test_a_scalar_write_is_seen_by_the_vector_unit_and_the_store() -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        asc.duplicate(local(A, N), 3.0, N)
        local(A, N).set_value(1, 7.0)
        asc.adds(local(C, N), local(A, N), 1.0, N)
        local(B, 8).set_value(0, 9.0)
        asc.data_copy(window(z)[N:], local(B, 8), 8)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z), local(C, N), N)

    z = np.zeros(N + 8, np.float32)
    run = toy_run(kernel, z, auto_sync=True)
    assert z[:3].tolist() == [4.0, 8.0, 4.0]
    assert z[N] == 9.0
    assert [entry for entry in inserted(run) if entry[1] != "pipe_barrier"] == [
        ("V", "V_S"), ("S", "V_S"), ("S", "S_V"), ("V", "S_V"), ("S", "S_MTE3"), ("MTE3", "S_MTE3"),
    ]  # fmt: skip
    assert "RACE" not in {kind for kind, _ in kinds(run)}


def test_a_scalar_read_and_then_a_write() -> None:
    def kernel() -> None:
        asc.duplicate(local(A, N), 3.0, N)
        local(A, N).get_value(0)
        asc.duplicate(local(A, N), 4.0, N)

    assert toy_run(kernel, auto_sync=True).findings == []


def test_it_never_orders_mte2_v_and_mte3() -> None:
    """That is the queues' or the kernel's job: the race stays, and is reported."""

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        asc.data_copy(local(A, N), window(x), N)
        asc.adds(local(C, N), local(A, N), 1.0, N)
        asc.data_copy(window(z), local(C, N), N)

    run = toy_run(kernel, floats(), np.zeros(N, np.float32), auto_sync=True)
    assert inserted(run) == []
    races = [finding.line for finding in run.findings if finding.kind == "RACE"]
    assert races == [line_of(kernel, "asc.adds"), line_of(kernel, "window(z)")]


# ---- who switches it on ---------------------------------------------------------------------


def dependent() -> None:
    asc.duplicate(local(A, N), 1.0, N)
    asc.adds(local(C, N), local(A, N), 1.0, N)


@pytest.mark.parametrize(
    ("kernel", "option", "on"),
    [
        pytest.param(dependent, None, False, id="a plain function"),
        pytest.param(asc.jit(dependent), None, True, id="asc.jit as it stands"),
        pytest.param(asc.jit()(dependent), None, True, id="asc.jit()"),
        pytest.param(
            asc.jit(auto_sync=False)(dependent), None, False, id="asc.jit(auto_sync=False)"
        ),
        pytest.param(asc.jit(auto_sync=True)(dependent), None, True, id="asc.jit(auto_sync=True)"),
        pytest.param(
            asc.jit(auto_sync=False)(dependent), True, True, id="the launch overrules off"
        ),
        pytest.param(asc.jit(dependent), False, False, id="the launch overrules on"),
    ],
)
def test_where_it_is_on(kernel: Any, option: bool | None, on: bool) -> None:
    run = toy_run(kernel, auto_sync=option)
    assert bool(inserted(run)) is on
    assert run.summary["options"]["auto_sync"] is on
    assert bool(run.findings) is not on


def test_an_option_that_jit_does_not_have() -> None:
    with pytest.raises(ConfigError, match="auto_sync"):
        asc.jit(autosync=True)


def test_a_kernel_called_outside_a_launch() -> None:
    with pytest.raises(ConfigError, match="launch it with dependent"):
        asc.jit(dependent)()


def test_launching_by_subscript() -> None:
    z = np.zeros(N, np.float32)
    run = asc.jit(chain)[1](floats(), z)
    b = floats() + 1
    np.testing.assert_array_equal(z, (b * b + b) * 2)
    assert run is None or isinstance(run, sim.Run)


def test_the_operators_shape_of_code_with_queues() -> None:
    """A tutorial's kernel: queues, dependent vector instructions, no barrier."""

    @asc.jit
    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress, tiles: int) -> None:
        pipe = asc.TPipe()
        source, target = asc.TQue(asc.TPosition.VECIN, 1), asc.TQue(asc.TPosition.VECOUT, 1)
        work = asc.TBuf()
        pipe.init_buffer(que=source, num=2, len=4 * N)
        pipe.init_buffer(que=target, num=2, len=4 * N)
        pipe.init_buffer(work, 4 * N)
        for tile in range(tiles):
            a = source.alloc_tensor(asc.float32)
            asc.data_copy(a, window(x)[tile * N :], N)
            source.enque(a)
            a, c, w = (
                source.deque(asc.float32),
                target.alloc_tensor(asc.float32),
                work.get(asc.float32),
            )
            asc.adds(w, a, 1.0, N)
            asc.mul(w, w, w, N)
            asc.add(c, w, a, N)
            source.free_tensor(a)
            target.enque(c)
            c = target.deque(asc.float32)
            asc.data_copy(window(z)[tile * N :], c, N)
            target.free_tensor(c)

    x, z = floats(4 * N), np.zeros(4 * N, np.float32)
    run = toy_run(kernel, x, z, 4)
    np.testing.assert_array_equal(z, (x + 1) * (x + 1) + x)
    assert run.findings == []
    # Two a tile, and one for the work buffer between two tiles.
    assert inserted(run) == [("V", "pipe_barrier")] * (2 * 4 + 3)
    assert len(instructions(run, "V")) == 12


# ---- what one insertion must not make it forget ---------------------------------------------


def test_a_barrier_of_v_does_not_order_the_scalar_unit() -> None:
    """The barrier orders the fill for V; the scalar read needs a flag for it all the same."""
    seen: list[float] = []

    def kernel() -> None:
        asc.duplicate(local(A, N), 3.0, N)
        asc.adds(local(C, N), local(A, N), 1.0, N)
        seen.append(local(A, N).get_value(5))

    run = toy_run(kernel, auto_sync=True)
    assert run.findings == []
    assert seen == [3.0]


def test_a_flag_to_one_pipe_does_not_order_another() -> None:
    """V and MTE3 both read what the scalar unit wrote."""

    def kernel(z: asc.GlobalAddress) -> None:
        for element in range(8):
            local(A, 8).set_value(element, 7.0)
        asc.adds(local(C, 8), local(A, 8), 1.0, 8)
        asc.data_copy(window(z), local(A, 8), 8)

    run = toy_run(kernel, np.zeros(8, np.float32), auto_sync=True)
    assert run.findings == []
    assert run.outputs["z"].tolist() == [7.0] * 8


def test_long_ago_is_not_forgotten() -> None:
    seen: list[float] = []

    def kernel() -> None:
        for part in range(4):
            asc.duplicate(local(A + 1024 * part, N), 3.0, N)
        for part in range(100):
            asc.duplicate(local(C + 256 * part, 64), 1.0, 64)
        seen.append(local(A, N).get_value(5))

    run = toy_run(kernel, auto_sync=True)
    assert run.findings == []
    assert seen == [3.0]
