"""Quantisation: float32 to int8 by a scale, and back from int32 with a scale in the register for it."""

import asc
import numpy as np

LENGTH = 1024


@asc.jit
def quantise_kernel(x: asc.GlobalAddress, q: asc.GlobalAddress, scale: float, zero: float):
    x_gm = asc.GlobalTensor()
    q_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    q_gm.set_global_buffer(q)
    pipe = asc.TPipe()
    in_queue = asc.TQue(asc.TPosition.VECIN, 1)
    out_queue = asc.TQue(asc.TPosition.VECOUT, 1)
    half_buffer = asc.TBuf(asc.TPosition.VECCALC)
    pipe.init_buffer(que=in_queue, num=1, len=LENGTH * 4)
    pipe.init_buffer(que=out_queue, num=1, len=LENGTH)
    pipe.init_buffer(buf=half_buffer, num=LENGTH * 2)
    copied = in_queue.alloc_tensor(asc.float32)
    asc.data_copy(copied, x_gm, count=LENGTH)
    in_queue.enque(copied)
    src = in_queue.deque(asc.float32)
    narrow = half_buffer.get(asc.half)
    dst = out_queue.alloc_tensor(asc.int8)
    asc.muls(src, src, scale, LENGTH)
    asc.adds(src, src, zero, LENGTH)
    asc.maxs(src, src, -128.0, LENGTH)
    asc.mins(src, src, 127.0, LENGTH)
    asc.cast(narrow, src, asc.RoundMode.CAST_RINT, LENGTH)
    asc.cast(dst, narrow, asc.RoundMode.CAST_RINT, LENGTH)
    out_queue.enque(dst)
    in_queue.free_tensor(src)
    result = out_queue.deque(asc.int8)
    asc.data_copy(q_gm, result, count=LENGTH)
    out_queue.free_tensor(result)


@asc.jit
def dequantise_kernel(x: asc.GlobalAddress, z: asc.GlobalAddress, scale: float):
    x_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    z_gm.set_global_buffer(z)
    pipe = asc.TPipe()
    in_queue = asc.TQue(asc.TPosition.VECIN, 1)
    out_queue = asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(que=in_queue, num=1, len=LENGTH * 4)
    pipe.init_buffer(que=out_queue, num=1, len=LENGTH * 2)
    copied = in_queue.alloc_tensor(asc.int32)
    asc.data_copy(copied, x_gm, count=LENGTH)
    in_queue.enque(copied)
    src = in_queue.deque(asc.int32)
    dst = out_queue.alloc_tensor(asc.half)
    asc.set_deq_scale(scale)
    asc.cast(
        dst,
        src,
        asc.RoundMode.CAST_NONE,
        mask=64,
        repeat_times=LENGTH // 64,
        repeat_params=asc.UnaryRepeatParams(1, 1, 4, 8),
    )
    out_queue.enque(dst)
    in_queue.free_tensor(src)
    result = out_queue.deque(asc.half)
    asc.data_copy(z_gm, result, count=LENGTH)
    out_queue.free_tensor(result)


if __name__ == "__main__":
    rng = np.random.default_rng(11)
    x = rng.normal(0, 40, LENGTH).astype(np.float32)
    q = np.zeros(LENGTH, np.int8)
    scale, zero = np.float32(1.5), np.float32(-3.0)
    quantise_kernel[1](x, q, float(scale), float(zero))
    steps = np.clip(x * scale + zero, np.float32(-128), np.float32(127)).astype(np.float16)
    assert np.array_equal(q, np.rint(steps.astype(np.float32)).astype(np.int8))

    sums = rng.integers(-(1 << 15), 1 << 15, LENGTH).astype(np.int32)
    z = np.zeros(LENGTH, np.float16)
    dequantise_kernel[1](sums, z, 0.0078125)
    assert np.array_equal(z, (sums * 0.0078125).astype(np.float16))
