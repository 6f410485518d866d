"""Sweep rope_grad's two tiling constants over two chips, and see that the rewritten kernel needs neither.

Every point is recorded once and replayed on both chips. A tile of 8192 elements with two buffers does not fit UB: that
is a row with its reason. The rows are a data frame; with a folder of one's own (`out`) they stay, and the same sweep
again runs nothing.

    python examples/04_sweep.py
    ascend-sim run examples/04_sweep.py
"""

import tempfile

import ascend_sim as sim
from ops import Context, find_operator

SHAPE = {"seq": "300,77", "hidden": "512"}
SPACE = {
    "MAX_PROCESS_NUM": [2048, 6144, 8192],
    "BUFFER_NUM": [1, 2],
    "chip": ["ascend910b4", "ascend910b1"],
}


def main():
    """Print the map, and the best point of each chip beside the rewritten kernel."""
    with tempfile.TemporaryDirectory() as folder:
        frame = sim.sweep("rope_grad", SPACE, fixed=SHAPE, out=folder, workers=1)
    for row in frame.itertuples():
        what = f"{row.time_us:6.2f} us" if row.status == "ok" else row.status
        print(
            f"{row.chip}  MAX_PROCESS_NUM {row.MAX_PROCESS_NUM:>5}, BUFFER_NUM {row.BUFFER_NUM}: {what}"
        )
    good = frame[frame.status == "ok"]
    for chip in SPACE["chip"]:
        best = good[good.chip == chip].sort_values("time_us").iloc[0]
        run = find_operator("rope_grad").run({**SHAPE, "variant": "tuned"}, Context(chip=chip))
        print(
            f"{chip}: best with MAX_PROCESS_NUM {best.MAX_PROCESS_NUM}, BUFFER_NUM {best.BUFFER_NUM}, "
            f"{best.time_us:.2f} us; rewritten {run.time_us:.2f} us, bit for bit the same: "
            f"{run.numerics['bit_exact']}"
        )


if __name__ == "__main__":
    main()
