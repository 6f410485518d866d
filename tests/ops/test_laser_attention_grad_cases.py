"""The library's own test table for LaserAttentionGradOperation, where it stands beside the checkout."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

from ops import Context, OperationError, create_operation
from ops.laser_attention_grad import inputs as data
from ops.laser_attention_grad.plan import Plan
from ops.laser_attention_grad.problem import BFLOAT16
from ops.laser_attention_grad.sizes import BLOCK
from tests.ops.laser_cases import ACCEPTED, CASES, FILE, REFUSED, descs, has_mask, sizes
from tests.ops.laser_counts import Tally, cube_counts, tally, vector_counts


def by_id(case: dict[str, Any]) -> str:
    return str(case["id"])


def test_table_is_there() -> None:
    if not CASES:
        pytest.skip(f"no {FILE}: the library's test tables do not belong to this project")
    assert len(CASES) >= 150


@pytest.mark.parametrize("case", REFUSED, ids=by_id)
def test_refused_case(case: dict[str, Any]) -> None:
    with pytest.raises(OperationError) as caught:
        operation = create_operation(case["operator"], case["param"], soc=case["soc"])
        outputs = operation.infer_shape(descs(case))
        given = descs(case, "out") if case["stage"] == "setup" else outputs
        operation.setup(descs(case), given, Context())
    assert (caught.value.stage, caught.value.status) == (case["stage"], case["expected"])


@pytest.mark.parametrize("case", ACCEPTED, ids=by_id)
def test_accepted_case_sets_up(case: dict[str, Any]) -> None:
    """Shapes, tiling and workspace of every case, the largest too: no data is touched."""
    operation = create_operation(case["operator"], case["param"], soc=case["soc"])
    outputs = operation.infer_shape(descs(case))
    given = descs(case, "out") if case["stage"] == "setup" else outputs
    size = operation.setup(descs(case), given, Context())
    problem = sizes(case)
    sums = 4 * (problem.query_elements + problem.key_elements + problem.value_elements)
    assert size > sums + 26 * 2**20


@pytest.mark.parametrize("case", ACCEPTED, ids=by_id)
def test_plan_of_case_covers_its_blocks(case: dict[str, Any]) -> None:
    """Each block of scores is computed once, by cube and vector cores in the same slots, in every round.

    Counts follow from that in closed form, so the largest cases need no run for them.
    """
    problem = sizes(case)
    pre_tokens, seq = case["param"]["preTokens"], problem.seq
    masked = has_mask(case)
    window = pre_tokens // BLOCK if masked and pre_tokens < seq else 0
    plan = Plan(problem, masked, window, 24)
    rows, columns = seq // BLOCK, problem.kv_seq // BLOCK
    a_head = rows * columns
    if window:
        a_head = sum(min(row, window) + 1 for row in range(rows))
    elif masked:
        a_head = rows * (rows + 1) // 2
    computed, work = 0, 0
    for number in range(plan.rounds):
        part = Tally()
        for core in range(plan.cores):
            part.add(plan, core, number)
            segments = plan.segments(core, number)
            sections = plan.sections(core, number)
            computed += sum(segment.computed for segment in segments)
            slots = {
                segment.slot + j * segment.columns + i
                for segment in segments
                for j in range(segment.rows)
                for i in range(segment.columns)
                if not segment.skips(j, i)
            }
            assert slots == {
                section.slot + k for section in sections for k in range(section.length)
            }
        assert vector_counts(part)["MTE3"] == 4 * part.n
        work += cube_counts(plan, part)["M cycles"]
    assert computed == problem.batch * problem.heads * a_head
    assert work == cube_counts(plan, tally(plan))["M cycles"]


# ---- runs -----------------------------------------------------------------------------------------

LARGEST = 2**26
"""Elements of the score matrix up to which a case is run with its numbers."""

FULL = [case for case in ACCEPTED if sizes(case).score_elements <= LARGEST]


def by_size(case: dict[str, Any]) -> int:
    return sizes(case).score_elements


@pytest.mark.slow
@pytest.mark.parametrize("case", sorted(FULL, key=by_size), ids=by_id)
def test_case_passes_the_librarys_rule(case: dict[str, Any]) -> None:
    """In full, on a true forward pass; with a window on the mask bits that the kernel takes."""
    problem, masked = sizes(case), has_mask(case)
    operation = create_operation(
        case["operator"], case["param"] | {"emulate": {"mask_bits": "bf16"}}, soc=case["soc"]
    )
    ranges = [bounds if bounds != "0,0" else "-2,2" for bounds in case["ranges"][:3]]
    seed = zlib.crc32(case["id"].encode())
    tensors = data.random_tensors(problem, seed, (*ranges, "-0.5,0.5"))
    given = data.causal_mask(problem) if masked else None
    inputs = data.complete(
        dict(zip(data.GIVEN, tensors, strict=True)), problem, operation.param.scale_value,
        operation.param.pre_tokens, given,
    )  # fmt: skip
    outputs = [np.full(desc.shape, np.nan, BFLOAT16) for desc in operation.infer_shape(inputs)]
    context = Context(checks="off")
    operation.setup(inputs, outputs, context)
    run = operation.execute(inputs, outputs, context)
    numerics = run.numerics
    assert numerics is not None
    assert numerics["mismatches"] == 0
    assert not [finding for finding in run.findings if finding.kind not in ("INFO", "PERF")]
