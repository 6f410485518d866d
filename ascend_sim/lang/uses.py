"""What a kernel uses, told from its code without running it."""

from __future__ import annotations

import inspect
from types import CodeType, FunctionType, ModuleType
from typing import Any

_LIBRARIES = ("ascend_sim", "isa", "asc", "numpy", "torch")


def mentions(function: Any, name: str) -> bool:
    """Return whether a function's code, or that of functions of the program that it names, names something."""
    return _mentions(function, name, set())


def _mentions(function: Any, name: str, seen: set[int]) -> bool:
    function = getattr(function, "function", function)
    if not isinstance(function, FunctionType) or id(function) in seen:
        return False
    if str(function.__module__).partition(".")[0] in _LIBRARIES:
        return False
    seen.add(id(function))
    names: set[str] = set()
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        names |= set(code.co_names)
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    if name in names:
        return True
    spaces = [function.__globals__]
    spaces += [
        vars(part)
        for part in map(function.__globals__.get, names)
        if isinstance(part, ModuleType) and part.__name__.partition(".")[0] not in _LIBRARIES
    ]
    called = [space[one] for space in spaces for one in names if one in space]
    called += inspect.getclosurevars(function).nonlocals.values()
    return any(_mentions(one, name, seen) for one in called)
