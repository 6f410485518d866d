"""Vector addition through queues with two buffers each: copy in, compute and copy out as functions of their own."""

import asc
import asc.lib.runtime as rt
import numpy as np
from asc.runtime import config

CORES = 8
TILES = 8
BUFFERS = 2


@asc.jit
def copy_in(
    i: int,
    x_gm: asc.GlobalTensor,
    y_gm: asc.GlobalTensor,
    in_queue_x: asc.TQue,
    in_queue_y: asc.TQue,
    tile_length: asc.ConstExpr[int],
):
    x_local = in_queue_x.alloc_tensor(x_gm.dtype)
    y_local = in_queue_y.alloc_tensor(y_gm.dtype)
    asc.data_copy(x_local, x_gm[i * tile_length :], count=tile_length)
    asc.data_copy(y_local, y_gm[i * tile_length :], count=tile_length)
    in_queue_x.enque(x_local)
    in_queue_y.enque(y_local)


@asc.jit
def compute(
    z_gm: asc.GlobalTensor,
    in_queue_x: asc.TQue,
    in_queue_y: asc.TQue,
    out_queue_z: asc.TQue,
    tile_length: asc.ConstExpr[int],
):
    x_local = in_queue_x.deque(z_gm.dtype)
    y_local = in_queue_y.deque(z_gm.dtype)
    z_local = out_queue_z.alloc_tensor(z_gm.dtype)
    asc.add(z_local, x_local, y_local, count=tile_length)
    out_queue_z.enque(z_local)
    in_queue_x.free_tensor(x_local)
    in_queue_y.free_tensor(y_local)


@asc.jit
def copy_out(
    i: int, z_gm: asc.GlobalTensor, out_queue_z: asc.TQue, tile_length: asc.ConstExpr[int]
):
    z_local = out_queue_z.deque(z_gm.dtype)
    asc.data_copy(z_gm[i * tile_length :], z_local, count=tile_length)
    out_queue_z.free_tensor(z_local)


@asc.jit
def vadd_kernel(
    x: asc.GlobalAddress,
    y: asc.GlobalAddress,
    z: asc.GlobalAddress,
    block_length: asc.ConstExpr[int],
    buffer_num: asc.ConstExpr[int],
    tile_length: asc.ConstExpr[int],
    tile_num: asc.ConstExpr[int],
):
    offset = asc.get_block_idx() * block_length
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x + offset, block_length)
    y_gm = asc.GlobalTensor()
    y_gm.set_global_buffer(y + offset, block_length)
    z_gm = asc.GlobalTensor()
    z_gm.set_global_buffer(z + offset, block_length)

    pipe = asc.TPipe()
    in_queue_x = asc.TQue(asc.TPosition.VECIN, buffer_num)
    in_queue_y = asc.TQue(asc.TPosition.VECIN, buffer_num)
    out_queue_z = asc.TQue(asc.TPosition.VECOUT, buffer_num)
    pipe.init_buffer(que=in_queue_x, num=buffer_num, len=tile_length * x.dtype.sizeof())
    pipe.init_buffer(que=in_queue_y, num=buffer_num, len=tile_length * y.dtype.sizeof())
    pipe.init_buffer(que=out_queue_z, num=buffer_num, len=tile_length * z.dtype.sizeof())

    for i in range(tile_num):
        copy_in(i, x_gm, y_gm, in_queue_x, in_queue_y, tile_length)
        compute(z_gm, in_queue_x, in_queue_y, out_queue_z, tile_length)
        copy_out(i, z_gm, out_queue_z, tile_length)


def vadd_launch(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    z = np.zeros_like(x)
    block_length = x.size // CORES
    tile_length = block_length // TILES
    vadd_kernel[CORES, rt.current_stream()](x, y, z, block_length, BUFFERS, tile_length, TILES)
    return z


if __name__ == "__main__":
    config.set_platform(config.Backend.Model)
    rng = np.random.default_rng(0)
    x, y = rng.random((2, CORES * TILES * 1024)).astype(np.float16)
    assert np.array_equal(vadd_launch(x, y), x + y)
