"""Running `rope_grad` from options: sizes, data, operation, launch."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ascend_sim.chip_file import nearest
from ascend_sim.errors import ConfigError
from ops.context import Context
from ops.operator_spec import Option, read_positive, read_positive_list
from ops.rope_grad.inputs import Shape, default_inputs, read_inputs
from ops.rope_grad.operation import RopeGradOperation
from ops.rope_grad.tuned import run_tuned
from ops.tensor import Array, as_desc

if TYPE_CHECKING:
    from ascend_sim import Run

DEFAULT_SEQ = (2048, 1024, 37, 1)
DEFAULT_HIDDEN = 1280
DEFAULT_SOC = "Ascend910B1"

VARIANTS = ("library", "tuned", "adjoint")


def _read_variant(name: str, value: Any) -> str:
    if value not in VARIANTS:
        known = ", ".join(VARIANTS)
        raise ConfigError(f"{name} is {value!r}{nearest(str(value), VARIANTS)} (allowed: {known})")
    return str(value)


OPTIONS = (
    Option("seq", "L1,L2,...", "2048,1024,37,1", "tokens of each sample (qSeqLen); with --input: all rows, one sample",
           read_positive_list),
    Option("hidden", "H", "1280", "hidden size, heads times 128", read_positive),
    Option("max-seq", "M", "the longest sample", "rows of the tables cos and sin", read_positive),
    Option("variant", "library|tuned|adjoint", "library",
           "the library's kernel, the rewritten one with the same results, or the true adjoint", _read_variant),
    Option("rows", "R", "the sum of the samples", "rows of the gradients", read_positive),
)  # fmt: skip


def run_rope_grad(
    options: dict[str, Any], context: Context, seed: int, input_file: str | os.PathLike[str] | None
) -> Run:
    """Run the operator; `options` by key (`seq`, `hidden`, `max_seq`, `rows`, `variant`), each of them optional.

    The outputs start as NaN, so that what the kernel does not write shows. Where nothing is computed, no data is made
    up for it either: the inputs are zero.
    """
    inputs = None if input_file is None else read_inputs(input_file)
    shape = _shape(options) if inputs is None else _shape_of(inputs, options, input_file)
    operation = RopeGradOperation({"qSeqLen": list(shape.seq_lens)}, _soc(context))
    # Refuse sizes before any data is made for them.
    operation.infer_shape(shape.descs())
    computed = context.numerics != "off"
    if inputs is None and computed:
        inputs = default_inputs(shape, seed)
    elif inputs is None:
        inputs = [np.zeros(desc.shape, np.float16) for desc in shape.descs()]
    outputs = [np.full(desc.shape, np.nan, np.float16) for desc in operation.infer_shape(inputs)]
    variant = options.get("variant", "library")
    if variant != "library":
        machine = context.machine_for(_soc(context))
        return run_tuned(
            inputs, outputs, shape.seq_lens, machine, context.tiling, adjoint=variant == "adjoint"
        )
    try:
        operation.setup(inputs, outputs, context)
        return operation.execute(inputs, outputs, context)
    finally:
        operation.drop_runner()


def _soc(context: Context) -> str:
    """Return the SoC of the context's chip; a chip that is no Ascend at all counts as the default one."""
    soc = DEFAULT_SOC if context.chip is None else context.chip.soc
    return soc if soc.startswith("Ascend") else DEFAULT_SOC


def _shape(options: dict[str, Any]) -> Shape:
    seq_lens = options.get("seq", DEFAULT_SEQ)
    return Shape(
        seq_lens,
        options.get("hidden", DEFAULT_HIDDEN),
        options.get("max_seq", max(seq_lens)),
        options.get("rows", sum(seq_lens)),
    )


def _shape_of(
    inputs: list[Array], options: dict[str, Any], input_file: str | os.PathLike[str] | None
) -> Shape:
    """Return the sizes of the arrays of a file. Raises `ConfigError` where an option says otherwise."""
    (rows, hidden_size), (max_seq, head_size) = as_desc(inputs[0]).shape, as_desc(inputs[2]).shape
    for key, size in (("rows", rows), ("hidden", hidden_size), ("max_seq", max_seq)):
        if options.get(key, size) != size:
            option = key.replace("_", "-")
            raise ConfigError(
                f"--{option} is {options[key]} but {input_file} has {size}; leave the option out"
            )
    return Shape(options.get("seq", (rows,)), hidden_size, max_seq, rows, head_size)
