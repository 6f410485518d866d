"""Softmax of rows: from whole-vector reductions and scalars, and from reductions by repeat with broadcast blocks."""

import asc
import numpy as np

ROWS = 16  # of each core
COLUMNS = 64  # float32: one repeat
SIZE = ROWS * COLUMNS


@asc.jit
def softmax_by_rows(x: asc.GlobalAddress, z: asc.GlobalAddress):
    start = asc.get_block_idx() * SIZE
    x_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x + start)
    z_gm.set_global_buffer(z + start)
    pipe = asc.TPipe()
    in_queue = asc.TQue(asc.TPosition.VECIN, 1)
    out_queue = asc.TQue(asc.TPosition.VECOUT, 1)
    reduced = asc.TBuf(asc.TPosition.VECCALC)
    scratch = asc.TBuf(asc.TPosition.VECCALC)
    pipe.init_buffer(que=in_queue, num=1, len=SIZE * 4)
    pipe.init_buffer(que=out_queue, num=1, len=SIZE * 4)
    pipe.init_buffer(buf=reduced, num=64)
    pipe.init_buffer(buf=scratch, num=256)
    copied = in_queue.alloc_tensor(asc.float32)
    asc.data_copy(copied, x_gm, SIZE)
    in_queue.enque(copied)
    src = in_queue.deque(asc.float32)
    dst = out_queue.alloc_tensor(asc.float32)
    best = reduced.get(asc.float32)
    work = scratch.get(asc.float32)
    for row in range(ROWS):
        asc.reduce_max(best, src[row * COLUMNS :], work, COLUMNS)
        highest = best.get_value(0)
        asc.adds(dst[row * COLUMNS :], src[row * COLUMNS :], 0.0 - highest, COLUMNS)
        asc.exp(dst[row * COLUMNS :], dst[row * COLUMNS :], COLUMNS)
        asc.reduce_sum(best, dst[row * COLUMNS :], work, COLUMNS)
        total = best.get_value(0)
        asc.muls(dst[row * COLUMNS :], dst[row * COLUMNS :], 1.0 / total, COLUMNS)
    out_queue.enque(dst)
    in_queue.free_tensor(src)
    result = out_queue.deque(asc.float32)
    asc.data_copy(z_gm, result, SIZE)
    out_queue.free_tensor(result)


@asc.jit(auto_sync=False)
def softmax_by_repeats(x: asc.GlobalAddress, z: asc.GlobalAddress):
    start = asc.get_block_idx() * SIZE
    x_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x + start)
    z_gm.set_global_buffer(z + start)
    src = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, SIZE)
    dst = asc.LocalTensor(asc.float32, asc.TPosition.VECOUT, SIZE * 4, SIZE)
    row = asc.LocalTensor(asc.float32, asc.TPosition.VECCALC, SIZE * 8, ROWS)
    block = asc.LocalTensor(asc.float32, asc.TPosition.VECCALC, SIZE * 8 + 256, ROWS * 8)
    # src1 has one block a row, and every block of the row meets it
    broadcast = asc.BinaryRepeatParams(
        dst_blk_stride=1,
        src0_blk_stride=1,
        src1_blk_stride=0,
        dst_rep_stride=8,
        src0_rep_stride=8,
        src1_rep_stride=1,
    )
    asc.data_copy(src, x_gm, SIZE)
    asc.set_flag(asc.HardEvent.MTE2_V, 0)
    asc.wait_flag(asc.HardEvent.MTE2_V, 0)
    asc.whole_reduce_max(row, src, COLUMNS, ROWS, 1, 1, 8, order=asc.ReduceOrder.ORDER_ONLY_VALUE)
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.brcb(block, row, ROWS // 8, asc.BrcbRepeatParams(1, 8))
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.sub(dst, src, block, COLUMNS, ROWS, broadcast)
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.exp(dst, dst, SIZE)
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.whole_reduce_sum(row, dst, COLUMNS, ROWS, 1, 1, 8)
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.brcb(block, row, ROWS // 8, asc.BrcbRepeatParams(1, 8))
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.div(dst, dst, block, COLUMNS, ROWS, broadcast)
    asc.set_flag(asc.HardEvent.V_MTE3, 0)
    asc.wait_flag(asc.HardEvent.V_MTE3, 0)
    asc.data_copy(z_gm, dst, SIZE)
    asc.pipe_barrier(asc.PipeID.PIPE_ALL)


if __name__ == "__main__":
    x = np.random.default_rng(4).normal(0, 3, (2 * ROWS, COLUMNS)).astype(np.float32)
    wide = x.astype(np.float64)
    power = np.exp(wide - wide.max(axis=1, keepdims=True))
    expected = power / power.sum(axis=1, keepdims=True)
    for kernel in (softmax_by_rows, softmax_by_repeats):
        z = np.zeros_like(x)
        kernel[2](x, z)
        assert np.allclose(z, expected, rtol=2e-6, atol=1e-9), np.abs(z - expected).max()
        assert np.allclose(z.sum(axis=1), 1, rtol=1e-6)
