"""C = A * B by a Matmul object on cube cores alone: int8 and float32, transposed operands, tails at the edges."""

import asc
import asc.lib.host as host
import asc.lib.runtime as rt
import numpy as np

M, N, K = 200, 150, 96
CORES = 4


@asc.jit(matmul_cube_only=True)
def matmul_float(
    a: asc.GlobalAddress,
    b: asc.GlobalAddress,
    c: asc.GlobalAddress,
    workspace: asc.GlobalAddress,
    tiling: asc.adv.TCubeTiling,
):
    a_global = asc.GlobalTensor()
    b_global = asc.GlobalTensor()
    c_global = asc.GlobalTensor()
    a_global.set_global_buffer(a, tiling.m * tiling.k_a)
    b_global.set_global_buffer(b, tiling.k_b * tiling.n)
    c_global.set_global_buffer(c, tiling.m * tiling.n)

    block = asc.get_block_idx()
    m_blocks = asc.ceildiv(tiling.m, tiling.single_core_m)
    row = block % m_blocks * tiling.single_core_m
    column = block // m_blocks * tiling.single_core_n
    tail_m = tiling.m - row
    if tail_m > tiling.single_core_m:
        tail_m = tiling.single_core_m
    tail_n = tiling.n - column
    if tail_n > tiling.single_core_n:
        tail_n = tiling.single_core_n

    pipe = asc.TPipe()
    matmul = asc.adv.Matmul(
        a=asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, asc.float32, True),
        b=asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, asc.float32, True),
        c=asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, asc.float32),
    )
    asc.adv.register_matmul(pipe, workspace, matmul, tiling)
    # A is stored as (K, M), B as (N, K)
    matmul.set_tensor_a(a_global[row:], True)
    matmul.set_tensor_b(b_global[column * tiling.k_b :], True)
    matmul.set_tail(tail_m, tail_n, tiling.single_core_k)
    matmul.iterate_all(c_global[row * tiling.n + column :])
    matmul.end()


@asc.jit(matmul_cube_only=True)
def matmul_bytes(
    a: asc.GlobalAddress,
    b: asc.GlobalAddress,
    c: asc.GlobalAddress,
    workspace: asc.GlobalAddress,
    tiling: asc.adv.TCubeTiling,
):
    a_global = asc.GlobalTensor()
    b_global = asc.GlobalTensor()
    c_global = asc.GlobalTensor()
    a_global.set_global_buffer(a)
    b_global.set_global_buffer(b)
    c_global.set_global_buffer(c)
    pipe = asc.TPipe()
    matmul = asc.adv.Matmul(
        a=asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, asc.int8),
        b=asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, asc.int8),
        c=asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, asc.int32),
    )
    asc.adv.register_matmul(pipe, workspace, matmul, tiling)
    matmul.set_tensor_a(a_global)
    matmul.set_tensor_b(b_global)
    with matmul.iterate() as count:
        matmul.get_tensor_c(tensor=c_global)
    matmul.end()


def tiling_for(kind, kind_c, transposed, cores):
    tiling = asc.adv.TCubeTiling()
    matmul_tiling = host.MultiCoreMatmulTiling(host.get_ascendc_platform())
    matmul_tiling.set_dim(cores)
    matmul_tiling.set_a_type(host.TPosition.GM, host.CubeFormat.ND, kind, transposed)
    matmul_tiling.set_b_type(host.TPosition.GM, host.CubeFormat.ND, kind, transposed)
    matmul_tiling.set_c_type(host.TPosition.GM, host.CubeFormat.ND, kind_c)
    matmul_tiling.set_shape(M, N, K)
    matmul_tiling.set_org_shape(M, N, K)
    matmul_tiling.set_buffer_space(-1, -1, -1)
    assert matmul_tiling.get_tiling(tiling) != -1
    return tiling


if __name__ == "__main__":
    random = np.random.default_rng(2)
    a = random.uniform(-1, 1, (M, K)).astype(np.float32)
    b = random.uniform(-1, 1, (K, N)).astype(np.float32)
    c = np.zeros((M, N), np.float32)
    workspace = np.zeros(1024, np.uint8)
    tiling = tiling_for(host.DataType.DT_FLOAT, host.DataType.DT_FLOAT, True, CORES)
    matmul_float[tiling.used_core_num, rt.current_stream()](
        np.ascontiguousarray(a.T), np.ascontiguousarray(b.T), c, workspace, tiling
    )
    assert np.allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=1e-5)

    a = random.integers(-128, 128, (M, K)).astype(np.int8)
    b = random.integers(-128, 128, (K, N)).astype(np.int8)
    c = np.zeros((M, N), np.int32)
    tiling = tiling_for(host.DataType.DT_INT8, host.DataType.DT_INT32, False, 1)
    matmul_bytes[1](a, b, c, workspace, tiling)
    assert np.array_equal(c, a.astype(np.int64) @ b.astype(np.int64))
