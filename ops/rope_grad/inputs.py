"""Input data of `rope_grad`: what a run uses where the user gives none."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascend_sim.errors import ConfigError
from ops import data
from ops.tensor import Array, TensorDesc

if TYPE_CHECKING:
    from numpy.typing import NDArray

NAMES = ("q_embedded_grad", "k_embedded_grad", "cos", "sin")
ROPE_BASE = 10000.0


@dataclass(frozen=True, slots=True)
class Shape:
    """A size of the problem: `rows` of the gradients, `max_seq` rows of the tables."""

    seq_lens: tuple[int, ...]
    hidden_size: int
    max_seq: int
    rows: int
    head_size: int = 128

    def descs(self) -> list[TensorDesc]:
        """Return the descs of the four inputs."""
        gradient = TensorDesc("float16", "nd", (self.rows, self.hidden_size))
        table = TensorDesc("float16", "nd", (self.max_seq, self.head_size))
        return [gradient, gradient, table, table]


def default_inputs(shape: Shape, seed: int) -> list[Array]:
    """Return gradients of normal(0, 1) and the real tables, all float16."""
    generator = np.random.default_rng(seed)
    size = (shape.rows, shape.hidden_size)
    gradients = [data.normal(size, "float16", generator) for _ in range(2)]
    return [*gradients, *rope_tables(shape.max_seq, shape.head_size)]


def rope_tables(rows: int, head_size: int) -> tuple[NDArray[np.float16], NDArray[np.float16]]:
    """Return cos and sin, float16 [rows, head size]: base 10000, both halves of a row the same."""
    frequencies = ROPE_BASE ** (-np.arange(0, head_size, 2) / head_size)
    angles = np.outer(np.arange(rows), frequencies)
    return (
        np.tile(np.cos(angles), 2).astype(np.float16),
        np.tile(np.sin(angles), 2).astype(np.float16),
    )


def random_inputs(descs: Sequence[TensorDesc], ranges: Sequence[str], seed: int) -> list[Array]:
    """Return uniform values in `ranges`, one text such as "-100,100" a tensor."""
    generator = np.random.default_rng(seed)
    return [
        data.uniform(desc, bounds, generator) for desc, bounds in zip(descs, ranges, strict=True)
    ]


def read_inputs(path: str | os.PathLike[str]) -> list[Array]:
    """Return the four inputs of a `.npz` file. Raises `ConfigError` for wrong names, types or dims."""
    arrays = data.load_npz(path, NAMES)
    inputs = [data.expect_array(path, arrays, name, "float16", 2) for name in NAMES]
    for name, other in (("k_embedded_grad", "q_embedded_grad"), ("sin", "cos")):
        if arrays[name].shape != arrays[other].shape:
            raise ConfigError(
                f"{path}: {name} is {list(arrays[name].shape)} and {other} is {list(arrays[other].shape)}; "
                "their shapes must be the same"
            )
    return [np.ascontiguousarray(array) for array in inputs]
