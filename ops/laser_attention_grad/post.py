"""After the rounds, on all vector cores: float32 sums times the scale, rounded to bfloat16, stored as the results.

With BNSD in equal shares of the flat tensors; with SBH transposed back on the way.
"""

# pyasc's dialect; see arguments.py.
# mypy: ignore-errors

from __future__ import annotations

from ascend_sim import asc
from ops.laser_attention_grad.tiling import UB_BYTES, post_base

V_MTE2, MTE2_V = asc.HardEvent.V_MTE2, asc.HardEvent.MTE2_V
V_MTE3, MTE3_V = asc.HardEvent.V_MTE3, asc.HardEvent.MTE3_V
RINT = asc.RoundMode.CAST_RINT

WORK = 16384
"""Elements of the work area of the transposing form: 64 KiB of float32."""
TURNED_AT = 128 * 1024
UNIT = 8
"""Rows that the transposing form hands out together."""
MAX_REPEAT = 255
LANES = 64


def gradients(arguments, outputs):
    """Yield name of the fields, sums, result and whether it is scaled, for dQ, dK and dV."""
    query_grad, key_grad, value_grad = outputs
    yield "Dq", arguments.query_grad, query_grad, True
    yield "Dk", arguments.key_grad, key_grad, True
    yield "Dv", arguments.value_grad, value_grad, False


def store_flat(arguments, outputs):
    """Store dQ, dK and dV in equal shares."""
    buffers = _Buffers()
    buffers.begin()
    for name, sums, result, scaled in gradients(arguments, outputs):
        start, count = share(arguments, name)
        for first in asc.range(start, start + count, buffers.size):
            length = min(buffers.size, start + count - first)
            buffers.store(
                sums.tensor[first:], result[first:], length, arguments.scale if scaled else None
            )
    buffers.end()


def share(arguments, name):
    """Return the first element and the number of elements of this core's share of a tensor.

    For dQ the library takes the size of a chunk for the number of cores with the larger share. So every core takes the
    larger share, and the last one goes past the end of dQ.
    """
    core = asc.get_block_idx()
    front_field = "postBaseNum" if name == "Dq" else f"post{name}FrontCoreNum"
    front = arguments.field(front_field)
    more = arguments.field(f"post{name}FrontDataNum")
    less = arguments.field(f"post{name}TailDataNum")
    if core < front:
        return core * more, more
    return front * more + (core - front) * less, less


class _Buffers:
    """Two pairs of buffers in turn, flags 1 and 0."""

    def __init__(self):
        self.size = post_base()
        position = asc.TPosition.VECCALC
        first = 2 * self.size * 4
        self.wide = [
            asc.LocalTensor(asc.float32, position, i * self.size * 4, self.size) for i in range(2)
        ]
        self.narrow = [
            asc.LocalTensor(asc.bfloat16, position, first + i * self.size * 2, self.size)
            for i in range(2)
        ]
        self.turn = 0

    def begin(self):
        for event_id in (1, 0):
            asc.set_flag(V_MTE2, event_id)
            asc.set_flag(MTE3_V, event_id)

    def end(self):
        for event_id in (1, 0):
            asc.wait_flag(V_MTE2, event_id)
            asc.wait_flag(MTE3_V, event_id)

    def store(self, source, target, length, scale):
        wide, narrow, event_id = self.wide[self.turn], self.narrow[self.turn], 1 - self.turn
        asc.wait_flag(V_MTE2, event_id)
        no_padding = asc.DataCopyPadExtParams(asc.float32)
        asc.data_copy_pad(wide, source, asc.DataCopyExtParams(1, length * 4, 0, 0, 0), no_padding)
        asc.set_flag(MTE2_V, event_id)
        asc.wait_flag(MTE2_V, event_id)
        if scale is not None:
            asc.muls(wide, wide, scale, length)
            asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.wait_flag(MTE3_V, event_id)
        asc.cast(narrow, wide, RINT, length)
        asc.set_flag(V_MTE2, event_id)
        asc.set_flag(V_MTE3, event_id)
        asc.wait_flag(V_MTE3, event_id)
        asc.data_copy_pad(target, narrow, asc.DataCopyExtParams(1, length * 2, 0, 0, 0))
        asc.set_flag(MTE3_V, event_id)
        self.turn ^= 1


# ---- back to [rows, batch, heads * head dim] ------------------------------------------------------


def store_turned(arguments, outputs):
    """Store dQ, dK and dV with rows outermost. One buffer, flag 0."""
    turn = _Turn()
    asc.set_flag(V_MTE2, 0)
    asc.set_flag(MTE3_V, 0)
    for _, sums, result, scaled in gradients(arguments, outputs):
        turn.store(sums, result, arguments.sizes.batch, arguments.scale if scaled else None)
    asc.wait_flag(V_MTE2, 0)
    asc.wait_flag(MTE3_V, 0)


class _Turn:
    """The work area: float32, bfloat16 in its place; and the rows put in order behind it."""

    def __init__(self):
        position = asc.TPosition.VECCALC
        self.wide = asc.LocalTensor(asc.float32, position, 0, WORK)
        self.narrow = asc.LocalTensor(asc.bfloat16, position, 0, 2 * WORK)
        self.turned = asc.LocalTensor(
            asc.bfloat16, position, TURNED_AT, (UB_BYTES - TURNED_AT) // 2
        )

    def store(self, sums, result, batch, scale):
        start, count = rows_of_core(sums.rows)
        if not count:
            return  # the library divides by 0 rows here, and uses nothing of it
        every_head = batch * sums.heads
        rows, heads = step_of(every_head, sums.pitch)
        for first in asc.range(start, start + count, rows):
            length = min(rows, start + count - first)
            for head in range(0, every_head, heads):
                self._step(
                    sums,
                    result,
                    first,
                    length,
                    head,
                    min(heads, every_head - head),
                    every_head,
                    scale,
                )

    def _step(self, sums, result, row, rows, head, heads, every_head, scale):
        dim = sums.pitch
        elements = heads * rows * dim
        asc.wait_flag(V_MTE2, 0)
        bursts = asc.DataCopyExtParams(heads, rows * dim * 4, (sums.rows - rows) * dim * 4, 0, 0)
        source = sums.tensor[(head * sums.rows + row) * dim :]
        asc.data_copy_pad(self.wide, source, bursts, asc.DataCopyPadExtParams(asc.float32))
        asc.set_flag(MTE2_V, 0)
        asc.wait_flag(MTE2_V, 0)
        if scale is not None:
            asc.muls(self.wide, self.wide, scale, elements)
            asc.pipe_barrier(asc.PipeID.PIPE_V)
        self._round(elements)
        asc.wait_flag(MTE3_V, 0)
        for i in range(rows):
            asc.data_copy(
                self.turned[i * heads * dim :],
                self.narrow[i * dim :],
                asc.DataCopyParams(heads, dim // 16, (rows - 1) * dim // 16, 0),
            )
        asc.set_flag(V_MTE2, 0)
        asc.set_flag(V_MTE3, 0)
        asc.wait_flag(V_MTE3, 0)
        gap = (every_head - heads) * dim * 2
        bursts = asc.DataCopyExtParams(rows, heads * dim * 2, 0, gap, 0)
        asc.data_copy_pad(result[(row * every_head + head) * dim :], self.turned, bursts)
        asc.set_flag(MTE3_V, 0)

    def _round(self, elements):
        """Round in place, in two halves where the repeats of one instruction do not do."""
        repeats = elements // LANES
        parts = 1 if repeats <= MAX_REPEAT else 2
        for part in range(parts):
            first = part * (repeats // parts) * LANES
            asc.cast(
                self.narrow[first:],
                self.wide[first:],
                RINT,
                mask=LANES,
                repeat_times=repeats // parts,
                repeat_params=asc.UnaryRepeatParams(1, 1, 4, 8),
            )
            asc.pipe_barrier(asc.PipeID.PIPE_V)


def rows_of_core(rows):
    """Return first row and number of rows of this core: equal shares of whole units, then a unit more for the first."""
    cores, core = 2 * asc.get_block_num(), asc.get_block_idx()
    base = rows // cores // UNIT * UNIT
    extra = (rows - base * cores) // UNIT
    return core * base + min(core, extra) * UNIT, base + (UNIT if core < extra else 0)


def step_of(every_head, dim):
    """Return the rows and heads of one step: all heads where eight rows of them fit, else eight rows of some heads."""
    rows = WORK // (every_head * dim)
    if rows < UNIT:
        return UNIT, WORK // dim // UNIT
    return rows // UNIT * UNIT, every_head
