"""Batches of products: where matrix number i of a batch lies, and the products of a batch one after another.

Layouts, axes slowest first: NORMAL and BNGS1S2 hold whole matrices one behind another; BSNGD is [B, S, N, G, D] and
SBNGD [S, B, N, G, D], where a matrix of S rows of D elements is every N·G-th (B·N·G-th) run of D elements.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ascend_sim.adv.commands import ComputeAll
from ascend_sim.adv.job import Job
from ascend_sim.adv.settings import refuse
from ascend_sim.adv.store import Out
from ascend_sim.lang.enums import LayoutMode
from isa.arguments import is_whole
from isa.tensor import GlobalTensor

if TYPE_CHECKING:
    from ascend_sim.adv.matmul import Matmul

_SPREAD = (LayoutMode.BSNGD, LayoutMode.SBNGD)


@dataclass(frozen=True)
class Placing:
    """Elements between the rows of a matrix, and between the starts of neighbours in the batch."""

    pitch: int
    step: int

    @classmethod
    def of(
        cls,
        layout: LayoutMode,
        axes: tuple[int, int, int, int, int],
        rows: int,
        columns: int,
        step: int,
    ) -> Placing:
        """Return the placing of matrices of rows × columns; `axes` are b, s, n, g, d of the tiling, `step` a wish."""
        b, _, n, g, d = axes
        if layout in _SPREAD:
            d = d or columns
            across = max(n, 1) * max(g, 1) * (max(b, 1) if layout == LayoutMode.SBNGD else 1)
            return cls(across * d, step or d)
        return cls(columns, step or rows * columns)


def _axes(tiling: Any, which: str) -> tuple[int, int, int, int, int]:
    names = ("b", "s1", "n", "g", "s2") if which == "c" else ("b", "s", "n", "g", "d")
    b, s, n, g, d = (int(getattr(tiling, f"{which}_layout_info_{name}")) for name in names)
    return b, s, n, g, d


def products(
    mm: Matmul,
    target: GlobalTensor,
    batch_a: int,
    batch_b: int,
    atomic: int,
    strides: tuple[int, int, int],
    name: str,
    first: int = 0,
) -> list[ComputeAll]:
    """Return a command for each product of a batch, from matrix `first` of the larger operand on."""
    for what, value in (("batch_a", batch_a), ("batch_b", batch_b)):
        if not is_whole(value) or value < 1:
            refuse(
                "matmul-batch",
                f"{name}: {what} must be a whole number of at least 1, got {value!r}",
            )
    count = max(batch_a, batch_b)
    if count % batch_a or count % batch_b:
        refuse(
            "matmul-batch",
            f"{name}: batch_a is {batch_a}, batch_b {batch_b}; one must be a multiple of the other",
        )
    job = mm.product(name)
    tiling = mm.tiling
    out = mm.out(target, atomic, False, name)
    a = _placing(mm.a.layout, tiling, "a", job.a.turned, (job.m, job.k), strides[0])
    b = _placing(mm.b.layout, tiling, "b", job.b.turned, (job.k, job.n), strides[1])
    c = _placing(mm.c.layout, tiling, "c", False, (job.m, job.n), strides[2])
    return [
        ComputeAll(
            _one(mm, job, a, b, number // (count // batch_a), number // (count // batch_b), number),
            Out(target[number * c.step :], out.format, c.pitch, out.atomic),
            name,
        )
        for number in range(first, first + count)
    ]


def _placing(
    layout: LayoutMode, tiling: Any, which: str, turned: bool, sizes: tuple[int, int], step: int
) -> Placing:
    rows, columns = sizes[::-1] if turned else sizes
    return Placing.of(layout, _axes(tiling, which), rows, columns, step)


def _one(mm: Matmul, job: Job, a: Placing, b: Placing, in_a: int, in_b: int, number: int) -> Job:
    """Return the product of matrix `in_a` of A and `in_b` of B."""
    bias = job.bias
    if bias is not None and mm.config.is_bias_batch:
        bias = bias[number * job.n :]
    left = replace(job.a, tensor=job.a.tensor[in_a * a.step :], pitch=a.pitch)
    right = replace(job.b, tensor=job.b.tensor[in_b * b.step :], pitch=b.pitch)
    return replace(job, a=left, b=right, bias=bias)
