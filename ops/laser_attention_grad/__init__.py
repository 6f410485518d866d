"""`laser_attention_grad`: the backward of attention, as the CANN transformer library has it."""

from ops.laser_attention_grad.operation import LaserAttentionGradOperation
from ops.laser_attention_grad.program import OPTIONS, run_laser_attention_grad
from ops.laser_attention_grad.tensor_checks import INPUTS
from ops.operator_spec import OperatorSpec

OPERATOR = OperatorSpec(
    name="laser_attention_grad",
    operation=LaserAttentionGradOperation,
    summary="backward of attention, bfloat16, cube and vector cores together",
    options=OPTIONS,
    constants=(),
    inputs=INPUTS,
    outputs=LaserAttentionGradOperation.output_names,
    default_data="Q, K, V, dO uniform(-1, 1), bfloat16; softmax rows and O of a forward pass on them",
    start=run_laser_attention_grad,
)
