"""Addresses off their border, and rows that do not lie where they are looked for."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from typer.testing import CliRunner

from ascend_sim import asc
from ascend_sim.cli.app import app
from ascend_sim.errors import Finding
from tests.user_cases.kit import (
    F16,
    F32,
    E,
    Told,
    V,
    Want,
    case,
    fill,
    flag,
    ramp,
    told,
    ub,
    window,
    zeros,
)  # fmt: skip


@case(
    "ALN-01",
    Want(
        "ALIGNMENT", "misaligned-operand", "copy", "z",
        (4, 64), ("starts at UB byte 4", "32-byte border", "elements 0 and 8"),
    ),
)  # fmt: skip
def one_element_off(wrong: bool) -> Told:
    """UB starts on a 32-byte border; GM may start at any element, which is not even worth a word."""
    out = zeros(16)

    def kernel(gm: asc.GlobalAddress) -> None:
        z = ub(F32, 16, 0)
        fill(z)
        flag(E.V_MTE3)
        asc.data_copy(window(gm)[0 if wrong else 4 : 12], z[1] if wrong else z[8], 8)  # copy

    said = told(kernel, out, outputs=["gm"])
    assert not wrong or not out.any()
    return said


@case(
    "ALN-03",
    Want(
        "UNINIT", "uninitialised-read", "add", "x",
        (4, 16), ("padding", "data_copy_pad", "row 1 starts at UB byte 32", "block_count 1, block_len 16"),
    ),
)  # fmt: skip
def column_of_single_elements(wrong: bool) -> Told:
    """Rows of 4 bytes lie 32 bytes apart in UB."""
    z = zeros(4)

    def kernel(gm: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        x, y = ub(F32, 32, 0), ub(F32, 8, 4096)
        count, length = (4, 4) if wrong else (1, 16)
        asc.data_copy_pad(x, window(gm), asc.DataCopyExtParams(count, length, 0, 0, 0))
        flag(E.MTE2_V)
        asc.adds(y, x, 1.0, 4)  # add
        flag(E.V_MTE3)
        asc.data_copy_pad(window(z), y, asc.DataCopyExtParams(1, 16, 0, 0, 0))

    said = told(kernel, ramp(4), z)
    assert wrong or z.tolist() == [2, 3, 4, 5]
    return said


@case(
    "ALN-04",
    Want(
        "BOUNDS", "tensor-out-of-bounds", "store", "t",
        (0, 50), ("row 1 is read from byte 32", "not 18", "block_count 1, block_len 36"),
    ),
)  # fmt: skip
def narrow_rows(wrong: bool) -> Told:
    """Rows of 18 bytes, side by side in UB, cannot be stored row by row."""
    y = zeros(2, 9, dtype=np.float16)

    def kernel(y: asc.GlobalAddress) -> None:
        t = ub(F16, 18, 0)
        fill(t)
        count, length = (2, 18) if wrong else (1, 36)
        asc.data_copy_pad(window(y), t, asc.DataCopyExtParams(count, length, 0, 0, 0))  # store

    return told(kernel, y)


PROGRAM = """
import numpy as np
from ascend_sim import asc

def t(at, n): return asc.LocalTensor(asc.float32, asc.TPosition.VECCALC, at, n)

@asc.jit(auto_sync=False)
def rms(x: asc.GlobalAddress):
    asc.duplicate(t(0, 16), 1.0, 16)

@asc.jit(auto_sync=False)
def gate(x: asc.GlobalAddress):
    a, b, o = t(0, 16), t(4096, 8), t(8192, 8)
    asc.duplicate(a, 1.0, 16)
    asc.duplicate(b, 1.0, 8)
    asc.pipe_barrier(asc.PipeID.PIPE_ALL)
    asc.mul(o, a[4], b, 8)

@asc.jit(auto_sync=False)
def rope(x: asc.GlobalAddress):
    asc.duplicate(t(0, 16), 1.0, 16)

for kernel in (rms, gate, rope):
    kernel[1](np.zeros(64, np.float32))
"""


@case(
    "ALN-07",
    Want(
        "ALIGNMENT", "misaligned-operand", "", "a[4:]", None,
        ("mul: src0", "UB byte 16", "program.py:17, core0.aiv0.V", "That was gate, launch 2 of the program"),
    ),
    Want("INFO", "not-run", says=("what comes after it was not run", "before it without findings: rms")),
)  # fmt: skip
def one_bad_kernel_of_three(wrong: bool) -> Told:
    """What a program launches after the kernel that stops is not run, and what came before is fine."""
    text = PROGRAM if wrong else PROGRAM.replace("a[4]", "a[8]")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"
        path.write_text(text, encoding="utf-8")
        result = CliRunner().invoke(app, ["check", str(path), "--chip", "toy"])
    assert result.exit_code == (4 if wrong else 0)
    said = Told()
    if result.exit_code:
        shown = f"{result.stdout} {result.stderr}"
        kind, code = shown.split("\n")[1].split()[:2]
        said.findings = [Finding(kind, code, shown), Finding("INFO", "not-run", result.stderr)]
    return said


@case(
    "ALN-08",
    Want(
        "ALIGNMENT", "misaligned-operand", "max", "x", (52, 192), ("UB byte 52",),
    ),
)  # fmt: skip
def pitch_of_the_true_length(wrong: bool) -> Told:
    """Rows of 13 elements lie 16 apart; and a maximum over 16 would take the padding along."""
    r, aligned, rows = 13, 16, 3
    x, z = -ramp(r * rows).reshape(rows, r), zeros(rows, 8)

    def kernel(gm: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        x, o, tmp = ub(F32, aligned * rows, 0), ub(F32, 8 * rows, 4096), ub(F32, 64, 8192)
        asc.data_copy_pad(x, window(gm), asc.DataCopyExtParams(rows, r * 4, 0, 0, 0))
        flag(E.MTE2_V)
        for i in range(rows):
            asc.reduce_max(o[i * 8], x[i * (r if wrong else aligned)], tmp, r)  # max
            asc.pipe_barrier(V)
        flag(E.V_MTE3)
        asc.data_copy_pad(window(z), o, asc.DataCopyExtParams(rows, 4, 0, 28, 0))

    return told(kernel, x, z, outputs=["z"])
