"""Which way data moves between two memories, and what a copy's operands must be.

GM to UB or L1 is MTE2, UB or L1 to GM is MTE3, UB to UB is a vector instruction (pipe V).
"""

from __future__ import annotations

from typing import Any

from isa.access import Access, check_bounds
from isa.faults import fault
from isa.stream import current
from isa.tensor import GlobalTensor, LocalTensor
from isa.types import BLOCK_BYTES, CoreKind, Pipe, Space

Tensor = GlobalTensor | LocalTensor

ROUTES: dict[tuple[Space, Space], Pipe] = {
    (Space.GM, Space.UB): Pipe.MTE2,
    (Space.GM, Space.L1): Pipe.MTE2,
    (Space.UB, Space.GM): Pipe.MTE3,
    (Space.L1, Space.GM): Pipe.MTE3,
    (Space.UB, Space.UB): Pipe.V,
}
"""(source, destination) of data_copy and the pipe that does it on the 910B."""

_CORE_OF = {Space.UB: CoreKind.AIV, Space.L1: CoreKind.AIC}


def stream_for(name: str, dst: Any, src: Any) -> Any:
    """Return the stream that takes this copy; None where the core does not have the local memory."""
    stream = current.get(None)
    if stream is None:
        fault("HOST", "no-kernel", f"{name} was called outside a kernel")
    local = dst if isinstance(dst, LocalTensor) else src
    if (
        isinstance(local, LocalTensor)
        and _CORE_OF.get(local.space, stream.core_kind) is not stream.core_kind
    ):
        if local.space is Space.L1:
            fault(
                "ILLEGAL_PARAM",
                "wrong-core",
                f"{name}: {local.name} is in L1, which only a cube core has; this kernel runs on a vector "
                f"core (on the board it ends as an illegal instruction)",
                local.name,
            )
        return None
    return stream


def route(name: str, dst: Any, src: Any) -> Pipe:
    """Return the pipe that moves `src` to `dst`; fault where there is no way or an operand is not fit for it."""
    for operand, tensor in (("dst", dst), ("src", src)):
        if not isinstance(tensor, (GlobalTensor, LocalTensor)):
            fault(
                "ILLEGAL_PARAM",
                "wrong-operand",
                f"{name}: {operand} must be a GlobalTensor or a LocalTensor, got {type(tensor).__name__}",
            )
        if isinstance(tensor, GlobalTensor) and tensor.buffer is None:
            fault(
                "HOST",
                "unbound-tensor",
                f"{name}: {operand} is a GlobalTensor before set_global_buffer",
            )
    pipe = ROUTES.get((src.space, dst.space))
    if pipe is None:
        fault(
            "ILLEGAL_PARAM",
            "no-path",
            f"{name}: the 910B has no path from {src.space.name} ({src.name}) to {dst.space.name} "
            f"({dst.name}); data goes GM to UB or L1, UB or L1 to GM, UB to UB",
            dst.name,
        )
    if src.dtype is not dst.dtype:
        fault(
            "ILLEGAL_PARAM",
            "dtype-mismatch",
            f"{name}: src {src.name} is {src.dtype}, dst {dst.name} is {dst.dtype}. A copy does not convert: "
            f"use tensors of one type, cast, or reinterpret_cast if the bits are meant",
            src.name,
            pipe=pipe.name,
        )
    for operand, tensor in (("dst", dst), ("src", src)):
        _check_alignment(name, operand, tensor, pipe)
    return pipe


def _check_alignment(name: str, operand: str, tensor: Tensor, pipe: Pipe) -> None:
    if isinstance(tensor, GlobalTensor):
        size = tensor.dtype.size
        if tensor.offset % size:
            fault(
                "ALIGNMENT",
                "gm-misaligned",
                f"{name}: {operand} {tensor.name} starts at GM byte {tensor.offset}, which is no multiple of "
                f"the {size} bytes of {tensor.dtype}",
                tensor.name,
                (tensor.offset, tensor.offset + tensor.length),
                pipe.name,
            )
    elif tensor.addr % BLOCK_BYTES:
        fault(
            "ALIGNMENT",
            "misaligned-operand",
            f"{name}: {operand} {tensor.name} starts at {tensor.space.name} byte {tensor.addr}, which is "
            f"{tensor.addr % BLOCK_BYTES} past a {BLOCK_BYTES}-byte border; copies start on one",
            tensor.name,
            (tensor.addr, tensor.addr + tensor.length),
            pipe.name,
        )


def start_of(tensor: Tensor) -> int:
    """Return a tensor's first byte in its memory or allocation."""
    return tensor.offset if isinstance(tensor, GlobalTensor) else tensor.addr


def rows_of(tensor: Tensor, rows: int, length: int, pitch: int) -> Access:
    """Return `rows` runs of `length` bytes from the tensor's start, one every `pitch` bytes, as elements."""
    size = tensor.dtype.size
    if rows == 1 or pitch == length:
        return Access(tensor, start_of(tensor), (rows * length // size,), (size,), tensor.dtype)
    return Access(tensor, start_of(tensor), (rows, length // size), (pitch, size), tensor.dtype)


def check_inside(
    name: str, operand: str, access: Access, tensor: Tensor, pipe: Pipe, hint: str = ""
) -> None:
    """Fault when a copy's operand leaves its tensor, memory or allocation."""
    capacity = 0 if tensor.space is Space.GM else current.get().capacity(tensor.space)
    check_bounds(access, tensor, f"{name}: {operand}", capacity, pipe.name, hint)
