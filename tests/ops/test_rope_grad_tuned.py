"""The rewritten rope_grad: the library's numbers or the true adjoint's, no findings, and its time."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_sim as sim
from ops import Context, find_operator
from ops.machine import Machine
from ops.rope_grad import reference
from ops.rope_grad.inputs import Shape, default_inputs
from ops.rope_grad.tuned import launch_tuned, split_positions, tile_tuned


def run(variant: str, options: dict[str, Any], **context: Any) -> sim.Run:
    spec = find_operator("rope_grad")
    return spec.run({"variant": variant, **options}, Context(**context), 0, None)


SHAPES = [
    ([1], 128),
    ([37, 5, 1], 256),
    ([200, 37, 300, 1], 1280),
    ([70], 8192 + 128),
    ([600], 384),
]


@pytest.mark.parametrize(("lengths", "hidden"), SHAPES)
@pytest.mark.parametrize("chip", ["ascend910b1", "toy"])
def test_the_librarys_numbers(lengths: list[int], hidden: int, chip: str) -> None:
    options = {"seq": ",".join(map(str, lengths)), "hidden": str(hidden)}
    result = run("tuned", options, chip=chip)
    assert result.findings == []
    assert result.numerics is not None
    assert result.numerics["bit_exact"]
    assert result.numerics["compared"] == 2 * sum(lengths) * hidden
    assert result.summary["bytes"]["gm_write"] == 4 * sum(lengths) * hidden


@pytest.mark.parametrize(("lengths", "hidden"), SHAPES)
def test_the_true_adjoint(lengths: list[int], hidden: int) -> None:
    shape = Shape(tuple(lengths), hidden, max(lengths), sum(lengths))
    inputs = default_inputs(shape, 3)
    outputs = [np.full(inputs[0].shape, np.nan, np.float16) for _ in range(2)]
    result = launch_tuned(inputs, outputs, lengths, Machine(sim.load_chip("toy")), adjoint=True)
    assert result.findings == []
    for gradient, output, wanted in zip(
        inputs[:2], outputs, reference.adjoint(*inputs, lengths), strict=True
    ):
        # Three roundings of at most half a unit each, of terms no larger than the sum of the two halves.
        heads = np.abs(gradient.reshape(len(gradient), -1, 2, 64).astype(np.float64)).sum(axis=2)
        size = np.concatenate([heads, heads], axis=2).reshape(wanted.shape)
        assert np.all(np.abs(output - wanted) <= 3 * 2.0**-11 * size + 2.0**-22)


def test_the_adjoint_is_one() -> None:
    """<rope(x), y> = <x, adjoint(y)> for all x and y, up to rounding; the library's operator is not."""
    lengths, hidden = [40, 9], 256
    inputs = default_inputs(Shape((40, 9), hidden, 40, 49), 1)
    x = np.random.default_rng(2).normal(size=(49, hidden))
    cos, sin = (table.astype(np.float64) for table in inputs[2:])
    rows = np.concatenate([np.arange(40), np.arange(9)])
    heads = x.reshape(49, -1, 128)
    turned = np.concatenate([-heads[:, :, 64:], heads[:, :, :64]], axis=2)
    forward = (heads * cos[rows][:, None] + turned * sin[rows][:, None]).reshape(49, hidden)
    left = float((forward * inputs[0].astype(np.float64)).sum())
    found = {}
    for adjoint in (True, False):
        outputs = [np.full((49, hidden), np.nan, np.float16) for _ in range(2)]
        launch_tuned(inputs, outputs, lengths, Machine(sim.load_chip("toy")), adjoint=adjoint)
        found[adjoint] = float((x * outputs[0].astype(np.float64)).sum())
    assert found[True] == pytest.approx(left, abs=0.3)
    assert abs(found[False] - left) > 3


@given(
    st.lists(st.integers(1, 400), min_size=1, max_size=6),
    st.integers(1, 48),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_every_position_has_one_block(lengths: list[int], blocks: int) -> None:
    plan = split_positions(lengths, blocks)
    assert plan[0] == 0
    assert plan[-1] == max(lengths)
    assert list(plan) == sorted(set(plan))
    assert len(plan) - 1 <= min(blocks, max(lengths))
    work = [
        sum(min(n, end) - min(n, first) for n in lengths) for first, end in itertools.pairwise(plan)
    ]
    assert sum(work) == sum(lengths)
    assert max(work) <= sum(lengths) / blocks + 2 * len(lengths)


@given(st.integers(1, 100), st.lists(st.integers(1, 3000), min_size=1, max_size=4))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_tiles_fit(heads: int, lengths: list[int]) -> None:
    chip = sim.load_chip("ascend910b1")
    tiling = tile_tuned(lengths, 128 * heads, chip, 48)
    used = 4 * tiling.factor_rows * 256 + 4 * tiling.tile_rows * tiling.group * 2
    assert used <= chip.memories.UB.usable
    assert 1 <= tiling.tile_rows <= tiling.factor_rows <= 255


def test_rows_that_are_not_there() -> None:
    with pytest.raises(sim.HostError, match="adds up to 4 and the gradients have 3 rows"):
        run("tuned", {"seq": "4", "rows": "3", "hidden": "128"}, chip="toy")


def test_bad_options() -> None:
    with pytest.raises(sim.ConfigError, match="did you mean 'tuned'"):
        run("tunde", {"seq": "4"})
    with pytest.raises(sim.ConfigError, match="no tiling constant 'BUFFER_NUM'"):
        run("tuned", {"seq": "4", "hidden": "128"}, tiling={"BUFFER_NUM": 2})


@pytest.mark.slow
def test_it_is_fast() -> None:
    options = {"seq": ",".join(["2048"] * 16), "hidden": "1280"}
    timing = {"chip": "ascend910b1", "numerics": "off", "checks": "off"}
    library, tuned = run("library", options, **timing), run("tuned", options, **timing)
    assert 2 * tuned.cycles <= library.cycles
    assert tuned.cycles <= 1.15 * tuned.summary["bound"]["lower_bound_cycles"]
