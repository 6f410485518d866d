"""Add two vectors without queues: the flags that a queue sets for you, by hand.

A core's units do not wait for each other unless told to. `set_flag(V_MTE3, 0)` raises a flag once V has finished
all it was given before; `wait_flag(V_MTE3, 0)` keeps MTE3 from starting what comes after until then, and takes
the flag down. The kernel splits UB itself into two halves ("ping" and "pong") that take turns; event id 0 is
for ping, id 1 for pong. Four dependences need a flag:

    MTE2_V   the tile is loaded: V may read it
    V_MTE2   the tile is added:  MTE2 may load over it
    V_MTE3   the sum is there:   MTE3 may store it
    MTE3_V   the sum is stored:  V may write over it

The two that lead back are raised before the loop, because at first both halves are free, and taken down after
it, because a flag left up would let the next kernel pass too early.

    python examples/02_vector_add_flags.py
    ascend-sim run examples/02_vector_add_flags.py
"""

from collections import Counter

import numpy as np

from ascend_sim import asc
from ascend_sim.report.ledger import build_ledger
from ascend_sim.trace import Cause

BLOCKS = 8
TILES = 32  # of each block
TILE = 2048  # elements


@asc.jit(auto_sync=False)
def vector_add_flags(
    x: asc.GlobalAddress,
    y: asc.GlobalAddress,
    z: asc.GlobalAddress,
    tiles: int,
    tile: asc.ConstExpr[int],
):
    """Let each block add its own `tiles` tiles of `tile` elements."""
    start = asc.get_block_idx() * tiles * tile
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x + start)
    y_gm = asc.GlobalTensor()
    y_gm.set_global_buffer(y + start)
    z_gm = asc.GlobalTensor()
    z_gm.set_global_buffer(z + start)

    # Three tensors of two halves, one after the other in UB. Addresses in bytes, sizes in elements.
    size = 2 * tile * x.dtype.sizeof()
    x_both = asc.LocalTensor(x.dtype, asc.TPosition.VECIN, 0, 2 * tile)
    y_both = asc.LocalTensor(y.dtype, asc.TPosition.VECIN, size, 2 * tile)
    z_both = asc.LocalTensor(z.dtype, asc.TPosition.VECOUT, 2 * size, 2 * tile)

    asc.set_flag(asc.HardEvent.V_MTE2, 0)
    asc.set_flag(asc.HardEvent.V_MTE2, 1)
    asc.set_flag(asc.HardEvent.MTE3_V, 0)
    asc.set_flag(asc.HardEvent.MTE3_V, 1)

    for i in range(tiles):
        half = i % 2
        x_local = x_both[half * tile :]
        y_local = y_both[half * tile :]
        z_local = z_both[half * tile :]

        asc.wait_flag(asc.HardEvent.V_MTE2, half)
        asc.data_copy(x_local, x_gm[i * tile :], count=tile)
        asc.data_copy(y_local, y_gm[i * tile :], count=tile)
        asc.set_flag(asc.HardEvent.MTE2_V, half)

        asc.wait_flag(asc.HardEvent.MTE2_V, half)
        asc.wait_flag(asc.HardEvent.MTE3_V, half)
        asc.add(z_local, x_local, y_local, count=tile)
        asc.set_flag(asc.HardEvent.V_MTE2, half)
        asc.set_flag(asc.HardEvent.V_MTE3, half)

        asc.wait_flag(asc.HardEvent.V_MTE3, half)
        asc.data_copy(z_gm[i * tile :], z_local, count=tile)
        asc.set_flag(asc.HardEvent.MTE3_V, half)

    asc.wait_flag(asc.HardEvent.V_MTE2, 0)
    asc.wait_flag(asc.HardEvent.V_MTE2, 1)
    asc.wait_flag(asc.HardEvent.MTE3_V, 0)
    asc.wait_flag(asc.HardEvent.MTE3_V, 1)


def main():
    """Add, and say which flags cost time."""
    generator = np.random.default_rng(1)
    x, y = generator.normal(size=(2, BLOCKS * TILES * TILE)).astype(np.float16)
    z = np.zeros_like(x)
    run = vector_add_flags[BLOCKS](x, y, z, TILES, TILE)
    np.testing.assert_array_equal(z, x + y)
    print(f"z is x + y after {run.cycles:,} cycles ({run.time_us:.2f} us)")
    causes = run.pipes["core0.aiv0"]["MTE2"]["causes"]
    print(f"MTE2 works {causes['busy']:,} cycles and waits {causes['memory']:,} for GM")
    print_waits(run)


def print_waits(run):
    """Say at which wait_flag which unit of the first core stood still, and for how long."""
    waits = Counter()
    for segments in build_ledger(run.log)[0].pipes.values():
        for segment in segments:
            item = segment.origin
            if segment.cause is Cause.FLAG and item.name == "wait_flag":
                place = (run.log.sites[item.site].line, item.pipe.name, item.event.name)
                waits[place] += segment.end - segment.start
    for (line, unit, event), cycles in waits.most_common():
        print(f"  line {line}: {unit:<4} stands {cycles:>5,} cycles at {event}")


if __name__ == "__main__":
    main()
