"""Every public name of pyasc exists here, with the same members and values."""

from __future__ import annotations

import importlib
from enum import IntEnum
from typing import Any

import pytest
import read_pyasc

from ascend_sim import asc
from ascend_sim.lang import enums

STORED = read_pyasc.stored()
MODULES = [name for name in STORED if name.startswith("asc")]


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_exists(module: str) -> None:
    ours = importlib.import_module(f"ascend_sim.{module}")
    assert [name for name in STORED[module] if not hasattr(ours, name)] == []


@pytest.mark.parametrize("line", STORED["enumerations"], ids=lambda line: line.partition(":")[0])
def test_every_enumeration_has_pyascs_members_and_values(line: str) -> None:
    name, _, members = line.partition(": ")
    kind: Any = getattr(asc, name, None) or getattr(enums, name)
    assert issubclass(kind, IntEnum)
    for member in members.split():
        word, _, value = member.partition("=")
        assert kind[word].value == int(value), word


def test_the_stored_names_are_those_of_an_installed_pyasc() -> None:
    folder = read_pyasc.installed()
    if folder is None:
        pytest.skip("no pyasc installed; ASCEND_SIM_PYASC names a Python that has one")
    assert read_pyasc.STORED.read_text(encoding="utf-8") == read_pyasc.text(folder)
    assert read_pyasc.NAMES.read_text(encoding="utf-8") == read_pyasc.names_text(folder)
