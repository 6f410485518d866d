"""`rope_grad`: the backward of the rotary position embedding, as the CANN transformer library has it."""

from ops.operator_spec import OperatorSpec
from ops.rope_grad.inputs import NAMES
from ops.rope_grad.kernel_side import CONSTANTS
from ops.rope_grad.operation import RopeGradOperation
from ops.rope_grad.program import OPTIONS, run_rope_grad
from ops.rope_grad.scale import RopeGradScale

OPERATOR = OperatorSpec(
    name="rope_grad",
    operation=RopeGradOperation,
    summary="backward of the rotary position embedding, float16, vector cores",
    options=OPTIONS,
    constants=CONSTANTS,
    inputs=NAMES,
    outputs=RopeGradOperation.output_names,
    default_data="gradients normal(0, 1), cos and sin the real tables (base 10000), float16",
    start=run_rope_grad,
    scale=RopeGradScale,
)
