"""The vector core of all paths: softmax recomputed, P and dS out of S and dP, in place in their slots.

Each of the two vector cores of an AI Core takes 64 of a block's 128 rows, in two halves of 32. Flags, id 1 for the
first half and 0 for the second: V_MTE2 and MTE2_V around loads, V_MTE3 before a store, MTE3_MTE2 after it.
"""

# pyasc's dialect; see arguments.py.
# mypy: ignore-errors

from __future__ import annotations

from functools import partial

import ascend_sim as sim
from ascend_sim import asc
from ops.laser_attention_grad.arguments import C2V, ONE_CORE, V2C
from ops.laser_attention_grad.sizes import BLOCK
from ops.laser_attention_grad.tiling import BLOCK_ELEMENTS

ROWS = 32
"""Rows of a half."""
HALF = ROWS * BLOCK
"""Elements of a half."""
LANES = 64

MTE2_V, V_MTE2 = asc.HardEvent.MTE2_V, asc.HardEvent.V_MTE2
V_MTE3, MTE3_MTE2 = asc.HardEvent.V_MTE3, asc.HardEvent.MTE3_MTE2
RINT, NO_ROUNDING = asc.RoundMode.CAST_RINT, asc.RoundMode.CAST_NONE

PLAIN = asc.UnaryRepeatParams(1, 1, 8, 8)
TO_FLOAT32 = asc.UnaryRepeatParams(1, 1, 8, 4)
TO_BFLOAT16 = asc.UnaryRepeatParams(1, 1, 4, 8)
ELEMENTWISE = asc.BinaryRepeatParams(1, 1, 1, 8, 8, 8)
WITHIN_ROWS = asc.BinaryRepeatParams(1, 1, 1, 16, 16, 16)
PACK_ROWS = asc.BinaryRepeatParams(1, 1, 1, 1, 16, 16)
ROW_VALUE = asc.BinaryRepeatParams(1, 1, 0, 16, 16, 1)
"""A value a row, spread over one data block, against half a row of 64."""
SPREAD = asc.BrcbRepeatParams(1, 8)

MASKED = -1e30
MASK_AT_BAND, MASK_AT_WINDOW = 118784, 135168
"""Where the mask's buffers begin: the windowed kernel has one of 16 KiB before them that nobody uses."""


def _v(instruction, *operands, repeats=LANES, lanes=LANES, params=PLAIN):
    """Issue a vector instruction and the barrier that the library puts behind each."""
    instruction(*operands, mask=lanes, repeat_times=repeats, repeat_params=params)
    asc.pipe_barrier(asc.PipeID.PIPE_V)


class Vector:
    """One vector core. `extra_wait` is the windowed kernel's: it waits for the second half's P before loading dP."""

    def __init__(self, arguments, mask_at=MASK_AT_BAND, extra_wait=False):
        self.arguments = arguments
        self.plan = arguments.plan
        self.block, self.sub_block = divmod(asc.get_block_idx(), 2)
        self.extra_wait = extra_wait
        self.scale = arguments.scale
        self.scores = _halves(0, HALF)
        self.score_grads = _halves(32768, HALF)
        self.first16 = _halves(65536, HALF, asc.bfloat16)
        self.second16 = _halves(81920, HALF, asc.bfloat16)
        self.inner, self.log_sum = _halves(98304, ROWS), _halves(107520, ROWS)
        self.inner_whole, self.log_sum_whole = _local(98304, 256), _local(107520, 256)
        self.inner_spread, self.log_sum_spread = _local(99328, 2048), _local(108544, 2048)
        self.maximum, self.sum = _local(116736, 256), _local(117760, 256)
        self.mask16 = _halves(mask_at, HALF, asc.bfloat16)
        self.mask = _halves(mask_at + 16384, HALF)
        if arguments.plan.triangular:
            mask = asc.GlobalTensor()
            mask.set_global_buffer(arguments.mask_address)
            # The tensor is float16 by the operator's contract, and its bits are taken for bfloat16.
            self.mask_tensor = mask.reinterpret_cast(asc.bfloat16)
            pitch = arguments.mask_rows
            self.mask_copy = asc.DataCopyParams(ROWS, BLOCK // 16, (pitch - BLOCK) // 16, 0)

    def run(self):
        """Go through all rounds; a core without slots in a round exchanges the flags and nothing else."""
        for round_number in sim.trips(self.plan.rounds, partial(self.plan.effort, self.block)):
            asc.cross_core_wait_flag(C2V, ONE_CORE)
            if self.plan.is_active(self.block, round_number):
                slots = self.arguments.slots(self.block, round_number)
                for section in self.plan.sections(self.block, round_number):
                    self._section(section, slots)
            asc.cross_core_set_flag(V2C, ONE_CORE, asc.PipeID.PIPE_MTE3)

    def _section(self, section, slots):
        for event_id in (1, 0):
            asc.set_flag(V_MTE2, event_id)
            asc.set_flag(MTE3_MTE2, event_id)
        self._row_values(section)
        for event_id in (1, 0):
            asc.wait_flag(V_MTE2, event_id)
        for k in range(section.length):
            # In float32 elements: this core's 64 rows of the slot begin at its 32 KiB.
            slot = slots + (section.slot + k) * BLOCK_ELEMENTS + self.sub_block * 2 * HALF
            for n in range(2):
                self._weights(section, k, n, slot)
            if self.extra_wait:
                asc.wait_flag(MTE3_MTE2, 0)
                asc.set_flag(MTE3_MTE2, 0)
            for n in range(2):
                self._score_grads(n, slot)
        for event_id in (1, 0):
            asc.wait_flag(MTE3_MTE2, event_id)

    # ---- once a section: rowsum(dO * O) and max + ln(sum), one value a row ---------------------

    def _row_values(self, section):
        for n in range(2):
            self._row_values_of_half(section, n)
        _spread(self.inner_spread, self.inner_whole)
        _v(asc.ln, self.sum, self.sum, repeats=1)
        _v(asc.add, self.log_sum_whole, self.maximum, self.sum, repeats=1, params=WITHIN_ROWS)
        _spread(self.log_sum_spread, self.log_sum_whole)

    def _row_values_of_half(self, section, n):
        arguments = self.arguments
        event_id = 1 - n
        row = section.row * BLOCK + self.sub_block * 2 * ROWS + n * ROWS
        where = (section.batch, section.head, row)
        value = (section.batch * arguments.sizes.heads + section.head) * arguments.sizes.seq + row
        asc.wait_flag(V_MTE2, event_id)
        asc.data_copy(self.first16[n], arguments.attention.at(*where), HALF)
        asc.data_copy(self.second16[n], arguments.attention_grad.at(*where), HALF)
        asc.data_copy(self.maximum[n * ROWS :], arguments.softmax_max[value:], ROWS)
        asc.data_copy(self.sum[n * ROWS :], arguments.softmax_sum[value:], ROWS)
        asc.set_flag(MTE2_V, event_id)
        asc.wait_flag(MTE2_V, event_id)
        product, gradient = self.scores[n], self.score_grads[n]
        _cast(product, self.first16[n], NO_ROUNDING, TO_FLOAT32)
        _cast(gradient, self.second16[n], NO_ROUNDING, TO_FLOAT32)
        _v(asc.mul, product, product, gradient, params=ELEMENTWISE)
        for lanes in (64, 32, 16):
            right = product[lanes:]
            _v(asc.add, product, product, right, repeats=ROWS, lanes=lanes, params=WITHIN_ROWS)
        _v(asc.add, product, product, product[8:], repeats=ROWS, lanes=8, params=PACK_ROWS)
        # Four repeats would do: the other four leave 32 values behind the half's that the next step overwrites.
        asc.block_reduce_sum(self.inner_whole[n * ROWS :], product, 8, LANES, 1, 1, 8)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.set_flag(V_MTE2, event_id)

    # ---- a block ------------------------------------------------------------------------------

    def _weights(self, section, k, n, slot):
        """P of a half: exp(scale * S [+ mask] - L), kept in float32, stored in bfloat16."""
        event_id = 1 - n
        scores = self.scores[n]
        self._load(scores, self.arguments.scores[slot + n * HALF :], event_id)
        _v(asc.muls, scores, scores, self.scale)
        if section.head_edge and k == 0:
            self._add_edge_mask(n, scores)
        if section.tail and k == section.length - 1:
            self._add_diagonal_mask(n, scores)
        self._subtract_row_value(scores, self.log_sum_spread, n)
        _v(asc.exp, scores, scores)
        _cast(self.first16[n], scores, RINT, TO_BFLOAT16)
        self._store(self.arguments.weights16, self.first16[n], slot, n, event_id)

    def _score_grads(self, n, slot):
        """dS of a half: P * (dP - D), with the P that was not rounded."""
        event_id = 1 - n
        gradient = self.score_grads[n]
        self._load(gradient, self.arguments.score_grads[slot + n * HALF :], event_id)
        self._subtract_row_value(gradient, self.inner_spread, n)
        _v(asc.mul, gradient, self.scores[n], gradient, params=ELEMENTWISE)
        _cast(self.second16[n], gradient, RINT, TO_BFLOAT16)
        self._store(self.arguments.score_grads16, self.second16[n], slot, n, event_id)

    def _load(self, target, source, event_id):
        asc.wait_flag(MTE3_MTE2, event_id)
        asc.data_copy(target, source, HALF)
        asc.set_flag(MTE2_V, event_id)
        asc.wait_flag(MTE2_V, event_id)

    def _store(self, target, source, slot, n, event_id):
        """Store 32 rows of bfloat16 into the first half of this core's bytes of the slot."""
        asc.set_flag(V_MTE3, event_id)
        asc.wait_flag(V_MTE3, event_id)
        asc.data_copy(target[2 * slot + n * HALF :], source, HALF)
        asc.set_flag(MTE3_MTE2, event_id)

    def _subtract_row_value(self, values, spread, n):
        """Subtract a value a row: the two halves of the columns in one instruction each."""
        rows = spread[n * ROWS * 8 :]
        for column in (0, LANES):
            part = values[column:]
            _v(asc.sub, part, part, rows, repeats=ROWS, params=ROW_VALUE)

    # ---- masks --------------------------------------------------------------------------------

    def _load_mask(self, n, column):
        event_id = 1 - n
        row = self.sub_block * 2 * ROWS + n * ROWS
        asc.set_flag(V_MTE2, event_id)
        asc.wait_flag(V_MTE2, event_id)
        corner = self.mask_tensor[row * self.arguments.mask_rows + column :]
        asc.data_copy(self.mask16[n], corner, repeat_params=self.mask_copy)
        asc.set_flag(MTE2_V, event_id)
        asc.wait_flag(MTE2_V, event_id)
        _cast(self.mask[n], self.mask16[n], NO_ROUNDING, TO_FLOAT32)

    def _add_mask(self, n, scores):
        mask = self.mask[n]
        _v(asc.muls, mask, mask, MASKED)
        _v(asc.add, scores, scores, mask, params=ELEMENTWISE)

    def _add_diagonal_mask(self, n, scores):
        self._load_mask(n, 0)
        self._add_mask(n, scores)

    def _add_edge_mask(self, n, scores):
        """The mask from column 1 on, turned round: what it hides at the diagonal is seen at the window's edge."""
        self._load_mask(n, 1)
        mask, ones = self.mask[n], self.score_grads[n]
        asc.duplicate(ones, 1.0, None, LANES, 1, 8, mask=LANES)  # 1 block apart, 8 a repeat
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        _v(asc.sub, mask, ones, mask, params=ELEMENTWISE)
        self._add_mask(n, scores)


def _spread(target, source):
    asc.brcb(target, source, 8, SPREAD)
    asc.pipe_barrier(asc.PipeID.PIPE_V)


def _cast(target, source, mode, params):
    asc.cast(target, source, mode, mask=LANES, repeat_times=LANES, repeat_params=params)
    asc.pipe_barrier(asc.PipeID.PIPE_V)


def _local(address, elements, dtype=asc.float32):
    return asc.LocalTensor(dtype, asc.TPosition.VECCALC, address, elements)


def _halves(address, elements, dtype=asc.float32):
    """Return two places side by side."""
    return [_local(address + half * elements * dtype.size, elements, dtype) for half in range(2)]
