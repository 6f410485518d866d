"""Every instruction has an example that runs, a price with a source on every chip, and messages."""

from __future__ import annotations

import contextlib
import io
import re
from functools import cache
from pathlib import Path

import pytest

from ascend_sim.config import list_chips, load_chip
from ascend_sim.errors import KINDS
from ascend_sim.instructions.catalogue import EXAMPLES, STATUS, entry, names
from ascend_sim.instructions.constraints import constraints
from ascend_sim.instructions.names import ASCENDC, NEWER
from ascend_sim.instructions.prices import KEYS, prices
from ascend_sim.instructions.table import instruction_rows, language_rows
from ascend_sim.launch import on_run
from ascend_sim.run import Run
from isa.instruction import REGISTRY
from isa.types import Pipe

TESTS = Path(__file__).resolve().parents[1]


def pyasc_names() -> set[str]:
    """The stored list of pyasc's public names."""
    text = (TESTS.parent / "docs" / "pyasc-1.1.1.txt").read_text(encoding="utf-8")
    return {line for line in text.splitlines() if line and not line.startswith("#")}


HERE = [name for name in names() if entry(name).status == "here"]
COMMON = {"tensor-out-of-bounds", "memory-out-of-bounds", "misaligned-operand", "wrong-operand"}
"""What every instruction with operands in on-chip memories refuses."""


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_example_runs_and_nothing_is_found(name: str) -> None:
    runs: list[Run] = []
    on_run.append(runs.append)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(EXAMPLES[name].text, name, "exec"), {"__name__": "example"})
    finally:
        on_run.pop()
    assert len(runs) == 1
    assert [f for f in runs[0].findings if f.kind not in ("PERF", "INFO")] == []


@pytest.mark.parametrize("name", HERE)
def test_what_is_here_has_an_example_that_calls_it(name: str) -> None:
    assert name in EXAMPLES, f"{name} needs an example in ascend_sim/instructions/*_examples.py"
    example = EXAMPLES[name]
    assert example.about in "\n".join(example.body)
    assert f"asc.{name}(" in example.about


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_an_instruction_is_in_the_catalogue(name: str) -> None:
    about = entry(name)
    assert about.status == "here"
    assert about.meaning and about.signature.startswith(f"asc.{name}(")
    assert about.pipe and about.forms and about.types


def test_names_and_statuses() -> None:
    assert set(EXAMPLES) <= set(HERE)
    assert set(NEWER) <= set(HERE)
    known = pyasc_names()
    assert {name for name in ASCENDC if name not in known} == set()
    assert {entry(name).status for name in names()} == set(STATUS)
    assert all(entry(name).reason for name in names() if name not in HERE)
    spellings = [entry(name).ascendc for name in names()]
    assert len(spellings) == len(set(spellings))


# ---- the table of names -------------------------------------------------------------------------


def test_every_name_of_pyasc_and_every_instruction_is_in_the_table() -> None:
    pyasc = pyasc_names()
    instructions, language = list(instruction_rows(pyasc)), list(language_rows(pyasc))
    assert {row.pyasc for row in (*instructions, *language)} - {""} == pyasc
    written = {name for row in instructions for name in row.ascendc.split(", ")}
    assert written >= {entry(name).ascendc for name in names()}
    for row in instructions:
        assert row.here == "no" or (row.pipe != "") == (row.here == "yes"), row
    document = (TESTS.parent / "docs" / "instructions.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in document for name in pyasc)


def test_what_the_table_calls_here_is_here() -> None:
    from ascend_sim import asc

    for row in language_rows(pyasc_names()):
        owner, _, method = row.pyasc.partition(".")
        thing = getattr(asc, owner, None)
        assert (row.here == "no") == (
            thing is None or bool(method and not hasattr(thing, method))
        ), row


# ---- prices -------------------------------------------------------------------------------------


@pytest.mark.parametrize("chip", list_chips())
def test_every_instruction_has_a_price_with_a_source(chip: str) -> None:
    loaded = load_chip(chip)
    for name in (*REGISTRY, *KEYS):
        found = prices(name, loaded)
        assert found, f"{name} has no price"
        for price in found:
            assert price.source, f"{name}: {price.key}"
            assert price.confidence in ("H", "M", "L"), f"{name}: {price.key}"
            assert re.fullmatch(r"-?[\d.e+]+( \+ [\d.]+ a repeat)?", price.value), price


def test_a_vector_instruction_pays_its_own_price_and_the_pipes() -> None:
    keys = {price.key: price.value for price in prices("add", load_chip("toy"))}
    assert keys["vector_costs.add.any"] == "10 + 1 a repeat"
    assert keys["vector.drain"] == "10"
    assert prices("get_block_idx", load_chip("toy")) == []


# ---- constraints --------------------------------------------------------------------------------


@cache
def codes_of(name: str) -> dict[str, str]:
    return {rule.code: rule.message for rule in constraints(name, EXAMPLES[name])}


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_an_instruction_refuses_what_it_does_not_take(name: str) -> None:
    found = codes_of(name)
    assert set(found) >= COMMON, sorted(COMMON - set(found))
    fixed = name in ("get_cmp_mask", "set_cmp_mask")  # of bits, whatever the tensor's type
    assert fixed or found.keys() & {
        "dtype-not-supported",
        "wrong-dtype",
        "dtype-mismatch",
        "cast-pair",
    }
    assert all(message.startswith(name) for message in found.values()), found


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, record in REGISTRY.items()
        if record.pipe is Pipe.V and "repeat_params" in record.forms
    ],
)
def test_a_repeated_instruction_limits_masks_repeats_and_strides(name: str) -> None:
    found = codes_of(name)
    assert any(code.startswith("repeat-time") for code in found), found
    assert any("stride" in code for code in found), found
    if "mask" in REGISTRY[name].forms:
        assert "mask-limit" in found


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_constraints_are_findings_the_documents_know(name: str) -> None:
    documented = (TESTS.parent / "docs" / "checks.md").read_text(encoding="utf-8")
    for rule in constraints(name, EXAMPLES[name]):
        assert rule.kind in KINDS
        # Codes that begin with a parameter's name stand in the documents as `…-limit` and `…-zero`.
        code = re.sub(r"^[a-z0-9-]+-(limit|zero)$", r"…-\1", rule.code)
        assert f"`{code}`" in documented or f"`{rule.code}`" in documented, rule


def test_asking_leaves_the_language_as_it_was() -> None:
    from ascend_sim import asc
    from ascend_sim.launch import defaults

    before, options = asc.add, dict(defaults.options)
    constraints("add", EXAMPLES["add"])
    assert asc.add is before
    assert defaults.options == options
