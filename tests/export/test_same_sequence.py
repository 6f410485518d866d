"""The C++ of a kernel tells the pipes what the simulated block was told: same order, places, amounts, flags."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ascend_sim.errors import ExportError
from ascend_sim.export.front_end import translate
from ascend_sim.export.recording import specialise
from ascend_sim.launch import launch, on_launch
from ops import Context, find_operator
from tests.export import cpp, kernels
from tests.export.traces import told

ROOT = Path(__file__).resolve().parents[2]


class Seen(BaseException):
    """Ends a program at its first launch."""


def first_launch(program: Any) -> tuple[Any, tuple[Any, ...], int]:
    """Return kernel, arguments and blocks of the first launch of a program."""

    def listen(*launched: Any) -> None:
        raise Seen(*launched)

    on_launch.append(listen)
    try:
        program()
    except Seen as seen:
        kernel, args, blocks = seen.args
        return kernel, args, blocks
    finally:
        on_launch.remove(listen)
    raise AssertionError("the program launches nothing")


def compare(pyasc: Path, kernel: Any, args: tuple[Any, ...], blocks: int, core: str = "aiv") -> int:
    """Assert that C++ and simulation agree for the first two blocks; return how many things were told."""
    args = tuple(arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args)
    spec = specialise(kernel, args, blocks)
    text = translate(spec, pyasc).text
    done = launch(kernel, *args, cores=blocks, chip="ascend910b1")
    names = [value["name"] for value in spec.values]
    count = 0
    for block in range(min(blocks, 2)):
        expected = told(done, f"core0.{core}{block}" if core == "aiv" else f"core{block}.{core}")
        done_by = cpp.run(text, dict(zip(names, args, strict=True)), block, blocks)
        assert cpp.differences(done_by, expected) == []
        count += len(expected)
    return count


@pytest.mark.parametrize("seq", ["1", "200,37", "96,192,95"])
def test_rope_grad(pyasc: Path, seq: str) -> None:
    operator = find_operator("rope_grad")
    launched = first_launch(lambda: operator.run({"seq": seq, "hidden": "256"}, Context()))
    assert compare(pyasc, *launched) > 50


OUTSIDE = {
    "07_laser_attention_grad.py": "classes, and annotations as text",
    "08_mix_flags.py": "a TPipe for each kind of core: pyasc translates one for both",
}
"""Examples outside pyasc's subset, and by what."""

TRANSLATED = {
    "06_matmul_object.py": "a Matmul object is one call in C++, and many instructions here"
}
"""Examples whose C++ is not compared instruction by instruction."""

NOTHING = {"04_sweep.py": "it launches in processes of its own"}
"""Examples without a launch that can be seen."""


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "examples").glob("*.py")))
def test_examples(pyasc: Path, name: str) -> None:
    if name in NOTHING:
        pytest.skip(NOTHING[name])
    launched = first_launch(
        lambda: runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    )
    if name in OUTSIDE:
        with pytest.raises(ExportError, match="pyasc cannot translate"):
            translate(specialise(*launched), pyasc)
    elif name in TRANSLATED:
        assert "__aicore__" in translate(specialise(*launched), pyasc).cpp
    else:
        kinds = launched[0].options.get("kernel_type", "")
        core = "aic" if "AIC" in getattr(kinds, "name", str(kinds)) else "aiv"
        assert compare(pyasc, *launched, core) > 50


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("arithmetic", np.float16),
        ("whole_numbers", np.int16),
        ("conversions", np.float16),
        ("choices", np.float32),
        ("reductions", np.float32),
        ("orders", np.float32),
    ],
)
def test_vector_instructions(pyasc: Path, name: str, dtype: Any) -> None:
    count = 512 if dtype == np.float16 else 256
    x = np.ones(2 * count, dtype)
    assert compare(pyasc, getattr(kernels, name), (x, x.copy(), count), 1) > 8


def test_branches_and_loops(pyasc: Path) -> None:
    x = np.ones(512, np.float16)
    counts = np.array([5, 1, 0, 8, 3], np.int32)
    assert compare(pyasc, kernels.branches, (x, x.copy(), counts, 5, 0.5), 1) == 29


def test_cube_instructions(pyasc: Path) -> None:
    a, b = np.ones((64, 32), np.float16), np.ones((32, 48), np.float16)
    assert compare(pyasc, kernels.matmul, (a, b, np.zeros((64, 48), np.float32)), 1, "aic") > 15
