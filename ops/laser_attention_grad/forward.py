"""The forward pass in numpy, with the numerics of the forward kernel: what the backward takes from it.

Row maxima and sums in float32 from unrounded exponentials; P rounded to bfloat16 and not normalised for P V; the
division at the end; the result rounded to bfloat16.
"""

from __future__ import annotations

import numpy as np

from ops.laser_attention_grad.problem import BFLOAT16, MASKED, Float32, rounded, visible
from ops.laser_attention_grad.sizes import BLOCK, Sizes
from ops.tensor import Array

ROWS_AT_A_TIME = 512


def forward(
    query: Array,
    key: Array,
    value: Array,
    sizes: Sizes,
    scale: float,
    *,
    causal: bool,
    pre_tokens: int,
) -> tuple[Float32, Float32, Array]:
    """Return row maxima and sums (float32, [batch, heads, rows]) and the attention's result (bfloat16, by heads).

    Q, K and V are bfloat16 by heads. With `causal` a query sees its own key, and `pre_tokens` before it.
    """
    shape = (sizes.batch, sizes.heads, sizes.seq)
    maxima, sums = np.empty(shape, np.float32), np.empty(shape, np.float32)
    output = np.empty((*shape, BLOCK), BFLOAT16)
    factor = np.float32(scale)
    for batch, head in np.ndindex(sizes.batch, sizes.heads):
        kv_head = head // sizes.group
        keys = key[batch, kv_head, :, : sizes.head_dim].astype(np.float32)
        values = value[batch, kv_head].astype(np.float32)
        for row in range(0, sizes.seq, ROWS_AT_A_TIME):
            rows = slice(row, min(row + ROWS_AT_A_TIME, sizes.seq))
            low, high = _keys(row, rows.stop, sizes, causal, pre_tokens)
            scores = query[batch, head, rows].astype(np.float32) @ keys[low:high].T
            scores *= factor
            if causal:
                shown = visible(row, rows.stop - row, high, pre_tokens, sizes.seq)[:, low:]
                scores += np.where(shown, np.float32(0), MASKED)
            peak = scores.max(axis=1)
            scores -= peak[:, None]
            np.exp(scores, out=scores)
            total = scores.sum(axis=1, dtype=np.float32)
            maxima[batch, head, rows], sums[batch, head, rows] = peak, total
            weighted = rounded(scores) @ values[low:high]
            output[batch, head, rows] = (weighted / total[:, None]).astype(BFLOAT16)
    return maxima, sums, output


def _keys(row: int, end: int, sizes: Sizes, causal: bool, pre_tokens: int) -> tuple[int, int]:
    """Return the keys, first and past the last, that any of these rows sees."""
    if not causal:
        return 0, sizes.kv_seq
    return max(0, row - pre_tokens) if pre_tokens < sizes.seq else 0, min(end, sizes.kv_seq)
