"""leaky_relu(A B + bias) with a Matmul object: vector cores command their cube core and take its results.

A block has one cube core and two vector cores, which run this kernel. Each has its part of C (`single_core_m` x
`single_core_n` numbers) and asks the cube core for it, base block by base block (`base_m` x `base_n`): `iterate` has
one more block computed, `get_tensor_c` brings it, here to UB, where the vector core goes on with it, while the cube
core computes a block for the other one. The cube core's own program does nothing but wait for such commands; every
instruction of it in the trace stands at the line of the kernel that asked for it.

How C is cut, and how many parts of A and B stay in L1, is the host's tiling, computed before the launch. The larger
the base block, the less often the same numbers of A and B come from GM, and the fewer commands there are: a block of
32 x 64 costs two and a half times the time of 128 x 128, of which two results just fit into UB.

    python examples/06_matmul_object.py
    ascend-sim run examples/06_matmul_object.py
"""

import numpy as np

from ascend_sim import asc
from ascend_sim.asc.lib import host

BLOCKS = 8
M, N, K = 1024, 1024, 512
SLOPE = 0.125


@asc.jit
def matmul_leaky_relu(
    a: asc.GlobalAddress,
    b: asc.GlobalAddress,
    bias: asc.GlobalAddress,
    c: asc.GlobalAddress,
    workspace: asc.GlobalAddress,
    tiling: asc.adv.TCubeTiling,
    slope: float,
):
    """Let each vector core compute its part of C."""
    rows = asc.ceildiv(tiling.m, tiling.single_core_m)  # of parts
    row = asc.get_block_idx() % rows * tiling.single_core_m
    column = asc.get_block_idx() // rows * tiling.single_core_n
    a_gm = asc.GlobalTensor()
    a_gm.set_global_buffer(a + row * tiling.k_a)
    b_gm = asc.GlobalTensor()
    b_gm.set_global_buffer(b + column)
    bias_gm = asc.GlobalTensor()
    bias_gm.set_global_buffer(bias + column)
    c_gm = asc.GlobalTensor()
    c_gm.set_global_buffer(c + row * tiling.n + column)

    pipe = asc.TPipe()
    product = asc.adv.Matmul(
        a=asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, asc.float16),
        b=asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, asc.float16),
        c=asc.adv.MatmulType(asc.TPosition.VECIN, asc.CubeFormat.ND, asc.float32),
        bias=asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, asc.float32),
    )
    asc.adv.register_matmul(pipe, workspace, product, tiling)
    queue = asc.TQue(asc.TPosition.VECOUT, 1)
    size = tiling.base_m * tiling.base_n
    pipe.init_buffer(que=queue, num=2, len=size * c.dtype.sizeof())

    product.set_tensor_a(a_gm)
    product.set_tensor_b(b_gm)
    product.set_bias(bias_gm)
    down = tiling.single_core_m // tiling.base_m  # blocks in a column of blocks
    block = asc.DataCopyParams(
        tiling.base_m, tiling.base_n // 8, 0, (tiling.n - tiling.base_n) // 8
    )
    with product.iterate() as i:
        result = queue.alloc_tensor(c.dtype)
        product.get_tensor_c(tensor=result, en_atomic=0, en_sequential_write=True)
        asc.leaky_relu(result, result, slope, size)
        queue.enque(result)
        result = queue.deque(c.dtype)
        start = i % down * tiling.base_m * tiling.n + i // down * tiling.base_n
        asc.data_copy(c_gm[start:], result, repeat_params=block)
        queue.free_tensor(result)
    product.end()


def make_tiling(base_m, base_n):
    """Return the tiling of the product for all vector cores, with base blocks of this size."""
    solver = host.MultiCoreMatmulTiling(host.get_ascendc_platform())
    half, single = host.DataType.DT_FLOAT16, host.DataType.DT_FLOAT
    solver.set_dim(2 * BLOCKS)
    solver.set_a_type(host.TPosition.GM, host.CubeFormat.ND, half, False)
    solver.set_b_type(host.TPosition.GM, host.CubeFormat.ND, half, False)
    solver.set_c_type(host.TPosition.VECIN, host.CubeFormat.ND, single)
    solver.set_bias_type(host.TPosition.GM, host.CubeFormat.ND, single)
    solver.enable_bias(True)
    solver.set_shape(M, N, K)
    solver.set_org_shape(M, N, K)
    solver.set_fix_split(base_m, base_n, -1)
    solver.set_traverse(host.MatrixTraverse.FIRSTM)
    tiling = asc.adv.TCubeTiling()
    if solver.get_tiling(tiling) == -1:
        raise RuntimeError("no tiling")
    return tiling


def main():
    """Compute with two sizes of base blocks."""
    generator = np.random.default_rng(5)
    a = generator.integers(-8, 9, (M, K)).astype(np.float16)
    b = generator.integers(-8, 9, (K, N)).astype(np.float16)
    bias = generator.integers(-99, 100, N).astype(np.float32)
    expected = a.astype(np.float64) @ b.astype(np.float64) + bias
    expected = np.where(expected >= 0, expected, SLOPE * expected)
    workspace = np.zeros(16 << 20, np.uint8)
    print(f"C is {M} x {N}, K is {K}, on {BLOCKS} cube cores")
    for base_m, base_n in ((32, 64), (64, 128), (128, 128)):
        tiling = make_tiling(base_m, base_n)
        c = np.zeros((M, N), np.float32)
        run = matmul_leaky_relu[BLOCKS](a, b, bias, c, workspace, tiling, SLOPE)
        np.testing.assert_array_equal(c, expected)
        pipes = run.pipes
        print(
            f"base {base_m:>3} x {base_n:>3} x {tiling.base_k:>3}: {run.cycles:>7,} cycles; "
            f"the cube core multiplies for {pipes['core0.aic']['M']['busy']:,}, "
            f"a vector core waits for it for {pipes['core0.aiv0']['V']['causes']['cross_core']:,}"
        )


if __name__ == "__main__":
    main()
