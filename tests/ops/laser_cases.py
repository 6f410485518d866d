"""The library's own test table of LaserAttentionGradOperation, and what tests do with its cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ops import TensorDesc
from ops.laser_attention_grad.sizes import Sizes, sizes_of

FILE = Path(__file__).resolve().parents[3] / "shared" / "cases" / "LaserAttentionGrad.jsonl"
CASES = [json.loads(line) for line in FILE.read_text().splitlines()] if FILE.is_file() else []
REFUSED = [case for case in CASES if case["expected"] != "NO_ERROR"]
ACCEPTED = [case for case in CASES if case["expected"] == "NO_ERROR"]


def descs(case: dict[str, Any], side: str = "in") -> list[TensorDesc]:
    """Return the descs of a case's inputs, or of the outputs of one that gives them (`out`)."""
    return [
        TensorDesc(dtype, format, tuple(shape))
        for dtype, format, shape in zip(
            case[f"{side}_dtypes"], case[f"{side}_formats"], case[f"{side}_shapes"], strict=True
        )
    ]


def sizes(case: dict[str, Any]) -> Sizes:
    """Return the sizes of an accepted case."""
    return sizes_of(
        case["in_shapes"][0], case["in_shapes"][1], case["param"].get("inputLayout", "BNSD")
    )


def has_mask(case: dict[str, Any]) -> bool:
    """Whether the case gives an attention mask."""
    return bool(np.prod(case["in_shapes"][7]))
