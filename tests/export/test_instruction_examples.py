"""pyasc takes every instruction's example, and its C++ tells the pipes what the simulator told them."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from ascend_sim.export.front_end import Exported, translate_all
from ascend_sim.export.recording import specialise
from ascend_sim.instructions.catalogue import EXAMPLES
from ascend_sim.instructions.names import ascendc_name
from ascend_sim.instructions.system_examples import CORES, WORDS
from ascend_sim.launch import launch, on_launch
from tests.export import cpp
from tests.export.traces import told

ADDITIONS = {"create_vec_index", "get_acc_val", "get_reduce_max_min_count"}
"""Names that pyasc does not have."""

PYASC_FAILS = {
    "mrg_sort": "MrgSortSrcList cannot be made",
    "get_mrg_sort_result": "MrgSortSrcList cannot be made",
    "get_gather_mask_remain_count": "what it returns is no number of the language",
    "get_sort_len": "what it returns is no number of the language",
    "get_sort_offset": "what it returns is no number of the language",
}
"""What pyasc 1.1.1 has and cannot translate."""

SEVERAL = {
    "data_cache_clean_and_invalid", "data_cache_preload", "data_sync_barrier", "dump_acc_chk_point", "dump_tensor",
    "get_shape_size",
    "get_store_atomic_config", "get_sys_workspace", "get_tpipe_ptr", "set_sys_workspace", "sort",
    "trans_data_to_5hd",
}  # fmt: skip
"""Calls of C++ that stand for several things here, or for none."""


NOT_SPELT = {"ascend_is_aic", "ascend_is_aiv", "get_tpipe_ptr"}
"""pyasc writes out what the macro stands for, or leaves out a pointer that nothing uses."""


@pytest.fixture(scope="module")
def translated(pyasc: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """By name: the launch of the example, and pyasc's answer to it. One process translates them all."""
    folder = tmp_path_factory.mktemp("examples")
    launches: dict[str, tuple[Any, tuple[Any, ...], int]] = {}
    for name, example in EXAMPLES.items():
        path = folder / f"{name}_example.py"
        path.write_text(example.text, encoding="utf-8")
        launches[name] = _launch_of(path)
    answers = translate_all([specialise(*launched) for launched in launches.values()], pyasc)
    return {name: (*launches[name], answer) for name, answer in zip(launches, answers, strict=True)}


def _launch_of(path: Path) -> tuple[Any, tuple[Any, ...], int]:
    seen: list[tuple[Any, tuple[Any, ...], int]] = []

    def listen(*launched: Any) -> None:
        seen.append(launched)

    on_launch.append(listen)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(str(path), run_name="__main__")
    finally:
        on_launch.remove(listen)
    return seen[0]


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_in_both(translated: dict[str, Any], name: str) -> None:
    kernel, args, blocks, answer = translated[name]
    if name in ADDITIONS | set(PYASC_FAILS):
        assert "pyasc cannot translate" in str(answer)
        return
    assert isinstance(answer, Exported), answer
    assert name in NOT_SPELT or re.search(rf"\b{ascendc_name(name)}\b", answer.text)
    if name in SEVERAL | set(CORES) | set(WORDS):
        return
    run = launch(kernel, *[array.copy() for array in args], cores=blocks)
    named = {
        value["name"]: arg for value, arg in zip(answer.specialisation.values, args, strict=True)
    }
    expected = told(run, run.log.cores[0].name)
    assert cpp.differences(cpp.run(answer.text, named, 0, blocks), expected) == []
    assert expected
