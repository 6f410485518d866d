"""Flags and barriers inside one core, and the vector mask registers."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, TypeVar

from isa.arguments import check_integer, is_whole
from isa.faults import fault
from isa.numerics import is_number
from isa.stream import ALL_LANES, current
from isa.types import (
    EVENT_IDS,
    PIPE_OF_ID,
    REPEAT_BYTES,
    DType,
    HardEvent,
    MaskMode,
    Pipe,
    PipeID,
    TPosition,
)

E = TypeVar("E", bound=IntEnum)

# By the number of a PipeID, since an Enum hashes and compares slowly; None stands for all pipes.
_BARRIER_OF: list[Pipe | None] = [None] * (max(PipeID) + 1)
for _identity, _pipe in PIPE_OF_ID.items():
    _BARRIER_OF[_identity] = _pipe
_NO_BARRIER = [False] * (max(PipeID) + 1)
for _identity in (PipeID.PIPE_S, PipeID.PIPE_MTE4, PipeID.PIPE_MTE5, PipeID.PIPE_V2):
    _NO_BARRIER[_identity] = True


def _stream(name: str) -> Any:
    stream = current.get(None)
    if stream is None:
        fault("HOST", "no-kernel", f"{name} was called outside a kernel")
    return stream


def _event(name: str, event: Any, event_id: Any) -> tuple[HardEvent, int]:
    if type(event) is not HardEvent:
        given, event = event, _member(HardEvent, event)
        if event is None:
            fault(
                "ILLEGAL_PARAM",
                "event",
                f"{name}: event must be a HardEvent such as MTE2_V, got {given!r}",
            )
    if (type(event_id) is not int and not is_whole(event_id)) or not 0 <= event_id < EVENT_IDS:
        fault(
            "ILLEGAL_PARAM",
            "event-id",
            f"{name}({event.name}, {event_id}): event ids run from 0 to {EVENT_IDS - 1} for each pair of pipes",
        )
    return event, int(event_id)


def _member(kind: type[E], value: Any) -> E | None:
    """Return the member of an enumeration that a value is, or numbers; None where there is none."""
    return kind(value) if is_whole(value) and value in tuple(kind) else None


def set_flag(event: HardEvent, event_id: int = 0) -> None:
    """Raise a flag when all earlier work of the event's first pipe is complete; does not hold that pipe up."""
    stream = current.get(None)
    if (
        type(event) is not HardEvent
        or type(event_id) is not int
        or not 0 <= event_id < EVENT_IDS
        or stream is None
    ):
        event, event_id = _event("set_flag", event, event_id)
        stream = _stream("set_flag")
    if stream.own_sync:
        stream.set_flag(event, event_id)


def wait_flag(event: HardEvent, event_id: int = 0) -> None:
    """Hold the event's second pipe until the flag is raised, then lower it."""
    stream = current.get(None)
    if (
        type(event) is not HardEvent
        or type(event_id) is not int
        or not 0 <= event_id < EVENT_IDS
        or stream is None
    ):
        event, event_id = _event("wait_flag", event, event_id)
        stream = _stream("wait_flag")
    if stream.own_sync:
        stream.wait_flag(event, event_id)


def pipe_barrier(pipe: PipeID) -> None:
    """Let later work of a pipe start only after all its earlier work is complete; PIPE_ALL waits for every pipe."""
    if type(pipe) is not PipeID:
        given, pipe = pipe, _member(PipeID, pipe)  # type: ignore[assignment]
        if pipe is None:
            fault(
                "ILLEGAL_PARAM",
                "pipe",
                f"pipe_barrier: pipe must be a PipeID such as PIPE_V, got {given!r}",
            )
    if _NO_BARRIER[pipe]:
        why = "the scalar unit executes in order anyway"
        if pipe is not PipeID.PIPE_S:
            why = "the 910B has no such pipe"
        fault("ILLEGAL_PARAM", "pipe", f"pipe_barrier({pipe.name}) is illegal: {why}")
    stream = _stream("pipe_barrier")
    if stream.own_sync:
        stream.pipe_barrier(_BARRIER_OF[pipe])


def set_vector_mask(
    mask_high: int | None = None,
    mask_low: int | None = None,
    dtype: DType | None = None,
    mode: MaskMode | None = None,
    *,
    length: int | None = None,
) -> None:
    """Set the vector mask register: (high, low) words of lanes, or one number of elements.

    The number (`set_vector_mask(length, dtype=…, mode=…)`) is an element count for counter mode or, with
    MaskMode.NORMAL, a number of leading lanes, of which `dtype` has 128 (16 bits), 64 or 32 a repeat. It does not
    switch the mode: `set_mask_count` does.
    """
    name = "set_vector_mask"
    registers = _stream(name).registers
    if mode is not None and _member(MaskMode, mode) is None:
        fault(
            "ILLEGAL_PARAM",
            "mask-mode",
            f"{name}: mode must be a MaskMode (NORMAL, COUNTER), got {mode!r}",
        )
    if mask_low is not None:
        low = check_integer(name, "mask_low", mask_low, 0, ALL_LANES)
        registers.mask_high = check_integer(name, "mask_high", mask_high, 0, ALL_LANES)
        registers.mask_low = low
        registers.changed("mask")
        return
    if (mask_high is None) == (length is None):
        fault(
            "ILLEGAL_PARAM",
            "form",
            f"{name} takes mask_high and mask_low, or one number of elements (length)",
        )
    length = check_integer(
        name, "length", mask_high if length is None else length, 0, (1 << 32) - 1
    )
    if mode is not None and mode == MaskMode.NORMAL:
        if not isinstance(dtype, DType):
            fault(
                "ILLEGAL_PARAM",
                "form",
                f"{name}: a number of lanes needs dtype, which says how many there are; got {dtype!r}",
            )
        bits = (1 << min(length, REPEAT_BYTES // max(dtype.size, 2))) - 1
        registers.mask_low, registers.mask_high = bits & ALL_LANES, bits >> 64
    else:
        registers.mask_low, registers.mask_high = length, 0
    registers.changed("mask")


def set_mask_count() -> None:
    """Read the mask register as an element count from here on."""
    registers = _stream("set_mask_count").registers
    registers.counter_mode = True
    registers.changed("mode")


def set_mask_norm() -> None:
    """Read the mask register as lanes from here on."""
    _stream("set_mask_norm").registers.counter_mode = False


def reset_mask() -> None:
    """Set every lane of the mask register."""
    registers = _stream("reset_mask").registers
    registers.mask_low = registers.mask_high = ALL_LANES


def init_soc_state() -> None:
    """Give every special register its default, as a kernel without a TPipe must do first."""
    _stream("init_soc_state").registers.reset()


def set_pad_value(padding_value: float, pos: TPosition = TPosition.MAX) -> None:
    """Set the value that `data_copy_pad` fills with where left or right padding is asked for without is_pad.

    `pos` is MAX, VECIN or VECOUT, which mean the same on a vector core.
    """
    if pos not in (TPosition.MAX, TPosition.VECIN, TPosition.VECOUT):
        fault(
            "ILLEGAL_PARAM",
            "wrong-position",
            f"set_pad_value: pos must be TPosition.MAX, VECIN or VECOUT, got {pos!r}",
        )
    if not is_number(padding_value):
        fault(
            "ILLEGAL_PARAM",
            "not-a-number",
            f"set_pad_value: padding_value must be a number, got {padding_value!r}",
        )
    _stream("set_pad_value").registers.pad_value = padding_value
