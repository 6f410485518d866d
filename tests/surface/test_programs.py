"""Programs as a reader of pyasc's documents writes them run without a change: right numbers, no findings.

Each asserts its own numbers against numpy. Where there is a pyasc, its front end must translate their kernels too.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ascend_sim
from ascend_sim.lang.device import Device, exchange
from ascend_sim.run import Run
from ascend_sim.stand_in import standing_in

HERE = Path(__file__).resolve().parent
PROGRAMS = sorted((HERE / "programs").glob("*.py"))
ROOT = HERE.parent.parent


@pytest.fixture
def runs() -> Iterator[list[Run]]:
    """All runs of a test; the device that the program sees is its own."""
    listeners = sys.modules["ascend_sim.launch"].on_run
    found: list[Run] = []
    listeners.append(found.append)
    device = exchange(Device())
    yield found
    exchange(device)
    listeners.remove(found.append)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_runs_as_it_is(program: Path, runs: list[Run]) -> None:
    with standing_in():
        runpy.run_path(str(program), run_name="__main__")
    assert runs, "it launched nothing"
    for run in runs:
        assert run.findings == [], run.op
        for core, pipes in run.summary["pipes"].items():
            for pipe, row in pipes.items():
                assert row["busy"] + row["wait"] + row["idle"] == run.cycles, (core, pipe)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_pyasc_translates_its_kernels(program: Path, runs: list[Run], tmp_path: Path) -> None:
    if "ASCEND_SIM_PYASC" not in os.environ:
        pytest.skip("no pyasc: ASCEND_SIM_PYASC names a Python that has one")
    with standing_in():
        runpy.run_path(str(program), run_name="__main__")
    for kernel in dict.fromkeys(run.op for run in runs):
        done = subprocess.run(
            [sys.executable, "-m", "ascend_sim", "export", str(program), "--kernel", kernel,
             "--out", str(tmp_path / f"{kernel}.cpp")],
            capture_output=True, text=True, check=False, cwd=ROOT,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


def test_under_plain_python_one_line_at_the_top_is_enough(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    text = (HERE / "programs" / "add_static_tensors.py").read_text(encoding="utf-8")
    program.write_text(f"import ascend_sim.pyasc\n{text}print(asc.__name__)\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(ascend_sim.__file__).resolve().parent.parent)},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "ascend_sim.asc\n"), done.stderr


def test_under_plain_python_findings_are_told_once(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import ascend_sim.pyasc\n"
        "import asc\n"
        "@asc.jit\n"
        "def kernel():\n"
        "    asc.set_flag(asc.HardEvent.MTE2_V, 3)\n"
        "for _ in range(2):\n"
        "    kernel[1]()\n",
        encoding="utf-8",
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(ascend_sim.__file__).resolve().parent.parent),
    }
    plain = [sys.executable, "program.py"]
    ours = [sys.executable, "-m", "ascend_sim", "run", "program.py", "-q", "--out", "run"]
    for command, code in ((plain, 0), (ours, 2)):
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
        )
        assert done.returncode == code, done.stderr
        assert done.stderr.count("FLAG_BALANCE flag-left-set at ") == 1, done.stderr


def test_the_name_asc_means_what_it_meant_before_again() -> None:
    before = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "asc"}
    with standing_in():
        import asc  # type: ignore[import-not-found,unused-ignore]
        import asc.lib.runtime as rt  # type: ignore[import-not-found,unused-ignore]
        from asc.language.core.struct import Struct  # type: ignore[import-not-found,unused-ignore]
        from asc.lib.runtime.support import MemcpyKind  # type: ignore[import-not-found,unused-ignore]
        from asc.runtime import config  # type: ignore[import-not-found,unused-ignore]

        assert asc is ascend_sim.asc
        assert rt is ascend_sim.asc.lib.runtime
        assert config is ascend_sim.asc.runtime.config
        assert Struct.__module__ == "ascend_sim.lang.structs"
        assert MemcpyKind.RT_MEMCPY_HOST_TO_DEVICE.value == 1
    after = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "asc"}
    assert after == before
