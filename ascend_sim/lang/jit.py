"""asc.jit and what stands in kernel signatures: GlobalAddress, ConstExpr."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ascend_sim.chip_file import nearest
from ascend_sim.errors import ConfigError
from isa.stream import current

JIT_OPTIONS = (
    "always_compile", "auto_sync", "auto_sync_log", "bisheng_options", "debug", "insert_sync", "kernel_type",
    "matmul_cube_only", "opt_level", "print_ir_before_all", "run_passes", "strip_loc", "verify_sync",
)  # fmt: skip
"""pyasc's options; those that steer its compiler are accepted and mean nothing here."""


class ConstExpr:
    """Marks a parameter that is known at compile time: `n: asc.ConstExpr[int]`."""

    def __class_getitem__(cls, item: Any) -> Any:
        return item


class Kernel:
    """A kernel function: `kernel[blocks](…)` launches it, inside a kernel it is an ordinary function."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.options = options

    @property
    def auto_sync(self) -> bool:
        """Whether automatic synchronisation is on: pyasc's default is on."""
        return bool(self.options.get("auto_sync", True))

    def __getitem__(self, where: Any) -> Callable[..., Any]:
        blocks = where[0] if isinstance(where, tuple) else where

        def launch_kernel(*args: Any, **keywords: Any) -> Any:
            from ascend_sim.launch import launch_from_program  # noqa: PLC0415  launch imports this module

            return launch_from_program(self, blocks, args, keywords)

        return launch_kernel

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call the function inside a running kernel. Raises ConfigError outside one."""
        if current.get(None) is None:
            raise ConfigError(
                f"{self.function.__name__} is a kernel: launch it with {self.function.__name__}[blocks](…) or "
                f"ascend_sim.launch({self.function.__name__}, …)"
            )
        return self.function(*args, **keywords)

    def __repr__(self) -> str:
        return f"<kernel {self.function.__name__}>"


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Mark a kernel or a helper of one: `@asc.jit` or `@asc.jit(auto_sync=False)`.

    Raises ConfigError for an option that pyasc does not have.
    """
    for name in options:
        if name not in JIT_OPTIONS:
            raise ConfigError(
                f"asc.jit has no option {name!r}{nearest(name, JIT_OPTIONS)} (options: {', '.join(JIT_OPTIONS)})"
            )
    if function is not None:
        return Kernel(function, options)
    return lambda inner: Kernel(inner, options)
