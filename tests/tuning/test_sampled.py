"""Large shapes from parts: a straight line is found, a bent one is simulated further, and the error is honest."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_sim as sim
from ascend_sim.cli.operators import sample_operator
from ascend_sim.cli.request import Request
from ascend_sim.sampled import Simulated, estimate
from ops import Context, find_operator
from ops.rope_grad.scale import RopeGradScale


@settings(deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.integers(1, 500), st.integers(100, 100_000))
def test_a_straight_line_is_found(start: int, rate: int, total: int) -> None:
    measured: list[int] = []

    def measure(number: int) -> int:
        measured.append(number)
        return start + rate * number

    found = estimate(total, 40, lambda number: number, measure)
    assert found.cycles == start + rate * total
    left = total - found.parts[-1].number
    assert found.error == (0 if found.exact else round(0.008 * rate * left) + 1)
    assert sum(measured) <= 180 or found.exact


@settings(deadline=None, derandomize=True)
@given(st.integers(500, 5000), st.integers(1, 50), st.integers(60, 200))
def test_the_error_holds_where_the_rate_changes(bend: int, before: int, after: int) -> None:
    """Beyond `bend` a piece takes longer, as when L2 is full: either that is seen, or all parts lie on one side."""

    def measure(number: int) -> int:
        return before * min(number, bend) + after * max(number - bend, 0)

    found = estimate(200_000, bend, lambda number: number, measure)
    assert abs(found.cycles - measure(200_000)) <= max(found.error, 0.02 * measure(200_000))


def test_small_shapes_are_simulated_whole() -> None:
    found = estimate(50, 40, lambda number: number, lambda number: 3 * number)
    assert found.exact
    assert (found.cycles, found.error, found.parts) == (150, 0, (Simulated("pieces", 50, 50, 150),))


def test_nothing() -> None:
    with pytest.raises(sim.ConfigError, match="0 pieces"):
        estimate(0, 1, lambda number: number, lambda number: number)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.integers(1, 4000), min_size=1, max_size=32), st.integers(1, 100))
def test_parts_of_rope_grad(lengths: list[int], percent: int) -> None:
    scale = RopeGradScale({"seq": tuple(lengths)})
    rows = max(1, scale.total * percent // 100)
    part = scale.part(rows)["seq"]
    assert scale.size(rows) == sum(part)
    assert scale.part(scale.total)["seq"] == lengths
    if len(lengths) >= 8:
        assert set(part) <= set(lengths)


@pytest.mark.slow
def test_a_large_rope_grad() -> None:
    options = {"seq": ",".join(["2048"] * 32), "hidden": "1280"}
    timing = Context(chip="ascend910b4", numerics="off", checks="off")
    whole = find_operator("rope_grad").run(options, timing).recording().replay("ascend910b4")
    words = {f"--{name}": value for name, value in options.items()}
    found, chip = sample_operator(Request("rope_grad", chip="ascend910b4", operator_options=words))
    assert (chip.name, found.parts[0].what, found.exact) == ("ascend910b4", "rows", False)
    assert found.cycles == pytest.approx(whole.cycles, rel=0.01)
    assert abs(found.cycles - whole.cycles) <= found.error


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    from ascend_sim.cli.app import app

    words = ["run", "rope_grad", "--sampled", "--seq", "300", "--hidden", "256", "--chip", "toy"]
    with pytest.raises(SystemExit) as stop:
        app(words)
    assert stop.value.code == 0
    assert "all of it simulated" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        app([*words, "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert (printed["sampled"], printed["error_cycles"]) == (False, 0)
    assert printed["simulated"][0]["total"] == 300
    for more, message in (
        (["--numerics", "on"], "tells the time only"),
        (["--input", "x.npz"], "leave out --input"),
    ):
        with pytest.raises(SystemExit) as stop:
            app([*words, *more])
        assert stop.value.code == 1
        assert message in capsys.readouterr().err


ATTENTION = {
    "BAND-128": {"heads": "30", "seq": "1024", "mask": "none"},
    "BAND-192": {"heads": "46", "seq": "1024", "head-dim": "192"},
    "SPARSE": {"heads": "42", "seq": "2048", "pre-tokens": "256"},
    "BAND-192-SBH": {"batch": "2", "heads": "23", "seq": "1024", "layout": "SBH"},
}


@pytest.mark.slow
@pytest.mark.parametrize("path", ATTENTION)
def test_a_large_laser_attention_grad(path: str) -> None:
    """About sixty rounds on two cores, of which 42 are simulated: the time, the instructions and the bytes."""
    words = {f"--{name}": value for name, value in ATTENTION[path].items()}
    found, _ = sample_operator(Request("laser_attention_grad", cores=2, operator_options=words))
    timing = Context(chip="ascend910b1", numerics="off", checks="off", cores=2)
    whole = find_operator("laser_attention_grad").run(ATTENTION[path], timing)
    assert not found.exact
    assert found.cycles == pytest.approx(whole.cycles, rel=0.01)
    summary = whole.summary
    for core in ("aic", "aiv"):
        for pipe, number in summary["instructions"][core].items():
            if number and pipe != "S":
                assert found.counts["instructions", core, pipe] == pytest.approx(number, rel=0.01)
        for pipe, number in summary["bytes"][core].items():
            if number:
                assert found.counts["bytes", core, pipe] == pytest.approx(number, rel=0.01)
