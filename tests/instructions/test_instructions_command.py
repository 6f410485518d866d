"""The command `instructions`: its list, its pages, its JSON, and names that there are not."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from ascend_sim.instructions.catalogue import names
from tests.cli.conftest import Result

Command = Callable[..., Result]


def test_the_list_has_every_instruction(command: Command) -> None:
    result = command("instructions")
    assert result.code == 0
    first = {line.split()[0] for line in result.out.splitlines() if line[:1].isalpha()}
    assert set(names()) <= first
    assert (
        "scatter                         refused  scatter is not available on the 910B"
        in result.out
    )
    assert max(map(len, result.out.splitlines())) <= 100


def test_a_page(command: Command) -> None:
    result = command("instructions", "add", "--chip", "toy")
    assert result.code == 0
    assert result.out.startswith(
        "add: AscendC Add\n\ndst = src0 + src1.\n\nPipe      V\nCall      asc.add(dst,"
    )
    for words in (
        "Types     int16, float16, int32, float32",
        "Price on toy, in cycles",
        "vector_costs.add.any  10 + 1 a repeat  L  round number for tests",
        "ALIGNMENT misaligned-operand: add: dst UB[514:768] (c[1:]) starts at UB byte 514, which is 2",
        "ILLEGAL_PARAM repeat-times-limit: add: repeat_times is 256, allowed is 0 to 255",
        "asc.add(c, a, b, 128)",
        "assert np.array_equal(z, x + y)",
    ):
        assert words in result.out


def test_the_example_of_a_page_runs(command: Command) -> None:
    page = command("instructions", "muls").out
    _, _, text = page.partition("Example\n\n")
    namespace = {"__name__": "example"}
    exec("\n".join(line[4:] for line in text.splitlines()), namespace)
    assert (namespace["z"] == namespace["x"] * 0.5).all()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("word", "first"),
    [
        ("DataCopy", "data_copy: AscendC DataCopy"),
        ("datacopy", "data_copy: AscendC DataCopy"),
        ("asc.muls", "muls: AscendC Muls"),
        ("And", "bitwise_and: AscendC And"),
        (
            "ReduceRepeatSum",
            "whole_reduce_sum: AscendC WholeReduceSum, in newer documents ReduceRepeatSum",
        ),
    ],
)
def test_any_of_its_names_will_do(command: Command, word: str, first: str) -> None:
    assert command("instructions", word).out.splitlines()[0] == first


def test_what_the_910b_lacks_is_refused_with_the_reason(command: Command) -> None:
    result = command("instructions", "prelu")
    assert result.code == 0
    assert "Refused: prelu exists on chips newer than the 910B only: use leaky_relu" in result.out
    missing = command("instructions", "mmad_with_sparse")
    assert "Missing: matrices with structured zeros are not simulated" in missing.out


def test_an_unknown_name_gets_the_nearest(command: Command) -> None:
    result = command("instructions", "ad")
    assert result.code == 1
    assert result.out == ""
    assert "no instruction 'ad'; did you mean 'add'?" in result.err


def test_an_unknown_chip_gets_the_nearest(command: Command) -> None:
    result = command("instructions", "add", "--chip", "toi")
    assert result.code == 1
    assert "did you mean 'toy'?" in result.err


def test_json(command: Command) -> None:
    one = json.loads(command("instructions", "cast", "--json", "--chip", "toy").out)
    assert one["name"] == "cast"
    assert one["pipe"] == "V"
    assert "float32 to float16: CAST_RINT, CAST_FLOOR" in " ".join(one["types"])
    assert {rule["code"] for rule in one["constraints"]} >= {"cast-pair", "round-mode"}
    first = one["price"][0]
    assert (first["key"], first["value"]) == ("vector_costs.cast.any", "10 + 1 a repeat")
    assert (first["source"], first["confidence"]) == ("round number for tests", "L")
    everything = json.loads(command("instructions", "--json").out)
    assert [entry["name"] for entry in everything] == names()
