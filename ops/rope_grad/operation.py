"""The host side of `RopeGradOperation`: parameter, checks, runner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ops import checks
from ops.machine import Machine
from ops.operation import Operation
from ops.param import Param, int32_list, json_field, reserved
from ops.rope_grad import kernel_side
from ops.rope_grad.review import review
from ops.runner import KernelGraph, KernelNode, Runner, register_runner
from ops.status import Refusal, Status
from ops.tensor import Array, TensorDesc

if TYPE_CHECKING:
    from ascend_sim import Run

HEAD_SIZE = 128


@dataclass(frozen=True)
class RopeGradParam(Param):
    """`q_seq_len`: tokens of each sample of the un-padded batch; `rsv`: eight reserved bytes, all 0."""

    q_seq_len: tuple[int, ...] = json_field("qSeqLen", int32_list, ())
    rsv: bytes = json_field("rsv", reserved(8), bytes(8), printed=False)


@register_runner
class RopeGradOpsRunner(Runner):
    """One node; the kernel side gets the lengths only."""

    type_name = "RopeGradOpsRunner"

    def setup_kernel_graph(self) -> KernelGraph:
        """Return the graph: one node with all four inputs and both outputs."""
        param = kernel_side.KernelParam(self.param.q_seq_len)
        node = KernelNode(kernel_side.RopeGradKernelOperation.name, param, (0, 1, 2, 3), (0, 1))
        return KernelGraph((node,))


class RopeGradOperation(Operation):
    """Backward of the rotary position embedding, float16, as the library computes it."""

    name = "RopeGradOperation"
    runner_type = RopeGradOpsRunner.type_name
    param_type = RopeGradParam
    input_names = ("q_embedded_grad", "k_embedded_grad", "cos", "sin")
    output_names = ("q_grad", "k_grad")
    type_columns = (("float16",) * 6,)

    param: RopeGradParam

    def check_param(self) -> None:
        """Check the list of lengths; the tables' rows bound it only once they are known."""
        checks.sequence_lengths("qSeqLen", self.param.q_seq_len)

    def check_inputs(self, inputs: Sequence[TensorDesc]) -> None:
        """Check the shapes in the library's order. Nothing compares the sum of qSeqLen with the rows."""
        labels = self._labels_in
        for label, desc in zip(labels, inputs, strict=True):
            checks.dims(label, desc, 2)
        checks.same_shape(labels[0], inputs[0], labels[1], inputs[1])
        checks.same_shape(labels[2], inputs[2], labels[3], inputs[3])
        for label, desc in zip(labels[:2], inputs[:2], strict=True):
            if desc.shape[1] % HEAD_SIZE:
                raise Refusal(
                    Status.ERROR_INVALID_TENSOR_DIM, f"{label} has hidden size {desc.shape[1]}; "
                    f"it must be a multiple of {HEAD_SIZE}",
                )  # fmt: skip
        max_seq_len, head_size = inputs[2].shape
        if head_size != HEAD_SIZE:
            raise Refusal(
                Status.ERROR_INVALID_TENSOR_DIM,
                f"{labels[2]} has {head_size} columns; it must have {HEAD_SIZE}",
            )
        checks.sequence_lengths("qSeqLen", self.param.q_seq_len, longest=max_seq_len)

    def infer_outputs(self, inputs: Sequence[TensorDesc]) -> list[TensorDesc]:
        """The outputs look like the gradients."""
        return [inputs[0], inputs[1]]

    def review(
        self, run: Run, inputs: Sequence[Array], outputs: Sequence[Array], machine: Machine
    ) -> None:
        """Compare with both references and add the operator's own findings."""
        review(run, inputs, outputs, self.param.q_seq_len, machine)
