"""The sizes of one problem, read from the shapes of its tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ops.laser_attention_grad.param import BNSD, SBH

BLOCK = 128
"""Rows and columns of a block of the score matrix, and the head dim of V, O and their gradients."""

QUERY_DIM_SBH = 192
KEY_DIM = {128: 128, 192: 256}
"""Head dim of K by that of Q; columns of K past those of Q are padding."""

MAX_HEADS = 512


@dataclass(frozen=True, slots=True)
class Sizes:
    """`batch` samples, `heads` query heads and `kv_heads` key heads, `seq` queries and `kv_seq` keys of `head_dim`."""

    batch: int
    heads: int
    kv_heads: int
    seq: int
    kv_seq: int
    head_dim: int
    layout: str = BNSD

    @property
    def key_dim(self) -> int:
        """Head dim of K."""
        return KEY_DIM[self.head_dim]

    @property
    def group(self) -> int:
        """Query heads that share one key head."""
        return self.heads // self.kv_heads

    @property
    def query_elements(self) -> int:
        """Elements of Q and dQ."""
        return self.batch * self.heads * self.seq * self.head_dim

    @property
    def key_elements(self) -> int:
        """Elements of K and dK."""
        return self.batch * self.kv_heads * self.kv_seq * self.key_dim

    @property
    def value_elements(self) -> int:
        """Elements of V and dV."""
        return self.batch * self.kv_heads * self.kv_seq * BLOCK

    @property
    def output_elements(self) -> int:
        """Elements of O and dO."""
        return self.batch * self.heads * self.seq * BLOCK

    @property
    def score_elements(self) -> int:
        """Elements of the whole score matrix."""
        return self.batch * self.heads * self.seq * self.kv_seq

    def shape(self, heads: int, seq: int, dim: int) -> tuple[int, ...]:
        """Return the shape of a tensor in this layout."""
        if self.layout == SBH:
            return (seq, self.batch, heads * dim)
        return (self.batch, heads, seq, dim)

    @property
    def query_shape(self) -> tuple[int, ...]:
        """Shape of Q and dQ."""
        return self.shape(self.heads, self.seq, self.head_dim)

    @property
    def key_shape(self) -> tuple[int, ...]:
        """Shape of K and dK."""
        return self.shape(self.kv_heads, self.kv_seq, self.key_dim)

    @property
    def value_shape(self) -> tuple[int, ...]:
        """Shape of V and dV."""
        return self.shape(self.kv_heads, self.kv_seq, BLOCK)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Shape of O and dO."""
        return self.shape(self.heads, self.seq, BLOCK)


def sizes_of(
    query: Sequence[int], key: Sequence[int], layout: str, kv_heads: int | None = None
) -> Sizes:
    """Return the sizes of valid shapes of Q and K."""
    if layout == BNSD:
        batch, heads, seq, dim = query
        return Sizes(batch, heads, kv_heads or key[1], seq, key[2], dim, layout)
    seq, batch, width = query
    return Sizes(
        batch, width // QUERY_DIM_SBH, key[2] // KEY_DIM[QUERY_DIM_SBH], seq, key[0], QUERY_DIM_SBH, layout
    )  # fmt: skip
