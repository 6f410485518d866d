"""What an instruction does not take, found by asking it: its example runs, and each argument is made wrong in turn.

The messages are therefore the very ones that a kernel gets.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ascend_sim import asc
from ascend_sim.errors import KernelError
from ascend_sim.instructions.example import Example
from ascend_sim.launch import defaults
from isa.instruction import REGISTRY
from isa.tensor import GlobalTensor, LocalTensor
from isa.types import DType, Space, TPosition

Arguments = tuple[tuple[Any, ...], dict[str, Any]]

CHIP = "toy"
_NUMBERS = (256, 4096, 65536, 1 << 40, -1, 0, 1.5)
_DTYPES = ("int64", "uint8", "int16", "int32", "float32", "float16")
_ELSEWHERE = {Space.UB: (TPosition.A1, TPosition.CO1), Space.L1: (TPosition.VECIN, TPosition.A2)}


@dataclass(frozen=True, slots=True)
class Constraint:
    """A mistake, and what the simulator says to it."""

    kind: str
    code: str
    message: str


def constraints(name: str, example: Example) -> list[Constraint]:
    """Return what instruction `name` refuses in its example, one entry a finding code, in the order of arguments."""
    found: dict[tuple[str, str], Constraint] = {}
    code = compile(example.text, f"<{name}>", "exec")
    # A wrong call that was taken after all may end the run; what was to be asked is known by then.
    silence = contextlib.redirect_stdout(io.StringIO())
    with _asked(name, found), silence, _on_toy(), contextlib.suppress(Exception):
        exec(code, {"__name__": "example"})
    return list(found.values())


@contextlib.contextmanager
def _on_toy() -> Iterator[None]:
    before = dict(defaults.options)
    defaults.options.clear()
    defaults.options.update(chip=CHIP, checks="off")
    try:
        yield
    finally:
        defaults.options.clear()
        defaults.options.update(before)


@contextlib.contextmanager
def _asked(name: str, found: dict[tuple[str, str], Constraint]) -> Iterator[None]:
    """Let the language's `name` try wrong arguments, the first time that a kernel calls it."""
    original = getattr(asc, name)
    state = {"asked": False}

    @functools.wraps(original)
    def asking(*args: Any, **keywords: Any) -> Any:
        if not state["asked"]:
            state["asked"] = True
            masked = _masked(name, args, keywords)
            for wrong in (
                *_wrong_calls(args, keywords),
                *_wrong_calls(*masked),
                *_overlaps(masked),
            ):
                _ask(original, wrong, found)
        return original(*args, **keywords)

    setattr(asc, name, asking)
    try:
        yield
    finally:
        setattr(asc, name, original)


def _ask(
    function: Callable[..., Any],
    call: Arguments,
    found: dict[tuple[str, str], Constraint],
) -> None:
    try:
        function(*call[0], **call[1])
    except KernelError as error:
        finding = error.finding
        found.setdefault(
            (finding.kind, finding.code), Constraint(finding.kind, finding.code, finding.message)
        )
    except TypeError:
        pass  # Python's own words about a missing argument


def _masked(name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Arguments:
    """Return a call in count form (a count at its end) in the form with mask, repeats and strides; else none."""
    record = REGISTRY.get(name)
    forms = record.forms if record is not None else ""
    if "mask, repeat_times, repeat_params" not in forms or keywords or type(args[-1]) is not int:
        return (), {}
    tensors = sum(isinstance(arg, LocalTensor) for arg in args)
    binary = tensors > 2 or name in ("compare", "select")
    params = asc.BinaryRepeatParams() if binary else asc.UnaryRepeatParams()
    return (*args[:-1], 16, 1, params), {}


def _overlaps(call: Arguments) -> Iterator[Arguments]:
    """Yield a masked call whose destination lies one block behind its source."""
    if len(call[0]) > 1 and isinstance(call[0][1], LocalTensor):
        source = call[0][1]
        yield (source[32 // source.dtype.size :], *call[0][1:-3], 64, *call[0][-2:]), {}


def _wrong_calls(args: tuple[Any, ...], keywords: dict[str, Any]) -> Iterator[Arguments]:
    for position, value in enumerate(args):
        for wrong in _wrong(value):
            yield (*args[:position], wrong, *args[position + 1 :]), keywords
    for name, value in keywords.items():
        for wrong in _wrong(value):
            yield args, {**keywords, name: wrong}


def _wrong(value: Any) -> Iterator[Any]:
    """Yield values in place of an argument, most of them unfit."""
    if isinstance(value, LocalTensor):
        yield from _wrong_tensors(value)
    elif isinstance(value, GlobalTensor):
        yield from (value.reinterpret_cast(asc.int8)[1:], GlobalTensor(), 0)
    elif isinstance(value, (bool, enum.Enum)):
        yield from (99, "x")
        yield from type(value) if isinstance(value, enum.EnumType) else ()
    elif isinstance(value, (int, float, np.number)):
        yield from _NUMBERS
        yield from ("x", float("inf"), [0, 0])
    elif isinstance(value, list) and value and isinstance(value[0], LocalTensor):
        yield value[:3]
        yield from ([wrong, *value[1:]] for wrong in _wrong_tensors(value[0]))
    elif isinstance(value, DType):
        yield from (DType("int64"), DType("uint8"), 0)
    else:
        yield None
        yield from _wrong_fields(value)


def _wrong_tensors(tensor: LocalTensor) -> Iterator[Any]:
    size, at = tensor.get_size(), tensor.addr
    for dtype in _DTYPES:
        if dtype != tensor.dtype.name:
            yield LocalTensor(DType(dtype), tensor.get_position(), at, 2048)
    yield from (
        LocalTensor(tensor.dtype, position, 0, size)
        for position in _ELSEWHERE.get(tensor.space, ())
    )
    if size > 1:
        yield from (tensor[1:], tensor[:1])
    yield LocalTensor(tensor.dtype, tensor.get_position(), 1 << 20, size)
    yield from (GlobalTensor(), 0)


def _wrong_fields(value: Any) -> Iterator[Any]:
    """Yield a structure with each field wrong in turn."""
    names = (
        [field.name for field in dataclasses.fields(value)]
        if dataclasses.is_dataclass(value)
        else []
    )
    names = names or [name for name in getattr(type(value), "__slots__", ()) if name[0] != "_"]
    for name in names:
        for wrong in _wrong(getattr(value, name)):
            try:
                yield dataclasses.replace(value, **{name: wrong})
            except (TypeError, ValueError, KernelError):
                continue
