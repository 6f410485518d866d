"""What all cube paths share: the places of tiles on chip, the shapes of moves and products, the order of rounds."""

# pyasc's dialect; see arguments.py.
# mypy: ignore-errors

from __future__ import annotations

from functools import cache, partial

import ascend_sim as sim
from ascend_sim import asc
from ops.laser_attention_grad.arguments import C2V, ONE_CORE, V2C
from ops.laser_attention_grad.sizes import BLOCK
from ops.laser_attention_grad.tiling import BLOCK_ELEMENTS

TILE = BLOCK_ELEMENTS
"""Elements of a tile of 128 x 128; 32 KiB in bfloat16."""
FRACTAL = 256
"""Elements of a fractal of 512 bytes."""
HALF = 64
"""Columns of a head dim of 192 beyond the first 128."""

L1_A = (0, 128 * 1024)
L1_B = (256 * 1024, 384 * 1024)
L0 = (0, 32 * 1024)
L0C = (0, 64 * 1024)

MTE1_MTE2 = asc.HardEvent.MTE1_MTE2
MTE2_MTE1 = asc.HardEvent.MTE2_MTE1
M_MTE1 = asc.HardEvent.M_MTE1
MTE1_M = asc.HardEvent.MTE1_M
PIPE_FIX = asc.PipeID.PIPE_FIX


@cache
def rows_to_nz(rows, columns, pitch):
    """Return the copy of a row-major tile from GM to L1 as NZ."""
    return asc.Nd2NzParams(1, rows, columns, 0, pitch, rows, 1, 0)


SLOT_TO_NZ = asc.Nd2NzParams(2, HALF, BLOCK, TILE, BLOCK, BLOCK, 1, 1024)
"""P or dS out of its slot: two packed halves of 64 rows, 32 KiB apart."""


def fractals(repeat, stride, transpose=False):
    """Return a load of fractals from L1 to L0."""
    return asc.LoadData2DParams(repeat_times=repeat, src_stride=stride, if_transpose=transpose)


def product(init, unit_flag, n=BLOCK, k=BLOCK):
    """Return a product of 128 rows; `init` starts from zero, else from what L0C holds."""
    return asc.MmadParams(BLOCK, n, k, unit_flag, False, init)


@cache
def rows_out(pitch, n=BLOCK):
    """Return the way of a result out of L0C to rows in GM."""
    return asc.FixpipeParamsV220(n, BLOCK, BLOCK, pitch, unit_flag=3)


WHOLE_TILE = fractals(64, 1)
HALF_TILE = fractals(32, 1)

KEEP, FINISH = 2, 3
"""Unit flags: wait for the place to be free and keep it; or hand it to fixpipe when done."""


class Cube:
    """One cube core. Subclasses have the matrix routines of a path: `scores(r)` and `gradients(r)`."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.plan = arguments.plan
        self.core = asc.get_block_idx()
        self.group = arguments.sizes.group
        self._pieces = {}

    def run(self):
        """Go through all rounds. The scores of two rounds are ahead of the gradients of the first of them."""
        ahead = []
        self.begin()
        for round_number in sim.trips(self.plan.rounds, partial(self.plan.effort, self.core)):
            if len(ahead) == 2:
                self.wait_vectors()
                self.tell_vectors()
                self.gradients_if_active(ahead.pop(0))
            elif ahead:
                self.tell_vectors()
            self.scores_if_active(round_number)
            ahead.append(round_number)
        if len(ahead) == 2:
            self.wait_vectors()
            self.tell_vectors()
            self.gradients_if_active(ahead.pop(0))
        else:
            self.tell_vectors()
        self.wait_vectors()
        self.gradients_if_active(ahead.pop())
        self.end()

    def begin(self):
        """Raise the flags of the places that are free at first."""

    def end(self):
        """Take back the flags that are still raised."""

    def scores_if_active(self, round_number):
        """Compute S and dP of a round, where this core has slots in it."""
        if self.plan.is_active(self.core, round_number):
            segments = self.plan.segments(self.core, round_number)
            self.scores(segments, self.arguments.slots(self.core, round_number))

    def gradients_if_active(self, round_number):
        """Add a round's part of dV, dK and dQ, where this core has slots in it."""
        if self.plan.is_active(self.core, round_number):
            segments = self.plan.segments(self.core, round_number)
            self.gradients(segments, self.arguments.slots(self.core, round_number))

    def tell_vectors(self):
        """Say that S and dP of the next round are in GM, or will be when FIX is through."""
        asc.cross_core_set_flag(C2V, ONE_CORE, PIPE_FIX)

    def wait_vectors(self):
        """Issue nothing more until both vector cores have stored P and dS of the next round."""
        asc.cross_core_wait_flag(V2C, ONE_CORE)

    def pieces(self, target, source, count, target_step, source_step):
        """Return the views of a tile that is loaded piece by piece, made once."""
        key = (target.key, source.key, count, target_step, source_step)
        found = self._pieces.get(key)
        if found is None:
            found = self._pieces[key] = [
                (target[i * target_step :], source[i * source_step :]) for i in range(count)
            ]
        return found

    def load(self, target, source, params, target_step, source_step):
        """Load a tile in eight pieces."""
        for to, of in self.pieces(target, source, 8, target_step, source_step):
            asc.load_data(to, of, params)


def local(position, address, elements, dtype=asc.bfloat16):
    """Return a place on chip, `address` in bytes."""
    return asc.LocalTensor(dtype, position, address, elements)
