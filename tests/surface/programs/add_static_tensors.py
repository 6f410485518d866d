"""Vector addition on static tensors, ordered by flags; the tensor for the result is made on the host."""

import asc
import asc.lib.runtime as rt
import numpy as np
from asc.runtime import config

CORES = 8
TILES = 4
TILE = 2048


@asc.jit
def vadd_kernel(
    x: asc.GlobalAddress, y: asc.GlobalAddress, z: asc.GlobalAddress, block_length: int
):
    offset = asc.get_block_idx() * block_length
    x_gm = asc.GlobalTensor()
    y_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x + offset)
    y_gm.set_global_buffer(y + offset)
    z_gm.set_global_buffer(z + offset)

    data_type = x.dtype
    bytes_of_tile = TILE * data_type.sizeof()
    x_local = asc.LocalTensor(data_type, asc.TPosition.VECIN, 0, TILE)
    y_local = asc.LocalTensor(data_type, asc.TPosition.VECIN, bytes_of_tile, TILE)
    z_local = asc.LocalTensor(
        dtype=data_type, pos=asc.TPosition.VECOUT, addr=2 * bytes_of_tile, tile_size=TILE
    )

    for i in range(TILES):
        asc.data_copy(x_local, x_gm[i * TILE :], count=TILE)
        asc.data_copy(y_local, y_gm[i * TILE :], count=TILE)
        asc.set_flag(event=asc.HardEvent.MTE2_V, event_id=0)
        asc.wait_flag(event=asc.HardEvent.MTE2_V, event_id=0)
        asc.add(z_local, x_local, y_local, count=TILE)
        asc.set_flag(event=asc.HardEvent.V_MTE3, event_id=0)
        asc.wait_flag(event=asc.HardEvent.V_MTE3, event_id=0)
        asc.data_copy(z_gm[i * TILE :], z_local, count=TILE)
        asc.set_flag(event=asc.HardEvent.MTE3_MTE2, event_id=0)
        asc.wait_flag(event=asc.HardEvent.MTE3_MTE2, event_id=0)


def vadd_launch(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    z = np.zeros_like(x)
    vadd_kernel[CORES, rt.current_stream()](x, y, z, z.size // CORES)
    return z


def vadd_custom(backend: config.Backend, platform: config.Platform) -> None:
    config.set_platform(backend, platform)
    rng = np.random.default_rng(0)
    x, y = rng.random((2, CORES * TILES * TILE), dtype=np.float32)
    z = vadd_launch(x, y)
    assert np.array_equal(z, x + y)


if __name__ == "__main__":
    vadd_custom(config.Backend.Model, config.Platform.Ascend910B1)
