"""The cube core of the SPARSE path: single rows of blocks inside a window, head dim 128.

Each routine raises its own flags first and takes them back last, so that its pipes drain, all but FIX. Flags:

* scores: MTE1_MTE2 1 the left tiles, 3, 4 the right tiles in L1; M_MTE1 2 both left tiles in L0A, 6, 7 L0B.
* dV: MTE1_MTE2 3, 4 the left tiles in L1; M_MTE1 3, 4 L0A, 6 L0B.
* dK with dQ: MTE1_MTE2 0, 1 Q, 2, 3 dS, 4, 5 K; M_MTE1 0, 1 L0A and 2, 3 L0B, first for dK, then for dQ.
"""

# pyasc's dialect; see arguments.py.
# mypy: ignore-errors

from __future__ import annotations

from ascend_sim import asc
from ops.laser_attention_grad.cube_band import (
    LEFT_PLAIN,
    LEFT_TURNED,
    PRODUCTS,
    RIGHT_TURNED,
    SCORE_OUT,
    SCORE_PRODUCT,
)
from ops.laser_attention_grad.cube_core import (
    FINISH,
    FRACTAL,
    KEEP,
    L0,
    L0C,
    M_MTE1,
    MTE1_M,
    MTE1_MTE2,
    MTE2_MTE1,
    SLOT_TO_NZ,
    TILE,
    WHOLE_TILE,
    Cube,
    local,
    rows_out,
    rows_to_nz,
)
from ops.laser_attention_grad.sizes import BLOCK

KIB = 1024
ROWS = rows_to_nz(BLOCK, BLOCK, BLOCK)
GRADIENT_OUT = rows_out(BLOCK)


def tiles(*addresses):
    """Return places of one tile each in L1."""
    return [local(asc.TPosition.A1, address * KIB, TILE) for address in addresses]


class CubeWindow(Cube):
    """Head dim 128 with a window. Places by their use; two in turn, or one for each parity of a segment."""

    def __init__(self, arguments):
        super().__init__(arguments)
        position = asc.TPosition
        self.query, self.gradient = tiles(0, 32)
        self.right = tiles(128, 160)  # K, V; then Q by segment
        self.left = tiles(256, 288)  # P or dS
        self.far = tiles(384, 416)  # dO by segment; then K
        self.l0a = [local(position.A2, address, TILE) for address in L0]
        self.l0b = [local(position.B2, address, TILE) for address in L0]
        self.l0c = [local(position.CO1, address, TILE, asc.float32) for address in L0C]
        self.right_at = self.l0b_at = self.l0c_at = self.left_at = self.l0a_at = 0
        self.far_at = self.segment_at = 0

    def scores(self, segments, slots):
        """S and dP of each segment: Q and dO stay in L0A, K and V pass by."""
        self._raise((1, 3, 4), (2, 6, 7))
        for segment in segments:
            self._load_rows(segment)
            arguments = self.arguments
            self._products(segment, 0, arguments.key, arguments.scores, slots)
            self._products(segment, 1, arguments.value, arguments.score_grads, slots)
            asc.set_flag(M_MTE1, 2)
        self._take_back((1, 3, 4), (2, 6, 7))

    def gradients(self, segments, slots):
        """dV, then dK and dQ together."""
        self._raise((3, 4), (3, 4, 6))
        for segment in segments:
            self._add_value(segment, slots)
        self._take_back((3, 4), (3, 4, 6))
        self._raise(range(6), range(4))
        for segment in segments:
            self._add_key_and_query(segment, slots)
        self._take_back(range(6), range(4))

    def _raise(self, in_l1, in_l0):
        for event_id in in_l1:
            asc.set_flag(MTE1_MTE2, event_id)
        for event_id in in_l0:
            asc.set_flag(M_MTE1, event_id)

    def _take_back(self, in_l1, in_l0):
        for event_id in in_l1:
            asc.wait_flag(MTE1_MTE2, event_id)
        for event_id in in_l0:
            asc.wait_flag(M_MTE1, event_id)

    def _kv_row(self, segment, i):
        return segment.batch, segment.head // self.group, (segment.column + i) * BLOCK

    # ---- S and dP -----------------------------------------------------------------------------

    def _load_rows(self, segment):
        arguments = self.arguments
        row = (segment.batch, segment.head, segment.row * BLOCK)
        asc.wait_flag(MTE1_MTE2, 1)
        asc.data_copy(self.query, arguments.query.at(*row), ROWS)
        asc.data_copy(self.gradient, arguments.attention_grad.at(*row), ROWS)
        asc.set_flag(MTE2_MTE1, 1)
        asc.wait_flag(MTE2_MTE1, 1)
        asc.wait_flag(M_MTE1, 2)
        for place, source in enumerate((self.query, self.gradient)):
            self.load(self.l0a[place], source, LEFT_PLAIN, 8 * FRACTAL, FRACTAL)
        asc.set_flag(MTE1_MTE2, 1)
        asc.set_flag(MTE1_M, 2)
        asc.wait_flag(MTE1_M, 2)

    def _products(self, segment, left, right, target, slots):
        for i in range(segment.columns):
            tile, place, result = self.right_at, self.l0b_at, self.l0c[self.l0c_at]
            asc.wait_flag(MTE1_MTE2, 3 + tile)
            asc.data_copy(self.right[tile], right.at(*self._kv_row(segment, i)), ROWS)
            asc.set_flag(MTE2_MTE1, 3 + tile)
            asc.wait_flag(MTE2_MTE1, 3 + tile)
            asc.wait_flag(M_MTE1, 6 + place)
            asc.load_data(self.l0b[place], self.right[tile], WHOLE_TILE)
            asc.set_flag(MTE1_MTE2, 3 + tile)
            asc.set_flag(MTE1_M, 6 + place)
            asc.wait_flag(MTE1_M, 6 + place)
            asc.mmad(result, self.l0a[left], self.l0b[place], SCORE_PRODUCT)
            asc.set_flag(M_MTE1, 6 + place)
            asc.fixpipe(target[slots + (segment.slot + i) * TILE :], result, SCORE_OUT)
            self.right_at ^= 1
            self.l0b_at ^= 1
            self.l0c_at ^= 1

    # ---- dV -----------------------------------------------------------------------------------

    def _add_value(self, segment, slots):
        """Add Pt dO block by block. dO's place in L1 has no flag of its own: the waits for P come late enough."""
        arguments = self.arguments
        parity = self.segment_at
        rows = arguments.attention_grad.at(segment.batch, segment.head, segment.row * BLOCK)
        asc.data_copy(self.far[parity], rows, ROWS)
        asc.set_flag(MTE2_MTE1, 6)
        asc.wait_flag(MTE2_MTE1, 6)
        asc.wait_flag(M_MTE1, 6)
        self.load(self.l0b[parity], self.far[parity], RIGHT_TURNED, 8 * FRACTAL, FRACTAL)
        asc.set_flag(MTE1_M, 6)
        asc.wait_flag(MTE1_M, 6)
        for i in range(segment.columns):
            tile, place, result = self.left_at, self.l0a_at, self.l0c[self.l0c_at]
            self._load_slot(tile, 3 + tile, arguments.weights16, slots + (segment.slot + i) * TILE)
            asc.wait_flag(M_MTE1, 3 + place)
            self.load(self.l0a[place], self.left[tile], LEFT_TURNED, 8 * FRACTAL, 8 * FRACTAL)
            asc.set_flag(MTE1_MTE2, 3 + tile)
            asc.set_flag(MTE1_M, 3 + place)
            asc.wait_flag(MTE1_M, 3 + place)
            asc.mmad(result, self.l0a[place], self.l0b[parity], SCORE_PRODUCT)
            asc.set_flag(M_MTE1, 3 + place)
            self._add(arguments.value_grad.at(*self._kv_row(segment, i)), result)
            self.left_at ^= 1
            self.l0a_at ^= 1
            self.l0c_at ^= 1
        asc.set_flag(M_MTE1, 6)
        self.segment_at ^= 1

    def _load_slot(self, tile, event_id, scores, slot):
        asc.wait_flag(MTE1_MTE2, event_id)
        asc.data_copy(self.left[tile], scores[2 * slot :], SLOT_TO_NZ)
        asc.set_flag(MTE2_MTE1, event_id)
        asc.wait_flag(MTE2_MTE1, event_id)

    def _add(self, rows, result):
        asc.set_atomic_add(asc.float32)
        asc.fixpipe(rows, result, GRADIENT_OUT)
        asc.set_atomic_none()

    # ---- dK and dQ ----------------------------------------------------------------------------

    def _add_key_and_query(self, segment, slots):
        """Add dSt Q block by block, and dS K summed over the segment.

        L0A, L0B and L0C are single for each of the two: dK of a block waits for dQ of the one before.
        """
        arguments = self.arguments
        parity = self.segment_at
        row = (segment.batch, segment.head, segment.row * BLOCK)
        asc.wait_flag(MTE1_MTE2, parity)
        asc.data_copy(self.right[parity], arguments.query.at(*row), ROWS)
        asc.set_flag(MTE2_MTE1, parity)
        asc.wait_flag(MTE2_MTE1, parity)
        asc.wait_flag(M_MTE1, 2)
        self.load(self.l0b[0], self.right[parity], RIGHT_TURNED, 8 * FRACTAL, FRACTAL)
        asc.set_flag(MTE1_MTE2, parity)
        asc.set_flag(MTE1_M, 2)
        asc.wait_flag(MTE1_M, 2)
        for i in range(segment.columns):
            slot = slots + (segment.slot + i) * TILE
            self._load_slot(self.left_at, 2 + self.left_at, arguments.score_grads16, slot)
            self._add_key(segment, i)
            self._add_query(segment, i)
            self.left_at ^= 1
        asc.set_flag(M_MTE1, 2)
        self._add(arguments.query_grad.at(*row), self.l0c[1])
        self.segment_at ^= 1

    def _add_key(self, segment, i):
        asc.wait_flag(M_MTE1, 0)
        scores = self.left[self.left_at]
        self.load(self.l0a[0], scores, LEFT_TURNED, 8 * FRACTAL, 8 * FRACTAL)
        asc.set_flag(MTE1_M, 0)
        asc.wait_flag(MTE1_M, 0)
        asc.mmad(self.l0c[0], self.l0a[0], self.l0b[0], SCORE_PRODUCT)
        self._add(self.arguments.key_grad.at(*self._kv_row(segment, i)), self.l0c[0])

    def _add_query(self, segment, i):
        tile = self.far_at
        asc.wait_flag(M_MTE1, 1)
        self.load(self.l0a[1], self.left[self.left_at], LEFT_PLAIN, 8 * FRACTAL, FRACTAL)
        asc.set_flag(MTE1_MTE2, 2 + self.left_at)
        asc.set_flag(MTE1_M, 1)
        asc.wait_flag(MTE1_MTE2, 4 + tile)
        asc.data_copy(self.far[tile], self.arguments.key.at(*self._kv_row(segment, i)), ROWS)
        asc.set_flag(MTE2_MTE1, 4 + tile)
        asc.wait_flag(MTE2_MTE1, 4 + tile)
        asc.wait_flag(M_MTE1, 3)
        self.load(self.l0b[1], self.far[tile], RIGHT_TURNED, 8 * FRACTAL, FRACTAL)
        asc.set_flag(MTE1_MTE2, 4 + tile)
        asc.set_flag(MTE1_M, 3)
        asc.wait_flag(MTE1_M, 1)
        asc.wait_flag(MTE1_M, 3)
        last = i == segment.columns - 1
        asc.mmad(self.l0c[1], self.l0a[1], self.l0b[1], PRODUCTS[i == 0, FINISH if last else KEEP])
        for event_id in (0, 1, 3):
            asc.set_flag(M_MTE1, event_id)
        self.far_at ^= 1
