"""Mutants: one statement of a kernel dropped, doubled, moved, or given another id, pipe, address or stride.

Statements are those of synchronisation (flags, barriers, cross-core flags, calls of queues) and the operands of
instructions: where a view begins, what a stride or a length is. A mutant is an edit of the source, so that one line
is one mutant however often it runs.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

from ascend_sim.doctor.parts import CallPart, call_part
from ascend_sim.doctor.source import Edit, Source, key_of
from isa.types import HardEvent, Pipe

FLAGS = ("set_flag", "wait_flag")
CROSS = ("cross_core_set_flag", "cross_core_wait_flag")
SYNC = (*FLAGS, "pipe_barrier", *CROSS, "sync_all", "hand_over", "then_barrier")
QUEUE = ("alloc_tensor", "enque", "deque", "free_tensor")
STRIDES = (
    "DataCopyParams", "DataCopyExtParams", "UnaryRepeatParams", "BinaryRepeatParams", "Nd2NzParams", "LoadData2DParams",
    "FixpipeParamsV220", "MmadParams", "CopyRepeatParams", "BrcbRepeatParams", "GatherMaskParams",
)  # fmt: skip
"""Records whose numbers are counts, lengths and strides."""
ELEMENTS = 16
"""By how much an address is moved: a 32-byte block of float16, two of float32."""


@dataclass(frozen=True)
class Mutant:
    """An edit, the family it belongs to ("flag", "barrier", "cross", "queue", "address", "stride") and its kind."""

    edit: Edit
    family: str
    kind: str
    words: str

    @property
    def name(self) -> str:
        """Name it independently of line numbers: the statement and what became of it."""
        return f"{self.kind}: {self.words}"


def mutants_of(source: Source, lines: set[int]) -> Iterator[Mutant]:
    """Yield the mutants of all statements of a file that a run has come to, by their lines."""
    for key, statement in sorted(source.statements.items()):
        last = statement.end_lineno or statement.lineno
        if source.function_of(key) is None or not lines.intersection(range(key[0], last + 1)):
            continue
        part = call_part(statement)
        if part is not None and part.name in (*SYNC, *QUEUE):
            yield from _of_sync(source, part)
        if isinstance(statement, (ast.Expr, ast.Assign)):
            yield from _of_operands(source, statement)


def _of_sync(source: Source, part: CallPart) -> Iterator[Mutant]:
    family = (
        "queue" if part.name in QUEUE
        else "cross" if part.name in (*CROSS, "sync_all")
        else "barrier" if part.name in ("pipe_barrier", "then_barrier")
        else "flag"
    )  # fmt: skip
    words = source.words(part.key)

    def mutant(kind: str, how: str, text: str = "", other: tuple[int, int] = (0, 0)) -> Mutant:
        return Mutant(Edit(source.file, part.key, how, text, other), family, kind, words)

    if part.name == "then_barrier":  # an instruction and a barrier behind it
        first, _, rest = part.arguments.partition(", ")
        yield mutant("dropped", "replace", f"{first}({rest})")
        return
    yield mutant("dropped", "drop")
    yield mutant("doubled", "after", words)
    body = source.body_of(part.key)
    place = next(n for n, one in enumerate(body) if one is source.statements[part.key])
    for kind, step in (("moved up", -1), ("moved down", 1)):
        if 0 <= place + step < len(body):
            other = body[place + step]
            if not isinstance(other, (ast.Return, ast.FunctionDef)):
                pair = sorted([part.key, key_of(other)])
                yield mutant(kind, "swap", other=pair[1] if pair[0] == part.key else pair[0])
    if part.name in FLAGS:
        yield from _of_flag(mutant, part)
    elif part.name == "pipe_barrier" and "PIPE_" in part.arguments:
        before, _, pipe = part.arguments.rpartition("PIPE_")
        wrong = "MTE2" if pipe != "MTE2" else "MTE3"
        text = CallPart(part.key, part.name, part.of, f"{before}PIPE_{wrong}").text(part.name)
        yield mutant("wrong pipe", "replace", text)
    elif part.name in CROSS:
        first, *rest = part.arguments.split(", ")
        changed = ", ".join([f"({first} + 1) % 11", *rest]) if "=" not in first else None
        if changed is not None:
            yield mutant(
                "wrong id", "replace", CallPart(part.key, "", part.of, changed).text(part.name)
            )


def _of_flag(mutant, part: CallPart) -> Iterator[Mutant]:  # type: ignore[no-untyped-def]
    event, _, number = part.arguments.rpartition(", ")
    if not event:
        return
    other_id = CallPart(part.key, "", part.of, f"{event}, ({number} + 1) % 8").text(part.name)
    yield mutant("wrong id", "replace", other_id)
    owner, _, name = event.rpartition(".")
    if name not in HardEvent.__members__:
        return
    source, target = name.split("_")
    end = target if part.name == "set_flag" else source
    for pipe in Pipe.__members__:
        wrong = f"{source}_{pipe}" if part.name == "set_flag" else f"{pipe}_{target}"
        if pipe not in (source, target, end) and wrong in HardEvent.__members__:
            text = CallPart(part.key, "", part.of, f"{owner}.{wrong}, {number}").text(part.name)
            yield mutant("wrong pipe", "replace", text)
            return


def _of_operands(source: Source, statement: ast.Expr | ast.Assign) -> Iterator[Mutant]:
    """Yield the mutants of addresses and strides in one statement."""
    key = key_of(statement)
    words = source.words(key)
    count = sum(1 for _ in _numbers(statement))
    for number in range(count):
        changed = copy.deepcopy(statement)
        family, what, node = list(_numbers(changed))[number]
        old = ast.unparse(node)
        step = ELEMENTS if family == "address" else 1
        _put(changed, node, ast.BinOp(copy.deepcopy(node), ast.Add(), ast.Constant(step)))
        text = ast.unparse(ast.fix_missing_locations(changed))
        kind = f"{family} {what} {old} + {step}"
        yield Mutant(Edit(source.file, key, "replace", text), family, kind, words)


def _numbers(statement: ast.stmt) -> Iterator[tuple[str, str, ast.expr]]:
    """Yield the starts of views, the addresses of tensors, and the numbers of strides in a statement."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            if (
                isinstance(node.ctx, ast.Load)
                and node.slice.lower is not None
                and node.slice.upper is None
            ):
                yield "address", f"of {ast.unparse(node.value)}", node.slice.lower
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in STRIDES:
                for place, argument in enumerate(node.args):
                    if not _is_switch(argument):
                        yield "stride", f"{name}[{place}]", argument
                for word in node.keywords:
                    if word.arg is not None and not _is_switch(word.value):
                        yield "stride", f"{name}.{word.arg}", word.value
            elif name == "LocalTensor" and len(node.args) >= 3:
                yield "address", "of a LocalTensor", node.args[2]


SWITCHES = ("unit_flag", "cmatrix", "if_transpose", "relu", "quant", "True", "False", "None", "==")


def _is_switch(node: ast.expr) -> bool:
    """Return whether an argument is no number: a truth value, a comparison, a mode."""
    if isinstance(node, (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.IfExp, ast.Starred)):
        return True
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bool) or not isinstance(node.value, int)
    return any(word in ast.unparse(node) for word in SWITCHES) or (
        isinstance(node, ast.Attribute) and node.attr.isupper()
    )


def _put(statement: ast.stmt, old: ast.expr, new: ast.expr) -> None:
    """Put a node in the place of another."""
    for parent in ast.walk(statement):
        for field, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, field, new)
                return
            if isinstance(value, list):
                for place, one in enumerate(value):
                    if one is old:
                        value[place] = new
                        return
