from __future__ import annotations

from pathlib import Path

import pytest

PROGRAM = """\
import os
import signal
import numpy as np
from ascend_sim import asc

SIZE = 256
MODE = "good"
BUFFERS = 1
PAUSE = 0


@asc.jit(auto_sync=False)
def scale(x: asc.GlobalAddress, z: asc.GlobalAddress, n: int, buffers: int):
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    z_gm = asc.GlobalTensor()
    z_gm.set_global_buffer(z)
    pipe = asc.TPipe()
    source = asc.TQue(asc.TPosition.VECIN, 1)
    target = asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(que=source, num=buffers, len=n * 4)
    pipe.init_buffer(que=target, num=buffers, len=n * 4)
    for start in range(0, 4096, n):
        count = min(n, 4096 - start)
        tensor = source.alloc_tensor(x.dtype)
        asc.data_copy(tensor, x_gm[start:], count)
        source.enque(tensor)
        tensor = source.deque(x.dtype)
        result = target.alloc_tensor(x.dtype)
        asc.muls(result, tensor, 2.0, count)
        target.enque(result)
        source.free_tensor(tensor)
        result = target.deque(x.dtype)
        asc.data_copy(z_gm[start:], result, count)
        target.free_tensor(result)


@asc.jit(auto_sync=False)
def racy(x: asc.GlobalAddress):
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    tensor = asc.LocalTensor(x.dtype, asc.TPosition.VECCALC, 0, 256)
    asc.data_copy(tensor, x_gm, 256)
    asc.muls(tensor, tensor, 2.0, 256)


@asc.jit(auto_sync=False)
def stuck(x: asc.GlobalAddress):
    asc.wait_flag(asc.HardEvent.MTE2_V, 3)


x = np.ones(4096, np.float32)
z = np.zeros_like(x)
print("noise on standard output")
if MODE == "good":
    scale[1](x, z, SIZE, BUFFERS)
elif MODE == "racy":
    racy[1](x)
elif MODE == "stuck":
    stuck[1](x)
elif MODE == "raises":
    raise KeyError("nothing there")
elif MODE == "exits":
    os._exit(7)
elif MODE == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A program with constants to vary, in an empty current directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels.py").write_text(PROGRAM, encoding="utf-8")
    return "kernels.py"
