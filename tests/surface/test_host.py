"""The host side of pyasc: platform, launches, streams, memory, and what a launch does to its arguments."""

from __future__ import annotations

import ctypes
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.asc.lib import runtime as rt
from ascend_sim.asc.lib.runtime import support
from ascend_sim.asc.runtime import config
from ascend_sim.cli.program import run_program
from ascend_sim.cli.request import Request
from ascend_sim.lang.device import CHIP_OF, Device, exchange
from ascend_sim.run import Run


@pytest.fixture(autouse=True)
def new_device() -> Iterator[Device]:
    """Each test has a device of its own."""
    device = Device()
    before = exchange(device)
    yield device
    exchange(before)


@asc.jit
def copy_kernel(x: asc.GlobalAddress, z: asc.GlobalAddress, n: int) -> None:
    local = asc.LocalTensor(x.dtype, asc.TPosition.VECIN, 0, n)
    x_gm, z_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    z_gm.set_global_buffer(z)
    asc.data_copy(local, x_gm, n)
    asc.set_flag(asc.HardEvent.MTE2_MTE3)
    asc.wait_flag(asc.HardEvent.MTE2_MTE3)
    asc.data_copy(z_gm, local, n)
    asc.pipe_barrier(asc.PipeID.PIPE_ALL)


def _arrays() -> tuple[Any, Any]:
    x = np.arange(64, dtype=np.float32)
    return x, np.zeros_like(x)


# ---- platform -------------------------------------------------------------------------------


@pytest.mark.parametrize("platform", sorted(CHIP_OF, key=lambda one: one.value))
def test_a_platform_is_a_chip(platform: config.Platform) -> None:
    config.set_platform(config.Backend.Model, platform)
    run: Run = copy_kernel[1](*_arrays(), 64)
    assert run.chip.name == CHIP_OF[platform]
    assert rt.get_soc_version() is platform
    assert (rt.is_model(), rt.is_available(), rt.is_initialized()) == (True, True, True)


def test_platforms_by_their_names_and_by_default() -> None:
    config.set_platform("Model", "Ascend910B3")
    assert copy_kernel[1](*_arrays(), 64).chip.name == "ascend910b3"
    config.set_platform(config.Backend.NPU)  # what is there already
    assert copy_kernel[1](*_arrays(), 64).chip.name == "ascend910b3"
    assert rt.current_tick() is None
    config.set_platform(config.Backend.Model)
    run = copy_kernel[1](*_arrays(), 64)
    assert run.chip.name == "ascend910b1"
    assert rt.current_platform() == "Ascend910B1"


def test_a_launch_of_its_own_has_precedence() -> None:
    config.set_platform("Model", "Ascend910B3")
    x, z = _arrays()
    assert sim.launch(copy_kernel, x, z, 64).chip.name == "ascend910b3"
    assert sim.launch(copy_kernel, x, z, 64, chip="ascend910b4").chip.name == "ascend910b4"


def test_platforms_that_there_are_not() -> None:
    with pytest.raises(
        sim.ConfigError, match="no platform 'Ascend910B9'; did you mean 'Ascend910B"
    ):
        config.set_platform("Model", "Ascend910B9")
    with pytest.raises(sim.ConfigError, match="no backend 'Modell'; did you mean 'Model'"):
        config.set_platform("Modell")
    with pytest.raises(sim.UnsupportedError, match="no chip file for Ascend910_9362"):
        config.set_platform("Model", config.Platform.Ascend910_9362)


# ---- launches -------------------------------------------------------------------------------


def test_blocks_and_stream() -> None:
    x, z = _arrays()
    stream = rt.create_stream()
    for where in (1, (1,), (1, None), (1, stream), (np.int64(1), rt.current_stream())):
        assert copy_kernel[where](x, z, n=64).log.cores
    rt.synchronize(stream)
    rt.synchronize_device()
    rt.destroy_stream(stream)
    with pytest.raises(
        sim.HostError, match=r"\[…\] takes the number of blocks and a stream, got 3"
    ):
        copy_kernel[1, stream, 0]
    with pytest.raises(sim.HostError, match=r"the stream comes from asc\.lib\.runtime"):
        copy_kernel[1, "stream"]
    with pytest.raises(sim.HostError, match="0 blocks"):
        copy_kernel[0](x, z, 64)


def test_one_stream_a_device() -> None:
    assert rt.current_stream() is rt.current_stream()
    rt.set_device(3)
    assert (rt.current_device(), rt.default_device(), rt.device_count()) == (3, 0, 1)
    assert rt.current_stream() is rt.current_stream(3)
    assert rt.current_stream(0) is not rt.current_stream(3)
    rt.reset_device()
    assert rt.current_device() == 0
    with pytest.raises(sim.HostError, match="a device is a whole number"):
        rt.set_device(-1)


def test_ticks_add_up(new_device: Device) -> None:
    config.set_platform("Model")
    cycles = [copy_kernel[1](*_arrays(), 64).cycles for _ in range(2)]
    assert rt.current_tick() == sum(cycles) == new_device.ticks


def test_options_at_a_launch() -> None:
    seen: list[Any] = []

    @asc.jit(auto_sync=False)
    def kernel(n: int, note: asc.ConstExpr[str]) -> None:
        seen.append((n, note))

    run = kernel[1](4, note="x", auto_sync=True, always_compile=True, opt_level=2)
    assert run.options["auto_sync"] is True
    assert seen == [(4, "x")]
    with pytest.raises(sim.ConfigError, match="opt_level is 7"):
        kernel[1](4, "x", opt_level=7)
    with pytest.raises(sim.HostError, match="kernel takes n, note: got an unexpected keyword"):
        kernel[1](4, "x", blocks=2)


def test_options_of_jit() -> None:
    with pytest.raises(sim.ConfigError, match="opt_level is 0, it is 1, 2 or 3"):
        asc.jit(opt_level=0)
    with pytest.raises(sim.ConfigError, match=r"called like options of asc\.jit: debug"):

        @asc.jit
        def kernel(debug: int) -> None: ...

    for name, value in asc.CompileOptions().__dict__.items():
        asc.jit(**{name: value})(lambda x: x)
    assert asc.LaunchOptions() == asc.LaunchOptions(0, None)
    assert asc.CodegenOptions().capture_exceptions is True


def test_run_time_numbers_are_32_bits_wide() -> None:
    seen: list[Any] = []

    @asc.jit
    def kernel(a: float, b: asc.ConstExpr[float], c: int, d: asc.ConstExpr[int], e: bool) -> None:
        seen.append((a, b, c, d, e))

    kernel[1](0.1, 0.1, np.int16(7), 1 << 40, True)
    assert seen == [(float(np.float32(0.1)), 0.1, 7, 1 << 40, True)]
    kernel[1](0.1, asc.ConstExpr(0.25), np.int64(1 << 40), 0, False)
    assert seen[1][1:3] == (0.25, 1 << 40)
    with pytest.raises(sim.HostError, match=r"argument c is 2147483648, and a run-time integer is"):
        kernel[1](0.0, 0.0, 1 << 31, 0, False)


def test_constants_hold_their_value() -> None:
    three = asc.ConstExpr(3)
    assert (three.value, str(three), f"{three:03d}", repr(three)) == (
        3,
        "3",
        "003",
        "ConstExpr[int](3)",
    )
    assert asc.ConstExpr.unwrap(asc.ConstExpr(three)) == 3 == asc.ConstExpr.unwrap(3)
    seen: list[Any] = []

    def kernel() -> None:
        seen.append(asc.ConstExpr(4) + 1)

    sim.launch(kernel)
    assert seen == [5]


# ---- memory ---------------------------------------------------------------------------------


def test_memory_of_the_device() -> None:
    data = np.arange(100, dtype=np.int32)
    back = np.zeros_like(data)
    handle = rt.copy_data_to_device(data.ctypes.data_as(ctypes.c_void_p), data.nbytes)
    assert handle.value % 512 == 0
    other = rt.malloc(data.nbytes, support.MemoryType.RT_MEMORY_HBM)
    rt.memcpy(
        other, data.nbytes, handle, data.nbytes, support.MemcpyKind.RT_MEMCPY_DEVICE_TO_DEVICE
    )
    rt.copy_data_from_device(back.ctypes.data_as(ctypes.c_void_p), other, back.nbytes)
    assert np.array_equal(back, data)
    rt.free(handle)
    with pytest.raises(sim.HostError, match="is not memory that malloc returned"):
        rt.free(handle)
    rt.free_mem()
    with pytest.raises(sim.HostError, match="is not memory that malloc returned"):
        rt.free(other)
    for size in (0, -1, 1.5, True):
        with pytest.raises(sim.HostError, match="malloc: a size is a whole number above 0"):
            rt.malloc(size)
    with pytest.raises(sim.HostError, match="8 bytes do not fit the destination's 4"):
        rt.memcpy(handle, 4, handle, 8, support.MemcpyKind.RT_MEMCPY_HOST_TO_HOST)


def test_what_the_device_says_of_itself() -> None:
    config.set_platform("Model", "Ascend910B4")
    core = rt.DeviceInfoType.INFO_TYPE_CORE_NUM
    assert rt.device_info(rt.DeviceModuleType.RT_MODULE_TYPE_AICORE, core) == 20
    assert rt.device_info(rt.DeviceModuleType.RT_MODULE_TYPE_VECTOR_CORE, core) == 40
    with pytest.raises(sim.UnsupportedError, match="numbers of AI Cores"):
        rt.device_info(rt.DeviceModuleType.RT_MODULE_TYPE_PCIE, core)
    assert rt.magic_elf_value(rt.CoreType.VectorCore) == 0x41415246
    assert rt.msprof_task_type(rt.CoreType.CubeCore) == 0


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("register_device_binary_kernel", (b"", 0)),
        ("unregister_device_binary_kernel", (None,)),
        ("register_function", (None, "f", 0)),
        ("launch_kernel", (None, 1, [])),
        ("call_print_interface", ()),
    ],
)
def test_compiled_kernels_are_refused(name: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(sim.UnsupportedError, match=f"^{name}: "):
        getattr(rt, name)(*arguments)


def test_calls_that_have_nothing_to_do() -> None:
    assert rt.acl_init() is rt.acl_finalize() is rt.npu_utils() is None
    rt.set_pro_switch(rt.ProfilingCommandHandle.Type.START)
    rt.use_npu()
    assert (rt.is_model(), rt.c2c_ctrl_addr()) == (False, 0)


# ---- torch ----------------------------------------------------------------------------------


class _Tensor:
    """What the simulator asks of a torch tensor on the CPU, over a numpy array."""

    def __init__(self, array: Any, dtype: str = "torch.float32") -> None:
        self.array = array
        self.dtype = dtype
        self.device = types.SimpleNamespace(type="cpu")

    untyped_storage = None

    def detach(self) -> _Tensor:
        return self

    def is_contiguous(self) -> bool:
        return bool(self.array.flags.c_contiguous)

    def numpy(self) -> Any:
        return self.array

    def view(self, _: Any) -> _Tensor:
        return _Tensor(self.array.view(np.int16))


def test_a_torch_tensor_is_written_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for torch: the suite does not install it."""
    torch: Any = types.ModuleType("torch")
    torch.bfloat16, torch.int16 = "torch.bfloat16", "torch.int16"
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(_Tensor, "__module__", "torch")
    x, z = _arrays()
    run: Run = copy_kernel[1, rt.current_stream()](_Tensor(x), _Tensor(z), 64)
    assert np.array_equal(z, x)
    assert run.findings == []
    words = np.arange(64, dtype=np.uint16)
    got = np.zeros_like(words)
    copy_kernel[1](_Tensor(words, "torch.bfloat16"), _Tensor(got, "torch.bfloat16"), 64)
    assert np.array_equal(got, words)
    with pytest.raises(sim.HostError, match="a torch tensor is not contiguous"):
        copy_kernel[1](_Tensor(np.zeros((8, 8), np.float32).T), _Tensor(z), 64)
    elsewhere = _Tensor(x)
    elsewhere.device = types.SimpleNamespace(type="npu")
    with pytest.raises(sim.HostError, match="the simulator needs it on the CPU"):
        copy_kernel[1](elsewhere, _Tensor(z), 64)


# ---- the command line -----------------------------------------------------------------------

PROGRAM = """
import sys
import numpy as np
import asc
import asc.runtime.config as config
import kernels_of_this_program

config.set_platform("Model", sys.argv[1])
x = np.arange(64, dtype=np.float32)
z = np.zeros_like(x)
kernels_of_this_program.double[1](x, z)
sys.exit(0 if np.array_equal(z, 2 * x) else 7)
"""
KERNELS = """
import asc


@asc.jit
def double(x: asc.GlobalAddress, z: asc.GlobalAddress):
    local = asc.LocalTensor(asc.float32, asc.TPosition.VECCALC, 0, 64)
    x_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    z_gm.set_global_buffer(z)
    asc.data_copy(local, x_gm, 64)
    asc.set_flag(asc.HardEvent.MTE2_V)
    asc.wait_flag(asc.HardEvent.MTE2_V)
    asc.muls(local, local, 2.0, 64)
    asc.set_flag(asc.HardEvent.V_MTE3)
    asc.wait_flag(asc.HardEvent.V_MTE3)
    asc.data_copy(z_gm, local, 64)
    asc.pipe_barrier(asc.PipeID.PIPE_ALL)
"""


@pytest.mark.parametrize(
    ("platform", "chip", "expected"),
    [
        ("Ascend910B3", None, "ascend910b3"),
        ("Ascend910B3", "ascend910b4", "ascend910b4"),
        ("Ascend910_9362", "ascend910_93", "ascend910_93"),
    ],
)
def test_the_command_line_has_precedence(
    tmp_path: Path, platform: str, chip: str | None, expected: str
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "kernels_of_this_program.py").write_text(KERNELS, encoding="utf-8")
    request = Request(target=str(tmp_path / "program.py"), chip=chip, arguments=[platform])
    outcome = run_program(request)
    assert (outcome.error, outcome.notes, outcome.code) == (None, [], 0)
    assert outcome.run is not None
    assert outcome.run.chip.name == expected
    assert outcome.run.findings == []
    # nothing of the program is left behind: not its platform, not its modules, not the name
    assert rt.get_soc_version() is config.Platform.Ascend910B1
    assert not {"asc", "kernels_of_this_program"} & set(sys.modules)
