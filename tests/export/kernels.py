"""Kernels inside pyasc's subset that between them use every kind of instruction, for the test of sequences."""

# What a ConstExpr, an address or a scalar load is, pyasc's compiler knows and mypy does not.
# mypy: ignore-errors

from ascend_sim import asc


@asc.jit(auto_sync=False)
def load(x: asc.GlobalAddress, local: asc.LocalTensor, count: int):
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    asc.data_copy(local, x_gm, count=count)
    asc.set_flag(asc.HardEvent.MTE2_V, 0)
    asc.wait_flag(asc.HardEvent.MTE2_V, 0)


@asc.jit(auto_sync=False)
def arithmetic(x: asc.GlobalAddress, z: asc.GlobalAddress, n: asc.ConstExpr[int]):
    a = asc.LocalTensor(asc.float16, asc.TPosition.VECIN, 0, n)
    b = asc.LocalTensor(asc.float16, asc.TPosition.VECCALC, 4096, n)
    c = asc.LocalTensor(asc.float16, asc.TPosition.VECOUT, 8192, n)
    load(x, a, n)
    asc.duplicate(b, 2.0, n)
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.add(c, a, b, n)
    asc.sub(c, a, b, count=n)
    asc.mul(
        c, a, b, mask=128, repeat_times=4, repeat_params=asc.BinaryRepeatParams(1, 1, 1, 8, 8, 8)
    )
    asc.div(
        c,
        a,
        b,
        mask=[255, 1],
        repeat_times=2,
        repeat_params=asc.BinaryRepeatParams(1, 1, 1, 8, 8, 0),
    )
    asc.max(c, a, b, n)
    asc.min(c, a, b, n)
    asc.add_relu(c, a, b, n)
    asc.sub_relu(c, a, b, n)
    asc.mul_add_dst(c, a, b, n)
    asc.fused_mul_add(c, a, b, n)
    asc.fused_mul_add_relu(c, a, b, n)
    asc.adds(c, a, 1.0, n)
    asc.muls(c, a, 2.0, mask=64, repeat_times=4, repeat_params=asc.UnaryRepeatParams(1, 1, 8, 8))
    asc.maxs(c, a, 0.5, n)
    asc.mins(c, a, 0.5, n)
    asc.leaky_relu(c, a, 0.25, n)
    asc.axpy(c, a, 0.25, n)
    asc.exp(c, a, n)
    asc.ln(c, a, n)
    asc.abs(c, a, n)
    asc.sqrt(c, a, n)
    asc.rsqrt(c, a, n)
    asc.reciprocal(c, a, n)
    asc.relu(c, a, n)
    asc.set_flag(asc.HardEvent.V_MTE3, 0)
    asc.wait_flag(asc.HardEvent.V_MTE3, 0)
    z_gm = asc.GlobalTensor()
    z_gm.set_global_buffer(z)
    asc.data_copy(z_gm, c, count=n)


@asc.jit(auto_sync=False)
def whole_numbers(x: asc.GlobalAddress, z: asc.GlobalAddress, n: asc.ConstExpr[int]):
    a = asc.LocalTensor(asc.int16, asc.TPosition.VECIN, 0, n)
    b = asc.LocalTensor(asc.int16, asc.TPosition.VECCALC, 4096, n)
    c = asc.LocalTensor(asc.int16, asc.TPosition.VECOUT, 8192, n)
    load(x, a, n)
    asc.duplicate(b, 3, mask=128, repeat_times=2, dst_block_stride=1, dst_repeat_stride=8)
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.bitwise_and(c, a, b, n)
    asc.bitwise_or(c, a, b, n)
    asc.bitwise_not(c, a, n)
    asc.shift_left(c, a, 2, n)
    asc.shift_right(c, a, 2, n)
    asc.set_flag(asc.HardEvent.V_MTE3, 1)
    asc.wait_flag(asc.HardEvent.V_MTE3, 1)
    z_gm = asc.GlobalTensor()
    z_gm.set_global_buffer(z)
    asc.data_copy(z_gm, c, count=n)


@asc.jit(auto_sync=False)
def conversions(x: asc.GlobalAddress, z: asc.GlobalAddress, n: asc.ConstExpr[int]):
    a = asc.LocalTensor(asc.float16, asc.TPosition.VECIN, 0, n)
    f = asc.LocalTensor(asc.float32, asc.TPosition.VECCALC, 4096, n)
    i = asc.LocalTensor(asc.int32, asc.TPosition.VECCALC, 8192, n)
    c = asc.LocalTensor(asc.float16, asc.TPosition.VECOUT, 12288, n)
    load(x, a, n)
    asc.cast(f, a, asc.RoundMode.CAST_NONE, n)
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.cast(i, f, asc.RoundMode.CAST_ROUND, n)
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.set_deq_scale(1.0)
    asc.cast(c, i, asc.RoundMode.CAST_NONE, n)
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.cast(c, f, asc.RoundMode.CAST_RINT, mask=64, repeat_times=4,
             repeat_params=asc.UnaryRepeatParams(1, 1, 4, 8))  # fmt: skip
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.copy(c, a, mask=128, repeat_time=2, repeat_params=asc.CopyRepeatParams(1, 1, 8, 8))
    asc.set_flag(asc.HardEvent.V_MTE3, 0)
    asc.wait_flag(asc.HardEvent.V_MTE3, 0)
    z_gm = asc.GlobalTensor()
    z_gm.set_global_buffer(z)
    asc.data_copy_pad(z_gm, c, asc.DataCopyExtParams(2, 34, 0, 0, 0))


@asc.jit(auto_sync=False)
def choices(x: asc.GlobalAddress, z: asc.GlobalAddress, n: asc.ConstExpr[int]):
    a = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, n)
    b = asc.LocalTensor(asc.float32, asc.TPosition.VECCALC, 4096, n)
    bits = asc.LocalTensor(asc.uint8, asc.TPosition.VECCALC, 8192, n)
    c = asc.LocalTensor(asc.float32, asc.TPosition.VECOUT, 12288, n)
    load(x, a, n)
    asc.duplicate(b, 1.5, n)
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.compare(bits, a, b, asc.CMPMODE.LT, n)
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.select(c, bits, a, b, asc.SelMode.VSEL_TENSOR_TENSOR_MODE, n)
    asc.compare_scalar(bits, a, 1.0, asc.CMPMODE.GE, n)
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.set_flag(asc.HardEvent.V_MTE3, 0)
    asc.wait_flag(asc.HardEvent.V_MTE3, 0)
    z_gm = asc.GlobalTensor()
    z_gm.set_global_buffer(z)
    asc.data_copy(z_gm, c, count=n)


@asc.jit(auto_sync=False)
def reductions(x: asc.GlobalAddress, z: asc.GlobalAddress, n: asc.ConstExpr[int]):
    a = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, n)
    w = asc.LocalTensor(asc.float32, asc.TPosition.VECCALC, 4096, n)
    c = asc.LocalTensor(asc.float32, asc.TPosition.VECOUT, 8192, n)
    load(x, a, n)
    asc.block_reduce_sum(c, a, 4, 64, 1, 1, 8)
    asc.block_reduce_max(c, a, 4, 64, 1, 1, 8)
    asc.block_reduce_min(c, a, 4, 64, 1, 1, 8)
    asc.pair_reduce_sum(c, a, 4, 64, 1, 1, 8)
    asc.whole_reduce_sum(c, a, 64, 4, 1, 1, 8)
    asc.whole_reduce_max(c, a, 64, 4, 1, 1, 8)
    asc.whole_reduce_min(c, a, 64, 4, 1, 1, 8)
    asc.repeat_reduce_sum(c, a, 4, 64, 0, 1, 1, 8)
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.brcb(w, a, 4, asc.BrcbRepeatParams(1, 8))
    asc.set_flag(asc.HardEvent.V_MTE3, 0)
    asc.wait_flag(asc.HardEvent.V_MTE3, 0)
    z_gm = asc.GlobalTensor()
    z_gm.set_global_buffer(z)
    asc.data_copy(z_gm, c, count=n)


@asc.jit(auto_sync=False)
def orders(x: asc.GlobalAddress, z: asc.GlobalAddress, n: asc.ConstExpr[int]):
    a = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, n)
    index = asc.LocalTensor(asc.uint32, asc.TPosition.VECCALC, 4096, n)
    offset = asc.LocalTensor(asc.uint32, asc.TPosition.VECCALC, 8192, n)
    c = asc.LocalTensor(asc.float32, asc.TPosition.VECOUT, 12288, 2 * n)
    spread = asc.LocalTensor(asc.uint32, asc.TPosition.VECCALC, 20480, n)
    load(x, a, n)
    asc.duplicate(index, 4, n)
    asc.duplicate(offset, 32, n)
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.gather(c, a, index, 0, n)
    asc.gatherb(spread, index, offset, 2, asc.GatherRepeatParams(1, 8))
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.sort32(c, a, index, 8)
    asc.set_flag(asc.HardEvent.V_MTE3, 0)
    asc.wait_flag(asc.HardEvent.V_MTE3, 0)
    z_gm = asc.GlobalTensor()
    z_gm.set_global_buffer(z)
    asc.data_copy(z_gm, c, count=n)


@asc.jit(auto_sync=False)
def branches(
    x: asc.GlobalAddress, z: asc.GlobalAddress, counts: asc.GlobalAddress, n: int, factor: float
):
    """A loop in a loop whose lengths come from GM, and both ways of a branch."""
    counts_gm = asc.GlobalTensor()
    counts_gm.set_global_buffer(counts)
    z_gm = asc.GlobalTensor()
    z_gm.set_global_buffer(z)
    a = asc.LocalTensor(asc.float16, asc.TPosition.VECIN, 0, 512)
    load(x, a, 512)
    for outer in range(n):
        times = counts_gm.get_value(outer)
        if times > 2:
            for inner in range(1, times, 2):
                asc.adds(a, a, factor, 16 * inner)
                asc.pipe_barrier(asc.PipeID.PIPE_V)
        else:
            asc.muls(a, a, 0.5, 128)
            asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.set_flag(asc.HardEvent.V_MTE3, 0)
    asc.wait_flag(asc.HardEvent.V_MTE3, 0)
    asc.data_copy(z_gm, a, count=512)


@asc.jit(auto_sync=False, kernel_type="AIC_ONLY")
def matmul(a: asc.GlobalAddress, b: asc.GlobalAddress, c: asc.GlobalAddress):
    """64 x 32 by 32 x 48 in float16, by hand: GM to L1, L1 to L0, Mmad, Fixpipe."""
    a_gm = asc.GlobalTensor()
    a_gm.set_global_buffer(a)
    b_gm = asc.GlobalTensor()
    b_gm.set_global_buffer(b)
    c_gm = asc.GlobalTensor()
    c_gm.set_global_buffer(c)
    a_l1 = asc.LocalTensor(asc.float16, asc.TPosition.A1, 0, 64 * 32)
    b_l1 = asc.LocalTensor(asc.float16, asc.TPosition.B1, 8192, 32 * 48)
    a_l0 = asc.LocalTensor(asc.float16, asc.TPosition.A2, 0, 64 * 32)
    b_l0 = asc.LocalTensor(asc.float16, asc.TPosition.B2, 0, 32 * 48)
    c_l0 = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, 64 * 48)
    asc.data_copy(a_l1, a_gm, intri_params=asc.Nd2NzParams(1, 64, 32, 0, 32, 64, 1, 0))
    asc.data_copy(b_l1, b_gm, intri_params=asc.Nd2NzParams(1, 32, 48, 0, 48, 32, 1, 0))
    asc.set_flag(asc.HardEvent.MTE2_MTE1, 0)
    asc.wait_flag(asc.HardEvent.MTE2_MTE1, 0)
    for row in range(4):
        asc.load_data(a_l0[row * 512 :], a_l1, asc.LoadData2DParams(row, 2, 4, 0, 0, False, 0))
    for column in range(2):
        asc.load_data(b_l0[column * 768 :], b_l1, asc.LoadData2DParams(column, 3, 2, 0, 0, True, 0))
    asc.set_flag(asc.HardEvent.MTE1_M, 0)
    asc.wait_flag(asc.HardEvent.MTE1_M, 0)
    params = asc.MmadParams(64, 48, 32, unit_flag=0, cmatrix_source=False, cmatrix_init_val=True)
    asc.mmad(c_l0, a_l0, b_l0, params)
    asc.set_flag(asc.HardEvent.M_FIX, 0)
    asc.wait_flag(asc.HardEvent.M_FIX, 0)
    asc.fixpipe(c_gm, c_l0, asc.FixpipeParamsV220(48, 64, 64, 48, False))
