"""Programs in pyasc's style pass through pyasc's own front end; the C++ of most is executed and compared."""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ascend_sim.errors import ExportError
from ascend_sim.export.front_end import translate_all
from ascend_sim.export.recording import specialise
from ascend_sim.launch import launch, on_launch
from ascend_sim.stand_in import standing_in
from tests.export import cpp
from tests.export.traces import told

PROGRAMS = sorted((Path(__file__).resolve().parents[1] / "surface" / "programs").glob("*.py"))

NOT_EXECUTED = {
    "accumulate_kernel": "LocalMemAllocator",
    "add_kernel": "a structure as an argument",
    "blocks_kernel": "lists of tensors",
    "masks_kernel": "counter mode: the repeats are in a register",
    "matmul_all": "a Matmul object, several instructions here",
    "matmul_blocks": "a Matmul object, several instructions here",
    "matmul_bytes": "a Matmul object, several instructions here",
    "matmul_float": "a Matmul object, several instructions here",
    "matmul_leakyrelu": "a Matmul object, several instructions here",
    "norm_tanh_quant": "calls of asc.adv, several instructions here",
    "scale_kernel": "flags that pyasc's compiler inserts",
    "slices_kernel": "slices, copied row by row here",
    "softmax_rows": "calls of asc.adv, several instructions here",
    "sort_kernel": "Sort, several instructions here",
    "stages_kernel": "TBufPool",
    "talking_kernel": "printf",
    "topk_kernel": "MrgSort",
}
"""Kernels whose C++ is only translated, and what the test's model of C++ does not have."""

Launch = tuple[Any, tuple[Any, ...], int]


def launches(path: Path) -> dict[str, Launch]:
    """Run a program and return the first launch of each of its kernels, with arrays as they were."""
    seen: dict[str, Launch] = {}

    def listen(kernel: Any, args: tuple[Any, ...], blocks: int) -> None:
        copies = tuple(arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args)
        seen.setdefault(kernel.function.__name__, (kernel, copies, blocks))

    on_launch.append(listen)
    try:
        with contextlib.redirect_stdout(io.StringIO()), standing_in():
            runpy.run_path(str(path), run_name="__main__")
    finally:
        on_launch.remove(listen)
    return seen


@pytest.fixture(scope="module")
def translated(pyasc: Path) -> dict[str, tuple[Launch, Any]]:
    """By kernel: its launch, and pyasc's answer. One process translates them all."""
    argv, sys.argv = sys.argv, ["program"]
    try:
        found = {
            f"{path.stem}.{name}": one for path in PROGRAMS for name, one in launches(path).items()
        }
    finally:
        sys.argv = argv
    answers = translate_all([specialise(*one) for one in found.values()], pyasc)
    return {name: (found[name], answer) for name, answer in zip(found, answers, strict=True)}


def test_every_kernel_is_translated(translated: dict[str, tuple[Launch, Any]]) -> None:
    refused = {
        name: answer for name, (_, answer) in translated.items() if isinstance(answer, ExportError)
    }
    assert refused == {}
    assert len(translated) >= len(PROGRAMS)
    assert set(NOT_EXECUTED) <= {name.partition(".")[2] for name in translated}


def test_the_cpp_tells_the_pipes_the_same(translated: dict[str, tuple[Launch, Any]]) -> None:
    compared = 0
    for name, ((kernel, args, blocks), answer) in translated.items():
        if name.partition(".")[2] in NOT_EXECUTED:
            continue
        copies = tuple(arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args)
        run = launch(kernel, *copies, cores=blocks)
        named = {v["name"]: arg for v, arg in zip(answer.specialisation.values, args, strict=True)}
        expected = told(run, run.log.cores[0].name)
        assert cpp.differences(cpp.run(answer.text, named, 0, blocks), expected) == [], name
        compared += 1
    assert compared >= 8
