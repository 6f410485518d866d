"""The parameter of `LaserAttentionGradOperation` and the checks that create runs on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NoReturn

from ascend_sim.chip_file import nearest
from ops.param import INT32_MAX, Param, int32, json_field, number, reserved, text
from ops.status import Refusal, Status

BNSD, SBH = "BNSD", "SBH"
LAYOUTS = (BNSD, SBH)
DEFAULT_SCALE = 0.08838834764831843
PRE_TOKENS_UNIT = 256


MASK_BITS = ("fp16", "bf16")
"""How the kernel's bits of the mask come about: as the library has it, or as its kernel would need it."""


@dataclass(frozen=True)
class Emulation:
    """Which faults of the library's kernel a run has.

    `mask_bits`: "fp16", the mask's float16 bits are read as bfloat16, or "bf16", they are what the kernel takes them
    for. `dq_overrun`: whether post-processing really writes past the end of dQ; its traffic counts in any case.
    """

    mask_bits: str = MASK_BITS[0]
    dq_overrun: bool = False


FAITHFUL = Emulation()
"""The library's faults as they show on a device that survives them."""


def emulation(name: str, value: Any) -> Emulation:
    """Read an `Emulation`, or a dict of its fields."""
    if isinstance(value, Emulation):
        return value
    if not isinstance(value, Mapping):
        _refuse(f'{name} is {value!r}; it is a dict such as {{"mask_bits": "bf16"}}')
    known = [field.name for field in fields(Emulation)]
    for key in value:
        if key not in known:
            _refuse(f"{name} has no {key!r}{nearest(str(key), known)} (it has: {', '.join(known)})")
    found = Emulation(**value)
    if found.mask_bits not in MASK_BITS:
        _refuse(f"mask_bits is {found.mask_bits!r}; it must be {' or '.join(MASK_BITS)}")
    if not isinstance(found.dq_overrun, bool):
        _refuse(f"dq_overrun is {found.dq_overrun!r}; it must be True or False")
    return found


@dataclass(frozen=True)
class LaserAttentionGradParam(Param):
    """The library's fields, and `emulate`, which is the simulator's own and is not printed.
    keepProb and nextTokens reach the kernel side and stop there, sparseMode does not even.

    The defaults do not pass the checks: headNum is 0 and preTokens no multiple of 256, as in the library.
    """

    head_num: int = json_field("headNum", int32, 0)
    input_layout: str = json_field("inputLayout", text, BNSD)
    scale_value: float = json_field("scaleValue", number, DEFAULT_SCALE)
    keep_prob: float = json_field("keepProb", number, 1.0)
    pre_tokens: int = json_field("preTokens", int32, INT32_MAX)
    next_tokens: int = json_field("nextTokens", int32, 1)
    sparse_mode: int = json_field("sparseMode", int32, 0)
    inner_precise: int = json_field("innerPrecise", int32, 1)
    rsv: bytes = json_field("rsv", reserved(8), bytes(8), printed=False)
    emulate: Emulation = json_field("emulate", emulation, FAITHFUL, printed=False)  # noqa: RUF009


def check_param(param: LaserAttentionGradParam) -> None:
    """Check the fields in the library's order. Raises `Refusal` (ERROR_INVALID_PARAM)."""
    if param.head_num <= 0:
        _refuse(f"headNum is {param.head_num}; it must be above 0")
    if param.input_layout not in LAYOUTS:
        _refuse(f"inputLayout is {param.input_layout!r}; it must be {' or '.join(LAYOUTS)}")
    if not 0 < param.scale_value <= 1:
        _refuse(f"scaleValue is {param.scale_value}; it must be above 0 and at most 1")
    if param.pre_tokens < 1:
        _refuse(f"preTokens is {param.pre_tokens}; it must be at least 1")
    if param.pre_tokens % PRE_TOKENS_UNIT:
        _refuse(f"preTokens is {param.pre_tokens}; it must be a multiple of {PRE_TOKENS_UNIT}")
    if param.inner_precise != 1:
        _refuse(f"innerPrecise is {param.inner_precise}; it must be 1")


def _refuse(message: str) -> NoReturn:
    raise Refusal(Status.ERROR_INVALID_PARAM, message)
