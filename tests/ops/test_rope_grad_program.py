"""Running `rope_grad` by name, as the command line does: options, seeds, input files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ascend_sim.errors import ConfigError
from ops import OperationError, find_operator
from ops.rope_grad import reference
from ops.rope_grad.inputs import NAMES, Shape, default_inputs


def run(
    options: dict[str, Any] | None = None, seed: int = 0, input_file: Path | None = None
) -> Any:
    return find_operator("rope_grad").run(options, seed=seed, input_file=input_file)


def test_options_as_text() -> None:
    result = run({"seq": "4,3", "hidden": "256", "max-seq": "9", "rows": "8"})
    assert result.outputs["q_grad"].shape == (8, 256)
    assert result.summary["bytes"]["gm_write"] == 2 * 7 * 256 * 2
    one = run({"seq": 3, "hidden": "128", "rows": None})
    assert one.outputs["q_grad"].shape == (3, 128)


def test_seed_changes_the_data() -> None:
    options = {"seq": [2], "hidden": 128}
    first, same, other = (run(options, seed=seed).outputs["q_grad"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"sequ": "1"}, "did you mean 'seq'"),
        ({"max-sec": "1"}, "did you mean 'max-seq'"),
        ({"seq": "1,x"}, "entry 2 of --seq is 'x'"),
        ({"seq": ""}, "entry 1 of --seq is ''"),
        ({"seq": [0]}, "entry 1 of --seq is 0"),
        ({"hidden": "12.5"}, "--hidden is '12.5'"),
        ({"rows": 0}, "--rows is 0"),
    ],
)
def test_wrong_options(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        run(options)


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"hidden": 100}, "ERROR_INVALID_TENSOR_DIM"),
        ({"seq": [5], "max_seq": 4}, "ERROR_INVALID_PARAM"),
        ({"seq": [1] * 33}, "ERROR_INVALID_PARAM"),
        ({"rows": 2**40}, "ERROR_INVALID_TENSOR_SIZE"),
    ],
)
def test_sizes_that_the_library_refuses(options: dict[str, Any], status: str) -> None:
    with pytest.raises(OperationError) as caught:
        run(options)
    assert caught.value.status == status


def test_input_file(tmp_path: Path) -> None:
    inputs = default_inputs(Shape((4, 3), 256, 9, 7), 5)
    np.savez(tmp_path / "in.npz", **dict(zip(NAMES, inputs, strict=True)))
    result = run({"seq": "4,3"}, input_file=tmp_path / "in.npz")
    expected = reference.library(*inputs, [4, 3])
    np.testing.assert_array_equal(result.outputs["q_grad"], expected[0])
    one_sample = run(input_file=tmp_path / "in.npz")
    np.testing.assert_array_equal(one_sample.outputs["k_grad"], reference.library(*inputs, [7])[1])
    with pytest.raises(ConfigError, match=r"--hidden is 128 but .*in\.npz has 256"):
        run({"hidden": 128}, input_file=tmp_path / "in.npz")
