"""LocalMemAllocator: on-chip memory handed out in order, for kernels that place their tensors themselves."""

from __future__ import annotations

import math
from typing import Any

from ascend_sim.lang.enums import Hardware
from ascend_sim.lang.queues import program
from isa.arguments import check_integer
from isa.faults import fault
from isa.tensor import LocalTensor, element_type
from isa.types import BLOCK_BYTES, POSITION_SPACE, DType, Space, TPosition

_SPACE = {
    Hardware.UB: Space.UB,
    Hardware.L1: Space.L1,
    Hardware.L0A: Space.L0A,
    Hardware.L0B: Space.L0B,
    Hardware.L0C: Space.L0C,
    Hardware.BIAS: Space.BT,
    Hardware.FIXBUF: Space.FB,
}


class LocalMemAllocator:
    """Hands out one physical memory from address 0; each tensor starts on a border of 32 bytes.

    For kernels without a TPipe: a TPipe hands out the same bytes.
    """

    def __init__(self, hard: Hardware = Hardware.UB) -> None:
        self._program = program()
        if hard not in _SPACE:
            fault(
                "ILLEGAL_PARAM",
                "wrong-position",
                f"LocalMemAllocator: hard is an on-chip memory such as Hardware.UB, got {hard!r}",
            )
        self._space = _SPACE[Hardware(hard)]
        self._next = 0

    def get_cur_addr(self) -> int:
        """Return the first address that is free."""
        return self._next

    def alloc(self, pos: TPosition, data_type: DType, tile_size: int) -> LocalTensor:
        """Return a tensor of `tile_size` elements in the bytes that come next."""
        dtype = element_type("alloc", data_type)
        size = check_integer("alloc", "tile_size", tile_size, 1, None)
        if POSITION_SPACE.get(pos) is not self._space:
            fault(
                "ILLEGAL_PARAM",
                "wrong-position",
                f"alloc: {_name(pos)} is not in {self._space.name}, which this allocator hands out",
            )
        address, length = self._next, size * dtype.size
        capacity = self._program.capacity(self._space)
        if address + length > capacity:
            fault(
                "CAPACITY",
                "memory-overflow",
                f"alloc: {size} elements of {dtype} are {length} bytes, and {self._space.name} has "
                f"{max(capacity - address, 0)} left of {capacity}",
            )
        self._next = -(-(address + length) // BLOCK_BYTES) * BLOCK_BYTES
        return LocalTensor(dtype, pos, address, size)


def _name(pos: Any) -> str:
    return pos.name if isinstance(pos, TPosition) else repr(pos)


class LocalTensorAuto(LocalTensor):
    """A tensor in UB that the compiler places: `LocalTensorAuto(dtype, shape)`; `insert_sync` is on with the first.

    Tensors follow each other from address 0, as long as the kernel lives; the compiler may place them more tightly.
    """

    def __init__(self, dtype: DType, shape: Any) -> None:
        dims = shape if isinstance(shape, (list, tuple)) else [shape]
        sizes = [check_integer("LocalTensorAuto", "shape", size, 1, None) for size in dims]
        stream = program()
        if stream.auto_tensors is None:
            stream.auto_tensors = LocalMemAllocator()
        placed = stream.auto_tensors.alloc(TPosition.VECCALC, dtype, math.prod(sizes))
        stream.use_insert_sync()
        if stream.insert is not None:
            stream.insert.placed.append((placed.addr, placed.addr + placed.get_length()))
        super().__init__(placed.dtype, placed.position, placed.addr, placed.get_size())
