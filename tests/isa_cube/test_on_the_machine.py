"""The same instructions through the simulator: numbers as in eager execution, every call placed in the kernel."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.errors import KernelError
from ascend_sim.trace import Kind
from isa.types import Pipe

FLAG = asc.HardEvent


def _sync(event: asc.HardEvent) -> None:
    asc.set_flag(event, 0)
    asc.wait_flag(event, 0)


@asc.jit(auto_sync=False)
def product(
    a: asc.GlobalAddress,
    b: asc.GlobalAddress,
    bias: asc.GlobalAddress,
    scales: asc.GlobalAddress,
    c: asc.GlobalAddress,
    q: asc.GlobalAddress,
) -> None:
    """C = A · B + bias for one tile of 48 × 32 × 64 int8, as it is and as one scaled int8 a column."""
    a_gm, b_gm, bias_gm, scales_gm, c_gm, q_gm = (asc.GlobalTensor() for _ in range(6))
    for tensor, address in (
        (a_gm, a), (b_gm, b), (bias_gm, bias), (scales_gm, scales), (c_gm, c), (q_gm, q)
    ):  # fmt: skip
        tensor.set_global_buffer(address)
    a1 = asc.LocalTensor(asc.int8, asc.TPosition.A1, 0, 48 * 64)
    b1 = asc.LocalTensor(asc.int8, asc.TPosition.B1, 8192, 64 * 32)
    c1 = asc.LocalTensor(asc.int32, asc.TPosition.C1, 16384, 32)
    s1 = asc.LocalTensor(asc.uint64, asc.TPosition.A1, 20480, 32)
    a2 = asc.LocalTensor(asc.int8, asc.TPosition.A2, 0, 48 * 64)
    b2 = asc.LocalTensor(asc.int8, asc.TPosition.B2, 0, 64 * 32)
    c2 = asc.LocalTensor(asc.int32, asc.TPosition.C2, 0, 32)
    co1 = asc.LocalTensor(asc.int32, asc.TPosition.CO1, 0, 48 * 32)
    asc.data_copy(a1, a_gm, asc.Nd2NzParams(1, 48, 64, 0, 64, 48, 1, 0))
    asc.data_copy(b1, b_gm, asc.Nd2NzParams(1, 64, 32, 0, 32, 64, 1, 0))
    asc.data_copy(c1, bias_gm, 32)
    asc.data_copy(s1, scales_gm, 32)
    _sync(FLAG.MTE2_MTE1)
    asc.set_flag(FLAG.MTE2_FIX, 0)
    asc.load_data(
        a2, a1, asc.LoadData3DParamsV2(l1_h=48, channel_size=64, k_extension=64, m_extension=48)
    )
    asc.load_data_with_transpose(b2, b1, asc.LoadData2dTransposeParams(0, 2, 1, 1, 0))
    asc.data_copy(c2, c1, asc.DataCopyParams(1, 2))
    _sync(FLAG.MTE1_M)
    asc.mmad(co1, a2, b2, c2, asc.MmadParams(48, 32, 64))
    _sync(FLAG.M_FIX)
    asc.fixpipe(c_gm, co1, asc.FixpipeParamsV220(32, 48, 48, 32))
    asc.wait_flag(FLAG.MTE2_FIX, 0)
    asc.fixpipe(
        q_gm,
        co1,
        s1,
        asc.FixpipeParamsV220(32, 48, 48, 32, asc.QuantModes.VREQ8),
        asc.FixpipeConfig.cfg_row_major,
    )


def test_a_product_of_bytes_with_bias_and_scales() -> None:
    random = np.random.default_rng(2)
    a = random.integers(-20, 20, (48, 64)).astype(np.int8)
    b = random.integers(-20, 20, (64, 32)).astype(np.int8)
    bias = random.integers(-999, 999, 32).astype(np.int32)
    scales = np.array([asc.quant_parameter(2.0**-shift) for shift in range(32)], np.uint64)
    c, q = np.zeros((48, 32), np.int32), np.zeros((48, 32), np.int8)
    run = sim.launch(product, a, b, bias, scales, c, q, kernel_type="AIC_ONLY")
    expected = a.astype(np.int64) @ b.astype(np.int64) + bias
    assert np.array_equal(c, expected)
    assert np.array_equal(q, np.clip(np.rint(expected * 2.0 ** -np.arange(32)), -128, 127))
    assert run.findings == []
    items = [item for core in run.log.cores for item in core.items if item.kind is Kind.INSTRUCTION]
    placed = [(item.name, item.pipe) for item in items if item.pipe is not Pipe.S]
    assert placed == [
        ("data_copy", Pipe.MTE2), ("data_copy", Pipe.MTE2), ("data_copy", Pipe.MTE2), ("data_copy", Pipe.MTE2),
        ("load_data", Pipe.MTE1), ("load_data_with_transpose", Pipe.MTE1), ("data_copy", Pipe.MTE1),
        ("mmad", Pipe.M), ("fixpipe", Pipe.FIX), ("data_copy", Pipe.FIX), ("fixpipe", Pipe.FIX),
    ]  # fmt: skip
    lines, first = inspect.getsourcelines(
        product.function if hasattr(product, "function") else product
    )
    for item in items:
        if item.pipe is Pipe.S:
            continue
        site = run.log.sites[item.site]
        assert Path(site.file).name == Path(__file__).name
        assert "asc." in lines[site.line - first]


@asc.jit(auto_sync=False)
def misaligned(c: asc.GlobalAddress) -> None:
    c_gm = asc.GlobalTensor()
    c_gm.set_global_buffer(c)
    source = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 32, 256)
    asc.fixpipe(c_gm, source, asc.FixpipeParamsV220(16, 16, 16, 16))


def test_a_mistake_is_told_at_its_line() -> None:
    with pytest.raises(KernelError, match="64-byte border") as caught:
        sim.launch(misaligned, np.zeros(256, np.float32), kernel_type="AIC_ONLY")
    finding = caught.value.finding
    assert (finding.kind, Path(finding.file).name) == ("ALIGNMENT", Path(__file__).name)
    assert finding.core == "core0.aic"


@pytest.mark.parametrize("columns", [24, 40])
def test_a_bias_shorter_than_the_bursts_into_the_bias_table(columns: int) -> None:
    """A copy to BT moves 64 bytes at least: what it takes along behind the bias harms nobody, unless mmad uses it."""

    def kernel(bias: asc.GlobalAddress, z: asc.GlobalAddress, length: int) -> None:
        gm, out = asc.GlobalTensor(), asc.GlobalTensor()
        gm.set_global_buffer(bias)
        out.set_global_buffer(z)
        c1 = asc.LocalTensor(asc.float32, asc.TPosition.C1, 0, 64)
        c2 = asc.LocalTensor(asc.float32, asc.TPosition.C2, 0, 64)
        a1 = asc.LocalTensor(asc.float16, asc.TPosition.A1, 4096, 64 * 16)
        a2 = asc.LocalTensor(asc.float16, asc.TPosition.A2, 0, 256)
        b2 = asc.LocalTensor(asc.float16, asc.TPosition.B2, 0, 64 * 16)
        co1 = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, 64 * 16)
        asc.data_copy(c1, gm, length)
        asc.init_const_value(a1, asc.InitConstValueParams(1, 64, 0, 0))
        _sync(FLAG.MTE2_MTE1)
        asc.load_data(a2, a1, asc.LoadData2DParams(0, 1, 1))
        asc.load_data(b2, a1, asc.LoadData2DParams(0, 4, 1))
        asc.data_copy(c2, c1, asc.DataCopyParams(1, -(-length * 4 // 64)))
        _sync(FLAG.MTE1_M)
        asc.mmad(co1, a2, b2, c2, asc.MmadParams(16, columns, 16))
        _sync(FLAG.M_FIX)
        asc.fixpipe(
            out, co1, asc.FixpipeParamsV220(columns, 16, 16, columns),
            asc.FixpipeConfig.cfg_row_major(),
        )  # fmt: skip

    z = np.zeros((16, columns), np.float32)
    bias = np.arange(64, dtype=np.float32)
    run = sim.launch(kernel, bias, z, columns, kernel_type="AIC_ONLY")
    assert run.findings == []
    assert np.array_equal(run.outputs["z"], np.broadcast_to(bias[:columns], z.shape))
    short = sim.launch(kernel, bias, z, columns - 8, kernel_type="AIC_ONLY")
    assert [finding.code for finding in short.findings] == ["uninitialised-read"]
    assert short.findings[0].message.startswith("mmad reads")


@pytest.mark.parametrize(("m", "k", "told"), [(1, 64, True), (1, 16, False), (16, 64, False)])
def test_one_row_of_a_is_a_plain_row(m: int, k: int, told: bool) -> None:
    random = np.random.default_rng(5)
    a = random.integers(-9, 9, 16 * 64).astype(np.float16)
    b = random.integers(-9, 9, 64 * 16).astype(np.float16)
    c = np.zeros((m, 16), np.float32)

    def kernel(a: asc.GlobalAddress, b: asc.GlobalAddress, c: asc.GlobalAddress) -> None:
        a_gm, b_gm, c_gm = (asc.GlobalTensor() for _ in range(3))
        for tensor, address in ((a_gm, a), (b_gm, b), (c_gm, c)):
            tensor.set_global_buffer(address)
        a1 = asc.LocalTensor(asc.float16, asc.TPosition.A1, 0, 16 * 64)
        b1 = asc.LocalTensor(asc.float16, asc.TPosition.B1, 8192, 64 * 16)
        a2 = asc.LocalTensor(asc.float16, asc.TPosition.A2, 0, 16 * 64)
        b2 = asc.LocalTensor(asc.float16, asc.TPosition.B2, 0, 64 * 16)
        co1 = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, 16 * 16)
        asc.data_copy(a1, a_gm, 16 * 64)
        asc.data_copy(b1, b_gm, 64 * 16)
        _sync(FLAG.MTE2_MTE1)
        asc.load_data(a2, a1, asc.LoadData2DParams(0, 4, 1))
        asc.load_data(b2, b1, asc.LoadData2DParams(0, 4, 1))
        _sync(FLAG.MTE1_M)
        asc.mmad(co1, a2, b2, asc.MmadParams(m, 16, k))
        _sync(FLAG.M_FIX)
        asc.fixpipe(c_gm, co1, asc.FixpipeParamsV220(16, m, 16, 16))

    run = sim.launch(kernel, a, b, c, kernel_type="AIC_ONLY")
    assert [f.code for f in run.findings] == ["gemv"] * told
    if m == 1:  # B in ZN: a fractal of 16 of k has a row for each column
        columns = b.reshape(4, 16, 16).transpose(0, 2, 1).reshape(64, 16)[:k]
        assert np.array_equal(c[0], a[:k].astype(np.float32) @ columns.astype(np.float32))
