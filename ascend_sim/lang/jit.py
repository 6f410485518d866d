"""asc.jit and what stands in kernel signatures: GlobalAddress, ConstExpr."""

from __future__ import annotations

import ctypes
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from types import GenericAlias
from typing import Any

from ascend_sim.chip_file import nearest
from ascend_sim.errors import ConfigError, host_error
from ascend_sim.kernel_call import KernelCall
from ascend_sim.lang.iteration import with_loops
from ascend_sim.lang.uses import mentions
from ascend_sim.placement import KernelType
from isa.stream import current


@dataclass
class CodegenOptions:
    """Options of pyasc's front end; they mean nothing here."""

    capture_exceptions: bool = True
    ir_multithreading: bool = True


@dataclass
class CompileOptions:
    """Options of pyasc's compiler, with its defaults.

    `auto_sync` and `insert_sync` say what synchronisation is put in, `kernel_type` and `matmul_cube_only` which cores
    run. The others steer a compiler and mean nothing here: `verify_sync` because queues are always checked, `debug`
    because printf always prints, `opt_level`, `bisheng_options`, `run_passes`, `strip_loc`, `print_ir_before_all`,
    `auto_sync_log` and `always_compile` because nothing is compiled.
    """

    debug: bool = False
    strip_loc: bool = False
    verify_sync: bool = False
    print_ir_before_all: bool = False
    run_passes: bool = True
    kernel_type: KernelType | None = None
    opt_level: int | None = 3
    auto_sync: bool | None = True
    auto_sync_log: str | None = ""
    bisheng_options: tuple[str, ...] | None = None
    always_compile: bool = False
    matmul_cube_only: bool = False
    insert_sync: bool | None = None


@dataclass(frozen=True)
class LaunchOptions:
    """What stands in the brackets of `kernel[core_num, stream]`."""

    core_num: int = 0
    stream: ctypes.c_void_p | None = None


JIT_OPTIONS = tuple(
    sorted(field.name for kind in (CodegenOptions, CompileOptions) for field in fields(kind))
)
"""What asc.jit takes; each may also be given at a launch, `kernel[blocks](…, auto_sync=False)`."""


class ConstExpr:
    """Marks a parameter that is known at compile time, `n: asc.ConstExpr[int]`; holds such a value on the host.

    Inside a kernel `asc.ConstExpr(3)` is 3.
    """

    def __new__(cls, value: Any) -> Any:
        """Return the value itself inside a kernel."""
        if current.get(None) is not None:
            return cls.unwrap(value)
        return super().__new__(cls)

    def __init__(self, value: Any) -> None:
        self.value = self.unwrap(value)

    def __class_getitem__(cls, item: Any) -> Any:
        return GenericAlias(cls, (item,))

    @staticmethod
    def unwrap(obj: Any) -> Any:
        """Return the value that a ConstExpr holds; anything else as it is."""
        return obj.value if isinstance(obj, ConstExpr) else obj

    def __str__(self) -> str:
        return str(self.value)

    def __repr__(self) -> str:
        return f"ConstExpr[{type(self.value).__name__}]({self.value!r})"

    def __format__(self, format_spec: str) -> str:
        return format(self.value, format_spec)


def is_constant(annotation: Any) -> bool:
    """Return whether an annotation, or its text, is `ConstExpr[…]`."""
    if isinstance(annotation, str):
        return "ConstExpr" in annotation
    return annotation is ConstExpr or getattr(annotation, "__origin__", None) is ConstExpr


class Kernel(KernelCall):
    """A kernel function: `kernel[blocks](…)` launches it, inside a kernel it is an ordinary function."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        function = with_loops(function)
        super().__init__(function)
        functools.update_wrapper(self, function)
        self.options = options

    @property
    def auto_sync(self) -> bool:
        """Whether automatic synchronisation is on: pyasc's default is on."""
        return bool(self.options.get("auto_sync", True))

    @functools.cached_property
    def has_matmul(self) -> bool:
        """Whether the kernel, or a function of the program that it calls, registers a Matmul object.

        pyasc makes such a kernel a mix kernel, or a cube-only one where `matmul_cube_only` says so.
        """
        return mentions(self.function, "register_matmul")

    def __getitem__(self, where: Any) -> Callable[..., Any]:
        blocks = _launch_options(self, where).core_num

        def launch_kernel(*args: Any, **keywords: Any) -> Any:
            from ascend_sim.launch import launch_from_program  # noqa: PLC0415  launch imports this module

            return launch_from_program(self, blocks, args, keywords)

        return launch_kernel

    def __repr__(self) -> str:
        return f"<kernel {self.function.__name__}>"


JITFunction = Kernel
"""pyasc's name of the class."""


def _launch_options(kernel: Kernel, where: Any) -> LaunchOptions:
    name = kernel.function.__name__
    given = where if isinstance(where, tuple) else (where,)
    if len(given) not in {1, 2}:
        raise host_error(
            "launch-options",
            f"{name}[…] takes the number of blocks and a stream, got {len(given)} things",
        )
    if len(given) == 2 and not isinstance(given[1], ctypes.c_void_p | None):
        raise host_error(
            "launch-options",
            f"{name}[blocks, stream]: the stream comes from asc.lib.runtime, current_stream() for one; got "
            f"{given[1]!r}",
        )
    return LaunchOptions(*given)


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Mark a kernel or a helper of one: `@asc.jit` or `@asc.jit(auto_sync=False)`.

    Raises ConfigError for an option that pyasc does not have, for a value that an option does not take, and for a
    parameter of the kernel that is called like an option.
    """
    check_options(options)
    if function is not None:
        return _kernel(function, options)
    return lambda inner: _kernel(inner, options)


def check_options(options: dict[str, Any]) -> None:
    """Refuse options that pyasc does not have, and values that they do not take."""
    for name in options:
        if name not in JIT_OPTIONS:
            raise ConfigError(
                f"asc.jit has no option {name!r}{nearest(name, JIT_OPTIONS)} (options: {', '.join(JIT_OPTIONS)})"
            )
    if options.get("opt_level", 3) not in {1, 2, 3}:
        raise ConfigError(f"asc.jit: opt_level is {options['opt_level']!r}, it is 1, 2 or 3")


def _kernel(function: Callable[..., Any], options: dict[str, Any]) -> Kernel:
    if not callable(function):
        raise ConfigError(f"asc.jit marks a function, got {function!r}")
    clashes = [name for name in inspect.signature(function).parameters if name in JIT_OPTIONS]
    if clashes:
        raise ConfigError(
            f"{getattr(function, '__name__', function)}: parameters that are called like options of asc.jit: "
            f"{', '.join(clashes)}. Rename them"
        )
    return Kernel(function, options)
