"""A sample of the mutation corpus; `python tests/mutation/run.py` runs all of it and prints the figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ascend_sim.doctor.source import Edit, Workshop
from tests.mutation.corpus import Case, Mutated
from tests.mutation.run import RANK, equivalent, figures, perform
from tests.mutation.subjects import OPERATORS, subjects

SMALL = ["examples/01_queues_1", "examples/02_flags", "measured/msp_add_1", "measured/add_hp_two"]


def test_a_sample() -> None:
    verdicts, wrong = perform(SMALL, 9, doctor=True)
    lines, good = figures(verdicts, wrong)
    assert good, "\n".join(lines)
    assert len(verdicts) >= 20
    assert {one.how for one in verdicts} <= set(RANK)


def test_kernels_as_they_are() -> None:
    others = ("turbo", "matmul", "attention", "grouped", "turned", "convolution", "scan")
    for subject in subjects([*SMALL, *(f"measured/{name}" for name in others), "ops/rope_grad"]):
        case = Case(subject)
        assert case.base.findings == [], subject.name


@pytest.mark.slow
@pytest.mark.parametrize("group", ["examples", "ops/rope_grad", "measured"])
def test_all_of_it(group: str) -> None:
    verdicts, wrong = perform([group], 1, doctor=True)
    lines, good = figures(verdicts, wrong)
    assert good, "\n".join(lines)
    known = {one.label for one in verdicts}
    files = {label.split(" | ")[0] for label in known}
    gone = {label for label in equivalent() if label.split(" | ")[0] in files} - known
    assert not gone, "arguments for mutants that there are no more"
    unproved = {one.label for one in verdicts if one.how == "same" and not one.why}
    assert set(equivalent()) & known <= unproved, "arguments for what is proved"


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in OPERATORS if "laser" in name])
def test_a_part_of_the_large_operator(name: str) -> None:
    verdicts, wrong = perform([name], 12, doctor=False)
    lines, good = figures(verdicts, wrong)
    assert good, "\n".join(lines)


def test_a_mutation_stays_while_other_files_are_edited(tmp_path: Path) -> None:
    """An edit of another file is judged with the mutation in place, or it would seem to cure it."""
    functions = []
    for name in ("first", "second"):
        path = tmp_path / f"{name}.py"
        path.write_text(f"def {name}():\n    return 1\n", encoding="utf-8")
        namespace: dict[str, Any] = {}
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), namespace)
        functions.append(namespace[name])
    first, second = (str(tmp_path / f"{name}.py") for name in ("first", "second"))
    workshop = Workshop()
    mutated = Mutated(workshop, Edit(first, (2, 4), "replace", "return 2"))
    for edits, expected in (
        ((), [2, 1]),
        ((Edit(second, (2, 4), "replace", "return 3"),), [2, 3]),
        ((Edit(first, (2, 4), "replace", "return 4"),), [4, 1]),
    ):
        with mutated.with_edits(edits):
            assert [function() for function in functions] == expected
        assert [function() for function in functions] == [1, 1]
