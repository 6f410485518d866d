"""The host's tiling: every cut fits the memories and covers the product; what cannot be cut is refused and says why."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.adv.ring import plan_visits
from ascend_sim.asc.lib import host
from ascend_sim.errors import ConfigError

T, F, D = host.TPosition, host.CubeFormat, host.DataType
SIZE = {D.DT_FLOAT16: 2, D.DT_BF16: 2, D.DT_FLOAT: 4, D.DT_INT8: 1}


def tiling_for(
    made: Any,
    m: int,
    n: int,
    k: int,
    kind: Any,
    *,
    bias: bool = False,
    turns: tuple[bool, bool] = (False, False),
) -> tuple[int, Any]:
    made.set_a_type(T.GM, F.ND, kind, turns[0])
    made.set_b_type(T.GM, F.ND, kind, turns[1])
    made.set_c_type(T.GM, F.ND, D.DT_INT32 if kind is D.DT_INT8 else D.DT_FLOAT)
    made.set_bias_type(T.GM, F.ND, D.DT_FLOAT)
    made.set_shape(m, n, k)
    made.set_org_shape(m, n, k)
    made.enable_bias(bias)
    made.set_buffer_space(-1, -1, -1)
    tiling = asc.adv.TCubeTiling()
    return made.get_tiling(tiling), tiling


def up(size: int, unit: int = 16) -> int:
    return -(-size // unit) * unit


@given(
    m=st.integers(1, 3000),
    n=st.integers(1, 3000),
    k=st.integers(1, 3000),
    cores=st.integers(1, 48),
    kind=st.sampled_from(sorted(SIZE)),
    bias=st.booleans(),
    turns=st.tuples(st.booleans(), st.booleans()),
)
@settings(max_examples=60, deadline=None)
def test_a_cut_fits_and_covers(
    m: int, n: int, k: int, cores: int, kind: Any, bias: bool, turns: tuple[bool, bool]
) -> None:
    made = host.MultiCoreMatmulTiling(host.get_ascendc_platform())
    made.set_dim(cores)
    ret, t = tiling_for(made, m, n, k, kind, bias=bias, turns=turns)
    assert ret == 0
    memories, size = sim.load_chip("ascend910b1").memories, SIZE[kind]
    rows, columns = up(t.base_m), up(t.base_n)
    assert t.db_l0a * rows * t.base_k * size <= memories.L0A.bytes
    assert t.db_l0b * columns * t.base_k * size <= memories.L0B.bytes
    assert t.db_l0c * rows * columns * 4 <= memories.L0C.bytes
    blocks = t.depth_a1 * rows + t.depth_b1 * columns
    assert blocks * t.base_k * size + (2 * columns * 4 if bias else 0) <= memories.L1.usable
    assert not bias or columns * 4 <= memories.BT.bytes
    assert t.depth_a1 % (t.step_m * t.step_k_a) == 0
    assert t.depth_b1 % (t.step_n * t.step_k_b) == 0
    down, across = -(-m // t.single_core_m), -(-n // t.single_core_n)
    assert t.used_core_num == down * across <= cores
    assert made.get_core_num() == (down * across, down, across)
    assert made.get_single_shape() == (t.single_core_m, t.single_core_n, k)
    assert t.single_core_k == k
    assert (t.m, t.n, t.k_a, t.k_b, t.is_bias) == (m, n, k, k, int(bias))
    assert (made.get_base_m(), made.get_base_n(), made.get_base_k()) == (
        t.base_m,
        t.base_n,
        t.base_k,
    )


def test_a_large_product_uses_every_core_and_large_blocks() -> None:
    made = host.MultiCoreMatmulTiling(host.get_ascendc_platform())
    made.set_dim(24)
    ret, t = tiling_for(made, 4096, 4096, 4096, D.DT_FLOAT16)
    assert ret == 0
    assert t.used_core_num == 24
    assert t.base_m * t.base_n >= 128 * 128


def test_cores_may_share_k() -> None:
    made = host.MultiCoreMatmulTiling(host.get_ascendc_platform())
    made.set_dim(16)
    made.enable_multi_core_split_k(True)
    ret, t = tiling_for(made, 64, 64, 8192, D.DT_FLOAT16)
    assert ret == 0
    assert t.single_core_k < 8192
    assert t.used_core_num > 1


def test_wishes_are_kept() -> None:
    made = host.MultiCoreMatmulTiling(host.get_ascendc_platform())
    made.set_dim(8)
    made.set_fix_split(64, 32, 48)
    made.set_traverse(host.MatrixTraverse.FIRSTN)
    made.set_align_split(-1, 64, -1)
    ret, t = tiling_for(made, 300, 500, 200, D.DT_FLOAT16)
    assert (ret, t.base_m, t.base_n, t.base_k, t.iterate_order) == (0, 64, 32, 48, 1)
    assert t.single_core_n % 64 == 0
    made.set_single_shape(150, 250)
    ret, t = tiling_for(made, 300, 500, 200, D.DT_FLOAT16)
    assert (ret, t.single_core_m, t.single_core_n, t.single_core_k) == (0, 150, 250, 200)
    made.set_single_shape()
    made.set_single_range(max_m=100, max_n=200)
    ret, t = tiling_for(made, 300, 300, 200, D.DT_FLOAT16)
    assert ret == 0
    assert t.single_core_m <= 100
    assert t.single_core_n <= 200


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda made: made.set_fix_split(512, 512, -1),
            "base blocks of 512 × 512 × any do not fit",
        ),
        (
            lambda made: made.set_single_shape(10, 10, 10),
            r"parts of 10 × 10 × 10 need \d+ cores, set_dim says 2",
        ),
        (lambda made: made.set_single_range(max_m=5), "no part of the product is inside the range"),
        (lambda made: made.set_a_type(T.GM, F.ND, D.DT_INT4, False), "A cannot be DT_INT4"),
        (
            lambda made: made.set_b_type(T.GM, F.ND, D.DT_INT8, False),
            "A is DT_FLOAT16, B is DT_INT8",
        ),
    ],
)
def test_what_cannot_be_cut_is_refused(
    change: Any, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = host.MultiCoreMatmulTiling(host.get_ascendc_platform())
    made.set_dim(2)
    made.set_a_type(T.GM, F.ND, D.DT_FLOAT16, False)
    made.set_b_type(T.GM, F.ND, D.DT_FLOAT16, False)
    made.set_c_type(T.GM, F.ND, D.DT_FLOAT)
    made.set_shape(256, 256, 256)
    change(made)
    with caplog.at_level(logging.WARNING):
        assert made.get_tiling(asc.adv.TCubeTiling()) == -1
    [record] = caplog.records
    assert record.getMessage().startswith("MatmulApi Tiling: ")
    import re

    assert re.search(reason, record.getMessage())


def test_setters_refuse_what_makes_no_sense() -> None:
    made = host.MatmulApiTiling(host.get_ascendc_platform())
    assert made.set_shape(0, 16, 16) == -1
    assert made.set_org_shape(16, -1, 16) == -1
    assert made.set_fix_split(0, -1, -1) == -1
    assert made.set_sparse(True) == -1
    assert made.get_tiling(asc.adv.TCubeTiling()) == -1
    assert host.MultiCoreMatmulTiling().get_core_num() is None


def test_platforms_by_name() -> None:
    assert host.PlatformAscendCManager.get_instance("Ascend910B3").chip.name == "ascend910b3"
    assert host.PlatformAscendCManager.get_instance().chip.name == "ascend910b1"
    with pytest.raises(ConfigError, match="ascend910b3"):
        host.PlatformAscendCManager.get_instance("Ascend910B33")


def test_the_tiling_is_one_structure_of_the_device() -> None:
    tiling = asc.adv.TCubeTiling(used_core_num=7, batch_num=9)
    words = tiling.pack()
    assert len(words) == 4 * 49
    assert (words[0], words[-4]) == (7, 9)


@given(tiles=st.lists(st.integers(0, 6), max_size=60), buffers=st.integers(1, 4))
def test_visits_of_a_ring(tiles: list[int], buffers: int) -> None:
    """A tile is filled where it is not held, nothing is overwritten before its last use, each last use is marked."""
    held: dict[int, int] = {}
    free = set(range(buffers))
    for tile, visit in zip(tiles, plan_visits(tiles, buffers), strict=True):
        if visit.fill:
            assert visit.slot in free
            free.remove(visit.slot)
            held = {name: slot for name, slot in held.items() if slot != visit.slot}
            held[tile] = visit.slot
        assert held[tile] == visit.slot
        if visit.last:
            free.add(visit.slot)
    assert free == set(range(buffers))
