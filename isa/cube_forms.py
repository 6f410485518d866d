"""What the cube side's instructions have in common: checks of operands and fields, the bound call, issuing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from isa.access import Access, check_bounds
from isa.faults import fault
from isa.instruction import Call, Instruction
from isa.stream import current
from isa.tensor import GlobalTensor, LocalTensor
from isa.types import (
    CoreKind,
    DType,
    Pipe,
    Space,
    bfloat16,
    float16,
    float32,
    int8,
    int16,
    int32,
    uint8,
    uint16,
    uint32,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array = Any
Tensor = GlobalTensor | LocalTensor

ALIGNMENT: dict[Space, int] = {
    Space.UB: 32,
    Space.L1: 32,
    Space.L0A: 512,
    Space.L0B: 512,
    Space.L0C: 512,
    Space.BT: 64,
    Space.FB: 64,
}
"""Bytes on whose border an operand starts, by memory (L0C: what the vendor's sanitizer checks)."""

POSITIONS: dict[Space, str] = {
    Space.GM: "GM (a GlobalTensor)",
    Space.UB: "UB (VECIN, VECOUT, VECCALC)",
    Space.L1: "L1 (A1, B1, C1)",
    Space.L0A: "L0A (A2)",
    Space.L0B: "L0B (B2)",
    Space.L0C: "L0C (CO1)",
    Space.BT: "BT (C2)",
    Space.FB: "FB (C2PIPE2GM)",
}


L0_SPACES = (Space.L0A, Space.L0B)
LOAD_TYPES = (int8, uint8, float16, bfloat16, int16, uint16, float32, int32, uint32)
"""What the loads into L0 take."""
FIELD_MAX = 65535
"""The largest value of a 16-bit field."""


class CubeCall(Call):
    """A call of the cube's fine-grained handshake: `unit_flag` is 0, 2 (check, keep) or 3 (check, finish)."""

    __slots__ = ("unit_flag",)

    def __init__(self, *arguments: Any, unit_flag: int = 0, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.unit_flag = unit_flag

    def at(self, base: int, *, write: bool) -> Call:
        """Return the same fixpipe with its destination in GM at another place."""
        assert write
        call = CubeCall.__new__(CubeCall)
        for name in Call.__slots__:
            setattr(call, name, getattr(self, name))
        call.writes, call.base = (self.writes[0].moved(base),), base
        call.scratch, call.unit_flag = None, self.unit_flag
        return call


class LoadCall(Call):
    """A call that only moves elements: garbage in the source arrives as garbage and harms nobody by itself.

    A load takes whole fractals, with rows of L1 that nothing has written where the tile has a tail; what counts is
    whether a later instruction uses them.
    """

    __slots__ = ()

    def arrives(self, written: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which destination elements hold a value, from which source elements do (in the accesses' shapes)."""
        return np.asarray(self.meaning(written)).astype(bool).reshape(self.writes[0].shape)


def stream_of(name: str) -> Any:
    """Return the current stream; fault outside a kernel."""
    stream = current.get(None)
    if stream is None:
        fault("HOST", "no-kernel", f"{name} was called outside a kernel")
    return stream


def cube_stream(name: str) -> Any:
    """Return the current stream; fault outside a kernel and on a vector core."""
    stream = stream_of(name)
    if stream.core_kind is not CoreKind.AIC:
        fault(
            "ILLEGAL_PARAM",
            "wrong-core",
            f"{name} is an instruction of the cube core; this kernel runs on a vector core (on the board it ends as "
            f"an illegal instruction). Put it under `if asc.ascend_is_aic():`",
        )
    return stream


def exact_mode() -> bool:
    """Return whether the current stream asks for the exact order of additions."""
    return bool(getattr(current.get(None), "exact", False))


def one_thread_mode() -> bool:
    """Return whether the current stream keeps the host's matrix library at one thread."""
    return bool(getattr(current.get(None), "one_thread", False))


def whole(name: str, what: str, value: Any, low: int, high: int, why: str = "") -> int:
    """Return a field as an int; fault unless it is a whole number from `low` to `high`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        fault(
            "ILLEGAL_PARAM",
            "not-an-integer",
            f"{name}: {what} must be a whole number, got {value!r}{why}",
        )
    if not low <= value <= high:
        fault(
            "ILLEGAL_PARAM",
            f"{what.replace('_', '-')}-limit",
            f"{name}: {what} is {value}, allowed is {low} to {high}{why}",
        )
    return int(value)


def truth(name: str, what: str, value: Any) -> bool:
    """Return a switch as a bool; fault unless it is True, False, 1 or 0."""
    if not isinstance(value, (bool, np.bool_, int, np.integer)) or value not in (0, 1):
        fault("ILLEGAL_PARAM", "not-a-bool", f"{name}: {what} must be True or False, got {value!r}")
    return bool(value)


def structure(name: str, what: str, value: Any, *expected: type) -> None:
    """Fault unless a parameter structure is one that the instruction takes."""
    if not isinstance(value, expected):
        wanted = " or ".join(one.__name__ for one in expected)
        fault(
            "ILLEGAL_PARAM",
            "wrong-params",
            f"{name}: {what} must be {wanted}, got {type(value).__name__}",
        )


def operand(
    name: str,
    what: str,
    tensor: Any,
    spaces: tuple[Space, ...],
    dtypes: tuple[DType, ...],
    pipe: Pipe,
    alignment: int | None = None,
) -> None:
    """Fault unless a tensor is in one of the memories, of one of the types, and starts on a border.

    `alignment` overrides the memory's own, in bytes.
    """
    if not isinstance(tensor, (GlobalTensor, LocalTensor)):
        fault(
            "ILLEGAL_PARAM",
            "wrong-operand",
            f"{name}: {what} must be a tensor, got {type(tensor).__name__}",
        )
    if isinstance(tensor, GlobalTensor) and tensor.buffer is None:
        fault(
            "HOST", "unbound-tensor", f"{name}: {what} is a GlobalTensor before set_global_buffer"
        )
    if tensor.space not in spaces:
        fault(
            "ILLEGAL_PARAM",
            "wrong-position",
            f"{name}: {what} {tensor.name} is in {tensor.space.name}, it must be in "
            f"{' or '.join(POSITIONS[space] for space in spaces)}",
            tensor.name,
            pipe=pipe.name,
        )
    if tensor.dtype not in dtypes:
        fault(
            "ILLEGAL_PARAM",
            "wrong-dtype",
            f"{name}: {what} {tensor.name} is {tensor.dtype}, the instruction takes "
            f"{', '.join(str(dtype) for dtype in dtypes)}",
            tensor.name,
            pipe=pipe.name,
        )
    _check_alignment(name, what, tensor, pipe, alignment)


def _check_alignment(
    name: str, what: str, tensor: Tensor, pipe: Pipe, alignment: int | None
) -> None:
    if isinstance(tensor, GlobalTensor):
        size = tensor.dtype.size
        if tensor.offset % size:
            fault(
                "ALIGNMENT",
                "gm-misaligned",
                f"{name}: {what} {tensor.name} starts at GM byte {tensor.offset}, which is no multiple of the "
                f"{size} bytes of {tensor.dtype}",
                tensor.name,
                (tensor.offset, tensor.offset + tensor.length),
                pipe.name,
            )
        return
    border = ALIGNMENT[tensor.space] if alignment is None else alignment
    if tensor.addr % border:
        fault(
            "ALIGNMENT",
            "misaligned-operand",
            f"{name}: {what} {tensor.name} starts at {tensor.space.name} byte {tensor.addr}, which is "
            f"{tensor.addr % border} past a {border}-byte border; it must start on one",
            tensor.name,
            (tensor.addr, tensor.addr + tensor.length),
            pipe.name,
        )


def same_dtype(name: str, dst: Tensor, src: Tensor, pipe: Pipe) -> None:
    """Fault unless both tensors have one element type."""
    if src.dtype is not dst.dtype:
        fault(
            "ILLEGAL_PARAM",
            "dtype-mismatch",
            f"{name}: src {src.name} is {src.dtype}, dst {dst.name} is {dst.dtype}; this instruction does not convert",
            src.name,
            pipe=pipe.name,
        )


def access_of(
    tensor: Tensor,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    skip: int = 0,
    lanes: NDArray[np.bool_] | None = None,
    dtype: DType | None = None,
) -> Access:
    """Return elements of a tensor, `skip` bytes in; strides in bytes."""
    base = tensor.offset if isinstance(tensor, GlobalTensor) else tensor.addr
    return Access(
        tensor, base + skip, shape, strides, tensor.dtype if dtype is None else dtype, lanes
    )


def check(
    name: str, what: str, access: Access, tensor: Tensor, pipe: Pipe, hint: str = ""
) -> Access:
    """Return the access; fault when it leaves its tensor, its memory or its GM allocation."""
    capacity = 0 if tensor.space is Space.GM else current.get().capacity(tensor.space)
    check_bounds(access, tensor, f"{name}: {what}", capacity, pipe.name, hint)
    return access


def lanes_of(shape: tuple[int, ...], inside: Callable[..., Any]) -> NDArray[np.bool_] | None:
    """Return which elements of `shape` take part, from a condition on their indices; None where all do."""
    lanes = np.broadcast_to(inside(*np.ogrid[tuple(slice(0, count) for count in shape)]), shape)
    return None if lanes.all() else np.ascontiguousarray(lanes)


def poison(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return an array of 0xFF bytes, what stands where the hardware's result is not defined (of flags: False)."""
    if dtype == np.bool_:
        return np.zeros(shape, np.bool_)
    count = int(np.prod(shape)) * dtype.itemsize
    return np.full(count, 0xFF, np.uint8).view(dtype).reshape(shape)


def blocks(size: int, unit: int) -> int:
    """Return how many units cover `size`."""
    return -(-size // unit)


def again(template: Call, gm: GlobalTensor, *, write: bool) -> Call | None:
    """Return a bound call with its GM side at the tensor's place; None where that needs the checks."""
    if not template.writes:
        return template
    known = template.writes[0] if write else template.reads[0]
    extent = known.high - known.low
    offset = gm.offset
    assert gm.buffer is not None
    if extent > gm.length or offset < 0 or offset % gm.dtype.size:
        return None
    if offset + extent > gm.buffer.nbytes:
        return None
    return template if offset == known.base else template.at(offset, write=write)


def issue(
    stream: Any, key: tuple[Any, ...], tensors: tuple[Any, ...], gm: Any, bind: Callable[[], Call]
) -> None:
    """Issue a call, binding it where the stream does not know it yet.

    `key` says everything that the call depends on besides the tensors; `gm` is the GM tensor whose place may
    differ from call to call (None: no GM side).
    """
    call: Call | None = None
    known: Any = None
    try:
        known = (*key, *[None if tensor is None else tensor.key for tensor in tensors])
        call = stream.calls.get(known)
    except (AttributeError, TypeError):  # no tensors, or a field that has no hash: bind says so
        known = None
    if call is not None and gm is not None:
        call = again(call, gm, write=gm is tensors[0])
    if call is None:
        call = bind()
        if known is not None:
            stream.calls[known] = call
    stream.issue(call, 4)  # issue, this function, the instruction, the kernel


def load_call(
    record: Instruction, pipe: Pipe, source: Access, target: Access, meaning: Any
) -> Call:
    """Return a load of whole fractals as a call; its payload is what arrives."""
    payload = target.elements * target.dtype.size
    cost = ("data_copy_l1", "any") if pipe is Pipe.MTE2 else ("mte1", target.space.name.lower())
    return LoadCall(record, pipe, (source,), (target,), meaning, payload=payload, cost=cost)
