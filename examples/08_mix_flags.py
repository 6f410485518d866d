"""relu(A B + bias) by basic calls: a cube core and its two vector cores hand tiles to each other by flags.

In a kernel of type MIX_AIC_1_2 a block is an AI Core: one cube core and two vector cores, and all three run this
kernel. `ascend_is_aic` and `ascend_is_aiv` tell them apart; `get_block_idx` numbers cube cores by blocks, vector cores
two a block; `get_sub_block_idx` is 0 or 1. They share no memory but GM, so products pass through a workspace there:

    cube core     ... FIX: tile -> workspace, set DONE          before it writes a place again: wait FREE
    vector cores  wait DONE, MTE2: half a tile each -> UB, set FREE, then V and MTE3

A flag between cores is a counter. With mode 2 a set of the cube core counts for both of its vector cores, and a set of
both vector cores counts once for their cube core. The set waits for earlier work of the pipe that it names; the wait
stops the scalar unit, so nothing behind it is issued. Sets and waits must come out even: what is left would let the
next kernel's first wait pass.

With one place in the workspace the two kinds of core take turns, with two they work at the same time.

    python examples/08_mix_flags.py
    ascend-sim run examples/08_mix_flags.py
"""

import numpy as np

from ascend_sim import asc

BLOCKS = 4
TILES = 8  # of a block
ROWS, N, K = 128, 128, 256  # a tile of A is ROWS x K, B is K x N
DONE, FREE = 0, 1  # flags: a tile is in the workspace; its place may be written again
TOGETHER = 2  # the mode of flags between a cube core and its vector cores
MIX = asc.runtime.config.KernelType.MIX_AIC_1_2


@asc.jit(auto_sync=False, kernel_type=MIX)
def product(
    a: asc.GlobalAddress,
    b: asc.GlobalAddress,
    bias: asc.GlobalAddress,
    workspace: asc.GlobalAddress,
    c: asc.GlobalAddress,
    places: asc.ConstExpr[int],
):
    """Let each block compute TILES tiles of C; `places` of them fit into its part of the workspace."""
    if asc.ascend_is_aic():
        multiply(a, b, workspace, places)
    if asc.ascend_is_aiv():
        finish(bias, workspace, c, places)


@asc.jit(auto_sync=False)
def multiply(
    a: asc.GlobalAddress,
    b: asc.GlobalAddress,
    workspace: asc.GlobalAddress,
    places: asc.ConstExpr[int],
):
    """Do the cube core's part: B stays in L0B, tiles of A go through, products go to the workspace."""
    block = asc.get_block_idx()
    a_gm = asc.GlobalTensor()
    a_gm.set_global_buffer(a + block * TILES * ROWS * K)
    b_gm = asc.GlobalTensor()
    b_gm.set_global_buffer(b)
    tiles_gm = asc.GlobalTensor()
    tiles_gm.set_global_buffer(workspace + block * places * ROWS * N)

    pipe = asc.TPipe()
    a1_queue = asc.TQue(asc.TPosition.A1, 1)  # L1
    b1_queue = asc.TQue(asc.TPosition.B1, 1)
    a2_queue = asc.TQue(asc.TPosition.A2, 1)  # L0A
    b2_queue = asc.TQue(asc.TPosition.B2, 1)  # L0B
    c_queue = asc.TQue(asc.TPosition.CO1, 1)  # L0C
    pipe.init_buffer(que=a1_queue, num=2, len=ROWS * K * 2)
    pipe.init_buffer(que=b1_queue, num=1, len=K * N * 2)
    pipe.init_buffer(que=a2_queue, num=1, len=ROWS * K * 2)
    pipe.init_buffer(que=b2_queue, num=1, len=K * N * 2)
    pipe.init_buffer(que=c_queue, num=2, len=ROWS * N * 4)

    b1 = b1_queue.alloc_tensor(b.dtype)
    asc.data_copy(b1, b_gm, asc.Nd2NzParams(1, K, N, 0, N, K, 1, 0))
    b1_queue.enque(b1)
    b1 = b1_queue.deque(b.dtype)
    b2 = b2_queue.alloc_tensor(b.dtype)
    across = asc.LoadData2DParams(repeat_times=N // 16, src_stride=K // 16, if_transpose=True)
    for j in range(K // 16):
        asc.load_data(b2[j * 16 * N :], b1[j * 256 :], across)
    b1_queue.free_tensor(b1)
    b2_queue.enque(b2)
    b2 = b2_queue.deque(b.dtype)

    along = asc.LoadData2DParams(repeat_times=K // 16, src_stride=ROWS // 16)
    params = asc.MmadParams(
        m=ROWS, n=N, k=K, unit_flag=0, cmatrix_source=False, cmatrix_init_val=True
    )
    whole = asc.FixpipeParamsV220(n_size=N, m_size=ROWS, src_stride=ROWS, dst_stride=N)
    for i in range(TILES):
        a1 = a1_queue.alloc_tensor(a.dtype)
        asc.data_copy(a1, a_gm[i * ROWS * K :], asc.Nd2NzParams(1, ROWS, K, 0, K, ROWS, 1, 0))
        a1_queue.enque(a1)
        a1 = a1_queue.deque(a.dtype)
        a2 = a2_queue.alloc_tensor(a.dtype)
        for j in range(ROWS // 16):
            asc.load_data(a2[j * 16 * K :], a1[j * 256 :], along)
        a1_queue.free_tensor(a1)
        a2_queue.enque(a2)
        a2 = a2_queue.deque(a.dtype)
        tile = c_queue.alloc_tensor(asc.float32)
        asc.mmad(tile, a2, b2, params)
        a2_queue.free_tensor(a2)
        c_queue.enque(tile)
        tile = c_queue.deque(asc.float32)
        if i >= places:
            asc.cross_core_wait_flag(FREE, TOGETHER, asc.PipeID.PIPE_S)
        asc.fixpipe(
            tiles_gm[i % places * ROWS * N :], tile, whole, asc.FixpipeConfig.cfg_row_major()
        )
        c_queue.free_tensor(tile)
        asc.cross_core_set_flag(DONE, TOGETHER, asc.PipeID.PIPE_FIX)
    b2_queue.free_tensor(b2)


@asc.jit(auto_sync=False)
def finish(
    bias: asc.GlobalAddress,
    workspace: asc.GlobalAddress,
    c: asc.GlobalAddress,
    places: asc.ConstExpr[int],
):
    """Do a vector core's part: half the rows of each tile."""
    half = ROWS // 2
    block = asc.get_block_idx() // 2
    first = asc.get_sub_block_idx() * half * N
    tiles_gm = asc.GlobalTensor()
    tiles_gm.set_global_buffer(workspace + block * places * ROWS * N + first)
    bias_gm = asc.GlobalTensor()
    bias_gm.set_global_buffer(bias)
    c_gm = asc.GlobalTensor()
    c_gm.set_global_buffer(c + block * TILES * ROWS * N + first)

    pipe = asc.TPipe()
    bias_queue = asc.TQue(asc.TPosition.VECIN, 1)
    source = asc.TQue(asc.TPosition.VECIN, 1)
    target = asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(que=bias_queue, num=1, len=N * 4)
    pipe.init_buffer(que=source, num=2, len=half * N * 4)
    pipe.init_buffer(que=target, num=2, len=half * N * 4)

    added = bias_queue.alloc_tensor(asc.float32)
    asc.data_copy(added, bias_gm, N)
    bias_queue.enque(added)
    added = bias_queue.deque(asc.float32)
    # A repeat is 64 numbers. Of each row two repeats: one instruction for the left halves, one for the right ones.
    by_rows = asc.BinaryRepeatParams(1, 1, 1, N // 8, N // 8, 0)
    for i in range(TILES):
        asc.cross_core_wait_flag(DONE, TOGETHER, asc.PipeID.PIPE_S)
        x = source.alloc_tensor(asc.float32)
        asc.data_copy(x, tiles_gm[i % places * ROWS * N :], half * N)
        if i + places < TILES:
            asc.cross_core_set_flag(FREE, TOGETHER, asc.PipeID.PIPE_MTE2)
        source.enque(x)
        x = source.deque(asc.float32)
        y = target.alloc_tensor(asc.float32)
        for column in range(0, N, 64):
            asc.add(y[column:], x[column:], added[column:], 64, half, by_rows)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.relu(y, y, half * N)
        source.free_tensor(x)
        target.enque(y)
        y = target.deque(asc.float32)
        asc.data_copy(c_gm[i * ROWS * N :], y, half * N)
        target.free_tensor(y)
    bias_queue.free_tensor(added)


def main():
    """Multiply with one and with two places in the workspace."""
    generator = np.random.default_rng(8)
    a = generator.integers(-4, 5, (BLOCKS * TILES * ROWS, K)).astype(np.float16)
    b = generator.integers(-4, 5, (K, N)).astype(np.float16)
    bias = generator.integers(-9, 10, N).astype(np.float32)
    expected = np.maximum(a.astype(np.float32) @ b.astype(np.float32) + bias, 0)
    print(
        f"C is {BLOCKS * TILES * ROWS} x {N}, K is {K}, on {BLOCKS} cube and {2 * BLOCKS} vector cores"
    )
    for places in (1, 2):
        workspace = np.zeros((BLOCKS, places, ROWS, N), np.float32)
        c = np.zeros((BLOCKS * TILES * ROWS, N), np.float32)
        run = product[BLOCKS](a, b, bias, workspace, c, places)
        np.testing.assert_array_equal(c, expected)
        assert not run.findings
        cube, vector = (run.pipes[name]["S"]["causes"] for name in ("core0.aic", "core0.aiv0"))
        print(
            f"{places} place{'s'[: places - 1]}: {run.cycles:,} cycles; waiting for the other core: cube core "
            f"{cube['cross_core']:,}, vector core {vector['cross_core']:,}"
        )


if __name__ == "__main__":
    main()
