"""Special registers of pipe V, what the scalar unit does to read them, and how these instructions are issued."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from isa.faults import fault
from isa.instruction import Call
from isa.stream import ALL_LANES, current
from isa.tensor import LocalTensor
from isa.types import (
    REPEAT_BYTES,
    DType,
    HardEvent,
    Pipe,
    uint8,
    uint32,
    uint64,
)
from isa.vector.checks import check_core, check_integer, check_repeat
from isa.vector.masks import lane_mask, lanes_of_mask
from isa.vector.places import RegisterAccess

_PIPE = Pipe.V.name

CMPMASK, ACCUMULATOR, EXTREME, MERGED, KEPT = 0, 16, 24, 32, 48
"""Byte offsets in `Registers.vector`: 16 bytes of CMPMASK, the sum, (value, index), four counts, one count."""


def cmp_mask() -> RegisterAccess:
    """Return the 128 bits that compare writes and select reads."""
    return _register("CMPMASK", CMPMASK, 16, uint8)


def accumulator(dtype: DType) -> RegisterAccess:
    """Return the register into which the count form of reduce_sum adds."""
    return _register("the accumulator", ACCUMULATOR, 1, dtype)


def extreme_value(dtype: DType) -> RegisterAccess:
    """Return the register that keeps the extreme of the last whole_reduce_max or whole_reduce_min."""
    return _register("the extreme value register", EXTREME, 1, dtype)


def extreme_index() -> RegisterAccess:
    """Return the register that keeps the index of that extreme."""
    return _register("the extreme index register", EXTREME + 4, 1, uint32)


def merged_count(position: int) -> RegisterAccess:
    """Return the register that counts what the last mrg_sort took from a list."""
    return _register("the merge count register", MERGED + 4 * position, 1, uint32)


def kept_count() -> RegisterAccess:
    """Return the register that counts what the last gather_mask kept."""
    return _register("the remain count register", KEPT, 1, uint64)


def _register(name: str, offset: int, count: int, dtype: DType) -> RegisterAccess:
    return RegisterAccess(name, current.get().registers.vector, offset, count, dtype)


def bank() -> Any:
    """Return the bytes of the running core's registers."""
    return current.get().registers.vector


def bank_key() -> int:
    """Return what a bound call that holds registers is looked up with: they are each block's own."""
    stream = current.get(None)
    return 0 if stream is None else id(stream.registers.vector)


def put(registers: Any, offset: int, values: Any) -> None:
    """Store numpy values in a register."""
    data = np.atleast_1d(values).view(np.uint8)
    registers[offset : offset + len(data)] = data


# ---- the scalar unit and V ----------------------------------------------------------------------


def hand_over(*events: HardEvent) -> None:
    """Set flags and wait for them at once, with ids that nobody uses, as the vendor's library does inside a call."""
    stream = current.get()
    for event in events:
        event_id = max(stream.peek_event(event), 0) if stream.has_queues else 0
        stream.set_flag(event, event_id)
        stream.wait_flag(event, event_id)


def read_register(access: RegisterAccess) -> int | float:
    """Let the scalar unit wait for V and read a register."""
    hand_over(HardEvent.V_S)
    return current.get().read_register(access)  # type: ignore[no-any-return]


class Later:
    """A number that a register holds by the time that the scalar unit stores it."""

    __slots__ = ("_access",)

    def __init__(self, access: RegisterAccess) -> None:
        self._access = access

    def __float__(self) -> float:
        return float(self._access.view(None)[0])


# ---- masks and issue ----------------------------------------------------------------------------


class Lanes:
    """Which elements a mask form works on: `lanes` of each of `repeat` repeats, or `total` in counter mode."""

    __slots__ = ("active", "repeat", "total")

    def __init__(self, active: Any, repeat: int, total: int | None) -> None:
        self.active = active
        self.repeat = repeat
        self.total = total

    @property
    def none(self) -> bool:
        """Whether there is nothing to do."""
        return self.repeat == 0 or not self.active.any()


def lanes_of(name: str, mask: Any, repeat: Any, dtype: DType, set_mask: bool) -> Lanes:
    """Return what a mask form works on; in counter mode the mask is an element count and repeats follow from it."""
    count = REPEAT_BYTES // dtype.size
    registers = current.get().registers
    if registers.counter_mode:
        total = (
            check_integer(name, "mask", mask, 0, (1 << 32) - 1) if set_mask else registers.mask_low
        )
        full, rest = divmod(total, count)
        return Lanes(np.ones(count, bool), full + (rest > 0), total if rest else None)
    active = lane_mask(name, mask if set_mask else [registers.mask_low, registers.mask_high], count)
    return Lanes(active, check_repeat(name, repeat), None)


def reset_mask_register() -> None:
    """Leave the mask register all ones and in norm mode, as count forms do."""
    registers = current.get().registers
    registers.mask_low = registers.mask_high = ALL_LANES
    registers.counter_mode = False


def send(
    name: str,
    key: tuple[Any, ...],
    bind: Callable[[], Call],
    *,
    mask: Any = None,
    dtype: DType | None = None,
    count_form: bool = False,
    set_mask: bool = True,
) -> bool:
    """Issue a call, bound before if the stream knows it; return False on a core without pipe V.

    `key` holds tensors' keys and everything else that the binding depends on. A mask form passes its `mask` and
    the type whose lanes it counts; the mask register is set from it.
    """
    stream = check_core(name)
    if stream is None:
        return False
    registers = stream.registers
    try:
        reads_register = mask is not None and (not set_mask or registers.counter_mode)
        key = (name, *key, registers.key() if reads_register else 0)
        call = stream.calls.get(key)
    except TypeError:  # something in it cannot be a key: the binding says what
        key, call = (), None
    if call is None:
        call = bind()
        if key:
            stream.calls[key] = call
    if count_form:
        reset_mask_register()
    elif mask is not None and set_mask and not registers.counter_mode and dtype is not None:
        words = lanes_of_mask(name, mask, REPEAT_BYTES // dtype.size).words
        registers.mask_low, registers.mask_high = words
    stream.issue(call)
    return True


def overload(name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
    """Call one form of an instruction; fault where the arguments are not that form's."""
    try:
        function(*args, **kwargs)
    except TypeError:
        signature = inspect.signature(function)
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            names = ", ".join(signature.parameters)
            fault(
                "ILLEGAL_PARAM",
                "form",
                f"{name}: {error}. By its first arguments this is the form ({names})",
                pipe=_PIPE,
            )
        raise


def tensor_key(*tensors: Any) -> tuple[Any, ...]:
    """Return the keys of tensors; of anything else its type, so that the binding can object."""
    return tuple(
        tensor.key if isinstance(tensor, LocalTensor) else type(tensor) for tensor in tensors
    )


def flag_argument(name: str, what: str, value: Any) -> bool:
    """Return a yes-or-no argument; fault when it is something else."""
    if not isinstance(value, (bool, np.bool_)):
        fault(
            "ILLEGAL_PARAM",
            "not-a-flag",
            f"{name}: {what} must be True or False, got {value!r}",
            pipe=_PIPE,
        )
    return bool(value)


def mode_argument(name: str, what: str, value: Any, modes: Any) -> Any:
    """Return a mode as a member of its enumeration; fault when there is none."""
    if not isinstance(value, (bool, float)):
        try:
            return modes(value)
        except (ValueError, TypeError):
            pass
    choices = ", ".join(member.name for member in modes)
    fault(
        "ILLEGAL_PARAM",
        "not-a-mode",
        f"{name}: {what} must be a {modes.__name__} ({choices}), got {value!r}",
        pipe=_PIPE,
    )


def check_type(name: str, what: str, value: Any, expected: type) -> None:
    """Fault unless a parameter structure is the one that the instruction takes."""
    if not isinstance(value, expected):
        fault(
            "ILLEGAL_PARAM",
            "wrong-params",
            f"{name}: {what} must be {expected.__name__}, got {type(value).__name__}",
            pipe=_PIPE,
        )
