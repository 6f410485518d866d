"""A thousand Adds at fixed UB addresses, with and without bank conflicts."""

from __future__ import annotations

from functools import partial

from ascend_sim import asc
from ascend_sim.accuracy import Record, time_launch, times

from ._kit import local

COUNT = 4096  # float32 elements of an operand


def adds(dst: int, src0: int, src1: int, strides: tuple[int, int], number: int):
    """Add the same operands again and again, a vector barrier behind each; count the cycles of the loop."""
    c, a, b = (local(place, COUNT, asc.float32) for place in (dst, src0, src1))
    block_stride, repeat_stride = strides
    params = asc.BinaryRepeatParams(1, block_stride, 1, 8, repeat_stride, 8)
    for _ in range(number):
        asc.add(c, a, b, 64, 64, params)
        asc.pipe_barrier(asc.PipeID.PIPE_V)


def simulate(record: Record) -> dict:
    params = record.params
    places = {name: int(params[name], 16) for name in ("dst", "src0", "src1")}
    kind = params["kind"]
    strides = (1, 8)
    if "block stride 0" in kind:
        strides = (0, 1) if "repeat stride 1" in kind else (0, 8)
    kernel = partial(adds, **places, strides=strides, number=params["adds"])
    run = time_launch(kernel, record=record, cores=1)
    result = times(run)
    loop_us = result["aiv_us"]
    return result | {
        "total_us": loop_us,
        "ticks_50mhz": loop_us * 50,
        "ns_per_add": loop_us * 1000 / params["adds"],
    }
