"""What a launch says about a kernel: which function, which element types and constants it is specialised for."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from ascend_sim.errors import ConfigError
from ascend_sim.lang.jit import Kernel
from ascend_sim.lang.structs import Struct
from ascend_sim.launch import on_launch
from isa.types import DType, dtype_of

Value = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Specialisation:
    """One kernel with the types of one launch's arguments, in words that JSON knows."""

    kernel: str
    file: Path
    line: int
    module: str
    values: tuple[Value, ...]
    blocks: int
    options: dict[str, Any]


class Recorded(BaseException):
    """Ends a program at the launch that was waited for: kernel, arguments, blocks. No error, so nothing catches it."""


def record(program: Callable[[], Any], kernel: str | None) -> Specialisation | None:
    """Run a program up to its first launch, or the first of `kernel`, and return what that says.

    Launches before that one are simulated. None where the program ends without such a launch.
    """

    def listen(launched: Any, args: tuple[Any, ...], blocks: int) -> None:
        if kernel in (None, getattr(launched, "__name__", None)):
            raise Recorded(launched, args, blocks)

    on_launch.append(listen)
    try:
        program()
    except Recorded as recorded:
        return specialise(*recorded.args)
    finally:
        on_launch.remove(listen)
    return None


def specialise(kernel: Any, args: tuple[Any, ...], blocks: int) -> Specialisation:
    """Describe a launch. Raises `ConfigError` for a kernel or an argument that pyasc cannot be given."""
    if not isinstance(kernel, Kernel):
        name = getattr(kernel, "__name__", "the kernel")
        raise ConfigError(f"{name} is a plain function: put @asc.jit before it to export it")
    function = kernel.function
    code: CodeType = function.__code__
    name = function.__name__
    if "<locals>" in function.__qualname__:
        outer = function.__qualname__.partition(".")[0]
        raise ConfigError(
            f"{code.co_filename}:{code.co_firstlineno}: {name} is defined inside {outer}; pyasc translates functions "
            "that stand at the top of a file: move it there"
        )
    if not Path(code.co_filename).is_file():
        raise ConfigError(f"{name} comes from {code.co_filename}: export needs it in a file")
    parameters = list(inspect.signature(function).parameters)
    values = tuple(
        {"name": parameter, **describe(parameter, value)}
        for parameter, value in zip(parameters, args, strict=False)
    )
    return Specialisation(
        name,
        Path(code.co_filename).resolve(),
        code.co_firstlineno,
        "exported" if function.__module__ == "__main__" else function.__module__,
        values,
        int(blocks),
        {option: getattr(value, "name", value) for option, value in kernel.options.items()},
    )


def describe(parameter: str, value: Any) -> Value:
    """Return an argument as the order's word for it. Raises `ConfigError` for what pyasc cannot be given."""
    if isinstance(value, DType):
        return {"kind": "dtype", "value": value.name}
    if isinstance(value, enum.Enum):
        return {"kind": "enum", "value": f"{type(value).__name__}.{value.name}"}
    if value is None or type(value) in (bool, int, float, str):
        return {"kind": "plain", "value": value}
    if isinstance(value, np.generic):
        return {"kind": "number", "type": value.dtype.name, "value": value.item()}
    if isinstance(value, (tuple, list)):
        return {"kind": "tuple", "value": [describe(parameter, part) for part in value]}
    dtype = getattr(value, "dtype", None)
    if dtype is not None and hasattr(value, "shape"):
        return {"kind": "tensor", "value": _element_type(dtype)}
    if isinstance(value, Struct):
        fields = {name: getattr(value, name) for name in value.struct_fields}
    else:
        fields = getattr(value, "__dict__", None) or _slots(value)
    if fields:
        inner = {k: describe(f"{parameter}.{k}", v) for k, v in fields.items() if k[0] != "_"}
        return {"kind": "struct", "type": type(value).__name__, "value": inner}
    raise ConfigError(
        f"argument {parameter} is of type {type(value).__name__}, which pyasc cannot be given"
    )


def _element_type(dtype: Any) -> str:
    text = str(dtype)
    if text.startswith("torch."):
        return text.removeprefix("torch.")
    return dtype_of(np.dtype(dtype)).name


def _slots(value: Any) -> dict[str, Any]:
    names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    return {name: getattr(value, name) for name in names if hasattr(value, name)}
