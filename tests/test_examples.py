"""The examples run as their texts say, print what stands beside them, and need every flag they set."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim.errors import DeadlockError

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NAMES = [path.stem for path in EXAMPLES]
QUEUES, FLAGS = "01_vector_add", "02_vector_add_flags"


def run_python(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run this interpreter in a folder, with the checkout's packages."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


# ---- as programs ----------------------------------------------------------------------------


def test_there_are_examples() -> None:
    assert {QUEUES, FLAGS, "03_rope_grad"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_prints_what_stands_beside_it(name: str, tmp_path: Path) -> None:
    """A changed time is a change for the changelog; then `python examples/NAME.py > examples/NAME.out`."""
    done = run_python(str(ROOT / "examples" / f"{name}.py"), folder=tmp_path)
    assert done.stderr == ""
    assert done.stdout == (ROOT / "examples" / f"{name}.out").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_an_example_runs_under_the_command(name: str, tmp_path: Path) -> None:
    program = str(ROOT / "examples" / f"{name}.py")
    done = run_python("-m", "ascend_sim", "run", program, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    printed = (ROOT / "examples" / f"{name}.out").read_text(encoding="utf-8")
    assert done.stdout.startswith(printed)
    assert "ascend910b1" in done.stdout.removeprefix(printed).splitlines()[0]
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


@pytest.mark.parametrize("path", EXAMPLES, ids=NAMES)
def test_a_docstring_names_its_own_commands(path: Path) -> None:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    assert f"    python examples/{path.name}\n    ascend-sim run examples/{path.name}" in text


PYASC = (
    ast.Expr, ast.Constant, ast.FunctionDef, ast.arguments, ast.arg, ast.Attribute, ast.Subscript, ast.Slice,
    ast.Name, ast.Load, ast.Store, ast.Call, ast.keyword, ast.Assign, ast.AugAssign, ast.For, ast.If,
    ast.Compare, ast.cmpop, ast.BinOp, ast.operator, ast.UnaryOp, ast.USub,
)  # fmt: skip


@pytest.mark.parametrize("name", [QUEUES, FLAGS])
def test_kernels_use_what_pyasc_compiles(name: str) -> None:
    tree = ast.parse((ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8"))
    kernels = [
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list
    ]
    assert kernels
    strange = [
        f"line {getattr(node, 'lineno', '?')}: {type(node).__name__}"
        for kernel in kernels
        for node in ast.walk(kernel)
        if not isinstance(node, PYASC)
    ]
    assert strange == []
    stops = [node.upper for node in ast.walk(tree) if isinstance(node, ast.Slice)]
    assert not any(stops)


# ---- with something left out ----------------------------------------------------------------

BLOCKS, TILES, TILE = 2, 7, 2048


class Trial:
    """A kernel of a changed example: what a run finds, and whether the numbers are right."""

    def __init__(self, name: str, text: str, **options: Any) -> None:
        namespace: dict[str, Any] = {"__name__": "changed"}
        exec(compile(text, name, "exec"), namespace)
        kernel = namespace["vector_add" if name == QUEUES else "vector_add_flags"]
        buffers = options.pop("buffers", None)
        constants = (TILES, TILE) if buffers is None else (TILES, TILE, buffers)
        generator = np.random.default_rng(2)
        x, y = generator.normal(size=(2, BLOCKS * TILES * TILE)).astype(np.float16)
        z = np.zeros_like(x)
        try:
            self.run = sim.launch(kernel, x, y, z, *constants, cores=BLOCKS, **options)
        except DeadlockError as error:
            self.run = error.run
        self.right = bool(np.array_equal(z, x + y))
        self.codes = {finding.code for finding in self.run.findings}
        self.kinds = {finding.kind for finding in self.run.findings}


def source(name: str) -> str:
    return (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")


def without(name: str, *patterns: str) -> str:
    """The example's text less each line that matches a pattern; each pattern has to match one at least."""
    lines = source(name).splitlines(keepends=True)
    for pattern in patterns:
        kept = [line for line in lines if not re.fullmatch(pattern, line.strip())]
        assert len(kept) < len(lines), pattern
        lines = kept
    return "".join(lines)


@pytest.mark.parametrize("chip", ["ascend910b1", "ascend910b4", "toy"])
@pytest.mark.parametrize("numerics", ["on", "off"])
def test_the_kernels_are_silent(chip: str, numerics: str) -> None:
    options = {"chip": chip, "numerics": numerics, "checks": "error"}
    trials = [Trial(QUEUES, source(QUEUES), buffers=buffers, **options) for buffers in (1, 2, 3)]
    trials.append(Trial(FLAGS, source(FLAGS), **options))
    assert [trial.run.findings for trial in trials] == [[], [], [], []]
    assert {trial.right for trial in trials} == {numerics == "on"}


def enque_and_deque(queue: str) -> tuple[str, str]:
    return rf"{queue}\.enque\(.*", rf"\w+ = {queue}\.deque\(.*"


@pytest.mark.parametrize("buffers", [1, 2])
@pytest.mark.parametrize("queues", [("y_in",), ("z_out",), ("x_in", "y_in")], ids="+".join)
def test_an_enque_and_deque_left_out(queues: tuple[str, ...], buffers: int) -> None:
    """V adds what MTE2 has not loaded yet, or MTE3 stores what V has not added yet: a RAW that strikes."""
    patterns = [pattern for queue in queues for pattern in enque_and_deque(queue)]
    trial = Trial(QUEUES, without(QUEUES, *patterns), buffers=buffers)
    assert "race-raw" in trial.codes
    assert not trial.right
    assert any(finding.struck for finding in trial.run.findings if finding.code == "race-raw")


@pytest.mark.parametrize("buffers", [1, 2])
def test_the_enque_and_deque_of_x_order_nothing(buffers: int) -> None:
    """MTE2 loads x before y and a flag is set when all before it has landed: y's flag says both are there."""
    trial = Trial(QUEUES, without(QUEUES, *enque_and_deque("x_in")), buffers=buffers)
    assert trial.kinds == set()
    assert trial.right


@pytest.mark.parametrize("queue", ["x_in", "y_in", "z_out"])
def test_a_buffer_that_is_never_freed(queue: str) -> None:
    trial = Trial(QUEUES, without(QUEUES, rf"{queue}\.free_tensor\(.*"), buffers=2)
    assert trial.codes >= {"alloc-spins-forever"}


def taken_once(queue: str) -> str:
    """Take the only buffer of a queue before the loop and never free it: enque and deque stay."""
    text = without(QUEUES, rf"{queue}\.free_tensor\(.*", rf"\w+ = {queue}\.alloc_tensor\(.*")
    argument = queue[0]
    taken = f"    {argument}_local = {queue}.alloc_tensor({argument}.dtype)\n"
    return text.replace("    for i in range(tiles):", taken + "\n    for i in range(tiles):")


@pytest.mark.parametrize("queue", ["x_in", "z_out"])
def test_free_and_alloc_left_out(queue: str) -> None:
    """Nothing leads back: the next tile may overwrite this one before it has been read (WAR)."""
    trial = Trial(QUEUES, taken_once(queue), buffers=1)
    assert trial.codes >= {"race-war", "tensor-not-freed"}


def test_the_free_and_alloc_of_y_order_nothing_with_one_buffer() -> None:
    """MTE2 waits for x's buffer first, whose free_tensor stands after the same add: then y's is free too.

    With two buffers x's flag comes from two tiles back and no longer speaks for y's only buffer.
    """
    one, two = (Trial(QUEUES, taken_once("y_in"), buffers=buffers) for buffers in (1, 2))
    assert one.codes == {"tensor-not-freed"} and one.right
    assert "race-war" in two.codes


FORWARD = ("MTE2_V", "V_MTE3")
"""The flags that say "it is there"."""

BACK = ("V_MTE2", "MTE3_V")
"""The flags that say "it is free"."""


@pytest.mark.parametrize("event", FORWARD)
def test_a_flag_forward_left_out(event: str) -> None:
    trial = Trial(FLAGS, without(FLAGS, rf"asc\.(set|wait)_flag\(asc\.HardEvent\.{event}, .*"))
    assert "race-raw" in trial.codes
    assert not trial.right


@pytest.mark.parametrize("event", BACK)
def test_a_flag_back_left_out(event: str) -> None:
    """Whether the numbers are wrong depends on the chip; that they may be is reported on every one."""
    text = without(FLAGS, rf"asc\.(set|wait)_flag\(asc\.HardEvent\.{event}, .*")
    for chip in ("ascend910b1", "toy"):
        trial = Trial(FLAGS, text, chip=chip)
        assert "race-war" in trial.codes
        assert trial.codes <= {"race-war", "race-waw"}  # two loads into one half, too
        assert {finding.tensor[:3] for finding in trial.run.findings} == {"UB["}


def test_no_flag_orders_nothing() -> None:
    """Of the four flags of the second example none is left that a test above has not shown to be needed."""
    text = source(FLAGS)
    used = set(re.findall(r"asc\.HardEvent\.(\w+),", text))
    assert used == {*FORWARD, *BACK}


def single_lines() -> Iterator[tuple[int, str]]:
    for number, line in enumerate(source(FLAGS).splitlines()):
        if re.match(r" +asc\.(set|wait)_flag\(", line):
            yield number, line.strip()


@pytest.mark.parametrize(
    "number", [number for number, _ in single_lines()], ids=[line for _, line in single_lines()]
)
def test_one_flag_call_left_out(number: int) -> None:
    """A set without its wait stays up or is set twice; a wait without its set hangs."""
    lines = source(FLAGS).splitlines(keepends=True)
    is_set = "set_flag" in lines.pop(number)
    trial = Trial(FLAGS, "".join(lines))
    assert trial.kinds & ({"DEADLOCK"} if is_set else {"FLAG_BALANCE"})


def test_the_first_use_and_the_last_are_guarded_too() -> None:
    """Without the flags before the loop and the waits after it, the loop's first wait hangs."""
    text = without(FLAGS, r"asc\.(set|wait)_flag\(asc\.HardEvent\.(V_MTE2|MTE3_V), [01]\)")
    assert Trial(FLAGS, text).kinds == {"DEADLOCK"}
