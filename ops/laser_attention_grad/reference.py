"""References of `laser_attention_grad`, in numpy: what the library's own test computes, and what its kernel computes.

`library` is float32 without any rounding in between. `kernel_order` rounds P and dS to bfloat16 where the kernel
does, sums rows in its tree, and with `exact` adds products, blocks and rounds in the order of a run on one core.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ops.laser_attention_grad.plan import Plan, Segment
from ops.laser_attention_grad.problem import BFLOAT16, Float32, Problem, column_blocks, rounded
from ops.laser_attention_grad.sizes import BLOCK
from ops.tensor import Array

LIBRARY_MASKED = np.float32(-65536)
ROWS_AT_A_TIME = 512
EXACT_PRODUCTS = 16
"""Products whose sum the matrix unit rounds once in its exact mode."""


@dataclass(slots=True)
class Gradients:
    """dQ, dK and dV by heads; dK is as wide as K, its columns past those of Q are 0."""

    query: Array
    key: Array
    value: Array

    def arrays(self) -> tuple[Array, Array, Array]:
        """Return the three."""
        return self.query, self.key, self.value


def zeros(problem: Problem) -> Gradients:
    """Return gradients of zeros, float32."""
    return Gradients(
        *(np.zeros(one.shape, np.float32) for one in (problem.query, problem.key, problem.value))
    )


def library(problem: Problem) -> Gradients:
    """Return the library's golden result, float32: its formula on the whole mask, nothing rounded."""
    sizes = problem.sizes
    width = sizes.head_dim
    result = zeros(problem)
    for batch, head, kv_head in problem.heads():
        keys = problem.key[batch, kv_head, :, :width].astype(np.float32)
        values = problem.value[batch, kv_head].astype(np.float32)
        for row in range(0, sizes.seq, ROWS_AT_A_TIME):
            rows = slice(row, row + ROWS_AT_A_TIME)
            query = problem.query[batch, head, rows].astype(np.float32)
            grad = problem.output_grad[batch, head, rows].astype(np.float32)
            inner = (problem.output[batch, head, rows].astype(np.float32) * grad).sum(axis=1)
            log_sum = np.log(problem.softmax_sum[batch, head, rows])
            scores = query @ keys.T
            scores *= problem.scale
            _mask_scores(scores, problem, row)
            scores -= (problem.softmax_max[batch, head, rows] + log_sum)[:, None]
            weights = np.exp(scores, out=scores)
            result.value[batch, kv_head] += weights.T @ grad
            score_grads = grad @ values.T
            score_grads -= inner[:, None]
            score_grads *= weights
            score_grads *= problem.scale
            result.query[batch, head, rows] = score_grads @ keys
            result.key[batch, kv_head, :, :width] += score_grads.T @ query
    return result


def _mask_scores(scores: Float32, problem: Problem, row: int) -> None:
    if problem.mask is None:
        return
    rows = len(scores)
    scores += problem.mask[row : row + rows].astype(np.float32) * LIBRARY_MASKED
    if problem.pre_tokens < problem.sizes.seq:
        distance = np.arange(row, row + rows)[:, None] - np.arange(scores.shape[1])
        scores[distance > problem.pre_tokens] += LIBRARY_MASKED


@dataclass(slots=True)
class RowTerms:
    """What a block of rows needs again and again: sums of rows, and the logarithm that normalises."""

    inner: Float32
    log_sum: Float32


def row_terms(problem: Problem, batch: int, head: int, rows: slice) -> RowTerms:
    """Return rowsum(dO * O) by the kernel's tree, and max + ln(sum), both float32."""
    product = problem.output[batch, head, rows].astype(np.float32)
    product *= problem.output_grad[batch, head, rows].astype(np.float32)
    for half in (64, 32, 16, 8):
        product = product[:, :half] + product[:, half : 2 * half]
    for _ in range(3):
        product = product[:, 0::2] + product[:, 1::2]
    log_sum = np.log(problem.softmax_sum[batch, head, rows].astype(np.float64)).astype(np.float32)
    return RowTerms(product[:, 0], problem.softmax_max[batch, head, rows] + log_sum)


def weights_of(
    scores: Float32, mask: Float32 | None, terms: RowTerms, scale: np.float32
) -> Float32:
    """Return P, float32: exp(S * scale [+ mask] - L), each step rounded to float32."""
    scores = scores * scale
    if mask is not None:
        scores += mask
    scores -= terms.log_sum[:, None]
    return np.exp(scores.astype(np.float64)).astype(np.float32)


def kernel_order(problem: Problem, *, exact: bool = False) -> Gradients:
    """Return what the kernel computes, bfloat16.

    With `exact` bit for bit the result of a run on one core with exact numerics, else with sums in an order of
    numpy's own.
    """
    sums = _blockwise(problem) if exact else _rowwise(problem)
    return Gradients(
        (sums.query * problem.scale).astype(BFLOAT16),
        (sums.key * problem.scale).astype(BFLOAT16),
        sums.value.astype(BFLOAT16),
    )


def magnitudes(problem: Problem) -> Gradients:
    """Return the sum of the terms' magnitudes behind each element of the gradients, float32."""
    return Gradients(*_rowwise(problem, absolute=True).scaled(problem.scale))


class _Sums(Gradients):
    """float32 accumulators, before post-processing."""

    def scaled(self, scale: np.float32) -> tuple[Array, Array, Array]:
        return self.query * scale, self.key * scale, self.value


def _rowwise(problem: Problem, *, absolute: bool = False) -> _Sums:
    """Return the accumulators, one block of rows with all its keys at a time."""
    sizes = problem.sizes
    width = sizes.head_dim
    sums = _Sums(*zeros(problem).arrays())
    plain = np.abs if absolute else np.asarray
    for batch, head, kv_head in problem.heads():
        all_keys = problem.key[batch, kv_head, :, :width].astype(np.float32)
        all_values = problem.value[batch, kv_head].astype(np.float32)
        for row in range(sizes.seq // BLOCK):
            rows = slice(row * BLOCK, (row + 1) * BLOCK)
            first, end = column_blocks(row, sizes, problem.triangular, problem.window)
            columns = slice(first * BLOCK, end * BLOCK)
            query = problem.query[batch, head, rows].astype(np.float32)
            grad = problem.output_grad[batch, head, rows].astype(np.float32)
            keys, values = all_keys[columns], all_values[columns]
            terms = row_terms(problem, batch, head, rows)
            mask = _mask_row(problem, row, first, end)
            weights = weights_of(_scores(query, keys), mask, terms, problem.scale)
            inner = grad @ values.T - terms.inner[:, None]
            score_grads = plain(rounded(weights * inner))
            sums.value[batch, kv_head, columns] += plain(rounded(weights)).T @ plain(grad)
            sums.key[batch, kv_head, columns, :width] += score_grads.T @ plain(query)
            sums.query[batch, head, rows] += score_grads @ plain(keys)
    return sums


def _scores(query: Float32, keys: Float32) -> Float32:
    """Return Q Kt; with a head dim of 192 in the kernel's two steps, whose sums are rounded before they are added."""
    scores = query[:, :BLOCK] @ keys[:, :BLOCK].T
    if query.shape[1] > BLOCK:
        scores += query[:, BLOCK:] @ keys[:, BLOCK:].T
    return scores


def _mask_row(problem: Problem, row: int, first: int, end: int) -> Float32 | None:
    """Return what is added to the scores of a block of rows and the blocks of keys [first, end)."""
    if not problem.triangular:
        return None
    tail, edge = problem.mask_corners()
    mask = np.zeros((BLOCK, (end - first) * BLOCK), np.float32)
    mask[:, -BLOCK:] = tail
    if problem.window and first == row - problem.window:
        mask[:, :BLOCK] += edge
    return mask


# ---- block by block, in the order of one core ---------------------------------------------------


def _blockwise(problem: Problem) -> _Sums:
    sums = _Sums(*zeros(problem).arrays())
    plan = Plan(problem.sizes, problem.triangular, problem.window, 1)
    for round_number in range(plan.rounds):
        blocks = [
            _Blocks(problem, segment, plan.window) for segment in plan.segments(0, round_number)
        ]
        for gradient in (_add_value, _add_key, _add_query):
            for block in blocks:
                gradient(problem, block, sums)
    return sums


class _Blocks:
    """A segment with P and dS of its blocks, rounded to bfloat16 and widened again, by (row, column)."""

    def __init__(self, problem: Problem, segment: Segment, window: int) -> None:
        self.segment = segment
        self.kv_head = segment.head // problem.sizes.group
        self.weights: dict[tuple[int, int], Float32] = {}
        self.score_grads: dict[tuple[int, int], Float32] = {}
        for j, i in np.ndindex(segment.rows, segment.columns):
            if not segment.skips(j, i):
                self._compute(problem, j, i, window)

    def rows(self, j: int) -> slice:
        """Return the rows of the segment's j-th block of rows."""
        return slice((self.segment.row + j) * BLOCK, (self.segment.row + j + 1) * BLOCK)

    def columns(self, i: int) -> slice:
        """Return the keys of the segment's i-th column of blocks."""
        return slice((self.segment.column + i) * BLOCK, (self.segment.column + i + 1) * BLOCK)

    def order(self, i: int) -> Iterator[int]:
        """Yield the rows of a column that are computed."""
        return (j for j in range(self.segment.rows) if not self.segment.skips(j, i))

    def _compute(self, problem: Problem, j: int, i: int, window: int) -> None:
        segment, rows, columns = self.segment, self.rows(j), self.columns(i)
        batch, head = segment.batch, segment.head
        query = problem.query[batch, head, rows]
        key = problem.key[batch, self.kv_head, columns, : problem.sizes.head_dim]
        terms = row_terms(problem, batch, head, rows)
        row, column = segment.row + j, segment.column + i
        mask = None
        if problem.triangular:
            tail, edge = problem.mask_corners()
            mask = tail if row == column else edge if window and column == row - window else None
        weights = weights_of(exact_product(query, key.T), mask, terms, problem.scale)
        grad = problem.output_grad[batch, head, rows]
        value = problem.value[batch, self.kv_head, columns]
        inner = exact_product(grad, value.T) - terms.inner[:, None]
        self.weights[j, i] = rounded(weights)
        self.score_grads[j, i] = rounded(weights * inner)


def exact_product(left: Array, right: Array, total: Float32 | None = None) -> Float32:
    """Return left @ right [+ total] as the matrix unit's exact mode adds: 16 products, one rounding, one addition."""
    if total is None:
        total = np.zeros((left.shape[0], right.shape[1]), np.float32)
    wide, tall = left.astype(np.float64), right.astype(np.float64)
    for start in range(0, wide.shape[1], EXACT_PRODUCTS):
        part = slice(start, start + EXACT_PRODUCTS)
        total = total + (wide[:, part] @ tall[part]).astype(np.float32)
    return total


def _add_value(problem: Problem, blocks: _Blocks, sums: _Sums) -> None:
    _add_column_sums(problem.output_grad, BLOCK, blocks.weights, blocks, sums.value)


def _add_key(problem: Problem, blocks: _Blocks, sums: _Sums) -> None:
    width = problem.sizes.head_dim
    _add_column_sums(problem.query, width, blocks.score_grads, blocks, sums.key)


def _add_column_sums(
    right: Array, width: int, left: dict[tuple[int, int], Float32], blocks: _Blocks, sums: Array
) -> None:
    """Add each column's product, summed over its rows first, to the rows of the keys."""
    segment = blocks.segment
    for i in range(segment.columns):
        total = None
        for j in blocks.order(i):
            operand = right[segment.batch, segment.head, blocks.rows(j)]
            total = exact_product(left[j, i].T, operand, total)
        sums[segment.batch, blocks.kv_head, blocks.columns(i), :width] += total


def _add_query(problem: Problem, blocks: _Blocks, sums: _Sums) -> None:
    """Add each row's product, summed over the segment's columns first."""
    segment = blocks.segment
    width = problem.sizes.head_dim
    totals: dict[int, Float32] = {}
    for i in range(segment.columns):
        for j in blocks.order(i):
            keys = problem.key[segment.batch, blocks.kv_head, blocks.columns(i), :width]
            totals[j] = exact_product(blocks.score_grads[j, i], keys, totals.get(j))
    for j, total in totals.items():
        sums.query[segment.batch, segment.head, blocks.rows(j)] += total
