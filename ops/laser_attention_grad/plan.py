"""Which blocks of the score matrix each core computes in each round: one answer for cube and vector cores.

Pure geometry. A block is 128 x 128 scores; a slot is a place for one in the workspace, 16 a core and round. Rows
of a triangle or of a window are folded, a long one with a short one, so that all have the same length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ops.laser_attention_grad.sizes import BLOCK, Sizes
from ops.laser_attention_grad.tiling import SLOTS


@dataclass(frozen=True, slots=True)
class Segment:
    """Neighbouring blocks of `rows` true rows from `row` and `columns` true columns from `column`.

    Block (j, i) has slot `slot + j * columns + i`. With `upper_right` the block of row 0 and the last column lies
    above the diagonal: it owns a slot and is not computed.
    """

    batch: int
    head: int
    row: int
    column: int
    rows: int
    columns: int
    slot: int
    upper_right: bool = False

    def skips(self, j: int, i: int) -> bool:
        """Whether block (j, i) is not computed."""
        return self.upper_right and j == 0 and i == self.columns - 1

    @property
    def computed(self) -> int:
        """How many blocks are computed."""
        return self.rows * self.columns - self.upper_right


@dataclass(frozen=True, slots=True)
class Section:
    """What a vector core does at a time: `length` blocks of one true row, in slots from `slot` on.

    `tail`: the last block lies on the diagonal; `head_edge`: the first one on the edge of the window.
    """

    batch: int
    head: int
    row: int
    column: int
    length: int
    slot: int
    tail: bool
    head_edge: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """The work of all cores. `window` is the window in blocks, 0 where there is none; `cores` those launched."""

    sizes: Sizes
    triangular: bool
    window: int
    cores: int

    @property
    def rows_a_part(self) -> int:
        """Rows that are taken together: pairs, single rows in a window."""
        return 1 if self.window else 2

    @property
    def row_blocks(self) -> int:
        """Rows of the score matrix in blocks."""
        return self.sizes.seq // BLOCK

    @property
    def odd(self) -> int:
        """Whether a triangle has an odd number of row pairs: the last one then has nothing to be folded with."""
        return self.row_blocks // 2 % 2 if self.triangular and not self.window else 0

    @property
    def folded_rows(self) -> int:
        """Rows of one head after folding."""
        if self.window:
            return self.row_blocks - self.window // 2
        return self.row_blocks // 2 + self.odd if self.triangular else self.row_blocks

    @property
    def folded_columns(self) -> int:
        """Columns of one head after folding."""
        if self.window:
            return self.window + 1
        columns = self.sizes.kv_seq // BLOCK
        return columns + 2 * (1 - self.odd) if self.triangular else columns

    @property
    def slots(self) -> int:
        """Slots of all heads."""
        sizes = self.sizes
        return sizes.batch * sizes.heads * self.folded_rows * self.folded_columns

    @property
    def rounds(self) -> int:
        """Rounds that all cores go through, those without work too."""
        return -(-self.slots // (SLOTS * self.cores))

    def is_active(self, core: int, round_number: int) -> bool:
        """Whether a core has slots in a round."""
        return (round_number * self.cores + core) * SLOTS < self.slots

    def effort(self, core: int, round_number: int) -> tuple[float, ...]:
        """Return what the time of a core's round grows with: segments and blocks to compute."""
        segments = self.segments(core, round_number)
        return (len(segments), sum(segment.computed for segment in segments))

    def segments(self, core: int, round_number: int) -> list[Segment]:
        """Return the segments of a core's round in the order of their slots."""
        first = (round_number * self.cores + core) * SLOTS
        left = min(SLOTS, self.slots - first) // self.rows_a_part
        position = first // self.rows_a_part  # in columns, which all rows taken together share
        slot = 0
        found = []
        while left > 0:
            segment = self._segment(position, left, slot)
            found.append(segment)
            position += segment.columns
            left -= segment.columns
            slot += segment.columns * segment.rows
        return found

    def sections(self, core: int, round_number: int) -> list[Section]:
        """Return the sections of a core's round: the rows of its segments that have a block to compute."""
        return [
            section
            for segment in self.segments(core, round_number)
            for section in self._sections(segment)
        ]

    def _sections(self, segment: Segment) -> Iterator[Section]:
        for j in range(segment.rows):
            length = segment.columns - (1 if segment.skips(j, segment.columns - 1) else 0)
            if not length:
                continue
            row = segment.row + j
            last = segment.column + length - 1
            yield Section(
                segment.batch,
                segment.head,
                row,
                segment.column,
                length,
                segment.slot + j * segment.columns,
                self.triangular and last == row,
                bool(self.window) and segment.column == row - self.window,
            )

    def _segment(self, position: int, most: int, slot: int) -> Segment:
        """Return the segment that begins at a column of the folded heads, `most` columns long at most."""
        parts_a_head = self.folded_rows // self.rows_a_part
        head, within = divmod(position, parts_a_head * self.folded_columns)
        part, folded = divmod(within, self.folded_columns)
        batch, head = divmod(head, self.sizes.heads)
        row, column, end = self._unfold(part * self.rows_a_part, folded)
        columns = min(most, end - column)
        # Only the two rows of a triangle's pair differ in length; their last column is the one that is skipped.
        last = self.triangular and not self.window and column + columns == end
        return Segment(batch, head, row, column, self.rows_a_part, columns, slot, last)

    def _unfold(self, folded_row: int, folded: int) -> tuple[int, int, int]:
        """Return the true row and column of a folded place, and the end of the true columns of its part."""
        if self.window:
            return self._unfold_window(folded_row, folded)
        if not self.triangular:
            return folded_row, folded, self.folded_columns
        half = self.folded_rows - 2 * self.odd
        switch = half + folded_row + 2  # columns of the left part
        if folded < switch:
            return half + folded_row, folded, switch
        return half - 2 - folded_row, folded - switch, half - folded_row

    def _unfold_window(self, folded_row: int, folded: int) -> tuple[int, int, int]:
        half = self.window // 2
        row = half + folded_row
        if folded_row >= half:
            return row, row - self.window + folded, row + 1
        if folded <= row:
            return row, folded, row + 1
        return half - 1 - folded_row, folded - row - 1, half - folded_row
