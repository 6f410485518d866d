"""The kernel side of an operation: what the runner's graph node finds by its name.

A kernel operation checks the shapes again and names its best kernel; the kernel computes the tiling record and
launches the device kernel.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ascend_sim.chip_file import nearest
from ascend_sim.errors import SimulatorBug
from ops.machine import Machine, TilingConstant
from ops.tensor import Array, TensorDesc

if TYPE_CHECKING:
    from ascend_sim import Run


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A kernel-side parameter with the tensors of one graph node."""

    param: Any
    inputs: tuple[TensorDesc, ...]
    outputs: tuple[TensorDesc, ...]


@dataclass(frozen=True, slots=True)
class TilingResult:
    """What tiling gives to the launch: the record in bytes and the number of blocks."""

    record: bytes
    block_dim: int


class TilingFailure(Exception):
    """A kernel's tiling refused. The library swallows this; here it becomes a HOST finding."""


class Kernel(ABC):
    """One device kernel with its tiling."""

    name: ClassVar[str]
    constants: ClassVar[tuple[TilingConstant, ...]] = ()

    @abstractmethod
    def can_support(self, call: KernelCall) -> bool:
        """Return whether the kernel takes these tensors."""

    @abstractmethod
    def tiling_size(self, call: KernelCall) -> int:
        """Return the size of the tiling record in bytes. Raises `TilingFailure`."""

    @abstractmethod
    def tiling(
        self, call: KernelCall, constants: Mapping[str, int], machine: Machine
    ) -> TilingResult:
        """Compute the tiling. Raises `TilingFailure`."""

    def workspace_size(self, call: KernelCall, tiling: TilingResult | None) -> int:
        """Return the bytes of GM that the kernel needs beside its tensors; `tiling` is None where it was refused."""
        return 0

    @abstractmethod
    def launch(
        self, tiling: TilingResult, inputs: Sequence[Array], outputs: Sequence[Array],
        constants: Mapping[str, int], machine: Machine,
    ) -> Run:  # fmt: skip
        """Run the device kernel on the arrays; outputs are written in place. Raises `KernelError`."""


class KernelOperation(ABC):
    """The kernel side's own idea of an operation, with its kernels by name."""

    name: ClassVar[str]
    kernels: ClassVar[Mapping[str, Kernel]]

    @abstractmethod
    def infer_shape(self, call: KernelCall) -> None:
        """Check the tensors of a call once more. Raises `Refusal` (ERROR_RT_FAIL)."""

    @abstractmethod
    def best_kernel(self, call: KernelCall) -> str:
        """Return the name of the kernel to use."""


KERNEL_OPERATIONS: dict[str, KernelOperation] = {}
"""Kernel-side operations by the name of the graph node."""


def register_kernel_operation(operation: type[KernelOperation]) -> type[KernelOperation]:
    """Enter a kernel operation under its name (a class decorator)."""
    if operation.name in KERNEL_OPERATIONS:
        raise SimulatorBug(f"two kernel operations are called {operation.name}")
    KERNEL_OPERATIONS[operation.name] = operation()
    return operation


def kernel_operation(name: str) -> KernelOperation:
    """Return the kernel operation of a graph node's name."""
    if name not in KERNEL_OPERATIONS:
        raise SimulatorBug(
            f"no kernel operation is called {name!r}{nearest(name, KERNEL_OPERATIONS)}"
        )
    return KERNEL_OPERATIONS[name]
