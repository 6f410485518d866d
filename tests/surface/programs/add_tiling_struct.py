"""Vector addition whose sizes come in a structure that the host fills; the last tile of each core is shorter."""

import asc
import asc.lib.runtime as rt
import numpy as np
from asc.language.core.struct import Field, Struct

CORES = 4


class AddTiling(Struct):
    block_length = Field(asc.int32)
    tile_length = Field(asc.int32)
    tile_num = Field(asc.int32, default=1)
    tail_length = Field(asc.int32, default=0)


@asc.jit
def move_and_add(
    x_gm: asc.GlobalTensor,
    y_gm: asc.GlobalTensor,
    z_gm: asc.GlobalTensor,
    queue_x: asc.TQue,
    queue_y: asc.TQue,
    queue_z: asc.TQue,
    offset: int,
    length: int,
):
    x_local = queue_x.alloc_tensor(asc.float32)
    y_local = queue_y.alloc_tensor(asc.float32)
    asc.data_copy(x_local, x_gm[offset:], length)
    asc.data_copy(y_local, y_gm[offset:], length)
    queue_x.enque(x_local)
    queue_y.enque(y_local)
    x_ready = queue_x.deque(asc.float32)
    y_ready = queue_y.deque(asc.float32)
    z_local = queue_z.alloc_tensor(asc.float32)
    asc.add(z_local, x_ready, y_ready, length)
    queue_z.enque(z_local)
    queue_x.free_tensor(x_ready)
    queue_y.free_tensor(y_ready)
    z_ready = queue_z.deque(asc.float32)
    asc.data_copy(z_gm[offset:], z_ready, length)
    queue_z.free_tensor(z_ready)


@asc.jit
def add_kernel(x: asc.GlobalAddress, y: asc.GlobalAddress, z: asc.GlobalAddress, tiling: AddTiling):
    start = asc.get_block_idx() * tiling.block_length
    x_gm = asc.GlobalTensor()
    y_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x + start, tiling.block_length)
    y_gm.set_global_buffer(y + start, tiling.block_length)
    z_gm.set_global_buffer(z + start, tiling.block_length)
    pipe = asc.TPipe()
    queue_x = asc.TQue(asc.TPosition.VECIN, 1)
    queue_y = asc.TQue(asc.TPosition.VECIN, 1)
    queue_z = asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(queue_x, 2, tiling.tile_length * asc.float32.sizeof())
    pipe.init_buffer(queue_y, 2, tiling.tile_length * asc.float32.sizeof())
    pipe.init_buffer(queue_z, 2, tiling.tile_length * asc.float32.sizeof())
    for i in asc.range(tiling.tile_num):
        move_and_add(
            x_gm, y_gm, z_gm, queue_x, queue_y, queue_z, i * tiling.tile_length, tiling.tile_length
        )
    if tiling.tail_length > 0:
        rest = tiling.tile_num * tiling.tile_length
        move_and_add(x_gm, y_gm, z_gm, queue_x, queue_y, queue_z, rest, tiling.tail_length)


if __name__ == "__main__":
    length, tile = CORES * 3000, 896
    block = length // CORES
    tiling = AddTiling(
        block_length=block, tile_length=tile, tile_num=block // tile, tail_length=block % tile
    )
    assert len(tiling.pack()) == 16
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, length)).astype(np.float32)
    z = np.empty_like(x)
    add_kernel[CORES, rt.current_stream()](x, y, z, tiling)
    assert np.array_equal(z, x + y)
