"""Calls and faults carry the kernel's own line: by frame depth on any stream, by file and line in the simulator."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from isa_kit import gm, ub

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.errors import KernelError
from isa.instruction import Call
from isa.move import data_copy, data_copy_pad
from isa.params import (
    BinaryRepeatParams,
    CopyRepeatParams,
    DataCopyExtParams,
    DataCopyParams,
    UnaryRepeatParams,
)
from isa.stream import EagerStream
from isa.types import RoundMode, Space, float16, float32
from isa.vector.arithmetic import add, exp, muls
from isa.vector.fill import cast, copy, duplicate

H1, H2, H3 = (ub(float16, 2048 * i, 512) for i in range(3))
F1 = ub(float32, 6144, 256)
X = np.zeros(512, np.float16)

CALLS: dict[str, Callable[[], None]] = {
    "binary count": lambda: add(H1, H2, H3, 64),
    "binary mask": lambda: add(H1, H2, H3, 64, 1, BinaryRepeatParams()),
    "unary count": lambda: exp(H1, H2, 64),
    "unary mask": lambda: exp(H1, H2, [1, 0], 1, UnaryRepeatParams()),
    "scalar count": lambda: muls(H1, H2, 2.0, 64),
    "scalar mask": lambda: muls(H1, H2, 2.0, 64, 1, UnaryRepeatParams()),
    "fill": lambda: duplicate(H1, 1, 64),
    "cast": lambda: cast(F1, H1, RoundMode.CAST_NONE, 64),
    "masked copy": lambda: copy(H1, H2, 128, 1, CopyRepeatParams(1, 1, 8, 8)),
    "copy in": lambda: data_copy(H1, gm(X), 64),
    "copy in bursts": lambda: data_copy(H1, gm(X), DataCopyParams(1, 4)),
    "copy out": lambda: data_copy(gm(X), H1, 64),
    "copy inside": lambda: data_copy(H2, H1, 64),
    "padded copy": lambda: data_copy_pad(H1, gm(X), DataCopyExtParams(1, 6)),
}


class Looking(EagerStream):
    """Looks up the frame that `issue` says is the kernel's, as the simulator does."""

    def __init__(self) -> None:
        super().__init__({Space.UB: 8192})
        self.frames: list[str] = []

    def issue(self, call: Call, depth: int = 3) -> None:
        self.frames.append(self.site(depth))

    def site(self, depth: int) -> str:
        frame: Any = sys._getframe(depth)
        return str(frame.f_code.co_filename)


@pytest.mark.parametrize("name", sorted(CALLS))
def test_the_depth_leads_to_the_kernels_frame(name: str) -> None:
    looking = Looking()
    with looking:
        for _ in range(2):  # bound anew, and bound before
            CALLS[name]()
    assert looking.frames[1] == __file__
    # Binding anew may go through one function more, which the simulator passes over.
    assert looking.frames[0] == __file__ or "isa" in Path(looking.frames[0]).parts


def _bad_add(x: asc.GlobalAddress) -> None:
    t = asc.LocalTensor(asc.float16, asc.TPosition.VECCALC, 0, 64)
    asc.add(t, t, t[1:], 16)  # here


def _bad_repeat(x: asc.GlobalAddress) -> None:
    t = asc.LocalTensor(asc.float16, asc.TPosition.VECCALC, 0, 64)
    asc.muls(t, t, 2.0, 16, 256, asc.UnaryRepeatParams())  # here


def _bad_copy(x: asc.GlobalAddress) -> None:
    t = asc.LocalTensor(asc.float16, asc.TPosition.VECIN, 0, 64)
    source = asc.GlobalTensor()
    source.set_global_buffer(x)
    asc.data_copy(t, source, 128)  # here


def _bad_view(x: asc.GlobalAddress) -> None:
    t = asc.LocalTensor(asc.float16, asc.TPosition.VECIN, 0, 64)
    t[65:]  # here


def _bad_element(x: asc.GlobalAddress) -> None:
    t = asc.LocalTensor(asc.float16, asc.TPosition.VECIN, 0, 64)
    t.get_value(64)  # here


@pytest.mark.parametrize(
    "kernel", [_bad_add, _bad_repeat, _bad_copy, _bad_view, _bad_element], ids=lambda k: k.__name__
)
def test_in_the_simulator_a_fault_names_the_kernels_line(kernel: Any) -> None:
    lines, first = inspect.getsourcelines(kernel)
    line = first + next(i for i, text in enumerate(lines) if "# here" in text)
    with pytest.raises(KernelError) as caught:
        sim.launch(kernel, X.copy(), cores=1, chip="toy")
    finding = caught.value.finding
    assert finding is not None
    assert (Path(finding.file).name, finding.line) == (Path(__file__).name, line)
