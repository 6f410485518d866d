"""Transposition: 16 x 16 in one instruction, and NCHW to NC1HWC0 through lists of blocks, 16 and 32 bits wide."""

import asc
import numpy as np

SIDE = 16
WIDTH = 64  # of the matrices that go through lists of blocks


@asc.jit
def transpose_kernel(x: asc.GlobalAddress, z: asc.GlobalAddress):
    x_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    z_gm.set_global_buffer(z)
    pipe = asc.TPipe()
    in_queue = asc.TQue(asc.TPosition.VECIN, 1)
    out_queue = asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(que=in_queue, num=1, len=SIDE * SIDE * 2)
    pipe.init_buffer(que=out_queue, num=1, len=SIDE * SIDE * 2)
    copied = in_queue.alloc_tensor(asc.half)
    asc.data_copy(copied, x_gm, count=SIDE * SIDE)
    in_queue.enque(copied)
    src = in_queue.deque(asc.half)
    dst = out_queue.alloc_tensor(asc.half)
    asc.transpose(dst, src)
    out_queue.enque(dst)
    in_queue.free_tensor(src)
    result = out_queue.deque(asc.half)
    asc.data_copy(z_gm, result, count=SIDE * SIDE)
    out_queue.free_tensor(result)


@asc.jit
def blocks_kernel(x: asc.GlobalAddress, z: asc.GlobalAddress, in_block: asc.ConstExpr[int]):
    # x has 16 rows of WIDTH numbers, z WIDTH rows of 16; a block of 32 bytes holds in_block of them
    size = SIDE * WIDTH
    x_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    z_gm.set_global_buffer(z)
    pipe = asc.TPipe()
    in_queue = asc.TQue(asc.TPosition.VECIN, 1)
    out_queue = asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(que=in_queue, num=1, len=size * x.dtype.sizeof())
    pipe.init_buffer(que=out_queue, num=1, len=size * x.dtype.sizeof())
    copied = in_queue.alloc_tensor(x.dtype)
    asc.data_copy(copied, x_gm, count=size)
    in_queue.enque(copied)
    src = in_queue.deque(x.dtype)
    dst = out_queue.alloc_tensor(x.dtype)
    src_list = [
        src[0 * WIDTH :],
        src[1 * WIDTH :],
        src[2 * WIDTH :],
        src[3 * WIDTH :],
        src[4 * WIDTH :],
        src[5 * WIDTH :],
        src[6 * WIDTH :],
        src[7 * WIDTH :],
        src[8 * WIDTH :],
        src[9 * WIDTH :],
        src[10 * WIDTH :],
        src[11 * WIDTH :],
        src[12 * WIDTH :],
        src[13 * WIDTH :],
        src[14 * WIDTH :],
        src[15 * WIDTH :],
    ]
    dst_list = [
        dst[0 * in_block :],
        dst[1 * in_block :],
        dst[2 * in_block :],
        dst[3 * in_block :],
        dst[4 * in_block :],
        dst[5 * in_block :],
        dst[6 * in_block :],
        dst[7 * in_block :],
        dst[8 * in_block :],
        dst[9 * in_block :],
        dst[10 * in_block :],
        dst[11 * in_block :],
        dst[12 * in_block :],
        dst[13 * in_block :],
        dst[14 * in_block :],
        dst[15 * in_block :],
    ]
    params = asc.TransDataTo5HDParams(
        dst_high_half=False,
        src_high_half=False,
        repeat_times=WIDTH // in_block,
        dst_rep_stride=16,
        src_rep_stride=1,
    )
    asc.trans_data_to_5hd(dst_list, src_list, params)
    out_queue.enque(dst)
    in_queue.free_tensor(src)
    result = out_queue.deque(x.dtype)
    asc.data_copy(z_gm, result, count=size)
    out_queue.free_tensor(result)


if __name__ == "__main__":
    rng = np.random.default_rng(6)
    x = rng.normal(size=(SIDE, SIDE)).astype(np.float16)
    z = np.zeros_like(x)
    transpose_kernel[1](x, z)
    assert np.array_equal(z, x.T)
    for dtype, in_block in ((np.float16, 16), (np.float32, 8)):
        x = rng.normal(size=(SIDE, WIDTH)).astype(dtype)
        z = np.zeros((WIDTH, SIDE), dtype)
        blocks_kernel[1](x, z, in_block)
        assert np.array_equal(z, x.T), dtype
