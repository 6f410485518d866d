"""The host side of `LaserAttentionGradOperation`: checks, runner, review."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ops.laser_attention_grad import kernel_side, param, tensor_checks
from ops.laser_attention_grad.param import LaserAttentionGradParam
from ops.laser_attention_grad.review import review
from ops.machine import Machine
from ops.operation import Operation
from ops.runner import KernelGraph, KernelNode, Runner, register_runner
from ops.tensor import Array, TensorDesc

if TYPE_CHECKING:
    from ascend_sim import Run

GRAPH_INPUTS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 11)
GRAPH_OUTPUTS = (0, 1, 2)


@register_runner
class LaserAttentionGradOpsRunner(Runner):
    """One node. paddingMask, softmaxIn, prefix, both actualSeq tensors and dpse stay behind."""

    type_name = "LaserAttentionGradOpsRunner"

    def setup_kernel_graph(self) -> KernelGraph:
        """Return the graph: one node with ten inputs and three outputs."""
        given = kernel_side.KernelParam.of(self.param)
        name = kernel_side.LaserAttentionGradKernelOperation.name
        return KernelGraph((KernelNode(name, given, GRAPH_INPUTS, GRAPH_OUTPUTS),))


class LaserAttentionGradOperation(Operation):
    """Backward of the attention of laser type, bfloat16, as the library computes it."""

    name = "LaserAttentionGradOperation"
    runner_type = LaserAttentionGradOpsRunner.type_name
    param_type = LaserAttentionGradParam
    input_names = tensor_checks.INPUTS
    output_names = tensor_checks.OUTPUTS
    type_columns = (tensor_checks.TYPE_COLUMN,)

    param: LaserAttentionGradParam

    def may_be_empty(self, index: int) -> bool:
        """Return whether input `index` may be an empty tensor; most of those must be."""
        return index in tensor_checks.MAY_BE_EMPTY

    def check_param(self) -> None:
        """Check the fields in the library's order."""
        param.check_param(self.param)

    def check_inputs(self, inputs: Sequence[TensorDesc]) -> None:
        """Check the shapes in the library's order."""
        tensor_checks.check_inputs(self.param, inputs)

    def check_outputs(self, inputs: Sequence[TensorDesc], outputs: Sequence[TensorDesc]) -> None:
        """Check three of the four outputs."""
        tensor_checks.check_outputs(inputs, outputs)

    def infer_outputs(self, inputs: Sequence[TensorDesc]) -> list[TensorDesc]:
        """The outputs look like Q, K and V, and dpse like Q."""
        return [inputs[0], inputs[1], inputs[2], inputs[0]]

    def review(
        self, run: Run, inputs: Sequence[Array], outputs: Sequence[Array], machine: Machine
    ) -> None:
        """Compare with both references, explain the rounds, add the known faults."""
        review(run, inputs, outputs, self.param, machine)
