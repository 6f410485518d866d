"""Matrix product from basic calls on one cube core: ND to NZ, loads with and without transposition, mmad, fixpipe.

A is given as (M, K) or as (K, M), B as (K, N) or as (N, K); K is cut into parts that accumulate in L0C.
"""

import asc
import asc.lib.runtime as rt
import numpy as np
from asc.runtime import config

M, N, K = 64, 48, 96
PART = 32  # of K, at a time


@asc.jit(kernel_type=config.KernelType.AIC_ONLY)
def matmul_kernel(
    a: asc.GlobalAddress,
    b: asc.GlobalAddress,
    c: asc.GlobalAddress,
    a_transposed: asc.ConstExpr[bool],
    b_transposed: asc.ConstExpr[bool],
):
    a_gm = asc.GlobalTensor()
    b_gm = asc.GlobalTensor()
    c_gm = asc.GlobalTensor()
    a_gm.set_global_buffer(a)
    b_gm.set_global_buffer(b)
    c_gm.set_global_buffer(c)
    pipe = asc.TPipe()
    a1_queue = asc.TQue(asc.TPosition.A1, 1)
    b1_queue = asc.TQue(asc.TPosition.B1, 1)
    a2_queue = asc.TQue(asc.TPosition.A2, 1)
    b2_queue = asc.TQue(asc.TPosition.B2, 1)
    c_queue = asc.TQue(asc.TPosition.CO1, 1)
    pipe.init_buffer(que=a1_queue, num=2, len=M * PART * 2)
    pipe.init_buffer(que=b1_queue, num=2, len=N * PART * 2)
    pipe.init_buffer(que=a2_queue, num=2, len=M * PART * 2)
    pipe.init_buffer(que=b2_queue, num=2, len=N * PART * 2)
    pipe.init_buffer(que=c_queue, num=1, len=M * N * 4)

    product = c_queue.alloc_tensor(asc.float32)
    for part in asc.static_range(K // PART):
        a1 = a1_queue.alloc_tensor(asc.half)
        b1 = b1_queue.alloc_tensor(asc.half)
        if a_transposed:
            # rows of A^T are k: PART rows of M numbers
            asc.data_copy(
                a1, a_gm[part * PART * M :], asc.Nd2NzParams(1, PART, M, 0, M, PART, 1, 0)
            )
        else:
            asc.data_copy(a1, a_gm[part * PART :], asc.Nd2NzParams(1, M, PART, 0, K, M, 1, 0))
        if b_transposed:
            asc.data_copy(b1, b_gm[part * PART :], asc.Nd2NzParams(1, N, PART, 0, K, N, 1, 0))
        else:
            asc.data_copy(
                b1, b_gm[part * PART * N :], asc.Nd2NzParams(1, PART, N, 0, N, PART, 1, 0)
            )
        a1_queue.enque(a1)
        b1_queue.enque(b1)

        a1_ready = a1_queue.deque(asc.half)
        b1_ready = b1_queue.deque(asc.half)
        a2 = a2_queue.alloc_tensor(asc.half)
        b2 = b2_queue.alloc_tensor(asc.half)
        # L0A holds rows of fractals (m outside), L0B too (k outside)
        for i in asc.static_range(M // 16):
            if a_transposed:
                # fractal (k, m) lies at m * PART / 16 + k, turned it is (m, k)
                asc.load_data(
                    a2[i * 16 * PART :],
                    a1_ready[i * 16 * PART :],
                    asc.LoadData2DParams(repeat_times=PART // 16, src_stride=1, if_transpose=True),
                )
            else:
                # fractal (m, k) lies at k * M / 16 + m
                asc.load_data(
                    a2[i * 16 * PART :],
                    a1_ready[i * 16 * 16 :],
                    asc.LoadData2DParams(repeat_times=PART // 16, src_stride=M // 16),
                )
        for j in asc.static_range(PART // 16):
            if b_transposed:
                # fractal (n, k) lies at k * N / 16 + n and is what L0B wants
                asc.load_data(
                    b2[j * 16 * N :],
                    b1_ready[j * 16 * N :],
                    asc.LoadData2DParams(repeat_times=N // 16, src_stride=1),
                )
            else:
                # fractal (k, n) lies at n * PART / 16 + k and is turned
                asc.load_data(
                    b2[j * 16 * N :],
                    b1_ready[j * 16 * 16 :],
                    asc.LoadData2DParams(
                        repeat_times=N // 16, src_stride=PART // 16, if_transpose=True
                    ),
                )
        a1_queue.free_tensor(a1_ready)
        b1_queue.free_tensor(b1_ready)
        a2_queue.enque(a2)
        b2_queue.enque(b2)

        a2_ready = a2_queue.deque(asc.half)
        b2_ready = b2_queue.deque(asc.half)
        asc.mmad(
            product,
            a2_ready,
            b2_ready,
            asc.MmadParams(
                m=M, n=N, k=PART, unit_flag=0, cmatrix_source=False, cmatrix_init_val=part == 0
            ),
        )
        a2_queue.free_tensor(a2_ready)
        b2_queue.free_tensor(b2_ready)
    c_queue.enque(product)
    done = c_queue.deque(asc.float32)
    params = asc.FixpipeParamsV220(n_size=N, m_size=M, src_stride=M, dst_stride=N)
    asc.fixpipe(c_gm, done, params, asc.FixpipeConfig.cfg_row_major())
    c_queue.free_tensor(done)


def matmul_launch(
    a: np.ndarray, b: np.ndarray, a_transposed: bool, b_transposed: bool
) -> np.ndarray:
    c = np.zeros((M, N), np.float32)
    matmul_kernel[1, rt.current_stream()](
        a.T.copy() if a_transposed else a,
        b.T.copy() if b_transposed else b,
        c,
        a_transposed,
        b_transposed,
    )
    return c


if __name__ == "__main__":
    config.set_platform(config.Backend.Model, config.Platform.Ascend910B1)
    rng = np.random.default_rng(10)
    a = rng.normal(size=(M, K)).astype(np.float16)
    b = rng.normal(size=(K, N)).astype(np.float16)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    for a_transposed in (False, True):
        for b_transposed in (False, True):
            c = matmul_launch(a, b, a_transposed, b_transposed)
            assert np.allclose(c, expected, rtol=1e-5, atol=1e-4), (a_transposed, b_transposed)
