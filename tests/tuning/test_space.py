"""Ranges as people write them."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_sim.errors import ConfigError
from ascend_sim.tuning.space import check_names, read_space, read_values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,2", [1, 2]),
        ("256:1024:256", [256, 512, 768, 1024]),
        ("256:1000:256", [256, 512, 768]),
        ("3:1:-1", [3, 2, 1]),
        ("1:4", [1, 2, 3, 4]),
        ("2^3..2^6", [8, 16, 32, 64]),
        ("10^0..10^2", [1, 10, 100]),
        ("7,2^3..2^4,20:40:10", [7, 8, 16, 20, 30, 40]),
        ("0x10", [16]),
        ("0.5,1.5", [0.5, 1.5]),
        ("ascend910b1,toy", ["ascend910b1", "toy"]),
        ("2048,1024;37", ["2048,1024", 37]),
        ("2048,1024;", ["2048,1024"]),
    ],
)
def test_values(text: str, values: list[object]) -> None:
    read = [value for part in [text] for value in read_values("N", part)]
    if ";" in text:
        assert [str(value) for value in read] == [str(value) for value in values]
    else:
        assert read == values


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ([], "no parameter to vary"),
        (["N"], "expected NAME=range"),
        (["N="], "expected NAME=range"),
        (["=3"], "expected NAME=range"),
        (["N=1,,2"], "a value is missing"),
        (["N=4:1:1"], "holds nothing: from 4 a step of 1 does not lead to 1"),
        (["N=1:4:0"], "a step of 0"),
        (["N=2^5..2^3"], "the first power is above the last"),
        (["N=2^5..3^6"], "two bases"),
        (["N=2^5..6"], r"powers are written 2\^8"),
        (["N=1:x:2"], r"cannot read '1:x:2'; a range is written first:last or first:last:step"),
        (["N=2^1..2^99"], "beyond 2"),
        (["N=1", "N=2"], "N is given twice"),
        (["N=1:1001", "M=1:1000"], "1,001,000 points are more than"),
        ({"N": []}, "N has no values"),
    ],
)
def test_spaces_that_are_none(given_: object, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_space(given_)  # type: ignore[arg-type]


def test_a_mapping_takes_values_too() -> None:
    space = read_space(
        {"N": (4, 8, 4), "seq": [(2048, 1024), 37], "chip": "toy,ascend910b1", "B": 2}
    )
    assert dict(space.axes) == {
        "N": (4, 8), "seq": ("2048,1024", 37), "chip": ("toy", "ascend910b1"), "B": (2,),
    }  # fmt: skip
    assert space.varying == ["N", "seq", "chip"]


def test_unknown_names() -> None:
    with pytest.raises(ConfigError, match="did you mean 'BUFFER_NUM'"):
        check_names(read_space(["BUFER_NUM=1"]), ["BUFFER_NUM", "chip"], "rope_grad")


@settings(deadline=None, derandomize=True)
@given(st.lists(st.lists(st.integers(-50, 50), min_size=1, max_size=4), min_size=1, max_size=4))
def test_points_are_the_product(lists: list[list[int]]) -> None:
    space = read_space({f"N{i}": values for i, values in enumerate(lists)})
    distinct = [list(dict.fromkeys(values)) for values in lists]
    assert [tuple(point.values()) for point in space.points()] == list(product(*distinct))
    assert len(space) == len(list(space.points()))


@settings(deadline=None, derandomize=True)
@given(st.integers(-100, 100), st.integers(0, 40), st.integers(1, 9))
def test_counting_includes_both_ends(low: int, steps: int, stride: int) -> None:
    high = low + steps * stride
    assert read_values("N", f"{low}:{high}:{stride}") == [
        low + i * stride for i in range(steps + 1)
    ]
