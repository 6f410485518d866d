"""Rows that are no multiple of 32 bytes: padded on the way in, exact on the way out; bursts with gaps; slices."""

import asc
import numpy as np

ROWS = 6
COLUMNS = 37
PITCH = 48  # of a row in UB: 37 numbers of 4 bytes are 5 blocks of 8


@asc.jit
def pad_kernel(x: asc.GlobalAddress, z: asc.GlobalAddress, widened: asc.GlobalAddress):
    x_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    widened_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    z_gm.set_global_buffer(z)
    widened_gm.set_global_buffer(widened)
    pipe = asc.TPipe()
    in_queue = asc.TQue(asc.TPosition.VECIN, 1)
    out_queue = asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(que=in_queue, num=1, len=ROWS * PITCH * 4)
    pipe.init_buffer(que=out_queue, num=1, len=ROWS * PITCH * 4)
    rows = in_queue.alloc_tensor(asc.float32)
    # every second row of x: the gap in GM is a row in bytes, the gap in UB one block
    asc.data_copy_pad(
        rows,
        x_gm,
        asc.DataCopyExtParams(ROWS, COLUMNS * 4, COLUMNS * 4, 1, 0),
        asc.DataCopyPadExtParams(asc.float32, True, 0, 3, -7.0),
    )
    in_queue.enque(rows)
    src = in_queue.deque(asc.float32)
    dst = out_queue.alloc_tensor(asc.float32)
    asc.duplicate(dst, 0.0, ROWS * PITCH)
    asc.adds(dst, src, 1.0, 40, ROWS, asc.UnaryRepeatParams(1, 1, PITCH // 8, PITCH // 8))
    out_queue.enque(dst)
    in_queue.free_tensor(src)
    result = out_queue.deque(asc.float32)
    asc.data_copy_pad(z_gm, result, asc.DataCopyExtParams(ROWS, COLUMNS * 4, 1, 0, 0))
    asc.data_copy(widened_gm, result, asc.DataCopyParams(ROWS, 5, 1, 0))
    out_queue.free_tensor(result)


@asc.jit
def slices_kernel(x: asc.GlobalAddress, z: asc.GlobalAddress):
    # of 3 x 87 numbers, the rows 0 and 2 and in them the numbers 16 to 39 and 47 to 70
    x_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    z_gm.set_global_buffer(z)
    local = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 96)
    src_slices = [asc.SliceInfo(16, 70, 7, 3, 87), asc.SliceInfo(0, 2, 1, 1, 3)]
    dst_slices = [asc.SliceInfo(0, 47, 0, 3, 48), asc.SliceInfo(0, 1, 0, 1, 2)]
    asc.data_copy(local, x_gm, dst_slices, src_slices, 2)
    asc.set_flag(asc.HardEvent.MTE2_MTE3, 0)
    asc.wait_flag(asc.HardEvent.MTE2_MTE3, 0)
    asc.data_copy(z_gm, local, count=96)
    asc.pipe_barrier(asc.PipeID.PIPE_ALL)


if __name__ == "__main__":
    rng = np.random.default_rng(8)
    x = rng.normal(size=(2 * ROWS, COLUMNS)).astype(np.float32)
    z = np.zeros((ROWS, COLUMNS), np.float32)
    widened = np.zeros((ROWS, 40), np.float32)
    pad_kernel[1](x, z, widened)
    assert np.array_equal(z, x[::2] + 1)
    assert np.array_equal(widened[:, :COLUMNS], z)
    assert np.array_equal(widened[:, COLUMNS:], np.full((ROWS, 3), -6, np.float32))

    x = rng.normal(size=(3, 87)).astype(np.float32)
    z = np.zeros((2, 48), np.float32)
    slices_kernel[1](x, z)
    assert np.array_equal(z, np.hstack([x[::2, 16:40], x[::2, 47:71]]))
