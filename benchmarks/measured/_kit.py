"""What the measured kernels share: windows on GM, tensors at fixed addresses, flags, rows dealt out to cores."""

from __future__ import annotations

from typing import Any

from ascend_sim import asc

EVENTS = asc.HardEvent
POSITIONS = asc.TPosition
GIB = 2**30


def window(address: Any, offset: int = 0, *, bypass: bool = False) -> Any:
    """Return the tensor `offset` elements behind a GM address, read and written around L2 where asked."""
    tensor = asc.GlobalTensor()
    tensor.set_global_buffer(address + offset)
    if bypass:
        tensor.set_l2_cache_hint(asc.CacheMode.CACHE_MODE_DISABLE)
    return tensor


def local(address: int, count: int, dtype: Any, position: Any = asc.TPosition.VECCALC) -> Any:
    """Return `count` elements at a byte address; UB unless the position says otherwise."""
    return asc.LocalTensor(dtype, position, address, count)


def hand_over(event: Any, number: int = 0) -> None:
    """Set a flag and wait for it."""
    asc.set_flag(event, number)
    asc.wait_flag(event, number)


def share(total: int, block: int, blocks: int) -> tuple[int, int]:
    """Return first and count of a block's part of `total`: the first blocks have one more where it does not divide."""
    each, extra = divmod(total, blocks)
    return block * each + min(block, extra), each + (block < extra)


def pieces(total: int, size: int) -> list[tuple[int, int]]:
    """Return (start, count) of each piece of `total`, the last one shorter."""
    return [(start, min(size, total - start)) for start in range(0, total, size)]
