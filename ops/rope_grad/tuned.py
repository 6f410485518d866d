"""The host side of the rewritten kernel: which block has which positions, how large the pieces are, the launch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ascend_sim.config import Chip
from ascend_sim.errors import ConfigError, Finding, HostError
from isa.types import BLOCK_BYTES, CoreKind, float16
from ops.machine import Machine
from ops.rope_grad.kernel_tuned import rope_grad_tuned
from ops.rope_grad.review import review_tuned
from ops.tensor import Array

if TYPE_CHECKING:
    from ascend_sim import Run

HEAD = 128
"""Head size that the kernel is written for."""
BUFFERS = 4
"""Buffers of one tile: two to load, two to store."""
MAX_REPEAT_STRIDE = 255
"""Blocks of 32 bytes from one repeat to the next: the width of a field of the instruction."""
MAX_REPEATS = 255
FACTOR_SHARE = 0.25
"""Share of UB that tables and factors may take; the rest is for tiles."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """First positions of the blocks and one past the last; sizes of the pieces."""

    plan: tuple[int, ...]
    group: int
    factor_rows: int
    tile_rows: int

    @property
    def block_dim(self) -> int:
        """The number of blocks."""
        return len(self.plan) - 1


def tile_tuned(seq_lens: Sequence[int], hidden_size: int, chip: Chip, vector_cores: int) -> Tiling:
    """Return the tiling: positions are dealt out so that every block has nearly the same number of rows."""
    plan = split_positions(seq_lens, best_blocks(seq_lens, hidden_size, chip, vector_cores))
    widest = max(end - first for first, end in pairwise(plan))
    usable = chip.memories.UB.usable
    factor_rows = _even(
        widest, min(int(FACTOR_SHARE * usable) // (4 * HEAD * float16.size), MAX_REPEATS)
    )
    left = usable - 4 * factor_rows * HEAD * float16.size
    group = min(hidden_size, MAX_REPEAT_STRIDE * BLOCK_BYTES // float16.size // HEAD * HEAD)
    most = left // BUFFERS // (group * float16.size)
    tile_rows = _even(min(factor_rows, widest), max(min(most, MAX_REPEATS), 1))
    return Tiling(plan, group, factor_rows, tile_rows)


def best_blocks(seq_lens: Sequence[int], hidden_size: int, chip: Chip, vector_cores: int) -> int:
    """Return how many blocks are worth their launch: each one costs time, and takes rows off the others."""
    row = 2 * hidden_size * float16.size / chip.gm.write_port_aiv
    start = max(chip.launch.per_core_us * chip.clock_mhz, 1.0)
    return min(vector_cores, max(1, round(math.sqrt(sum(seq_lens) * row / start))))


def _even(rows: int, most: int) -> int:
    """Return the size of the pieces, `most` at most, when rows are cut into as few and as equal ones as can be."""
    pieces = -(-rows // most)
    return -(-rows // pieces)


def split_positions(seq_lens: Sequence[int], blocks: int) -> tuple[int, ...]:
    """Return the first positions of at most `blocks` ranges of equal work: position p counts for each longer sample."""
    lengths = np.asarray(seq_lens)
    longest = int(lengths.max())
    counts = np.bincount(lengths, minlength=longest + 1)
    work = np.cumsum(
        len(lengths) - np.cumsum(counts)[:longest]
    )  # rows up to and with each position
    blocks = min(blocks, longest)
    goals = work[-1] * np.arange(1, blocks) / blocks
    cuts = np.searchsorted(work, goals) + 1
    plan = np.concatenate([[0], cuts, [longest]])
    return tuple(dict.fromkeys(np.minimum(plan, longest).tolist()))


def run_tuned(
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    seq_lens: Sequence[int],
    machine: Machine,
    constants: Mapping[str, Any],
    *,
    adjoint: bool,
) -> Run:
    """Run the rewritten kernel and compare its results; it has no tiling constants of its own.

    Raises ConfigError where some are given, and what `launch_tuned` does.
    """
    if constants:
        raise ConfigError(
            f"the rewritten kernel chooses its sizes itself and has no tiling constant {next(iter(constants))!r}"
        )
    run = launch_tuned(inputs, outputs, seq_lens, machine, adjoint=adjoint)
    if machine.numerics != "off":
        review_tuned(run, inputs, outputs, seq_lens, adjoint=adjoint)
    return run


def launch_tuned(
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    seq_lens: Sequence[int],
    machine: Machine,
    *,
    adjoint: bool,
) -> Run:
    """Run the rewritten kernel. Raises HostError for sizes that it does not take, and what a launch raises."""
    rows, hidden_size = inputs[0].shape
    if inputs[2].shape[1] != HEAD or hidden_size % HEAD:
        raise _refused(
            f"the rewritten kernel takes heads of {HEAD}; the tables have {inputs[2].shape[1]} columns, the gradients "
            f"{hidden_size}"
        )
    if sum(seq_lens) > rows:
        raise _refused(f"qSeqLen adds up to {sum(seq_lens)} and the gradients have {rows} rows")
    if max(seq_lens) > len(inputs[2]):
        raise _refused(
            f"the longest sample has {max(seq_lens)} positions, the tables {len(inputs[2])}"
        )
    tiling = tile_tuned(seq_lens, hidden_size, machine.chip, machine.core_count(CoreKind.AIV))
    arguments = (
        *inputs,
        *outputs,
        np.array(tiling.plan, np.int32),
        np.array(seq_lens, np.int32),
        len(seq_lens),
        hidden_size,
        tiling.group,
        tiling.factor_rows,
        tiling.tile_rows,
        int(adjoint),
    )
    return machine.launch(
        rope_grad_tuned, arguments, tiling.block_dim, CoreKind.AIV, ("q_grad", "k_grad")
    )


def _refused(message: str) -> HostError:
    return HostError(message, Finding("HOST", "tuned-kernel-sizes", message))
