"""What the operator says about a run: coverage, numbers, known faults. The run itself is a stand-in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ascend_sim.errors import Finding, exit_code
from ops import Context
from ops.rope_grad import reference
from ops.rope_grad.inputs import Shape, default_inputs
from ops.rope_grad.review import review


class StandIn:
    """The part of a run that the review uses."""

    def __init__(self, coverage: dict[str, list[tuple[int, int]]] | None = None) -> None:
        self.coverage = {"q_grad": [], "k_grad": []} if coverage is None else coverage
        self.findings: list[Finding] = []
        self.numerics: dict[str, Any] | None = None

    def add_finding(self, finding: Finding) -> None:
        self.findings.append(finding)

    def set_numerics(self, numerics: dict[str, Any]) -> None:
        self.numerics = numerics

    def coded(self, code: str) -> list[Finding]:
        return [finding for finding in self.findings if finding.code == code]


def reviewed(
    seq_lens: list[int],
    hidden: int,
    rows: int | None = None,
    coverage: dict[str, list[tuple[int, int]]] | None = None,
    change: Any = None,
    **context: Any,
) -> StandIn:
    shape = Shape(tuple(seq_lens), hidden, max(seq_lens), rows or sum(seq_lens))
    inputs = default_inputs(shape, 7)
    outputs = list(reference.library(*inputs, seq_lens))
    if change is not None:
        change(outputs)
    run = StandIn(coverage)
    review(run, inputs, outputs, seq_lens, Context(**context).machine_for(""))  # type: ignore[arg-type]
    return run


def test_good_run() -> None:
    run = reviewed([5, 3], 256)
    assert run.numerics is not None
    adjoint = run.numerics.pop("adjoint")
    assert run.numerics == {
        "reference": "library",
        "max_abs_error": 0.0,
        "max_rel_error": 0.0,
        "mismatches": 0,
        "bit_exact": True,
        "compared": 2 * 8 * 256,
        "not_written": 0,
    }
    assert adjoint["max_abs_error"] > 0.5
    assert 0 < adjoint["mismatches"] < 2 * 8 * 256
    assert exit_code(run.findings) == 0
    (finding,) = run.coded("not-the-adjoint")
    assert f"{adjoint['mismatches']:,} of 4,096 elements" in finding.message


def test_distance_to_the_adjoint() -> None:
    run = reviewed([6], 128)
    shape = Shape((6,), 128, 6, 6)
    inputs = default_inputs(shape, 7)
    pairs = list(zip(reference.library(*inputs, [6]), reference.adjoint(*inputs, [6]), strict=True))
    errors = [np.abs(result.astype(float) - wanted) for result, wanted in pairs]
    outside = sum(
        int(np.count_nonzero(error > 1e-3 + 1e-3 * np.abs(wanted)))
        for error, (_, wanted) in zip(errors, pairs, strict=True)
    )
    assert run.numerics is not None
    assert run.numerics["adjoint"]["max_abs_error"] == max(error.max() for error in errors)
    assert run.numerics["adjoint"]["mismatches"] == outside


def test_wrong_element_is_found() -> None:
    def change(outputs: list[np.ndarray]) -> None:
        outputs[1][4, 200] = np.nextafter(outputs[1][4, 200], np.float16(np.inf))

    run = reviewed([5, 3], 256, change=change)
    assert run.numerics is not None
    assert (run.numerics["mismatches"], run.numerics["bit_exact"]) == (1, False)
    (finding,) = run.coded("differs-from-library")
    assert finding.kind == "NUMERIC"
    assert "k_grad[4, 200]" in finding.message
    assert exit_code(run.findings) == 2


def test_heads_beyond_the_cores() -> None:
    hidden, rows = 64 * 128, 3
    row_bytes, first = hidden * 2, 40 * 256
    lacking = [(row * row_bytes + first, (row + 1) * row_bytes) for row in range(rows)]

    def change(outputs: list[np.ndarray]) -> None:
        for output in outputs:
            output[:, 5120:] = np.nan

    coverage = {"q_grad": lacking, "k_grad": lacking}
    run = reviewed([3], hidden, coverage=coverage, change=change, chip="ascend910b3")
    found = run.coded("heads-not-computed")
    assert [finding.tensor for finding in found] == ["q_grad", "k_grad"]
    for finding in found:
        assert finding.kind == "COVERAGE"
        assert "columns 5120-8191 (heads 40-63) of rows 0-2 " in finding.message
        assert "40 vector cores" in finding.message
        assert finding.bytes == (first, rows * row_bytes)
    assert run.numerics is not None
    assert run.numerics["bit_exact"] is True
    assert run.numerics["not_written"] == 2 * rows * 3072
    assert run.numerics["compared"] == 2 * rows * 5120
    assert exit_code(run.findings) == 2


def test_rows_beyond_the_samples() -> None:
    run = reviewed(
        [2, 1],
        128,
        rows=5,
        coverage={"q_grad": [(3 * 256, 5 * 256)], "k_grad": [(3 * 256, 5 * 256)]},
    )
    found = run.coded("rows-not-computed")
    assert [finding.tensor for finding in found] == ["q_grad", "k_grad"]
    assert "rows 3-4 were never written" in found[0].message
    assert "qSeqLen adds up to 3 and the gradients have 5 rows" in found[0].message
    assert run.numerics is not None
    assert (run.numerics["not_written"], run.numerics["compared"]) == (2 * 2 * 128, 2 * 3 * 128)


def test_without_numerics_nothing_is_compared() -> None:
    run = reviewed([2], 256, numerics="off", change=lambda outputs: outputs[0].fill(0))
    assert run.numerics is None
    assert {finding.kind for finding in run.findings} == {"INFO", "PERF"}


@pytest.mark.parametrize(("hidden", "blocks"), [(128, 1), (256, 2), (6400, 48)])
def test_work_is_built_by_every_head(hidden: int, blocks: int) -> None:
    found = reviewed([4], hidden).coded("work-by-every-head")
    assert len(found) == (blocks > 1)
    if found:
        table_bytes = 2 * 4 * 128 * 2
        assert (
            f"each of the {blocks} heads loads cos and sin ({table_bytes} bytes)"
            in found[0].message
        )
        assert f"{(blocks - 1) * table_bytes} bytes of GM reads more" in found[0].message


def test_literal_repeat_stride_is_known() -> None:
    (finding,) = reviewed([1], 128).coded("muls-repeat-stride")
    assert (finding.kind, finding.struck) == ("INFO", False)


def test_unexplained_gap() -> None:
    run = reviewed([3], 256, coverage={"q_grad": [], "k_grad": [(512, 640)]})
    (finding,) = [finding for finding in run.findings if finding.kind == "COVERAGE"]
    assert (finding.code, finding.message) == (
        "output-not-written",
        "k_grad: columns 0-63 of rows 1 were never written",
    )


def test_output_that_was_never_touched() -> None:
    run = reviewed([3], 256, coverage={"q_grad": []}, change=lambda outputs: outputs[1].fill(0))
    (finding,) = [finding for finding in run.findings if finding.kind == "COVERAGE"]
    assert "k_grad: columns 0-255 of rows 0-2" in finding.message
    assert run.numerics is not None
    assert (run.numerics["bit_exact"], run.numerics["not_written"]) == (True, 3 * 256)


def test_outputs_are_rows_of_the_hidden_size() -> None:
    """Nothing checks the outputs' shapes; the kernel writes them as if they were the gradients'."""

    def reshape(outputs: list[np.ndarray]) -> None:
        outputs[:] = [output.reshape(-1, 64) for output in outputs]

    run = reviewed([3], 256, change=reshape)
    assert run.numerics is not None
    assert run.numerics["bit_exact"] is True
