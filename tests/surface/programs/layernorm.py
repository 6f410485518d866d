"""Layer normalisation of float16 rows in float32: casts, block reductions, broadcast gamma and beta, a division."""

import asc
import numpy as np

ROWS = 8
COLUMNS = 256
SIZE = ROWS * COLUMNS
EPSILON = 1e-5


@asc.jit
def layernorm_kernel(
    x: asc.GlobalAddress, gamma: asc.GlobalAddress, beta: asc.GlobalAddress, z: asc.GlobalAddress
):
    start = asc.get_block_idx() * SIZE
    x_gm = asc.GlobalTensor()
    gamma_gm = asc.GlobalTensor()
    beta_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x + start)
    gamma_gm.set_global_buffer(gamma)
    beta_gm.set_global_buffer(beta)
    z_gm.set_global_buffer(z + start)
    pipe = asc.TPipe()
    in_queue = asc.TQue(asc.TPosition.VECIN, 1)
    weight_queue = asc.TQue(asc.TPosition.VECIN, 1)
    out_queue = asc.TQue(asc.TPosition.VECOUT, 1)
    work_buffer = asc.TBuf(asc.TPosition.VECCALC)
    square_buffer = asc.TBuf(asc.TPosition.VECCALC)
    sum_buffer = asc.TBuf(asc.TPosition.VECCALC)
    pipe.init_buffer(in_queue, 1, SIZE * 2)
    pipe.init_buffer(weight_queue, 1, 2 * COLUMNS * 4)
    pipe.init_buffer(out_queue, 1, SIZE * 2)
    pipe.init_buffer(buf=work_buffer, num=SIZE * 4)
    pipe.init_buffer(buf=square_buffer, num=SIZE * 4)
    pipe.init_buffer(buf=sum_buffer, num=1024)

    copied = in_queue.alloc_tensor(asc.half)
    asc.data_copy(copied, x_gm, SIZE)
    in_queue.enque(copied)
    weights = weight_queue.alloc_tensor(asc.float32)
    asc.data_copy(weights, gamma_gm, COLUMNS)
    asc.data_copy(weights[COLUMNS:], beta_gm, COLUMNS)
    weight_queue.enque(weights)

    narrow = in_queue.deque(asc.half)
    scale = weight_queue.deque(asc.float32)
    out = out_queue.alloc_tensor(asc.half)
    work = work_buffer.get(asc.float32)
    square = square_buffer.get(asc.float32)
    sums = sum_buffer.get(asc.float32)
    asc.cast(work, narrow, asc.RoundMode.CAST_NONE, SIZE)
    in_queue.free_tensor(narrow)
    for row in range(ROWS):
        line = work[row * COLUMNS :]
        # 256 numbers are 32 blocks: one sum a block, then one repeat over the 32 sums
        asc.block_reduce_sum(sums, line, COLUMNS // 64, 64, 1, 1, 8)
        asc.whole_reduce_sum(sums[64:], sums, 32, 1, 1, 1, 8)
        mean = sums.get_value(64) / COLUMNS
        asc.adds(line, line, 0.0 - mean, COLUMNS)
        asc.mul(square, line, line, COLUMNS)
        asc.reduce_sum(sums[128:], square, sums, COLUMNS)
        variance = sums.get_value(128) / COLUMNS
        asc.duplicate(sums, variance + EPSILON, 64)
        asc.sqrt(sums, sums, 64)
        # one block of the same number, met by every block of the row
        asc.div(line, line, sums, 64, COLUMNS // 64, asc.BinaryRepeatParams(1, 1, 0, 8, 8, 0))
    # gamma and beta are read again for each row: their repeat stride in the row is 8, rows go on by 0
    for part in asc.static_range(COLUMNS // 64):
        again = asc.BinaryRepeatParams(1, 1, 1, COLUMNS // 8, COLUMNS // 8, 0)
        asc.mul(work[part * 64 :], work[part * 64 :], scale[part * 64 :], 64, ROWS, again)
        asc.add(work[part * 64 :], work[part * 64 :], scale[COLUMNS + part * 64 :], 64, ROWS, again)
    weight_queue.free_tensor(scale)
    asc.cast(out, work, asc.RoundMode.CAST_RINT, SIZE)
    out_queue.enque(out)
    result = out_queue.deque(asc.half)
    asc.data_copy(z_gm, result, SIZE)
    out_queue.free_tensor(result)


if __name__ == "__main__":
    rng = np.random.default_rng(5)
    x = rng.normal(1, 2, (2 * ROWS, COLUMNS)).astype(np.float16)
    gamma, beta = rng.normal(size=(2, COLUMNS)).astype(np.float32)
    z = np.zeros_like(x)
    layernorm_kernel[2](x, gamma, beta, z)
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON) * gamma + beta
    assert np.allclose(z, expected, rtol=1e-3, atol=2e-3), np.abs(z - expected).max()
