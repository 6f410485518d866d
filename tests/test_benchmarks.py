"""The benchmarks run on small sizes and print what they should. How fast anything is, no test asserts."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ops import Context, find_operator

ROOT = Path(__file__).resolve().parent.parent


def load(name: str) -> ModuleType:
    path = ROOT / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Where dataclasses look for the module that their annotations are written in.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def output_of(name: str, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    load(name).main(["--tiny", *words])
    return capsys.readouterr().out


@pytest.fixture
def subprocesses_find_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def test_engine_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    lines = output_of("engine", capsys, "--rounds", "1").splitlines()
    assert lines[0].startswith("one raw SimPy event: ")
    assert lines[1].split()[:2] == ["workload", "mode"]
    modes = ["timing only", "all checks", "checks, numbers", "replay"]
    found = [re.match(r"(rope_grad tiny|examples/01) +(.+?)  +[\d,]+ ", line) for line in lines[2:]]
    assert [match[2] for match in found if match] == modes * 2


def test_traffic_prints_the_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    assert re.search(
        r"ideal memory, ratio \d+\.\d\d \(target: at most 2\)", output_of("traffic", capsys)
    )
    result = json.loads(output_of("traffic", capsys, "--json"))
    assert result["ratio"] == pytest.approx(result["us"] / result["ideal_us"])


def test_engine_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    result = json.loads(output_of("engine", capsys, "--rounds", "1", "--only", "rope", "--json"))
    rows: dict[str, dict[str, Any]] = {row["mode"]: row for row in result["rows"]}
    assert (
        list(result["checks_ratio"]) == ["rope_grad tiny"]
        and result["checks_ratio"]["rope_grad tiny"] > 0
    )
    assert {mode: row["target"] for mode, row in rows.items()} == {
        "timing only": 5, "all checks": 10, "checks, numbers": None, "replay": 2.5,
    }  # fmt: skip
    # Two blocks, 200 rows: three tiles of 4 loads, 5 vector instructions and 2 stores in each; the scalar unit's:
    # the TPipe, five fields and a length; the TPipe's end counts with the barriers.
    for row in rows.values():
        assert row["workload"] == "rope_grad tiny"
        assert row["instructions"] == 2 * (3 * 11 + 7)
        assert row["items"] > row["instructions"]
        assert row["us_per_item"] > 0 and row["events_per_item"] > 0


def test_engine_refuses_an_unknown_workload(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        output_of("engine", capsys, "--only", "matmul")
    assert "no workload's name contains 'matmul'" in capsys.readouterr().err


def test_float16(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(output_of("float16", capsys, "--rounds", "1", "--json"))["rows"]
    assert [row["instruction"] for row in rows] == ["add", "sub", "mul", "div", "max"]
    assert all(row["bit_identical"] for row in rows)
    assert output_of("float16", capsys, "--rounds", "1").count("yes") == len(rows)


@pytest.mark.usefixtures("subprocesses_find_the_checkout")
def test_memory(capsys: pytest.CaptureFixture[str]) -> None:
    result = json.loads(output_of("memory", capsys, "--json"))
    assert result["target_mb"] == 900
    assert result["peak_mb"] > 10  # Python alone takes that much
    assert re.match(
        r"rope_grad, 1 sample of 96, hidden 128: peak \d+ MB", output_of("memory", capsys)
    )


@pytest.mark.usefixtures("subprocesses_find_the_checkout")
def test_sampled(capsys: pytest.CaptureFixture[str]) -> None:
    attention, rope = json.loads(output_of("sampled", capsys, "--json"))
    assert (attention["error"], attention["cycles"]) == (0, attention["full_cycles"])
    assert "error" not in rope
    assert rope["peak_mb"] > 10


@pytest.mark.usefixtures("subprocesses_find_the_checkout")
def test_sweep(capsys: pytest.CaptureFixture[str]) -> None:
    result = json.loads(output_of("sweep", capsys, "--json"))
    assert result["points"] == 4
    assert result["alike"]
    assert result["ratio"] > 0


def test_the_studies_of_the_documents_are_of_todays_model() -> None:
    """A cell of the map. If it is off: `python benchmarks/studies.py map tuned rounds`, `python docs/generate.py`."""
    found = json.loads((ROOT / "benchmarks" / "studies.json").read_text(encoding="utf-8"))
    wanted = {"MAX_PROCESS_NUM": 6144, "BUFFER_NUM": 2}
    (cell,) = [
        row
        for row in found["map"]
        if row["seq"] == "128" and row["chip"] == "ascend910b1" and wanted.items() <= row.items()
    ]
    timing = Context(chip="ascend910b1", numerics="off", checks="off", tiling=wanted)
    run = find_operator("rope_grad").run({"seq": "128", "hidden": "1280"}, timing)
    assert run.time_us == pytest.approx(cell["time_us"], rel=0.02)
    assert {row["case"] for row in found["sampled"]} <= {
        case.name for case in load("sampled").CASES
    }


@pytest.mark.parametrize("name", ["engine", "float16", "memory", "sampled", "sweep"])
@pytest.mark.usefixtures("subprocesses_find_the_checkout")
def test_a_benchmark_is_a_program(name: str) -> None:
    program = str(ROOT / "benchmarks" / f"{name}.py")
    done = subprocess.run(
        [sys.executable, program, "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "--json" in done.stdout
