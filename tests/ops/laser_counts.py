"""Instruction counts of laser_attention_grad in closed form, derived by hand from the routines; K is 1024 bytes.

G segments, n computed blocks, c columns of segments, u skipped blocks, F stores of dQ; X sections of one vector core,
tails and edges its blocks with a mask on the diagonal and on the window's edge.
"""

from __future__ import annotations

from dataclasses import dataclass

from ops.laser_attention_grad.plan import Plan

K = 1024

AIC = ("MTE2", "MTE2 bytes", "MTE1", "M", "M cycles", "FIX", "FIX bytes")
AIV = ("MTE2", "MTE2 bytes", "V", "V repeats", "MTE3", "MTE3 bytes")


@dataclass
class Tally:
    """What the closed forms are made of, over some cores and rounds; `active` counts core-rounds with work."""

    G: int = 0
    n: int = 0
    c: int = 0
    u: int = 0
    F: int = 0
    X: int = 0
    tails: int = 0
    edges: int = 0
    active: int = 0

    def add(self, plan: Plan, core: int, number: int) -> None:
        """Take one core's round."""
        for segment in plan.segments(core, number):
            self.G += 1
            self.n += segment.computed
            self.c += segment.columns
            self.u += segment.upper_right
            self.F += 2 - (segment.columns == 1 and segment.upper_right)
        for section in plan.sections(core, number):
            self.X += 1
            self.tails += section.tail
            self.edges += section.head_edge
        self.active += plan.is_active(core, number)


def tally(plan: Plan) -> Tally:
    """Return the sums over all cores and rounds."""
    total = Tally()
    for number in range(plan.rounds):
        for core in range(plan.cores):
            total.add(plan, core, number)
    return total


def cube_counts(plan: Plan, t: Tally) -> dict[str, int]:
    """Return what the cube cores do in the rounds."""
    if plan.window:
        values = (
            4 * t.G + 5 * t.n, 32 * K * (4 * t.G + 5 * t.n), 32 * t.G + 34 * t.n, 5 * t.n, 2560 * t.n,
            t.G + 4 * t.n, 64 * K * (t.G + 4 * t.n),
        )  # fmt: skip
    elif plan.sizes.head_dim == 128:
        values = (
            6 * t.G + 3 * t.c + 3 * t.n, K * (256 * t.G + 96 * t.c + 96 * t.n), 32 * t.G + 10 * t.c + 40 * t.n,
            4 * t.n + 2 * t.c, 512 * (4 * t.n + 2 * t.c), 2 * t.n + 2 * t.c + t.F,
            64 * K * (2 * t.n + 2 * t.c + t.F),
        )  # fmt: skip
    else:
        values = (
            8 * t.G + 3 * t.c + 5 * t.n, K * (320 * t.G + 128 * t.c + 144 * t.n), 32 * t.G + 9 * t.c + 82 * t.n,
            7 * t.n + 2 * t.c, 2816 * t.n + 1024 * t.c, 2 * t.n + 3 * t.c + 2 * t.F,
            64 * K * (2 * t.n + 2 * t.c + t.F) + 32 * K * (t.c + t.F),
        )  # fmt: skip
    return dict(zip(AIC, values, strict=True))


def vector_counts(t: Tally) -> dict[str, int]:
    """Return what one vector core of each pair does in the rounds; its twin does the same."""
    masked = t.tails + t.edges
    values = (
        8 * t.X + 4 * t.n + 2 * masked, 33280 * t.X + 65536 * t.n + 16384 * masked,
        20 * t.X + 18 * t.n + 6 * t.tails + 10 * t.edges,
        674 * t.X + 896 * t.n + 384 * t.tails + 640 * t.edges, 4 * t.n, 32768 * t.n,
    )  # fmt: skip
    return dict(zip(AIV, values, strict=True))


def post_counts(counts: list[int], vector_cores: int) -> dict[str, int]:
    """Return what post-processing does on all vector cores: dQ in equal shares rounded up, dK and dV exact."""
    chunks = [0, 0, 0]
    moved = 0
    for position, count in enumerate(counts):
        more, extra = -(-count // vector_cores), count % vector_cores
        shares = [more] * vector_cores
        if position:
            shares = [count // vector_cores + (core < extra) for core in range(vector_cores)]
        chunks[position] = sum(-(-share // 16288) for share in shares)
        moved += sum(shares)
    return {
        "MTE2": sum(chunks),
        "MTE2 bytes": 4 * moved,
        "V": 2 * (chunks[0] + chunks[1]) + chunks[2],
        "MTE3": sum(chunks),
        "MTE3 bytes": 2 * moved,
    }
