"""What kernels may ask for and the 910B does not have: each call says why and what to use instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from isa.faults import fault

_OLD = "exists on the Atlas inference series only"
_NEW = "exists on chips newer than the 910B only"

REFUSED: dict[str, tuple[str, str]] = {
    "scatter": (
        "is not available on the 910B",
        "compute the inverse offsets and use gather, or set_value",
    ),
    "proposal_concat": (_OLD, "use sort32, whose records hold score and index"),
    "proposal_extract": (_OLD, "use gather_mask with pattern 1 or 2 on sort32's records"),
    "rp_sort16": (_OLD, "use sort32"),
    "mrg_sort4": (_OLD, "use mrg_sort"),
    "mull": (_NEW, "multiply int32 in two halves"),
    "prelu": (_NEW, "use leaky_relu for one slope, or maxs, mins, mul and add"),
    "neg": (_NEW, "use muls with -1"),
    "abs_sub": (_NEW, "use sub, then abs"),
    "exp_sub": (_NEW, "use sub, then exp"),
    "truncate": (_NEW, "use cast to float32 with CAST_TRUNC"),
    "interleave": (_NEW, "use gather"),
    "de_interleave": (_NEW, "use gather_mask with patterns 1 and 2"),
    "ands": (_NEW, "use duplicate, then bitwise_and"),
    "ors": (_NEW, "use duplicate, then bitwise_or"),
    "subs": (_NEW, "use adds with the negative scalar"),
    "divs": (_NEW, "use muls with the reciprocal, or duplicate and div"),
    "muls_cast": (_NEW, "use muls, then cast"),
}
"""Name: (why not, what instead)."""


def _refusal(name: str) -> Callable[..., NoReturn]:
    reason, instead = REFUSED[name]

    def function(*_: Any, **__: Any) -> NoReturn:
        fault(
            "ILLEGAL_PARAM",
            "not-on-910b",
            f"{name} {reason}: {instead[0].upper()}{instead[1:]}",
            pipe="V",
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Refuse: {name} {reason}."
    return function


scatter = _refusal("scatter")
proposal_concat = _refusal("proposal_concat")
proposal_extract = _refusal("proposal_extract")
rp_sort16 = _refusal("rp_sort16")
mrg_sort4 = _refusal("mrg_sort4")
mull = _refusal("mull")
prelu = _refusal("prelu")
neg = _refusal("neg")
abs_sub = _refusal("abs_sub")
exp_sub = _refusal("exp_sub")
truncate = _refusal("truncate")
interleave = _refusal("interleave")
de_interleave = _refusal("de_interleave")
ands = _refusal("ands")
ors = _refusal("ors")
subs = _refusal("subs")
divs = _refusal("divs")
muls_cast = _refusal("muls_cast")
