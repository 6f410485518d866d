"""Calls that fit no form of what they call: which forms there are, and what was given.

Python itself refuses a wrong number of arguments and unknown keywords. Inside a kernel its TypeError becomes the
kernel's error, with the call as it stands in the source.
"""

from __future__ import annotations

import enum
import inspect
import linecache
import re
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ascend_sim.chip_file import nearest
from ascend_sim.errors import Finding, OperandError
from isa.instruction import REGISTRY

if TYPE_CHECKING:
    from ascend_sim.program import Program

_REFUSED = re.compile(
    r"^(?:(?P<owner>\w+)\.)?(?P<name>\w+)\(\) (?P<what>(?:got|takes|missing) .*?)"
    r"(?:\. Did you mean '\w+'\?)?$",  # Python's own guess, from 3.13 on
    re.S,
)
_KEYWORD = re.compile(r"unexpected keyword argument '(\w+)'")


def clearer(error: BaseException, program: Program) -> BaseException:
    """Return the kernel's error for a call of the language that Python refused; any other error as it is."""
    if not isinstance(error, TypeError) or error.__traceback__ is None:
        return error
    frames = program.session.kernel_frames(error.__traceback__)
    match = _REFUSED.match(str(error))
    if match is None or not frames or frames[-1] is not _last(error.__traceback__):
        return error  # raised inside the language, not where it is called
    thing = _find(match["owner"], match["name"])
    if thing is None:
        return error
    name = match["owner"] if match["name"] == "__init__" else match["name"]
    said = f"{name}: {match['what']}{_hint(str(error), thing)}"
    message = f"{said}{' ' if said.endswith('?') else '. '}{_forms(name, thing)}"
    site = program.session.site_of(frames)
    place = program.session.sites[site]
    source = linecache.getline(place.file, place.line).strip()
    if source:
        message += f". Given: {source}"
    finding = Finding(
        "ILLEGAL_PARAM", "form", message, place.file, place.line, program.core.name, struck=True
    )
    where = program.session.where_text(site)
    return OperandError(f"{message}\n  at {where}, {program.core.name}", finding).with_traceback(
        error.__traceback__
    )


def _last(trace: TracebackType) -> TracebackType:
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def _find(owner: str | None, name: str) -> Any:
    """Return what the language calls so: a function, a method of one of its classes, or a class by its constructor."""
    from ascend_sim import asc  # noqa: PLC0415  the facade is made of modules that programs need

    for place in (asc, asc.adv):
        if owner is None:
            found = getattr(place, name, None) if name in place.__all__ else None
        else:
            found = next(
                (
                    kind
                    for kind in map(vars(place).get, place.__all__)
                    if inspect.isclass(kind) and owner in {one.__name__ for one in kind.__mro__}
                ),
                None,
            )
            if found is not None and name != "__init__":
                found = getattr(found, name, None)
        if found is not None:
            return found
    return None


def _parameters(thing: Any) -> list[inspect.Parameter]:
    found = inspect.signature(thing).parameters.values()
    return [one for one in found if one.name != "self"]


def _hint(said: str, thing: Any) -> str:
    unknown = _KEYWORD.search(said)
    names = [one.name for one in _parameters(thing)]
    return nearest(unknown[1], names) if unknown is not None else ""


def _forms(name: str, thing: Any) -> str:
    parts = []
    for one in _parameters(thing):
        star = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(one.kind.name, "")
        default = "" if one.default is one.empty else f"={_value(one.default)}"
        parts.append(f"{star}{one.name}{default}")
    text = f"It is {name}({', '.join(parts)})"
    record = REGISTRY.get(name)
    if record is not None and ";" in record.forms:
        text += f", in one of these forms: {record.forms.replace('; ', ' | ')}"
    return text


def _value(default: Any) -> str:
    return default.name if isinstance(default, enum.Enum) else repr(default)
