"""What the measured kernels share: windows on GM, tensors at fixed addresses, flags, rows dealt out to cores."""

from __future__ import annotations

from typing import Any

from ascend_sim import asc
from ascend_sim.accuracy import times
from ascend_sim.run import Run

EVENTS = asc.HardEvent
POSITIONS = asc.TPosition
GIB = 2**30
PAIR = 2  # mode of flags between a cube core and its vector cores
C2V, V2C = 0, 1  # their ids: the cube core has stored, the vector cores have read


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


class Buffers:
    """UB handed out from address 0 on, one tensor behind the other."""

    def __init__(self) -> None:
        self.next = 0

    def take(self, count: int, dtype: Any) -> Any:
        """Return the next `count` elements, from a 32-byte border on."""
        tensor = local(self.next, count, dtype)
        self.next += -(-count * dtype.sizeof() // 32) * 32
        return tensor


def then_barrier(instruction: Any, *operands: Any) -> None:
    """Send a vector instruction and a barrier behind it."""
    instruction(*operands)
    asc.pipe_barrier(asc.PipeID.PIPE_V)


def gelu_chain(x: Any, room: Any, result: Any, count: int) -> None:
    """Compute x / (1 + exp(-1.596 (x + 0.0447 x³))), a barrier behind each step; `room` may be `result`."""
    then_barrier(asc.mul, room, x, x, count)
    then_barrier(asc.mul, room, room, x, count)
    then_barrier(asc.muls, room, room, 0.044715, count)
    then_barrier(asc.add, room, room, x, count)
    then_barrier(asc.muls, room, room, -1.5957691, count)
    then_barrier(asc.exp, room, room, count)
    then_barrier(asc.adds, room, room, 1.0, count)
    then_barrier(asc.div, result, x, room, count)


def load_rows(tile: Any, source: Any, rows: int, columns: int, pitch: int) -> None:
    """Copy rows of a matrix from GM into UB, each on a 32-byte border."""
    size = tile.dtype.sizeof()
    length, gap = columns * size, (pitch - columns) * size
    if length % 32 == 0 and gap % 32 == 0:
        asc.data_copy(tile, source, asc.DataCopyParams(rows, length // 32, gap // 32, 0))
        return
    params = asc.DataCopyExtParams(rows, length, gap, 0, 0)
    asc.data_copy_pad(tile, source, params, asc.DataCopyPadExtParams(tile.dtype, False, 0, 0, 0))


def store_rows(target: Any, tile: Any, rows: int, columns: int, pitch: int) -> None:
    """Copy rows from UB, each on a 32-byte border, to a matrix in GM."""
    size = tile.dtype.sizeof()
    length, gap = columns * size, (pitch - columns) * size
    if length % 32 == 0 and gap % 32 == 0:
        asc.data_copy(target, tile, asc.DataCopyParams(rows, length // 32, 0, gap // 32))
        return
    asc.data_copy_pad(target, tile, asc.DataCopyExtParams(rows, length, 0, gap, 0))


def scale(run: Run, longest: float, mean: float) -> dict[str, Any]:
    """Return a run's times made longer: the task (but not its launch) by one factor, cores' averages by another."""
    launch_us = run.chip.us(run.log.launch_cycles)
    scaled: dict[str, Any] = {key: value and value * mean for key, value in times(run).items()}
    scaled["task_us"] = (run.time_us - launch_us) * longest + launch_us
    for key in ("aic_max_us", "aiv_max_us"):
        scaled[key] = scaled[key] and scaled[key] / mean * longest
    return scaled
