"""Tiling of `rope_grad`: from shapes and parameter to the record that the device kernel reads."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ops.kernel_side import TilingFailure, TilingResult

RECORD_FIELDS = ("maxSeqLen", "hiddenSize", "headSize", "sumSeqLen", "batch")
"""The int64 fields in order; one int32 a sample, its length, follows."""

RECORD_BYTES = 8 * len(RECORD_FIELDS)
MAX_BATCH = 99_999


def record_size(batch: int) -> int:
    """Return the bytes of the record of `batch` samples. Raises `TilingFailure` for an impossible number."""
    if not 1 <= batch <= MAX_BATCH:
        raise TilingFailure(f"qSeqLen has {batch} entries; the kernel takes 1 to {MAX_BATCH}")
    return RECORD_BYTES + 4 * batch


def tile(
    shapes: Sequence[Sequence[int]],
    seq_lens: Sequence[int],
    max_process_num: int,
    vector_cores: int,
) -> TilingResult:
    """Return record and block dim for the shapes of the four inputs.

    One block a head, but never more blocks than vector cores: the heads beyond them are left out, which is
    the library's fault, kept. Raises `TilingFailure` for a head size or hidden size that the kernel cannot take.
    """
    (sum_seq_len, hidden_size), _, (max_seq_len, head_size), _ = shapes
    if not 0 < head_size < max_process_num:
        raise TilingFailure(
            f"head size {head_size} must be above 0 and smaller than MAX_PROCESS_NUM, which is "
            f"{max_process_num} (the smallest that works is {head_size + 1})"
        )
    if hidden_size % head_size:
        raise TilingFailure(f"hidden size {hidden_size} is no multiple of head size {head_size}")
    fields = (max_seq_len, hidden_size, head_size, sum_seq_len, len(seq_lens))
    record = struct.pack(f"<5q{len(seq_lens)}i", *fields, *seq_lens)
    return TilingResult(record, min(hidden_size // head_size, vector_cores))
