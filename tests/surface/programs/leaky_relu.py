"""Leaky ReLU: the instruction, by count and by mask, and the same from muls, mins and maxs."""

import asc
import numpy as np

LENGTH = 2048
SLOPE = 0.125


@asc.jit
def leaky_relu_kernel(x: asc.GlobalAddress, z: asc.GlobalAddress, slope: float, length: int):
    start = asc.get_block_idx() * length
    x_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x + start)
    z_gm.set_global_buffer(z + 3 * start)
    pipe = asc.TPipe()
    in_queue = asc.TQue(asc.TPosition.VECIN, 1)
    out_queue = asc.TQue(asc.TPosition.VECOUT, 1)
    work = asc.TBuf(asc.TPosition.VECCALC)
    pipe.init_buffer(in_queue, 1, LENGTH * 4)
    pipe.init_buffer(out_queue, 1, 3 * LENGTH * 4)
    pipe.init_buffer(buf=work, num=LENGTH * 4)
    copied = in_queue.alloc_tensor(asc.float32)
    asc.data_copy(copied, x_gm, length)
    in_queue.enque(copied)
    src = in_queue.deque(asc.float32)
    dst = out_queue.alloc_tensor(asc.float32)
    asc.leaky_relu(dst, src, slope, count=length)
    asc.leaky_relu(
        dst[length:],
        src,
        slope,
        mask=[0xFFFFFFFFFFFFFFFF, 0],
        repeat_times=length // 64,
        repeat_params=asc.UnaryRepeatParams(1, 1, 8, 8),
    )
    negative = work.get(asc.float32)
    asc.mins(negative, src, 0.0, length)
    asc.muls(negative, negative, slope, length)
    asc.maxs(dst[2 * length :], src, 0.0, length)
    asc.add(dst[2 * length :], dst[2 * length :], negative, length)
    out_queue.enque(dst)
    in_queue.free_tensor(src)
    result = out_queue.deque(asc.float32)
    asc.data_copy(z_gm, result, 3 * length)
    out_queue.free_tensor(result)


if __name__ == "__main__":
    x = np.random.default_rng(3).normal(size=4 * LENGTH).astype(np.float32)
    z = np.zeros((4, 3, LENGTH), np.float32)
    leaky_relu_kernel[4](x, z, SLOPE, LENGTH)
    expected = np.where(x > 0, x, x * np.float32(SLOPE)).reshape(4, LENGTH)
    for form in range(3):
        assert np.array_equal(z[:, form], expected), form
