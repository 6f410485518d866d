"""A cube core that executes at once, and its memories as numpy arrays."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest

from isa.faults import IsaFault
from isa.stream import EagerStream
from isa.tensor import GlobalAddress, GlobalTensor, GmBuffer, LocalTensor
from isa.types import CoreKind, DType, Space, TPosition, dtype_of

SIZES = {
    Space.UB: 196608,
    Space.L1: 524288,
    Space.L0A: 65536,
    Space.L0B: 65536,
    Space.L0C: 131072,
    Space.BT: 1024,
    Space.FB: 7168,
}
POSITION = {
    Space.UB: TPosition.VECCALC,
    Space.L1: TPosition.A1,
    Space.L0A: TPosition.A2,
    Space.L0B: TPosition.B2,
    Space.L0C: TPosition.CO1,
    Space.BT: TPosition.C2,
    Space.FB: TPosition.C2PIPE2GM,
}


_INDEX = count()


def cube(*, exact: bool = False) -> EagerStream:
    """A cube core; `exact` chooses the documented order of additions."""
    stream = EagerStream(SIZES, CoreKind.AIC)
    stream.exact = exact  # type: ignore[attr-defined]
    return stream


def vector() -> EagerStream:
    return EagerStream(SIZES, CoreKind.AIV)


def gm(array: np.ndarray, name: str = "x") -> GlobalTensor:
    """The array as a GM tensor, written in place."""
    data = array.reshape(-1).view(np.uint8)
    tensor = GlobalTensor()
    tensor.set_global_buffer(
        GlobalAddress(GmBuffer(name, data, next(_INDEX)), dtype_of(array.dtype))
    )
    return tensor


def local(space: Space, dtype: DType, size: int | None = None, addr: int = 0) -> LocalTensor:
    """A tensor at byte `addr` of a memory, to the memory's end where no size (elements) is given."""
    if size is None:
        size = (SIZES[space] - addr) // dtype.size
    return LocalTensor(dtype, POSITION[space], addr, size)


def put(stream: EagerStream, tensor: LocalTensor, values: Any) -> None:
    """Write elements at a tensor's start."""
    flat = np.ascontiguousarray(values).reshape(-1)
    assert flat.dtype == tensor.dtype.numpy
    data = flat.view(np.uint8)
    stream.memories[tensor.space][tensor.addr : tensor.addr + data.size] = data


def get(stream: EagerStream, tensor: LocalTensor, size: int | None = None) -> np.ndarray:
    """Read elements from a tensor's start."""
    length = tensor.length if size is None else size * tensor.dtype.size
    return (
        stream.memories[tensor.space][tensor.addr : tensor.addr + length]
        .copy()
        .view(tensor.dtype.numpy)
    )


def bits(values: np.ndarray) -> bytes:
    """The bytes, so that NaN equals NaN and −0 differs from 0."""
    return np.ascontiguousarray(values).tobytes()


def numbers(seed: int, shape: tuple[int, ...] | int, dtype: DType) -> np.ndarray:
    """Random values of a type, small enough for sums of products to stay far from overflow."""
    random = np.random.default_rng(seed)
    if dtype.is_float():
        return random.standard_normal(shape).astype(dtype.numpy)
    low = 0 if not dtype.is_signed() else -100
    return random.integers(low, 100, shape).astype(dtype.numpy)


def refusal(act: Callable[[], Any]) -> IsaFault:
    """The fault that `act` raises."""
    with pytest.raises(IsaFault) as caught:
        act()
    return caught.value
