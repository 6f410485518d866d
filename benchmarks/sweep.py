"""How much faster a sweep is on two processes than on one: 200 points of rope_grad, timing only, twice.

16 samples of 2048, hidden size 1280. Wall seconds, so the machine has to be idle; the CPU seconds beside them show what
the second process adds, and what the ratio would be at most on a machine with nothing else to do. The tables of both
sweeps must be alike.

    python benchmarks/sweep.py [--json] [--workers N] [--points N] [--tiny]
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TARGET = 1.8
FULL = [
    "--seq",
    ",".join(["2048"] * 16),
    "--hidden",
    "1280",
    "--set",
    "chip=ascend910b1,ascend910b3",
]
POINTS, LARGEST = 200, 12800
TINY = ["--seq", "64", "--hidden", "128", "--set", "MAX_PROCESS_NUM=2048,4096", "--set", "BUFFER_NUM=1,2"]  # fmt: skip
FIGURES = ("MAX_PROCESS_NUM", "BUFFER_NUM", "chip", "status", "cycles")


def sweep(arguments: Sequence[str], workers: int, folder: Path) -> dict[str, Any]:
    """Return wall and CPU seconds of a sweep, and its table."""
    command = [sys.executable, "-m", "ascend_sim", "sweep", "rope_grad", *arguments]
    began, before = time.perf_counter(), _cpu()
    subprocess.run(
        [*command, "--workers", str(workers), "--out", str(folder), "-q"],
        check=True,
        capture_output=True,
    )
    seconds, cpu = time.perf_counter() - began, _cpu() - before
    with (folder / "sweep.csv").open() as stream:
        table = sorted(
            tuple(row.get(name, "") for name in FIGURES) for row in csv.DictReader(stream)
        )
    return {"seconds": seconds, "cpu_seconds": cpu, "table": table}


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    parser.add_argument("--workers", type=int, default=2, help="processes of the faster sweep")
    parser.add_argument("--points", type=int, default=POINTS, help="a divisor of 200, to try it")
    parser.add_argument("--tiny", action="store_true", help="four small points, to try it")
    options = parser.parse_args(words)
    step = 2 * LARGEST // options.points
    sizes = f"MAX_PROCESS_NUM={step}:{LARGEST}:{step}"
    arguments = TINY if options.tiny else [*FULL, "--set", sizes]
    with tempfile.TemporaryDirectory() as folder:
        alone = sweep(arguments, 1, Path(folder) / "one")
        together = sweep(arguments, options.workers, Path(folder) / "more")
    ratio = alone["seconds"] / together["seconds"]
    result = {
        "points": len(alone["table"]),
        "workers": options.workers,
        "alike": alone["table"] == together["table"],
        "seconds_one": alone["seconds"],
        "seconds_more": together["seconds"],
        "cpu_one": alone["cpu_seconds"],
        "cpu_more": together["cpu_seconds"],
        "ratio": ratio,
        "ratio_by_cpu": options.workers * alone["cpu_seconds"] / together["cpu_seconds"],
        "target": TARGET,
    }
    if options.json:
        print(json.dumps(result))
        return
    one, more = alone["seconds"], together["seconds"]
    cpu_one, cpu_more = alone["cpu_seconds"], together["cpu_seconds"]
    print(
        f"{result['points']} points of rope_grad: {one:.1f} s on one process, {more:.1f} s on {options.workers}: "
        f"{ratio:.2f} times as fast (target {TARGET}); CPU {cpu_one:.1f} and {cpu_more:.1f} s, so at most "
        f"{result['ratio_by_cpu']:.2f} times; tables {'alike' if result['alike'] else 'DIFFER'}"
    )


if __name__ == "__main__":
    main()
