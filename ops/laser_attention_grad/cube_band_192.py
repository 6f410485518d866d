"""The cube core of the BAND paths with head dim 192: the routines for 128 columns, and the 64 columns beyond them.

S takes K in its whole width of 256 and multiplies 128 + 64 columns. The last 64 columns of dK and dQ are computed
together, so that each dS is loaded once for both.
"""

# pyasc's dialect; see arguments.py.
# mypy: ignore-errors

from __future__ import annotations

from ascend_sim import asc
from ops.laser_attention_grad.arguments import ALL_CUBES, EVERYONE
from ops.laser_attention_grad.cube_band import (
    LEFT,
    LEFT_PLAIN,
    LEFT_ROWS,
    LEFT_TURNED,
    PART,
    PRODUCTS,
    RIGHT_L0,
    CubeBand,
)
from ops.laser_attention_grad.cube_core import (
    FINISH,
    FRACTAL,
    HALF,
    HALF_TILE,
    KEEP,
    L0C,
    L1_A,
    M_MTE1,
    MTE1_M,
    MTE1_MTE2,
    MTE2_MTE1,
    PIPE_FIX,
    SLOT_TO_NZ,
    TILE,
    WHOLE_TILE,
    fractals,
    local,
    product,
    rows_out,
    rows_to_nz,
)
from ops.laser_attention_grad.sizes import BLOCK

QUERY_DIM, KEY_DIM = BLOCK + HALF, 2 * BLOCK
TWO_ROWS_OF_192 = rows_to_nz(2 * BLOCK, QUERY_DIM, QUERY_DIM)
KEYS_OF_256 = rows_to_nz(BLOCK, KEY_DIM, KEY_DIM)
QUERY_HALF = rows_to_nz(BLOCK, HALF, QUERY_DIM)
KEY_HALF = rows_to_nz(BLOCK, HALF, KEY_DIM)
LEFT_ROWS_HALF = fractals(4, 16)
RIGHT_TURNED_HALF = fractals(4, 8, transpose=True)
FIRST_PART = PRODUCTS[True, KEEP]
SECOND_PART = product(False, FINISH, k=HALF)
NARROW = {
    (init, flag): product(init, flag, n=HALF) for init in (True, False) for flag in (KEEP, FINISH)
}
SCORE_OUT = rows_out(BLOCK)

KEY_HALF_AT = 6
"""First id of the two places of K's right half in L1. The library shares an id of dS with them."""


class CubeBand192(CubeBand):
    """Head dim 192: K and dK are 256 wide, of which the last 64 columns are padding."""

    def __init__(self, arguments):
        super().__init__(arguments)
        position = asc.TPosition
        # dS takes four places in turn, two in each left tile; a result of 64 columns takes half a place of L0C.
        self.parts = [
            local(position.A1, start + half * 2 * TILE, TILE) for start in L1_A for half in range(2)
        ]
        self.key_sums = [
            local(position.CO1, L0C[0] + half * 2 * TILE, TILE // 2, asc.float32)
            for half in range(2)
        ]
        self.query_sums = [
            local(position.CO1, L0C[1] + half * 2 * TILE, TILE // 2, asc.float32)
            for half in range(2)
        ]
        self.turn = self.key_half_at = self.key_sum_at = 0

    def begin(self):
        """Raise every flag that says a place is free."""
        super().begin()
        for half in range(2):
            asc.set_flag(MTE1_MTE2, KEY_HALF_AT + half)

    def end(self):
        """Wait until every place is free again, then for all cube cores."""
        super().end()
        for half in range(2):
            asc.wait_flag(MTE1_MTE2, KEY_HALF_AT + half)
        asc.cross_core_set_flag(ALL_CUBES, EVERYONE, PIPE_FIX)
        asc.cross_core_wait_flag(ALL_CUBES)

    def scores(self, segments, slots):
        """S in two steps of k, then dP as with head dim 128."""
        arguments = self.arguments
        for segment in segments:
            self._wide_scores(segment, slots)
        self.row_products(
            segments, arguments.attention_grad, arguments.value, arguments.score_grads, slots
        )

    def gradients(self, segments, slots):
        """dV, the first 128 columns of dK and of dQ, then the other 64 of both."""
        super().gradients(segments, slots)
        # The four places of dS lie in both left tiles, so both have to be free. The library waits for neither.
        for half in range(2):
            asc.wait_flag(MTE1_MTE2, LEFT + half)
        for segment in segments:
            self._right_columns(segment, slots)
        for half in range(2):
            asc.set_flag(MTE1_MTE2, LEFT + half)

    # ---- S ------------------------------------------------------------------------------------

    def _wide_scores(self, segment, slots):
        arguments = self.arguments
        place = self.left_at
        asc.wait_flag(MTE1_MTE2, LEFT + place)
        rows = arguments.query.at(segment.batch, segment.head, segment.row * BLOCK)
        asc.data_copy(self.left[place], rows, TWO_ROWS_OF_192)
        asc.set_flag(MTE2_MTE1, LEFT + place)
        asc.wait_flag(MTE2_MTE1, LEFT + place)
        for i in range(segment.columns):
            tile = self.right_at
            asc.wait_flag(MTE1_MTE2, tile)
            kv_head = segment.head // self.group
            keys = arguments.key.at(segment.batch, kv_head, (segment.column + i) * BLOCK)
            asc.data_copy(self.right[tile], keys, KEYS_OF_256)
            asc.set_flag(MTE2_MTE1, tile)
            asc.wait_flag(MTE2_MTE1, tile)
            for j in range(2):
                if not segment.skips(j, i):
                    slot = slots + (segment.slot + j * segment.columns + i) * TILE
                    self._wide_score(j, arguments.scores, slot)
            asc.set_flag(MTE1_MTE2, tile)
            self.right_at ^= 1
        asc.set_flag(MTE1_MTE2, LEFT + place)
        self.left_at ^= 1

    def _wide_score(self, j, target, slot):
        """One block: 128 columns of the head dim, then 64, both into one place of L0C."""
        left, right = self.left[self.left_at], self.right[self.right_at]
        result = self.l0c[self.l0c_at]
        steps = (
            (0, 0, LEFT_ROWS, 8, WHOLE_TILE, FIRST_PART),
            (2 * TILE, TILE, LEFT_ROWS_HALF, 4, HALF_TILE, SECOND_PART),
        )
        for left_start, right_start, rows, step, whole, how in steps:
            place, other = self.l0a_at, self.l0b_at
            asc.wait_flag(M_MTE1, place)
            source = left[j * 8 * FRACTAL + left_start :]
            self.load(self.l0a[place], source, rows, step * FRACTAL, FRACTAL)
            asc.set_flag(MTE1_M, place)
            asc.wait_flag(M_MTE1, RIGHT_L0 + other)
            asc.load_data(self.l0b[other], right[right_start:], whole)
            asc.set_flag(MTE1_M, RIGHT_L0 + other)
            asc.wait_flag(MTE1_M, place)
            asc.wait_flag(MTE1_M, RIGHT_L0 + other)
            asc.mmad(result, self.l0a[place], self.l0b[other], how)
            asc.set_flag(M_MTE1, place)
            asc.set_flag(M_MTE1, RIGHT_L0 + other)
            self.l0a_at ^= 1
            self.l0b_at ^= 1
        asc.fixpipe(target[slot:], result, SCORE_OUT)
        self.l0c_at ^= 1

    # ---- the last 64 columns of dK and dQ -----------------------------------------------------

    def _right_columns(self, segment, slots):
        arguments = self.arguments
        tile = self.right_at
        asc.wait_flag(MTE1_MTE2, tile)
        for m in range(2):
            rows = arguments.query.at(segment.batch, segment.head, (segment.row + m) * BLOCK, BLOCK)
            asc.data_copy(self.right[tile][m * TILE // 2 :], rows, QUERY_HALF)
        asc.set_flag(MTE2_MTE1, tile)
        asc.wait_flag(MTE2_MTE1, tile)
        for i in range(segment.columns):
            first = True
            for j in range(2):
                if segment.skips(j, i):
                    continue
                scores = self._load_scores(segment, slots, j, i)
                self._add_to_key_half(segment, j, i, scores, first)
                self._add_to_query_half(segment, j, i, scores)
                first = False
        asc.set_flag(MTE1_MTE2, tile)
        self.right_at ^= 1

    def _load_scores(self, segment, slots, j, i):
        """Load dS once for both products; its place is freed after the first of them has read it.

        There are four places and two flags: by the time a place comes up again, a later flag has been waited for.
        """
        scores, event_id = self.parts[self.turn], PART + self.turn % 2
        slot = slots + (segment.slot + j * segment.columns + i) * TILE
        asc.wait_flag(MTE1_MTE2, event_id)
        asc.data_copy(scores, self.arguments.score_grads16[2 * slot :], SLOT_TO_NZ)
        asc.set_flag(MTE2_MTE1, event_id)
        asc.wait_flag(MTE2_MTE1, event_id)
        return scores

    def _add_to_key_half(self, segment, j, i, scores, first):
        arguments = self.arguments
        query = self.right[self.right_at][j * TILE // 2 :]
        other = self._load_right(query)
        place = self.l0a_at
        asc.wait_flag(M_MTE1, place)
        self.load(self.l0a[place], scores, LEFT_TURNED, 8 * FRACTAL, 8 * FRACTAL)
        asc.set_flag(MTE1_M, place)
        asc.set_flag(MTE1_MTE2, PART + self.turn % 2)
        self.turn = (self.turn + 1) % 4
        result = self.key_sums[self.key_sum_at]
        self._multiply(result, place, other, NARROW[first, FINISH if j else KEEP])
        if j:
            kv_head = segment.head // self.group
            rows = arguments.key_grad.at(
                segment.batch, kv_head, (segment.column + i) * BLOCK, BLOCK
            )
            asc.set_atomic_add(asc.float32)
            asc.fixpipe(rows, result, rows_out(KEY_DIM, n=HALF))
            asc.set_atomic_none()
            self.key_sum_at ^= 1

    def _add_to_query_half(self, segment, j, i, scores):
        arguments = self.arguments
        half = self.key_half_at
        event_id = KEY_HALF_AT + half
        keys = self.right[self.right_at][TILE + half * TILE // 2 :]
        kv_head = segment.head // self.group
        rows = arguments.key.at(segment.batch, kv_head, (segment.column + i) * BLOCK, BLOCK)
        asc.wait_flag(MTE1_MTE2, event_id)
        asc.data_copy(keys, rows, KEY_HALF)
        asc.set_flag(MTE2_MTE1, event_id)
        asc.wait_flag(MTE2_MTE1, event_id)
        other = self._load_right(keys)
        asc.set_flag(MTE1_MTE2, event_id)
        self.key_half_at ^= 1
        place = self.l0a_at
        asc.wait_flag(M_MTE1, place)
        self.load(self.l0a[place], scores, LEFT_PLAIN, 8 * FRACTAL, FRACTAL)
        asc.set_flag(MTE1_M, place)
        last = i == self._last_column(segment, j)
        result = self.query_sums[j]
        self._multiply(result, place, other, NARROW[i == 0, FINISH if last else KEEP])
        if last:
            target = arguments.query_grad.at(
                segment.batch, segment.head, (segment.row + j) * BLOCK, BLOCK
            )
            self._add_by_type(target, result, rows_out(QUERY_DIM, n=HALF))

    def _load_right(self, source):
        place = self.l0b_at
        asc.wait_flag(M_MTE1, RIGHT_L0 + place)
        self.load(self.l0b[place], source, RIGHT_TURNED_HALF, 4 * FRACTAL, FRACTAL)
        asc.set_flag(MTE1_M, RIGHT_L0 + place)
        self.l0b_at ^= 1
        return place

    def _multiply(self, result, place, other, how):
        asc.wait_flag(MTE1_M, place)
        asc.wait_flag(MTE1_M, RIGHT_L0 + other)
        asc.mmad(result, self.l0a[place], self.l0b[other], how)
        asc.set_flag(M_MTE1, place)
        asc.set_flag(M_MTE1, RIGHT_L0 + other)
        self.l0a_at ^= 1
