"""Every vector instruction has a price on every chip, for every type it takes."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import isa
from ascend_sim.config import list_chips, load_chip
from isa.types import Pipe


def _vector_instructions() -> list[tuple[str, str]]:
    for module in pkgutil.walk_packages(isa.__path__, "isa."):
        importlib.import_module(module.name)
    registry = importlib.import_module("isa.instruction").REGISTRY
    # Without a fixed pipe it depends on the operands, and UB to UB is the vector pipe's.
    return [(i.name, i.cost) for i in registry.values() if i.pipe in (Pipe.V, None)]


@pytest.mark.parametrize("chip", list_chips())
def test_every_vector_instruction_is_priced(chip: str) -> None:
    instructions = _vector_instructions()
    assert len(instructions) > 20
    priced = load_chip(chip).vector_costs
    assert [name for name, cost in instructions if cost not in priced] == []


@pytest.mark.parametrize("chip", list_chips())
def test_an_instruction_is_priced_for_all_types(chip: str) -> None:
    costs = load_chip(chip).vector_costs
    partial = [
        name
        for name, keys in costs.items()
        if "any" not in keys and not {"int", "float"} <= set(keys)
    ]
    assert partial == []
