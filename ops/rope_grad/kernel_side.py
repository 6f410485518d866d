"""The kernel side of `rope_grad`: checks, tiling and the launch of the device kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeVar

import numpy as np

from ascend_sim.errors import BoundsError, CapacityError
from isa.types import BLOCK_BYTES, CoreKind, float16
from ops.kernel_side import (
    Kernel,
    KernelCall,
    KernelOperation,
    TilingResult,
    register_kernel_operation,
)
from ops.machine import Machine, TilingConstant
from ops.rope_grad.kernel import rope_grad
from ops.rope_grad.tiling import RECORD_BYTES, record_size, tile
from ops.status import Refusal, Status
from ops.tensor import Array

if TYPE_CHECKING:
    from ascend_sim import Run

ErrorType = TypeVar("ErrorType", BoundsError, CapacityError)

QUEUES = 6
"""Queues of the kernel, each of BUFFER_NUM buffers; the work buffer comes on top."""

OUTPUTS = ("q_grad", "k_grad")

CONSTANTS = (
    TilingConstant(
        "MAX_PROCESS_NUM", 12288, "elements of one buffer; a tile has MAX_PROCESS_NUM / 128 rows"
    ),
    TilingConstant(
        "BUFFER_NUM", 1, "buffers of each queue; 2 lets copy in, compute and copy out overlap"
    ),
)


@dataclass(frozen=True, slots=True)
class KernelParam:
    """What of the parameter reaches the kernel side."""

    q_seq_len: tuple[int, ...]


class RopeGradKernel(Kernel):
    """The only kernel: float16, nd, two dims."""

    name = "RopeGradKernel"
    constants = CONSTANTS

    def can_support(self, call: KernelCall) -> bool:
        """Return whether there are 4 inputs and 2 outputs, all float16, nd and 2-d."""
        tensors = (*call.inputs, *call.outputs)
        return (
            (len(call.inputs), len(call.outputs)) == (4, 2)
            and isinstance(call.param, KernelParam)
            and all((t.dtype, t.format, len(t.shape)) == ("float16", "nd", 2) for t in tensors)
        )

    def tiling_size(self, call: KernelCall) -> int:
        """Return 40 bytes and 4 a sample."""
        return record_size(len(call.param.q_seq_len))

    def tiling(
        self, call: KernelCall, constants: Mapping[str, int], machine: Machine
    ) -> TilingResult:
        """Fill the record."""
        shapes = [desc.shape for desc in call.inputs]
        cores = machine.core_count(CoreKind.AIV)
        return tile(shapes, call.param.q_seq_len, constants["MAX_PROCESS_NUM"], cores)

    def launch(
        self, tiling: TilingResult, inputs: Sequence[Array], outputs: Sequence[Array],
        constants: Mapping[str, int], machine: Machine,
    ) -> Run:  # fmt: skip
        """Run the kernel. What it raises also says the largest MAX_PROCESS_NUM, or which rows lack."""
        record = np.frombuffer(tiling.record, np.uint8).copy()
        arguments = (
            *inputs,
            *outputs,
            record[:RECORD_BYTES].view(np.int64),
            record[RECORD_BYTES:].view(np.int32),
            constants["MAX_PROCESS_NUM"],
            constants["BUFFER_NUM"],
        )
        try:
            return machine.launch(rope_grad, arguments, tiling.block_dim, CoreKind.AIV, OUTPUTS)
        except CapacityError as error:
            raise _explained(error, _limits(constants, machine)) from error
        except BoundsError as error:
            lengths, rows = record[RECORD_BYTES:].view(np.int32), len(inputs[0])
            if lengths.sum() <= rows:
                raise
            raise _explained(
                error,
                f"qSeqLen adds up to {lengths.sum()} and the gradients have {rows} rows: the host does not "
                "compare them, and the kernel goes past the tensors",
            ) from error


@register_kernel_operation
class RopeGradKernelOperation(KernelOperation):
    """Found by the graph node's name."""

    name = "RopeGradOperation"
    kernels: ClassVar[Mapping[str, Kernel]] = {RopeGradKernel.name: RopeGradKernel()}

    def infer_shape(self, call: KernelCall) -> None:
        """Check once more what the host side has checked."""
        gradients, tables = call.inputs[:2], call.inputs[2:]
        if gradients[0].shape != gradients[1].shape or tables[0].shape != tables[1].shape:
            raise Refusal(Status.ERROR_RT_FAIL, "kernel side: gradients or tables differ in shape")

    def best_kernel(self, call: KernelCall) -> str:
        """There is one."""
        return RopeGradKernel.name


def largest_max_process_num(usable_bytes: int, buffer_num: int) -> int:
    """Return the largest MAX_PROCESS_NUM whose buffers fit `usable_bytes` of UB (each starts on 32 bytes)."""
    block = usable_bytes // (QUEUES * buffer_num + 1) // BLOCK_BYTES * BLOCK_BYTES
    return block // float16.size


def _limits(constants: Mapping[str, int], machine: Machine) -> str:
    size, number = constants["MAX_PROCESS_NUM"] * float16.size, constants["BUFFER_NUM"]
    usable = machine.chip.memories.UB.usable
    limits = [
        f"{largest_max_process_num(usable, buffer_num)} with BUFFER_NUM {buffer_num}"
        for buffer_num in sorted({1, number})
    ]
    buffers = QUEUES * number + 1
    return (
        f"The kernel has {buffers} buffers of {size} bytes, {buffers * size} in all. "
        f"The largest MAX_PROCESS_NUM that fits is {' and '.join(limits)}"
    )


def _explained(error: ErrorType, reason: str) -> ErrorType:
    """Return the error with a line more, in its finding too, which may already stand in the run's list."""
    message = f"{error}\n{reason}"
    error.finding.message = message
    return type(error)(message, error.finding, error.run)
