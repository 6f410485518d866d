"""Tensors as the host side sees them: type, format and shape, never the data."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ascend_sim.chip_file import nearest
from ascend_sim.errors import ConfigError
from isa.types import bfloat16
from ops.status import host_error

Array = NDArray[Any]

DTYPES: dict[str, np.dtype[Any]] = {
    "bfloat16": bfloat16.numpy,
    **{
        name: np.dtype(name)
        for name in (
            "float16", "float32", "float64", "int8", "int16", "int32", "int64",
            "uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128",
        )
    },
}  # fmt: skip
"""Tensor types by name, with the numpy type that holds them."""

_OTHER_DTYPE_NAMES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "bf16": "bfloat16",
}

FORMATS = (
    "nd", "nchw", "nhwc", "nc1hwc0", "fractal_z", "nc1hwc0_c04", "hwcn", "ndhwc", "fractal_nz",
    "ncdhw", "ndc1hwc0", "fractal_z_3d",
)  # fmt: skip
"""Tensor formats of the library."""


def dtype_name(dtype: object) -> str:
    """Return the name in `DTYPES` of a numpy type or of a name, the library's (`float`, `bf16`) or numpy's.

    Raises `ConfigError` for anything else.
    """
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name  # type: ignore[call-overload]
    name = _OTHER_DTYPE_NAMES.get(name, name)
    if name not in DTYPES:
        known = [*DTYPES, *_OTHER_DTYPE_NAMES]
        raise ConfigError(
            f"{name!r} is no tensor type{nearest(name, known)} (known: {', '.join(known)})"
        )
    return name


@dataclass(frozen=True, slots=True)
class TensorDesc:
    """Type, format and shape of a tensor.

    `nchw` becomes `nd`, as in the library's test bridge. A shape without dims or with a 0 in it is an empty
    tensor. Raises `ConfigError` for an unknown type or format and for dims that are no integers.
    """

    dtype: str
    format: str
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", dtype_name(self.dtype))
        object.__setattr__(self, "format", _format_name(self.format))
        object.__setattr__(self, "shape", _shape(self.shape))

    @property
    def is_empty(self) -> bool:
        """Whether the tensor has no dims or no elements."""
        return self.size == 0

    @property
    def size(self) -> int:
        """The number of elements; 0 where a dim is not positive."""
        if not self.shape or min(self.shape) <= 0:
            return 0
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return self.size * DTYPES[self.dtype].itemsize

    def __str__(self) -> str:
        return f"{self.dtype} {self.format} {list(self.shape)}"


def _format_name(name: str) -> str:
    if name not in FORMATS:
        known = ", ".join(FORMATS)
        raise ConfigError(
            f"{name!r} is no tensor format{nearest(str(name), FORMATS)} (known: {known})"
        )
    return "nd" if name == "nchw" else name


def _shape(dims: Sequence[object]) -> tuple[int, ...]:
    if not all(isinstance(dim, int | np.integer) for dim in dims):
        raise ConfigError(f"a tensor's shape is a list of integers, not {dims!r}")
    return tuple(int(dim) for dim in dims)  # type: ignore[call-overload]


class Tensor:
    """An array with a format. `array` is numpy or torch (on the CPU; memory is shared, nothing is copied).

    Raises `HostError` for something that is no such array or that is in foreign byte order, `ConfigError`
    for a type that is no tensor type.
    """

    def __init__(self, array: Any, format: str = "nd") -> None:
        self.array = _numpy_view(array)
        self.desc = TensorDesc(self.array.dtype.name, format, self.array.shape)

    def __repr__(self) -> str:
        return f"Tensor({self.desc})"


def as_tensor(value: Any) -> Tensor:
    """Return `value` if it is a `Tensor`, else a `Tensor` of format `nd` around the array."""
    return value if isinstance(value, Tensor) else Tensor(value)


def as_desc(value: Any) -> TensorDesc:
    """Return `value` if it is a `TensorDesc`, else the desc of the tensor or array."""
    return value if isinstance(value, TensorDesc) else as_tensor(value).desc


def _numpy_view(array: Any) -> Array:
    if isinstance(array, np.ndarray):
        if not array.dtype.isnative:
            raise host_error(
                "foreign-byte-order", f"an array of type {array.dtype!r} is not in this machine's byte order; "
                f"convert it with .astype({array.dtype.name!r})",
            )  # fmt: skip
        return array
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return _torch_view(torch, array)
    raise host_error(
        "no-array",
        f"a tensor is a numpy array, a torch tensor or Tensor(array, format), not {type(array).__name__}",
    )


def _torch_view(torch: Any, tensor: Any) -> Array:
    if tensor.device.type != "cpu":
        raise host_error(
            "not-on-cpu",
            f"the torch tensor is on {tensor.device}; the simulator reads CPU memory: use tensor.cpu()",
        )
    tensor = tensor.detach()
    if tensor.dtype == torch.bfloat16:  # numpy has no such type of its own
        view: Array = tensor.view(torch.int16).numpy().view(bfloat16.numpy)
        return view
    plain: Array = tensor.numpy()
    return plain
