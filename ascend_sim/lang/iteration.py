"""`with mm.iterate() as count:` is a loop in pyasc: its compiler runs the body once for each block of a product.

Python runs the body of a `with` once. So `asc.jit` compiles a function that has such a statement anew, with
`for count in mm.iterate():` in its place: same file, same lines, same names, so that tracebacks, breakpoints and call
sites are those of the source.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

LOOP = "iterate"
"""The method whose result a `with` goes through."""


class _Loops(ast.NodeTransformer):
    """Turns each `with ….iterate(…) as name:` into a loop."""

    def __init__(self) -> None:
        self.found = False

    def visit_With(self, node: ast.With) -> ast.AST:
        """Replace one statement; what it contains is looked at as well."""
        self.generic_visit(node)
        call = node.items[0].context_expr
        if len(node.items) != 1 or not (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr == LOOP
        ):
            return node
        self.found = True
        target = node.items[0].optional_vars or ast.Name("_", ast.Store())
        loop = ast.For(target=target, iter=call, body=node.body, orelse=[])
        return ast.fix_missing_locations(ast.copy_location(loop, node))


def loops_in(tree: ast.Module) -> ast.Module:
    """Return a module's tree (which is changed) with loops for all of these statements."""
    changed = _Loops().visit(tree)
    assert isinstance(changed, ast.Module)
    return changed


def with_loops(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose `with ….iterate()` are loops; the function itself where it has none, or no source."""
    if not isinstance(function, FunctionType) or LOOP not in function.__code__.co_names:
        return function
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        return function
    tree = ast.parse(textwrap.dedent("".join(lines)))
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        return function
    loops = _Loops()
    definition = loops.visit(definition)
    if not loops.found:
        return function
    definition.decorator_list = []
    code = _compiled(definition, function, first)
    return _same(code, function)


def _compiled(definition: ast.FunctionDef, function: FunctionType, first: int) -> CodeType:
    """Return the code of a changed definition; names of enclosing functions stay those of the original."""
    free = function.__code__.co_freevars
    shell: ast.stmt = definition
    if free:
        arguments = ast.arguments([], [ast.arg(name) for name in free], None, [], [], None, [])
        shell = ast.FunctionDef("_", arguments, [definition], [], None, None)
        if "type_params" in shell._fields:
            setattr(shell, "type_params", [])  # noqa: B010  from Python 3.12 on
    module = ast.fix_missing_locations(ast.Module([shell], []))
    ast.increment_lineno(module, first - 1)
    code = compile(module, function.__code__.co_filename, "exec", dont_inherit=True,
                   flags=function.__code__.co_flags & _FUTURE)  # fmt: skip
    return _find(code, definition.name)


_FUTURE = 0x1000000
"""The flag of `from __future__ import annotations`."""


def _find(code: CodeType, name: str) -> CodeType:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_name == name:
                return constant
            if constant.co_name == "_":
                return _find(constant, name)
    raise AssertionError(f"no code for {name}")


def _same(code: CodeType, function: FunctionType) -> FunctionType:
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    closure = tuple(cells[name] for name in code.co_freevars)
    made = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, closure
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__annotations__ = function.__annotations__
    made.__dict__.update(function.__dict__)
    made.__doc__, made.__module__ = function.__doc__, function.__module__
    made.__qualname__ = function.__qualname__
    return made
