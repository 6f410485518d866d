"""Checks of plain arguments, for all instructions: numbers within their limits."""

from __future__ import annotations

from typing import Any

import numpy as np

from isa import numerics
from isa.faults import fault
from isa.types import DType


def is_whole(value: object) -> bool:
    """Return whether a value is a whole number by type: a Python or numpy integer, no bool."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def check_integer(
    name: str,
    what: str,
    value: Any,
    low: int,
    high: int | None,
    why: str = "",
    *,
    pipe: str = "",
    tensor: str = "",
) -> int:
    """Return a parameter as an int; fault unless it is a whole number from `low` to `high`.

    `name` is the instruction, `what` the parameter, `why` what the message adds to the limits.
    """
    if not is_whole(value):
        fault(
            "ILLEGAL_PARAM",
            "not-an-integer",
            f"{name}: {what} must be a whole number, got {value!r}",
            tensor,
            pipe=pipe,
        )
    if value < low or (high is not None and value > high):
        limit = f"{low} to {high}" if high is not None else f"at least {low}"
        fault(
            "ILLEGAL_PARAM",
            f"{what.replace('_', '-')}-limit",
            f"{name}: {what} is {value}, allowed is {limit}{why}",
            tensor,
            pipe=pipe,
        )
    return int(value)


def check_scalar(
    name: str, scalar: Any, dtype: DType, what: str = "scalar", *, pipe: str = "", tensor: str = ""
) -> Any:
    """Return a scalar operand as a value of the element type; fault when it is no number or does not fit.

    Floats lose their fraction where the type is an integer one, as in C++; numbers beyond a floating type's range
    become infinite.
    """
    if not numerics.is_number(scalar):
        fault(
            "ILLEGAL_PARAM",
            "not-a-number",
            f"{name}: {what} must be a number, got {scalar!r}",
            tensor,
            pipe=pipe,
        )
    try:
        if dtype.is_float():
            return numerics.round_scalar(float(scalar), dtype)
        whole = int(scalar)
    except (OverflowError, ValueError):  # an int beyond float64, or an infinity or NaN as an int
        whole = None
    limits = np.finfo(np.float64) if dtype.is_float() else np.iinfo(dtype.numpy)
    if whole is None or not limits.min <= whole <= limits.max:
        fault(
            "ILLEGAL_PARAM",
            "scalar-range",
            f"{name}: {what} {scalar} does not fit {dtype} ({limits.min} to {limits.max})",
            tensor,
            pipe=pipe,
        )
    return np.array(whole, dtype.numpy)[()]
