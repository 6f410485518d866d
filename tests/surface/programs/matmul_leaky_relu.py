"""leaky_relu(A * B + bias): each block of the product comes to UB and goes through the vector unit."""

import asc
import asc.lib.host as host
import asc.lib.runtime as rt
import numpy as np

M, N, K = 256, 256, 64
BLOCKS = 2
ALPHA = 0.001


@asc.jit
def matmul_leakyrelu(
    a: asc.GlobalAddress,
    b: asc.GlobalAddress,
    bias: asc.GlobalAddress,
    c: asc.GlobalAddress,
    workspace: asc.GlobalAddress,
    tiling: asc.adv.TCubeTiling,
    alpha: float,
):
    a_global = asc.GlobalTensor()
    b_global = asc.GlobalTensor()
    c_global = asc.GlobalTensor()
    bias_global = asc.GlobalTensor()
    a_global.set_global_buffer(a, tiling.m * tiling.k_a)
    b_global.set_global_buffer(b, tiling.k_b * tiling.n)
    c_global.set_global_buffer(c, tiling.m * tiling.n)
    bias_global.set_global_buffer(bias, tiling.n)

    block = asc.get_block_idx()
    m_blocks = asc.ceildiv(tiling.m, tiling.single_core_m)
    row = block % m_blocks * tiling.single_core_m
    column = block // m_blocks * tiling.single_core_n

    pipe = asc.TPipe()
    matmul = asc.adv.Matmul(
        a=asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, asc.float16),
        b=asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, asc.float16),
        c=asc.adv.MatmulType(asc.TPosition.VECIN, asc.CubeFormat.ND, asc.float32),
        bias=asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, asc.float32),
    )
    asc.adv.register_matmul(pipe, workspace, matmul, tiling)
    relu_queue = asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(que=relu_queue, num=1, len=tiling.base_m * tiling.base_n * 4)

    matmul.set_tensor_a(a_global[row * tiling.k_a :])
    matmul.set_tensor_b(b_global[column:])
    matmul.set_bias(bias_global[column:])
    round_m = tiling.single_core_m // tiling.base_m
    with matmul.iterate() as count:
        relu_local = relu_queue.alloc_tensor(asc.float32)
        matmul.get_tensor_c(tensor=relu_local, en_atomic=0, en_sequential_write=True)
        asc.leaky_relu(relu_local, relu_local, alpha, tiling.base_m * tiling.base_n)
        relu_queue.enque(relu_local)
        relu_out = relu_queue.deque(asc.float32)
        start = (
            row * tiling.n
            + column
            + count % round_m * tiling.base_m * tiling.n
            + count // round_m * tiling.base_n
        )
        params = asc.DataCopyParams(
            tiling.base_m,
            tiling.base_n * 4 // asc.property(asc.DEFAULT_C0_SIZE),
            0,
            (tiling.n - tiling.base_n) * 4 // asc.property(asc.DEFAULT_C0_SIZE),
        )
        asc.data_copy(c_global[start:], relu_out, repeat_params=params)
        relu_queue.free_tensor(relu_out)
    matmul.end()


if __name__ == "__main__":
    tiling = asc.adv.TCubeTiling()
    matmul_tiling = host.MultiCoreMatmulTiling(host.get_ascendc_platform())
    matmul_tiling.set_dim(2 * BLOCKS)
    matmul_tiling.set_a_type(host.TPosition.GM, host.CubeFormat.ND, host.DataType.DT_FLOAT16, False)
    matmul_tiling.set_b_type(host.TPosition.GM, host.CubeFormat.ND, host.DataType.DT_FLOAT16, False)
    matmul_tiling.set_c_type(host.TPosition.VECIN, host.CubeFormat.ND, host.DataType.DT_FLOAT)
    matmul_tiling.set_bias_type(host.TPosition.GM, host.CubeFormat.ND, host.DataType.DT_FLOAT)
    matmul_tiling.enable_bias(True)
    matmul_tiling.set_shape(M, N, K)
    matmul_tiling.set_org_shape(M, N, K)
    matmul_tiling.set_fix_split(64, 64, -1)
    matmul_tiling.set_traverse(host.MatrixTraverse.FIRSTM)
    matmul_tiling.set_buffer_space(-1, -1, -1)
    assert matmul_tiling.get_tiling(tiling) != -1

    random = np.random.default_rng(3)
    a = random.uniform(-1, 1, (M, K)).astype(np.float16)
    b = random.uniform(-1, 1, (K, N)).astype(np.float16)
    bias = random.uniform(-1, 1, N).astype(np.float32)
    c = np.zeros((M, N), np.float32)
    workspace = np.zeros(16 * 1024 * 1024, np.uint8)
    matmul_leakyrelu[BLOCKS, rt.current_stream()](a, b, bias, c, workspace, tiling, ALPHA)
    expected = a.astype(np.float64) @ b.astype(np.float64) + bias
    expected = np.where(expected >= 0, expected, ALPHA * expected)
    assert np.allclose(c, expected, atol=1e-4)
