"""A kernel's source as something to change: its statements, edits of them, and running functions with edited code.

Nothing is written to disk: the functions of a file get other code for as long as a trial lasts. Lines keep their
numbers, so what a trial finds is where it was.
"""

from __future__ import annotations

import ast
import copy
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import CodeType, FunctionType

from ascend_sim.lang.iteration import loops_in

Key = tuple[int, int]
"""A statement of a file: its line and column."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of a file. `how` is "before", "after" (insert `text`), "drop", "replace" (by `text`), "swap" or
    "move" (behind the statement at `other`).
    """

    file: str
    at: Key
    how: str
    text: str = ""
    other: Key = (0, 0)

    @property
    def line(self) -> int:
        """The line that it is about."""
        return self.at[0]


class Source:
    """One file: its statements by place, in order."""

    def __init__(self, file: str, tree: ast.Module | None = None) -> None:
        self.file = file
        self.tree = tree or ast.parse(Path(file).read_text(encoding="utf-8"), file)

    def changed(self, edit: Edit) -> Source:
        """Return the source as it is after an edit; what stands on other lines keeps its place."""
        return Source(self.file, self.edited((edit,)))

    @cached_property
    def _parents(self) -> dict[Key, tuple[list[ast.stmt], ast.AST]]:
        found: dict[Key, tuple[list[ast.stmt], ast.AST]] = {}
        for owner in ast.walk(self.tree):
            for body in bodies(owner):
                for statement in body:
                    found[key_of(statement)] = body, owner
        return found

    @cached_property
    def statements(self) -> dict[Key, ast.stmt]:
        """All statements by their places."""
        return {
            key_of(statement): statement for body, _ in self._parents.values() for statement in body
        }

    def body_of(self, key: Key) -> list[ast.stmt]:
        """Return the list of statements that a statement stands in."""
        return self._parents[key][0]

    def owner_of(self, key: Key) -> ast.AST:
        """Return the loop, branch, function or module that a statement stands in."""
        return self._parents[key][1]

    def function_of(self, key: Key) -> ast.FunctionDef | None:
        """Return the innermost function around a statement."""
        owner: ast.AST = self.owner_of(key)
        while not isinstance(owner, (ast.FunctionDef, ast.Module)):
            owner = self.owner_of(key_of(owner)) if isinstance(owner, ast.stmt) else self.tree
        return owner if isinstance(owner, ast.FunctionDef) else None

    def loops_around(self, key: Key) -> list[Key]:
        """Return the loops of its function around a statement, the innermost first."""
        found = []
        owner = self.owner_of(key)
        while isinstance(owner, ast.stmt) and not isinstance(owner, ast.FunctionDef):
            found += [key_of(owner)] if isinstance(owner, (ast.For, ast.While)) else []
            owner = self.owner_of(key_of(owner))
        return found

    def at_line(self, line: int) -> Key | None:
        """Return the innermost statement on a line (a call may go over several)."""
        found: list[ast.stmt] = [
            statement
            for statement in self.statements.values()
            if statement.lineno <= line <= (statement.end_lineno or statement.lineno)
        ]
        if not found:
            return None
        return key_of(max(found, key=lambda one: (one.lineno, -(one.end_lineno or 0))))

    def words(self, key: Key) -> str:
        """Return a statement as one line of source."""
        return ast.unparse(self.statements[key])

    def edited(self, edits: tuple[Edit, ...]) -> ast.Module:
        """Return the file's tree with the edits made. Raises ValueError where one cannot be made."""
        tree = copy.deepcopy(self.tree)
        there: dict[Key, tuple[list[ast.stmt], ast.stmt]] = {}
        for owner in ast.walk(tree):
            for body in bodies(owner):
                there.update({key_of(one): (body, one) for one in body})
        for edit in edits:
            _make(edit, there)
        return ast.fix_missing_locations(tree)


def _make(edit: Edit, there: dict[Key, tuple[list[ast.stmt], ast.stmt]]) -> None:
    body, statement = there[edit.at]
    place = _place_of(statement, body)
    new = ast.parse(edit.text).body if edit.text else []
    for one in new:
        for node in ast.walk(one):
            if isinstance(node, (ast.stmt, ast.expr, ast.keyword)):
                node.lineno = node.end_lineno = statement.lineno
                node.col_offset = node.end_col_offset = statement.col_offset
    if edit.how == "before":
        body[place:place] = new
    elif edit.how == "after":
        body[place + 1 : place + 1] = new
    elif edit.how in ("drop", "replace"):
        body[place : place + 1] = new or [ast.copy_location(ast.Pass(), statement)]
    else:
        body2, statement2 = there[edit.other]
        place2 = _place_of(statement2, body2)
        if edit.how == "swap":
            body[place], body2[place2] = statement2, statement
            return
        body2.insert(place2 + 1, statement)
        place += body is body2 and place2 < place
        body[place : place + 1] = (
            [] if len(body) > 1 else [ast.copy_location(ast.Pass(), statement)]
        )


def _place_of(statement: ast.stmt, body: list[ast.stmt]) -> int:
    for place, one in enumerate(body):
        if one is statement:
            return place
    raise ValueError("an edit before this one has taken the statement away")


def key_of(statement: ast.stmt) -> Key:
    """Return a statement's place."""
    return statement.lineno, statement.col_offset


def bodies(owner: ast.AST) -> Iterator[list[ast.stmt]]:
    """Return the lists of statements that belong to a node."""
    for name in ("body", "orelse", "finalbody"):
        body = getattr(owner, name, None)
        if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
            yield body


# ---- running what was edited ----------------------------------------------------------------


class Workshop:
    """The living functions of some files, which can be given other code for a while."""

    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}
        self._functions: dict[str, list[FunctionType]] = {}

    def source(self, file: str) -> Source | None:
        """Return a file's source; None for what is no readable Python file."""
        if file not in self._sources:
            try:
                self._sources[file] = Source(file)
            except (OSError, SyntaxError, UnicodeDecodeError):
                return None
        return self._sources[file]

    def functions(self, file: str) -> list[FunctionType]:
        """Return the functions that were made from a file."""
        if file not in self._functions:
            self._functions[file] = [
                one
                for one in gc.get_objects()
                if isinstance(one, FunctionType) and one.__code__.co_filename == file
            ]
        return self._functions[file]

    @contextmanager
    def with_edits(self, edits: tuple[Edit, ...]) -> Iterator[None]:
        """Let the functions of the edited files run as edited. Raises ValueError or SyntaxError where they cannot."""
        kept: list[tuple[FunctionType, CodeType]] = []
        try:
            for file in dict.fromkeys(edit.file for edit in edits):
                source = self.source(file)
                assert source is not None
                tree = source.edited(tuple(edit for edit in edits if edit.file == file))
                codes = _codes(compile(tree, file, "exec", dont_inherit=True))
                unrolled: dict[str, CodeType | None] | None = None
                for function in self.functions(file):
                    code = function.__code__
                    new = codes.get((code.co_qualname, code.co_firstlineno))
                    if (code.co_qualname, code.co_firstlineno) not in codes:  # compiled anew by jit
                        if unrolled is None:
                            unrolled = _by_name(
                                compile(loops_in(tree), file, "exec", dont_inherit=True)
                            )
                        new = unrolled.get(function.__qualname__)
                    if new is not None:
                        kept.append((function, code))
                        function.__code__ = new
            yield
        finally:
            for function, code in kept:
                function.__code__ = code


def _by_name(module: CodeType) -> dict[str, CodeType | None]:
    """Return the code of each function by its name; None where two have the same."""
    found: dict[str, CodeType | None] = {}
    for (name, _), code in _codes(module).items():
        found[name] = None if name in found else code
    return found


def _codes(module: CodeType) -> dict[tuple[str, int], CodeType | None]:
    """Return the code of each function by its name and line; None where two have the same."""
    found: dict[tuple[str, int], CodeType | None] = {}
    waiting = [module]
    while waiting:
        for constant in waiting.pop().co_consts:
            if isinstance(constant, CodeType):
                key = (constant.co_qualname, constant.co_firstlineno)
                found[key] = None if key in found else constant
                waiting.append(constant)
    return found
