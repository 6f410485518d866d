"""Which property test compares each instruction with loops over elements; the test is there and draws its cases."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from isa.instruction import REGISTRY

TESTS = Path(__file__).resolve().parents[1]

ORACLES: dict[str, set[str]] = {
    "isa/test_forms.py::test_does_what_the_loops_do": {
        "add", "sub", "mul", "div", "max", "min", "bitwise_and", "bitwise_or", "bitwise_not", "add_relu", "sub_relu",
        "mul_add_dst", "fused_mul_add", "fused_mul_add_relu", "adds", "muls", "maxs", "mins", "leaky_relu", "axpy",
        "shift_left", "shift_right", "exp", "ln", "abs", "sqrt", "rsqrt", "reciprocal", "relu", "duplicate", "copy",
    },
    "isa/test_cast_repeats.py::test_repeats": {"cast"},
    "isa/test_moves.py::test_bursts_with_gaps": {"data_copy"},
    "isa/test_moves.py::test_padding_on_the_way_in": {"data_copy_pad"},
    "isa_vector/test_convert.py::test_repeats": {"mul_cast", "add_relu_cast", "sub_relu_cast", "add_deq_relu"},
    "isa_vector/test_convert.py::test_cast_deq_bytes": {"cast_deq"},
    "isa_vector/test_compare.py::test_repeats": {"compare", "compare_scalar"},
    "isa_vector/test_compare.py::test_cmp_mask": {"get_cmp_mask", "set_cmp_mask"},
    "isa_vector/test_compare.py::test_select_repeats": {"select"},
    "isa_vector/test_gather.py::test_index_repeats": {"create_vec_index"},
    "isa_vector/test_gather.py::test_brcb": {"brcb"},
    "isa_vector/test_gather.py::test_gather_repeats": {"gather"},
    "isa_vector/test_gather.py::test_gatherb": {"gatherb"},
    "isa_vector/test_gather.py::test_gather_mask": {"gather_mask"},
    "isa_vector/test_permute.py::test_images_of_any_size": {"transpose"},
    "isa_vector/test_permute.py::test_5hd": {"trans_data_to_5hd"},
    "isa_vector/test_reduce.py::test_whole_sum": {"whole_reduce_sum", "repeat_reduce_sum"},
    "isa_vector/test_reduce.py::test_whole_extremes": {"whole_reduce_max", "whole_reduce_min"},
    "isa_vector/test_reduce.py::test_blocks_and_pairs": {
        "block_reduce_sum", "block_reduce_max", "block_reduce_min", "pair_reduce_sum",
    },
    "isa_vector/test_reduce.py::test_sum_of_repeats": {"reduce_sum"},
    "isa_vector/test_reduce.py::test_extreme_of_repeats": {"reduce_max", "reduce_min"},
    "isa_vector/test_sort.py::test_sort32": {"sort32"},
    "isa_vector/test_sort.py::test_merge": {"mrg_sort"},
    "isa_cube/test_load.py::test_load_data_moves_fractals": {"load_data"},
    "isa_cube/test_load.py::test_load_data_with_transpose_turns_square_blocks": {"load_data_with_transpose"},
    "isa_cube/test_load.py::test_init_const_value_fills_blocks": {"init_const_value"},
    "isa_cube/test_mmad.py::test_mmad_adds_products": {"mmad"},
    "isa_cube/test_fixpipe.py::test_rows": {"fixpipe"},
}  # fmt: skip
"""The test, and the instructions whose cases it draws: types, masks, strides, repeats, sizes."""


@cache
def functions(path: str) -> dict[str, ast.FunctionDef]:
    tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def draws_cases(function: ast.FunctionDef) -> bool:
    """Whether the function, or one inside it, is decorated with hypothesis' `given`."""
    decorators = [
        decorator.func
        for node in ast.walk(function)
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call)
    ]
    return any(isinstance(name, ast.Name) and name.id == "given" for name in decorators)


@pytest.mark.parametrize("test", sorted(ORACLES))
def test_the_oracle_is_a_property_test_of_these_instructions(test: str) -> None:
    path, _, name = test.partition("::")
    function = functions(path)[name]
    assert draws_cases(function)
    text = (TESTS / path).read_text(encoding="utf-8")
    if path == "isa/test_forms.py":
        text = (TESTS / "isa" / "meanings.py").read_text(encoding="utf-8")
    for one in ORACLES[test]:  # some are put together, as f"block_reduce_{kind}"
        assert one in text or f"{one.rpartition('_')[0]}_" in text


def test_every_instruction_has_one() -> None:
    covered = [name for names in ORACLES.values() for name in names]
    assert sorted(covered) == sorted(REGISTRY)
