"""Input data of `laser_attention_grad`: true values of a forward pass on random or given Q, K and V."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ascend_sim.errors import ConfigError
from ascend_sim.threads import one_thread
from ops import data
from ops.laser_attention_grad.forward import forward
from ops.laser_attention_grad.param import SBH
from ops.laser_attention_grad.problem import BFLOAT16, from_heads, to_heads
from ops.laser_attention_grad.sizes import KEY_DIM, QUERY_DIM_SBH, Sizes
from ops.tensor import Array, TensorDesc

GIVEN = ("query", "key", "value", "attention_out_grad")
"""Tensors that a file must hold."""
DERIVED = ("atten_mask", "softmax_max", "softmax_sum", "attention_in")
"""Tensors that a file may hold; where it does not, they are made."""

EMPTY = {"pse_shift": BFLOAT16, "drop_mask": np.uint8, "padding_mask": BFLOAT16}
EMPTY_LAST = ("prefix", "actual_seq_qlen", "actual_seq_kvlen")


def descs(sizes: Sizes, *, has_mask: bool) -> list[TensorDesc]:
    """Return the descs of the 15 inputs."""
    mask = (sizes.seq, sizes.kv_seq) if has_mask else (0,)
    rows = (sizes.batch, sizes.heads, sizes.seq)
    return [
        TensorDesc(dtype, "nd", shape)
        for dtype, shape in (
            ("bfloat16", sizes.query_shape), ("bfloat16", sizes.key_shape), ("bfloat16", sizes.value_shape),
            ("bfloat16", sizes.output_shape), ("bfloat16", (0,)), ("uint8", (0,)), ("bfloat16", (0,)),
            ("float16", mask), ("float32", rows), ("float32", rows), ("bfloat16", (1,)),
            ("bfloat16", sizes.output_shape), ("int64", (0,)), ("int64", (0,)), ("int64", (0,)),
        )
    ]  # fmt: skip


def causal_mask(sizes: Sizes) -> Array:
    """Return the mask that hides every key behind its query: 1 is hidden."""
    return np.triu(np.ones((sizes.seq, sizes.kv_seq), np.float16), 1)


def random_tensors(sizes: Sizes, seed: int, ranges: Sequence[str] = ("-1,1",) * 4) -> list[Array]:
    """Return Q, K, V and dO: uniform values in `ranges`, bfloat16."""
    generator = np.random.default_rng(seed)
    shapes = (sizes.query_shape, sizes.key_shape, sizes.value_shape, sizes.output_shape)
    return [
        data.uniform(TensorDesc("bfloat16", "nd", shape), bounds, generator)
        for shape, bounds in zip(shapes, ranges, strict=True)
    ]


def complete(
    tensors: Mapping[str, Array], sizes: Sizes, scale: float, pre_tokens: int, mask: Array | None
) -> list[Array]:
    """Return all 15 inputs. Softmax rows and result of the forward pass are computed where they are not given."""
    derived: list[Any] = [tensors.get(name) for name in DERIVED[1:]]
    if any(one is None for one in derived):
        query, key, value = (
            to_heads(tensors[name], heads, sizes.layout)
            for name, heads in (
                ("query", sizes.heads), ("key", sizes.kv_heads), ("value", sizes.kv_heads),
            )
        )  # fmt: skip
        with one_thread():
            maxima, sums, output = forward(
                query, key, value, sizes, scale, causal=mask is not None, pre_tokens=pre_tokens
            )
        made = (maxima, sums, from_heads(output, sizes.layout))
        derived = [two if one is None else one for one, two in zip(derived, made, strict=True)]
    empty = [np.empty(0, dtype) for dtype in EMPTY.values()]
    return [
        *(tensors[name] for name in GIVEN),
        *empty,
        np.empty(0, np.float16) if mask is None else mask,
        *derived[:2],
        np.zeros(1, BFLOAT16),
        derived[2],
        *(np.empty(0, np.int64) for _ in EMPTY_LAST),
    ]


def read_tensors(path: str | os.PathLike[str]) -> dict[str, Array]:
    """Return the tensors of a `.npz` file. Raises `ConfigError` for wrong names or types.

    numpy writes bfloat16 as two raw bytes; both spellings are taken.
    """
    arrays = data.load_npz(path, GIVEN, DERIVED)
    for name, array in arrays.items():
        wanted = np.dtype(np.float16) if name == "atten_mask" else BFLOAT16
        if name in ("softmax_max", "softmax_sum"):
            wanted = np.dtype(np.float32)
        if wanted is BFLOAT16 and array.dtype == np.dtype("V2"):
            arrays[name] = array = array.view(BFLOAT16)
        if array.dtype != wanted or not array.dtype.isnative:
            raise ConfigError(
                f"{path}: {name} is {array.dtype}; it must be {wanted}: save {name}.astype({wanted.name!r})"
            )
        arrays[name] = np.ascontiguousarray(array)
    return arrays


def sizes_of_file(path: str | os.PathLike[str], arrays: Mapping[str, Array]) -> Sizes:
    """Return the sizes of a file's tensors; three dims are SBH. Raises `ConfigError` for other numbers of dims."""
    query, key = arrays["query"].shape, arrays["key"].shape
    if len(query) != len(key) or len(query) not in (3, 4):
        raise ConfigError(
            f"{path}: query has {len(query)} dims and key {len(key)}; both must have 4 (BNSD) or 3 (SBH)"
        )
    if len(query) == 4:
        if query[3] not in KEY_DIM:
            raise ConfigError(f"{path}: query has head dim {query[3]}; it must be 128 or 192")
        return Sizes(query[0], query[1], key[1], query[2], key[2], query[3])
    heads, kv_heads = query[2] // QUERY_DIM_SBH, key[2] // KEY_DIM[QUERY_DIM_SBH]
    return Sizes(query[1], heads, kv_heads, query[0], key[0], QUERY_DIM_SBH, SBH)
