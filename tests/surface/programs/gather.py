"""Gathering: elements by byte offsets, whole blocks by offsets, and every second element by a mask pattern."""

import asc
import numpy as np

LENGTH = 512


@asc.jit
def gather_kernel(
    x: asc.GlobalAddress, index: asc.GlobalAddress, blocks: asc.GlobalAddress, z: asc.GlobalAddress
):
    x_gm = asc.GlobalTensor()
    index_gm = asc.GlobalTensor()
    blocks_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    index_gm.set_global_buffer(index)
    blocks_gm.set_global_buffer(blocks)
    z_gm.set_global_buffer(z)
    pipe = asc.TPipe()
    in_queue = asc.TQue(asc.TPosition.VECIN, 1)
    index_queue = asc.TQue(asc.TPosition.VECIN, 1)
    out_queue = asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(que=in_queue, num=1, len=LENGTH * 4)
    pipe.init_buffer(que=index_queue, num=1, len=LENGTH * 4 + 256)
    pipe.init_buffer(que=out_queue, num=1, len=4 * LENGTH * 4)
    copied = in_queue.alloc_tensor(asc.uint32)
    asc.data_copy(copied, x_gm, count=LENGTH)
    in_queue.enque(copied)
    places = index_queue.alloc_tensor(asc.int32)
    asc.data_copy(places, index_gm, count=LENGTH)
    asc.data_copy(places[LENGTH:], blocks_gm, count=LENGTH // 8)
    index_queue.enque(places)
    src = in_queue.deque(asc.uint32)
    at = index_queue.deque(asc.int32)
    dst = out_queue.alloc_tensor(asc.uint32)
    asc.duplicate(dst, 0, 4 * LENGTH)
    asc.muls(at, at, 4, LENGTH)
    offsets = at.reinterpret_cast(asc.uint32)
    asc.gather(dst, src, offsets, 0, LENGTH)
    asc.gather(
        dst[LENGTH:],
        src,
        offsets,
        src_base=0,
        mask=[0x00000000FFFFFFFF, 0],
        repeat_times=LENGTH // 64,
        dst_rep_stride=8,
    )
    asc.gatherb(
        dst[2 * LENGTH :], src, offsets[LENGTH:], LENGTH // 64, asc.GatherRepeatParams(1, 8)
    )
    asc.gather_mask(
        dst[3 * LENGTH :], src, 2, False, 0, asc.GatherMaskParams(1, LENGTH // 64, 8, 0)
    )
    out_queue.enque(dst)
    in_queue.free_tensor(src)
    index_queue.free_tensor(at)
    result = out_queue.deque(asc.uint32)
    asc.data_copy(z_gm, result, count=3 * LENGTH + LENGTH // 2)
    out_queue.free_tensor(result)


if __name__ == "__main__":
    rng = np.random.default_rng(7)
    x = rng.integers(0, 1 << 32, LENGTH, dtype=np.uint32)
    index = rng.permutation(LENGTH).astype(np.int32)
    blocks = (rng.permutation(LENGTH // 8) * 32).astype(np.int32)
    flat = np.zeros(7 * LENGTH // 2, np.uint32)
    gather_kernel[1](x, index, blocks, flat)
    z = flat[: 3 * LENGTH].reshape(3, LENGTH)
    assert np.array_equal(z[0], x[index])
    assert np.array_equal(z[1], np.where(np.arange(LENGTH) % 64 < 32, x[index], 0))
    assert np.array_equal(z[2].reshape(-1, 8), x.reshape(-1, 8)[blocks // 32])
    assert np.array_equal(flat[3 * LENGTH :], x[1::2])
