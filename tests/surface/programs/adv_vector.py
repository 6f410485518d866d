"""The vector functions of asc.adv: softmax with its tiling, rmsnorm, tanh with a temporary buffer, quant."""

import asc
import numpy as np

ROWS, COLUMNS = 16, 128
SIZE = ROWS * COLUMNS


@asc.jit
def softmax_rows(
    x: asc.GlobalAddress,
    out: asc.GlobalAddress,
    largest: asc.GlobalAddress,
    total: asc.GlobalAddress,
    tiling: asc.adv.SoftmaxTiling,
):
    x_gm = asc.GlobalTensor()
    out_gm = asc.GlobalTensor()
    largest_gm = asc.GlobalTensor()
    total_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    out_gm.set_global_buffer(out)
    largest_gm.set_global_buffer(largest)
    total_gm.set_global_buffer(total)
    pipe = asc.TPipe()
    in_queue = asc.TQue(asc.TPosition.VECIN, 1)
    out_queue = asc.TQue(asc.TPosition.VECOUT, 1)
    max_queue = asc.TQue(asc.TPosition.VECOUT, 1)
    sum_queue = asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(que=in_queue, num=1, len=tiling.src_m * tiling.src_k * 2)
    pipe.init_buffer(que=out_queue, num=1, len=tiling.src_m * tiling.src_k * 2)
    pipe.init_buffer(que=max_queue, num=1, len=tiling.src_m * 32)
    pipe.init_buffer(que=sum_queue, num=1, len=tiling.src_m * 32)
    copied = in_queue.alloc_tensor(asc.half)
    asc.data_copy(copied, x_gm, tiling.src_m * tiling.src_k)
    in_queue.enque(copied)
    src = in_queue.deque(asc.half)
    dst = out_queue.alloc_tensor(asc.half)
    max_local = max_queue.alloc_tensor(asc.half)
    sum_local = sum_queue.alloc_tensor(asc.half)
    asc.adv.softmax(dst, sum_local, max_local, src, tiling)
    out_queue.enque(dst)
    max_queue.enque(max_local)
    sum_queue.enque(sum_local)
    in_queue.free_tensor(src)
    dst_out = out_queue.deque(asc.half)
    max_out = max_queue.deque(asc.half)
    sum_out = sum_queue.deque(asc.half)
    asc.data_copy(out_gm, dst_out, tiling.src_m * tiling.src_k)
    asc.data_copy(largest_gm, max_out, tiling.src_m * 16)
    asc.data_copy(total_gm, sum_out, tiling.src_m * 16)
    out_queue.free_tensor(dst_out)
    max_queue.free_tensor(max_out)
    sum_queue.free_tensor(sum_out)


@asc.jit
def norm_tanh_quant(
    x: asc.GlobalAddress,
    gamma: asc.GlobalAddress,
    out: asc.GlobalAddress,
    tiling: asc.adv.RmsNormTiling,
    size: asc.ConstExpr[int],
):
    x_gm = asc.GlobalTensor()
    gamma_gm = asc.GlobalTensor()
    out_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    gamma_gm.set_global_buffer(gamma)
    out_gm.set_global_buffer(out)
    pipe = asc.TPipe()
    in_queue = asc.TQue(asc.TPosition.VECIN, 1)
    gamma_queue = asc.TQue(asc.TPosition.VECIN, 1)
    out_queue = asc.TQue(asc.TPosition.VECOUT, 1)
    normed_buffer = asc.TBuf(asc.TPosition.VECCALC)
    tanh_buffer = asc.TBuf(asc.TPosition.VECCALC)
    shared_buffer = asc.TBuf(asc.TPosition.VECCALC)
    pipe.init_buffer(que=in_queue, num=1, len=size * 4)
    pipe.init_buffer(que=gamma_queue, num=1, len=size * 4)
    pipe.init_buffer(que=out_queue, num=1, len=size)
    pipe.init_buffer(buf=normed_buffer, num=size * 4)
    pipe.init_buffer(buf=tanh_buffer, num=size * 4)
    pipe.init_buffer(buf=shared_buffer, num=32768)
    copied = in_queue.alloc_tensor(asc.float32)
    copied_gamma = gamma_queue.alloc_tensor(asc.float32)
    asc.data_copy(copied, x_gm, size)
    asc.data_copy(copied_gamma, gamma_gm, tiling.h_length)
    in_queue.enque(copied)
    gamma_queue.enque(copied_gamma)
    src = in_queue.deque(asc.float32)
    factors = gamma_queue.deque(asc.float32)
    normed = normed_buffer.get(asc.float32)
    bent = tanh_buffer.get(asc.float32)
    shared = shared_buffer.get(asc.uint8)
    asc.adv.rmsnorm(normed, src, factors, 1e-5, tiling)
    asc.adv.tanh(bent, normed, count=size, temp_buffer=shared)
    dst = out_queue.alloc_tensor(asc.int8)
    asc.adv.quant(dst, bent, 100.0, 0.0, count=size)
    out_queue.enque(dst)
    in_queue.free_tensor(src)
    gamma_queue.free_tensor(factors)
    dst_out = out_queue.deque(asc.int8)
    asc.data_copy(out_gm, dst_out, size)
    out_queue.free_tensor(dst_out)


if __name__ == "__main__":
    random = np.random.default_rng(4)
    x = random.normal(size=(ROWS, COLUMNS)).astype(np.float16)
    out = np.zeros_like(x)
    largest = np.zeros((ROWS, 16), np.float16)
    total = np.zeros((ROWS, 16), np.float16)
    tiling = asc.adv.SoftmaxTiling(src_m=ROWS, src_k=COLUMNS, split_m=8)
    softmax_rows[1](x, out, largest, total, tiling)
    wide = x.astype(np.float64)
    weights = np.exp(wide - wide.max(axis=1, keepdims=True))
    assert np.allclose(out, weights / weights.sum(axis=1, keepdims=True), rtol=1e-3, atol=1e-6)
    assert np.array_equal(largest[:, 0], x.max(axis=1))
    assert np.allclose(total[:, 3], weights.sum(axis=1), rtol=1e-3)

    x = random.normal(size=(ROWS, COLUMNS)).astype(np.float32)
    gamma = random.normal(size=COLUMNS).astype(np.float32)
    bytes_out = np.zeros((ROWS, COLUMNS), np.int8)
    norm = asc.adv.RmsNormTiling(
        b_length=1, s_length=ROWS, h_length=COLUMNS, original_h_length=COLUMNS, main_bs_length=8
    )
    norm_tanh_quant[1](x, gamma, bytes_out, norm, SIZE)
    wide = x.astype(np.float64)
    expected = np.tanh(wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-5) * gamma)
    # float32 goes through float16 on its way to 8 bits, which moves values near 100 by 1 / 32 at most
    assert np.abs(bytes_out - 100 * expected).max() <= 0.5 + 1 / 32 + 1e-4
