"""Multiply two matrices with basic calls: the way of a tile through L1, L0A, L0B and L0C.

Each block computes one tile of C = A B, 128 x 128 numbers, on one cube core. It walks along K in steps of 64; each
step's parts of A and B go

    GM --MTE2--> L1 --MTE1--> L0A, L0B --M--> L0C        and after the last step  L0C --FIX--> GM

MTE2 turns rows (ND) into columns of fractals (NZ). A fractal is 16 x 16 numbers of 2 bytes, and the unit M wants
them in another order than L1 has them: L0A row by row of A, L0B row by row of B, each fractal of B transposed. That
is MTE1's work, one `load_data` for each row of fractals. Products of all steps accumulate in L0C, in float32, where
the first step starts from nothing (`cmatrix_init_val`) and the others from what is there.

The queues have 1 or 2 buffers. With 2 the loads of the next step run while M works on this one. Then the kernel
waits for memory only: M takes a step in 256 cycles, and in this time 32 KiB would have to arrive, 128 bytes per
cycle, on 16 cores at once. A larger tile asks for less (06_matmul_object.py); 128 x 256 for 96 bytes per cycle.

    python examples/05_matmul.py
    ascend-sim run examples/05_matmul.py
"""

import numpy as np

from ascend_sim import asc

M, N, K = 512, 512, 1024
TILE = 128  # rows and columns of C in one block
STEP = 64  # of K
FRACTAL = 16  # rows and columns of a fractal of float16
CUBE_ONLY = asc.runtime.config.KernelType.AIC_ONLY


@asc.jit(kernel_type=CUBE_ONLY)
def matmul(
    a: asc.GlobalAddress,
    b: asc.GlobalAddress,
    c: asc.GlobalAddress,
    n: asc.ConstExpr[int],
    k: asc.ConstExpr[int],
    tile: asc.ConstExpr[int],
    step: asc.ConstExpr[int],
    buffers: asc.ConstExpr[int],
):
    """Let each block compute one tile of C (m x n) from A (m x k) and B (k x n)."""
    row = asc.get_block_idx() // (n // tile) * tile
    column = asc.get_block_idx() % (n // tile) * tile
    a_gm = asc.GlobalTensor()
    a_gm.set_global_buffer(a + row * k)
    b_gm = asc.GlobalTensor()
    b_gm.set_global_buffer(b + column)
    c_gm = asc.GlobalTensor()
    c_gm.set_global_buffer(c + row * n + column)

    pipe = asc.TPipe()
    a1_queue = asc.TQue(asc.TPosition.A1, 1)  # L1
    b1_queue = asc.TQue(asc.TPosition.B1, 1)
    a2_queue = asc.TQue(asc.TPosition.A2, 1)  # L0A
    b2_queue = asc.TQue(asc.TPosition.B2, 1)  # L0B
    c_queue = asc.TQue(asc.TPosition.CO1, 1)  # L0C
    size = tile * step * a.dtype.sizeof()
    pipe.init_buffer(que=a1_queue, num=buffers, len=size)
    pipe.init_buffer(que=b1_queue, num=buffers, len=size)
    pipe.init_buffer(que=a2_queue, num=buffers, len=size)
    pipe.init_buffer(que=b2_queue, num=buffers, len=size)
    pipe.init_buffer(que=c_queue, num=1, len=tile * tile * c.dtype.sizeof())
    rows = tile // 16  # of fractals in A's part, and columns in B's
    steps = step // 16  # columns of fractals in A's part, and rows in B's

    product = c_queue.alloc_tensor(c.dtype)
    for i in range(k // step):
        a1 = a1_queue.alloc_tensor(a.dtype)
        b1 = b1_queue.alloc_tensor(b.dtype)
        asc.data_copy(a1, a_gm[i * step :], asc.Nd2NzParams(1, tile, step, 0, k, tile, 1, 0))
        asc.data_copy(b1, b_gm[i * step * n :], asc.Nd2NzParams(1, step, tile, 0, n, step, 1, 0))
        a1_queue.enque(a1)
        b1_queue.enque(b1)

        a1 = a1_queue.deque(a.dtype)
        b1 = b1_queue.deque(b.dtype)
        a2 = a2_queue.alloc_tensor(a.dtype)
        b2 = b2_queue.alloc_tensor(b.dtype)
        along = asc.LoadData2DParams(repeat_times=steps, src_stride=rows)
        for j in range(rows):
            asc.load_data(a2[j * 16 * step :], a1[j * 256 :], along)
        across = asc.LoadData2DParams(repeat_times=rows, src_stride=steps, if_transpose=True)
        for j in range(steps):
            asc.load_data(b2[j * 16 * tile :], b1[j * 256 :], across)
        a1_queue.free_tensor(a1)
        b1_queue.free_tensor(b1)
        a2_queue.enque(a2)
        b2_queue.enque(b2)

        a2 = a2_queue.deque(a.dtype)
        b2 = b2_queue.deque(b.dtype)
        params = asc.MmadParams(
            m=tile, n=tile, k=step, unit_flag=0, cmatrix_source=False, cmatrix_init_val=i == 0
        )
        asc.mmad(product, a2, b2, params)
        a2_queue.free_tensor(a2)
        b2_queue.free_tensor(b2)

    c_queue.enque(product)
    product = c_queue.deque(c.dtype)
    whole = asc.FixpipeParamsV220(n_size=tile, m_size=tile, src_stride=tile, dst_stride=n)
    asc.fixpipe(c_gm, product, whole, asc.FixpipeConfig.cfg_row_major())
    c_queue.free_tensor(product)


def main():
    """Multiply with one and with two buffers in each queue."""
    generator = np.random.default_rng(4)
    a = generator.integers(-8, 9, (M, K)).astype(np.float16)
    b = generator.integers(-8, 9, (K, N)).astype(np.float16)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    blocks = (M // TILE) * (N // TILE)
    limit = (TILE // FRACTAL) * (TILE // FRACTAL) * (K // FRACTAL)
    print(f"C is {M} x {N}, K is {K}, on {blocks} cube cores; limit {limit:,} cycles")
    for buffers in (1, 2):
        c = np.zeros((M, N), np.float32)
        run = matmul[blocks](a, b, c, N, K, TILE, STEP, buffers)
        np.testing.assert_array_equal(c, expected)
        print(f"{buffers} buffer{'s' * (buffers > 1)}: {run.cycles:>6,} cycles")
        for unit in ("MTE2", "MTE1", "M", "FIX"):
            causes = run.pipes["core0.aic"][unit]["causes"]
            shown = {cause: causes.get(cause, 0) for cause in ("busy", "memory", "flag")}
            print(f"  {unit:<4}", *(f"{cause} {cycles:>6,}" for cause, cycles in shown.items()))


if __name__ == "__main__":
    main()
