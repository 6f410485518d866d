"""The measured kernels: all can be run, and the matrix product computes what it is timed for."""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim.accuracy import load_cases
from ascend_sim.accuracy.families import folder, list_families, load_family, simulate


@pytest.mark.parametrize("name", list_families())
def test_a_family_has_a_kernel(name: str) -> None:
    assert callable(load_family(name).simulate)


def kit(name: str) -> Any:
    load_family("add_hp")
    return importlib.import_module(f"ascend_sim_measured.{name}")


PLANS: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    ({"size": (200, 300, 512), "base": (128, 128, 64), "step": (2, 4)}, "grid", {"cores": (2, 1)}),
    (
        {"size": (256, 512, 512), "base": (128, 256, 64), "step": (4, 4), "slots": (1, 2)}
        | {"unit_flag": True, "stored_b": "KN"},
        "grid",
        {"cores": (1, 2), "stagger": True},
    ),
    (
        {"size": (256, 512, 512), "base": (128, 128, 64), "step": (4, 2), "stored_b": "NZ"}
        | {"ahead": 1},
        "cyclic",
        {"cores": 3, "swizzle": 2, "stagger": True},
    ),
    (
        {"size": (256, 171, 512), "base": (128, 128, 64), "step": (8, 4), "slots": (1, 1)}
        | {"l0_buffers": 1},
        "cyclic",
        {"cores": 3},
    ),
]


@pytest.mark.parametrize(("plan", "deal", "options"), PLANS)
def test_the_matrix_product_is_right_and_silent(
    plan: dict[str, Any], deal: str, options: dict[str, Any]
) -> None:
    made = kit("_tiles").Plan(**plan)
    tiles = getattr(kit("_tiles"), deal)(made, **options)
    m, n, k = made.size
    generator = np.random.default_rng(7)
    a, b = (generator.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    stored = {"KN": b, "NK": np.ascontiguousarray(b.T)}.get(made.stored_b)
    if stored is None:
        stored = np.ascontiguousarray(b.reshape(k, n // 16, 16).transpose(1, 0, 2))
    c = np.zeros((m, n), np.float32)
    kernel = partial(kit("_matmul").multiply, plan=made, tiles=tiles)
    run = sim.launch(kernel, a, stored, c, cores=len(tiles), kernel_type="AIC_ONLY")
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    assert not run.findings


def test_passes_over_more_than_l2_holds_all_miss() -> None:
    """Four passes over 302 MB took 4.03 times one pass on the chip, with hits of 0.005 %."""
    records = {record.id: record for record in load_cases(folder() / "cases.yaml").records}
    one, four = (simulate(records[f"dcopy_ub.{name}"])["aiv_us"] for name in ("s3", "s5"))
    assert four / one == pytest.approx(4.03, rel=0.05)


def test_the_attention_is_right_and_silent() -> None:
    """Two heads of three tiles of keys each, one of them on each cube core, against float64."""
    attention = kit("_attention")
    tasks_of = kit("_attention_tasks")
    shape = tasks_of.Shape(depth=128, tile=256, ahead=2, fifo=4)
    keys = 3 * shape.tile
    generator = np.random.default_rng(11)
    q, k, v = (
        generator.normal(size=(rows, shape.depth)).astype(np.float16)
        for rows in (256, 2 * keys, 2 * keys)
    )
    tasks = [[tasks_of.Task(128 * head, keys * head, keys)] for head in range(2)]
    o = np.zeros((256, shape.depth), np.float32)
    run = attention.launch(q, k, v, o, shape, tasks)
    expected = [
        attend(q[128 * h :][:128], k[keys * h :][:keys], v[keys * h :][:keys]) for h in (0, 1)
    ]
    assert np.allclose(o, np.concatenate(expected), atol=2e-3)
    assert not run.findings


def attend(q: Any, k: Any, v: Any) -> Any:
    scores = q.astype(np.float64) @ k.astype(np.float64).T * q.shape[1] ** -0.5
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights @ v.astype(np.float64) / weights.sum(axis=1, keepdims=True)


def test_the_convolution_is_right_and_silent() -> None:
    """3 x 3 taps, padding 1, against sums over shifted images."""
    module = load_family("pto_conv")
    conv = module.Conv(2, 3, 8, 48, 16, (3, 3), (128, 256))
    generator = np.random.default_rng(5)
    x, filters, y = module.arrays(conv)
    x[:] = generator.integers(-3, 4, x.shape)
    filters[:] = generator.integers(-2, 3, filters.shape)
    kernel = partial(module.convolve, conv=conv, blocks=conv.deal((2, 1)))
    run = sim.launch(kernel, x, filters, y, cores=2, kernel_type="AIC_ONLY")
    padded = np.pad(x.astype(np.float32), ((0, 0), (0, 0), (1, 1), (1, 1), (0, 0)))
    expected = np.zeros((2, 8, 48, 256), np.float32)
    for c1 in range(3):
        for tap in range(9):
            part = padded[:, c1, tap // 3 : tap // 3 + 8, tap % 3 : tap % 3 + 48]
            weights = filters[c1 * 9 + tap].reshape(256, 16).astype(np.float32)
            expected += part @ weights.T
    assert np.array_equal(y, expected.reshape(y.shape))
    assert not run.findings


@pytest.mark.parametrize(("dtype", "keep"), [(np.float32, 1000), (np.float16, 1008)])
def test_the_best_of_each_row_are_right_and_silent(dtype: Any, keep: int) -> None:
    module = load_family("pto_topk")
    x = np.full((5, module.PITCH), np.nan, dtype)
    generator = np.random.default_rng(3)
    x[:, :1024] = np.stack([generator.permutation(1024) for _ in range(5)]) - 500
    values, indices = np.zeros((5, keep), dtype), np.zeros((5, keep), np.uint32)
    kernel = partial(module.top_k, shape=(5, 1024), keep=keep)
    places = np.arange(1024, dtype=np.uint32)
    run = sim.launch(kernel, x, places, values, indices, cores=2)
    order = np.argsort(-x[:, :1024].astype(np.float32), axis=1)[:, :keep]
    assert np.array_equal(indices, order)
    assert np.array_equal(values, np.take_along_axis(x, order, axis=1))
    assert not run.findings


def test_rows_turned_by_vector_cores_are_right_and_silent() -> None:
    """The vector cores' fractals make the same product as rows that start anywhere."""
    module, tiles = load_family("gm_aivnz"), kit("_tiles")
    m, n, k = 128, 1039, 256
    plan = tiles.Plan((m, n, k), module.BASE, module.STEP, stored_b="NZ")
    generator = np.random.default_rng(9)
    a, b = (generator.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c = np.zeros((m, n), np.float32)
    workspace = np.zeros((-(-n // 16), k, 16), np.float16)
    kernel = partial(module.turned, plan=plan, tiles=tiles.cyclic(plan, 2))
    run = sim.launch(kernel, a, b, c, workspace, cores=2, kernel_type="MIX_AIC_1_2")
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    assert not run.findings


@pytest.mark.parametrize(("depth", "pitch"), [(128, 128), (64, 64), (64, 128)])
def test_the_attentions_gradients_are_right_and_silent(depth: int, pitch: int) -> None:
    """Two blocks of queries with two blocks of keys on two cores, against float64."""
    module = kit("_attention_grad")
    generator = np.random.default_rng(2)
    q, k, v, do, o = (generator.normal(size=(256, depth)).astype(np.float16) for _ in range(5))
    wide = [x.astype(np.float64) for x in (q, k, v, do, o)]
    scores = wide[0] @ wide[1].T * depth**-0.5
    most = scores.max(axis=1)
    line = np.log(np.exp(scores - most[:, None]).sum(axis=1)) + most
    sums = [np.zeros((256, pitch), np.float32) for _ in range(3)]
    pairs = module.deal(module.pairs_of(256, 256, 1, 1, causal=False), 2)
    run = module.launch([q, k, v, do, o, line.astype(np.float32), *sums], depth, pitch, pairs)
    p = np.exp(scores - line[:, None])
    ds = p * (wide[3] @ wide[2].T - (wide[3] * wide[4]).sum(axis=1)[:, None]) * depth**-0.5
    for found, expected in zip(sums, (ds @ wide[1], ds.T @ wide[0], p.T @ wide[3]), strict=True):
        assert np.allclose(found[:, :depth], expected, rtol=2e-2, atol=3e-2)
    kinds = {finding.kind for finding in run.findings}
    assert kinds == (set() if pitch == depth else {"COVERAGE"})  # the columns that pad the pitch


def test_running_sums_are_right_and_silent() -> None:
    module = load_family("tcuscan")
    size, tiles = 128, 9
    x = np.random.default_rng(4).integers(0, 2, tiles * size**2).astype(np.float16)
    rows, y = (np.zeros(x.size, np.float32) for _ in range(2))
    sums = np.zeros(4 * module.LINE, np.float32)
    kernel = partial(module.scan, tiles=tiles, size=size)
    run = sim.launch(
        kernel, x, module.triangles(size), rows, sums, y, cores=2, kernel_type="MIX_AIC_1_2"
    )
    assert np.array_equal(y, np.cumsum(x.astype(np.float64)).astype(np.float32))
    assert not run.findings


def test_a_fixpipe_that_waits_for_its_unit_flags_occupies_its_pipe() -> None:
    """On the chip FIX was occupied for 19.4 µs with unit flags, for 4.22 without."""
    records = {record.id: record for record in load_cases(folder() / "cases.yaml").records}
    off, on = (simulate(records[f"gm_unitflag.{name}"]) for name in ("off", "on"))
    assert on["fix_us"] > 2 * off["fix_us"]
    assert on["fix_us"] <= on["aic_us"]
