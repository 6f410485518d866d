"""Atomic stores: the mode register that makes stores into GM add to what is there, or keep the larger or smaller.

The mode travels with a store at its issue. It has two parts, as on the hardware: the operation, which is an
addition until somebody chooses another, and the type, without which stores are plain. Nothing sets GM to zero first.
The simulator combines when a store retires: additions to one place come in the order of simulated time, those of one
cycle in the order of cores and pipes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isa.faults import fault
from isa.stream import current
from isa.types import AtomicDtype, AtomicOp, DType, bfloat16, float16, float32, int8, int16, int32

if TYPE_CHECKING:
    from isa.instruction import Call

ATOMIC_TYPES = (float32, float16, int16, int32, int8, bfloat16)
"""What the memory system can combine on this architecture."""


def set_atomic_add(dtype: DType) -> None:
    """Let later stores into GM add in `dtype`, until `set_atomic_none`."""
    _set("set_atomic_add", dtype, "add")


def set_atomic_max(dtype: DType) -> None:
    """Let later stores into GM keep the larger value in `dtype`, until `set_atomic_none`."""
    _set("set_atomic_max", dtype, "max")


def set_atomic_min(dtype: DType) -> None:
    """Let later stores into GM keep the smaller value in `dtype`, until `set_atomic_none`."""
    _set("set_atomic_min", dtype, "min")


def set_atomic_type(dtype: DType) -> None:
    """Let later stores into GM combine in `dtype` with the operation chosen last; an addition where none was."""
    _set("set_atomic_type", dtype, None)


def set_atomic_none() -> None:
    """Let later stores into GM be plain ones."""
    _registers("set_atomic_none").atomic_type = None


_BY_CONFIG: dict[AtomicDtype, DType | None] = {
    AtomicDtype.ATOMIC_NONE: None,
    AtomicDtype.ATOMIC_F32: float32,
    AtomicDtype.ATOMIC_F16: float16,
    AtomicDtype.ATOMIC_S16: int16,
    AtomicDtype.ATOMIC_S32: int32,
    AtomicDtype.ATOMIC_S8: int8,
    AtomicDtype.ATOMIC_BF16: bfloat16,
}


def set_store_atomic_config(atomic_type: AtomicDtype, atomic_op: AtomicOp) -> None:
    """Let later stores into GM add in a type, or be plain ones with ATOMIC_NONE."""
    name = "set_store_atomic_config"
    registers = _registers(name)
    if atomic_type not in tuple(AtomicDtype) or atomic_op not in tuple(AtomicOp):
        fault(
            "ILLEGAL_PARAM",
            "atomic-type",
            f"{name} takes an AtomicDtype and an AtomicOp, got {atomic_type!r} and {atomic_op!r}",
        )
    registers.atomic_operation = "add"
    registers.atomic_type = _BY_CONFIG[AtomicDtype(atomic_type)]
    registers.changed("atomic")


def get_store_atomic_config() -> tuple[int, int]:
    """Return the type (an AtomicDtype) and the operation (an AtomicOp) of later stores into GM."""
    dtype = _registers("get_store_atomic_config").atomic_type
    kind = next(kind for kind, its_dtype in _BY_CONFIG.items() if its_dtype is dtype)
    return int(kind), int(AtomicOp.ATOMIC_SUM)


def _registers(name: str) -> Any:
    stream = current.get(None)
    if stream is None:
        fault("HOST", "no-kernel", f"{name} was called outside a kernel")
    return stream.registers


def _set(name: str, dtype: DType, operation: str | None) -> None:
    registers = _registers(name)
    if dtype not in ATOMIC_TYPES:
        fault(
            "ILLEGAL_PARAM",
            "atomic-type",
            f"{name}: dtype is {dtype!r}; stores combine in {', '.join(one.name for one in ATOMIC_TYPES)}",
        )
    if operation is not None:
        registers.atomic_operation = operation
    registers.atomic_type = dtype
    registers.changed("atomic")


def as_atomic(call: Call, operation: str, dtype: DType) -> Call:
    """Return a store into GM in its atomic form, anything else as it is; fault where the types differ."""
    if not call.writes or call.writes[0].buffer is None:
        return call
    access = call.writes[0]
    if access.dtype is not dtype:
        fault(
            "ILLEGAL_PARAM",
            "atomic-type",
            f"{call.name}: the atomic mode combines {dtype}, and {access.name} is {access.dtype}. Set the mode for "
            f"that type, or set_atomic_none() before a plain store",
            access.name,
            (access.low, access.high),
            call.pipe.name,
        )
    atomic = call.at(access.base, write=True)
    atomic.atomic = operation
    return atomic
