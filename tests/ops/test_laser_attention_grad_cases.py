"""The library's own test table for LaserAttentionGradOperation, where it stands beside the checkout."""

from __future__ import annotations

from typing import Any

import pytest

from ops import Context, OperationError, create_operation
from ops.laser_attention_grad.plan import Plan
from ops.laser_attention_grad.sizes import BLOCK
from tests.ops.laser_cases import ACCEPTED, CASES, FILE, REFUSED, descs, has_mask, sizes


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
    """Each block of scores is computed once, by cube and vector cores in the same slots, in every round."""
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
    computed = 0
    for number in range(plan.rounds):
        for core in range(plan.cores):
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
    assert computed == problem.batch * problem.heads * a_head
