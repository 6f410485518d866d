"""The vendor's names beside our codes: every entry is about a code that exists, and both sides find each other."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from ascend_sim.cli.app import app
from ascend_sim.codes import finding_codes
from ascend_sim.errors import KINDS
from ascend_sim.vendor_codes import NPUCHK, OF_CODE, OF_KIND, REGISTER, RUNTIME, find, vendor_of


def explain(code: str) -> dict[str, object]:
    result = CliRunner().invoke(app, ["explain", "--code", code, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_every_entry_is_about_a_code_that_exists() -> None:
    assert set(OF_CODE) <= {code for _, code in finding_codes()}
    assert set(OF_KIND) <= set(KINDS)
    for vendor in (*OF_CODE.values(), *OF_KIND.values()):
        assert set(vendor.names()) <= {*NPUCHK, *REGISTER, *map(str, RUNTIME)}


def test_every_code_of_npuchk_has_a_finding() -> None:
    told = {name for kind, code in finding_codes() for name in vendor_of(kind, code).names()}
    assert set(NPUCHK) - told == {
        "ErrorBuffer3"
    }  # a tensor's memory is valid here, or its bounds are told


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("507035", "507035"),
        ("errorsync1", "ErrorSync1"),
        ("0x800000", "MTE_BIU_RDWR_RESP"),  # published logs: GM out of range, not UB
        ("0x4000000000000000", "VEC_UB_WRAP_AROUND"),
        ("0x800", "VEC_INSTR_ADDR_MISALIGN"),  # in word 1
        ("bit 140", "CCU_CROSS_CORE_SET_OVFL_ERR"),
        ("0xzz", None),
        ("flag-left-set", None),
    ],
)
def test_a_word_is_found(word: str, name: str | None) -> None:
    assert find(word) == name


def test_both_sides_find_each_other() -> None:
    ours = explain("use-after-free")
    assert ours["vendor"]["npuchk"] == ["ErrorRead1", "ErrorWrite1"]  # type: ignore[index]
    theirs = explain("ErrorWrite1")
    assert {"kind": "QUEUE", "code": "use-after-free"} in theirs["codes"]  # type: ignore[operator]
    bits = explain("gm-out-of-bounds")["vendor"]["register"]  # type: ignore[index]
    assert bits[0] == {"name": "MTE_BIU_RDWR_RESP", "bit": 23, "word": 0, "value": "0x800000"}


def test_what_the_board_does_not_tell_is_said() -> None:
    text = CliRunner().invoke(app, ["explain", "--code", "output-not-written"]).stdout
    assert "On the board it has no code" in text
