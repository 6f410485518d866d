"""Findings that a kernel's source allows: on their line, with a reason, and told of where it is not needed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim.errors import KernelError, RaceError

KERNEL = """
from ascend_sim import asc


def kernel(x, z):
    x_gm, z_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    z_gm.set_global_buffer(z)
    a = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 256)
    asc.data_copy(a, x_gm, 256)  # {load}
    asc.adds(
        a, a, 1.0, 256  # {add}
    )
    asc.set_flag(asc.HardEvent.V_MTE3, 0)
    asc.wait_flag(asc.HardEvent.V_MTE3, 0)  # {wait}
    asc.data_copy(z_gm, a, 256)  # {store}
"""


def launch(folder: Path, *, checks: str = "collect", **comments: str) -> sim.Run:
    given = {"load": "", "add": "", "wait": "", "store": "", **comments}
    path = folder / f"kernel{len(list(folder.iterdir()))}.py"
    path.write_text(KERNEL.format(**given), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = np.ones(256, np.float32)
    return sim.launch(module.kernel, x, np.zeros_like(x), chip="toy", checks=checks)


def codes(run: sim.Run) -> list[tuple[str, int]]:
    return [(finding.code, finding.line) for finding in run.findings]


ALLOW = "ascend-sim: allow race-raw, race-waw: the load is through by then"


def test_what_is_found_without(tmp_path: Path) -> None:
    assert {code for code, _ in codes(launch(tmp_path))} == {"race-raw", "race-waw"}


@pytest.mark.parametrize("place", ["load", "add"])
def test_allowed_on_either_line(tmp_path: Path, place: str) -> None:
    """The comment of `add` stands on another line of its statement than the call."""
    run = launch(tmp_path, **{place: ALLOW})
    assert run.findings == [] and run.exit_code == 0
    assert {(finding.code, reason) for finding, reason in run.allowed} == {
        ("race-raw", "the load is through by then"),
        ("race-waw", "the load is through by then"),
    }


def test_allowed_where_findings_are_errors(tmp_path: Path) -> None:
    launch(tmp_path, checks="error", add=ALLOW)
    with pytest.raises(RaceError):
        launch(tmp_path, checks="error", wait=ALLOW)


def test_only_the_codes_that_are_named(tmp_path: Path) -> None:
    run = launch(tmp_path, add="ascend-sim: allow race-raw: one of two")
    assert {code for code, _ in codes(run)} == {"race-waw"}


@pytest.mark.parametrize(
    ("comment", "code", "words"),
    [
        ("ascend-sim: allow race-war: is not so", "allow-unused", "is not needed"),
        ("ascend-sim: allow race-rav: misspelt", "allow-unknown", "did you mean 'race-raw'?"),
        ("ascend-sim: allow race-raw", "allow-without-reason", "has no reason"),
        ("ascend-sim: ignore race-raw: what?", "allow-form", "allow CODE: reason"),
    ],
)
def test_comments_that_do_nothing(tmp_path: Path, comment: str, code: str, words: str) -> None:
    run = launch(tmp_path, add=comment)
    found = {finding.code: finding for finding in run.findings}
    assert {"race-raw", "race-waw", code} == set(found)
    assert found[code].kind == "INFO" and words in found[code].message
    assert found[code].line == 12


def test_a_line_that_does_not_run_is_not_told_of(tmp_path: Path) -> None:
    path = tmp_path / "other.py"
    path.write_text(
        "from ascend_sim import asc\n\n\ndef kernel(x):\n    if asc.get_block_num() > 1:\n"
        "        asc.pipe_barrier(asc.PipeID.PIPE_V)  # ascend-sim: allow race-raw: only with two\n"
    )
    module: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), module)
    assert sim.launch(module["kernel"], np.zeros(8, np.float32), chip="toy").findings == []


def test_what_stops_a_kernel_is_not_allowed(tmp_path: Path) -> None:
    with pytest.raises(KernelError) as stop:
        launch(
            tmp_path,
            wait="x\n    asc.wait_flag(asc.HardEvent.V_MTE3, 1)  # ascend-sim: allow deadlock: no",
        )
    assert "deadlock" in {finding.code for finding in stop.value.run.findings}
