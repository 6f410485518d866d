"""A sum of floats by different instructions: halves added, whole repeats, data blocks."""

from __future__ import annotations

from functools import partial

from ascend_sim import asc
from ascend_sim.accuracy import Record, time_launch, times

from ._kit import local, then_barrier

COUNT = 30000
LANES = 64


def by_halves(count: int):
    """Add halves down to one repeat, then sum that up."""
    values = local(0, count, asc.float32)
    left = count
    while left > LANES:
        half = -(-left // 2 // 8) * 8
        then_barrier(asc.add, values, values, values[half:], left - half)
        left = half
    then_barrier(asc.whole_reduce_sum, values, values, left, 1, 1, 1, 8)


def by_repeats(count: int):
    """Sum up whole repeats until one number is left."""
    values, left = local(0, count + LANES, asc.float32), count
    while left > 1:
        repeats = -(-left // LANES)
        for start in range(0, repeats, 255):
            number = min(255, repeats - start)
            mask = min(left, LANES)
            then_barrier(
                asc.whole_reduce_sum, values[start:], values[start * LANES :], mask, number, 1, 1, 8
            )
        left = repeats


def loops(kinds: tuple[str, ...], number: int):
    """Sum up 256 floats by a sequence of instructions, again and again."""
    source, target = local(0, 256, asc.float32), local(1024, 256, asc.float32)
    for _ in range(number):
        left = 256
        for kind in kinds:
            repeats, mask = -(-left // LANES), min(left, LANES)
            if kind == "whole":
                then_barrier(asc.whole_reduce_sum, target, source, mask, repeats, 1, 1, 8)
                left = repeats
            else:
                then_barrier(asc.block_reduce_sum, target, source, repeats, mask, 1, 1, 8)
                left = -(-left // 8)


MIXES = {
    "two_repeat_us": ("whole", "whole"),
    "three_block_us": ("block", "block", "block"),
    "block_then_repeat_us": ("block", "whole"),
}


def timed(kernel, record: Record) -> dict:
    """Return the times of a kernel without operands in GM, on one core."""
    return times(time_launch(kernel, record=record, cores=1))


def simulate(record: Record) -> dict:
    if record.name == "fold":
        fold = timed(partial(by_halves, count=COUNT), record)
        whole = timed(partial(by_repeats, count=COUNT), record)
        return fold | {
            "fold_ticks_50mhz": fold["aiv_us"] * 50,
            "repeat_reduce_ticks_50mhz": whole["aiv_us"] * 50,
        }
    number = record.params["loops"]
    results = {
        name: timed(partial(loops, kinds=kinds, number=number), record)
        for name, kinds in MIXES.items()
    }
    return results["two_repeat_us"] | {name: one["aiv_us"] for name, one in results.items()}
