"""C = A * B + bias by a Matmul object in a mix kernel: every vector core commands its part of C."""

import asc
import asc.lib.host as host
import asc.lib.runtime as rt
import numpy as np

M, N, K = 256, 192, 128
BLOCKS = 2


@asc.jit
def matmul_all(
    a: asc.GlobalAddress,
    b: asc.GlobalAddress,
    bias: asc.GlobalAddress,
    c: asc.GlobalAddress,
    workspace: asc.GlobalAddress,
    tiling: asc.adv.TCubeTiling,
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
        c=asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, asc.float32),
        bias=asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, asc.float32),
    )
    asc.adv.register_matmul(pipe, workspace, matmul, tiling)
    matmul.set_tensor_a(a_global[row * tiling.k_a :])
    matmul.set_tensor_b(b_global[column:])
    matmul.set_bias(bias_global[column:])
    matmul.iterate_all(c_global[row * tiling.n + column :])
    matmul.end()


@asc.jit
def matmul_blocks(
    a: asc.GlobalAddress,
    b: asc.GlobalAddress,
    bias: asc.GlobalAddress,
    c: asc.GlobalAddress,
    workspace: asc.GlobalAddress,
    tiling: asc.adv.TCubeTiling,
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
        c=asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, asc.float32),
        bias=asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, asc.float32),
    )
    asc.adv.register_matmul(pipe, workspace, matmul)
    matmul.init(tiling)
    matmul.set_tensor_a(a_global[row * tiling.k_a :])
    matmul.set_tensor_b(b_global[column:])
    matmul.set_bias(bias_global[column:])
    with matmul.iterate() as count:
        matmul.get_tensor_c(tensor=c_global[row * tiling.n + column :])
    matmul.end()


def tiling_for(m, n, k, cores):
    tiling = asc.adv.TCubeTiling()
    platform = host.get_ascendc_platform()
    matmul_tiling = host.MultiCoreMatmulTiling(platform)
    matmul_tiling.set_dim(cores)
    matmul_tiling.set_a_type(host.TPosition.GM, host.CubeFormat.ND, host.DataType.DT_FLOAT16, False)
    matmul_tiling.set_b_type(host.TPosition.GM, host.CubeFormat.ND, host.DataType.DT_FLOAT16, False)
    matmul_tiling.set_c_type(host.TPosition.GM, host.CubeFormat.ND, host.DataType.DT_FLOAT)
    matmul_tiling.set_bias_type(host.TPosition.GM, host.CubeFormat.ND, host.DataType.DT_FLOAT)
    matmul_tiling.enable_bias(True)
    matmul_tiling.set_shape(m, n, k)
    matmul_tiling.set_org_shape(m, n, k)
    matmul_tiling.set_buffer_space(-1, -1, -1)
    if matmul_tiling.get_tiling(tiling) == -1:
        raise RuntimeError("no tiling")
    return tiling


if __name__ == "__main__":
    random = np.random.default_rng(1)
    a = random.uniform(-1, 1, (M, K)).astype(np.float16)
    b = random.uniform(-1, 1, (K, N)).astype(np.float16)
    bias = random.uniform(-1, 1, N).astype(np.float32)
    expected = a.astype(np.float64) @ b.astype(np.float64) + bias
    workspace = np.zeros(16 * 1024 * 1024, np.uint8)
    tiling = tiling_for(M, N, K, 2 * BLOCKS)
    for kernel in (matmul_all, matmul_blocks):
        c = np.zeros((M, N), np.float32)
        kernel[BLOCKS, rt.current_stream()](a, b, bias, c, workspace, tiling)
        assert np.allclose(c, expected, atol=1e-4), np.abs(c - expected).max()
