"""The device as a program on the host sees it: platform, streams, memory, in pyasc's `asc.lib.runtime`.

There is one device, the simulator. Launches are over when they return, so streams order nothing and synchronising
waits for nothing. Memory is memory of this process. What needs a compiled kernel is refused: kernels are Python here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NoReturn

import numpy as np

from ascend_sim.chip_file import nearest
from ascend_sim.config import Chip, load_chip
from ascend_sim.errors import ConfigError, UnsupportedError
from ascend_sim.lang.device_types import (
    CoreType,
    DeviceInfoType,
    DeviceModuleType,
    Function,
    Kernel,
    MagicElf,
    MallocPolicy,
    MemcpyKind,
    Memory,
    MemoryType,
    MsprofTaskType,
    ProfilingCommandHandle,
    Stream,
)
from ascend_sim.lang.mistakes import mistake

ALIGNMENT = 512
"""What `malloc` aligns to."""


class Backend(Enum):
    """What executes kernels in pyasc; here it is the simulator for both."""

    Model = "Model"
    NPU = "NPU"


class Platform(Enum):
    """The chips that pyasc knows."""

    Ascend910B1 = "Ascend910B1"
    Ascend910B2 = "Ascend910B2"
    Ascend910B2C = "Ascend910B2C"
    Ascend910B3 = "Ascend910B3"
    Ascend910B4 = "Ascend910B4"
    Ascend910B4_1 = "Ascend910B4-1"
    Ascend910_9362 = "Ascend910_9362"
    Ascend910_9372 = "Ascend910_9372"
    Ascend910_9381 = "Ascend910_9381"
    Ascend910_9382 = "Ascend910_9382"
    Ascend910_9391 = "Ascend910_9391"
    Ascend910_9392 = "Ascend910_9392"


CHIP_OF = {
    Platform.Ascend910B1: "ascend910b1",
    Platform.Ascend910B2: "ascend910b2",
    Platform.Ascend910B2C: "ascend910b2",
    Platform.Ascend910B3: "ascend910b3",
    Platform.Ascend910B4: "ascend910b4",
    Platform.Ascend910B4_1: "ascend910b4",
    Platform.Ascend910_9381: "ascend910_93",
    Platform.Ascend910_9382: "ascend910_93",
    Platform.Ascend910_9391: "ascend910_93",
    Platform.Ascend910_9392: "ascend910_93",
}
"""Chip files by platform. 9362 and 9372 have fewer cores than the file of the 910_93, and no file of their own."""


@dataclass
class _Allocation:
    address: int
    data: np.ndarray[Any, Any]


@dataclass
class Device:
    """What a program has told the runtime; the command line starts every program on a new one."""

    model: bool = False
    platform: Platform | None = None
    device_id: int | None = None
    streams: dict[int, Stream] = field(default_factory=dict)
    memory: dict[int, _Allocation] = field(default_factory=dict)
    handles: int = 0
    ticks: int = 0

    def new_stream(self) -> Stream:
        """Return a stream with a number of its own."""
        self.handles += 1
        return Stream(self.handles)


_current = Device()


def current() -> Device:
    """Return the device that this process uses."""
    return _current


def exchange(device: Device) -> Device:
    """Use another device; return the one before."""
    global _current
    before, _current = _current, device
    return before


# ---- platform -------------------------------------------------------------------------------


def set_platform(
    backend: Backend | str,
    soc_version: Platform | str | None = None,
    device_id: int | None = None,
    check: bool = True,
) -> None:
    """Choose the chip of the launches that follow; both backends are the simulator. `--chip` has precedence.

    Without a platform the Model backend is a 910B1, and the NPU backend what is simulated already. Raises
    ConfigError for a name that pyasc does not have, UnsupportedError for a platform without a chip file.
    """
    backend = _member(Backend, "backend", backend)
    if soc_version is None:
        platform = Platform.Ascend910B1 if backend is Backend.Model else get_soc_version()
    else:
        platform = _member(Platform, "platform", soc_version)
    if platform not in CHIP_OF and not _chosen_otherwise():
        raise UnsupportedError(
            f"set_platform: there is no chip file for {platform.value}, which has 20 AI Cores a die. Write one that "
            f"extends ascend910_93 (see CONTRIBUTING.md), and name it with --chip"
        )
    _current.model = backend is Backend.Model
    _current.platform = platform
    if device_id is not None:
        set_device(device_id)


def _chosen_otherwise() -> bool:
    """Return whether the command line names a chip, whatever the program chooses."""
    from ascend_sim.launch import defaults  # noqa: PLC0415  launch asks here what the program chose

    return "chip" in defaults.options


def _member(kind: type[Any], what: str, value: Any) -> Any:
    if isinstance(value, kind):
        return value
    names = [member.value for member in kind]
    text = getattr(value, "value", value)  # pyasc's own member, where both are imported
    if text in names:
        return kind(text)
    raise ConfigError(
        f"no {what} {value!r}{nearest(str(text), names)} (there are: {', '.join(names)})"
    )


def set_soc_version(soc_verison: Platform) -> None:
    """Choose the chip of the launches that follow."""
    set_platform(Backend.Model if _current.model else Backend.NPU, soc_verison)


def get_soc_version() -> Platform:
    """Return the platform that launches use."""
    return _current.platform or Platform.Ascend910B1


def current_platform() -> str:
    """Return the name of the chip that launches use."""
    return chip_in_use().soc


def chip_in_use() -> Chip:
    """Return the chip that launches use: the command line's, else the program's, else an Ascend910B1."""
    from ascend_sim.launch import chosen  # noqa: PLC0415  launch asks here what the program chose

    return load_chip(chosen("chip", "ascend910b1"))


def chip_of_the_program() -> str | None:
    """Return the chip that the program chose with `set_platform`."""
    return None if _current.platform is None else CHIP_OF.get(_current.platform)


def use_model(custom_lib_prefix: str | None = None) -> None:
    """Say that kernels run on a model; they do."""
    _current.model = True


def use_npu(custom_lib_prefix: str | None = None) -> None:
    """Say that kernels run on a device; the simulator stands for it."""
    _current.model = False


def is_model() -> bool:
    """Return whether the program chose the Model backend."""
    return _current.model


def is_available() -> bool:
    """Return True: the simulator needs no library."""
    return True


def is_initialized() -> bool:
    """Return True: there is nothing to load."""
    return True


# ---- devices and streams --------------------------------------------------------------------


def default_device() -> int:
    """Return 0, the one device."""
    return 0


def device_count() -> int:
    """Return 1."""
    return 1


def check_device_handle(device_id: int) -> None:
    """Refuse what is no number of a device."""
    if isinstance(device_id, bool) or not isinstance(device_id, int) or device_id < 0:
        mistake("HOST", "device", f"a device is a whole number of at least 0, got {device_id!r}")


def set_device(device_id: int) -> None:
    """Choose a device; all numbers are the simulator."""
    check_device_handle(device_id)
    _current.device_id = device_id


def current_device() -> int:
    """Return the device in use."""
    return _current.device_id or 0


def reset_device(device_id: int | None = None) -> None:
    """Give the streams of all devices back."""
    _current.streams.clear()
    _current.device_id = None


def current_stream(device_id: int | None = None) -> Stream:
    """Return the stream that launches without one use."""
    number = current_device() if device_id is None else device_id
    check_device_handle(number)
    if number not in _current.streams:
        _current.streams[number] = _current.new_stream()
    return _current.streams[number]


def create_stream(priority: int = 0) -> Stream:
    """Make another stream; launches are over when they return, so it orders nothing."""
    return _current.new_stream()


def destroy_stream(stream_handle: Stream | None) -> None:
    """Give a stream back."""


def synchronize(stream_handle: Stream | None = None, timeout: int = 0) -> None:
    """Wait for the launches of a stream: they are over."""


def synchronize_device() -> None:
    """Wait for all launches: they are over."""


def device_info(
    module_type: DeviceModuleType, info_type: DeviceInfoType, device_id: int | None = None
) -> int:
    """Return how many AI Cores or vector cores the chip has; nothing else is known."""
    cores = chip_in_use().cores
    known = {
        (DeviceModuleType.RT_MODULE_TYPE_AICORE, DeviceInfoType.INFO_TYPE_CORE_NUM): cores.aic,
        (DeviceModuleType.RT_MODULE_TYPE_AICORE, DeviceInfoType.INFO_TYPE_CUBE_NUM): cores.aic,
        (DeviceModuleType.RT_MODULE_TYPE_VECTOR_CORE, DeviceInfoType.INFO_TYPE_CORE_NUM): cores.aiv,
    }
    if (module_type, info_type) not in known:
        raise UnsupportedError(
            f"device_info({module_type}, {info_type}): only the numbers of AI Cores and vector cores are known here"
        )
    return known[module_type, info_type]


def current_tick() -> int | None:
    """Return the cycles of all launches so far, None on the NPU backend."""
    return _current.ticks if _current.model else None


# ---- memory ---------------------------------------------------------------------------------


def malloc(
    size: int,
    memory_type: MemoryType = MemoryType.RT_MEMORY_DEFAULT,
    policy: MallocPolicy = MallocPolicy.RT_MEMORY_POLICY_NONE,
) -> Memory:
    """Return memory of `size` bytes, on a border of 512; `free` gives it back."""
    _check_size("malloc", size)
    data = np.zeros(size + ALIGNMENT, np.uint8)
    start = int(data.__array_interface__["data"][0])
    address = -(-start // ALIGNMENT) * ALIGNMENT
    _current.memory[address] = _Allocation(address, data)
    return Memory(address)


def free(mem_handle: Memory) -> None:
    """Give memory back. Raises HostError for what `malloc` did not return."""
    if getattr(mem_handle, "value", None) not in _current.memory:
        mistake("HOST", "device-memory", f"free: {mem_handle!r} is not memory that malloc returned")
    del _current.memory[mem_handle.value]  # type: ignore[arg-type]


def free_mem() -> None:
    """Give all memory back."""
    _current.memory.clear()


def memcpy(
    mem_dst_handle: Memory,
    dst_nbytes: int,
    mem_src_handle: Memory,
    src_nbytes: int,
    kind: MemcpyKind,
) -> None:
    """Copy `src_nbytes` bytes to memory that holds `dst_nbytes`."""
    for size in (dst_nbytes, src_nbytes):
        _check_size("memcpy", size)
    if src_nbytes > dst_nbytes:
        mistake(
            "HOST",
            "device-memory",
            f"memcpy: {src_nbytes} bytes do not fit the destination's {dst_nbytes}",
        )
    ctypes.memmove(mem_dst_handle, mem_src_handle, src_nbytes)


def copy_data_to_device(src_mem_handle: Memory, nbytes: int) -> Memory:
    """Return new memory with a copy of `nbytes` bytes of the host."""
    target = malloc(nbytes)
    memcpy(target, nbytes, src_mem_handle, nbytes, MemcpyKind.RT_MEMCPY_HOST_TO_DEVICE)
    return target


def copy_data_from_device(mem_dst_handle: Memory, mem_src_handle: Memory, nbytes: int) -> None:
    """Copy `nbytes` bytes back to the host."""
    memcpy(mem_dst_handle, nbytes, mem_src_handle, nbytes, MemcpyKind.RT_MEMCPY_DEVICE_TO_HOST)


def _check_size(name: str, size: Any) -> None:
    if isinstance(size, bool) or not isinstance(size, int) or size <= 0:
        mistake("HOST", "device-memory", f"{name}: a size is a whole number above 0, got {size!r}")


# ---- compiled kernels, profiling ------------------------------------------------------------


def _no_binaries(name: str) -> NoReturn:
    raise UnsupportedError(
        f"{name}: there are no compiled kernels here; launch the Python function with kernel[blocks](…)"
    )


def register_device_binary_kernel(kernel_binary: bytes, core_type_id: int) -> Kernel:
    """Refuse: kernels are Python here."""
    _no_binaries("register_device_binary_kernel")


def unregister_device_binary_kernel(kernel_handle: Kernel) -> None:
    """Refuse: kernels are Python here."""
    _no_binaries("unregister_device_binary_kernel")


def register_function(kernel_handle: Kernel, fn_name: str, mode: int) -> Function:
    """Refuse: kernels are Python here."""
    _no_binaries("register_function")


def launch_kernel(
    fn_handle: Function,
    block_num: int,
    args: Iterable[Any],
    num_args: int | None = None,
    sm_desc: Any = None,
    stream_handle: Stream | None = None,
) -> None:
    """Refuse: kernels are Python here."""
    _no_binaries("launch_kernel")


def call_print_interface(*_: Any) -> NoReturn:
    """Refuse: what kernels print appears by itself."""
    raise UnsupportedError("call_print_interface: what kernels print appears on standard output")


def magic_elf_value(core_type: CoreType) -> int:
    """Return the number that marks binaries for a kind of core."""
    return {
        CoreType.AiCore: MagicElf.RT_DEV_BINARY_MAGIC_ELF,
        CoreType.VectorCore: MagicElf.RT_DEV_BINARY_MAGIC_ELF_AIVEC,
        CoreType.CubeCore: MagicElf.RT_DEV_BINARY_MAGIC_ELF_AICUBE,
        CoreType.AiCpu: MagicElf.RT_DEV_BINARY_MAGIC_ELF_AICPU,
    }[core_type].value


def msprof_task_type(core_type: CoreType) -> int:
    """Return the number that profilers give kernels for a kind of core."""
    return {
        CoreType.AiCore: MsprofTaskType.MSPROF_TASK_TYPE_AI_CORE,
        CoreType.VectorCore: MsprofTaskType.MSPROF_TASK_TYPE_AIV,
        CoreType.CubeCore: MsprofTaskType.MSPROF_TASK_TYPE_AI_CORE,
        CoreType.AiCpu: MsprofTaskType.MSPROF_TASK_TYPE_AI_CPU,
    }[core_type].value


def c2c_ctrl_addr() -> int:
    """Return an address for flags between cores: 0, nothing uses it here."""
    return 0


def set_pro_switch(
    command_type: ProfilingCommandHandle.Type, device_id: int | None = None, conf: int = 0b11111
) -> None:
    """Take note that a profiler is switched: every launch is measured anyway."""


def acl_init() -> None:
    """Do nothing: there is no library to start."""


def acl_finalize() -> None:
    """Do nothing: there is no library to stop."""


def npu_utils() -> None:
    """Return None: the profiler's interface is not there, each run has its reports."""
