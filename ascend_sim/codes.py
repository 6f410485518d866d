"""The codes of findings and what their messages say, read from the source: nothing is written down twice."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ascend_sim.errors import KINDS

_ROOT = Path(__file__).resolve().parent.parent

MEANING = {
    "BOUNDS": "an access outside a tensor or a memory",
    "UNINIT": "bytes are read that nothing has written",
    "ALIAS": "operands overlap in a way that the instruction does not allow",
    "LAYOUT": "a tensor is not in the layout that the instruction takes",
    "ALIGNMENT": "an address or a length is not on the boundary that the instruction needs",
    "ILLEGAL_PARAM": "a parameter, or a combination of them, that the instruction does not have",
    "CAPACITY": "more than a memory, a queue or a table of the chip holds",
    "RACE": "two accesses to the same bytes, one of them a write, and nothing orders them",
    "COHERENCE": "the scalar unit's data cache and GM may hold different values",
    "FLAG_BALANCE": "sets and waits of a flag do not match",
    "DEADLOCK": "everything waits for something that cannot come any more",
    "QUEUE": "a buffer of a queue is used against the order alloc, enque, deque, free",
    "STATE": "a setting of the core that has no effect, or is left behind",
    "NUMERIC": "numbers that the hardware cannot represent, or that are not what the library gives",
    "COVERAGE": "part of an output was never written",
    "PERF": "it works, and costs time that it need not",
    "HOST": "the launch or its arguments",
    "INFO": "worth knowing, changes no result of this run",
}
"""Kinds of findings in words."""


ELSEWHERE = {
    "race-raw": "an instruction reads bytes while an earlier one may still be writing them",
    "race-war": "an instruction overwrites bytes while an earlier one may still be reading them",
    "race-waw": "an instruction overwrites bytes while an earlier one may still be writing them",
    "deadlock": "nothing can move any more: who waits where, for which flag, how often it was set",
    "output-not-written": "which rows and columns of an output nothing wrote",
    "heads-not-computed": "which heads nothing wrote, and that there are more heads than vector cores",
    "rows-not-computed": "which rows nothing wrote, and that the lengths add up to fewer rows",
    "differs-from-library": "how many elements differ from the reference, by how much, and the first of them",
    "not-the-adjoint": "how many elements differ from the true adjoint, and why",
    "nan-born": "the first instruction that makes a NaN of numbers, what it read, how far the NaN has come",
    "infinity-born": "the first instruction that makes an infinity of finite numbers, and what it read",
    "accumulator-stalls": "a sum that additions do not change any more, since how many of them, and its type",
    "first-difference": "the first stage that departs from a reference, its values and what it read",
    "cast-overflow": "a cast of numbers above the largest of its type, and how far what comes of that reaches",
    "cast-underflow": "a cast of numbers so small that the type has no digits for them, and how far that comes",
    "half-accumulation": "a sum in 16 bits that departs from the same sum in float32, and how far that comes",
    "precision-loss": "the first result that departs from float32 by more than roundings explain, and why",
    "output-differs": "where an output is not its reference, and the lines that only wrong elements come through",
    "mismatch": "how many elements differ, by how much, in which pattern, the first of them, and what that looks like",
    "discontinuous": "all that differs comes from numbers within some ulp of a step",
    "tiling-failed": "the tiling refuses these sizes: the kernel does not run",
    "…-limit": "a parameter is outside the range that its field has; the code begins with the parameter's name",
}
"""What the messages say that are put together from several places."""


@cache
def finding_codes() -> dict[tuple[str, str], list[str]]:
    """Return what the source says about each (kind, code): its messages, with … for what is filled in.

    A code is found where its kind and it stand side by side, in a call or a tuple; in a call of one of `HOSTS`;
    and in a function that makes a finding of a variable `code`, where that is assigned.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for package in ("isa", "ascend_sim", "ops"):
        for path in sorted((_ROOT / package).rglob("*.py")):
            if path.name == "errors.py":
                continue  # there stand the defaults of errors without a finding
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                for kind, code, message in (*_mentions(node), *_assigned(node)):
                    messages = found.setdefault((kind, code), [])
                    said = ELSEWHERE.get(code, message)
                    if said and said not in messages:
                        messages.append(said)
    return found


HOSTS = ("_host", "host_error")
"""Functions that take a code and a message of kind HOST."""


def _mentions(node: ast.AST) -> Iterator[tuple[str, str, str]]:
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in HOSTS and node.args:
        parts: list[ast.expr] = [ast.Constant("HOST"), *node.args]
    elif isinstance(node, ast.Call):
        parts = node.args
    elif isinstance(node, ast.Tuple):
        parts = node.elts
    else:
        return
    for index, part in enumerate(parts[:-1]):
        if not (isinstance(part, ast.Constant) and part.value in KINDS):
            continue
        code = _text(parts[index + 1])
        if code in KINDS or not re.fullmatch(r"[a-z…][a-z0-9…-]+", code):
            continue  # a list of kinds, or a code that is in a variable
        message = _text(parts[index + 2]) if index + 2 < len(parts) else ""
        for whole in SPELT_OUT.get(code, (code,)):
            yield str(part.value), whole, message


SPELT_OUT = {
    "race-…": ("race-raw", "race-war", "race-waw"),
    "race-blocks-…": ("race-blocks-raw", "race-blocks-war", "race-blocks-waw"),
}
"""Codes that are partly filled in, and all that they may become."""


def _assigned(node: ast.AST) -> Iterator[tuple[str, str, str]]:
    if not isinstance(node, ast.FunctionDef):
        return
    kinds = {
        str(call.args[0].value)
        for call in ast.walk(node)
        if isinstance(call, ast.Call)
        and len(call.args) > 1
        and isinstance(call.args[0], ast.Constant)
        if call.args[0].value in KINDS and getattr(call.args[1], "id", "") == "code"
    }
    for assign in ast.walk(node):
        if kinds and isinstance(assign, ast.Assign):
            target, value = assign.targets[0], assign.value
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                target, value = target.elts[0], value.elts[0]
            if getattr(target, "id", "") == "code" and _text(value):
                for kind in kinds:
                    yield kind, _text(value), ""


def _text(node: ast.expr) -> str:
    """Return a string as it stands in the source, with … for what is filled in; "" for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = [_text(v) if isinstance(v, ast.Constant) else "…" for v in node.values]
        return "".join(parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + (_text(node.right) or "…")
    return ""
