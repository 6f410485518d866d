"""Sweep rope_grad's two tiling constants over two chips, and see that the rewritten kernel needs neither.

Every point is recorded once and replayed on both chips; the results stay in a folder, so that the same sweep again
runs nothing. A tile of 8192 elements with two buffers does not fit UB: that is a row with its reason.

    python examples/04_sweep.py
    ascend-sim sweep rope_grad --seq 300,77 --hidden 512 --set MAX_PROCESS_NUM=2048,6144,8192 \\
        --set BUFFER_NUM=1,2 --set chip=ascend910b1,ascend910b4
"""

import tempfile

import ascend_sim as sim

SHAPE = {"seq": "300,77", "hidden": "512"}
SPACE = {
    "MAX_PROCESS_NUM": [2048, 6144, 8192],
    "BUFFER_NUM": [1, 2],
    "chip": ["ascend910b1", "ascend910b4"],
}


def main():
    """Print the map, the best point of each chip, and the rewritten kernel beside it."""
    with tempfile.TemporaryDirectory() as folder:
        frame = sim.sweep("rope_grad", SPACE, fixed=SHAPE, out=f"{folder}/map", workers=2)
        variants = sim.sweep(
            "rope_grad",
            {"variant": ["tuned"], "chip": SPACE["chip"]},
            fixed=SHAPE,
            out=f"{folder}/tuned",
            workers=2,
        )
    for row in frame.itertuples():
        what = f"{row.time_us:6.2f} us" if row.status == "ok" else row.status
        print(
            f"{row.chip}  MAX_PROCESS_NUM {row.MAX_PROCESS_NUM:>5}, BUFFER_NUM {row.BUFFER_NUM}: {what}"
        )
    good = frame[frame.status == "ok"]
    for row in good.loc[good.groupby("chip").time_us.idxmin()].itertuples():
        tuned = variants[variants.chip == row.chip].iloc[0]
        print(
            f"{row.chip}: best with MAX_PROCESS_NUM {row.MAX_PROCESS_NUM}, BUFFER_NUM {row.BUFFER_NUM}, "
            f"{row.time_us:.2f} us; rewritten {tuned.time_us:.2f} us"
        )


if __name__ == "__main__":
    main()
