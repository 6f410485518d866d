"""Add two vectors with queues: what a second buffer hides.

A vector core has several units that work side by side. MTE2 loads tiles from global memory (GM) into the
core's own memory (UB), V computes, MTE3 stores. A queue (TQue) hands a tile from one unit to the next: `enque`
says "filled", `deque` waits for that; `free_tensor` says "emptied", `alloc_tensor` waits for that.

With one buffer a queue holds one tile: MTE2 cannot load the next one before V has read this one. With two, the
next load is under way meanwhile. The program runs both and says where each unit's time went.

    python examples/01_vector_add.py
    ascend-sim run examples/01_vector_add.py
"""

import numpy as np

from ascend_sim import asc

BLOCKS = 8  # each block runs on a core of its own
TILES = 32  # of each block
TILE = 2048  # elements

WAITS = {
    "memory": "for GM",
    "flag": "for another unit's result",
    "buffer": "for a free buffer",
    "scalar": "because nothing was issued yet",
    "queue_full": "for room in a unit's queue",
    "barrier": "for all units at the end",
    "bank_conflict": "for UB banks",
}


@asc.jit(auto_sync=False)
def vector_add(
    x: asc.GlobalAddress,
    y: asc.GlobalAddress,
    z: asc.GlobalAddress,
    tiles: int,
    tile: asc.ConstExpr[int],
    buffers: asc.ConstExpr[int],
):
    """Let each block add its own `tiles` tiles of `tile` elements."""
    start = asc.get_block_idx() * tiles * tile
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x + start)
    y_gm = asc.GlobalTensor()
    y_gm.set_global_buffer(y + start)
    z_gm = asc.GlobalTensor()
    z_gm.set_global_buffer(z + start)

    pipe = asc.TPipe()
    x_in = asc.TQue(asc.TPosition.VECIN, 1)
    y_in = asc.TQue(asc.TPosition.VECIN, 1)
    z_out = asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(que=x_in, num=buffers, len=tile * x.dtype.sizeof())
    pipe.init_buffer(que=y_in, num=buffers, len=tile * x.dtype.sizeof())
    pipe.init_buffer(que=z_out, num=buffers, len=tile * x.dtype.sizeof())

    for i in range(tiles):
        # Copy in (MTE2). Each alloc_tensor waits until V is done with what the buffer held before.
        x_local = x_in.alloc_tensor(x.dtype)
        asc.data_copy(x_local, x_gm[i * tile :], count=tile)
        x_in.enque(x_local)
        y_local = y_in.alloc_tensor(y.dtype)
        asc.data_copy(y_local, y_gm[i * tile :], count=tile)
        y_in.enque(y_local)

        # Compute (V).
        x_local = x_in.deque(x.dtype)
        y_local = y_in.deque(y.dtype)
        z_local = z_out.alloc_tensor(z.dtype)
        asc.add(z_local, x_local, y_local, count=tile)
        z_out.enque(z_local)
        x_in.free_tensor(x_local)
        y_in.free_tensor(y_local)

        # Copy out (MTE3).
        z_local = z_out.deque(z.dtype)
        asc.data_copy(z_gm[i * tile :], z_local, count=tile)
        z_out.free_tensor(z_local)


def main():
    """Add with one buffer a queue, then with two."""
    generator = np.random.default_rng(1)
    x, y = generator.normal(size=(2, BLOCKS * TILES * TILE)).astype(np.float16)
    for buffers in (1, 2):
        z = np.zeros_like(x)
        run = vector_add[BLOCKS](x, y, z, TILES, TILE, buffers)
        np.testing.assert_array_equal(z, x + y)
        print(f"BUFFERS {buffers}: z is x + y after {run.cycles:,} cycles ({run.time_us:.2f} us)")
        print_units(run)


def print_units(run):
    """Say how long each unit of the first core worked, and what it waited for."""
    for unit, entry in run.pipes["core0.aiv0"].items():
        causes = entry["causes"]
        waits = sorted(((causes.get(cause, 0), why) for cause, why in WAITS.items()), reverse=True)
        text = ", ".join(f"{cycles:,} {why}" for cycles, why in waits if cycles > 500)
        print(f"  {unit:<4} works {entry['busy']:>5,} cycles, waits {text}")


if __name__ == "__main__":
    main()
