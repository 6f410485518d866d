"""What a run of `rope_grad` must count, in closed form from the shape alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

HEAD_SIZE = 128
ROW_BYTES = 2 * HEAD_SIZE


@dataclass(frozen=True)
class Counts:
    """Sums over all blocks."""

    blocks: int
    mte2: int
    vector: int
    mte3: int
    read_bytes: int
    write_bytes: int
    vector_barriers: int
    all_barriers: int
    scalar_loads: int
    flags: dict[str, int]


def counts(
    seq_lens: Sequence[int], hidden_size: int, vector_cores: int, max_process_num: int = 12288
) -> Counts:
    """Return the counts of one launch."""
    blocks = min(hidden_size // HEAD_SIZE, vector_cores)
    rows_per_loop = max_process_num // HEAD_SIZE
    tiles = sum(-(-length // rows_per_loop) for length in seq_lens)
    rows = sum(seq_lens)
    n = blocks * tiles
    return Counts(
        blocks=blocks,
        mte2=4 * n,
        vector=5 * n,
        mte3=2 * n,
        read_bytes=blocks * 4 * rows * ROW_BYTES,
        write_bytes=blocks * 2 * rows * ROW_BYTES,
        vector_barriers=5 * n,
        # One after the record, one a sample, one at the end of the pipe object.
        all_barriers=blocks * (len(seq_lens) + 2),
        scalar_loads=blocks * (5 + len(seq_lens)),
        # As many sets as waits: the pipe object's end waits for what the queues have not.
        flags={"MTE2_V": 4 * n, "V_MTE2": 4 * n, "V_MTE3": 2 * n, "MTE3_V": 2 * n},
    )
