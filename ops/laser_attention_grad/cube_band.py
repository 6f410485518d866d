"""The cube core of the BAND paths: rows of blocks in pairs, whole or as a triangle, head dim 128.

Places on chip come in pairs, ping and pong. A flag says that a place is free or filled:

* MTE1_MTE2 and MTE2_MTE1: 0, 1 the right tiles in L1; 2, 3 the left tiles in L1; 4, 5 the two parts of a left tile.
* M_MTE1 and MTE1_M: 0, 1 L0A; 2, 3 L0B.

Between Mmad and fixpipe there are no flags: the unit flag of each place in L0C says whose turn it is.
"""

# pyasc's dialect; see arguments.py.
# mypy: ignore-errors

from __future__ import annotations

from ascend_sim import asc
from ops.laser_attention_grad.cube_core import (
    FINISH,
    FRACTAL,
    KEEP,
    L0,
    L0C,
    L1_A,
    L1_B,
    M_MTE1,
    MTE1_M,
    MTE1_MTE2,
    MTE2_MTE1,
    SLOT_TO_NZ,
    TILE,
    WHOLE_TILE,
    Cube,
    fractals,
    local,
    product,
    rows_out,
    rows_to_nz,
)
from ops.laser_attention_grad.sizes import BLOCK

TWO_ROWS_OF_128 = rows_to_nz(2 * BLOCK, BLOCK, BLOCK)
SCORE_OUT = rows_out(BLOCK)
SCORE_PRODUCT = product(True, FINISH)
LEFT_ROWS = fractals(8, 16)
LEFT_TURNED = fractals(8, 1, transpose=True)
LEFT_PLAIN = fractals(8, 8)
RIGHT_TURNED = fractals(8, 8, transpose=True)
PRODUCTS = {(init, flag): product(init, flag) for init in (True, False) for flag in (KEEP, FINISH)}

LEFT, PART = 2, 4
"""First ids of the left tiles in L1 and of their two parts."""
RIGHT_L0 = 2
"""First id of L0B."""


class CubeBand(Cube):
    """Head dim 128. The five indices of the places last through all routines and rounds."""

    def __init__(self, arguments):
        super().__init__(arguments)
        position = asc.TPosition
        self.left = [local(position.A1, address, 4 * TILE) for address in L1_A]
        self.right = [local(position.B1, address, 4 * TILE - 128) for address in L1_B]
        self.l0a = [local(position.A2, address, TILE) for address in L0]
        self.l0b = [local(position.B2, address, TILE) for address in L0]
        self.l0c = [local(position.CO1, address, TILE, asc.float32) for address in L0C]
        self.left_at = self.right_at = self.l0a_at = self.l0b_at = self.l0c_at = self.part_at = 0

    def begin(self):
        """Raise every flag that says a place is free."""
        for event_id in range(6):
            asc.set_flag(MTE1_MTE2, event_id)
            asc.set_flag(M_MTE1, event_id)

    def end(self):
        """Wait until every place is free again."""
        for event_id in range(6):
            asc.wait_flag(MTE1_MTE2, event_id)
            asc.wait_flag(M_MTE1, event_id)

    def scores(self, segments, slots):
        """S = Q Kt of all segments, then dP = dO Vt."""
        arguments = self.arguments
        self.row_products(segments, arguments.query, arguments.key, arguments.scores, slots)
        self.row_products(
            segments, arguments.attention_grad, arguments.value, arguments.score_grads, slots
        )

    def gradients(self, segments, slots):
        """dV += Pt dO, dK += dSt Q, dQ += dS K."""
        arguments = self.arguments
        weights, score_grads = arguments.weights16, arguments.score_grads16
        self.add_to_columns(
            segments, slots, weights, arguments.attention_grad, arguments.value_grad
        )
        self.add_to_columns(segments, slots, score_grads, arguments.query, arguments.key_grad)
        self.add_to_rows(segments, slots, score_grads, arguments.key, arguments.query_grad)

    # ---- S and dP -----------------------------------------------------------------------------

    def row_products(self, segments, left, right, target, slots):
        """Store left times right, transposed, for each block: 256 rows of the left tile stay for a segment."""
        for segment in segments:
            place = self.left_at
            asc.wait_flag(MTE1_MTE2, LEFT + place)
            rows = left.at(segment.batch, segment.head, segment.row * BLOCK)
            asc.data_copy(self.left[place], rows, TWO_ROWS_OF_128)
            asc.set_flag(MTE2_MTE1, LEFT + place)
            asc.wait_flag(MTE2_MTE1, LEFT + place)
            for i in range(segment.columns):
                self._column_of_products(segment, i, right, target, slots)
            asc.set_flag(MTE1_MTE2, LEFT + place)
            self.left_at ^= 1

    def _column_of_products(self, segment, i, right, target, slots):
        tile, place = self.right_at, self.l0b_at
        asc.wait_flag(MTE1_MTE2, tile)
        kv_head = segment.head // self.group
        keys = right.at(segment.batch, kv_head, (segment.column + i) * BLOCK)
        asc.data_copy(self.right[tile], keys, rows_to_nz(BLOCK, BLOCK, right.pitch))
        asc.set_flag(MTE2_MTE1, tile)
        asc.wait_flag(MTE2_MTE1, tile)
        asc.wait_flag(M_MTE1, RIGHT_L0 + place)
        asc.load_data(self.l0b[place], self.right[tile], WHOLE_TILE)
        asc.set_flag(MTE1_M, RIGHT_L0 + place)
        asc.wait_flag(MTE1_M, RIGHT_L0 + place)
        for j in range(2):
            slot = slots + (segment.slot + j * segment.columns + i) * TILE
            self._product_of_row(segment.skips(j, i), j, self.l0b[place], target, slot)
        asc.set_flag(M_MTE1, RIGHT_L0 + place)
        asc.set_flag(MTE1_MTE2, tile)
        self.right_at ^= 1
        self.l0b_at ^= 1

    def _product_of_row(self, skipped, j, right, target, slot):
        """One block. A block that is skipped exchanges the flags and nothing else."""
        place = self.l0a_at
        asc.wait_flag(M_MTE1, place)
        if not skipped:
            rows = self.left[self.left_at][j * 8 * FRACTAL :]
            self.load(self.l0a[place], rows, LEFT_ROWS, 8 * FRACTAL, FRACTAL)
        asc.set_flag(MTE1_M, place)
        asc.wait_flag(MTE1_M, place)
        if not skipped:
            result = self.l0c[self.l0c_at]
            asc.mmad(result, self.l0a[place], right, SCORE_PRODUCT)
            asc.fixpipe(target[slot:], result, SCORE_OUT)
            self.l0c_at ^= 1
        asc.set_flag(M_MTE1, place)
        self.l0a_at ^= 1

    # ---- dV and dK ----------------------------------------------------------------------------

    def add_to_columns(self, segments, slots, scores, right, target):
        """Add scores, transposed, times right to the rows of the keys.

        The two right tiles of a segment stay in L0B; the two rows of a column add up in L0C before one atomic store.
        """
        left = self.left_at
        asc.wait_flag(MTE1_MTE2, LEFT + left)
        for segment in segments:
            self._load_two_right_tiles(segment, right)
            for i in range(segment.columns):
                self._sum_of_column(segment, i, scores, slots)
                rows = target.at(
                    segment.batch, segment.head // self.group, (segment.column + i) * BLOCK
                )
                self._add_atomically(rows, self.l0c[self.l0c_at], target.pitch)
                self.l0c_at ^= 1
            for m in range(2):
                asc.set_flag(M_MTE1, RIGHT_L0 + m)
        asc.set_flag(MTE1_MTE2, LEFT + left)
        self.left_at ^= 1

    def _load_two_right_tiles(self, segment, right):
        tile = self.right_at
        asc.wait_flag(MTE1_MTE2, tile)
        for m in range(2):
            rows = right.at(segment.batch, segment.head, (segment.row + m) * BLOCK)
            asc.data_copy(self.right[tile][m * TILE :], rows, rows_to_nz(BLOCK, BLOCK, right.pitch))
        asc.set_flag(MTE2_MTE1, tile)
        asc.wait_flag(MTE2_MTE1, tile)
        for m in range(2):
            asc.wait_flag(M_MTE1, RIGHT_L0 + m)
            self.load(self.l0b[m], self.right[tile][m * TILE :], RIGHT_TURNED, 8 * FRACTAL, FRACTAL)
            asc.set_flag(MTE1_M, RIGHT_L0 + m)
            asc.wait_flag(MTE1_M, RIGHT_L0 + m)
        asc.set_flag(MTE1_MTE2, tile)
        self.right_at ^= 1

    def _sum_of_column(self, segment, i, scores, slots):
        first = True
        for m in range(2):
            if segment.skips(m, i):
                continue
            slot = slots + (segment.slot + m * segment.columns + i) * TILE
            part = self.part_at
            tile = self.left[self.left_at][part * TILE :]
            asc.wait_flag(MTE1_MTE2, PART + part)
            asc.data_copy(tile, scores[2 * slot :], SLOT_TO_NZ)
            asc.set_flag(MTE2_MTE1, PART + part)
            asc.wait_flag(MTE2_MTE1, PART + part)
            place = self.l0a_at
            asc.wait_flag(M_MTE1, place)
            self.load(self.l0a[place], tile, LEFT_TURNED, 8 * FRACTAL, 8 * FRACTAL)
            asc.set_flag(MTE1_M, place)
            asc.set_flag(MTE1_MTE2, PART + part)
            asc.wait_flag(MTE1_M, place)
            how = PRODUCTS[first, FINISH if m else KEEP]
            asc.mmad(self.l0c[self.l0c_at], self.l0a[place], self.l0b[m], how)
            asc.set_flag(M_MTE1, place)
            self.l0a_at ^= 1
            self.part_at ^= 1
            first = False

    def _add_atomically(self, rows, result, pitch):
        asc.set_atomic_add(asc.float32)
        asc.fixpipe(rows, result, rows_out(pitch))
        asc.set_atomic_none()

    # ---- dQ -----------------------------------------------------------------------------------

    def add_to_rows(self, segments, slots, scores, right, target):
        """Add scores times right to the rows of the queries; a row's columns add up in one half of L0C."""
        for segment in segments:
            for i in range(segment.columns):
                self._load_column_and_keys(segment, i, scores, slots, right)
                for j in range(2):
                    self._add_block_to_row(segment, j, i)
                    if i == self._last_column(segment, j):
                        rows = target.at(segment.batch, segment.head, (segment.row + j) * BLOCK)
                        self._add_by_type(rows, self.l0c[self.l0c_at], rows_out(target.pitch))
                    self.l0a_at ^= 1
                    self.l0c_at ^= 1
                asc.set_flag(MTE1_MTE2, LEFT + self.left_at)
                asc.set_flag(M_MTE1, RIGHT_L0 + self.l0b_at)
                self.left_at ^= 1
                self.l0b_at ^= 1

    def _load_column_and_keys(self, segment, i, scores, slots, right):
        left, tile, place = self.left_at, self.right_at, self.l0b_at
        asc.wait_flag(MTE1_MTE2, LEFT + left)
        for j in range(2):
            if not segment.skips(j, i):
                slot = slots + (segment.slot + j * segment.columns + i) * TILE
                asc.data_copy(self.left[left][j * TILE :], scores[2 * slot :], SLOT_TO_NZ)
        asc.set_flag(MTE2_MTE1, LEFT + left)
        asc.wait_flag(MTE1_MTE2, tile)
        kv_head = segment.head // self.group
        keys = right.at(segment.batch, kv_head, (segment.column + i) * BLOCK)
        asc.data_copy(self.right[tile], keys, rows_to_nz(BLOCK, BLOCK, right.pitch))
        asc.set_flag(MTE2_MTE1, tile)
        asc.wait_flag(MTE2_MTE1, tile)
        asc.wait_flag(M_MTE1, RIGHT_L0 + place)
        self.load(self.l0b[place], self.right[tile], RIGHT_TURNED, 8 * FRACTAL, FRACTAL)
        asc.set_flag(MTE1_M, RIGHT_L0 + place)
        asc.set_flag(MTE1_MTE2, tile)
        asc.wait_flag(MTE1_M, RIGHT_L0 + place)
        asc.wait_flag(MTE2_MTE1, LEFT + left)
        self.right_at ^= 1

    def _add_block_to_row(self, segment, j, i):
        """One product. That of a skipped block is issued too, on what L0A happens to hold: nobody reads its result."""
        place = self.l0a_at
        asc.wait_flag(M_MTE1, place)
        if not segment.skips(j, i):
            rows = self.left[self.left_at][j * TILE :]
            self.load(self.l0a[place], rows, LEFT_PLAIN, 8 * FRACTAL, FRACTAL)
        asc.set_flag(MTE1_M, place)
        asc.wait_flag(MTE1_M, place)
        how = PRODUCTS[i == 0, FINISH if i == self._last_column(segment, j) else KEEP]
        asc.mmad(self.l0c[self.l0c_at], self.l0a[place], self.l0b[self.l0b_at], how)
        asc.set_flag(M_MTE1, place)

    def _last_column(self, segment, j):
        """Return the last column that row j needs; -1 where it needs none."""
        return segment.columns - 1 - segment.skips(j, segment.columns - 1)

    def _add_by_type(self, rows, result, how):
        """Add to dQ with the type of the atomic mode alone: addition is what the operation is set to at first."""
        asc.set_atomic_type(asc.float32)
        asc.fixpipe(rows, result, how)
        asc.set_atomic_none()
