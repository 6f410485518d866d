"""One problem as arrays in the layout [batch, heads, rows, head dim], whatever the layout of its tensors.

What forward pass and references have in common: heads one by one, the visible keys of a block of rows, the mask's
bits as the kernel reads them. numpy only; nothing here knows the device kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ops.laser_attention_grad.param import SBH
from ops.laser_attention_grad.sizes import BLOCK, Sizes
from ops.tensor import Array

Float32 = NDArray[np.float32]
Bool = NDArray[np.bool_]

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
MASKED = np.float32(-1e30)
"""What a masked score has added, in the forward and the backward kernel."""


def to_heads(array: Array, heads: int, layout: str) -> Array:
    """Return a tensor as [batch, heads, rows, head dim]; columns past the last whole head are left out."""
    if layout != SBH:
        return array
    rows, batch, width = array.shape
    dim = width // heads
    return array[:, :, : heads * dim].reshape(rows, batch, heads, dim).transpose(1, 2, 0, 3)


def from_heads(array: Array, layout: str) -> Array:
    """Return [batch, heads, rows, head dim] in the layout of the tensors."""
    if layout != SBH:
        return array
    batch, heads, rows, dim = array.shape
    return np.ascontiguousarray(array.transpose(2, 0, 1, 3)).reshape(rows, batch, heads * dim)


@dataclass(frozen=True, slots=True)
class Problem:
    """Sizes, switches and arrays: Q, K, V, dO, O bfloat16 by heads; max and sum of the softmax float32 by rows.

    `mask` is the tensor attenMask as it is given, None without one; `mask_bits` says how the kernel reads it.
    """

    sizes: Sizes
    scale: np.float32
    pre_tokens: int
    query: Array
    key: Array
    value: Array
    output_grad: Array
    output: Array
    softmax_max: Float32
    softmax_sum: Float32
    mask: Array | None
    mask_bits: str = "fp16"

    @property
    def window(self) -> int:
        """The window in blocks, 0 where there is none."""
        return window_blocks(self.sizes, self.mask is not None, self.pre_tokens)

    @property
    def triangular(self) -> bool:
        """Whether keys behind the query are left out."""
        return self.mask is not None

    def heads(self) -> Iterator[tuple[int, int, int]]:
        """Yield batch, query head and its key head."""
        sizes = self.sizes
        for batch in range(sizes.batch):
            for head in range(sizes.heads):
                yield batch, head, head // sizes.group

    def mask_corners(self) -> tuple[Float32, Float32]:
        """Return what the kernel adds to a diagonal block and to a block on the window's edge, 128 x 128 each."""
        assert self.mask is not None
        read = read_mask(self.mask[:BLOCK, : BLOCK + 1], self.mask_bits)
        return read[:, :BLOCK] * MASKED, (np.float32(1) - read[:, 1:]) * MASKED


def read_mask(mask: Array, bits: str) -> Float32:
    """Return the mask's values as the kernel sees them: with `fp16` a float16 1.0 becomes 2 ** -7."""
    if bits == "fp16":
        mask = np.ascontiguousarray(mask).view(np.uint16).view(BFLOAT16)
    read: Float32 = mask.astype(np.float32)
    return read


def window_blocks(sizes: Sizes, has_mask: bool, pre_tokens: int) -> int:
    """Return the window in blocks; 0 where the mask is only a triangle, or not there."""
    return pre_tokens // BLOCK if has_mask and pre_tokens < sizes.seq else 0


def column_blocks(row: int, sizes: Sizes, triangular: bool, window: int) -> tuple[int, int]:
    """Return the blocks of keys, first and past the last, that a block of rows sees."""
    if not triangular:
        return 0, sizes.kv_seq // BLOCK
    return max(0, row - window) if window else 0, row + 1


def visible(first_row: int, rows: int, keys: int, pre_tokens: int, seq: int) -> Bool:
    """Return which keys each row sees: none behind it, and `pre_tokens` before it where that is less than all."""
    distance = np.arange(first_row, first_row + rows)[:, None] - np.arange(keys)
    shown = distance >= 0
    if pre_tokens < seq:
        shown &= distance <= pre_tokens
    return shown


def rounded(values: Float32) -> Float32:
    """Return the nearest bfloat16 values, as float32."""
    return values.astype(BFLOAT16).astype(np.float32)
