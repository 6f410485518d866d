"""The operator library's own test table for RopeGradOperation, where it stands beside the checkout."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ops import Context, OperationError, TensorDesc, create_operation
from ops.rope_grad import reference
from ops.rope_grad.inputs import random_inputs

FILE = Path(__file__).resolve().parents[3] / "shared" / "cases" / "RopeGrad.jsonl"
CASES = [json.loads(line) for line in FILE.read_text().splitlines()] if FILE.is_file() else []
REFUSED = [case for case in CASES if case["expected"] != "NO_ERROR"]
RUN = [case for case in CASES if case["stage"] == "run"]


def test_table_is_there() -> None:
    if not CASES:
        pytest.skip(f"no {FILE}: the library's test tables do not belong to this project")
    assert len(REFUSED) + len(RUN) == len(CASES)
    assert len(CASES) >= 300


def descs(case: dict[str, Any]) -> list[TensorDesc]:
    return [
        TensorDesc(dtype, format, tuple(shape))
        for dtype, format, shape in zip(
            case["in_dtypes"], case["in_formats"], case["in_shapes"], strict=True
        )
    ]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["id"])
def test_refused_case(case: dict[str, Any]) -> None:
    with pytest.raises(OperationError) as caught:
        operation = create_operation(case["operator"], case["param"], soc=case["soc"])
        outputs = operation.infer_shape(descs(case))
        operation.setup(descs(case), outputs, Context())
    assert (caught.value.stage, caught.value.status) == (case["stage"], case["expected"])


@pytest.mark.parametrize("case", RUN, ids=lambda case: case["id"])
def test_run_case(case: dict[str, Any]) -> None:
    operation = create_operation(case["operator"], case["param"], soc=case["soc"])
    seed = zlib.crc32(case["id"].encode())
    inputs = random_inputs(descs(case), case["ranges"], seed)
    outputs = [np.full(d.shape, np.nan, np.float16) for d in operation.infer_shape(inputs)]
    context = Context()
    operation.setup(inputs, outputs, context)
    run = operation.execute(inputs, outputs, context)
    expected = reference.library(*inputs, case["param"]["qSeqLen"])
    for output, wanted in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(output.view(np.uint16), wanted.view(np.uint16))
    assert run.summary["numerics"]["bit_exact"] is True
