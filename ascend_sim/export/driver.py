"""Translate kernels with pyasc. Runs by itself in pyasc's Python (3.9 to 3.12); it imports nothing of ours.

JSON orders come on standard input (see `front_end.order`), a JSON answer to each leaves on standard output: `cpp`
and `pyasc`, the version, or `error`. The user's file is executed statement by statement with pyasc's `asc`, whichever
way it imports the language. What belongs to the host and fails here (a module that is not installed, a launch) is
passed over and remembered, in case the kernel needs it.
"""

from __future__ import annotations
import __future__

import ast
import functools
import importlib.abc
import importlib.machinery
import importlib.metadata
import inspect
import json
import os
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import asc
import numpy as np
from asc.codegen.function import Function
from asc.codegen.function_visitor import CodegenOptions, FunctionVisitor
from asc.codegen.specialization import Specialization
from asc.common.compat import get_annotations
from asc.language import adv
from asc.language.core import types as structures
from asc.language.core.dtype import DataType
from asc.language.core.ir_value import IRValue
from asc.runtime.compiler import CompileOptions, Compiler
from asc.runtime.config import KernelType, Platform
from asc.runtime.jit import JITFunction, MockTensor


class Refused(Exception):
    """The order cannot be carried out: `about` goes into the answer."""

    def __init__(self, message: str, **about: Any) -> None:
        super().__init__(message)
        self.about = {"message": message, **about}


class Trap(Exception):
    """pyasc would write something else than the kernel says."""


# ---- the user's file ------------------------------------------------------------------------


class _Absent:
    """Stands for whatever this Python does not have: host code may touch it, a kernel cannot use it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self

    def __getitem__(self, _: Any) -> Any:
        return self

    def __mro_entries__(self, _: Any) -> tuple[type, ...]:
        return ()


class _AbsentModule(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Absent()


class _AbsentFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module that nobody else has found."""

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> Any:
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> types.ModuleType:
        return _AbsentModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


@contextmanager
def _absent_modules() -> Iterator[None]:
    """Let modules that are missing be importable meanwhile; pyasc itself looks for torch later."""
    finder = _AbsentFinder()
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [n for n, m in sys.modules.items() if isinstance(m, _AbsentModule)]:
            del sys.modules[name]


def _neutralise_launches() -> None:
    """Let `kernel[blocks](…)` in the host part do nothing: there is no device here."""
    JITFunction.__getitem__ = lambda _self, _where: lambda *_, **__: _Absent()


def _provide_language() -> None:
    """Let `ascend_sim.asc` and all below it be pyasc's modules of these names."""
    ours = _AbsentModule("ascend_sim")
    ours.__path__ = []
    vars(ours).update(asc=asc, pyasc=asc)
    for name in [name for name in sys.modules if name.partition(".")[0] == "asc"]:
        sys.modules[f"ascend_sim.{name}"] = sys.modules[name]
    sys.modules["ascend_sim.pyasc"] = asc
    sys.modules["ascend_sim"] = ours


def load(path: Path, name: str, failures: dict[str, str]) -> types.ModuleType:
    """Execute a file as module `name`; `failures` gets what each name failed with that it could not set."""
    package = name.rpartition(".")[0]
    root = path.parent
    for part in reversed(package.split(".")) if package else ():
        root = root.parent if root.name == part else root
    _make_packages(package, path.parent)
    sys.path[:0] = [str(path.parent), str(root)]
    module = types.ModuleType(name)
    module.__file__, module.__package__ = str(path), package
    sys.modules[name] = module
    text = path.read_text(encoding="utf-8")
    flags = 0
    for node in ast.parse(text, str(path)).body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            for alias in node.names:
                flags |= getattr(__future__, alias.name).compiler_flag
            continue
        code = compile(ast.Module([node], []), str(path), "exec", flags, dont_inherit=True)
        try:
            exec(code, module.__dict__)
        except (Exception, SystemExit) as error:
            said = f"line {node.lineno} failed here: {type(error).__name__}: {error}"
            failures.update(dict.fromkeys(_sets(node), said))
    return module


def _make_packages(package: str, folder: Path) -> None:
    """Make the packages around a file, without running what their own files say: that is host code."""
    parts = package.split(".") if package else []
    for depth in range(len(parts), 0, -1):
        name = ".".join(parts[:depth])
        made = types.ModuleType(name)
        made.__path__ = [str(folder)]
        sys.modules.setdefault(name, made)
        folder = folder.parent


def _sets(node: ast.stmt) -> list[str]:
    """Return the names that a statement of a module would have set."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    inner = ast.walk(node)
    return [n.id for n in inner if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


# ---- the kernel and its arguments -----------------------------------------------------------


def _find(module: types.ModuleType, name: str, failures: dict[str, str]) -> Any:
    function = getattr(module, name, None)
    if function is None:
        reason = failures.get(name, "no function of that name stands at the top of the file")
        raise Refused(f"{name}: {reason}", construct="definition")
    if not isinstance(function, Function):
        raise Refused(f"{name} is no kernel: put @asc.jit before it", construct="definition")
    return function


def _value(given: Any, module: types.ModuleType) -> Any:
    """Return an argument from its description in the order."""
    kind, value = given["kind"], given.get("value")
    if kind == "tensor":
        return MockTensor(DataType(value))
    if kind == "number":
        return getattr(np, given["type"])(value)
    if kind == "dtype":
        return DataType(value)
    if kind == "tuple":
        return tuple(_value(part, module) for part in value)
    if kind == "enum":
        owner, _, member = value.partition(".")
        return getattr(getattr(asc, owner), member)
    if kind == "struct":
        owner = getattr(module, given["type"], None) or _structure(given["type"])
        members = getattr(owner, "struct_fields", {})
        made = owner(**{name: _value(value[name], module) for name in members if name in value})
        for name, field in value.items():
            with suppress(Exception):  # a field that pyasc computes or does not have
                setattr(made, name, _value(field, module))
        return made
    return value


def _structure(name: str) -> Any:
    for owner in (asc, adv):
        if hasattr(owner, name):
            return getattr(owner, name)
    raise Refused(f"pyasc has no structure {name}", construct="argument")


# ---- where pyasc 1.1.1 writes other C++ than the kernel says ---------------------------------


def _refuse_traps() -> None:
    """Make pyasc raise where it would translate something silently wrong."""
    for kind in vars(structures).values():
        own = getattr(kind, "__module__", "") == structures.__name__
        if (
            own
            and isinstance(kind, type)
            and issubclass(kind, IRValue)
            and "__init__" in vars(kind)
        ):
            setattr(kind, "__init__", _keeping_values(kind, vars(kind)["__init__"]))  # noqa: B010  mypy
    visit = FunctionVisitor.visit_While

    def visit_while(visitor: Any, node: ast.While) -> None:
        changed = {name for statement in node.body for name in _sets(statement)}
        tested = {n.id for n in ast.walk(node.test) if isinstance(n, ast.Name)}
        for name in sorted(changed & tested):
            raise Trap(
                f"it computes a while loop's condition before the loop and not again, so that {name} never ends it"
            )
        visit(visitor, node)

    FunctionVisitor.visit_While = visit_while
    cast_deq = asc.cast_deq

    def cast_deq_of_int32(dst: Any, src: Any, *args: Any, **given: Any) -> None:
        if src.dtype == DataType("int16"):
            raise Trap(
                "it writes CastDeq with isVecDeq and halfBlock false, whatever the kernel says"
            )
        cast_deq(dst, src, *args, **given)

    asc.cast_deq = cast_deq_of_int32


def _keeping_values(kind: type, init: Any) -> Any:
    """Wrap a structure's constructor: values that were given and do not reach the C++ are an error."""

    def checked(self: Any, *args: Any, **fields: Any) -> None:
        init(self, *args, **fields)
        handle = getattr(self, "handle", None)
        made = handle.get_defining_op() if handle is not None and "handle" not in fields else None
        if (args or fields) and made is not None and made.get_num_operands() == 0:
            wanted = ", ".join(inspect.signature(init).parameters).removeprefix("self, ")
            raise Trap(f"it drops what is given to {kind.__name__} here (fields: {wanted})")
        flag = fields.get("unit_flag", 0)
        if kind is structures.MmadParams and isinstance(flag, int) and flag > 1:
            raise Trap(f"it keeps one bit of MmadParams.unit_flag, and {flag} has two")

    return functools.wraps(init)(checked)


# ---- translation ----------------------------------------------------------------------------


def translate(order: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to an order."""
    sys.argv = [order["file"], *order["arguments"]]
    failures: dict[str, str] = {}
    _provide_language()
    with _absent_modules():
        module = load(Path(order["file"]), order["module"], failures)
    function = _find(module, order["kernel"], failures)
    given = {one["name"]: _value(one, module) for one in order["values"]}
    try:
        runtime, constants = function.split_args(given, get_annotations(function.fn))
        types_of = {name: function.get_arg_type(value) for name, value in runtime.items()}
        options = dict(function.default_options)
        function.extract_kwargs(CodegenOptions, options)
        if isinstance(options.get("kernel_type"), str):  # the simulator takes the name as well
            options["kernel_type"] = KernelType[options["kernel_type"]]
        compile_options = function.extract_kwargs(CompileOptions, options)
        built = function._run_codegen(Specialization(types_of, constants), CodegenOptions())
    except Exception as error:
        raise _explained(error, function, failures) from error
    os.environ.update(PYASC_COMPILER=sys.executable, PYASC_LINKER=sys.executable)  # never called
    with suppress(ValueError):
        asc.lib.runtime.set_soc_version(Platform(order["soc"]))
    compiler = Compiler(compile_options)
    compiler.run_passes(built)
    kind = compile_options.kernel_type
    return {
        "cpp": compiler.run_translation(built),
        "pyasc": importlib.metadata.version("pyasc"),
        "kernel_type": getattr(kind, "name", ""),
        "constants": {name: repr(constant.value) for name, constant in constants.items()},
    }


def _explained(error: Exception, function: Any, failures: dict[str, str]) -> Refused:
    """Say where in the user's file the front end stopped, at which construct, and what it said."""
    file, line, source, construct = function.fn.__code__.co_filename, 0, "", ""
    for frame in _frames(error):
        visitor: Any = frame.f_locals.get("self")
        node = frame.f_locals.get("node")
        location = getattr(visitor, "location", None)
        if location is None or not isinstance(node, ast.AST):
            continue
        number = getattr(node, "lineno", None)
        if number is None:
            continue
        decorators = next(
            (i for i, text in enumerate(visitor.src) if text.lstrip().startswith("def ")), 0
        )
        file, line = location.filename, location.line_offset + decorators + number - 1
        source = visitor.src[decorators + number - 1].strip()
        construct = type(node).__name__
    said = getattr(error, "error_message", None) or f"{type(error).__name__}: {error}"
    for name, reason in failures.items():
        if f"{name} is not defined" in said:
            said += f" ({reason})"
    return Refused(said, file=file, line=line, source=source, construct=construct)


def _frames(error: BaseException | None) -> list[types.FrameType]:
    """Return the frames from the outermost to the one where the first cause was raised."""
    found = []
    while error is not None:
        trace = error.__traceback__
        while trace is not None:
            found.append(trace.tb_frame)
            trace = trace.tb_next
        error = error.__cause__
    return found


def _answer(order: dict[str, Any]) -> dict[str, Any]:
    try:
        return translate(order)
    except Refused as refused:
        return {"error": refused.about}
    except Exception as error:  # pyasc's passes
        return {"error": {"message": f"{type(error).__name__}: {error}"}}


def main() -> None:
    """Answer the orders on standard input; whatever else is printed goes to standard error."""
    answer_to = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    _neutralise_launches()
    _refuse_traps()
    json.dump([_answer(order) for order in json.load(sys.stdin)], answer_to)
    answer_to.close()


if __name__ == "__main__":
    main()
