"""Run the operator rope_grad with one and with two buffers a queue.

The operator is made as in the CANN transformer library: an operation by name with its parameter as JSON, then
`infer_shape`, `setup` (checks and tiling) and `execute`. The context says on what and how it runs: the chip, and
the constants of the tiling, here the size of a buffer and the number of buffers of each queue. With two buffers
a tile of 7552 elements is the largest whose buffers fit UB; the same tile with one buffer makes the comparison fair.

    python examples/03_rope_grad.py
    ascend-sim run examples/03_rope_grad.py
"""

import numpy as np

from ops import Context, create_operation
from ops.rope_grad.inputs import rope_tables
from ops.rope_grad.reference import library

LENGTHS = [600, 150]  # tokens of the two samples
HEADS = 4  # of 128 columns; each becomes a block on a core of its own

CAUSES = ("busy", "memory", "bank_conflict", "flag", "buffer", "barrier", "scalar")


def main():
    """Run the operator with one buffer a queue, then with two."""
    generator = np.random.default_rng(1)
    q, k = generator.normal(size=(2, sum(LENGTHS), 128 * HEADS)).astype(np.float16)
    cos, sin = rope_tables(max(LENGTHS), 128)
    expected = library(q, k, cos, sin, LENGTHS)
    for buffers in (1, 2):
        tiling = {"MAX_PROCESS_NUM": 7552, "BUFFER_NUM": buffers}
        context = Context(chip="ascend910b1", tiling=tiling)
        operation = create_operation("RopeGradOperation", {"qSeqLen": LENGTHS})
        results = [np.zeros_like(q), np.zeros_like(k)]
        operation.setup([q, k, cos, sin], results, context)
        run = operation.execute([q, k, cos, sin], results, context)
        np.testing.assert_array_equal(results, expected)
        print(
            f"BUFFER_NUM {buffers}: {run.time_us:.2f} us, the results are the library's, bit for bit"
        )
        print_units(run)


def print_units(run):
    """Say which share of the first core's time each of its units worked, or waited for what."""
    core = run.log.cores[0]
    print("       " + "".join(f"{cause:>15}" for cause in CAUSES))
    for unit in ("MTE2", "V", "MTE3"):
        causes = run.pipes[core.name][unit]["causes"]
        shares = [causes.get(cause, 0) / (core.end - core.start) for cause in CAUSES]
        print(f"  {unit:<5}" + "".join(f"{share:>15.0%}" for share in shares))


if __name__ == "__main__":
    main()
