"""The tuner: the best of the whole space with few simulations; what it leaves out; what it says and writes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.roofline import lower_bound
from ascend_sim.tuning.space import read_space
from ascend_sim.tuning.sweeps import run_sweep
from ascend_sim.tuning.task import Task, default_point, evaluate
from ascend_sim.tuning.tuner import Tuned, tune_space
from ascend_sim.tuning.why import compare, write_setting

pytest.importorskip("optuna", reason="the extra `tune` is not installed")


def tuned(target: str, *space: str, fixed: dict[str, Any], **options: Any) -> Tuned:
    return tune_space(Task(target, fixed), read_space(space), **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "space", "fixed"),
    [
        ("rope_grad", ["MAX_PROCESS_NUM=256:14336:256", "BUFFER_NUM=1:3"],
         {"seq": "512,37", "hidden": "256"}),
        ("rope_grad", ["MAX_PROCESS_NUM=384:12288:128", "BUFFER_NUM=1,2"],
         {"seq": "300,77,5", "hidden": "384", "chip": "toy"}),
        ("program", ["SIZE=64:4096:64", "BUFFERS=1,2,3"], {"chip": "ascend910b4"}),
    ],
)  # fmt: skip
def test_the_best_of_the_whole_space(
    target: str, name: str, space: list[str], fixed: dict[str, Any]
) -> None:
    goal = target if name == "program" else name
    whole = run_sweep(Task(goal, fixed), read_space(space), out="whole")
    best = whole.best()
    assert best is not None
    assert len(whole.rows) >= 150
    found = tuned(goal, *space, fixed=fixed, out="tuned")
    assert found.best is not None
    assert found.best["cycles"] == best["cycles"]
    assert found.simulations <= 0.3 * len(whole.rows)
    print(name, len(whole.rows), found.simulations, found.best["cycles"])


def test_what_need_not_be_simulated_is_not() -> None:
    task = Task("rope_grad", {"seq": "300", "hidden": "256"})
    fast = evaluate(task, {"MAX_PROCESS_NUM": 6144, "BUFFER_NUM": 2})
    front = [{"time_us": fast["time_us"]}]
    slow = evaluate(task, {"MAX_PROCESS_NUM": 256, "BUFFER_NUM": 2}, front=front)
    assert (slow["status"], slow["simulated"]) == ("pruned", 0)
    live = evaluate(task, {"MAX_PROCESS_NUM": 256, "BUFFER_NUM": 2})
    assert slow["bound_cycles"] <= live["cycles"]
    large = evaluate(task, {"MAX_PROCESS_NUM": 20480}, front=front)
    assert (large["status"], large["simulated"]) == ("does not fit", 0)
    again = evaluate(task, {"MAX_PROCESS_NUM": 6144, "BUFFER_NUM": 2}, front=front)
    assert {k: v for k, v in again.items() if k != "seconds"} == {
        k: v for k, v in fast.items() if k != "seconds"
    }


@pytest.mark.parametrize("chip", ["toy", "ascend910b1", "ascend910b4"])
@pytest.mark.parametrize("l2", ["cold", "warm"])
@pytest.mark.parametrize(("blocks", "cores"), [(4, 4), (5, 2)])
def test_no_run_is_below_its_bound(chip: str, l2: str, blocks: int, cores: int) -> None:
    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress, trips: int, deep: int) -> None:
        source, target = asc.GlobalTensor(), asc.GlobalTensor()
        source.set_global_buffer(x + asc.get_block_idx() * trips * 512)
        target.set_global_buffer(z + asc.get_block_idx() * trips * 512)
        tensor = asc.LocalTensor(asc.float32, asc.TPosition.VECCALC, 0, 512)
        for trip in range(trips):
            asc.data_copy(tensor, source[trip * 512 :], 512)
            for _ in range(deep):
                asc.muls(tensor, tensor, 2.0, count=512)
            asc.data_copy(target[trip * 512 :], tensor, 512)

    for trips, deep in ((1, 1), (16, 0), (16, 40)):
        x = np.zeros(blocks * trips * 512, np.float32)
        recording = sim.record(kernel, x, x.copy(), trips, deep, cores=blocks)
        loaded = sim.load_chip(chip)
        bound, limit = lower_bound(recording, loaded, l2=l2, physical_cores=cores)
        run = recording.replay(chip, l2=l2, physical_cores=cores)
        assert 0 < bound <= run.cycles
        if deep == 40:
            assert limit == "aiv.V"


def test_a_search_is_resumed_and_repeated(target: str) -> None:
    space = ["SIZE=128:4096:128", "BUFFERS=1,2"]
    fixed = {"chip": "toy"}
    first = tuned(target, *space, fixed=fixed, budget=6, out="one", workers=1)
    assert first.simulations == 6
    more = tuned(target, *space, fixed=fixed, budget=12, out="one", workers=1)
    assert more.simulations == 12
    assert first.best is not None
    assert more.best is not None
    assert more.best["time_us"] <= first.best["time_us"]
    other = tuned(target, *space, fixed=fixed, budget=6, out="two", workers=1)
    assert [{k: v for k, v in row.items() if k != "seconds"} for row in other.result.rows] == [
        {k: v for k, v in row.items() if k != "seconds"} for row in first.result.rows
    ]


def test_several_objectives(target: str) -> None:
    found = tuned(
        target, "SIZE=256,1024,4096", "BUFFERS=1,2", fixed={"chip": "toy"}, budget=6,
        objectives=("ub", "time"), workers=1,
    )  # fmt: skip
    assert found.best is not None
    assert found.best["ub_bytes"] == 2048
    front = found.pareto()
    assert [row["time_us"] for row in front] == sorted(row["time_us"] for row in front)
    assert [row["ub_bytes"] for row in front] == sorted(
        (row["ub_bytes"] for row in front), reverse=True
    )


def test_why_the_winner_wins_and_its_setting(target: str) -> None:
    found = tuned(
        target, "SIZE=256,1024", "BUFFERS=1,2", fixed={"chip": "toy"}, budget=4, workers=1
    )
    told = compare(found)
    assert [comparison.title for comparison in told][1] == "the default"
    assert found.best is not None
    for comparison in told:
        change = comparison.difference.cycles[1] - comparison.difference.cycles[0]
        assert change < 0
        assert f"{found.best['cycles']:,} cycles instead of" in comparison.text
        parts = comparison.text.partition("most to do: ")[2].split(", ")
        total = sum(float(part.rpartition(" ")[2].replace(",", "")) for part in parts[:1])
        assert total <= 0
    write_setting(found, Path("best.yaml"))
    written = yaml.safe_load(Path("best.yaml").read_text())
    assert written["set"] == {"SIZE": found.best["SIZE"], "BUFFERS": found.best["BUFFERS"]}
    assert written["run"] == {"chip": "toy"}
    assert written["found"]["cycles"] == found.best["cycles"]


def test_the_default_of_a_space() -> None:
    task = Task("rope_grad")
    space = read_space(["MAX_PROCESS_NUM=1024:8192:1024", "BUFFER_NUM=1,2", "chip=toy,ascend910b1"])
    assert default_point(task, space) == {
        "MAX_PROCESS_NUM": 8192, "BUFFER_NUM": 1, "chip": "ascend910b1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budget": 0}, "a budget of 0 simulations"),
        ({"objectives": ("speed",)}, "no objective 'speed'"),
        ({"objectives": ("time", "time")}, "each objective once"),
    ],
)
def test_bad_options(target: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(sim.ConfigError, match=words):
        tuned(target, "SIZE=256,512", fixed={"chip": "toy"}, **options)
    assert not Path("sweeps").exists()


def test_the_command(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    from ascend_sim.cli.app import app

    words = ["tune", target, "--space", "SIZE=256,1024,32768", "--space", "BUFFERS=1,2", "--chip"]
    with pytest.raises(SystemExit) as stop:
        app([*words, "toy", "--out", "out", "--workers", "1"])
    shown = capsys.readouterr()
    assert stop.value.code == 0
    assert "best: SIZE=1024 BUFFERS=2" in shown.out
    assert "against the default" in shown.out
    assert re.search(r"[1-4] simulations for 6 points", shown.out)
    assert "noise" not in shown.out
    with pytest.raises(SystemExit):
        app(["run", target, "--config", "out/best.yaml", "--json"])
    summary = json.loads(capsys.readouterr().out)
    found = yaml.safe_load(Path("out/best.yaml").read_text())["found"]
    assert (summary["chip"], summary["cycles"]) == ("toy", found["cycles"])
    for words_, message in (
        (["rope_grad", "--config", "out/best.yaml"], "is a setting of kernels.py"),
        ([target, "--config", target], "is no setting of a tuner"),
        ([target, "--config", "nothing.yaml"], "No such file"),
    ):
        with pytest.raises(SystemExit) as stop:
            app(["run", *words_])
        assert stop.value.code == 1
        assert message in capsys.readouterr().err
