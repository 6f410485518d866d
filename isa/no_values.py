"""Tensors used as if they were numbers: the kernel's language reads and writes elements by calls only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from isa.faults import fault


def _refusal(sign: str) -> Callable[[Any, Any], NoReturn]:
    def refuse(tensor: Any, _: Any) -> NoReturn:
        fault(
            "ILLEGAL_PARAM",
            "tensor-as-number",
            f"{tensor.name} {sign} …: a tensor is no number, t[i] and t[i:] are views of it. Read one element with "
            f"t.get_value(i), or calculate with an instruction, such as asc.adds(dst, src, scalar, count)",
            tensor=tensor.name,
        )

    return refuse


class NoValues:
    """A tensor without arithmetic, comparison and assignment to elements: each of them says what to call instead."""

    __slots__ = ()

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        """Refuse: elements are set by a call."""
        name = getattr(self, "name", "t")
        fault(
            "ILLEGAL_PARAM",
            "tensor-assignment",
            f"{name}[…] = …: elements are not assigned. Set one with t.set_value(i, value), many with "
            f"asc.duplicate(t, value, count)",
            tensor=name,
        )

    __add__ = __radd__ = _refusal("+")
    __sub__ = __rsub__ = _refusal("-")
    __mul__ = __rmul__ = _refusal("*")
    __truediv__ = __rtruediv__ = _refusal("/")
    __lt__ = _refusal("<")
    __le__ = _refusal("<=")
    __gt__ = _refusal(">")
    __ge__ = _refusal(">=")
