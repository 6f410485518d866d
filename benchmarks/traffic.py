"""What the model of GM costs: an addition with 402 MB of traffic on 48 cores, beside the same on ideal memory.

The ideal memory answers in the next cycle at any rate and holds everything, so no two transfers ever share anything;
what is left is the rest of the simulator. Timing only; times are of the process, the best of a few runs.

    python benchmarks/traffic.py [--json] [--tiny]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence

import numpy as np

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.config import Chip, load_chip

TARGET = 2.0
COLUMNS = 8192
CHUNK = 16384
SLOTS = ((0, 0x8000, 0x10000), (0x18000, 0x20000, 0x28000))
E = asc.HardEvent


def add(x: asc.GlobalAddress, y: asc.GlobalAddress, z: asc.GlobalAddress, each: int) -> None:
    """Add `each` elements a core, chunk by chunk, two sets of buffers in turn."""
    first = asc.get_block_idx() * each
    windows = []
    for address in (x, y, z):
        tensor = asc.GlobalTensor()
        tensor.set_global_buffer(address + first)
        windows.append(tensor)
    x_gm, y_gm, z_gm = windows
    for slot in (0, 1):
        asc.set_flag(E.V_MTE2, slot)
        asc.set_flag(E.MTE3_V, slot)
    for step, start in enumerate(range(0, each, CHUNK)):
        slot = step % 2
        a, b, c = (
            asc.LocalTensor(x.dtype, asc.TPosition.VECCALC, place, CHUNK) for place in SLOTS[slot]
        )
        asc.wait_flag(E.V_MTE2, slot)
        asc.data_copy(a, x_gm[start:], CHUNK)
        asc.data_copy(b, y_gm[start:], CHUNK)
        asc.set_flag(E.MTE2_V, slot)
        asc.wait_flag(E.MTE2_V, slot)
        asc.wait_flag(E.MTE3_V, slot)
        asc.add(c, a, b, CHUNK)
        asc.set_flag(E.V_MTE2, slot)
        asc.set_flag(E.V_MTE3, slot)
        asc.wait_flag(E.V_MTE3, slot)
        asc.data_copy(z_gm[start:], c, CHUNK)
        asc.set_flag(E.MTE3_V, slot)
    for slot in (0, 1):
        asc.wait_flag(E.V_MTE2, slot)
        asc.wait_flag(E.MTE3_V, slot)


def ideal(chip: Chip) -> Chip:
    """Return the chip with a memory that nobody ever waits for or shares."""
    much = 1e9
    gm = chip.gm.model_copy(
        update={
            "latency_l2_read": 0.0, "latency_l2_write": 0.0, "latency_hbm": 1.0, "crowd": 0.0, "write_head": 0.0,
            "read_port_aiv": much, "write_port_aiv": much, "read_write_sum_aiv": 4 * much,
            "window_core": int(much), "window_aiv": int(much),
        }
    )  # fmt: skip
    l2 = chip.l2.model_copy(update={"bytes": 1 << 40, "read_gbps": 1e15, "mixed_gbps": 1e15})
    hbm = chip.hbm.model_copy(update={"gbps": 1e15, "turnaround": 0.0})
    return chip.model_copy(update={"gm": gm, "l2": l2, "hbm": hbm})


def microseconds(chip: Chip, rows: int, runs: int) -> tuple[float, int]:
    """Return process time for each instruction in microseconds, the best of some runs, and how many there are."""
    each = rows * COLUMNS // 48 // CHUNK * CHUNK
    arrays = [np.empty(48 * each, np.float16) for _ in range(3)]
    best, count = float("inf"), 0
    for _ in range(runs):
        begin = time.process_time()
        run = sim.launch(add, *arrays, each, cores=48, chip=chip, numerics="off", checks="off")
        best = min(best, time.process_time() - begin)
        count = sum(len(core.items) for core in run.log.cores)
    return best / count * 1e6, count


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    parser.add_argument("--tiny", action="store_true", help="a small size, to try the program")
    options = parser.parse_args(words)
    rows, runs = (96, 1) if options.tiny else (COLUMNS, 5)
    chip = load_chip("ascend910b1")
    real, count = microseconds(chip, rows, runs)
    bare, _ = microseconds(ideal(chip), rows, runs)
    ratio = real / bare
    if options.json:
        print(
            json.dumps(
                {
                    "us": real, "ideal_us": bare, "ratio": ratio, "instructions": count, "target": TARGET,
                    "good": ratio <= TARGET,
                }
            )
        )  # fmt: skip
        return
    print(
        f"Add {rows} x {COLUMNS} float16, 48 cores, timing only, {count:,} items: {real:.2f} us an item, "
        f"{bare:.2f} with ideal memory, ratio {ratio:.2f} (target: at most {TARGET:g})"
    )


if __name__ == "__main__":
    main()
