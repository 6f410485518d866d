"""Before the rounds with SBH, on all vector cores: Q, K, V, O and dO as [batch, heads, rows, head dim].

One buffer each way, flag 0. Each tensor is shared out by rows.
"""

# pyasc's dialect; see arguments.py.
# mypy: ignore-errors

from __future__ import annotations

from ascend_sim import asc
from ops.laser_attention_grad.arguments import ALL_VECTORS, EVERYONE, ONE_CORE, V2C

V_MTE2, MTE2_V = asc.HardEvent.V_MTE2, asc.HardEvent.MTE2_V
V_MTE3, MTE3_V = asc.HardEvent.V_MTE3, asc.HardEvent.MTE3_V

AREA = 49152
"""Elements of one of the two areas of UB: 96 KiB."""


def transpose_all(arguments):
    """Transpose the five inputs, then tell all vector cores, then the cube core."""
    source = asc.LocalTensor(asc.bfloat16, asc.TPosition.VECCALC, 0, AREA)
    target = asc.LocalTensor(asc.bfloat16, asc.TPosition.VECCALC, 2 * AREA, AREA)
    asc.set_flag(V_MTE2, 0)
    asc.set_flag(MTE3_V, 0)
    matrices = (
        arguments.query, arguments.key, arguments.value, arguments.attention_grad, arguments.attention
    )  # fmt: skip
    for given, matrix in zip(arguments.given, matrices, strict=True):
        transpose = _Transpose(given, matrix, arguments.sizes.batch * matrix.heads, source, target)
        transpose.run()
    asc.wait_flag(V_MTE2, 0)
    asc.wait_flag(MTE3_V, 0)
    asc.cross_core_set_flag(ALL_VECTORS, EVERYONE, asc.PipeID.PIPE_MTE3)
    asc.cross_core_wait_flag(ALL_VECTORS)
    asc.cross_core_set_flag(V2C, ONE_CORE, asc.PipeID.PIPE_MTE3)


class _Transpose:
    """One tensor; `width` is the number of heads of a row, those of all samples."""

    def __init__(self, given, matrix, width, source, target):
        self.given = given
        self.tensor = matrix.tensor
        self.rows = matrix.rows
        self.dim = matrix.pitch
        self.width = width
        self.source = source
        self.target = target
        self.cores = 2 * asc.get_block_num()
        self.core = asc.get_block_idx()

    def run(self):
        if self.width > AREA // self.dim:
            self._head_by_head()
            return
        start, count, step = self._share()
        for first in asc.range(start, start + count, step):
            self._pass(first, min(step, start + count - first))

    def _share(self):
        """Return first row, rows and rows of a pass: whole passes for the first cores, the rest for the last one."""
        step = AREA // (self.width * self.dim)
        base = self.rows // (self.cores * step) * step
        left = self.rows - base * self.cores
        extra = left // step
        count = base + (step if self.core < extra else 0)
        if self.core == self.cores - 1:
            count += left % step
        return self.core * base + min(self.core, extra) * step, count, step

    def _pass(self, first, rows):
        """Some whole rows: one burst in, a copy a row between the areas, a burst a head out."""
        width, dim = self.width, self.dim
        asc.wait_flag(V_MTE2, 0)
        asc.data_copy(self.source, self.given[first * width * dim :], rows * width * dim)
        asc.set_flag(MTE2_V, 0)
        asc.wait_flag(MTE2_V, 0)
        asc.wait_flag(MTE3_V, 0)
        for i in range(rows):
            asc.data_copy(
                self.target[i * dim :],
                self.source[i * width * dim :],
                asc.DataCopyParams(width, dim // 16, 0, (rows - 1) * dim // 16),
            )
        asc.set_flag(V_MTE2, 0)
        asc.set_flag(V_MTE3, 0)
        asc.wait_flag(V_MTE3, 0)
        gap = (self.rows - rows) * dim * 2
        bursts = asc.DataCopyExtParams(width, rows * dim * 2, 0, gap, 0)
        asc.data_copy_pad(self.tensor[first * dim :], self.target, bursts)
        asc.set_flag(MTE3_V, 0)

    def _head_by_head(self):
        """Where a row does not fit: each head's rows by themselves."""
        base, extra = divmod(self.rows, self.cores)
        count = base + (1 if self.core < extra else 0)
        start = self.core * base + min(self.core, extra)
        most = AREA // self.dim
        for head in asc.range(self.width):
            if count < most:
                if count:
                    self._gather(head, start, count)
                continue
            # The library's loop for more rows than one area holds raises V_MTE2 twice and MTE3_V never: it hangs.
            for first in range(start, start + count, most):
                self._gather(head, first, min(most, start + count - first), broken=True)

    def _gather(self, head, first, rows, broken=False):
        width, dim = self.width, self.dim
        asc.wait_flag(V_MTE2, 0)
        bursts = asc.DataCopyParams(rows, dim // 16, (width - 1) * dim // 16, 0)
        asc.data_copy(self.source, self.given[(first * width + head) * dim :], bursts)
        asc.set_flag(MTE2_V, 0)
        asc.wait_flag(MTE2_V, 0)
        asc.wait_flag(MTE3_V, 0)
        asc.data_copy(self.target, self.source, rows * dim)
        asc.set_flag(V_MTE2, 0)
        asc.set_flag(V_MTE3, 0)
        asc.wait_flag(V_MTE3, 0)
        asc.data_copy(self.tensor[(head * self.rows + first) * dim :], self.target, rows * dim)
        if broken:
            asc.set_flag(V_MTE2, 0)
        else:
            asc.set_flag(MTE3_V, 0)
