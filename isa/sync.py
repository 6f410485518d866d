"""Flags and barriers inside one core, and the vector mask registers."""

from __future__ import annotations

from typing import Any

import numpy as np

from isa.faults import fault
from isa.stream import ALL_LANES, current
from isa.types import EVENT_IDS, PIPE_OF_ID, DType, HardEvent, MaskMode, Pipe, PipeID


_PIPE_S = PipeID.PIPE_S
# By the number of a PipeID, since an Enum hashes in Python; None stands for all pipes.
_BARRIER_OF: list[Pipe | None] = [None] * (max(PipeID) + 1)
for _identity, _pipe in PIPE_OF_ID.items():
    _BARRIER_OF[_identity] = _pipe


def _stream(name: str) -> Any:
    stream = current.get(None)
    if stream is None:
        fault("HOST", "no-kernel", f"{name} was called outside a kernel")
    return stream


def _event(name: str, event: Any, event_id: Any) -> tuple[HardEvent, int]:
    if not isinstance(event, HardEvent):
        try:
            event = HardEvent(event)
        except (ValueError, TypeError):
            fault("ILLEGAL_PARAM", "event", f"{name}: event must be a HardEvent such as MTE2_V, got {event!r}")
    if isinstance(event_id, bool) or not isinstance(event_id, (int, np.integer)) or not 0 <= event_id < EVENT_IDS:
        fault(
            "ILLEGAL_PARAM",
            "event-id",
            f"{name}({event.name}, {event_id}): event ids run from 0 to {EVENT_IDS - 1} for each pair of pipes",
        )
    return event, int(event_id)


def set_flag(event: HardEvent, event_id: int = 0) -> None:
    """Raise a flag when all earlier work of the event's first pipe is complete; does not hold that pipe up."""
    event, event_id = _event("set_flag", event, event_id)
    _stream("set_flag").set_flag(event, event_id)


def wait_flag(event: HardEvent, event_id: int = 0) -> None:
    """Hold the event's second pipe until the flag is raised, then lower it."""
    event, event_id = _event("wait_flag", event, event_id)
    _stream("wait_flag").wait_flag(event, event_id)


def pipe_barrier(pipe: PipeID) -> None:
    """Let later work of a pipe start only after all its earlier work is complete; PIPE_ALL waits for every pipe."""
    if type(pipe) is not PipeID:
        try:
            pipe = PipeID(pipe)
        except (ValueError, TypeError):
            fault(
                "ILLEGAL_PARAM",
                "pipe",
                f"pipe_barrier: pipe must be a PipeID such as PIPE_V, got {pipe!r}",
            )
    if pipe is _PIPE_S:
        fault("ILLEGAL_PARAM", "pipe", "pipe_barrier(PIPE_S) is illegal: the scalar unit executes in order anyway")
    _stream("pipe_barrier").pipe_barrier(_BARRIER_OF[pipe])


def set_vector_mask(
    mask_high: int, mask_low: int | None = None, dtype: DType | None = None, mode: MaskMode = MaskMode.NORMAL
) -> None:
    """Set the vector mask register: (high, low) words of lanes, or one element count in counter mode."""
    registers = _stream("set_vector_mask").registers
    if mask_low is None:
        registers.mask_low, registers.mask_high = int(mask_high), 0
        return
    registers.mask_low, registers.mask_high = int(mask_low) & ALL_LANES, int(mask_high) & ALL_LANES


def set_mask_count() -> None:
    """Read the mask register as an element count from here on."""
    _stream("set_mask_count").registers.counter_mode = True


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


def set_pad_value(value: int) -> None:
    """Set the value that `data_copy_pad` fills with where its parameters give none."""
    _stream("set_pad_value").registers.pad_value = value
