"""AscendC C++ beside pyasc beside what is here: one row a name, nothing left out."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ascend_sim import asc
from ascend_sim.instructions.catalogue import NO_INSTRUCTIONS, entry, names
from ascend_sim.instructions.names import ascendc_name
from ascend_sim.lang.refused import NOT_SIMULATED

METHODS = {
    "deque": "DeQue",
    "enque": "EnQue",
    "get_phy_addr": "GetPhyAddr",
    "set_l2_cache_hint": "SetL2CacheHint",
    "alloc_event_id": "AllocEventID",
    "fetch_event_id": "FetchEventID",
    "release_event_id": "ReleaseEventID",
}
"""Methods whose C++ name is not simply the words of pyasc's, each with a capital."""


@dataclass(frozen=True, slots=True)
class Row:
    """A name: AscendC's, pyasc's ("" where pyasc has none), where it runs, and whether it is here."""

    ascendc: str
    pyasc: str
    pipe: str
    here: str


def instruction_rows(pyasc: Iterable[str]) -> Iterator[Row]:
    """Yield a row for each function of pyasc's and each further one that is here; `pyasc` are its public names."""
    listed = {name for name in pyasc if "." not in name and name[0].islower()}
    types = {name for name in dir(asc) if isinstance(getattr(asc, name), (asc.DataType, type))}
    known = set(names())
    for name in sorted((listed | known) - set(NO_INSTRUCTIONS) - types, key=ascendc_name):
        spelt = name if name in listed else ""
        if name not in known:
            yield Row(ascendc_name(name), spelt, "", _presence(name))
            continue
        one = entry(name)
        here = "yes" if one.status == "here" else f"{one.status}: {one.reason}"
        both = f"{one.ascendc}, {one.newer}" if one.newer else one.ascendc
        yield Row(both, spelt, one.pipe, here)


def language_rows(pyasc: Iterable[str]) -> Iterator[Row]:
    """Yield a row for everything else: structures, enumerations, classes and their methods, constants, types."""
    functions = {row.pyasc for row in instruction_rows(pyasc)}
    for name in sorted(set(pyasc) - functions, key=str.lower):
        owner, _, method = name.rpartition(".")
        if owner:
            spelt = METHODS.get(method, ascendc_name(method))
            yield Row(f"{owner}::{spelt}", name, "", _presence(owner, method))
        else:
            yield Row(_cpp_of(name), name, "", _presence(name))


def _cpp_of(name: str) -> str:
    """Return AscendC's word for a name that is no instruction; "" where C++ needs none."""
    thing = getattr(asc, name, None)
    if isinstance(thing, asc.DataType):
        return {"float16": "half", "float32": "float", "float64": "double", "bool_": "bool"}.get(
            thing.name, thing.name if thing.name == "void" else f"{thing.name}_t"
        )
    return name if name[0].isupper() else ""


def _presence(name: str, method: str = "") -> str:
    for refused in (name, f"{name}.{method}"):
        if refused in NOT_SIMULATED:
            return f"missing: {NOT_SIMULATED[refused]}"
    thing = getattr(asc, name, None)
    if thing is None or (method and not hasattr(thing, method)):
        return "no"
    document = inspect.getdoc(thing) or ""
    if (
        not method
        and document.startswith(("Parameters of ", "Padding of "))
        and "not simulated" in document
    ):
        return "can be filled in; what takes it is missing"
    return "yes"
