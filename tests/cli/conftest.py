from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ascend_sim.cli.app import app


@dataclass(frozen=True)
class Result:
    """What a command printed, and the code it exited with."""

    code: int
    out: str
    err: str


Command = Callable[..., Result]


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Run `ascend-sim` in an empty directory, in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def run(*words: str) -> Result:
        with pytest.raises(SystemExit) as stop:
            app(list(words), prog_name="ascend-sim")
        captured = capsys.readouterr()
        assert isinstance(stop.value.code, int)
        return Result(stop.value.code, captured.out, captured.err)

    return run


HEAD = """\
import sys
import numpy as np
import asc


@asc.jit(auto_sync=False)
def scale(x: asc.GlobalAddress, z: asc.GlobalAddress, n: int):
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x + asc.get_block_idx() * n)
    z_gm = asc.GlobalTensor()
    z_gm.set_global_buffer(z + asc.get_block_idx() * n)
    pipe = asc.TPipe()
    source = asc.TQue(asc.TPosition.VECIN, 1)
    target = asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(que=source, num=1, len=n * 2)
    pipe.init_buffer(que=target, num=1, len=n * 2)
    tensor = source.alloc_tensor(x.dtype)
    asc.data_copy(tensor, x_gm, n)
    source.enque(tensor)
    tensor = source.deque(x.dtype)
    result = target.alloc_tensor(x.dtype)
    asc.muls(result, tensor, 2.0, n)
    target.enque(result)
    source.free_tensor(tensor)
    result = target.deque(x.dtype)
    asc.data_copy(z_gm, result, n)
    target.free_tensor(result)


@asc.jit(auto_sync=False)
def racy(x: asc.GlobalAddress, n: int):
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    pipe = asc.TPipe()
    buffer = asc.TBuf(asc.TPosition.VECCALC)
    pipe.init_buffer(buffer, n * 2)
    tensor = buffer.get(x.dtype)
    asc.data_copy(tensor, x_gm, n)
    asc.muls(tensor, tensor, 2.0, n)


@asc.jit(auto_sync=False)
def stuck(x: asc.GlobalAddress):
    asc.wait_flag(asc.HardEvent.MTE2_V, 3)


@asc.jit(auto_sync=False)
def too_big(x: asc.GlobalAddress):
    pipe = asc.TPipe()
    pipe.init_buffer(asc.TBuf(asc.TPosition.VECCALC), 1 << 20)


@asc.jit(auto_sync=False)
def crashes(x: asc.GlobalAddress):
    index_of(5)


def index_of(n):
    return [1, 2][n]


x = np.ones(1024, np.float16)
z = np.zeros_like(x)
"""


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], str]:
    """Write a program of the kernels above with the given main part, and return its name."""

    def write(main: str, name: str = "kernels.py") -> str:
        (tmp_path / name).write_text(HEAD + main + "\n", encoding="utf-8")
        return name

    return write
