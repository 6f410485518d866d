"""Products by Matmul objects, cube-only and mix: layouts, types, tails, bias, several cores; right and silent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.asc.lib import host
from ascend_sim.run import Run
from ascend_sim.trace import Kind
from isa.types import Pipe
from tests.adv.kit import (
    Case,
    check,
    cube_only,
    mix,
    operands,
    oracle,
    replace,
    stored,
    tensor,
    tiling_of,
    types_of,
)

KERNELS = {"cube_only": cube_only, "mix": mix}
TYPES = [asc.float16, asc.bfloat16, asc.float32, asc.int8]
BASE = (32, 32, 32)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("turn_a", [False, True], ids=["A", "At"])
@pytest.mark.parametrize("turn_b", [False, True], ids=["B", "Bt"])
def test_every_type_both_ways_round(dtype: Any, turn_a: bool, turn_b: bool) -> None:
    for shape in ((64, 64, 64), (50, 70, 90), (1, 70, 40), (33, 17, 65)):
        case = Case(*shape, dtype, turn_a=turn_a, turn_b=turn_b, bias=True, base=BASE)
        check(cube_only, case)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("blocks", [False, True], ids=["all", "blocks"])
@pytest.mark.parametrize("shape", [(64, 96, 64), (100, 60, 70), (1, 64, 200), (160, 16, 16)])
def test_both_kinds_of_kernel(name: str, blocks: bool, shape: tuple[int, int, int]) -> None:
    for bias in (False, True):
        case = Case(*shape, turn_b=True, bias=bias, base=BASE, cores=2 if name == "mix" else 1)
        check(KERNELS[name], case, blocks=blocks)


@pytest.mark.parametrize("name", KERNELS)
def test_several_cores_with_tails(name: str) -> None:
    blocks = 4
    cores = 2 * blocks if name == "mix" else blocks
    run = check(KERNELS[name], Case(301, 283, 120, bias=True, cores=cores), cores=blocks)
    started = {core.name for core in run.log.cores}
    assert len(started) == (3 * blocks if name == "mix" else blocks)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("which", ["nz_a", "nz_b", "nz_c"])
@pytest.mark.parametrize("turned", [False, True], ids=["plain", "turned"])
def test_fractal_layouts_in_gm(dtype: Any, which: str, turned: bool) -> None:
    for shape in ((64, 64, 64), (48, 80, 96), (40, 50, 70)):
        case = Case(*shape, dtype, turn_a=turned, turn_b=turned, base=BASE)
        check(cube_only, replace(case, **{which: True}))


@pytest.mark.parametrize(
    ("dtype", "out"),
    [(asc.float16, asc.float16), (asc.bfloat16, asc.bfloat16), (asc.float32, asc.float16)],
    ids=str,
)
def test_results_of_sixteen_bits(dtype: Any, out: Any) -> None:
    check(cube_only, Case(40, 50, 30, dtype, out, base=BASE))
    check(mix, Case(40, 50, 30, dtype, out, base=BASE, cores=2))


def test_a_bias_of_float16() -> None:
    check(cube_only, Case(40, 70, 30, bias=True, bias_type=asc.float16, base=BASE))


@given(
    m=st.integers(1, 150),
    n=st.integers(1, 150),
    k=st.integers(1, 150),
    base=st.tuples(*[st.sampled_from([32, 48, 64, 96])] * 2, st.sampled_from([32, 64, 96])),
    dtype=st.sampled_from(TYPES),
    turns=st.tuples(st.booleans(), st.booleans()),
    bias=st.booleans(),
    order=st.sampled_from([host.MatrixTraverse.FIRSTM, host.MatrixTraverse.FIRSTN]),
    name=st.sampled_from(sorted(KERNELS)),
    blocks=st.booleans(),
    unit_flags=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_any_shape(
    m: int,
    n: int,
    k: int,
    base: tuple[int, int, int],
    dtype: Any,
    turns: tuple[bool, bool],
    bias: bool,
    order: Any,
    name: str,
    blocks: bool,
    unit_flags: bool,
) -> None:
    if dtype is asc.int8:
        base = (base[0] // 32 * 32, base[1] // 32 * 32, base[2])
    cores = 2 if name == "mix" else 1
    case = Case(m, n, k, dtype, turn_a=turns[0], turn_b=turns[1], bias=bias, base=base,
                traverse=order, cores=cores, unit_flags=unit_flags)  # fmt: skip
    check(KERNELS[name], case, blocks=blocks)


def test_the_trace_shows_the_pipes_at_work() -> None:
    run = check(cube_only, Case(64, 64, 128, bias=True, base=(32, 64, 64)))
    [core] = run.log.cores
    counts = {
        pipe: sum(1 for item in core.items if item.pipe is pipe and item.kind is Kind.INSTRUCTION)
        for pipe in (Pipe.MTE2, Pipe.MTE1, Pipe.M, Pipe.FIX)
    }
    # Two blocks of C in two steps of k: four products. B stays in L1 and L0B holds two of its blocks.
    assert counts[Pipe.M] == 4
    assert counts[Pipe.FIX] == 2
    names = {(item.name, item.pipe) for item in core.items if item.kind is Kind.INSTRUCTION}
    assert {("mmad", Pipe.M), ("fixpipe", Pipe.FIX), ("load_data", Pipe.MTE1)} <= names
    assert {name for name, pipe in names if pipe is Pipe.MTE2} == {"data_copy"}


def flags_of(run: Run, pipe: Pipe) -> list[int]:
    return [
        item.call.unit_flag
        for item in run.log.cores[0].items
        if item.pipe is pipe and item.kind is Kind.INSTRUCTION
    ]


def test_unit_flags_hand_whole_products_over() -> None:
    case = Case(64, 128, 64, base=(32, 64, 32))
    run = check(cube_only, case)
    assert flags_of(run, Pipe.M) == [2, 3] * 4  # two steps of k a block
    assert flags_of(run, Pipe.FIX) == [3] * 4
    names = {item.event for item in run.log.cores[0].items}
    assert asc.HardEvent.M_FIX not in names
    without = check(cube_only, replace(case, unit_flags=False))
    assert set(flags_of(without, Pipe.M) + flags_of(without, Pipe.FIX)) == {0}
    fetched = check(cube_only, case, blocks=True)
    assert set(flags_of(fetched, Pipe.M)) == {0}, "a block may be fetched twice, or never"


def test_unit_flags_hide_the_stores_of_one_buffer() -> None:
    case = Case(256, 512, 128, base=(128, 256, 64))  # a block fills L0C
    run, without = (check(cube_only, replace(case, unit_flags=flags)) for flags in (True, False))
    assert run.cycles < without.cycles - 500


@pytest.mark.parametrize("columns", [16, 40, 48])
def test_columns_that_only_the_cube_computes_have_no_unit_flags(columns: int) -> None:
    """Loads of 8-bit B bring 32 columns: the units of those beyond C would stay full."""
    run = check(cube_only, Case(32, columns, 64, asc.int8, base=(32, 32, 64)))
    assert set(flags_of(run, Pipe.M)) == {0}


@pytest.mark.parametrize("name", KERNELS)
def test_the_order_of_simultaneous_events_changes_nothing(name: str) -> None:
    case = Case(96, 96, 64, bias=True, base=BASE, cores=4 if name == "mix" else 2)
    runs = [check(KERNELS[name], case, cores=2, blocks=True, shuffle=seed) for seed in (1, 2, 3)]
    assert len({run.cycles for run in runs}) == 1


def test_a_large_product_keeps_the_cube_busy() -> None:
    """512 × 512 × 512 on one core: the cube needs 32768 cycles and works most of the time."""
    run = check(cube_only, Case(512, 512, 512))
    [core] = [core for core in run.log.cores if core.name == "core0.aic"]
    work = sum(item.work for item in core.items if item.pipe is Pipe.M)
    assert work == 512**3 // 16**3
    assert run.pipes["core0.aic"]["M"]["busy"] >= work
    assert work / run.cycles > 0.65


def test_numbers_off_takes_the_same_time() -> None:
    case = Case(64, 64, 64, base=BASE, cores=2)
    on = check(mix, case)
    from tests.adv.kit import product

    _, _, off = product(mix, case, numerics="off")
    assert off.cycles == on.cycles
    assert np.isfinite(off.cycles)


@asc.jit(matmul_cube_only=True)
def two_ways(a: Any, b: Any, c: Any, workspace: Any, tiling: Any, case: Any, order: Any) -> None:
    """One product several times, its blocks handed over by unit flags (1) or by events (0), into parts of C."""
    pipe = asc.TPipe()
    objects = []
    for flags in (False, True):
        config = asc.adv.get_normal_config(en_unit_flag=flags)
        mm = asc.adv.Matmul(*types_of(case), config)
        asc.adv.register_matmul(pipe, workspace, mm, tiling)
        objects.append(mm)
    for number, flags in enumerate(order):
        mm = objects[flags]
        mm.set_tensor_a(tensor(a))
        mm.set_tensor_b(tensor(b))
        mm.iterate_all(tensor(c)[number * case.m * case.n :])
    for mm in objects:
        mm.end()


@pytest.mark.parametrize("order", [(0, 1, 0), (1, 0, 1), (1, 1), (0, 0)])
def test_both_ways_of_handing_over_in_one_kernel(order: tuple[int, ...]) -> None:
    case = Case(96, 64, 64, base=(32, 64, 32))
    tiling = tiling_of(case)
    a, b, bias = operands(case)
    c = np.zeros((len(order), case.m, case.n), np.float32)
    run = sim.launch(
        two_ways, *stored(case, a, b), c, np.zeros(1024, np.uint8), tiling, case, order, cores=1
    )
    assert run.findings == []
    assert (c == oracle(case, a, b, bias)).all()
