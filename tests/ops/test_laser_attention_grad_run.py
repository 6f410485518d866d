"""Runs of laser_attention_grad against its references, and what its counts must be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ascend_sim import Run
from ascend_sim.errors import KernelError
from ops import Context, create_operation
from ops.laser_attention_grad import inputs as data
from ops.laser_attention_grad import reference
from ops.laser_attention_grad.problem import BFLOAT16, Problem, to_heads
from ops.laser_attention_grad.sizes import Sizes
from ops.tensor import DTYPES, Array

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


SILENT = {
    "triangle": (Case(Sizes(1, 2, 1, 512, 512, 128)), 24),
    "two rounds": (Case(Sizes(1, 2, 2, 768, 768, 128)), 2),
    "whole": (Case(Sizes(2, 1, 1, 512, 256, 128), mask=False), 3),
    "192": (Case(Sizes(1, 1, 1, 512, 512, 192)), 2),
    "SBH": (Case(Sizes(2, 1, 1, 256, 256, 192, "SBH")), 2),
    "window": (Case(Sizes(1, 1, 1, 1024, 1024, 128), pre_tokens=256, mask_bits="bf16"), 2),
}


@pytest.mark.parametrize(("case", "cores"), SILENT.values(), ids=SILENT)
def test_correct_runs_are_silent_and_right(case: Case, cores: int) -> None:
    run = case.run(cores=cores)
    assert {finding.kind for finding in run.findings} <= {"INFO", "PERF"}
    assert run.exit_code == 0
    numerics = run.summary["numerics"]
    assert numerics["reference"] == "library"
    assert numerics["passed"] is True
    assert numerics["mismatches"] == 0
    assert numerics["compared"] == sum(output.size for output in case.outputs[:3])


@pytest.mark.parametrize(("case", "cores"), SILENT.values(), ids=SILENT)
def test_many_cores_differ_by_the_order_of_atomic_additions_only(case: Case, cores: int) -> None:
    run = case.run(numerics="exact", cores=cores, checks="off")
    order = run.summary["numerics"]["kernel_order"]
    assert order["mismatches"] == 0
    assert order["max_abs_error"] < 0.01


@pytest.mark.parametrize(("case", "cores"), SILENT.values(), ids=SILENT)
def test_time_does_not_depend_on_the_numbers(case: Case, cores: int) -> None:
    timed = case.run(numerics="off", checks="off", cores=cores)
    full = case.run(numerics="on", checks="off", cores=cores)
    assert timed.cycles == full.cycles
    assert timed.pipes == full.pipes


def test_additions_have_one_order() -> None:
    """Atomic additions come by simulated time: two runs give the same bytes."""
    case = Case(Sizes(1, 2, 1, 512, 512, 128))
    case.run(checks="off", cores=8)
    first = [output.copy() for output in case.outputs]
    case.run(checks="off", cores=8)
    for one, other in zip(first[:3], case.outputs[:3], strict=True):
        np.testing.assert_array_equal(one.view(np.uint16), other.view(np.uint16))


# ---- the operator's faults ------------------------------------------------------------------------


def codes(run: Run) -> dict[str, str]:
    """Return the kinds of a run's findings by their codes."""
    return {finding.code: finding.kind for finding in run.findings}


def test_window_with_the_mandated_mask_loses_the_edge() -> None:
    case = Case(Sizes(1, 1, 1, 1024, 1024, 128), pre_tokens=256)
    run = case.run(checks="off")
    assert codes(run)["mask-bits"] == "NUMERIC"
    assert run.exit_code == 2
    numerics = run.summary["numerics"]
    assert 0.3 < numerics["mismatches"] / numerics["compared"] < 0.6
    assert 0.1 < numerics["max_abs_error"] < 0.5
    assert not numerics["passed"]


def test_triangle_survives_the_mandated_mask() -> None:
    run = SILENT["triangle"][0].run(checks="off")
    assert codes(run)["mask-bits"] == "INFO"


def test_preceding_tokens_without_a_mask_are_ignored() -> None:
    case = Case(Sizes(1, 1, 1, 512, 512, 128), mask=False, pre_tokens=256)
    run = case.run(checks="off")
    assert codes(run)["pre-tokens-ignored"] == "INFO"
    assert run.exit_code == 0


def test_only_a_corner_of_the_mask_is_read() -> None:
    case = Case(Sizes(1, 1, 1, 512, 512, 128))
    case.inputs[7] = case.inputs[7].copy()
    case.inputs[7][300, 3] = 1.0
    run = case.run(checks="off")
    assert codes(run)["mask-corner-only"] == "NUMERIC"
    assert run.exit_code == 2


def test_overrun_of_dq_is_kept_apart_or_shows() -> None:
    case = Case(Sizes(1, 1, 1, 256, 256, 128))
    run = case.run(checks="off")
    assert codes(run)["dq-post-overrun"] == "INFO"
    stored = run.summary["phases"]["post"]["bytes"]["aiv"]["MTE3"]
    assert stored == 2 * (3 * 256 * 128 + 16)
    case.operation.set_param(case.operation.param.to_dict() | {"emulate": {"dq_overrun": True}})
    with pytest.raises(KernelError, match="query_grad") as caught:
        case.run(checks="off")
    assert caught.value.finding.kind == "BOUNDS"


def test_a_part_with_25_cores_leaves_the_last_shares_unwritten() -> None:
    case = Case(Sizes(1, 1, 1, 256, 256, 128))
    run = case.run(cores=25)
    missing = {finding.tensor for finding in run.findings if finding.kind == "COVERAGE"}
    assert missing == {"query_grad", "key_grad", "value_grad"}
    assert run.blocks == 24


def test_summary_tells_who_waits_for_whom() -> None:
    case, cores = SILENT["two rounds"]
    run = case.run(checks="off", cores=cores)
    handover = run.summary["handover"]
    assert [entry["active"] for entry in handover["rounds"]] == [2, 1]
    for entry in handover["rounds"]:
        for side in ("vectors_for_cube", "cube_for_vectors"):
            assert 0 <= entry[side]["idle"] <= entry[side]["waited"]
            assert 0 < entry[side]["mean"] <= entry[side]["longest"]
    assert set(handover["lost_share"]) == {"aic", "aiv"}
    assert all(0 <= share < 1 for share in handover["lost_share"].values())
    first = handover["rounds"][0]["vectors_for_cube"]
    assert first["waited"] > 0  # nobody has anything for them before the first scores
    waits = [
        item.start - item.head
        for log in run.log.cores
        for item in log.items
        if item.name == "cross_core_wait_flag" and item.event_id in (2, 3)
    ]
    total = sum(
        entry[side]["waited"]
        for entry in handover["rounds"]
        for side in ("vectors_for_cube", "cube_for_vectors")
    )
    assert total == sum(waits)
    (lines,) = run.summary["explanation"].values()
    assert any("flag 2" in line and "flag 3" in line for line in lines)


def test_transposing_more_rows_than_fit_hangs() -> None:
    """More than 256 heads of 192, 256 rows a vector core: the library's loop waits for a flag that nobody raises."""
    sizes = Sizes(257, 1, 1, 512, 256, 192, "SBH")
    descs = data.descs(sizes, has_mask=False)
    inputs = [np.zeros(desc.shape, DTYPES[desc.dtype]) for desc in descs]
    operation = create_operation(
        "LaserAttentionGradOperation", {"headNum": 1, "inputLayout": "SBH", "preTokens": 512}
    )
    outputs = [np.zeros(desc.shape, BFLOAT16) for desc in operation.infer_shape(inputs)]
    context = Context(numerics="off", checks="off", cores=1)
    operation.setup(inputs, outputs, context)
    with pytest.raises(KernelError, match="MTE3_V") as caught:
        operation.execute(inputs, outputs, context)
    assert caught.value.finding.kind == "DEADLOCK"


@pytest.mark.slow
def test_transposing_head_by_head() -> None:
    """257 heads do not fit a row of UB and 64 rows a vector core do: each head by itself, and the numbers are right."""
    run = Case(Sizes(257, 1, 1, 256, 256, 192, "SBH")).run(checks="off", cores=2)
    assert run.summary["numerics"]["passed"] is True
    assert codes(run).get("differs-from-kernel-order") is None


def test_widths_of_sbh_that_are_no_whole_heads_are_told() -> None:
    sizes = Sizes(1, 1, 1, 256, 256, 192, "SBH")
    inputs = [
        np.zeros(desc.shape, DTYPES[desc.dtype]) for desc in data.descs(sizes, has_mask=False)
    ]
    inputs[0] = np.zeros((256, 1, 208), BFLOAT16)
    operation = create_operation(
        "LaserAttentionGradOperation", {"headNum": 1, "inputLayout": "SBH", "preTokens": 256}
    )
    outputs = [np.zeros(desc.shape, BFLOAT16) for desc in operation.infer_shape(inputs)]
    context = Context(numerics="off", checks="off", cores=1)
    operation.setup(inputs, outputs, context)
    run = operation.execute(inputs, outputs, context)
    assert codes(run)["width-not-whole-heads"] == "LAYOUT"
