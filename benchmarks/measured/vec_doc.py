"""Steady rate of vector instructions: elements a cycle over a long run of equal instructions."""

from __future__ import annotations

from functools import partial

from ascend_sim import asc
from ascend_sim.accuracy import Record, time_launch, times

from ._kit import local

NUMBER = 64
REPEATS = 48
SECOND = 256 + 4 * 12288  # of two sources: half the bank groups away from the first
TARGET = 2 * 4 * 12288 + 1024


def run_of(name: str, dtype, number: int):
    """Send one instruction again and again."""
    lanes = 256 // dtype.sizeof()
    count = lanes * REPEATS
    a, b, c = (local(place, count, dtype) for place in (0, SECOND, TARGET))
    other = asc.float16 if dtype is asc.float32 else asc.float32
    for _ in range(number):
        if name in ("add", "mul", "div", "mul_add_dst"):
            getattr(asc, name)(c, a, b, count)
        elif name == "cast":
            wide = count if dtype is asc.float32 else count // 2
            asc.cast(local(TARGET, wide, other), a, asc.RoundMode.CAST_NONE, wide)
        elif name == "whole_reduce_sum":
            asc.whole_reduce_sum(c, a, lanes, REPEATS, 1, 1, 8)
        elif name == "block_reduce_sum":
            asc.block_reduce_sum(c, a, REPEATS, lanes, 1, 1, 8)
        else:
            getattr(asc, name)(c, a, count)


INSTRUCTIONS = {
    "Add": "add", "Mul": "mul", "Exp": "exp", "Ln": "ln", "Sqrt": "sqrt", "Div": "div", "MulAddDst": "mul_add_dst",
    "Cast": "cast", "WholeReduceSum": "whole_reduce_sum", "BlockReduceSum": "block_reduce_sum",
}  # fmt: skip


def elements_a_cycle(record: Record, name: str, dtype) -> tuple[float, dict]:
    """Return an instruction's steady rate, from the difference of a long and a short run, and the long run's times."""
    runs = [
        time_launch(partial(run_of, name=name, dtype=dtype, number=n), record=record, cores=1)
        for n in (NUMBER, 2 * NUMBER)
    ]
    elements = 256 // dtype.sizeof() * REPEATS * NUMBER
    if name == "cast" and dtype is asc.float16:
        elements //= 2
    return elements / (runs[1].cycles - runs[0].cycles), times(runs[1])


def simulate(record: Record) -> dict:
    result: dict = {}
    for key, dtype in (("half_per_cycle", asc.float16), ("float_per_cycle", asc.float32)):
        rates = {}
        for name, instruction in INSTRUCTIONS.items():
            rates[name], last = elements_a_cycle(record, instruction, dtype)
            result = result or last
        result[key] = rates
    return result
