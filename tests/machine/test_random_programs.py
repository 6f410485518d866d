"""Random legal programs: the machine and eager execution agree, and every necessary synchronisation is missed."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim.run import Run
from tests.machine.kit import everything
from tests.machine.programs import (
    FIRST_LINE,
    Element,
    Generator,
    Program,
    Step,
    Sync,
    arrays,
    compiled,
    eagerly,
    unordered,
)

CHIPS = ("toy", "ascend910b1")


def timed(elements: list[Element], seed: int, chip: str, **options: Any) -> tuple[Run, list[bytes]]:
    kernel, seen = compiled(elements, f"program {seed}")
    data = arrays(seed)
    run = sim.launch(kernel, *data, chip=chip, outputs=["x", "z", "dump"], **options)
    return run, [*(array.tobytes() for array in data), np.array(seen).tobytes()]


def pairs(run: Run) -> set[tuple[int, int]]:
    """The races as pairs of elements; nothing else may have been found."""
    assert {finding.kind for finding in run.findings} <= {"RACE"}
    return {
        (finding.related[0]["line"] - FIRST_LINE, finding.line - FIRST_LINE)
        for finding in run.findings
    }


def check_legal(program: Program) -> None:
    elements = program.elements
    assert unordered(elements) == []
    expected = eagerly(elements, program.seed)
    for chip in CHIPS:
        run, data = timed(elements, program.seed, chip)
        assert run.findings == []
        assert data == expected
        assert 0 < run.summary["bound"]["lower_bound_cycles"] <= run.cycles
        counted = sum(pipes["instructions"] for pipes in run.pipes["core0.aiv0"].values())
        assert counted == len(program.steps) + 1


def check_without(program: Program, key: int) -> bool:
    """Leave one flag pair or barrier out; return whether it was needed."""
    elements = program.without(key)
    missing = unordered(elements)
    expected = eagerly(elements, program.seed)
    verdicts = []
    for chip in CHIPS:
        run, data = timed(elements, program.seed, chip)
        found = pairs(run)
        verdicts.append(found)
        assert found <= set(missing), "a race that there is not"
        if missing:
            second = min(index for _, index in missing)
            first = max(old for old, index in missing if index == second)
            assert (first, second) in found
        struck = [finding.struck for finding in run.findings]
        assert all(value in (True, False) for value in struck)
        if data != expected:
            assert True in struck, "the numbers changed and no race is said to have struck"
        check_kinds(run, elements)
    assert verdicts[0] == verdicts[1], "the verdict depends on the chip's speed"
    return bool(missing)


def check_kinds(run: Run, elements: list[Element]) -> None:
    for finding in run.findings:
        first, second = (
            elements[line - FIRST_LINE] for line in (finding.related[0]["line"], finding.line)
        )
        assert isinstance(first, Step)
        assert isinstance(second, Step)
        assert (finding.pipe, finding.related[0]["pipe"]) == (second.pipe, first.pipe)
        shared = {
            "race-raw": first.writes & second.reads,
            "race-war": first.reads & second.writes,
            "race-waw": first.writes & second.writes,
        }[finding.code]
        assert shared
        low, high = finding.bytes or (0, 0)
        assert any(low <= 4 * element < high for _, element in shared)


@pytest.mark.parametrize("seed", range(60))
def test_legal_programs(seed: int) -> None:
    check_legal(Generator(seed).make(30))


@pytest.mark.parametrize("seed", range(1000, 1030))
def test_legal_programs_with_scalar_accesses(seed: int) -> None:
    check_legal(Generator(seed, scalars=True).make(30))


@pytest.mark.parametrize("seed", range(2000, 2040))
def test_a_synchronisation_left_out(seed: int) -> None:
    program = Generator(seed).make(25)
    keys = random.Random(seed).sample(program.keys, min(6, len(program.keys)))
    needed = [check_without(program, key) for key in keys]
    assert any(needed)


@pytest.mark.parametrize("seed", range(3000, 3015))
def test_a_synchronisation_left_out_with_scalar_accesses(seed: int) -> None:
    program = Generator(seed, scalars=True).make(25)
    keys = random.Random(seed).sample(program.keys, min(8, len(program.keys)))
    needed = [check_without(program, key) for key in keys]
    assert any(needed)


@pytest.mark.parametrize("seed", range(5000, 5020))
def test_neither_ties_nor_options_change_a_program(seed: int) -> None:
    """With half of its synchronisation gone, so that order matters."""
    program = Generator(seed).make(30)
    gone = set(random.Random(seed).sample(program.keys, len(program.keys) // 2))
    elements = [e for e in program.elements if not (isinstance(e, Sync) and e.key in gone)]
    run, data = timed(elements, seed, "toy")
    for shuffle in range(3):
        again, same = timed(elements, seed, "toy", shuffle=shuffle)
        assert everything(again) == everything(run)
        assert same == data
    for options in ({"checks": "off"}, {"numerics": "off"}):
        other, _ = timed(elements, seed, "toy", **options)
        assert everything(other)[:2] == everything(run)[:2]
    assert pairs(run) <= set(unordered(elements))
    if run.findings:
        with pytest.raises(sim.RaceError):
            timed(elements, seed, "toy", checks="error")


def test_a_long_program() -> None:
    """Long enough for the checker to set aside what everybody knows."""
    program = Generator(4000, scalars=True).make(250)
    check_legal(program)
    keys = random.Random(0).sample(program.keys, 12)
    needed = [check_without(program, key) for key in keys]
    assert any(needed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_many_programs(seed: int) -> None:
    for number in range(seed * 40, seed * 40 + 40):
        program = Generator(10_000 + number, scalars=number % 3 == 0).make(15 + number % 40)
        check_legal(program)
        for key in random.Random(number).sample(program.keys, min(5, len(program.keys))):
            check_without(program, key)
