"""One block of a mix kernel: both vector cores ask for products, whose common operands are loaded twice, or shared."""

from __future__ import annotations

from functools import partial

import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, time_launch, times

from ._served import WORDS, Request, ask, serve
from ._tiles import Plan, band

BASE_K = 64
VECTORS = 2


def shared(a, b, c, lines, plan: Plan, requests):
    if asc.ascend_is_aic():
        serve(a, b, c, lines, plan, requests, VECTORS)
        return
    asc.TPipe()
    ask(lines, requests, VECTORS)


def requests_of(plan: Plan, variant: str) -> list[Request]:
    """Return what is asked for: by each vector core its half of the rows, by both the two halves, or by both all."""
    m, n, _ = plan.size
    half = m // VECTORS
    halves = [band(plan, (number * half, half), (0, n)) for number in range(VECTORS)]
    if variant == "b_on":
        return [Request((0, 1), [halves[0] + halves[1]])]
    if variant == "ab_on":
        return [Request((0, 1), [band(plan, (0, m), (0, n))])]
    return [Request((number,), [own]) for number, own in enumerate(halves)]


def simulate(record: Record) -> dict:
    m, n, k = (record.shape[name] for name in "MNK")
    variant = record.params["variant"]
    rows = m if variant == "ab_on" else m // VECTORS
    steps = -(-k // BASE_K)
    plan = Plan((m, n, k), (rows, n, BASE_K), (steps, steps), slots=(1, 1), stored_b="KN")
    a, b, c = (
        np.zeros((m, k), np.float16),
        np.zeros((k, n), np.float16),
        np.zeros((m, n), np.float32),
    )
    lines = np.zeros((record.cores * VECTORS, WORDS), np.int32)
    kernel = partial(shared, plan=plan, requests=requests_of(plan, variant))
    run = time_launch(
        kernel, a, b, c, lines, record=record, cores=record.cores,
        kernel_type=f"MIX_AIC_1_{VECTORS}", numerics="on",
    )  # fmt: skip
    return times(run)
