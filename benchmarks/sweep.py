"""How much faster a sweep is on two processes than on one: 200 points of rope_grad, timing only, twice.

16 samples of 2048, hidden size 1280. Wall seconds, so the machine has to be idle; the CPU seconds beside them show what
the second process adds. The tables of both sweeps must be alike.

    python benchmarks/sweep.py [--json] [--workers N] [--tiny]
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
FULL = ["--seq", ",".join(["2048"] * 16), "--hidden", "1280",
        "--set", "MAX_PROCESS_NUM=128:12800:128", "--set", "chip=ascend910b1,ascend910b3"]  # fmt: skip
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
    parser.add_argument("--tiny", action="store_true", help="four small points, to try it")
    options = parser.parse_args(words)
    arguments = TINY if options.tiny else FULL
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
        "target": TARGET,
    }
    if options.json:
        print(json.dumps(result))
        return
    one, more = alone["seconds"], together["seconds"]
    print(
        f"{result['points']} points of rope_grad: {one:.1f} s on one process, {more:.1f} s on {options.workers}: "
        f"{ratio:.2f} times as fast (target {TARGET}); CPU {alone['cpu_seconds']:.1f} and "
        f"{together['cpu_seconds']:.1f} s; tables {'alike' if result['alike'] else 'DIFFER'}"
    )


if __name__ == "__main__":
    main()
