"""What a kernel can say: printf, dumps of tensors in UB and GM, time stamps, marks for a profiler; arrays and bits."""

import asc
import numpy as np

LENGTH = 64


@asc.jit
def talking_kernel(x: asc.GlobalAddress, z: asc.GlobalAddress, scale: float):
    index = asc.get_block_idx()
    x_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x + index * LENGTH, LENGTH)
    z_gm.set_global_buffer(z + index * LENGTH, LENGTH)
    asc.printf("block %d of %d: scale %f\n", index, asc.get_block_num(), scale)
    asc.dump_tensor(x_gm, 1, 4)
    local = asc.LocalTensor(asc.float32, asc.TPosition.VECCALC, 0, LENGTH)
    asc.metrics_prof_start()
    asc.data_copy(local, x_gm, LENGTH)
    asc.set_flag(asc.HardEvent.MTE2_V, 1)
    asc.wait_flag(asc.HardEvent.MTE2_V, 1)
    asc.muls(local, local, scale, LENGTH)
    asc.set_flag(asc.HardEvent.V_MTE3, 1)
    asc.wait_flag(asc.HardEvent.V_MTE3, 1)
    asc.data_copy(z_gm, local, LENGTH)
    asc.metrics_prof_stop()
    shape = asc.array(asc.uint32, [2, 3])
    asc.dump_tensor(local, 2, 5, asc.ShapeInfo(shape))
    asc.dump_acc_chk_point(local, 7, 8, 2)
    asc.print_time_stamp(3)
    bits = asc.array(asc.int32, 3, 0)
    bits[1] = 40 + asc.scalar_count_leading_zero(1)
    asc.printf("%d zeros, %s", bits[1], "done")
    asc.pipe_barrier(asc.PipeID.PIPE_ALL)


if __name__ == "__main__":
    x = np.arange(2 * LENGTH, dtype=np.float32)
    z = np.zeros_like(x)
    talking_kernel[2](x, z, 0.5)
    assert np.array_equal(z, x / 2)
