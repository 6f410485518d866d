"""Every core adds its partial sums into one result: tensors from an allocator, counters of pipes, atomic stores."""

import asc
import numpy as np

CORES = 6
LENGTH = 1024


@asc.jit
def accumulate_kernel(x: asc.GlobalAddress, z: asc.GlobalAddress, length: asc.ConstExpr[int]):
    x_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x + asc.get_block_idx() * length)
    z_gm.set_global_buffer(z)
    allocator = asc.LocalMemAllocator()
    a = allocator.alloc(asc.TPosition.VECIN, asc.float32, length)
    b = allocator.alloc(asc.TPosition.VECOUT, asc.float32, length)
    asc.data_copy(a, x_gm, length)
    asc.set_flag(asc.HardEvent.MTE2_V)
    asc.wait_flag(asc.HardEvent.MTE2_V)
    asc.mul(b, a, a, length)
    asc.set_flag(asc.HardEvent.V_MTE3)
    asc.wait_flag(asc.HardEvent.V_MTE3)
    asc.set_atomic_add(asc.float32)
    asc.data_copy(z_gm, b, length)
    asc.set_atomic_none()
    asc.pipe_barrier(asc.PipeID.PIPE_ALL)


if __name__ == "__main__":
    x = np.random.default_rng(12).integers(-9, 9, CORES * LENGTH).astype(np.float32)
    z = np.zeros(LENGTH, np.float32)
    accumulate_kernel[CORES](x, z, LENGTH)
    assert np.array_equal(z, (x.reshape(CORES, LENGTH) ** 2).sum(axis=0))
