"""What a run of `rope_grad` is told beyond the simulator's own checks.

The results against both references, and the faults of the library's kernel that a careful reader finds: it is not
the adjoint, heads beyond the vector cores and rows beyond the samples stay unwritten, every head builds the same
`work`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ascend_sim.errors import Finding
from isa.types import CoreKind
from ops.compare import Comparison
from ops.coverage import Region, regions, written_mask
from ops.machine import Machine
from ops.rope_grad import reference
from ops.tensor import Array

if TYPE_CHECKING:
    from ascend_sim import Run

TOLERANCE = 1e-3
"""Relative and absolute tolerance of the library's own check."""

ADJOINT_TOLERANCE = 4e-3
"""Of the adjoint in float16: three roundings of 2^-11 each of terms up to a few units."""

OUTPUTS = ("q_grad", "k_grad")


def review(
    run: Run,
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    seq_lens: Sequence[int],
    machine: Machine,
) -> None:
    """Add coverage, numbers and the known faults to `run`.

    `inputs` are the arrays as they were before the launch, `outputs` as the kernel left them.
    """
    rows, hidden_size = inputs[0].shape
    head_size = inputs[2].shape[1]
    blocks = min(hidden_size // head_size, machine.core_count(CoreKind.AIV))
    itemsize = outputs[0].itemsize
    # Nothing checks the outputs' shapes: the kernel takes them for rows of the hidden size.
    outputs = [_as_rows(output, hidden_size) for output in outputs]
    if machine.checks == "off":
        missing = [
            _never_computed(len(output), hidden_size, head_size * blocks, seq_lens)
            for output in outputs
        ]
    else:
        missing = [
            regions(run.coverage.get(name, [(0, output.nbytes)]), hidden_size, itemsize)
            for name, output in zip(OUTPUTS, outputs, strict=True)
        ]
        for name, parts in zip(OUTPUTS, missing, strict=True):
            for region in parts:
                run.add_finding(
                    _not_written(
                        name, region, (rows, hidden_size), head_size, blocks, seq_lens, itemsize
                    )
                )
    for finding in _known_faults(inputs, seq_lens, blocks):
        run.add_finding(finding)
    if machine.numerics != "off":
        _compare(run, inputs, outputs, seq_lens, missing)


def review_tuned(
    run: Run,
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    seq_lens: Sequence[int],
    *,
    adjoint: bool,
) -> None:
    """Add to a run of the rewritten kernel how its results compare: with the library's bit for bit, or the adjoint.

    The adjoint is computed in float16 with three roundings, so it may be off by that many units of the larger terms.
    """
    gradients, (cos_table, sin_table) = inputs[:2], inputs[2:]
    rows, hidden_size = gradients[0].shape
    compared = (
        Comparison(exact=not adjoint, rtol=ADJOINT_TOLERANCE, atol=ADJOINT_TOLERANCE)
        if adjoint
        else Comparison(exact=True)
    )
    for piece in reference.pieces(seq_lens, rows, hidden_size):
        cos, sin = cos_table[piece.table_rows], sin_table[piece.table_rows]
        everything = np.ones((piece.row_end - piece.row, hidden_size), bool)
        for name, gradient, output in zip(OUTPUTS, gradients, outputs, strict=True):
            given = gradient[piece.rows]
            wanted = (
                reference.adjoint_rows(given, cos, sin)
                if adjoint
                else reference.library_rows(given, reference.work_rows(cos, sin))
            )
            compared.add(name, piece.row, output[piece.rows], wanted, everything)
    figures = {"reference": "adjoint" if adjoint else "library", **compared.as_dict()}
    run.set_numerics({**figures, "compared": compared.compared})
    if compared.mismatches:
        name, row, column = compared.first_mismatch or ("", 0, 0)
        message = (
            f"{compared.mismatches} of {compared.compared} elements differ from the reference; the first is "
            f"{name}[{row}, {column}]"
        )
        run.add_finding(
            Finding("NUMERIC", "differs-from-reference", message, tensor=name, struck=True)
        )


def _as_rows(output: Array, hidden_size: int) -> Array:
    rows = output.size // hidden_size
    return output.reshape(-1)[: rows * hidden_size].reshape(rows, hidden_size)


def _never_computed(
    rows: int, hidden_size: int, computed: int, seq_lens: Sequence[int]
) -> list[Region]:
    """Return what the kernel leaves out by its design: heads beyond the blocks, rows beyond the samples."""
    covered = min(sum(seq_lens), rows)
    heads = Region(0, covered, computed, hidden_size)
    rest = Region(covered, rows, 0, hidden_size)
    return [region for region in (heads, rest) if region.size]


def _not_written(
    name: str,
    region: Region,
    shape: tuple[int, int],
    head_size: int,
    blocks: int,
    seq_lens: Sequence[int],
    itemsize: int,
) -> Finding:
    rows, hidden_size = shape
    first = (region.row * hidden_size + region.column) * itemsize
    end = ((region.row_end - 1) * hidden_size + region.column_end) * itemsize
    code, why = "output-not-written", ""
    what = f"columns {region.columns_text} of rows {region.rows_text}"
    if region.row >= sum(seq_lens):
        code, what = "rows-not-computed", f"rows {region.rows_text}"
        why = (
            f": qSeqLen adds up to {sum(seq_lens)} and the gradients have {rows} rows; the host does not "
            "compare them"
        )
    elif (region.column, region.column_end) == (blocks * head_size, hidden_size):
        heads = Region(0, 1, blocks, hidden_size // head_size).columns_text
        code = "heads-not-computed"
        what = f"columns {region.columns_text} (heads {heads}) of rows {region.rows_text}"
        why = (
            f": a block computes one head and does not loop, and the block dim is capped at the {blocks} vector "
            f"cores while there are {hidden_size // head_size} heads; up to hidden size {blocks * head_size} "
            "every head is computed"
        )
    message = f"{name}: {what} were never written{why}"
    return Finding("COVERAGE", code, message, tensor=name, bytes=(first, end), struck=True)


def _known_faults(inputs: Sequence[Array], seq_lens: Sequence[int], blocks: int) -> list[Finding]:
    table_bytes = 2 * sum(seq_lens) * inputs[2].shape[1] * inputs[2].itemsize
    stride = Finding(
        "INFO", "muls-repeat-stride",
        "Muls has the literal repeat stride 8, right for head size 128 only; the host lets no other head size pass",
        struck=False,
    )  # fmt: skip
    if blocks == 1:
        return [stride]
    again = Finding(
        "PERF", "work-by-every-head",
        f"each of the {blocks} heads loads cos and sin ({table_bytes} bytes) and builds the same factor again: "
        f"{(blocks - 1) * table_bytes} bytes of GM reads more than one head needs",
    )  # fmt: skip
    return [stride, again]


def _compare(
    run: Run, inputs: Sequence[Array], outputs: Sequence[Array], seq_lens: Sequence[int],
    missing: Sequence[Sequence[Region]],
) -> None:  # fmt: skip
    library = Comparison(exact=True)
    adjoint = Comparison(exact=False, rtol=TOLERANCE, atol=TOLERANCE)
    gradients, (cos_table, sin_table) = inputs[:2], inputs[2:]
    rows, hidden_size = gradients[0].shape
    rows = min(rows, *(len(output) for output in outputs))
    for piece in reference.pieces(seq_lens, rows, hidden_size):
        cos, sin = cos_table[piece.table_rows], sin_table[piece.table_rows]
        work = reference.work_rows(cos, sin)
        for name, gradient, output, parts in zip(OUTPUTS, gradients, outputs, missing, strict=True):
            written = written_mask(parts, piece.row, piece.row_end, hidden_size)
            given, result = gradient[piece.rows], output[piece.rows]
            library.add(name, piece.row, result, reference.library_rows(given, work), written)
            adjoint.add(name, piece.row, result, reference.adjoint_rows(given, cos, sin), written)
    run.set_numerics(_figures(library, adjoint, missing))
    if not library.bit_exact:
        run.add_finding(_differs(library))
    if adjoint.mismatches:
        run.add_finding(_not_the_adjoint(adjoint))


def _figures(
    library: Comparison, adjoint: Comparison, missing: Sequence[Sequence[Region]]
) -> dict[str, Any]:
    return {
        "reference": "library",
        **library.as_dict(),
        "compared": library.compared,
        "not_written": sum(region.size for parts in missing for region in parts),
        "adjoint": {**adjoint.as_dict(), "rtol": TOLERANCE, "atol": TOLERANCE},
    }


def _differs(library: Comparison) -> Finding:
    name, row, column = library.first_mismatch or ("", 0, 0)
    # Where one side is no finite number there is no size to tell.
    size = f", by up to {library.max_abs_error:.3g}" if library.max_abs_error else ""
    message = (
        f"{library.mismatches} of {library.compared} elements differ from the library's result{size}; "
        f"the first is {name}[{row}, {column}]"
    )
    return Finding("NUMERIC", "differs-from-library", message, tensor=name, struck=True)


def _not_the_adjoint(adjoint: Comparison) -> Finding:
    message = (
        f"the operator is not the adjoint of RoPE, by the library's own formula: {adjoint.mismatches:,} of "
        f"{adjoint.compared:,} elements are off by more than {TOLERANCE:g}, by up to {adjoint.max_abs_error:.3g} "
        f"(relative {adjoint.max_rel_error:.3g}); it multiplies each half of a head by both terms instead of "
        "mixing the halves"
    )
    return Finding("INFO", "not-the-adjoint", message, struck=True)
