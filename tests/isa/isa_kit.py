"""Short ways to tensors, memories and calls, for tests of the instruction set alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from loops import UB_BYTES, Place

from isa.stream import EagerStream
from isa.tensor import GlobalAddress, GlobalTensor, GmBuffer, LocalTensor
from isa.types import DType, Space, TPosition
from isa.vector import arithmetic, fill, shift


def stream(seed: int = 0, size: int = UB_BYTES) -> EagerStream:
    """Return an eager stream whose UB holds random bytes."""
    eager = EagerStream({Space.UB: size})
    eager.memories[Space.UB][:] = np.random.default_rng(seed).integers(0, 256, size, np.uint8)
    return eager


def function(name: str) -> Callable[..., None]:
    """Return a vector instruction by name."""
    modules = (arithmetic, fill, shift)
    return next(getattr(module, name) for module in modules if hasattr(module, name))  # type: ignore[no-any-return]


def ub(dtype: DType, addr: int = 0, count: int = 64, label: str | None = None) -> LocalTensor:
    """Return a tensor of `count` elements in UB."""
    tensor = LocalTensor(dtype, TPosition.VECCALC, addr, count)
    tensor.label = label
    return tensor


def tensor_at(place: Place) -> LocalTensor:
    """Return the tensor of an operand of the byte loops."""
    tensor = LocalTensor(place.dtype, TPosition.VECCALC, place.addr)
    tensor.set_buffer_len(place.length)
    return tensor


def gm(data: Any, offset: int = 0, name: str = "x", dtype: DType | None = None) -> GlobalTensor:
    """Return a window on a numpy array as GM, from element `offset` on."""
    from isa.types import dtype_of

    flat = data.reshape(-1)
    buffer = GmBuffer(name, flat.view(np.uint8))
    tensor = GlobalTensor()
    tensor.set_global_buffer(GlobalAddress(buffer, dtype or dtype_of(flat.dtype)) + offset)
    return tensor


def write(eager: EagerStream, tensor: LocalTensor, values: Any) -> None:
    """Put values into a UB tensor."""
    data = np.asarray(values, tensor.dtype.numpy).view(np.uint8)
    eager.memories[tensor.space][tensor.addr : tensor.addr + data.nbytes] = data


def read(eager: EagerStream, tensor: LocalTensor, count: int | None = None) -> Any:
    """Return the values of a UB tensor."""
    count = tensor.get_size() if count is None else count
    memory = eager.memories[tensor.space]
    size = count * tensor.dtype.size
    return memory[tensor.addr : tensor.addr + size].copy().view(tensor.dtype.numpy)
