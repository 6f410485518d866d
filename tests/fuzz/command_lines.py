"""Random command lines: every command with its own options, given values that are right, odd or wrong.

A command answers with one of the documented exit codes, a message where it is not 0, and no traceback.
"""

from __future__ import annotations

import contextlib
import io
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import typer.main

from ascend_sim.cli.app import app
from ascend_sim.tuning.task import Task, evaluate
from ops import list_operators

CODES = range(6)
WORDS = (
    "", " ", "-", "--", "-1", "0", "1", "2", "3", "255", "1e9", "99999999999999999999", "1.5", "nan", "inf", "true",
    "on", "off", "exact", "cold", "warm", "error", "collect", "toy", "toi", "ascend910b1", "ascend910b9", "x", "X=1",
    "BUFFER_NUM=2", "BUFFER_NUM=", "=", "N=1,2", "1,2", "1,,2", "a:b:c", "1:9:2", "2^1..2^3", "mte2", "sync,l2",
    "total:+2%", "total:", "kernel.py", "kernel.py:3", "missing.py", "folder", "..", "/", "/dev/null", "add",
    "race-raw",
    "rope_grad", "laser_attention_grad", "BNSD", "SBH", "none", "causal", "fp16", "bf16", "[bold]", "%s", "{0}", "\\",
    "é", "加", "a" * 300, "\u202e", "done", "done", "other", "chip.yaml", "cases.yaml", "numbers.npz",
)  # fmt: skip
RIGHT: dict[str, tuple[str, ...]] = {
    "--chip": ("toy", "ascend910b1", "ascend910_93", "chip.yaml"), "--set": ("N=64", "N=64,128", "BUFFER_NUM=1,2"),
    "--space": ("N=64,128", "BUFFER_NUM=1,2", "N=64:256:64"), "--seed": ("0", "7"), "--cores": ("1", "2"),
    "--ideal": ("mte2", "sync,l2", "mte3"), "--line": ("kernel.py:20", "kernel.py:24"),
    "--code": ("race-raw", "0x800000"),
    "--fail-on": ("total:+2%", "aiv.MTE2:+1%"), "--kernel": ("add",), "--reference": ("numbers.npz",),
    "--out": ("there", "there.cpp"), "--objective": ("time", "time,ub"), "--budget": ("1", "2"),
    "--adversary": ("1", "2"), "--workers": ("1",), "--family": ("reduce_doc",), "--seq": ("3,1", "128"),
}  # fmt: skip
"""Values of options that are right with some target."""
NEVER = ("--setup", "--scheduler", "--python", "--help")
"""Options that build an environment, look for another machine, or start any program."""
SMALL = {
    "rope_grad": ["--seq", "3,1", "--hidden", "128", "--cores", "2"],
    "laser_attention_grad": ["--seq", "128", "--heads", "1", "--cores", "1", "--numerics", "off"],
    "kernel.py": [],
}
"""Targets with options that keep them small; later ones of the same name win over these."""


def commands() -> dict[str, Any]:
    """Return the program's commands by name."""
    group = typer.main.get_command(app)
    return dict(group.commands)  # type: ignore[attr-defined]


def command_lines(seed: int, number: int) -> Iterator[list[str]]:
    """Yield random command lines."""
    draw = random.Random(seed)
    known = commands()
    operator = sorted({f"--{one.name}" for spec in list_operators() for one in spec.options})
    for _ in range(number):
        name = draw.choice(sorted(known))
        yield _line(draw, name, known[name], operator)


def _line(draw: random.Random, name: str, command: Any, operator: list[str]) -> list[str]:
    line = [name]
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [
        one
        for one in command.params
        if one.param_type_name == "option" and not set(one.opts) & set(NEVER)
    ]
    target = None
    if name == "accuracy":
        line += ["--cases", draw.choice(["cases.yaml", "cases.yaml", draw.choice(WORDS)])]
        options = [one for one in options if one.name != "cases"]
    for argument in arguments:
        if argument.name == "target":
            target = draw.choice(
                ["kernel.py", "kernel.py", "rope_grad", *SMALL, draw.choice(WORDS)]
            )
            line += [target, *SMALL.get(target, [])]
        elif argument.name != "arguments" and (argument.required or draw.random() < 0.6):
            line.append(draw.choice(_RUNS if name in WITH_RUNS and draw.random() < 0.7 else WORDS))
    for _ in range(draw.choice((0, 1, 1, 2, 3))):
        if target is not None and draw.random() < 0.3:
            line += [draw.choice(operator), draw.choice(WORDS)]
        elif options:
            option = draw.choice(options)
            line.append(draw.choice(option.opts))
            if not getattr(option, "is_flag", False):
                line.append(_value(draw, line[-1], option))
    if draw.random() < 0.1:
        line.insert(draw.randint(1, len(line)), draw.choice(WORDS))
    return line


_RUNS = ("done", "other")
WITH_RUNS = ("report", "diff", "explain", "what-if")


def _value(draw: random.Random, name: str, option: Any) -> str:
    """Return a value of an option: mostly one that it could have."""
    right = RIGHT.get(name, ())
    words = option.metavar or ""
    if "|" in words:
        right = tuple(words.split("|"))
    return draw.choice(right if right and draw.random() < 0.6 else WORDS)


def is_small(line: list[str]) -> bool:
    """Return whether a command line asks for no large problem: the last value of an option holds."""
    for option, most in (("--seq", 600), ("--heads", 4), ("--batch", 4), ("--kv-seq", 600), ("--hidden", 4096),
                         ("--adversary", 5), ("--max-seq", 5000), ("--rows", 5000), ("--cores", 100)):  # fmt: skip
        values = [line[n + 1] for n, word in enumerate(line[:-1]) if word == option]
        values += [word.partition("=")[2] for word in line if word.startswith(f"{option}=")]
        for value in values:
            numbers = [part for part in value.split(",") if part.strip().lstrip("+-").isdigit()]
            if any(int(part) > most for part in numbers):
                return False
    return True


KERNEL = """
import numpy as np
import asc

N = 256


@asc.jit(auto_sync=False)
def add(x: asc.GlobalAddress, z: asc.GlobalAddress):
    x_gm, z_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    z_gm.set_global_buffer(z)
    a = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 256)
    asc.data_copy(a, x_gm, 256)
    asc.set_flag(asc.HardEvent.MTE2_MTE3, 0)
    asc.wait_flag(asc.HardEvent.MTE2_MTE3, 0)
    asc.data_copy(z_gm, a, 256)


x, z = np.ones(256, np.float32), np.zeros(256, np.float32)
add[1](x, z)
"""


CASES = """
sources: {reduce_doc: {repository: asc-doc}}
records:
- {id: reduce_doc.fold, family: reduce_doc, grade: B, cores: 1, core_type: AIV, shape: [3000], dtype: float32,
   measured: {fold_ticks_50mhz: 172, repeat_reduce_ticks_50mhz: 242}}
"""


class HereWorkers:
    """The workers of a sweep, in this process: `evaluate` row by row, and no error from inside may be one's reason."""

    size = 1

    def __init__(self, task: Task, _: int) -> None:
        self._task = task

    def __enter__(self) -> HereWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, batches: Any, front: Any = None) -> Iterator[Any]:
        """Run batches as `Workers` do."""
        for batch in batches:
            for point in batch:
                row = evaluate(self._task, point, front=front)
                if row["status"] == "error":
                    raise AssertionError(f"point {point}: {row['reason']}")
                yield point, row


CHIP = """
extends: toy
name: mine
revision: 1
clock_mhz: 900
sources:
  clock_mhz: {source: "chosen", confidence: L}
"""


def prepare(folder: Path) -> None:
    """Put into the present folder what command lines may name: a program, a chip, arrays, two finished runs."""
    (folder / "kernel.py").write_text(KERNEL, encoding="utf-8")
    (folder / "cases.yaml").write_text(CASES, encoding="utf-8")
    (folder / "chip.yaml").write_text(CHIP, encoding="utf-8")
    (folder / "folder").mkdir(exist_ok=True)
    np.savez(folder / "numbers.npz", z=np.ones(256, np.float32))
    for name in _RUNS:
        if not (folder / name / "summary.json").is_file():
            shutil.rmtree(folder / name, ignore_errors=True)
            with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
                app(["run", "kernel.py", "--quiet", "--out", name], prog_name="ascend-sim")
