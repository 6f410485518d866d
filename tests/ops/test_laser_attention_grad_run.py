"""Runs of laser_attention_grad against its references, and what its counts must be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ascend_sim import Run
from ops import Context, create_operation
from ops.laser_attention_grad import inputs as data
from ops.laser_attention_grad import reference
from ops.laser_attention_grad.problem import BFLOAT16, Problem, to_heads
from ops.laser_attention_grad.sizes import Sizes
from ops.tensor import Array

RANGES = ("-2,2", "-2,2", "-2,2", "-0.5,0.5")


class Case:
    """Inputs, outputs and the problem of one run."""

    def __init__(
        self,
        sizes: Sizes,
        *,
        mask: bool = True,
        pre_tokens: int = 0,
        mask_bits: str = "fp16",
        seed: int = 1,
    ) -> None:
        self.sizes = sizes
        pre_tokens = pre_tokens or sizes.seq
        scale = sizes.head_dim**-0.5
        tensors = dict(zip(data.GIVEN, data.random_tensors(sizes, seed, RANGES), strict=True))
        given = data.causal_mask(sizes) if mask else None
        self.inputs = data.complete(tensors, sizes, scale, pre_tokens, given)
        self.operation = create_operation(
            "LaserAttentionGradOperation",
            {
                "headNum": sizes.heads, "inputLayout": sizes.layout, "scaleValue": scale, "preTokens": pre_tokens,
                "emulate": {"mask_bits": mask_bits},
            },
        )  # fmt: skip
        descs = self.operation.infer_shape(self.inputs)
        self.outputs = [np.full(desc.shape, np.nan, BFLOAT16) for desc in descs]
        query, key, value, grad, output = (
            to_heads(self.inputs[i], heads, sizes.layout)
            for i, heads in (
                (0, sizes.heads), (1, sizes.kv_heads), (2, sizes.kv_heads), (3, sizes.heads), (11, sizes.heads),
            )
        )  # fmt: skip
        self.problem = Problem(
            sizes, np.float32(scale), pre_tokens, query, key, value, grad, output,
            self.inputs[8], self.inputs[9], given, mask_bits,
        )  # fmt: skip

    def run(self, **options: Any) -> Run:
        context = Context(**options)
        self.operation.setup(self.inputs, self.outputs, context)
        return self.operation.execute(self.inputs, self.outputs, context)

    def results(self) -> list[Array]:
        heads = (self.sizes.heads, self.sizes.kv_heads, self.sizes.kv_heads)
        return [
            to_heads(output, count, self.sizes.layout)
            for output, count in zip(self.outputs, heads, strict=False)
        ]


EXACT = {
    "triangle": Case(Sizes(1, 1, 1, 512, 512, 128)),
    "odd triangle, two heads a key head": Case(Sizes(1, 2, 1, 768, 768, 128)),
    "whole, fewer keys": Case(Sizes(2, 1, 1, 512, 256, 128), mask=False),
    "whole, more keys": Case(Sizes(1, 1, 1, 256, 768, 128), mask=False),
    "192, triangle": Case(Sizes(1, 1, 1, 512, 512, 192)),
    "192, whole": Case(Sizes(1, 2, 1, 256, 512, 192), mask=False),
    "SBH": Case(Sizes(2, 2, 1, 256, 256, 192, "SBH")),
    "window": Case(Sizes(1, 1, 1, 1024, 1024, 128), pre_tokens=256),
    "window, bf16 mask": Case(Sizes(1, 2, 1, 768, 768, 128), pre_tokens=512, mask_bits="bf16"),
}


@pytest.mark.parametrize("case", EXACT.values(), ids=EXACT)
def test_one_core_is_bit_exact(case: Case) -> None:
    run = case.run(numerics="exact", cores=1, checks="off")
    expected = reference.kernel_order(case.problem, exact=True)
    for result, wanted in zip(case.results(), expected.arrays(), strict=True):
        np.testing.assert_array_equal(
            np.ascontiguousarray(result).view(np.uint16), wanted.view(np.uint16)
        )
    assert run.summary["numerics"]["kernel_order"]["bit_exact"] is True
