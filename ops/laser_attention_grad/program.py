"""Running `laser_attention_grad` from options: sizes, data, operation, launch."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ascend_sim.chip_file import nearest
from ascend_sim.errors import ConfigError
from ops.context import Context
from ops.laser_attention_grad import inputs as data
from ops.laser_attention_grad.operation import LaserAttentionGradOperation
from ops.laser_attention_grad.param import BNSD, LAYOUTS, MASK_BITS, SBH
from ops.laser_attention_grad.problem import BFLOAT16
from ops.laser_attention_grad.sizes import KEY_DIM, QUERY_DIM_SBH, Sizes
from ops.laser_attention_grad.tensor_checks import SEQ_UNIT
from ops.operator_spec import Option, read_positive
from ops.tensor import Array

if TYPE_CHECKING:
    from ascend_sim import Run

DEFAULT_SOC = "Ascend910B1"
MASKS = ("none", "causal")


def _choice(*allowed: str) -> Any:
    def read(name: str, value: Any) -> str:
        if value not in allowed:
            raise ConfigError(
                f"{name} is {value!r}{nearest(str(value), allowed)} (allowed: {', '.join(allowed)})"
            )
        return str(value)

    return read


def _length(name: str, value: Any) -> int:
    """Read a length. The operator would refuse it as well, but by its own parameter's name, not by the option's."""
    length = read_positive(name, value)
    if length % SEQ_UNIT:
        raise ConfigError(f"{name} is {length}; it must be a multiple of {SEQ_UNIT}")
    return length


def _head_dim(name: str, value: Any) -> int:
    dim = read_positive(name, value)
    if dim not in KEY_DIM:
        raise ConfigError(f"{name} is {dim}; it must be {' or '.join(map(str, KEY_DIM))}")
    return dim


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ConfigError(f"{name} is {value!r}; it must be a number") from None


OPTIONS = (
    Option("batch", "B", "1", "samples", read_positive),
    Option("heads", "N", "2", "query heads (headNum)", read_positive),
    Option("kv-heads", "N", "the query heads", "key and value heads; they divide the query heads", read_positive),
    Option("seq", "S", "512", "queries, a multiple of 256", _length),
    Option("kv-seq", "S", "the queries", "keys, a multiple of 256", _length),
    Option("head-dim", "128|192", "128", "head dim of Q (K has 128 or 256); 192 with SBH", _head_dim),
    Option("layout", "BNSD|SBH", "BNSD", "layout of the tensors (inputLayout)", _choice(*LAYOUTS)),
    Option("pre-tokens", "P", "the queries", "keys before its own that a query sees (preTokens)", read_positive),
    Option("mask", "none|causal", "causal", "whether keys behind a query are hidden", _choice(*MASKS)),
    Option("mask-bits", "fp16|bf16", "fp16", "bits of the mask: as the library has them, or as its kernel reads them",
           _choice(*MASK_BITS)),
    Option("scale", "X", "1/sqrt(D)", "factor of the scores (scaleValue)", _number),
)  # fmt: skip


def run_laser_attention_grad(
    options: dict[str, Any], context: Context, seed: int, input_file: str | os.PathLike[str] | None
) -> Run:
    """Run the operator; `options` by key, each of them optional.

    Without a file Q, K, V and dO are uniform(-1, 1); softmax rows and attention result are those of a forward pass.
    The outputs start as NaN where there are numbers, so that what the kernel does not write shows.
    """
    arrays = {} if input_file is None else data.read_tensors(input_file)
    sizes = _sizes(options) if input_file is None else _sizes_of(arrays, options, input_file)
    pre_tokens = options.get("pre_tokens", sizes.seq)
    scale = options.get("scale", sizes.head_dim**-0.5)
    has_mask = options.get("mask", "causal") == "causal"
    if "atten_mask" in arrays:
        has_mask = arrays["atten_mask"].size > 0
    operation = LaserAttentionGradOperation(
        {
            "headNum": sizes.heads,
            "inputLayout": sizes.layout,
            "scaleValue": scale,
            "preTokens": pre_tokens,
            "emulate": {"mask_bits": options.get("mask_bits", MASK_BITS[0])},
        },
        _soc(context),
    )
    # Refuse sizes before any data is made for them.
    operation.infer_shape(data.descs(sizes, has_mask=has_mask))
    inputs = _inputs(arrays, sizes, scale, pre_tokens, has_mask, seed, context)
    shapes = [desc.shape for desc in operation.infer_shape(inputs)[:3]]
    outputs = [np.zeros(shape, BFLOAT16) for shape in (*shapes, (1,))]
    if context.numerics != "off":
        for output in outputs:
            output.fill(np.nan)
    try:
        operation.setup(inputs, outputs, context)
        return operation.execute(inputs, outputs, context)
    finally:
        operation.drop_runner()


def _inputs(
    arrays: dict[str, Array], sizes: Sizes, scale: float, pre_tokens: int, has_mask: bool, seed: int,
    context: Context,
) -> list[Array]:  # fmt: skip
    if not arrays and context.numerics == "off":  # nobody looks at the values
        descs = data.descs(sizes, has_mask=has_mask)
        dtypes = {"bfloat16": BFLOAT16}
        return [np.zeros(desc.shape, dtypes.get(desc.dtype, desc.dtype)) for desc in descs]
    mask = arrays.get("atten_mask") if has_mask else None
    if mask is None and has_mask:
        mask = data.causal_mask(sizes)
    tensors = arrays or dict(zip(data.GIVEN, data.random_tensors(sizes, seed), strict=True))
    return data.complete(tensors, sizes, scale, pre_tokens, mask)


def _soc(context: Context) -> str:
    """Return the SoC of the context's chip; a chip that is no Ascend at all counts as the default one."""
    soc = DEFAULT_SOC if context.chip is None else context.chip.soc
    return soc if soc.startswith("Ascend") else DEFAULT_SOC


def _sizes(options: dict[str, Any]) -> Sizes:
    layout = options.get("layout", BNSD)
    heads, seq = options.get("heads", 2), options.get("seq", 512)
    head_dim = options.get("head_dim", QUERY_DIM_SBH if layout == SBH else 128)
    if layout == SBH and head_dim != QUERY_DIM_SBH:
        raise ConfigError(f"--head-dim is {head_dim}; with --layout SBH it is {QUERY_DIM_SBH}")
    return Sizes(
        options.get("batch", 1),
        heads,
        options.get("kv_heads", heads),
        seq,
        options.get("kv_seq", seq),
        head_dim,
        layout,
    )


def _sizes_of(
    arrays: dict[str, Array], options: dict[str, Any], input_file: str | os.PathLike[str]
) -> Sizes:
    """Return the sizes of a file's tensors. Raises `ConfigError` where an option says otherwise."""
    sizes = data.sizes_of_file(input_file, arrays)
    for key in ("batch", "heads", "kv_heads", "seq", "kv_seq", "head_dim", "layout"):
        if options.get(key, getattr(sizes, key)) != getattr(sizes, key):
            raise ConfigError(
                f"--{key.replace('_', '-')} is {options[key]} but {input_file} has {getattr(sizes, key)}; leave the "
                "option out"
            )
    return sizes
