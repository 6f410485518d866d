"""Input data: random values by the ranges of the library's test tables, and `.npz` files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ascend_sim.chip_file import nearest
from ascend_sim.errors import ConfigError
from ascend_sim.npz import read_npz
from ops.tensor import DTYPES, Array, TensorDesc

CHUNK_ELEMENTS = 2**20
"""Elements made at once, so that wide intermediate types need little memory."""


def normal(shape: Sequence[int], dtype: str, generator: np.random.Generator) -> Array:
    """Return values of the normal(0, 1) distribution."""
    array = np.empty(tuple(shape), DTYPES[dtype])
    for part in _chunks(array):
        part[:] = generator.standard_normal(part.size, np.float32).astype(array.dtype)
    return array


def uniform(desc: TensorDesc, bounds: str, generator: np.random.Generator) -> Array:
    """Return uniform values in `bounds`, "low,high"; with `nan` or an infinity in it, NaN in every element.

    Raises `ConfigError` for bounds that are no two numbers.
    """
    low, high = _bounds(bounds)
    array = np.empty(desc.shape, DTYPES[desc.dtype])
    for part in _chunks(array):
        if np.isfinite(low) and np.isfinite(high):
            # float64 first, then the tensor's type: integers truncate, and so does the library's generator.
            part[:] = ((high - low) * generator.random(part.size) + low).astype(array.dtype)
        else:
            part[:] = np.nan
    return array


def load_npz(
    path: str | os.PathLike[str], names: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, Array]:
    """Return the arrays of a `.npz` file, which must hold the tensors `names`, may hold `optional`, and no others.

    Raises `ConfigError` for a file that cannot be read or that holds other names.
    """
    arrays = read_npz(path)
    return {name: arrays[name] for name in _expected(path, list(arrays), names, optional)}


def expect_array(
    source: str | os.PathLike[str], arrays: Mapping[str, Array], name: str, dtype: str, dims: int
) -> Array:
    """Return an array of a file. Raises `ConfigError` unless it has this type and this many dims."""
    array = arrays[name]
    if array.dtype != DTYPES[dtype] or not array.dtype.isnative:
        raise ConfigError(
            f"{source}: {name} is {array.dtype}; it must be {dtype}: save {name}.astype({dtype!r})"
        )
    if array.ndim != dims:
        raise ConfigError(
            f"{source}: {name} has {array.ndim} dims {list(array.shape)}; it must have {dims}"
        )
    return array


def _expected(
    path: str | os.PathLike[str],
    given: Sequence[str],
    names: Sequence[str],
    optional: Sequence[str],
) -> list[str]:
    """Return the names that are given. Raises `ConfigError` for one too many or one too few."""
    known = [*names, *optional]
    for name in given:
        if name not in known:
            raise ConfigError(
                f"{path}: no input is called {name!r}{nearest(name, known)} (inputs: {', '.join(known)})"
            )
    missing = [name for name in names if name not in given]
    if missing:
        raise ConfigError(
            f"{path}: {', '.join(missing)} missing; it holds: {', '.join(given) or 'nothing'}"
        )
    return [name for name in known if name in given]


def _bounds(text: str) -> tuple[float, float]:
    parts = text.split(",")
    try:
        low, high = float(parts[0]), float(parts[-1])
    except ValueError:
        low = high = 0.0
        parts = []
    if len(parts) not in (1, 2) or (len(parts) == 1 and np.isfinite(low)):
        raise ConfigError(f"{text!r} is no range of values; write low,high or nan")
    return low, high


def _chunks(array: Array) -> Iterator[Array]:
    flat = array.reshape(-1)
    for start in range(0, flat.size, CHUNK_ELEMENTS):
        yield flat[start : start + CHUNK_ELEMENTS]
