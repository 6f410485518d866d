"""The data cache of the scalar unit, and barriers of the memory system."""

from __future__ import annotations

from typing import Any

from ascend_sim.lang.queues import program
from isa.faults import fault
from isa.tensor import GlobalTensor
from isa.types import CacheLine, DcciDst, MemDsbT, Pipe

_GM_PIPES = (Pipe.MTE2, Pipe.MTE3, Pipe.FIX)
_UB_PIPES = (Pipe.V, Pipe.MTE2, Pipe.MTE3)
_DCCI = "data_cache_clean_and_invalid"


def data_cache_clean_and_invalid(
    entire_type: CacheLine, *arguments: Any, dst: Any = None, dcci_dst: Any = None
) -> None:
    """Write a line of the data cache back to GM and drop it: (entire_type[, dcci_dst], dst[, dcci_dst]).

    SINGLE_CACHE_LINE is about the 64-byte line in which `dst` starts, ENTIRE_DATA_CACHE about all lines. Scalar writes
    are visible to others only from then on; scalar reads see what others have written since.
    """
    for argument in arguments:
        if isinstance(argument, GlobalTensor) and dst is None:
            dst = argument
        elif dcci_dst is None:
            dcci_dst = argument
        else:
            fault("ILLEGAL_PARAM", "form", f"{_DCCI} takes (entire_type, dst[, dcci_dst])")
    if not isinstance(entire_type, CacheLine):
        fault(
            "ILLEGAL_PARAM",
            "cache-line",
            f"{_DCCI}: entire_type must be a CacheLine (SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE), got {entire_type!r}",
        )
    if not isinstance(dst, GlobalTensor) or dst.buffer is None:
        fault(
            "ILLEGAL_PARAM",
            "wrong-operand",
            f"{_DCCI}: dst must be a bound GlobalTensor, got {dst!r}",
        )
    if dcci_dst not in (None, DcciDst.CACHELINE_OUT, DcciDst.CACHELINE_ALL):
        fault(
            "ILLEGAL_PARAM",
            "dcci-dst",
            f"{_DCCI}: dcci_dst must be DcciDst.CACHELINE_OUT or CACHELINE_ALL on the 910B, got {dcci_dst!r}",
        )
    stream = program()
    if entire_type is CacheLine.ENTIRE_DATA_CACHE:
        stream.clean(None, 0)
    else:
        stream.clean(dst.buffer, dst.offset)


def data_sync_barrier(arg0: MemDsbT) -> None:
    """Stop the scalar unit until earlier accesses to memory are complete: ALL, those to GM (DDR), or those to UB.

    In time it waits for all pipes; what it orders are the pipes that access the memory it names.
    """
    if not isinstance(arg0, MemDsbT):
        fault(
            "ILLEGAL_PARAM",
            "memory",
            f"data_sync_barrier: arg0 must be a MemDsbT (ALL, DDR, UB), got {arg0!r}",
        )
    if arg0 is MemDsbT.SEQ:
        fault(
            "ILLEGAL_PARAM",
            "memory",
            "data_sync_barrier: MemDsbT.SEQ is reserved; use ALL, DDR or UB",
        )
    pipes = {MemDsbT.DDR: _GM_PIPES, MemDsbT.UB: _UB_PIPES}.get(arg0)
    program().memory_barrier("data_sync_barrier", pipes)
