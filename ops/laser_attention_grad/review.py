"""What a run of `laser_attention_grad` is told beyond the simulator's own checks.

Both references, the hand-over between cube and vector cores, and the faults of the library's operator: as INFO where
they change nothing of this run, as findings where they do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ascend_sim.errors import Finding
from ascend_sim.threads import one_thread
from ops.coverage import regions
from ops.laser_attention_grad.comparison import OUTPUTS, Distance, to_kernel_order, to_library
from ops.laser_attention_grad.handover import explain
from ops.laser_attention_grad.kernel_side import tiling_of
from ops.laser_attention_grad.param import SBH, LaserAttentionGradParam
from ops.laser_attention_grad.problem import Problem, to_heads
from ops.laser_attention_grad.sizes import BLOCK, KEY_DIM, QUERY_DIM_SBH
from ops.laser_attention_grad.tiling import Tiling
from ops.machine import Machine
from ops.tensor import Array

if TYPE_CHECKING:
    from ascend_sim import Run

QUERY, KEY, VALUE, OUTPUT_GRAD, MASK, MAXIMUM, SUM, OUTPUT = 0, 1, 2, 3, 7, 8, 9, 11
INT32_ELEMENTS = 2**31
UINT32_BYTES = 2**32
POST_UNIT = 8
"""Rows that post-processing of SBH hands out together."""


def review(
    run: Run,
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    param: LaserAttentionGradParam,
    machine: Machine,
) -> None:
    """Add numbers, explanation and known faults to `run`.

    `inputs` are the arrays as they were before the launch, `outputs` as the kernel left them.
    """
    tiling = tiling_of(param, inputs[QUERY].shape, inputs[KEY].shape, inputs[MASK], machine)
    run.extra["tiling"] = {"path": tiling.path, "id": tiling.tiling_id, **tiling.fields()}
    explain(run, tiling)
    if machine.checks != "off":
        for finding in _unwritten(run, outputs):
            run.add_finding(finding)
    library = None
    if machine.numerics != "off":
        library = _compare(run, inputs, outputs, param, tiling, machine)
    for finding in _known_faults(inputs, param, tiling, library):
        run.add_finding(finding)


def _problem(inputs: Sequence[Array], param: LaserAttentionGradParam, tiling: Tiling) -> Problem:
    sizes = tiling.sizes

    def by_heads(index: int, heads: int) -> Array:
        return to_heads(inputs[index], heads, sizes.layout)

    return Problem(
        sizes,
        np.float32(param.scale_value),
        param.pre_tokens,
        by_heads(QUERY, sizes.heads),
        by_heads(KEY, sizes.kv_heads),
        by_heads(VALUE, sizes.kv_heads),
        by_heads(OUTPUT_GRAD, sizes.heads),
        by_heads(OUTPUT, sizes.heads),
        inputs[MAXIMUM],
        inputs[SUM],
        inputs[MASK] if tiling.has_mask else None,
        param.emulate.mask_bits,
    )


def _compare(
    run: Run, inputs: Sequence[Array], outputs: Sequence[Array], param: LaserAttentionGradParam,
    tiling: Tiling, machine: Machine,
) -> Distance:  # fmt: skip
    problem, sizes = _problem(inputs, param, tiling), tiling.sizes
    heads = (sizes.heads, sizes.kv_heads, sizes.kv_heads)
    results = [
        to_heads(output, count, sizes.layout) for output, count in zip(outputs, heads, strict=False)
    ]
    with np.errstate(all="ignore"), one_thread():
        library = to_library(problem, results)
        exact, one_core = machine.numerics == "exact", tiling.blocks == 1
        order = to_kernel_order(problem, results, exact=exact, one_core=one_core)
    run.set_numerics(
        {
            **library.figures(),
            "rule": "|result - golden| <= 2^-7 * max(1, |golden|) for every element",
            "passed": library.mismatches == 0,
            "kernel_order": order.figures(),
        }
    )
    if order.is_wrong:
        run.add_finding(
            _differs(order, "differs-from-kernel-order", "from what the kernel computes")
        )
    return library


def _differs(distance: Distance, code: str, what: str) -> Finding:
    name, index = distance.first or ("", ())
    place = ", ".join(str(i) for i in index)
    message = (
        f"{distance.mismatches} of {distance.compared} elements differ {what} by more than the order of additions "
        f"explains, by up to {distance.max_abs_error:.3g}; the first is {name}[{place}] (batch, head, row, column)"
    )
    return Finding("NUMERIC", code, message, tensor=name, struck=True)


def _unwritten(run: Run, outputs: Sequence[Array]) -> Iterator[Finding]:
    for name, output in zip(OUTPUTS, outputs, strict=False):
        missing = run.coverage.get(name, [(0, output.nbytes)])
        missing = [(low, min(high, output.nbytes)) for low, high in missing if low < output.nbytes]
        if not missing:
            continue
        count = sum(high - low for low, high in missing) // output.itemsize
        part = regions(missing, output.shape[-1], output.itemsize)[0]
        yield Finding(
            "COVERAGE",
            "output-not-written",
            f"{name}: {count} of {output.size} elements were never written, the first in row {part.row} of the "
            f"flat rows of {output.shape[-1]}: post-processing shares the tensor out among all vector cores of "
            "the platform, and fewer of them run",
            tensor=name,
            bytes=(missing[0][0], missing[-1][1]),
            struck=True,
        )


# ---- the operator's known faults ------------------------------------------------------------------


def _known_faults(
    inputs: Sequence[Array],
    param: LaserAttentionGradParam,
    tiling: Tiling,
    library: Distance | None,
) -> Iterator[Finding]:
    failed = library is not None and library.mismatches > 0
    faults = [*_mask_faults(inputs, param, tiling, library), *_size_faults(inputs, tiling)]
    yield from faults
    if failed and all(fault.kind in ("INFO", "PERF") for fault in faults):
        assert library is not None
        name, index = library.first or ("", ())
        yield Finding(
            "NUMERIC",
            "outside-library-rule",
            f"{library.mismatches} of {library.compared} elements are further from the library's golden result "
            f"than its rule allows (2^-7 * max(1, |golden|)), by up to {library.max_abs_error:.3g}; the first is "
            f"{name}[{', '.join(map(str, index))}]",
            tensor=name,
            struck=True,
        )


def _mask_faults(
    inputs: Sequence[Array],
    param: LaserAttentionGradParam,
    tiling: Tiling,
    library: Distance | None,
) -> Iterator[Finding]:
    if not tiling.has_mask:
        if param.pre_tokens < tiling.sizes.seq:
            yield Finding(
                "INFO",
                "pre-tokens-ignored",
                f"preTokens is {param.pre_tokens} and there is no attenMask: the window is ignored, every query "
                "sees every key. Give the causal mask to have a window",
                tensor="atten_mask",
            )
        return
    if library is not None and not _is_causal(inputs[MASK]):
        yield Finding(
            "NUMERIC",
            "mask-corner-only",
            f"atten_mask is not the causal mask, and the kernel reads only its first {BLOCK} rows and {BLOCK + 1} "
            "columns, for every block on the diagonal: whatever else stands in it is ignored",
            tensor="atten_mask",
            struck=library.mismatches > 0,
        )
    if param.emulate.mask_bits != "fp16":
        return
    what = (
        "attenMask must be float16, and the kernel reads its bits as bfloat16: a 1.0 becomes 2^-7"
    )
    if not tiling.is_sparse:
        yield Finding(
            "INFO",
            "mask-bits",
            f"{what}. On the diagonal that still hides a key (-7.8e27 is added), so nothing changes here",
            tensor="atten_mask",
        )
        return
    effect = ""
    if library is not None:
        effect = (
            f": {library.mismatches} of {library.compared} elements are outside the library's rule, by up to "
            f"{library.max_abs_error:.3g}"
        )
    yield Finding(
        "NUMERIC",
        "mask-bits",
        f"{what}. At the window's edge the mask is turned round, 1 - 2^-7 hides every key of the block, those "
        f"that should be seen too{effect}. --mask-bits bf16 shows the kernel with the bits that it takes",
        tensor="atten_mask",
        struck=library is None or library.mismatches > 0,
    )


def _is_causal(mask: Array) -> bool:
    """Whether exactly the keys behind each query are hidden, looked at in pieces."""
    columns = np.arange(mask.shape[1])
    for row in range(0, mask.shape[0], 1024):
        part = mask[row : row + 1024]
        wanted = columns > np.arange(row, row + len(part))[:, None]
        if not np.array_equal(part, wanted.astype(mask.dtype)):
            return False
    return True


def _size_faults(inputs: Sequence[Array], tiling: Tiling) -> Iterator[Finding]:
    sizes = tiling.sizes
    extra = tiling.overrun
    if extra:
        yield Finding(
            "INFO",
            "dq-post-overrun",
            "post-processing takes the size of a chunk for the number of cores with the larger share of dQ: the "
            f"last vector core reads {extra} elements past the sums of dQ and writes {2 * extra} bytes past the "
            "end of query_grad. The traffic counts here, and the bytes are kept apart",
            tensor="query_grad",
        )
    if 4 * sizes.query_elements >= UINT32_BYTES:
        yield Finding(
            "CAPACITY",
            "workspace-overflow",
            f"the sums of dQ take {4 * sizes.query_elements} bytes, and the library counts them in 32 bits: it "
            "asks for a workspace that is too small. Use fewer heads or samples a call",
            tensor="query_grad",
            struck=True,
        )
    if sizes.output_elements >= INT32_ELEMENTS:
        yield Finding(
            "BOUNDS",
            "row-offset-overflow",
            f"O has {sizes.output_elements} elements, and the vector core counts offsets in int32: rows from 2^31 "
            "elements on are read from elsewhere. Use fewer heads or samples a call",
            tensor="attention_in",
            struck=True,
        )
    if sizes.layout == SBH:
        yield from _sbh_faults(inputs, tiling)


def _sbh_faults(inputs: Sequence[Array], tiling: Tiling) -> Iterator[Finding]:
    sizes = tiling.sizes
    for name, index, dim in (
        ("query", QUERY, QUERY_DIM_SBH), ("key", KEY, KEY_DIM[QUERY_DIM_SBH]), ("value", VALUE, BLOCK),
        ("attention_out_grad", OUTPUT_GRAD, BLOCK), ("attention_in", OUTPUT, BLOCK),
    ):  # fmt: skip
        width = inputs[index].shape[2]
        if width % dim:
            yield Finding(
                "LAYOUT",
                "width-not-whole-heads",
                f"{name} has {width} columns, which are no whole heads of {dim}: the host divides with floor and "
                f"does not look at the rest, and the kernel takes {width // dim * dim} for the distance of rows. "
                "Leave the rest out",
                tensor=name,
                struck=True,
            )
    cores = 2 * tiling.blocks
    for name, heads, rows, dim in (
        ("dQ", sizes.heads, sizes.seq, sizes.head_dim),
        ("dK", sizes.kv_heads, sizes.kv_seq, sizes.key_dim),
        ("dV", sizes.kv_heads, sizes.kv_seq, BLOCK),
    ):
        base = rows // cores // POST_UNIT * POST_UNIT
        working = cores if base else min(cores, rows // POST_UNIT)
        if working < cores and sizes.batch * heads * dim > 2048:
            yield Finding(
                "INFO",
                "division-by-no-rows",
                f"post-processing of {name}: {cores - working} of {cores} vector cores have no rows and divide by "
                "their number all the same; nothing uses the result",
                tensor=name,
            )
