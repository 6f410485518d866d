"""Everything that kernels can call, by pyasc's name: what it is, where it runs, whether it is here."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ascend_sim import asc
from ascend_sim.instructions.example import Example
from ascend_sim.instructions.names import NEWER, ascendc_name
from ascend_sim.instructions.other_examples import OTHER
from ascend_sim.instructions.system_examples import SYSTEM
from ascend_sim.instructions.vector_examples import VECTOR
from ascend_sim.lang.refused import NOT_SIMULATED
from isa.instruction import REGISTRY, Instruction
from isa.vector.fill import CAST_MODES
from isa.vector.refused import REFUSED

EXAMPLES: dict[str, Example] = {**VECTOR, **OTHER, **SYSTEM}

PIPES = {
    "data_copy": "MTE2 from GM, MTE3 to GM, V inside UB, MTE1 from L1 to BT, FIX from L1 to FB or out of L0C",
    "data_copy_pad": "MTE2 from GM, MTE3 to GM",
    "load_data": "MTE1 from L1, MTE2 from GM",
    "init_const_value": "MTE2 into L1, MTE1 into L0A and L0B",
    "set_flag": "the event's first pipe",
    "wait_flag": "the event's second pipe",
    "pipe_barrier": "the pipe that is named; PIPE_ALL stops S",
    "cross_core_set_flag": "the pipe that is named",
    "sync_all": "S, after all pipes",
    "ib_set": "S, after all pipes; MTE2 and MTE3 for its word",
    "ib_wait": "S, after all pipes; MTE2 and MTE3 for its word",
    "notify_next_block": "S, after all pipes; MTE2 and MTE3 for its word",
    "wait_pre_block": "S, after all pipes; MTE2 for its word",
}
"""Where an instruction runs whose pipe depends on its operands, or that is no instruction of one pipe."""

NO_INSTRUCTIONS = (
    "array", "ceildiv", "inline", "jit", "lan_all", "number", "property", "quant_parameter", "range", "static_assert",
    "static_range",
)  # fmt: skip
"""Functions of the language that leave nothing for the machine to do."""


STATUS = ("here", "refused", "missing")
"""Refused is what the 910B does not have, missing what it has and the simulator has not; both say so when called."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One callable. `status` is one of `STATUS`, `reason` why it is not here and what to use instead."""

    name: str
    ascendc: str
    newer: str
    status: str
    reason: str
    pipe: str
    meaning: str
    signature: str
    forms: tuple[str, ...]
    types: tuple[str, ...]
    example: Example | None


def names() -> list[str]:
    """Return the names of all instructions, refused ones too, in alphabetical order."""
    return sorted(
        name
        for name in asc.__all__
        if inspect.isfunction(getattr(asc, name)) and name not in NO_INSTRUCTIONS
    )


def entry(name: str) -> Entry:
    """Return what there is to know about an instruction of `names`. Raises `KeyError` for another name."""
    if name not in names():
        raise KeyError(name)
    function = getattr(asc, name)
    record = REGISTRY.get(name)
    status, reason = _status(name)
    here = status == "here"
    document = inspect.getdoc(function) or ""
    return Entry(
        name=name,
        ascendc=ascendc_name(name),
        newer=NEWER.get(name, ""),
        status=status,
        reason=reason,
        pipe=_pipe(name, record) if here else "",
        meaning=re.split(r"\n\s*Element types:", document)[0].strip(),
        signature=_signature(name, function) if here else "",
        forms=tuple(form.strip() for form in record.forms.split(";")) if record else (),
        types=_types(name, record),
        example=EXAMPLES.get(name),
    )


def _status(name: str) -> tuple[str, str]:
    if name in REFUSED:
        return "refused", f"{name} {': '.join(REFUSED[name])}"
    if name in NOT_SIMULATED:
        return "missing", NOT_SIMULATED[name]
    if name in ANSWERS_NOTHING:
        return "missing", ANSWERS_NOTHING[name]
    return "here", ""


ANSWERS_NOTHING = {
    "get_arch_version": "it writes into its argument, which a Python number cannot take; the architecture is 2201"
}


def _pipe(name: str, record: Instruction | None) -> str:
    if name in PIPES:
        return PIPES[name]
    if record is not None and record.pipe is not None:
        return record.pipe.name
    return "S"


def _types(name: str, record: Instruction | None) -> tuple[str, ...]:
    if name == "cast":
        return tuple(
            f"{source} to {target}: {', '.join(mode.name for mode in modes)}"
            for (source, target), modes in CAST_MODES.items()
        )
    if record is None:
        return ()
    pairs = [f"{source} to {target}" for source, target in record.widening]
    return (", ".join(str(dtype) for dtype in record.dtypes), *pairs)


def _signature(name: str, function: Callable[..., Any]) -> str:
    parts = []
    for parameter in inspect.signature(function).parameters.values():
        is_keyword = parameter.kind is parameter.VAR_KEYWORD
        star = "**" if is_keyword else "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        default = parameter.default
        text = "" if default is parameter.empty else f"={getattr(default, 'name', repr(default))}"
        parts.append(f"{star}{parameter.name}{text}")
    return f"asc.{name}({', '.join(parts)})"
