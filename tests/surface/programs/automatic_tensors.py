"""Tensors that the compiler places and orders: no addresses, no flags, no queues."""

import asc
import numpy as np

CORES = 4
LENGTH = 2048


@asc.jit
def scale_kernel(x: asc.GlobalAddress, y: asc.GlobalAddress, z: asc.GlobalAddress, factor: float):
    offset = asc.get_block_idx() * LENGTH
    x_gm = asc.GlobalTensor()
    y_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x + offset)
    y_gm.set_global_buffer(y + offset)
    z_gm.set_global_buffer(z + offset)
    a = asc.LocalTensorAuto(asc.float32, [LENGTH])
    b = asc.LocalTensorAuto(asc.float32, [LENGTH])
    scaled = asc.LocalTensorAuto(asc.float32, [LENGTH])
    c = asc.LocalTensorAuto(asc.float32, [LENGTH])
    asc.data_copy(a, x_gm, LENGTH)
    asc.data_copy(b, y_gm, LENGTH)
    asc.muls(scaled, a, factor, LENGTH)
    asc.add(c, scaled, b, LENGTH)
    asc.data_copy(z_gm, c, LENGTH)


if __name__ == "__main__":
    rng = np.random.default_rng(15)
    x, y = rng.integers(-99, 99, (2, CORES * LENGTH)).astype(np.float32)
    z = np.zeros_like(x)
    scale_kernel[CORES](x, y, z, 0.5)
    assert np.array_equal(z, x / 2 + y)
