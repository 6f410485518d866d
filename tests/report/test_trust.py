"""What a run's time rests on, and its time at the ends of the figures' ranges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.config import load_chip
from ascend_sim.errors import ConfigError, UnsupportedError
from ascend_sim.interval import ends, rehearse
from ascend_sim.stage import rehearsing
from tests.machine.kit import local, window

SOURCES = (
    "sources: {gm.latency_hbm: {source: test, confidence: M, low: 150, high: 260}, "
    "gm.read_port_aiv: {source: test, confidence: H, low: 32, high: 128}}"
)


def copy(x: asc.GlobalAddress) -> None:
    asc.data_copy(local(0, 1024), window(x), 1024)


def by_value(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
    """Issue what depends on a value that the kernel has computed itself."""
    asc.duplicate(local(0, 64), 2.0, 64)
    asc.set_flag(asc.HardEvent.V_S, 0)
    asc.wait_flag(asc.HardEvent.V_S, 0)
    for _ in range(int(local(0, 64).get_value(0))):
        asc.data_copy(local(4096, 1024), window(x), 1024)


@pytest.fixture
def ranged(tmp_path: Path) -> Path:
    path = tmp_path / "ranged.yaml"
    path.write_text(f"extends: toy\ngm: {{latency_hbm: 200, read_port_aiv: 64}}\n{SOURCES}\n")
    return path


def test_both_ends_of_every_range(ranged: Path) -> None:
    fast, slow = ends(load_chip(ranged))
    assert (fast.gm.latency_hbm, fast.gm.read_port_aiv) == (150, 128)
    assert (slow.gm.latency_hbm, slow.gm.read_port_aiv) == (260, 32)


def test_the_interval_of_a_load(ranged: Path) -> None:
    run = sim.launch(copy, np.zeros(1024, np.float32), chip=ranged)
    assert run.cycles == 10 + 200 + 4096 // 64
    assert run.interval() == {
        "low": 10 + 150 + 4096 // 128, "high": 10 + 260 + 4096 // 32, "ranges": 2, "how": "replayed",
    }  # fmt: skip


def test_a_chip_without_ranges_has_no_width() -> None:
    run = sim.launch(copy, np.zeros(1024, np.float32), chip="toy")
    assert (run.interval()["low"], run.interval()["high"]) == (run.cycles, run.cycles)


def test_a_kernel_that_cannot_be_replayed_is_launched_again(ranged: Path) -> None:
    arrays = np.zeros(1024, np.float32), np.zeros(64, np.float32)
    with pytest.raises(UnsupportedError):
        sim.launch(by_value, *arrays, chip=ranged).interval()
    with rehearsing(rehearse):
        run = sim.launch(by_value, *arrays, chip=ranged)
    found: dict[str, Any] = run.summary["interval"]
    assert found["how"] == "launched again"
    fast, slow = (sim.launch(by_value, *arrays, chip=end).cycles for end in ends(run.chip))
    assert (found["low"], found["high"]) == (fast, slow)
    assert fast < run.cycles < slow


def test_the_share_that_rests_on_low_confidence(tmp_path: Path) -> None:
    """All figures of the toy chip are of low confidence, but here the port's and the issue's are not."""
    path = tmp_path / "mixed.yaml"
    path.write_text(
        "extends: toy\ngm: {read_port_aiv: 64}\nscalar: {move_issue: 10}\n"
        "sources:\n  gm.read_port_aiv: {source: test, confidence: H}\n"
        "  scalar.move_issue: {source: test, confidence: M}\n"
    )
    run = sim.launch(copy, np.zeros(1024, np.float32), chip=path)
    found = run.summary["trust"]
    assert found["cycles"] == {"H": 64, "M": 10, "L": 200}
    assert found["low_share"] == pytest.approx(200 / 274, abs=1e-6)
    assert found["low_keys"] == {"gm.latency_l2_read": 100, "gm.latency_hbm": 100}


@pytest.mark.parametrize(
    ("range_", "message"),
    [
        ("low: 1", "a range has both ends"),
        ("low: 3, high: 2", "low .3. is above high .2."),
        ("low: 1, high: 2", "gm.crowd = 5 is outside its own range, 1 to 2"),
    ],
)
def test_ranges_that_cannot_be(tmp_path: Path, range_: str, message: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(
        f"extends: toy\ngm: {{crowd: 5}}\nsources: {{gm.crowd: {{source: test, confidence: M, {range_}}}}}\n"
    )
    with pytest.raises(ConfigError, match=message):
        load_chip(path)


def test_a_range_is_of_one_number(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(
        "extends: toy\ngm: {crowd: 5}\nsources: {gm: {source: test, confidence: M, low: 1, high: 9}}\n"
    )
    with pytest.raises(ConfigError, match="a range is of one number"):
        load_chip(path)


def test_the_shipped_ranges_hold_their_values() -> None:
    """Of each chip with ranges both ends load, and no end is on the wrong side."""
    for name in ("ascend910b1", "ascend910b3", "ascend910b4"):
        chip = load_chip(name)
        assert len(chip.ranges()) > 20
        for end in ends(chip):
            assert end.vector_costs
    assert not load_chip("toy").ranges()
