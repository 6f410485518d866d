"""What export says about kernels that pyasc does not translate, and about a pyasc that is not there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ascend_sim.errors import ConfigError
from ascend_sim.export import environment
from ascend_sim.export.front_end import translate_all
from ascend_sim.export.recording import Specialisation, describe
from tests.cli.conftest import Result

HEAD = """\
import numpy as np
from ascend_sim import asc
LIMIT = 4
"""
MAIN = """
x = np.ones(64, np.float16)
kernel[1](x, 2)
"""


@pytest.fixture
def export(
    command: Callable[..., Result], pyasc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """Export a program of the given kernel text."""
    monkeypatch.setenv(environment.VARIABLE, str(pyasc))

    def run(text: str, *words: str) -> Result:
        (tmp_path / "k.py").write_text(HEAD + text + MAIN, encoding="utf-8")
        return command("export", "k.py", *words)

    return run


KERNEL = """
@asc.jit(auto_sync=False)
def kernel(x: asc.GlobalAddress, n: int):
"""


CONSTRUCTS: list[tuple[str, list[str]]] = [
    ("    for i in range(n):\n        break", ["k.py:8: ", "Break", "    break", "run to its end"]),
    ("    for i in range(n):\n        continue", ["k.py:8: ", "Continue", "under an `if`"]),
    ("    try:\n        pass\n    except Exception:\n        pass", ["k.py:7: ", "Try", "with `if`"]),
    ("    f = lambda a: a", ["k.py:7: ", "Lambda", "@asc.jit"]),
    ("    a = [i for i in range(3)]", ["k.py:7: ", "ListComp", "static_range"]),
    ("    asc.LocalTensor(asc.DataType('bfloat16'), asc.TPosition.VECIN, 0, 16).get_value(0)",
     ["k.py:7: ", "Unsupported DataType name: bfloat16", "pyasc has no element type bfloat16"]),
    ("    a = asc.LocalTensor(asc.int16, asc.TPosition.VECIN, 0, 64)\n"
     "    b = asc.LocalTensor(asc.int8, asc.TPosition.VECIN, 256, 64)\n    asc.cast_deq(b, a, 64)",
     ["k.py:9: ", "isVecDeq and halfBlock false", "multiply by the scale"]),
    ("    if 0 < n < 3:\n        pass", ["k.py:7: ", "simple comparison", "(a < b) and (b < c)"]),
    ("    asc.muls(1, 2, asc.bfloat16)", ["k.py:7: ", "bfloat16", "an addition of this simulator"]),
    ("    m = 0\n    for i in range(n):\n        m = m * 1.5", ["k.py:8: ", "different type", "start it with"]),
    ("    while n > 0:\n        n = n - 1", ["k.py:7: ", "n never ends it", "use a for loop"]),
    ("    asc.MmadParams(16, 16, 16)", ["k.py:7: ", "drops what is given to MmadParams", "after m, n and k"]),
    ("    asc.MmadParams(16, 16, 16, unit_flag=3, cmatrix_source=False, cmatrix_init_val=True)",
     ["k.py:7: ", "keeps one bit of MmadParams.unit_flag", "by flags"]),
]  # fmt: skip
"""The body of a kernel, and what must be said to it."""


@pytest.fixture(scope="module")
def refusals(pyasc: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What is said to each of `CONSTRUCTS`, by one process."""
    folder = tmp_path_factory.mktemp("constructs")
    specs = []
    values = (
        {"name": "x", "kind": "tensor", "value": "float16"},
        {"name": "n", "kind": "plain", "value": 2},
    )
    for number, (body, _) in enumerate(CONSTRUCTS):
        path = folder / f"k{number}" / "k.py"
        path.parent.mkdir()
        path.write_text(HEAD + KERNEL + body, encoding="utf-8")
        specs.append(Specialisation("kernel", path, 6, "exported", values, 1, {}))
    return [str(answer) for answer in translate_all(specs, pyasc)]


@pytest.mark.parametrize("number", range(len(CONSTRUCTS)))
def test_a_construct_that_pyasc_does_not_know(refusals: list[str], number: int) -> None:
    for words in CONSTRUCTS[number][1]:
        assert words in refusals[number]
    assert "Traceback" not in refusals[number]


def test_a_refusal_is_exit_code_1(export: Callable[..., Result]) -> None:
    result = export(KERNEL + "    for i in range(n):\n        break")
    assert result.code == 1
    assert result.out == ""
    assert result.err == (
        "ascend-sim: k.py:8: pyasc cannot translate kernel: Break syntax is not supported in JIT function\n"
        "    break\n"
        "  Instead: let the loop run to its end, and put what a break would skip under an `if`\n"
    )


def test_the_line_is_that_of_the_helper(export: Callable[..., Result]) -> None:
    helper = "\n@asc.jit\ndef helper(n: int):\n    a = {1: 2}\n"
    result = export(helper + KERNEL + "    helper(n)")
    assert "k.py:7: pyasc cannot translate kernel: Dict" in result.err
    assert "a = {1: 2}" in result.err


def test_constants_of_the_file_and_missing_modules(export: Callable[..., Result]) -> None:
    text = "import nowhere_to_be_found\nsize = nowhere_to_be_found.size\n"
    result = export(
        "try:\n    import nowhere_to_be_found\nexcept ImportError:\n    pass\n"
        + KERNEL
        + "    for i in range(LIMIT):\n        asc.pipe_barrier(asc.PipeID.PIPE_V)"
    )
    assert result.code == 0, result.err
    assert "c4_i32 = 4" in result.out
    assert text not in result.out


def test_the_heading_says_what_it_is_specialised_for(
    export: Callable[..., Result], tmp_path: Path
) -> None:
    text = (
        KERNEL.replace("n: int", "n: asc.ConstExpr[int]")
        + "    asc.pipe_barrier(asc.PipeID.PIPE_V)"
    )
    result = export(text, "--out", "out/kernel.cpp")
    assert result.code == 0
    assert result.out == "kernel: out/kernel.cpp\n"
    lines = (tmp_path / "out" / "kernel.cpp").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("// kernel of k.py, translated by pyasc 1.")
    assert lines[1] == "// launched on 1 block, auto_sync=False; specialised for"
    assert lines[2:5] == ["//   x: tensor of float16", "//   n = 2", '#include "kernel_operator.h"']


def test_an_operator_with_its_own_options(
    command: Callable[..., Result], pyasc: Path, tmp_path: Path
) -> None:
    words = (
        "--seq",
        "5",
        "--hidden",
        "256",
        "--set",
        "MAX_PROCESS_NUM=4096",
        "--python",
        str(pyasc),
    )
    result = command("export", "rope_grad", *words, "--out", "rope_grad.cpp")
    assert (result.code, result.out) == (0, "rope_grad: rope_grad.cpp\n"), result.err
    text = (tmp_path / "rope_grad.cpp").read_text(encoding="utf-8")
    assert "// launched on 2 blocks, auto_sync=False; specialised for" in text
    assert "//   max_process_num = 4096\n" in text
    assert "//   tiling_lengths: tensor of int32\n" in text


def test_a_kernel_inside_a_function(export: Callable[..., Result]) -> None:
    inner = (
        "def outer():\n"
        + KERNEL.replace("\n", "\n    ")
        + "    pass\n    return kernel\nkernel = outer()"
    )
    result = export(inner)
    assert result.code == 1
    assert (
        "kernel is defined inside outer; pyasc translates functions that stand at the top"
        in result.err
    )


def test_the_kernel_that_is_asked_for(export: Callable[..., Result]) -> None:
    result = export(KERNEL + "    pass", "--kernel", "kernle")
    assert result.code == 1
    assert "launched no kernel 'kernle'; did you mean 'kernel'?" in result.err
    assert export(KERNEL + "    pass", "--kernel", "kernel").code == 0


def test_what_a_program_prints_is_not_the_result(export: Callable[..., Result]) -> None:
    result = export("print('hello')" + KERNEL + "    pass")
    assert result.code == 0
    assert result.out.startswith("// kernel of k.py")
    assert "hello" in result.err


# ---- without pyasc ------------------------------------------------------------------------------


@pytest.fixture
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(environment.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_where_there_is_no_pyasc_it_says_how_to_get_one(
    command: Callable[..., Result], nothing: Path
) -> None:
    result = command("export", "rope_grad")
    assert result.code == 1
    assert "`ascend-sim export --setup` makes one, once, in" in result.err
    assert str(nothing) in result.err
    assert "--python PATH or ASCEND_SIM_PYASC" in result.err


@pytest.mark.parametrize(
    ("python", "says"),
    [
        ("/nowhere/python", "--python is '/nowhere/python': there is no such Python"),
        ("/bin/false", "has no working pyasc"),
    ],
)
def test_a_python_that_is_none(
    command: Callable[..., Result], nothing: Path, python: str, says: str
) -> None:
    result = command("export", "rope_grad", "--python", python)
    assert result.code == 1
    assert says in result.err


def test_a_python_without_pyasc_says_so(nothing: Path, tmp_path: Path) -> None:
    plain = tmp_path / "python"
    plain.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n', encoding="utf-8")
    plain.chmod(0o755)
    with pytest.raises(ConfigError, match="No module named 'asc'"):
        environment.find_python(str(plain))


def test_export_of_nothing_and_into_a_directory(
    command: Callable[..., Result], nothing: Path, tmp_path: Path
) -> None:
    assert "export what? Name an operator or a Python file" in command("export").err
    assert (
        "is a directory; name a file" in command("export", "rope_grad", "--out", str(tmp_path)).err
    )


def test_an_argument_that_pyasc_cannot_be_given() -> None:
    with pytest.raises(
        ConfigError, match="argument f is of type function, which pyasc cannot be given"
    ):
        describe("f", test_an_argument_that_pyasc_cannot_be_given)
