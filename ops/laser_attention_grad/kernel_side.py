"""The kernel side of `laser_attention_grad`: checks, tiling, workspace and the launch of the device kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from isa.types import CoreKind
from ops.kernel_side import (
    Kernel,
    KernelCall,
    KernelOperation,
    TilingResult,
    register_kernel_operation,
)
from ops.laser_attention_grad.kernel import laser_attention_grad
from ops.laser_attention_grad.param import Emulation, LaserAttentionGradParam
from ops.laser_attention_grad.problem import BFLOAT16
from ops.laser_attention_grad.sizes import sizes_of
from ops.laser_attention_grad.tiling import RECORD_BYTES, Tiling
from ops.machine import Machine
from ops.status import Refusal, Status
from ops.tensor import Array, TensorDesc

if TYPE_CHECKING:
    from ascend_sim import Run

OUTPUTS = ("query_grad", "key_grad", "value_grad")
MASK = 6
"""Position of attenMask among the node's inputs."""


@dataclass(frozen=True, slots=True)
class KernelParam:
    """What of the parameter reaches the kernel side; keepProb and nextTokens end here."""

    head_num: int
    input_layout: str
    scale_value: float
    keep_prob: float
    pre_tokens: int
    next_tokens: int
    inner_precise: int
    emulate: Emulation

    @classmethod
    def of(cls, param: LaserAttentionGradParam) -> KernelParam:
        """Return the kernel side's part of an operation's parameter."""
        return cls(
            param.head_num, param.input_layout, param.scale_value, param.keep_prob, param.pre_tokens,
            param.next_tokens, param.inner_precise, param.emulate,
        )  # fmt: skip


def tiling_of(
    param: KernelParam | LaserAttentionGradParam,
    query: Sequence[int],
    key: Sequence[int],
    mask: TensorDesc | Array,
    machine: Machine,
) -> Tiling:
    """Return the tiling of valid tensors on a machine."""
    rows = mask.shape[0] if mask.size else 0
    return Tiling(
        sizes_of(query, key, param.input_layout),
        param.scale_value,
        param.pre_tokens,
        bool(rows),
        rows,
        machine.core_count(CoreKind.AIC),
        param.inner_precise,
    )


class LaserAttentionGradKernel(Kernel):
    """The only kernel that there is: bfloat16, cube and vector cores together."""

    name = "LaserAttentionGradKernel"

    def can_support(self, call: KernelCall) -> bool:
        """Return whether there are 10 inputs and 3 outputs."""
        return (len(call.inputs), len(call.outputs)) == (10, 3)

    def tiling_size(self, call: KernelCall) -> int:
        """Return the size of the record."""
        return RECORD_BYTES

    def tiling(
        self, call: KernelCall, constants: Mapping[str, int], machine: Machine
    ) -> TilingResult:
        """Fill the record."""
        tiling = _tiling(call, machine)
        return LaserTiling(tiling.record(), tiling.blocks, tiling, call.param.emulate)

    def workspace_size(self, call: KernelCall, tiling: TilingResult | None) -> int:
        """Return the bytes of GM that the kernel needs beside its tensors."""
        return tiling.tiling.workspace_bytes if isinstance(tiling, LaserTiling) else 0

    def launch(
        self, tiling: TilingResult, inputs: Sequence[Array], outputs: Sequence[Array],
        constants: Mapping[str, int], machine: Machine,
    ) -> Run:  # fmt: skip
        """Run the kernel. dQ gets room for what the last core writes past its end, unless that is asked for."""
        assert isinstance(tiling, LaserTiling)
        arrays = list(inputs)
        if tiling.emulate.mask_bits == "bf16" and arrays[MASK].size:
            arrays[MASK] = arrays[MASK].astype(BFLOAT16)
        workspace = np.zeros(tiling.tiling.workspace_bytes, np.uint8)
        record = np.frombuffer(tiling.record, np.uint8).copy()
        results = list(outputs)
        spare = 0 if tiling.emulate.dq_overrun else tiling.tiling.overrun
        if spare:
            results[0] = np.zeros(outputs[0].size + spare, outputs[0].dtype)
        arguments = (*arrays, *results, workspace, record)
        run = machine.launch(
            laser_attention_grad, arguments, tiling.block_dim, CoreKind.AIC, OUTPUTS
        )
        if spare:
            outputs[0][...] = results[0][: outputs[0].size].reshape(outputs[0].shape)
        run.outputs = type(run.outputs)(dict(zip(OUTPUTS, outputs, strict=True)))
        return run


@dataclass(frozen=True, slots=True)
class LaserTiling(TilingResult):
    """The record, with what it was made of."""

    tiling: Tiling
    emulate: Emulation


def _tiling(call: KernelCall, machine: Machine) -> Tiling:
    query, key, mask = call.inputs[0], call.inputs[1], call.inputs[MASK]
    return tiling_of(call.param, query.shape, key.shape, mask, machine)


@register_kernel_operation
class LaserAttentionGradKernelOperation(KernelOperation):
    """Found by the graph node's name."""

    name = "LaserAttentionGradOperation"
    kernels: ClassVar[Mapping[str, Kernel]] = {
        LaserAttentionGradKernel.name: LaserAttentionGradKernel()
    }

    def infer_shape(self, call: KernelCall) -> None:
        """Check types and dims of Q, dO, O, max and sum once more; nothing looks at K and V."""
        query, grad, output = call.inputs[0], call.inputs[3], call.inputs[9]
        if query.dtype not in ("float16", "bfloat16"):
            _refuse(f"query is {query.dtype}; it must be float16 or bfloat16")
        for name, desc in (("attention_out_grad", grad), ("attention_in", output)):
            if desc.dtype != query.dtype or len(desc.shape) != len(query.shape):
                _refuse(f"{name} is {desc}; its type and number of dims must be those of query")
        maximum, total = call.inputs[7], call.inputs[8]
        if {maximum.dtype, total.dtype} != {"float32"} or len(maximum.shape) != len(total.shape):
            _refuse("softmax_max and softmax_sum must be float32 with the same number of dims")

    def best_kernel(self, call: KernelCall) -> str:
        """There is one."""
        return LaserAttentionGradKernel.name


def _refuse(message: str) -> None:
    raise Refusal(Status.ERROR_RT_FAIL, f"kernel side: {message}")
