"""Mistakes in what a program says to the language, inside a kernel or on the host."""

from __future__ import annotations

from typing import NoReturn

from ascend_sim.errors import Finding, HostError, OperandError
from isa.faults import fault
from isa.stream import current


def mistake(kind: str, code: str, message: str) -> NoReturn:
    """Raise what is wrong: with its place inside a kernel, as the program's own error on the host."""
    if current.get(None) is not None:
        fault(kind, code, message)
    error = HostError if kind == "HOST" else OperandError
    raise error(message, Finding(kind, code, message))
