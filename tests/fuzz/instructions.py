"""Random calls of every instruction: its example program with other values in the call that it is about.

What may come of one: an error of the simulator with a message for people, or a run. A run without findings has
touched nothing but its output, and gives the same under a hostile timing. Anything else is a fault of the simulator.
"""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import ascend_sim as sim
from ascend_sim.errors import AscendSimError, KernelError, SimulatorBug
from ascend_sim.hostile import Timing
from ascend_sim.instructions.example import Example
from ascend_sim.stage import Rehearsal, rehearsing

NUMBERS = (
    0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 64, 127, 128, 129, 255, 256, 257, 4095, 65535, 65536, 1 << 31,
    1 << 32, 1 << 40, 1 << 64, -1, -2, -32, -(1 << 31), -(1 << 63),
)  # fmt: skip
ODD: tuple[Any, ...] = (
    None, True, False, 0.0, 0.5, -1.5, 1e30, -1e300, float("nan"), float("inf"), "", "x", "float16", (), [], [1, 2], {},
    b"x", 1j, object,
)  # fmt: skip
DTYPES = (
    "float16",
    "float32",
    "bfloat16",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
)


@dataclass(frozen=True)
class Attempt:
    """A program with a changed call: its text, and the function that launches it."""

    name: str
    line: str
    source: str
    example: Example


def attempts(name: str, example: Example, seed: int, number: int) -> Iterator[Attempt]:
    """Yield programs with one to three values of the call replaced."""
    draw = random.Random(f"{seed} {name}")
    body = list(example.body)
    where = body.index(example.about) if example.about in body else None
    if where is None:
        return
    names = [array.name for array in example.arrays]
    tensors = [f"{one}_gm" for one in names] + [
        target.id
        for line in body[:where]
        for node in _parsed(line)
        if isinstance(node, ast.Assign) and "LocalTensor" in ast.unparse(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    for _ in range(number):
        line = _changed(example.about, draw, tensors)
        if line is None:
            continue
        text = Example(
            example.arrays,
            (*body[:where], line, *body[where + 1 :]),
            line,
            example.check,
            example.kernel_type,
            example.blocks,
        ).text
        yield Attempt(name, line, text, example)


def _parsed(line: str) -> list[ast.stmt]:
    try:
        return ast.parse(line.strip()).body
    except SyntaxError:  # the head of a loop
        return []


def _changed(line: str, draw: random.Random, tensors: list[str]) -> str | None:
    """Return the line with some arguments of its call replaced."""
    indent = line[: len(line) - len(line.lstrip())]
    body = _parsed(line)
    if not body:
        return None
    tree = copy.deepcopy(body[0])
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if not calls:
        return None
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        call = draw.choice(calls)
        places: list[tuple[list[Any], int]] = [(call.args, n) for n in range(len(call.args))]
        kind = draw.random()
        if kind < 0.05 and call.args:
            del call.args[draw.randrange(len(call.args))]
        elif kind < 0.08:
            call.args.append(_value(draw, tensors))
        elif kind < 0.1 and all(one.arg != "nonsense" for one in call.keywords):
            call.keywords.append(ast.keyword("nonsense", ast.Constant(1)))
        elif call.keywords and (kind < 0.4 or not places):
            draw.choice(call.keywords).value = _value(draw, tensors)
        elif places:
            arguments, place = draw.choice(places)
            arguments[place] = _value(draw, tensors)
    return indent + ast.unparse(ast.fix_missing_locations(tree))


def _value(draw: random.Random, tensors: list[str]) -> ast.expr:
    kind = draw.random()
    if kind < 0.5:
        return ast.Constant(draw.choice(NUMBERS))
    if kind < 0.6:
        return ast.Constant(draw.randint(-70000, 70000))
    if kind < 0.75:
        value = draw.choice(ODD)
        return ast.Name("object") if value is object else ast.parse(_literal(value)).body[0].value  # type: ignore[attr-defined,no-any-return]
    if kind < 0.8:
        return ast.parse(f"asc.{draw.choice(DTYPES)}").body[0].value  # type: ignore[attr-defined,no-any-return]
    name = draw.choice(tensors) if tensors else "None"
    text = name if draw.random() < 0.6 else f"{name}[{draw.choice((1, 8, 16, 100, 5000, -1))}:]"
    return ast.parse(text).body[0].value  # type: ignore[attr-defined,no-any-return]


def _literal(value: Any) -> str:
    if isinstance(value, float) and not np.isfinite(value):
        return f"float('{value}')"
    return repr(value)


def trouble(attempt: Attempt) -> str:
    """Run an attempt; return what is wrong with the simulator's answer, "" where nothing is."""
    namespace: dict[str, Any] = {}
    code = compile(
        attempt.source.partition("\n\n\n" + attempt.example.arrays[0].line)[0], "<fuzz>", "exec"
    )
    exec(code, namespace)
    arrays = _arrays(attempt.example)
    before = [array.copy() for array in arrays]
    again: list[bool] = []

    def compare(rehearsal: Rehearsal) -> None:
        if rehearsal.failure is None and not rehearsal.run.findings:
            late = rehearsal.again(Timing(1).machine({}))
            same = all(np.array_equal(late.data[key], rehearsal.after[key]) for key in late.data)
            again.append(same and late.error is None)

    try:
        with rehearsing(compare):
            run = _launch(namespace["kernel"], arrays, attempt.example)
    except SimulatorBug as error:
        return f"a bug by its own word: {error}"
    except AscendSimError as error:
        if not str(error).strip():
            return "an error without a message"
        unnamed = isinstance(error, KernelError) and not error.finding.code
        return "an error without a code" if unnamed else ""
    except Exception as error:
        return f"{type(error).__name__} from inside: {error}"
    if run.findings:
        return (
            ""
            if all(one.message.strip() and one.code for one in run.findings)
            else "a finding without words"
        )
    if again == [False] and "get_system_cycle" not in attempt.source:
        return "no finding, and the result depends on time"
    written = {id(array) for array in run.outputs}
    for array, old in zip(arrays, before, strict=True):
        if id(array) not in written and array.tobytes() != old.tobytes():
            return "an input was changed"
    return ""


def _arrays(example: Example) -> list[Any]:
    import ml_dtypes

    space: dict[str, Any] = {"np": np, "ml_dtypes": ml_dtypes}
    for array in example.arrays:
        exec(array.line, space)
    return [space[array.name] for array in example.arrays]


def _launch(kernel: Callable[..., Any], arrays: list[Any], example: Example) -> sim.Run:
    options = {"kernel_type": example.kernel_type} if example.kernel_type else {}
    return sim.launch(kernel, *arrays, cores=example.blocks, chip="toy", **options)
